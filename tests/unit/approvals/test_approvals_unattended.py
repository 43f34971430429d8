"""What becomes of a question, by who is there when it comes and by what the configuration says."""

import asyncio
from datetime import datetime
from pathlib import Path

import pytest

from callboard.config import EXPIRE_UNATTENDED_S
from callboard.host import Host
from callboard_rpc.approvals import Approval
from harness.inside import CLIENT, host_in, idle, log_of, new_session, say
from harness.process import scenario

pytestmark = pytest.mark.anyio

WRITER = """
rules:
  - {when: {last_tool: {contains: ""}}, answer: [{say: done}]}
default:
  - call: {tool: write_file, arguments: {path: a.txt, content: new}}
"""

NEVER = None
"""The question waits for as long as it takes."""
EXPIRE_S = 120

TABLE: list[tuple[str, bool, int | None, float | str | None]] = [
    # unattended, somebody is there, expire_s, what becomes of the question
    ("park", True, None, NEVER),
    ("park", True, EXPIRE_S, EXPIRE_S),
    ("park", False, None, NEVER),
    ("park", False, EXPIRE_S, NEVER),
    ("deny", True, None, NEVER),
    ("deny", True, EXPIRE_S, EXPIRE_S),
    ("deny", False, None, "denied"),
    ("deny", False, EXPIRE_S, "denied"),
    ("expire", True, None, NEVER),
    ("expire", True, EXPIRE_S, EXPIRE_S),
    ("expire", False, None, EXPIRE_UNATTENDED_S),
    ("expire", False, EXPIRE_S, EXPIRE_S),
]


def _configure(folder: Path, unattended: str, expire_s: int | None) -> None:
    config = folder / "config"
    config.mkdir()
    lines = ["[approvals]", f'unattended = "{unattended}"']
    lines += [] if expire_s is None else [f"expire_s = {expire_s}"]
    (config / "config.toml").write_text("\n".join(lines), "utf-8")


async def _asked(host: Host, session_id: str) -> Approval | None:
    """The question of a session's turn; None when the turn ends without one."""
    with host.log.watching(session_id) as changed:
        async with asyncio.timeout(30):
            while True:
                for record in await log_of(host, session_id):
                    if record.type == "approval_request":
                        return record.value.approval
                    if record.type == "turn_finished":
                        return None
                await changed.wait()
                changed.clear()


def _seconds(approval: Approval) -> float | None:
    """How long the answer may take."""
    if approval.expires_at is None:
        return None
    began = datetime.fromisoformat(approval.created_at)
    return (datetime.fromisoformat(approval.expires_at) - began).total_seconds()


@pytest.mark.parametrize(("unattended", "attended", "expire_s", "outcome"), TABLE)
async def test_design_5_interrupts_60_what_becomes_of_a_question_is_decided_when_it_is_asked(
    tmp_path: Path, unattended: str, attended: bool, expire_s: int | None, outcome: float | str
) -> None:
    _configure(tmp_path, unattended, expire_s)
    async with host_in(tmp_path, model=scenario(tmp_path, WRITER)) as host:
        host.attendance.clients += attended
        session_id = await new_session(host, tmp_path)
        await say(host, session_id, "go")
        approval = await _asked(host, session_id)
        if outcome == "denied":
            assert approval is None
            (result,) = [r.value for r in await log_of(host, session_id) if r.type == "tool_result"]
            assert result.status == "denied"
            assert not (tmp_path / "a.txt").exists()
            return
        assert approval is not None
        assert _seconds(approval) == (NEVER if outcome is NEVER else pytest.approx(outcome, abs=5))
        host.attendance.clients = 0 if attended else 1  # they leave, or somebody comes
        stays = await host.approvals.get(approval.approval_id)
        assert (stays.state, stays.expires_at) == ("pending", approval.expires_at)
        await host.approvals.answer(approval.approval_id, "allow_once", by=CLIENT, via="method")
        await idle(host, session_id)
        assert (tmp_path / "a.txt").read_text() == "new"
