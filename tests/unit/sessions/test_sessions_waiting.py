"""A wait says that a session is idle only when it is."""

from pathlib import Path

import attrs
import pytest
from sessions_kit import Gate, Player, host_with, says

from callboard.sessions.reading import Reading
from callboard.sessions.waiting import Waiting
from callboard_rpc.sessions import Session
from harness.inside import idle, new_session, say

pytestmark = pytest.mark.anyio


class LateReading(Reading):
    """Sees the session as it was a moment ago: its prompt waited, and nobody ran it."""

    async def session(self, session_id: str) -> Session:
        now = await super().session(session_id)
        return attrs.evolve(now, status="idle", active_turn_id=None, owner=None, queue_length=1)


async def test_a_prompt_that_becomes_a_turn_while_a_wait_looks_keeps_it_waiting(
    tmp_path: Path,
) -> None:
    gate = Gate()
    async with host_with(tmp_path, Player([gate.before(says("done."))])) as host:
        session_id = await new_session(host, tmp_path)
        await say(host, session_id, "go")
        await gate.came()
        waiting = Waiting(host.log, LateReading(host.log), host.approvals)
        waited = await waiting.wait(session_id, until="idle", turn_id=None, timeout_s=0)
        assert waited.reason == "timeout"
        gate.opened.set()
        await idle(host, session_id)
