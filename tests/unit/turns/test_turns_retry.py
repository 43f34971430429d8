"""specs/execution.md 42-46: how often a request may be made again, and what a turn may take."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from turns_kit import fails, of, speaks, stage, the_end

from callboard.config import Settings
from callboard.models.base import ModelError
from callboard.models.retry import BOUNDED, NEVER, UNTIL_CANCELLED
from callboard.sessions.runner import retry_policy, turn_limits
from callboard_rpc.common import Failure, Limits
from harness.inside import host_in, new_session

pytestmark = pytest.mark.anyio

PERSISTENT = Limits(retry="until_cancelled")


async def _overloaded(_: Any) -> AsyncIterator[Any]:
    """Fails before it says anything; a server that says when to come again is taken by its word."""
    raise ModelError(Failure(kind="modelError", message="later", retryable=True, retry_after_ms=1))
    yield


async def test_execution_42_a_bounded_turn_gives_up_after_three_more_requests(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, *[_overloaded] * 9) as on:
        _, records = await on.turn(limits=Limits(retry="bounded"))
        assert (len(on.puppet.requests), the_end(records).outcome) == (4, "failed")
        assert [each.attempt for each in of(records, "model_retried")] == [1, 2, 3]


async def test_execution_44_until_cancelled_outlives_the_count_and_is_for_its_own_turn_only(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, *[_overloaded] * 7, speaks("at last"), *[_overloaded] * 9) as on:
        session_id, records = await on.turn(limits=PERSISTENT)
        assert (len(on.puppet.requests), the_end(records).final_text) == (8, "at last")
        await on.say(session_id, "and once more")
        await on.idle(session_id)
        ends = of(await on.log(session_id), "turn_finished")
        assert [end.outcome for end in ends] == ["completed", "failed"]
        assert len(on.puppet.requests) == 8 + 4


async def test_execution_44_until_cancelled_stops_on_cancel(tmp_path: Path) -> None:
    async with stage(tmp_path, *[_overloaded] * 200_000) as on:
        session_id = await on.session()
        with on.host.log.watching(session_id) as changed:
            await on.say(session_id, "go", limits=PERSISTENT)
            while len(of(await on.log(session_id), "model_retried")) < 5:
                await changed.wait()
                changed.clear()
        async with asyncio.timeout(20):
            await on.cancel(session_id)
            await on.idle(session_id)
        assert the_end(await on.log(session_id)).outcome == "cancelled"


async def test_execution_44_a_work_budget_switches_it_off(tmp_path: Path) -> None:
    async with stage(tmp_path, *[_overloaded] * 9) as on:
        _, records = await on.turn(limits=Limits(retry="until_cancelled", tokens=10_000))
        assert (len(on.puppet.requests), the_end(records).outcome) == (1, "failed")


async def test_execution_44_what_no_repetition_helps_is_asked_once(tmp_path: Path) -> None:
    async with stage(tmp_path, fails("authRequired")) as on:
        _, records = await on.turn(limits=PERSISTENT)
        assert (len(on.puppet.requests), the_end(records).error.kind) == (1, "authRequired")


def test_execution_44_a_policy_comes_from_the_prompt_alone() -> None:
    limits = turn_limits(Settings(), Limits(retry="until_cancelled"), None)
    assert retry_policy(limits, None) is BOUNDED
    assert retry_policy(limits, PERSISTENT) is UNTIL_CANCELLED
    assert retry_policy(turn_limits(Settings(), Limits(cost=1.0), PERSISTENT), PERSISTENT) is NEVER


# --- what is wrong in a limit ---------------------------------------------------------------------


@pytest.mark.parametrize("wrong", ["-5", "0", "nan", "soon", '"900"', "[]", "true"])
async def test_execution_46_a_wrong_limit_of_the_configuration_is_told_and_the_default_holds(
    tmp_path: Path, wrong: str
) -> None:
    config = tmp_path / "config"
    config.mkdir()
    quoted = wrong if wrong != "soon" else '"soon"'
    (config / "config.toml").write_text(
        f"[limits]\nturn_total_s = {quoted}\nturn_idle_s = {quoted}\n", "utf-8"
    )
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        limits = turn_limits(host.settings_for(str(tmp_path)))
        assert (limits.total_s, limits.idle_s) == (3_600.0, 900.0)
        assert len([w for w in host.warnings if "turn_total_s" in w or "turn_idle_s" in w]) == 2
        assert session_id


@pytest.mark.parametrize("wrong", [0, -1, -(10**12)])
async def test_execution_46_a_wrong_time_limit_of_a_prompt_is_none(
    tmp_path: Path, wrong: int
) -> None:
    async with stage(tmp_path, speaks("fine")) as on:
        _, records = await on.turn(limits=Limits(timeout_ms=wrong))
        assert the_end(records).outcome == "completed"
    assert turn_limits(Settings(), Limits(timeout_ms=wrong)).deadline_s is None
    assert (
        turn_limits(Settings(), Limits(timeout_ms=wrong), Limits(timeout_ms=5)).deadline_s == 0.005
    )
