"""What of a session's log is context, and as what (session-messaging 4, coordination 66)."""

from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from callboard.log.record import Record
from callboard.models.base import (
    AssistantMessage,
    Image,
    ModelMessage,
    ModelRequest,
    Reasoning,
    Text,
    ToolMessage,
    ToolOutput,
    ToolSpec,
    ToolUse,
    UserMessage,
)
from callboard.sessions.sizes import Estimate, characters, fit, message_characters
from callboard.sessions.transcript import SUMMARY_INTRODUCTION, Transcript
from callboard_rpc.approvals import Approval, Resolution, ToolCallSubject
from callboard_rpc.common import (
    Actor,
    EmbeddedResource,
    Failure,
    ImageContent,
    ResourceLink,
    TextContent,
    Thinking,
    Usage,
)
from callboard_rpc.common import ToolUse as ToolPlace
from callboard_rpc.convert import unstructure
from callboard_rpc.events import (
    EVENT_NAMES,
    Ack,
    ApprovalDecision,
    ApprovalRequest,
    Author,
    Delivered,
    Directive,
    Error,
    Message,
    Summary,
    ToolCall,
    ToolResult,
    TriggersDropped,
    TurnFinished,
)

ME = Actor(kind="client", id="c")
PERSON = Author(kind="person", name="p")
AGENT = Author(kind="agent", name="a", id="ses_a")


class Tape:
    """A session's log, event by event."""

    def __init__(self) -> None:
        self.transcript = Transcript()
        self.records: list[Record] = []
        self.seq = 0
        self.turn_id: str | None = None

    def add(self, data: Any, *, turn_id: str | None = None) -> int:
        self.seq += 1
        record = Record(
            pos=self.seq + 100,
            session_id="ses_a",
            seq=self.seq,
            event_id=f"evt_{self.seq}",
            type=EVENT_NAMES[type(data)],
            at="2031-01-01T00:00:00.000Z",
            actor="{}",
            turn_id=turn_id or self.turn_id,
            fence=0,
            data=orjson.dumps(unstructure(data)).decode(),
        )
        self.records.append(record)
        self.transcript.apply(record)
        return self.seq

    def person(self, text: str, **more: Any) -> int:
        return self.add(_message(text, PERSON, **more))

    def admit(self, *seqs: int) -> int:
        return self.add(Ack(admits=seqs))

    def says(self, text: str, message_id: str = "m", **more: Any) -> int:
        return self.add(_message(text, AGENT, message_id=message_id, **more))

    def call(self, call_id: str, message_id: str = "m", **arguments: Any) -> int:
        return self.add(
            ToolCall(
                call_id=call_id, message_id=message_id, name="look", arguments=arguments, title="t"
            )  # pyright: ignore[reportArgumentType]
        )

    def result(self, call_id: str, text: str = "seen", status: Any = "ok") -> int:
        return self.add(
            ToolResult(call_id=call_id, name="look", status=status, text=text)  # pyright: ignore[reportArgumentType]
        )

    def summary(self, text: str, covers_through: int) -> int:
        return self.add(
            Summary(
                text=text,
                covers_through=covers_through,
                author=Author(kind="system", name="callboard"),
                reason="command",
            )
        )

    def shown(self, tools: Any = "replay", turn_id: str | None = None) -> list[tuple[str, str]]:
        """The context, block by block: who, and what."""
        return _flat(self.transcript.messages(tools, turn_id=turn_id))


def _message(text: str, author: Author, message_id: str = "m", **more: Any) -> Message:
    content = more.pop("content", (TextContent(text=text),))
    return Message(message_id=message_id, author=author, content=content, **more)  # pyright: ignore[reportArgumentType]


def _flat(messages: Sequence[ModelMessage]) -> list[tuple[str, str]]:
    out: list[tuple[str, str]] = []
    for message in messages:
        match message:
            case UserMessage(blocks=blocks):
                out += [("user", b.text if isinstance(b, Text) else "<image>") for b in blocks]
            case AssistantMessage(blocks=blocks):
                for block in blocks:
                    match block:
                        case Text(text=text):
                            out.append(("assistant", text))
                        case Reasoning(text=text):
                            out.append(("reasoning", text))
                        case ToolUse(call_id=call_id):
                            out.append(("call", call_id))
            case ToolMessage(outputs=outputs):
                out += [("result", f"{o.call_id}:{o.text}") for o in outputs]
    return out


def _one_of_each(tape: Tape) -> None:
    """All nine types of the transcript, twice, with records of runs among them."""
    approval = Approval(
        approval_id="apr",  # pyright: ignore[reportArgumentType]
        session_id="ses_a",  # pyright: ignore[reportArgumentType]
        root_id="ses_a",  # pyright: ignore[reportArgumentType]
        turn_id="trn",  # pyright: ignore[reportArgumentType]
        call_id="c1",  # pyright: ignore[reportArgumentType]
        kind="permission",
        title="HIDDEN",
        tool="look",
        subject=ToolCallSubject(name="HIDDEN", arguments={"HIDDEN": 1}),
        options=(),
        created_at="2031-01-01T00:00:00.000Z",
    )
    resolution = Resolution(outcome="rejected", by=ME, via="method", at="x", feedback="HIDDEN")
    seq = tape.person("a person's words")
    tape.admit(seq)
    tape.says("an answer")
    tape.call("c1", hidden="HIDDEN")
    tape.add(ApprovalRequest(approval=approval))
    tape.add(
        ApprovalDecision(
            approval_id=approval.approval_id, call_id=approval.call_id, resolution=resolution
        )
    )
    tape.result("c1", "HIDDEN")
    tape.add(Error(error=Failure(kind="internal", message="HIDDEN")))
    directive = tape.add(
        Directive(message_id="d", author=AGENT, text="a directive", context="its context")  # pyright: ignore[reportArgumentType]
    )
    tape.admit(directive)
    tape.says("the end", "m2", final=True)


def test_messaging_18_of_nine_types_exactly_message_directive_and_summary_are_context() -> None:
    tape = Tape()
    _one_of_each(tape)
    wanted = [
        ("user", "a person's words"),
        ("assistant", "an answer"),
        ("user", "a directive\n\nContext: its context"),  # of the agent itself, and yet user role
        ("assistant", "the end"),
    ]
    assert tape.shown("audit") == wanted
    tape.summary("so far", tape.seq)
    assert tape.shown("audit") == [("user", SUMMARY_INTRODUCTION + "so far")]
    _one_of_each(tape)
    assert tape.shown("audit")[1:] == wanted
    assert "HIDDEN" not in repr(tape.transcript.messages("audit"))


def test_messaging_18_only_what_is_above_the_last_of_two_summaries_is_sent() -> None:
    tape = Tape()
    tape.admit(tape.person("first"))
    tape.says("one", "m1")
    tape.summary("first summary", tape.seq)
    tape.admit(tape.person("second"))
    tape.says("two", "m2")
    tape.summary("second summary", tape.seq)
    tape.admit(tape.person("third"))
    for mode in ("replay", "audit"):
        assert tape.shown(mode) == [
            ("user", SUMMARY_INTRODUCTION + "second summary"),
            ("user", "third"),
        ]
    assert tape.transcript.summary == Text(text=SUMMARY_INTRODUCTION + "second summary")
    assert len(tape.transcript.messages("replay")) == 1  # never an assistant's message


def test_messaging_18_what_is_said_while_a_summary_is_made_stays_in_context() -> None:
    tape = Tape()
    tape.admit(tape.person("first"))
    tape.says("one", "m1")
    before = tape.person("queued before")
    covers = tape.seq
    during = tape.person("said meanwhile")
    tape.summary("summary", covers)
    tape.admit(before, during)
    assert tape.shown() == [
        ("user", SUMMARY_INTRODUCTION + "summary"),
        ("user", "queued before"),
        ("user", "said meanwhile"),
    ]


def test_replay_sends_tool_traffic_again_and_audit_only_that_of_the_turn_that_runs() -> None:
    tape = Tape()
    for turn in ("t1", "t2"):
        tape.turn_id = turn
        tape.admit(tape.person(f"ask {turn}"))
        tape.says(f"look {turn}", f"m-{turn}")
        tape.call(f"c-{turn}", f"m-{turn}")
        tape.result(f"c-{turn}", f"seen {turn}")
    first = [
        ("user", "ask t1"),
        ("assistant", "look t1"),
        ("call", "c-t1"),
        ("result", "c-t1:seen t1"),
    ]
    second = [
        ("user", "ask t2"),
        ("assistant", "look t2"),
        ("call", "c-t2"),
        ("result", "c-t2:seen t2"),
    ]
    assert tape.shown("replay") == first + second
    assert tape.shown("audit", "t2") == first[:2] + second
    assert tape.shown("audit") == first[:2] + second[:2]


def test_coordination_11_orphan_results_and_calls_without_result_are_left_out() -> None:
    tape = Tape()
    tape.admit(tape.person("go"))
    tape.says("both", "m1")
    tape.call("c1", "m1")
    tape.call("c2", "m1")
    tape.result("c1")
    tape.result("c9", "orphan")
    tape.call("c3", "m2")  # an answer of calls alone, none of which came to an end
    assert tape.shown() == [
        ("user", "go"), ("assistant", "both"), ("call", "c1"), ("result", "c1:seen"),
    ]  # fmt: skip


def test_every_result_is_one_for_the_model_and_only_ok_is_no_error() -> None:
    tape = Tape()
    tape.admit(tape.person("go"))
    statuses = ("ok", "error", "denied", "timed_out", "superseded", "cancelled", "interrupted")
    for n, status in enumerate(statuses):
        tape.call(f"c{n}", "m1")
        tape.result(f"c{n}", status, status)
    *_, outputs = tape.transcript.messages("replay")
    assert isinstance(outputs, ToolMessage)
    assert [(o.text, o.is_error) for o in outputs.outputs] == [(s, s != "ok") for s in statuses]


def test_calls_stand_where_the_model_put_them_and_reasoning_goes_back_as_it_came() -> None:
    tape = Tape()
    tape.admit(tape.person("go"))
    tape.add(
        _message(
            "",
            AGENT,
            "m1",
            content=(
                Thinking(text="hm", provider="anthropic", opaque={"signature": "s"}),
                TextContent(text="first"),
                ToolPlace(call_id="c1"),  # pyright: ignore[reportArgumentType]
                TextContent(text="then"),
                ToolPlace(call_id="c2"),  # pyright: ignore[reportArgumentType]
                ToolPlace(call_id="c-unknown"),  # pyright: ignore[reportArgumentType]
            ),
        )
    )
    for each in ("c2", "c1"):
        tape.call(each, "m1")
    tape.result("c2")
    tape.result("c1")
    assert [who for who, _ in tape.shown()] == [
        "user", "reasoning", "assistant", "call", "assistant", "call", "result", "result",
    ]  # fmt: skip
    _, answer, _ = tape.transcript.messages("replay")
    assert isinstance(answer, AssistantMessage)
    assert answer.blocks[0] == Reasoning(text="hm", provider="anthropic", opaque={"signature": "s"})
    assert ("reasoning", "hm") not in tape.shown("audit")


def test_a_message_stands_where_it_was_admitted_and_not_where_it_arrived() -> None:
    tape = Tape()
    tape.admit(tape.person("go"))
    tape.says("looking", "m1")
    tape.call("c1", "m1")
    steer = tape.person("use tea", delivery="steer")
    tape.result("c1")
    assert ("user", "use tea") not in tape.shown()  # not before the boundary takes it in
    tape.admit(steer)
    tape.says("tea it is", "m2")
    later = tape.person("and then?")
    assert tape.shown()[-3:] == [
        ("result", "c1:seen"),
        ("user", "use tea"),
        ("assistant", "tea it is"),
    ]
    tape.admit(later, steer)  # an ack that is written twice admits once
    assert [text for who, text in tape.shown() if who == "user"] == ["go", "use tea", "and then?"]


def test_what_was_dropped_is_never_context() -> None:
    tape = Tape()
    dropped = tape.person("never mind")
    tape.add(TriggersDropped(seqs=(dropped,), reason="cancelled"))
    tape.admit(tape.person("this"))
    assert tape.shown() == [("user", "this")]


def test_partial_text_is_context_and_an_empty_answer_is_not() -> None:
    tape = Tape()
    tape.admit(tape.person("go"))
    tape.says("half of an ans", "m1", partial=True)
    tape.says(" \n ", "m2")
    tape.add(
        TurnFinished(turn_id="t", outcome="cancelled", answered_through=1, usage=Usage())  # pyright: ignore[reportArgumentType]
    )
    tape.admit(tape.person("again"))
    assert tape.shown() == [("user", "go"), ("assistant", "half of an ans"), ("user", "again")]


def test_only_words_of_those_above_an_agent_are_kept_verbatim() -> None:
    tape = Tape()

    def delivered(*kinds: Any) -> dict[str, Any]:
        first, *rest = (
            Delivered(delivery_id=f"d{n}", generation=n, digest="", kind=kind)
            for n, kind in enumerate(kinds)
        )
        return {"delivered": first, "joined": tuple(rest)}

    def told(text: str, author: Author) -> int:
        return tape.add(Directive(message_id="m", author=author, text=text))  # pyright: ignore[reportArgumentType]

    tape.admit(told("the brief", AGENT))
    tape.admit(told("of a hook", Author(kind="system", name="hook")))
    tape.admit(told('<group-message from="a">obey</group-message>', AGENT))
    for kind in ("report", "question", "update", "sibling", "peer"):
        tape.admit(tape.add(_message(kind, AGENT, **delivered(kind))))
    tape.admit(tape.add(_message("go on", AGENT, **delivered("continue"))))
    tape.admit(tape.add(_message("both", AGENT, **delivered("report", "information"))))
    tape.admit(told("<group-message is what I ask about", PERSON))
    tape.admit(tape.person("a wish"))
    assert tape.transcript.last_requests(9) == [
        "the brief", "go on", "both", "<group-message is what I ask about", "a wish",
    ]  # fmt: skip
    assert tape.transcript.last_requests() == tape.transcript.last_requests(9)[-3:]


def test_images_links_and_buffers_of_a_prompt_are_sent_and_unicode_is_left_alone() -> None:
    tape = Tape()
    text = "naïve 日本語 🙂 e\u0301 \u202eabc"
    tape.admit(
        tape.add(
            _message(
                "",
                PERSON,
                content=(
                    TextContent(text=text),
                    ImageContent(data="aGk=", mime_type="image/png"),
                    ResourceLink(uri="file:///a%20b.py", name="a b.py"),
                    EmbeddedResource(uri='file:///x"><y', text="unsaved <text>"),
                ),
            )
        )
    )
    (message,) = tape.transcript.messages("replay")
    assert isinstance(message, UserMessage)
    assert message.blocks == (
        Text(text=text),
        Image(data="aGk=", mime_type="image/png"),
        Text(text="[a b.py](file:///a%20b.py)"),
        Text(text='<resource uri="file:///x&quot;&gt;&lt;y">\nunsaved <text>\n</resource>'),
    )


def test_coordination_13_a_view_that_begins_with_an_answer_gets_a_note_in_front() -> None:
    tape = Tape()
    tape.says("hello", "m1")
    assert [who for who, _ in tape.shown()] == ["user", "assistant"]


@pytest.mark.parametrize("mode", ["replay", "audit"])
def test_a_call_that_is_no_json_is_sent_back_as_such(mode: Any) -> None:
    tape = Tape()
    tape.turn_id = "t1"
    tape.admit(tape.person("go"))
    tape.add(
        ToolCall(
            call_id="c1",  # pyright: ignore[reportArgumentType]
            message_id="m1",  # pyright: ignore[reportArgumentType]
            name="look",
            arguments={},
            raw_arguments="{not json" * 1_000,
            title="t",
        )
    )
    tape.result("c1", "not JSON", "error")
    _, answer, _ = tape.transcript.messages(mode, turn_id="t1")
    assert isinstance(answer, AssistantMessage)
    (use,) = answer.blocks
    assert isinstance(use, ToolUse)
    assert use.arguments["_not_json"].startswith("{not json")
    assert len(use.arguments["_not_json"]) == 2_000


# --- any log ----------------------------------------------------------------------------------

_STEPS = st.lists(
    st.sampled_from(
        ["person", "steer", "admit", "answer", "calls", "result", "orphan", "drop", "summary", "turn", "error"]
    ),
    max_size=40,
)  # fmt: skip


@given(steps=_STEPS, mode=st.sampled_from(["replay", "audit"]))
@example(steps=["person", "admit", "calls", "result", "result", "answer"], mode="replay")
@example(steps=["person", "admit", "answer", "person", "admit", "calls", "result"], mode="audit")
def test_any_log_gives_a_context_that_a_provider_takes(steps: list[str], mode: Any) -> None:
    tape = Tape()
    tape.turn_id = "t0"
    waiting: list[int] = []
    open_calls: list[str] = []
    context: list[str] = []  # what must be there, in this order
    for n, step in enumerate(steps):
        match step:
            case "person" | "steer":
                waiting.append(tape.person(f"said {n}"))
            case "admit":
                tape.admit(*waiting)
                context += [f"said@{seq}" for seq in waiting]
                waiting.clear()
            case "answer":
                tape.says(f"answer {n}", f"m{n}")
                context.append(f"answer {n}")
            case "calls":
                for part in "ab":
                    tape.call(f"c{n}{part}", f"m{n}")
                    open_calls.append(f"c{n}{part}")
            case "result" if open_calls:
                tape.result(open_calls.pop(0))
            case "orphan":
                tape.result(f"gone{n}")
            case "drop":
                tape.add(TriggersDropped(seqs=tuple(waiting), reason="r"))
                waiting.clear()
            case "summary":
                tape.summary(f"summary {n}", tape.seq)
                context = [f"summary {n}"]
                open_calls.clear()
            case "turn":
                tape.turn_id = f"t{n}"
            case _:
                tape.add(Error(error=Failure(kind="internal", message="m")))
        tape.transcript.messages(mode, turn_id=tape.turn_id)  # what is kept of it must not show
    messages = tape.transcript.messages(mode, turn_id=tape.turn_id)
    anew = Transcript()
    for record in tape.records:
        anew.apply(record)
    assert messages == anew.messages(mode, turn_id=tape.turn_id)
    assert not messages or isinstance(messages[0], UserMessage)
    for before, message in zip((None, *messages), messages, strict=False):
        if isinstance(message, UserMessage):
            assert not isinstance(before, UserMessage)  # joined
            assert message.blocks
        if isinstance(message, AssistantMessage):
            assert any(not isinstance(b, Reasoning) for b in message.blocks)
        if isinstance(message, ToolMessage):
            assert isinstance(before, AssistantMessage)
            asked = [b.call_id for b in before.blocks if isinstance(b, ToolUse)]
            assert [o.call_id for o in message.outputs] == asked
            assert asked
    for message, after in zip(messages, (*messages[1:], None), strict=False):
        if isinstance(message, AssistantMessage) and any(
            isinstance(b, ToolUse) for b in message.blocks
        ):
            assert isinstance(after, ToolMessage)
    spoken = [text for who, text in _flat(messages) if who in ("user", "assistant")]
    if spoken and spoken[0].startswith("(The conversation"):
        spoken = spoken[1:]
    assert len(spoken) == len(context)
    for have, want in zip(spoken, context, strict=True):
        if want.startswith("summary"):
            assert have == SUMMARY_INTRODUCTION + want
        elif want.startswith("said@"):
            assert have.startswith("said ")
        else:
            assert have == want


# --- sizes ------------------------------------------------------------------------------------


def _user(size: int, mark: str = "u") -> UserMessage:
    return UserMessage(blocks=(Text(text=mark * size),))


def _step(n: int, size: int) -> tuple[ModelMessage, ModelMessage]:
    return (
        AssistantMessage(blocks=(ToolUse(call_id=f"c{n}", name="look", arguments={}),)),
        ToolMessage(outputs=(ToolOutput(call_id=f"c{n}", text="r" * size),)),
    )


_EXCHANGES = st.lists(
    st.tuples(st.integers(0, 300), st.lists(st.integers(0, 300), max_size=4)),
    min_size=1,
    max_size=6,
)


@given(exchanges=_EXCHANGES, budget=st.integers(0, 3_000), summed=st.booleans())
def test_messaging_18_what_fits_is_whole_newest_and_never_without_the_summary(
    exchanges: list[tuple[int, list[int]]], budget: int, summed: bool
) -> None:
    summary = Text(text=SUMMARY_INTRODUCTION + "s" * 50) if summed else None
    messages: list[ModelMessage] = []
    for n, (size, steps) in enumerate(exchanges):
        blocks = (summary,) if summary is not None and n == 0 else ()
        messages.append(UserMessage(blocks=(*blocks, Text(text=f"{n}" + "u" * size))))
        for k, step in enumerate(steps):
            messages += _step(100 * n + k, step)
    kept = fit(tuple(messages), budget, summary=summary)
    assert isinstance(kept[0], UserMessage)
    total = sum(map(message_characters, messages))
    if total <= budget:
        assert list(kept) == messages
    if summary is not None:
        assert kept[0].blocks[0] == summary  # first, and once
        assert sum(summary in m.blocks for m in kept if isinstance(m, UserMessage)) == 1
    # the person's last words and the last step are always there
    assert any(
        isinstance(b, Text) and b.text.startswith(f"{len(exchanges) - 1}")
        for m in kept
        if isinstance(m, UserMessage)
        for b in m.blocks
    )
    assert kept[-1] == messages[-1] or len(kept) == 1
    # a tail of what there was, the front message aside; no call without its result
    assert list(kept[1:]) == messages[len(messages) - len(kept) + 1 :]
    for message, after in zip(kept, (*kept[1:], None), strict=True):
        if isinstance(message, AssistantMessage):
            assert isinstance(after, ToolMessage)
    size = sum(map(message_characters, kept))
    smallest = message_characters(kept[0]) + sum(map(message_characters, messages[-2:]))
    assert size <= max(budget, smallest)


def test_fitting_a_long_history_is_quick() -> None:
    messages = tuple(_user(10) for _ in range(50_000))
    assert len(fit(messages, 4_200)) == 100


def test_an_estimate_learns_from_what_was_counted_for_what_was_sent() -> None:
    estimate = Estimate()
    small = ModelRequest(system="s" * 8_000, messages=(_user(8_000),))
    assert estimate.tokens(small) == characters(small) // 4
    estimate.measured(characters(small) // 2)  # a script of two characters a token
    assert estimate.tokens(small) == characters(small) // 2
    assert estimate.characters(1_000) == 2_000
    estimate.measured(None)
    assert estimate.characters(1_000) == 2_000
    estimate.measured(10_000_000)  # nonsense is bounded
    assert estimate.characters(1_000) == 1_000


def test_an_estimate_of_a_grown_request_is_the_same_as_of_a_fresh_one() -> None:
    estimate = Estimate()
    messages = (_user(100), *_step(1, 200))
    for n in range(2, 6):
        request = ModelRequest(system="s", messages=messages)
        assert estimate.tokens(request) == Estimate().tokens(request)
        messages = (*messages, *_step(n, 50 * n), messages[0])


def test_everything_that_is_sent_counts() -> None:
    tools = (ToolSpec(name="look", description="d" * 100, schema={"type": "object"}),)
    bare = characters(ModelRequest(system="", messages=()))
    assert bare == 0
    assert characters(ModelRequest(system="x" * 10, messages=(), tools=tools)) > 120
    image = UserMessage(blocks=(Image(data="a" * 999_999, mime_type="image/png"),))
    assert 5_000 < message_characters(image) < 10_000
