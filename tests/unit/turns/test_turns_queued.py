"""specs/execution.md 10 and 47: what must never run, and does not."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from turns_kit import Pause, calls, of, owned, pauses, shape, speaks, stage, texts, the_end
from turns_parent_kit import Parent, nothing_left

from callboard.log.faults import StaleFence
from callboard.sessions.dispatch import Begun
from callboard.sessions.presence import Presence
from callboard.turns.live import LiveTurn
from callboard.turns.reservation import Grant, Reserved, assert_fence
from callboard_rpc.common import Failure
from callboard_rpc.events import Error
from harness.inside import CLIENT, host_in, log_of, new_session

pytestmark = pytest.mark.anyio


# --- a run for something else ---------------------------------------------------------------------


async def test_execution_10_a_run_for_another_session_executes_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        mine, other = await on.session(), await on.session()
        runner = on.host.dispatcher._runner
        reserved = await on.host.reservations.reserve(mine, lambda tx, grant: grant)
        async with reserved.reservation as reservation:
            live = LiveTurn(reservation.grant)
            with pytest.raises(ValueError, match=other):
                await runner(
                    live, Begun(session_id=other, profile="default", admitted=(), limits=None)
                )
        assert on.puppet.requests == []
        assert await owned(on.host) == 0
        for session_id in (mine, other):
            assert shape(await on.log(session_id)) == []


async def test_execution_10_a_run_that_was_begun_for_another_session_fails_and_is_released(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as on:
        mine, other = await on.session(), await on.session()
        runner = on.host.dispatcher._runner

        async def mistaken(live: LiveTurn, begun: Begun) -> None:
            await runner(live, Begun(session_id=other, profile="default", admitted=(), limits=None))

        on.host.dispatcher._runner = mistaken
        await on.say(mine, "go")
        await on.idle(mine)
        end = the_end(await on.log(mine))
        assert (end.outcome, end.error.kind) == ("failed", "internal")
        assert (on.puppet.requests, await owned(on.host)) == ([], 0)
        assert shape(await on.log(other)) == []


async def test_execution_10_a_reservation_of_another_store_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    async with host_in(tmp_path / "a") as here, host_in(tmp_path / "b") as there:
        session_id = await new_session(here, tmp_path)
        reserved = await here.reservations.reserve(session_id, lambda tx, grant: grant)
        grant: Grant = reserved.reservation.grant
        with pytest.raises(StaleFence):
            await there.log.transact(lambda tx: assert_fence(tx, grant))
        await reserved.reservation.abandon()
        assert (await owned(here), await owned(there)) == (0, 0)


# --- cancelled before it began --------------------------------------------------------------------


async def test_execution_47_what_is_cancelled_in_the_queue_never_runs_and_is_told_of_once(
    tmp_path: Path,
) -> None:
    pause = Pause()
    parent = Parent()
    async with stage(tmp_path, pauses(pause, "first"), features=[parent.feature]) as on:
        session_id = await on.session()
        running = await on.say(session_id, "go")
        await pause.came()
        waiting = (await on.say(session_id, "never")).record.seq
        assert (await on.cancel(session_id, scope="queue")).dropped == (waiting,)
        assert (await on.cancel(session_id, scope="queue")).dropped == ()
        pause.open.set()
        await on.idle(session_id)
        # a launch that comes too late: nothing waits any more, so it is nothing
        assert await on.host.dispatcher.wake(session_id) is None
        records = await on.log(session_id)
        assert [d.seqs for d in of(records, "triggers_dropped")] == [(waiting,)]
        assert (the_end(records).outcome, texts(records)) == ("completed", ["first"])
        assert len(on.puppet.requests) == 1
        assert "never" not in on.puppet.heard()
        await nothing_left(on.host)
        assert [(turn.turn_id, turn.state, turn.final_text) for turn in parent.told] == [
            (running.turn_id, "completed", "first")
        ]


async def test_execution_47_a_turn_that_is_cancelled_before_its_first_step_asks_nobody_and_is_told_of_once(
    tmp_path: Path,
) -> None:
    parent = Parent()
    async with stage(tmp_path, features=[parent.feature]) as on:
        session_id = await on.session()
        runner = on.host.dispatcher._runner

        async def late(live: LiveTurn, begun: Begun) -> None:
            await on.cancel(session_id)
            await runner(live, begun)

        on.host.dispatcher._runner = late
        await on.say(session_id, "go")
        await on.idle(session_id)
        records = await on.log(session_id)
        assert the_end(records).outcome == "cancelled"
        (started,) = of(records, "turn_started")
        assert (on.puppet.requests, texts(records)) == ([], [])
        await nothing_left(on.host)
        assert [(turn.turn_id, turn.state, turn.final_text) for turn in parent.told] == [
            (started.turn_id, "cancelled", None)
        ]


async def test_execution_47_a_launch_under_an_old_fence_is_nothing(tmp_path: Path) -> None:
    """The session was taken from this host between the start and the first step."""
    async with stage(tmp_path, calls(("act", {})), speaks("mine")) as on:
        session_id = await on.session()
        runner = on.host.dispatcher._runner
        failure = Error(error=Failure(kind="internal", message="late"))

        async def late(live: LiveTurn, begun: Begun) -> None:
            take = "UPDATE owners SET fence = next_fence, next_fence = next_fence + 1"
            await on.host.log.transact(lambda tx: tx.execute(take))
            before = shape(await on.log(session_id))
            await runner(live, begun)
            assert shape(await on.log(session_id)) == before
            with pytest.raises(StaleFence):
                await on.host.log.transact(
                    lambda tx: (
                        assert_fence(tx, live.grant),
                        tx.append(session_id, failure, actor=CLIENT),
                    )
                )

        on.host.dispatcher._runner = late
        await on.say(session_id, "go")
        async with asyncio.timeout(20):
            while on.host.dispatcher.live(session_id) is not None:
                await asyncio.sleep(0)
        assert on.puppet.requests == []
        assert of(await log_of(on.host, session_id), "turn_finished") == []
        assert await owned(on.host) == 1  # the other owner was not touched


async def test_execution_47_a_turn_whose_end_is_heard_of_before_it_is_launched_stays_as_it_ended(
    tmp_path: Path,
) -> None:
    """This process stood still in the very moment, was taken for gone, and another has ended its turn."""
    async with stage(tmp_path) as on, stage(tmp_path) as other:
        session_id = await on.session()
        reserve = on.host.reservations.reserve

        async def slowly(*given: Any, **more: Any) -> Any:
            outcome = await reserve(*given, **more)
            if isinstance(outcome, Reserved):
                look = Presence(other.host.log, other.host.host_id, is_alive=lambda *_: "gone")
                assert await look.look()
                on.host.log.refresh()  # the first that this process hears when it goes on
            return outcome

        on.host.reservations.reserve = slowly  # type: ignore[method-assign]
        posted = await on.say(session_id, "go")
        records = await on.log(session_id)
        end = the_end(records)
        assert (posted.outcome, posted.turn_id, end.outcome) == (
            "started",
            end.turn_id,
            "interrupted",
        )
        assert on.puppet.requests == []
        assert await owned(on.host) == 0
        on.host.reservations.reserve = reserve  # type: ignore[method-assign]
        await on.say(session_id, "again")
        await on.idle(session_id)
        ends = of(await on.log(session_id), "turn_finished")
        assert [each.outcome for each in ends] == ["interrupted", "completed"]
