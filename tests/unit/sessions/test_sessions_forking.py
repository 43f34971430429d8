"""A fork: a session of its own with another one's context, whole or not at all."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from sessions_kit import Gate, Player, asks_for, host_with, says

from callboard.host import Host
from callboard.log import importing
from callboard.sessions.cache import SessionCache
from callboard.sessions.state import replay
from callboard.turns.reservation import SYSTEM
from callboard_rpc.common import SessionId, TextContent
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import Message, SessionCreated
from harness.inside import CLIENT, PERSON, idle, log_of, new_session, say

pytestmark = pytest.mark.anyio

ALLOW = '[approvals.policy]\nexecute = "allow"\nwrite = "allow"\n'


async def turn(host: Host, session_id: str, text: str) -> str:
    await say(host, session_id, text)
    waited = await idle(host, session_id)
    assert waited.reason == "idle"
    return waited.turn.turn_id


async def fork(host: Host, session_id: str, turn_id: str | None = None, **more: Any) -> Any:
    return await host.forking.fork(
        session_id, at_turn_id=turn_id, title=more.pop("title", None), by=CLIENT
    )


async def refused(host: Host, session_id: str, turn_id: str | None = None) -> CallboardError:
    with pytest.raises(CallboardError) as error:
        await fork(host, session_id, turn_id)
    return error.value


async def context(host: Host, session_id: str) -> Any:
    """What a model is told, read from the log anew."""
    return (await SessionCache(host.log).transcript(session_id)).messages("replay")


async def sessions(host: Host) -> list[str]:
    page, _ = await host.reading.sessions()
    return [session.session_id for session in page]


async def test_a_fork_has_the_context_the_settings_and_a_log_of_its_own(tmp_path: Path) -> None:
    look = ("look", {"size": 20})
    player = Player([asks_for(look, look, text="Let me see."), says("1"), says("2"), says("3")])
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path, title="Work", metadata={"a": 1})
        first = await turn(host, session_id, "one")
        there = await context(host, session_id)
        await turn(host, session_id, "two")
        made = await fork(host, session_id, first)
        records = await log_of(host, made.session_id)
        source = await log_of(host, session_id)
        assert await context(host, made.session_id) == there
        assert [r.seq for r in records] == list(range(1, len(records) + 1))
        assert {r.event_id for r in records}.isdisjoint(r.event_id for r in source)
        assert (made.title, made.metadata, made.mode) == ("Work (fork)", {"a": 1}, "work")
        end = next(r for r in source if r.type == "turn_finished")
        origin = made.forked_from
        assert (origin.session_id, origin.turn_id, origin.seq) == (session_id, first, end.seq)
        assert records[0].value.forked_from == records[-1].value.forked_from == origin
        assert records[-1].type == "session_forked"
        assert records[-1].value.inherited == len(records) - 2
        assert replay(r.value for r in records).title == "Work (fork)"
        await turn(host, made.session_id, "other")
        assert player.requests[-1].messages[: len(there)] == there
        assert (await host.reading.turns(made.session_id))[0][0].index == 0
        # and the origin knows nothing of it
        assert await log_of(host, session_id) != []
        assert len(await log_of(host, session_id)) == len(source)


async def test_a_fork_outlives_its_origin_with_its_large_values(tmp_path: Path) -> None:
    long = "x" * 200_000
    player = Player([asks_for(("look", {"size": 300_000})), says("1")])
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        await turn(host, session_id, long)
        there = await context(host, session_id)
        made = await fork(host, session_id)
        blobs = (await host.log.query("SELECT count(*) FROM blobs"))[0][0]
        await host.sessions.delete(session_id, by=CLIENT)
        assert await context(host, made.session_id) == there
        assert (await host.log.query("SELECT count(*) FROM blobs"))[0][0] <= blobs
        await host.sessions.delete(made.session_id, by=CLIENT)
        assert (await host.log.query("SELECT count(*) FROM blobs"))[0][0] == 0


async def test_no_approval_and_no_rule_comes_along(tmp_path: Path) -> None:
    run = ("run_command", {"command": "echo hello"})
    player = Player([asks_for(run), says("1"), asks_for(run), says("2")])
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        await say(host, session_id, "one")
        waited = await host.waiting.wait(session_id, until="attention", turn_id=None, timeout_s=30)
        (approval,) = waited.approvals
        await host.approvals.answer(approval.approval_id, "allow_session", by=CLIENT, via="api")
        await idle(host, session_id)
        made = await fork(host, session_id)
        records = await log_of(host, made.session_id)
        assert not [r for r in records if r.type.startswith(("approval", "turn_"))]
        await say(host, made.session_id, "two")
        waited = await host.waiting.wait(
            made.session_id, until="attention", turn_id=None, timeout_s=30
        )
        assert [each.state for each in waited.approvals] == ["pending"]  # it is asked again


async def test_of_a_session_that_runs_what_is_finished_is_taken(tmp_path: Path) -> None:
    gate = Gate()
    player = Player([says("1"), gate.before(says("2"))])
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        first = await turn(host, session_id, "one")
        there = await context(host, session_id)
        await say(host, session_id, "two")
        await gate.came()
        await say(host, session_id, "three")  # it waits, and is nobody's context
        live = host.dispatcher.live(session_id)
        assert live is not None
        error = await refused(host, session_id, live.turn_id)
        assert (error.kind, error.data) == ("turnInProgress", {"turnId": live.turn_id})
        for made in (await fork(host, session_id), await fork(host, session_id, first)):
            assert await context(host, made.session_id) == there
            assert (made.forked_from.turn_id, made.queue_length) == (first, 0)
            assert (await idle(host, made.session_id)).reason == "idle"
        gate.opened.set()
        await idle(host, session_id)


async def test_a_summary_comes_along_with_what_it_stands_for(tmp_path: Path) -> None:
    player = Player([says("1"), says("2"), says("A summary."), says("3"), says("A second.")])
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        for text in ("one", "two"):
            await turn(host, session_id, text)
        await host.compacting.compact(session_id, by=CLIENT, instructions=None)
        summarised = await context(host, session_id)
        made = await fork(host, session_id)
        assert await context(host, made.session_id) == summarised
        await turn(host, session_id, "three")
        third = await fork(host, session_id)
        assert await context(host, third.session_id) == await context(host, session_id)
        records = await log_of(host, third.session_id)
        (summary,) = [r for r in records if r.type == "summary"]
        assert summary.value.covers_through < summary.seq
        # and one that reaches to the very end, made while its session goes on
        await host.compacting.compact(third.session_id, by=CLIENT, instructions=None)
        fourth = await fork(host, third.session_id)
        assert await context(host, fourth.session_id) == await context(host, third.session_id)


async def test_what_was_rewound_stays_behind_but_can_be_forked_itself(tmp_path: Path) -> None:
    player = Player([says(n) for n in "1234"])
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        _, second = [await turn(host, session_id, text) for text in ("one", "two")]
        both = await context(host, session_id)
        await host.rewinding.rewind(session_id, second, by=CLIENT)
        await turn(host, session_id, "other")
        made = await fork(host, session_id)
        assert await context(host, made.session_id) == await context(host, session_id)
        back = await fork(host, session_id, second)
        assert await context(host, back.session_id) == both


async def test_a_fork_of_a_fork_and_a_rewind_into_what_was_inherited(tmp_path: Path) -> None:
    player = Player([says(n) for n in "123456"])
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        first = await turn(host, session_id, "one")
        one = await context(host, session_id)
        second = await turn(host, session_id, "two")
        made = await fork(host, session_id)
        again = await fork(host, made.session_id)
        assert again.forked_from.session_id == made.session_id
        assert again.forked_from.turn_id == second
        assert await context(host, again.session_id) == await context(host, session_id)
        inherited = await fork(host, made.session_id, first)
        assert await context(host, inherited.session_id) == one
        await turn(host, made.session_id, "three")
        event = (await host.rewinding.rewind(made.session_id, second, by=CLIENT)).value
        assert event.turns == 2
        assert await context(host, made.session_id) == one
        assert (await host.reading.turns(made.session_id))[0] == []
        assert await context(host, session_id) != one  # nothing of this reaches the origin


async def test_refused_without_a_trace(tmp_path: Path) -> None:
    async with host_with(tmp_path, Player([])) as host:
        session_id, other = [await new_session(host, tmp_path) for _ in range(2)]
        assert (await refused(host, session_id)).kind == "turnNotFound"
        foreign = await turn(host, other, "one")
        await turn(host, session_id, "one")
        for turn_id in ("trn_nothing", "", foreign):
            assert (await refused(host, session_id, turn_id)).kind == "turnNotFound"
        assert (await refused(host, "ses_nothing")).kind == "sessionNotFound"
        child = "ses_child"

        def born(tx: Any) -> None:
            tx.begin_session(child, session_id)
            tx.append(
                child,
                SessionCreated(
                    session_id=SessionId(child),
                    root_id=SessionId(session_id),
                    cwd=str(tmp_path),
                    profile="default",
                    mode="ask",
                    parent_id=SessionId(session_id),
                    depth=1,
                ),
                actor=SYSTEM,
            )

        await host.log.transact(born)
        assert (await refused(host, child)).kind == "rootOnly"
        assert set(await sessions(host)) == {session_id, other}
        await host.sessions.close(session_id, by=CLIENT)
        made = await fork(host, session_id)  # what is closed can go on as another
        assert not made.closed
        await host.sessions.delete(session_id, by=CLIENT)
        assert (await refused(host, session_id)).kind == "sessionNotFound"
        assert await host.log.query("SELECT 1 FROM imports") == []


async def long_session(host: Host, folder: Path, events: int) -> str:
    """A session of one turn and many events, written as fast as they can be."""
    session_id = await new_session(host, folder)
    turn_id = await turn(host, session_id, "one")
    said = Message(message_id="msg_1", author=PERSON, content=(TextContent(text="word " * 20),))  # type: ignore[arg-type]
    agent = Message(
        message_id="msg_2",  # type: ignore[arg-type]
        author=type(PERSON)(kind="agent", name="default"),
        content=said.content,
    )
    for start in range(0, events, 1_000):
        count = min(1_000, events - start)

        def write(tx: Any, count: int = count) -> None:
            for _ in range(count):
                tx.append(session_id, agent, actor=SYSTEM, turn_id=turn_id)

        await host.log.transact(write)
    await turn(host, session_id, "two")
    return session_id


async def test_a_long_history_is_taken_over_in_pieces_and_found_by_nobody_before_the_last(
    tmp_path: Path,
) -> None:
    async with host_with(tmp_path, Player([])) as host:
        session_id = await long_session(host, tmp_path, 3_000)
        commits: list[list[Any]] = []
        seen: list[bool] = []

        def heard(records: list[Any]) -> None:
            made = [r for r in records if r.session_id != session_id]
            if made:
                commits.append(made)
                rows = host.log.glance(
                    "SELECT 1 FROM heads WHERE session_id = ?", made[0].session_id
                )
                seen.append(bool(rows))

        host.log.listen(heard)
        made = await fork(host, session_id)
        assert len(commits) > 10
        assert max(map(len, commits)) <= importing.PIECE_EVENTS + 2
        assert commits[0][0].type == "session_created"
        assert commits[-1][-1].type == "session_forked"
        assert seen == [False] * (len(commits) - 1) + [True]
        assert await context(host, made.session_id) == await context(host, session_id)


@pytest.mark.soak
@pytest.mark.timeout(600)
async def test_nobody_waits_for_more_than_two_pieces_of_a_fork_of_a_hundred_thousand_events(
    tmp_path: Path,
) -> None:
    async with host_with(tmp_path, Player([])) as host:
        session_id = await long_session(host, tmp_path, 100_000)
        other = await new_session(host, tmp_path)
        pieces = 0

        def heard(records: list[Any]) -> None:
            nonlocal pieces
            pieces += any(record.session_id not in (session_id, other) for record in records)

        host.log.listen(heard)
        overtaken: list[int] = []
        longest = 0.0
        task = asyncio.ensure_future(fork(host, session_id))
        while not task.done():
            before, begun = pieces, time.monotonic()
            await host.sessions.set_archived(other, archived=len(overtaken) % 2 == 0, by=CLIENT)
            overtaken.append(pieces - before)
            longest = max(longest, time.monotonic() - begun)
        made = await task
        assert made.head_seq > 100_000
        assert len(overtaken) > 100
        # the one that is being written, and one that shares its commit or came before: then it is their turn
        assert max(overtaken) <= 2
        print(
            f"{pieces} pieces, {len(overtaken)} commits of others, the longest took {longest:.3f} s"
        )


@pytest.mark.parametrize("how", ["cancelled", "origin deleted"])
async def test_a_fork_that_is_not_completed_is_taken_back_whole(tmp_path: Path, how: str) -> None:
    async with host_with(tmp_path, Player([])) as host:
        session_id = await long_session(host, tmp_path, 2_000)
        begun = asyncio.Event()
        made: set[str] = set()

        def heard(records: list[Any]) -> None:
            made.update(r.session_id for r in records if r.session_id != session_id)
            if made:
                begun.set()

        stop = host.log.listen(heard)
        task = asyncio.ensure_future(fork(host, session_id))
        await begun.wait()
        stop()
        if how == "cancelled":
            task.cancel()
        else:
            await host.sessions.delete(session_id, by=CLIENT)
        (end,) = await asyncio.gather(task, return_exceptions=True)
        if how == "cancelled":
            assert isinstance(end, asyncio.CancelledError)
        else:
            assert isinstance(end, CallboardError)
            assert end.kind == "sessionNotFound"
        (half,) = made
        while True:
            position = host.log.head
            left = await host.log.query(
                "SELECT 1 FROM events WHERE session_id = ? AND type <> 'session_deleted'", half
            )
            if not left and not await host.log.query("SELECT 1 FROM imports"):
                break
            await asyncio.wait_for(host.log.moved(position), 20)
        for table in ("heads", "sessions", "triggers", "open_calls", "blob_refs"):
            assert (
                await host.log.query(f"SELECT 1 FROM {table} WHERE session_id = ?", half) == []
            ), table
        assert half not in await sessions(host)


async def test_two_forks_of_one_session_at_once_are_both_whole(tmp_path: Path) -> None:
    look = ("look", {"size": 20})
    player = Player([asks_for(*[look] * 5), says("1")])
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        await turn(host, session_id, "one")
        there = await context(host, session_id)
        made = await asyncio.gather(*(fork(host, session_id) for _ in range(5)))
        assert len({each.session_id for each in made}) == 5
        for each in made:
            assert await context(host, each.session_id) == there


async def exported(host: Host, session_id: str) -> str:
    text = ""
    cursor: str | None = None
    while True:
        piece = await host.writing_out.piece(session_id, cursor=cursor, limit=500)
        text += piece.text
        cursor = piece.cursor
        if cursor is None:
            return text


@pytest.mark.parametrize("as_new", [True, False])
async def test_forks_and_rewinds_come_through_an_export_and_an_import(
    tmp_path: Path, as_new: bool
) -> None:
    look = ("look", {"size": 20})
    player = Player([asks_for(look), *(says(n) for n in "12345")])
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        _, second = [await turn(host, session_id, text) for text in ("one", "two")]
        await host.rewinding.rewind(session_id, second, by=CLIENT)
        await turn(host, session_id, "three")
        forked = (await fork(host, session_id)).session_id
        await turn(host, forked, "four")
        for each in (session_id, forked):
            there = await context(host, each)
            turns, _ = await host.reading.turns(each)
            origin = (await host.reading.session(each)).forked_from
            file = await exported(host, each)
            if not as_new:
                await host.sessions.delete(each, by=CLIENT)
            made = (await host.importing.run(file, as_new=as_new)).session_id
            again, _ = await host.reading.turns(made)
            assert [(t.index, t.final_text) for t in again] == [
                (t.index, t.final_text) for t in turns
            ]
            assert (await host.reading.session(made)).forked_from == origin
            if as_new:  # its calls have other ids
                assert len(await context(host, made)) == len(there)
            else:
                assert await context(host, made) == there


async def test_read_models_are_rebuilt_from_the_log_as_they_were(tmp_path: Path) -> None:
    gate = Gate()
    player = Player(
        [asks_for(("look", {"size": 20})), says("1"), says("2"), gate.before(says("3"))]
    )
    async with host_with(tmp_path, player) as host:
        session_id = await new_session(host, tmp_path)
        _, second = [await turn(host, session_id, text) for text in ("one", "two")]
        await host.rewinding.rewind(session_id, second, by=CLIENT)
        await asyncio.gather(*(fork(host, session_id) for _ in range(3)))
        await say(host, session_id, "three")
        await gate.came()
        waiting = (await say(host, session_id, "four")).record.seq
        gone = (await say(host, session_id, "five")).record.seq
        await host.queue.update(session_id, waiting, (TextContent(text="4"),), by=CLIENT)
        await host.queue.remove(session_id, gone, by=CLIENT)

        async def tables() -> dict[str, Any]:
            return {
                name: await host.log.query(f"SELECT * FROM {name} ORDER BY 1, 2")
                for name in ("sessions", "turns", "triggers", "open_calls")
            }

        before = await tables()
        await host.log.rebuild()
        assert await tables() == before
        gate.opened.set()
        await idle(host, session_id)
