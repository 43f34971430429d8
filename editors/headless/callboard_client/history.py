"""``session/fork``, ``session/rewind`` and ``session/queue*`` as typed methods."""

from collections.abc import AsyncIterator, Iterable

from callboard_rpc.common import Content, SessionId, TextContent, TurnId
from callboard_rpc.history import (
    QueuedPrompt,
    SessionForkParams,
    SessionQueueParams,
    SessionQueueRemoveParams,
    SessionQueueResult,
    SessionQueueUpdateParams,
    SessionRewindParams,
    SessionRewindResult,
)
from callboard_rpc.sessions import SessionResult

from .family import Family, pages


class SessionHistory(Family):
    """What changes a session's history, or what waits to become part of it."""

    async def fork(
        self,
        session_id: SessionId,
        *,
        at_turn_id: TurnId | None = None,
        title: str | None = None,
        idempotency_key: str | None = None,
    ) -> SessionResult:
        """A new session with this one's history up to the end of a turn; by default all that has ended."""
        params = SessionForkParams(
            session_id=session_id,
            at_turn_id=at_turn_id,
            title=title,
            idempotency_key=idempotency_key,
        )
        return await self._call("session/fork", params)

    async def rewind(
        self,
        session_id: SessionId,
        before_turn_id: TurnId,
        *,
        idempotency_key: str | None = None,
    ) -> SessionRewindResult:
        """Goes back to before a turn. Files stay as they are; the result names those that had changed."""
        params = SessionRewindParams(
            session_id=session_id, before_turn_id=before_turn_id, idempotency_key=idempotency_key
        )
        return await self._call("session/rewind", params)

    def queue(self, session_id: SessionId) -> AsyncIterator[QueuedPrompt]:
        """Prompts that no turn has taken in yet, in order."""
        return pages(
            self._call,
            "session/queue",
            lambda cursor: SessionQueueParams(session_id=session_id, cursor=cursor),
        )

    async def queue_update(
        self,
        session_id: SessionId,
        event_seq: int,
        prompt: str | Iterable[Content],
        *,
        idempotency_key: str | None = None,
    ) -> SessionQueueResult:
        """Raises `RemoteError` of kind ``promptTaken`` when a turn was first."""
        content = (TextContent(text=prompt),) if isinstance(prompt, str) else tuple(prompt)
        params = SessionQueueUpdateParams(
            session_id=session_id,
            event_seq=event_seq,
            content=content,
            idempotency_key=idempotency_key,
        )
        return await self._call("session/queueUpdate", params)

    async def queue_remove(
        self,
        session_id: SessionId,
        event_seq: int,
        *,
        reason: str | None = None,
        idempotency_key: str | None = None,
    ) -> SessionQueueResult:
        """Raises `RemoteError` of kind ``promptTaken`` when a turn was first."""
        params = SessionQueueRemoveParams(
            session_id=session_id,
            event_seq=event_seq,
            reason=reason,
            idempotency_key=idempotency_key,
        )
        return await self._call("session/queueRemove", params)
