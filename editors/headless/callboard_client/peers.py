"""``peer/*`` as typed methods: links between unrelated sessions, where the server has them switched on."""

from callboard_rpc.common import SessionId
from callboard_rpc.peers import (
    PeerAcceptParams,
    PeerAcceptResult,
    PeerInviteParams,
    PeerInviteResult,
    PeerLeaveParams,
    PeerLeaveResult,
    PeerListParams,
    PeerListResult,
    PeerSendParams,
    PeerSendResult,
)

from .family import Family


class Peers(Family):
    """`session_id` is the session in whose place a person acts."""

    async def invite(self, session_id: SessionId) -> PeerInviteResult:
        """A token that links whoever accepts it to the session, once and within ten minutes. Keep it as you
        would a password."""
        return await self._call("peer/invite", PeerInviteParams(session_id=session_id))

    async def accept(
        self, session_id: SessionId, token: str, *, idempotency_key: str | None = None
    ) -> PeerAcceptResult:
        """Links the session to the one that has invited; from here on each may write to the other."""
        params = PeerAcceptParams(
            session_id=session_id, token=token, idempotency_key=idempotency_key
        )
        return await self._call("peer/accept", params)

    async def send(
        self,
        session_id: SessionId,
        to: SessionId,
        text: str,
        *,
        idempotency_key: str | None = None,
    ) -> PeerSendResult:
        """Writes to a linked session, which it wakes if it is idle and open somewhere. The same text within ten
        minutes is the first message."""
        params = PeerSendParams(
            session_id=session_id, to=to, text=text, idempotency_key=idempotency_key
        )
        return await self._call("peer/send", params)

    async def list(self, session_id: SessionId) -> PeerListResult:
        """The sessions that it is linked to."""
        return await self._call("peer/list", PeerListParams(session_id=session_id))

    async def leave(
        self, session_id: SessionId, peer_id: SessionId, *, idempotency_key: str | None = None
    ) -> PeerLeaveResult:
        """Ends a link for both sides, and drops what was on its way between them."""
        params = PeerLeaveParams(
            session_id=session_id, peer_id=peer_id, idempotency_key=idempotency_key
        )
        return await self._call("peer/leave", params)
