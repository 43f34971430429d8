"""specs/execution.md 7, 45: a turn that makes no progress, or takes too long, is stopped."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from turns_kit import (
    PATIENCE_S,
    Anything,
    Pause,
    Stage,
    calls,
    of,
    owned,
    pauses,
    results,
    speaks,
    stage,
    texts,
    the_end,
    tool,
)

from callboard.models.base import TextDelta
from callboard.tools.base import ToolContext, ToolOutcome
from callboard.turns.limits import TurnLimits, watch
from callboard.turns.live import Cause, LiveTurn
from callboard.turns.reservation import SYSTEM, Grant
from callboard_rpc.common import Limits
from harness.inside import CLIENT

pytestmark = pytest.mark.anyio


async def _is_usable(on: Stage, session_id: str) -> None:
    """The next prompt is answered as if nothing had been."""
    on.puppet.scenes = [speaks("and on we go")]
    await on.say(session_id, "next")
    await on.idle(session_id)
    assert texts(await on.log(session_id))[-1] == "and on we go"
    assert await owned(on.host) == 0


async def test_execution_45_a_model_that_hangs_is_stopped_by_the_idle_limit(
    tmp_path: Path,
) -> None:
    pause = Pause()
    idle = {"CALLBOARD_LIMITS_TURN_IDLE_S": "1"}
    async with stage(tmp_path, pauses(pause, before=["half"]), environ=idle) as on:
        session_id, records = await on.turn()
        end = the_end(records)
        assert (end.outcome, end.error.kind) == ("timed_out", "turnTimedOut")
        assert "nothing happened for 1 s" in end.error.message
        assert texts(records) == ["half"]
        await _is_usable(on, session_id)


async def test_execution_45_a_prompts_own_time_limit_ends_the_turn_with_its_reason(
    tmp_path: Path,
) -> None:
    pause = Pause()

    async def slow(context: ToolContext, __: Anything) -> ToolOutcome:
        await pause.here()
        return ToolOutcome(text="never")

    async with stage(tmp_path, calls(("slow", {})), tools=[tool("slow", slow)]) as on:
        _, records = await on.turn(limits=Limits(timeout_ms=150))
        end = the_end(records)
        assert (end.outcome, results(records)) == ("timed_out", [("slow", "timed_out")])
        assert "0.15 s" in end.error.message


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def _live(clock: Clock) -> LiveTurn:
    return LiveTurn(Grant(session_id="s", turn_id="t", fence=1), clock)


async def _watched(live: LiveTurn, **limits: Any) -> str:
    await watch(live, TurnLimits(**limits))
    assert live.cause is not None
    assert live.cause.outcome == "timed_out"
    return live.cause.reason


async def test_execution_45_progress_resets_the_idle_limit_and_not_the_total(
    tmp_path: Path,
) -> None:
    clock = Clock()
    live = _live(clock)
    clock.now += 50
    live.touch()
    assert (live.idle_s, live.worked_s) == (0, 50)
    clock.now += 30
    assert "nothing happened" in await _watched(live, idle_s=30, total_s=100)
    live = _live(clock)
    clock.now += 100
    live.touch()
    assert "longer than 100 s" in await _watched(live, idle_s=30, total_s=100)


async def test_execution_45_the_time_in_which_a_person_is_asked_is_not_the_turns(
    tmp_path: Path,
) -> None:
    clock = Clock()
    live = _live(clock)
    with live.asking(), live.asking():
        clock.now += 10_000
        assert (live.idle_s, live.worked_s, live.elapsed_s) == (0, 0, 10_000)
        watching = asyncio.ensure_future(watch(live, TurnLimits(idle_s=5, total_s=50)))
        await asyncio.sleep(0)
        assert not watching.done()
        watching.cancel()
        assert "it was given" in await _watched(_after(clock, 61), deadline_s=60)
    assert (live.idle_s, live.worked_s) == (0, 0)


def _after(clock: Clock, seconds: float) -> LiveTurn:
    live = _live(clock)
    with live.asking():
        clock.now += seconds
    return live


@pytest.mark.parametrize("first", ["cancelled", "timed_out"])
async def test_execution_45_a_time_limit_beats_a_cancel_that_races_with_it(first: str) -> None:
    live = _live(Clock())
    cancel = Cause(outcome="cancelled", by=CLIENT, reason="enough")
    limit = Cause(outcome="timed_out", by=SYSTEM, reason="too long")
    for cause in (cancel, limit) if first == "cancelled" else (limit, cancel):
        live.stop(cause)
    assert live.cause == limit


@pytest.mark.parametrize("first", ["cancelled", "timed_out"])
async def test_execution_45_the_total_limit_and_a_cancel_of_one_turn_end_it_as_timed_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    """Both come before the turn has ended, in either order: its model is slow to stop."""
    clock, began, stopping = Clock(), asyncio.Event(), Pause()
    causes: asyncio.Queue[str] = asyncio.Queue()

    class Watched(LiveTurn):
        def __init__(self, grant: Grant) -> None:
            super().__init__(grant, clock)

        def stop(self, cause: Cause) -> None:
            super().stop(cause)
            causes.put_nowait(cause.outcome)

    async def scene(_: Any) -> Any:
        yield TextDelta(text="half an answer")
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await stopping.here()

    monkeypatch.setattr("callboard.sessions.dispatch.LiveTurn", Watched)
    limits = {"CALLBOARD_LIMITS_TURN_TOTAL_S": "1", "CALLBOARD_LIMITS_CANCEL_GRACE_S": "60"}
    async with stage(tmp_path, scene, environ=limits) as on, asyncio.timeout(PATIENCE_S):
        session_id = await on.session()
        posted = await on.say(session_id, "go")
        await began.wait()
        for way in (first, "cancelled" if first == "timed_out" else "timed_out"):
            if way == "cancelled":
                wish = await on.cancel(session_id, reason="enough")
                assert wish.turn_id == posted.turn_id
            else:
                clock.now += 1
            assert await causes.get() == way
            await stopping.came()
        stopping.open.set()
        await on.idle(session_id)
        records = await on.log(session_id)
        end = the_end(records)
        assert (end.outcome, end.error.kind) == ("timed_out", "turnTimedOut")
        assert end.error.message == "the turn worked for longer than 1 s"
        assert [wish.reason for wish in of(records, "cancel_requested")] == ["enough"]
        assert texts(records) == ["half an answer"]
        assert (await on.host.reading.session(session_id)).last_outcome == "timed_out"
        await _is_usable(on, session_id)
