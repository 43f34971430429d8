"""The tasks of a host: a crash in one of them is recorded, and ends nothing else."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from callboard.host import Host
from callboard_rpc.approvals import Approval, ApprovalOption, CommandSubject
from callboard_rpc.common import ApprovalId, CallId, SessionId, TurnId
from harness.inside import CLIENT, host_in, idle, log_of, new_session, say
from harness.process import scenario

pytestmark = pytest.mark.anyio

SPEAKER = "default: [{say: I am well.}]"
LONG_AGO = "2001-01-01T00:00:00.000Z"


async def _ask_too_late(host: Host, session_id: str, approval_id: str) -> None:
    """A question whose time is up: only the host's own clock can end it."""
    approval = Approval(
        approval_id=ApprovalId(approval_id),
        session_id=SessionId(session_id),
        root_id=SessionId(session_id),
        turn_id=TurnId("trn_x"),
        call_id=CallId(f"call_{approval_id}"),
        kind="permission",
        title="Run it",
        tool="run_command",
        subject=CommandSubject(command="true", cwd="/w"),
        options=(ApprovalOption(option_id="allow_once", name="Yes", kind="allow_once"),),
        created_at=LONG_AGO,
        expires_at=LONG_AGO,
    )
    await host.log.transact(lambda tx: host.approvals.ask(tx, approval, actor=CLIENT, fence=0))


async def _ended(host: Host, session_id: str, count: int) -> list[str]:
    """How the questions of a session ended, once so many have."""
    position = 0
    async with asyncio.timeout(30):
        while True:
            records = await log_of(host, session_id)
            found = [r.value.resolution for r in records if r.type == "approval_decision"]
            if len(found) >= count:
                return [each.outcome for each in found]
            position = await host.log.moved(position)


def _once(real: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Fails the first time, as nobody has foreseen, and is `real` from then on."""
    failed = False

    async def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal failed
        if not failed:
            failed = True
            raise RuntimeError("nobody has foreseen this")
        return await real(*args, **kwargs)

    return call


@pytest.mark.parametrize("step", ["expire_due", "next_expiry"])
async def test_interrupts_60_a_question_still_expires_after_the_clock_has_failed_as_nobody_foresaw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, step: str
) -> None:
    monkeypatch.setattr("callboard.host._LOOK_AGAIN_S", 0.01)
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        setattr(host.approvals, step, _once(getattr(host.approvals, step)))
        await _ask_too_late(host, session_id, "apr_1")
        assert await _ended(host, session_id, 1) == ["expired"]
        await _ask_too_late(host, session_id, "apr_2")
        assert await _ended(host, session_id, 2) == ["expired", "expired"]
    assert "approvals could not be looked at" in caplog.text
    assert "nobody has foreseen this" in caplog.text


async def test_a_crash_in_one_task_of_the_host_ends_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with host_in(tmp_path, model=scenario(tmp_path, SPEAKER)) as host:
        session_id = await new_session(host, tmp_path)
        before = {task.get_name() for task in host.tasks._running}
        assert {"presence", "approval clock"} <= before
        crashed = asyncio.Event()

        async def crash() -> None:
            crashed.set()
            raise RuntimeError("nobody has foreseen this")

        host.spawn(crash, "a task of the test")
        await crashed.wait()
        await say(host, session_id, "how are you?")
        assert (await idle(host, session_id)).turn.final_text == "I am well."
        await _ask_too_late(host, session_id, "apr_1")
        assert await _ended(host, session_id, 1) == ["expired"]
        assert before <= {task.get_name() for task in host.tasks._running}
    assert "a task of the test crashed" in caplog.text


async def test_a_crash_in_one_session_s_turn_ends_that_turn_and_no_other(tmp_path: Path) -> None:
    async with host_in(tmp_path, model=scenario(tmp_path, SPEAKER)) as host:
        ill, well = [await new_session(host, tmp_path) for _ in range(2)]
        runner = host.dispatcher._runner
        together = asyncio.Barrier(2)

        async def run(live: Any, begun: Any) -> None:
            await together.wait()  # both turns run
            if live.session_id == ill:
                raise RuntimeError("nobody has foreseen this")
            await runner(live, begun)

        host.dispatcher._runner = run
        for session_id in (ill, well):
            await say(host, session_id, "how are you?")
        assert (await idle(host, ill)).turn.state == "failed"
        assert (await idle(host, well)).turn.final_text == "I am well."
        host.dispatcher._runner = runner
        await say(host, ill, "and now?")
        assert (await idle(host, ill)).turn.final_text == "I am well."
