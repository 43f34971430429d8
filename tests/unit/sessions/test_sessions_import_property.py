"""For whatever a session has in it: export, import, export gives the same bytes, and the same session."""

import asyncio
from collections.abc import Generator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from attrs import evolve, frozen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from callboard.host import Host
from callboard.log.transaction import Transaction
from callboard_rpc.approvals import Approval, ApprovalOption, CommandSubject, Resolution
from callboard_rpc.common import Actor, EmbeddedResource, Failure, TextContent, Thinking, Usage
from callboard_rpc.events import (
    Ack,
    ApprovalDecision,
    ApprovalRequest,
    Author,
    Directive,
    Error,
    Message,
    ModeChanged,
    ModelChanged,
    ModelRetried,
    PlanEntry,
    PlanUpdated,
    SessionArchived,
    SessionCreated,
    SessionUnarchived,
    SessionUpdated,
    Summary,
    ToolCall,
    ToolResult,
    Trigger,
    TriggersDropped,
    TurnFinished,
    TurnStarted,
)
from harness.inside import host_in

PERSON = Actor(kind="client", id="tests", name="p")
AGENT = Actor(kind="agent", id="a")

short = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
large = st.builds(lambda word, n: (word or "x") * n, short, st.integers(4_000, 9_000))
text = short | large
counts = st.none() | st.integers(0, 2**40)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | short
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(short, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
json_objects = st.dictionaries(short.filter(lambda key: key != "_blobs"), json_values, max_size=3)
usages = st.builds(
    Usage,
    requests=st.integers(0, 50),
    input_tokens=counts,
    output_tokens=counts,
    cache_read_tokens=counts,
    context_tokens=counts,
    cost=st.none() | st.floats(0, 1e6),
    currency=st.none() | st.sampled_from(["USD", "EUR"]),
    partial=st.booleans(),
)
calls = st.tuples(
    json_objects, text, st.sampled_from(["ok", "error", "denied"]), st.booleans(), st.none() | text
)
turns = st.tuples(
    st.just("turn"),
    text,
    st.lists(calls, max_size=3),
    usages,
    st.sampled_from(["completed", "failed", "cancelled", "interrupted", "timed_out"]),
    st.booleans(),
)
others = st.one_of(
    st.tuples(st.just("summary"), text, usages, st.none() | short),
    st.tuples(st.just("mode"), st.sampled_from(["ask", "plan", "work"])),
    st.tuples(st.just("model"), st.none() | short),
    st.tuples(st.just("title"), st.none() | short, st.booleans(), json_objects),
    st.tuples(st.just("archive")),
    st.tuples(st.just("plan"), st.lists(short, max_size=3)),
    st.tuples(st.just("queued"), text, st.booleans()),
)


@frozen
class Pair:
    runner: asyncio.Runner
    source: Host
    target: Host


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Generator[Pair]:
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        hosts = [
            runner.run(stack.enter_async_context(host_in(tmp_path_factory.mktemp(name))))
            for name in ("source", "target")
        ]
        yield Pair(runner, *hosts)
        runner.run(stack.aclose())


def make(tx: Transaction, title: str | None, metadata: Any, actions: list[Any]) -> str:
    """A session in which all this was done."""
    session_id = tx.new_id("ses")
    tx.begin_session(session_id, session_id)

    def append(data: Any, actor: Actor = AGENT, turn_id: str | None = None) -> int:
        return tx.append(session_id, data, actor=actor, turn_id=turn_id, fence=7).seq

    append(
        SessionCreated(
            session_id=session_id, cwd="/nowhere", root_id=session_id, profile="default", mode="work",
            title=title, metadata=metadata, additional_directories=("/else",),
        ),
        PERSON,
    )  # fmt: skip
    for action in actions:
        match action:
            case ("turn", said, called, usage, outcome, drafted):
                _turn(tx, append, session_id, said, called, usage, outcome, drafted=drafted)
            case ("summary", words, usage, model):
                author = Author(kind="system", name="callboard")
                append(
                    Summary(text=words, covers_through=1, author=author, reason="command",
                            usage=usage, model=model)
                )  # fmt: skip
            case ("mode", mode):
                append(ModeChanged(mode=mode), PERSON)
            case ("model", model):
                append(ModelChanged(model=model), PERSON)
            case ("title", new, pinned, data):
                append(SessionUpdated(changes={"title": new, "pinned": pinned, "metadata": data}))
            case ("archive",):
                append(SessionArchived(), PERSON)
                append(SessionUnarchived(), PERSON)
            case ("plan", steps):
                append(PlanUpdated(entries=tuple(PlanEntry(content=each) for each in steps)))
            case ("queued", words, dropped):
                said = append(_message(tx, words), PERSON)
                if dropped:
                    append(TriggersDropped(seqs=(said,), reason="away"), PERSON)
            case _:
                raise AssertionError(action)
    return session_id


def _message(tx: Transaction, words: str) -> Message:
    return Message(
        message_id=tx.new_id("msg"),
        author=Author(kind="person", name="p"),
        content=(TextContent(text=words), EmbeddedResource(uri="file:///x", text=words)),
        client_message_id=tx.new_id("client"),
    )


def _turn(
    tx: Transaction,
    append: Any,
    session_id: str,
    said: str,
    called: list[Any],
    usage: Usage,
    outcome: Any,
    *,
    drafted: bool,
) -> None:
    turn_id = tx.new_id("trn")
    seq = append(_message(tx, said), PERSON)
    index = tx.value("SELECT count(*) FROM turns WHERE session_id = ?", session_id)
    trigger = Trigger(kind="prompt", seqs=(seq,))
    append(
        TurnStarted(turn_id=turn_id, index=index, trigger=trigger, model="m/1", mode="work"),
        turn_id=turn_id,
    )
    append(Ack(admits=(seq,)), turn_id=turn_id)
    append(ModelRetried(attempt=1, delay_ms=5, error=Failure(kind="modelError", message=said[:50])))
    for arguments, printed, status, asked, raw in called:
        call_id = tx.new_id("call")
        append(
            ToolCall(call_id=call_id, message_id=tx.new_id("msg"), name="look", arguments=arguments,
                     title=said[:10], raw_arguments=raw),
            turn_id=turn_id,
        )  # fmt: skip
        if asked:
            _ask(tx, append, session_id, turn_id, call_id)
        blob = tx.put_blob(session_id, printed.encode(), "text/plain") if asked else None
        append(
            ToolResult(call_id=call_id, name="look", status=status, text=printed, blob=blob),
            turn_id=turn_id,
        )
    author = Author(kind="agent", name="default", id=session_id)
    thought = Thinking(text=said, provider="text", opaque={"a": [said]})
    append(
        Message(
            message_id=tx.new_id("msg"), author=author, content=(thought, TextContent(text=said)),
            final=True, partial=drafted, usage=usage, model="m/1",
        ),
        turn_id=turn_id,
    )  # fmt: skip
    append(Directive(message_id=tx.new_id("msg"), author=author, text=said), turn_id=turn_id)
    if outcome == "failed":
        append(Error(error=Failure(kind="modelError", message="no")), turn_id=turn_id)
    append(
        TurnFinished(turn_id=turn_id, outcome=outcome, answered_through=seq, usage=usage,
                     final_text=said, iterations=1),
        turn_id=turn_id,
    )  # fmt: skip


def _ask(tx: Transaction, append: Any, session_id: str, turn_id: str, call_id: str) -> None:
    approval = Approval(
        approval_id=tx.new_id("apr"), session_id=session_id, root_id=session_id, turn_id=turn_id,
        call_id=call_id, kind="permission", title="t", tool="look", created_at=tx.now(),
        subject=CommandSubject(command="ls", cwd="/"),
        options=(ApprovalOption(option_id="o", name="n", kind="allow_once"),),
    )  # fmt: skip
    append(ApprovalRequest(approval=approval), turn_id=turn_id)
    resolution = Resolution(outcome="allowed", by=PERSON, via="method", at=tx.now(), option_id="o")
    append(
        ApprovalDecision(approval_id=approval.approval_id, call_id=call_id, resolution=resolution),
        PERSON,
        turn_id,
    )


async def _export(host: Host, session_id: str, limit: int) -> str:
    out, cursor = "", None
    while True:
        piece = await host.writing_out.piece(session_id, cursor=cursor, limit=limit)
        out += piece.text
        cursor = piece.cursor
        if cursor is None:
            return out


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)  # fmt: skip
@given(
    title=st.none() | short,
    metadata=st.none() | json_objects,
    actions=st.lists(turns | others, max_size=6),
    limit=st.integers(1, 30),
)
def test_export_import_export_is_equal_byte_for_byte(
    pair: Pair, title: str | None, metadata: Any, actions: list[Any], limit: int
) -> None:
    async def round_trip() -> None:
        source, target = pair.source, pair.target
        session_id = await source.log.transact(lambda tx: make(tx, title, metadata, actions))
        first = await _export(source, session_id, 100)
        imported = await target.importing.run(first)
        assert (imported.session_id, imported.added) == (session_id, 0)
        assert await _export(target, session_id, limit) == first
        ours, theirs = await source.log.session(session_id), await target.log.session(session_id)
        assert [r.data for r in theirs] == [r.data for r in ours]
        a, b = await source.reading.session(session_id), await target.reading.session(session_id)
        assert evolve(b, updated_at=a.updated_at) == a
        for mode in ("replay", "audit"):
            context = (await target.cache.transcript(session_id)).messages(mode)
            assert context == (await source.cache.transcript(session_id)).messages(mode)
        used = await target.usage.of(session_id)
        assert used == await source.usage.of(session_id)
        assert used.total.usage == (a.usage or Usage())
        copy = await target.importing.run(first, as_new=True)
        assert copy.events == imported.events
        assert target.dispatcher.running == 0

    pair.runner.run(round_trip())


def test_the_log_of_the_generated_sessions_can_be_projected_anew(pair: Pair) -> None:
    async def check() -> None:
        queries = ("sessions", "turns", "triggers", "approvals", "open_calls")
        before = [await pair.target.log.query(f"SELECT * FROM {each}") for each in queries]
        await pair.target.log.rebuild()
        after = [await pair.target.log.query(f"SELECT * FROM {each}") for each in queries]
        assert [sorted(map(str, rows)) for rows in after] == [
            sorted(map(str, rows)) for rows in before
        ]

    pair.runner.run(check())
