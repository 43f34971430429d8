"""What waits behind a change of the history is begun when that is over, whoever has asked for the change and
gone meanwhile: the wake is the host's, never a request's (specs/execution.md 4, 29)."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from sessions_kit import Gate, Player, host_with, says

from callboard.host import Host
from callboard_rpc.errors import CallboardError
from harness.inside import CLIENT, idle, log_of, new_session, say

pytestmark = pytest.mark.anyio


class Request:
    """A request's task, as `callboard.rpc` runs it: once it is cancelled, so is every await in it."""

    def __init__(self, work: Callable[[], Awaitable[Any]]) -> None:
        self._scope = anyio.CancelScope()
        self._task = asyncio.ensure_future(self._run(work))

    async def _run(self, work: Callable[[], Awaitable[Any]]) -> None:
        with self._scope:
            await work()

    def cancel(self) -> None:
        self._scope.cancel()

    async def over(self) -> None:
        assert not await asyncio.wait_for(self._task, 20)
        assert self._scope.cancelled_caught


async def session_with(host: Host, folder: Path, *texts: str) -> str:
    session_id = await new_session(host, folder)
    for text in texts:
        await say(host, session_id, text)
        await idle(host, session_id)
    return session_id


async def answered_once(host: Host, session_id: str, seq: int) -> None:
    """The prompt at `seq` was taken in by one turn, which has answered it; and nobody has the session."""
    assert (await idle(host, session_id)).reason == "idle"
    records = await log_of(host, session_id)
    (ack,) = [r for r in records if r.type == "ack" and seq in r.value.admits]
    ends = {r.turn_id: r.value.outcome for r in records if r.type == "turn_finished"}
    assert ends[ack.turn_id] == "completed"
    assert "cancelled" not in ends.values()
    assert await host.log.query("SELECT 1 FROM owners WHERE fence IS NOT NULL") == []


async def test_execution_29_a_prompt_behind_a_compaction_that_is_cancelled_is_answered(
    tmp_path: Path,
) -> None:
    gate = Gate()
    player = Player([says("1"), says("2"), gate.before(says("a summary"))])
    async with host_with(tmp_path, player) as host:
        session_id = await session_with(host, tmp_path, "one", "two")
        request = Request(lambda: host.compacting.compact(session_id, by=CLIENT, instructions=None))
        await gate.came()
        posted = await say(host, session_id, "three")
        assert posted.outcome == "queued"
        request.cancel()
        await request.over()
        await answered_once(host, session_id, posted.record.seq)
        assert "summary" not in [r.type for r in await log_of(host, session_id)]


async def test_execution_29_a_prompt_behind_a_rewind_that_is_cancelled_as_it_commits_is_answered(
    tmp_path: Path,
) -> None:
    async with host_with(tmp_path, Player([])) as host:
        session_id = await session_with(host, tmp_path, "one", "two")
        turn = await host.reading.last_turn(session_id)
        assert turn is not None
        transact = host.log.transact
        posted: list[Any] = []

        async def meanwhile(function: Any) -> Any:
            if function.__qualname__.startswith("Reservations.write."):
                posted.append(await say(host, session_id, "three"))
                commit = host.log.submit(function)
                request.cancel()
                return await commit
            return await transact(function)

        host.log.transact = meanwhile  # type: ignore[method-assign]
        request = Request(lambda: host.rewinding.rewind(session_id, turn.turn_id, by=CLIENT))
        await request.over()
        assert posted[0].outcome == "queued"
        await answered_once(host, session_id, posted[0].record.seq)


async def test_execution_4_a_prompt_behind_a_change_that_is_cancelled_before_it_began_is_answered(
    tmp_path: Path,
) -> None:
    async with host_with(tmp_path, Player([])) as host:
        session_id = await session_with(host, tmp_path, "one", "two")
        submit = host.log.submit
        posted: list[Any] = []

        def slowly(function: Any) -> Any:
            """The session is taken, and who has asked for it does not hear of it any more."""
            if not function.__qualname__.startswith("Reservations.prepare."):
                return submit(function)
            request.cancel()

            async def taken() -> Any:
                grant = await submit(function)
                posted.append(await say(host, session_id, "three"))
                return grant

            return asyncio.ensure_future(taken())

        host.log.submit = slowly  # type: ignore[method-assign]
        request = Request(lambda: host.compacting.compact(session_id, by=CLIENT, instructions=None))
        await request.over()
        await host.reservations.settled()
        assert posted[0].outcome == "queued"
        await answered_once(host, session_id, posted[0].record.seq)


async def test_execution_4_a_wake_finishes_whatever_becomes_of_who_asked_for_it(
    tmp_path: Path,
) -> None:
    """A compaction is cancelled in the very moment in which what has waited behind it is begun."""
    gate = Gate()
    player = Player([says("1"), says("2"), gate.before(says("a summary"))])
    async with host_with(tmp_path, player) as host:
        session_id = await session_with(host, tmp_path, "one", "two")
        submit = host.log.submit
        attempts: list[str] = []

        def watched(function: Any) -> Any:
            if function.__qualname__.startswith("Reservations.reserve.") and gate.opened.is_set():
                attempts.append(function.__qualname__)
                compacting.cancel()
                waking.cancel()
            return submit(function)

        host.log.submit = watched  # type: ignore[method-assign]
        compacting = asyncio.ensure_future(
            host.compacting.compact(session_id, by=CLIENT, instructions=None)
        )
        await gate.came()
        posted = await say(host, session_id, "three")
        assert posted.outcome == "queued"
        waking = asyncio.ensure_future(host.dispatcher.wake(session_id))
        await asyncio.wait({waking})
        gate.opened.set()
        waking = asyncio.ensure_future(host.dispatcher.wake(session_id))
        await asyncio.wait({compacting, waking})
        await answered_once(host, session_id, posted.record.seq)
        assert attempts


async def test_execution_4_a_wake_whose_caller_is_cancelled_at_every_step_starts_its_turn(
    tmp_path: Path,
) -> None:
    async with host_with(tmp_path, Player([])) as host:
        for steps in range(12):
            session_id = await new_session(host, tmp_path)
            wake_here = host.dispatcher.wake_here

            async def nothing(_: str) -> None:
                return None

            host.dispatcher.wake_here = nothing  # type: ignore[method-assign, assignment]
            posted = await say(host, session_id, "hello")
            host.dispatcher.wake_here = wake_here  # type: ignore[method-assign]
            waking = asyncio.ensure_future(host.dispatcher.wake(session_id))
            await asyncio.sleep(0)
            for _ in range(steps):
                await asyncio.sleep(0)
            waking.cancel()
            await asyncio.wait({waking})
            await answered_once(host, session_id, posted.record.seq)


async def test_execution_29_what_a_full_store_keeps_from_being_given_back_is_given_back_later(
    tmp_path: Path,
) -> None:
    gate = Gate()
    player = Player([says("1"), says("2"), gate.before(says("a summary"))])
    async with host_with(tmp_path, player) as host:
        session_id = await session_with(host, tmp_path, "one", "two")
        transact = host.log.transact
        refused: list[str] = []

        async def full(function: Any) -> Any:
            name = function.__qualname__.partition(".")[0]
            if len(refused) < 3 and gate.opened.is_set() and name in ("summarise", "Reservations"):
                refused.append(name)
                raise CallboardError("storeFull", "the disk is full")
            return await transact(function)

        host.log.transact = full  # type: ignore[method-assign]
        compacting = asyncio.ensure_future(
            host.compacting.compact(session_id, by=CLIENT, instructions=None)
        )
        await gate.came()
        posted = await say(host, session_id, "three")
        gate.opened.set()
        with pytest.raises(CallboardError, match="the disk is full"):
            await compacting
        await answered_once(host, session_id, posted.record.seq)
        assert refused == ["summarise", "Reservations", "Reservations"]


async def test_a_prompt_is_written_down_before_its_request_hears_of_what_keeps_its_turn_from_starting(
    tmp_path: Path,
) -> None:
    """Whoever has asked with a key asks again after a failure: the prompt must be known by then."""
    async with host_with(tmp_path, Player([])) as host:
        session_id = await new_session(host, tmp_path)
        model_of = host.dispatcher._models_of  # pyright: ignore[reportPrivateUsage]

        async def broken(_: str) -> str:
            raise RuntimeError("the file of keys is broken")

        host.dispatcher._models_of = broken  # pyright: ignore[reportPrivateUsage]
        go_on = threading.Event()
        ahead = host.log.submit(lambda tx: go_on.wait(20))
        saying = asyncio.ensure_future(say(host, session_id, "hello"))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not saying.done()
        go_on.set()
        with pytest.raises(RuntimeError, match="broken"):
            await saying
        assert await ahead
        (said,) = [r for r in await log_of(host, session_id) if r.type == "message"]
        host.dispatcher._models_of = model_of  # pyright: ignore[reportPrivateUsage]
        await host.dispatcher.wake(session_id)
        await answered_once(host, session_id, said.seq)
