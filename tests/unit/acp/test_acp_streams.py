"""What was streamed of a message and what its commit brings: together all of it, once."""

from hypothesis import given
from hypothesis import strategies as st

from callboard.acp.agent import streams as module
from callboard.acp.agent.streams import Streams
from callboard.turns.deltas import Delta
from callboard_rpc.common import MessageId, TextContent, Thinking
from callboard_rpc.events import Author, Message

AUTHOR = Author(kind="agent", name="default")


def delta(index: int, text: str, kind: str = "answer", message: str = "msg_1") -> Delta:
    return Delta("ses_1", "trn_1", message, kind, index, text)  # type: ignore[arg-type]


def message(*blocks: TextContent | Thinking) -> Message:
    return Message(message_id=MessageId("msg_1"), author=AUTHOR, content=blocks)


def text(content: str) -> TextContent:
    return TextContent(text=content)


def thought(content: str) -> Thinking:
    return Thinking(text=content, provider="text")


@given(
    parts=st.lists(
        st.tuples(st.sampled_from(["answer", "thought"]), st.text(min_size=1, max_size=5)),
        max_size=12,
    ),
    lost_from=st.integers(min_value=0, max_value=12),
    late_from=st.integers(min_value=0, max_value=12),
)
def test_streamed_and_committed_are_the_whole_message(
    parts: list[tuple[str, str]], lost_from: int, late_from: int
) -> None:
    """Deltas may be missed from the beginning (a client that comes later) or from some point on (another
    process has taken over); what had no time to be sent comes with the commit as well."""
    streams = Streams()
    counted: dict[str, int] = {}
    sent: dict[str, str] = {"answer": "", "thought": ""}
    for number, (kind, piece) in enumerate(parts):
        index = counted.get(kind, 0)
        counted[kind] = index + 1
        if number >= late_from and number < lost_from:
            streams.take(delta(index, piece, kind), mark=5)
            for due in streams.due(5):
                sent[due.kind] += due.text
    blocks = [text(piece) if kind == "answer" else thought(piece) for kind, piece in parts]
    for kind, rest in streams.rest(message(*blocks)):
        sent[kind] += rest
    for kind, told in sent.items():
        assert told == "".join(piece for each, piece in parts if each == kind)


def test_what_streams_goes_behind_all_that_was_committed_before_it() -> None:
    streams = Streams()
    streams.take(delta(0, "a"), mark=3)
    streams.take(delta(1, "b"), mark=3)
    streams.take(delta(2, "c"), mark=7)
    assert list(streams.due(2)) == []
    assert [piece.text for piece in streams.due(6)] == ["ab"]
    assert [piece.text for piece in streams.due(7)] == ["c"]
    assert not streams.waits


def test_what_waits_is_bounded_and_its_rest_comes_with_the_commit() -> None:
    streams = Streams()
    piece = "x" * 1_000
    for index in range(400):
        streams.take(delta(index, piece), mark=1)
    (waiting,) = streams.due(1)
    assert len(waiting.text) <= module._MOST_WAITING < 400_000
    streams.take(delta(400, "more"), mark=1)
    assert not streams.waits, "with a hole nothing of it streams any more"
    ((kind, rest),) = streams.rest(message(text(piece * 400 + "more")))
    assert kind == "answer" and len(waiting.text) + len(rest) == 400_004


def test_a_message_that_had_begun_goes_on_where_its_draft_ends() -> None:
    streams = Streams()
    streams.take(delta(3, "in the draft"), mark=1)
    streams.began("trn_1", "msg_1", "drafted ", "", {"answer": 4})
    streams.take(delta(4, "live"), mark=1)
    assert [piece.text for piece in streams.due(1)] == ["live"]
    assert streams.rest(message(text("drafted live and more"))) == [("answer", " and more")]


def test_of_output_the_end_is_shown_and_nothing_after_the_result() -> None:
    streams = Streams()
    for index in range(100):
        streams.take(delta(index, "y" * 1_000, "tool_output", "call_1"), mark=1)
    (printed,) = streams.outputs()
    call_id, tail = printed.call_id, printed.tail
    assert call_id == "call_1" and len(tail) == module._OUTPUT_CHARS
    assert streams.outputs() == [], "what was shown is not shown again"
    streams.take(delta(101, "a hole", "tool_output", "call_1"), mark=1)
    assert not streams.has_output
    streams.call_over("call_1")
    streams.take(delta(0, "z", "tool_output", "call_2"), mark=1)
    streams.turn_over("trn_1")
    assert not streams.has_output


def test_what_is_heard_before_it_is_known_what_was_said_goes_on_behind_that() -> None:
    streams = Streams()
    streams.hold()
    for index, piece in enumerate(("in the draft, ", "behind it, ", "and more"), 3):
        streams.take(delta(index, piece), mark=1)
    streams.take(delta(0, "printed", "tool_output", "call_1"), mark=1)
    assert not streams.waits and not streams.has_output
    streams.began("trn_1", "msg_1", "drafted, in the draft, ", "", {"answer": 4})
    streams.take(delta(6, "."), mark=1)
    assert [piece.text for piece in streams.due(1)] == ["behind it, and more."]
    assert [(each.call_id, each.tail) for each in streams.outputs()] == [("call_1", "printed")]


def test_what_is_held_is_bounded_and_its_rest_comes_with_the_commit() -> None:
    streams = Streams()
    streams.hold()
    for index in range(400):
        streams.take(delta(index, "x" * 1_000), mark=1)
    streams.take(delta(400, "y"), mark=1)
    streams.began_nothing()
    (waiting,) = streams.due(1)
    assert len(waiting.text) <= module._MOST_WAITING
    ((_, rest),) = streams.rest(message(text("x" * 400_000 + "y")))
    assert len(waiting.text) + len(rest) == 400_001
