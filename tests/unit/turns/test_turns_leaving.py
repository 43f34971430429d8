"""A host that goes soon (`store.waiting = "leave"`): it begins what is asked of it, and nothing that others
have left, since that would be interrupted when it goes (specs/session-messaging.md 10)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from turns_inbox_kit import deliver, left, received, send, started
from turns_kit import (
    PATIENCE_S,
    Pause,
    Stage,
    calls,
    of,
    pauses,
    returns,
    shape,
    stage,
    the_end,
    tool,
)

from callboard.host import Host
from callboard.sessions.identity import Life
from callboard.sessions.presence import Presence
from callboard_rpc.approvals import Approval
from harness.inside import CLIENT, until

pytestmark = pytest.mark.anyio

ASKS = calls(("act", {"text": "now"}))
ACT = tool("act", returns("acted"), "write")


def _gone(_: int, __: str) -> Life:
    return "gone"


async def _asked(on: Stage, session_id: str) -> Approval:
    waited = await on.host.waiting.wait(session_id, until="attention", turn_id=None, timeout_s=30)
    return waited.approvals[0]


async def _parked(folder: Path) -> tuple[str, Approval]:
    """A session whose turn waits, run by nobody, for an approval."""
    async with stage(folder, ASKS, tools=[ACT]) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        approval = await _asked(on, session_id)
    return session_id, approval


async def _due(on: Stage, approval_id: str) -> None:
    """Its time is up."""
    then = "2001-01-01T00:00:00.000Z"
    sql = (
        "UPDATE approvals SET expires_at = ?1, request = json_set(request, '$.expiresAt', ?1) "
        "WHERE approval_id = ?2"
    )
    await on.host.log.transact(lambda tx: tx.execute(sql, then, approval_id))


class Woken:
    """The sessions that a host is asked to look at from now on; it looks at none of them."""

    def __init__(self, host: Host) -> None:
        self.sessions: list[str] = []

        async def note(session_id: str) -> None:
            self.sessions.append(session_id)

        host.dispatcher.wake_here = note  # type: ignore[method-assign, assignment]


async def _rounds() -> None:
    """Tasks that were begun have run to their ends, where they wait for nothing."""
    for _ in range(20):
        await asyncio.sleep(0)


# --- approvals --------------------------------------------------------------------------------


async def test_a_host_that_goes_soon_leaves_it_to_others_to_end_the_time_of_what_nobody_runs(
    tmp_path: Path,
) -> None:
    session_id, approval = await _parked(tmp_path)
    async with stage(tmp_path, leaves=True) as on:
        looked: list[str | None] = []
        again = asyncio.Event()
        next_expiry = on.host.approvals.next_expiry

        async def watched(**more: Any) -> str | None:
            looked.append(await next_expiry(**more))
            if len(looked) > 2:
                again.set()
            return looked[-1]

        on.host.approvals.next_expiry = watched  # type: ignore[method-assign]
        await _due(on, approval.approval_id)
        async with asyncio.timeout(PATIENCE_S):
            await again.wait()
        assert (await on.host.approvals.get(approval.approval_id)).state == "pending"
        assert shape(await on.log(session_id))[-1] == "turn_parked"
    async with stage(tmp_path, tools=[ACT]) as on:  # one that stays does it
        await until(on.host, lambda: _has(on, session_id, "turn_finished"))
        assert [
            d.resolution.outcome for d in of(await on.log(session_id), "approval_decision")
        ] == ["expired"]


async def _has(on: Stage, session_id: str, kind: str) -> bool:
    return kind in shape(await on.log(session_id))


async def test_a_host_that_goes_soon_ends_the_time_of_what_its_own_turns_ask(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, ASKS, tools=[ACT], leaves=True) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await _due(on, (await _asked(on, session_id)).approval_id)
        await on.idle(session_id)
        records = await on.log(session_id)
        assert [d.resolution.outcome for d in of(records, "approval_decision")] == ["expired"]
        assert the_end(records).outcome == "completed"


async def test_a_host_that_goes_soon_goes_on_with_a_turn_only_for_an_answer_given_through_itself(
    tmp_path: Path,
) -> None:
    mine, asked_here = await _parked(tmp_path)
    others, asked_there = await _parked(tmp_path)
    async with (
        stage(tmp_path, tools=[ACT], leaves=True) as on,
        stage(tmp_path, leaves=True) as other,
        stage(tmp_path) as stays,
    ):
        here, there, staying = Woken(on.host), Woken(other.host), Woken(stays.host)
        answer: Any = {"by": CLIENT, "via": "method"}
        await other.host.approvals.answer(asked_there.approval_id, "allow_once", **answer)
        for each in (on, stays):
            each.host.log.refresh()  # whatever there is to hear is heard
        await _rounds()
        assert (here.sessions, there.sessions, staying.sessions) == ([], [others], [others])
        await on.host.approvals.answer(asked_here.approval_id, "allow_once", **answer)
        other.host.log.refresh()
        await _rounds()
        assert (here.sessions, there.sessions) == ([mine], [others])


async def test_an_answer_whose_giver_is_gone_before_it_is_committed_wakes_all_the_same(
    tmp_path: Path,
) -> None:
    session_id, approval = await _parked(tmp_path)
    async with stage(tmp_path, tools=[ACT], leaves=True) as on:
        submit = on.host.log.submit

        def watched(function: Any) -> Any:
            if function.__qualname__.startswith("Approvals.answer."):
                giving.cancel()
            return submit(function)

        on.host.log.submit = watched  # type: ignore[method-assign]
        giving = asyncio.ensure_future(
            on.host.approvals.answer(approval.approval_id, "allow_once", by=CLIENT, via="request")
        )
        await asyncio.wait({giving})
        assert giving.cancelled()
        await until(on.host, lambda: _has(on, session_id, "turn_finished"))
        assert [r.text for r in of(await on.log(session_id), "tool_result")] == ["acted now"]


async def test_an_answer_that_comes_too_late_wakes_nothing_in_a_host_that_goes_soon(
    tmp_path: Path,
) -> None:
    session_id, approval = await _parked(tmp_path)
    async with stage(tmp_path, leaves=True) as on:
        woken = Woken(on.host)
        await _due(on, approval.approval_id)
        with pytest.raises(Exception, match="expired unanswered"):
            await on.host.approvals.answer(
                approval.approval_id, "allow_once", by=CLIENT, via="method"
            )
        await _rounds()
        assert woken.sessions == []
        assert shape(await on.log(session_id))[-1] == "approval_decision"


# --- what others have accepted ----------------------------------------------------------------


@pytest.mark.parametrize("leaves", [True, False])
async def test_messaging_10_a_delivery_of_a_host_that_died_is_for_one_that_stays(
    tmp_path: Path, leaves: bool
) -> None:
    """The host that goes soon ends the run of the dead one, and begins none for what waits behind it."""
    pause = Pause()
    async with (
        stage(tmp_path, pauses(pause, "never said")) as dead,
        stage(tmp_path, leaves=leaves) as on,
    ):
        session_id = await dead.session()
        await dead.say(session_id, "go")
        await pause.came()
        await send(dead, session_id, "news")
        dead.host.dispatcher.wake_here = _nothing  # type: ignore[method-assign]
        await on.host.tasks.end()  # only what is done here is looked at
        assert await Presence(on.host.log, on.host.host_id, is_alive=_gone).look()
        await _rounds()
        await on.host.dispatcher.wake(session_id)
        await on.host.dispatcher.wake_delivered()
        assert shape(await on.log(session_id)).count("turn_finished") >= 1
        if leaves:
            assert started(await on.log(session_id)) == ["prompt"]
            assert await left(on, session_id) == ["news"]
        else:
            await on.idle(session_id)
            assert received(await on.log(session_id)) == ["news"]


async def _nothing(_: str) -> None:
    return None


@pytest.mark.parametrize("leaves", [True, False])
async def test_messaging_10_a_prompt_of_a_host_that_died_is_for_one_that_stays(
    tmp_path: Path, leaves: bool
) -> None:
    """It waits behind a turn of the host that goes soon, which looks for what is next when that has ended."""
    pause = Pause()
    async with (
        stage(tmp_path, pauses(pause, "done"), leaves=leaves) as on,
        stage(tmp_path) as dead,
    ):
        session_id = await on.session()
        await on.say(session_id, "go")
        await pause.came()
        dead.host.dispatcher.wake_here = _nothing  # type: ignore[method-assign]
        assert (await dead.say(session_id, "of the dead")).outcome == "queued"
        forget = "DELETE FROM hosts WHERE host_id = ?"
        await on.host.log.transact(lambda tx: tx.execute(forget, dead.host.host_id))
        pause.open.set()
        await until(on.host, lambda: _has(on, session_id, "turn_finished"))
        await on.host.dispatcher.wake(session_id)
        if leaves:
            assert started(await on.log(session_id)) == ["prompt"]
            # but what is asked of it takes along what waits
            await on.say(session_id, "and this")
        await on.idle(session_id)
        assert started(await on.log(session_id)) == ["prompt", "prompt"]
        assert "of the dead" in on.puppet.heard()


async def test_execution_40_a_host_that_goes_soon_sees_to_its_own_deliveries_behind_a_claim(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, leaves=True) as on:
        session_id = await on.session()
        first = await deliver(on, session_id, "claimed")
        await on.host.inbox.authorise(session_id, first)
        await on.host.inbox.leases.claim(session_id, "elsewhere", lease_s=0.05)
        await send(on, session_id, "news")
        await until(on.host, lambda: _has(on, session_id, "turn_finished"))
        assert received(await on.log(session_id)) == ["claimed", "news"]
