"""``session/wait``: answers when a session is done, or needs somebody."""

import asyncio
from collections.abc import Callable
from typing import Literal

from attrs import frozen

from callboard_rpc.approvals import Approval
from callboard_rpc.errors import CallboardError
from callboard_rpc.sessions import Session, Turn

from ..approvals.service import Approvals
from ..log.log import Log
from ..log.text import quoted
from .inbox import runs as inbox
from .reading import Reading

Until = Literal["turnEnd", "idle", "attention"]
Reason = Literal["turnEnd", "idle", "attention", "timeout", "closed"]


@frozen(kw_only=True)
class Waited:
    reason: Reason
    turn: Turn | None
    approvals: tuple[Approval, ...]


class Waiting:
    """Waits on the log, never on a connection: whoever runs the session, the wait ends."""

    def __init__(self, log: Log, reading: Reading, approvals: Approvals) -> None:
        self._log = log
        self._reading = reading
        self._approvals = approvals

    async def wait(
        self,
        session_id: str,
        *,
        until: Until,
        turn_id: str | None,
        timeout_s: float | None,
        changed: Callable[[Session], None] = lambda _: None,
    ) -> Waited:
        """`changed` hears of the session whenever it may have changed.

        Raises sessionNotFound, turnNotFound. A time-out is an answer, with the state of then;
        with none left at all, what holds already is still said."""
        session = await self._reading.session(session_id)
        if turn_id is not None and (await self._reading.turn(turn_id)).session_id != session_id:
            raise CallboardError(
                "turnNotFound", f"session {session_id} never had a turn {quoted(turn_id)}"
            )
        watched = turn_id or session.active_turn_id
        reason = await self._reason(session, until, watched)
        if reason is None:
            try:
                async with asyncio.timeout(timeout_s):
                    reason = await self._until(session_id, until, watched, changed)
            except TimeoutError:
                reason = "timeout"
        turn = (
            await self._reading.turn(turn_id)
            if turn_id is not None
            else await self._reading.last_turn(session_id)
        )
        pending, _ = await self._approvals.page(state="pending", session_id=session_id)
        return Waited(reason=reason, turn=turn, approvals=tuple(pending))

    async def _until(
        self,
        session_id: str,
        until: Until,
        watched: str | None,
        changed: Callable[[Session], None],
    ) -> Reason:
        with self._log.watching(session_id) as moved:
            while True:
                session = await self._reading.session(session_id)
                changed(session)
                watched = watched or session.active_turn_id
                reason = await self._reason(session, until, watched)
                if reason is not None:
                    return reason
                await moved.wait()
                moved.clear()

    async def _reason(self, session: Session, until: Until, turn_id: str | None) -> Reason | None:
        if session.closed:
            return "closed"
        if until == "attention" and session.pending_approvals:
            return "attention"
        if until == "turnEnd" and turn_id is not None:
            turn = await self._reading.turn(turn_id)
            return "turnEnd" if turn.ended_at is not None else None
        if session.status == "idle" and not await self._goes_on(session):
            return "turnEnd" if until == "turnEnd" else "idle"
        return None

    async def _goes_on(self, session: Session) -> bool:
        """Whether something waits that will start a turn, or has started one since the session was
        read."""
        asked = inbox.is_asked(self._log.glance, session.session_id)
        return asked or await self._reading.goes_on(session.session_id)
