"""``session/members*`` as typed methods: several agents in one session."""

from attrs import frozen

from callboard_rpc.common import SessionId
from callboard_rpc.rooms import MemberAddParams, MemberRemoveParams, MembersParams, RoomResult

from .family import Family


@frozen(kw_only=True)
class NewRoom:
    """Who takes part in a new session: `members`, or those of a `roster` of the configuration; `host` answers
    when nobody is addressed. Without either it is as the configuration has it; an empty list is nobody."""

    members: tuple[str, ...] | None = None
    roster: str | None = None
    host: str | None = None


class Rooms(Family):
    """Who takes part in a session. A new one has its members from ``sessions.create``."""

    async def get(self, session_id: SessionId) -> RoomResult:
        """Who takes part, who answers when nobody is addressed, and how much the agents may yet say among
        themselves."""
        return await self._call("session/members", MembersParams(session_id=session_id))

    async def add(
        self,
        session_id: SessionId,
        name: str,
        *,
        host: bool = False,
        idempotency_key: str | None = None,
    ) -> RoomResult:
        """Lets the profile `name` take part; who was alone in the session stays, as its first member."""
        params = MemberAddParams(
            session_id=session_id, name=name, host=host, idempotency_key=idempotency_key
        )
        return await self._call("session/memberAdd", params)

    async def remove(
        self, session_id: SessionId, name: str, *, idempotency_key: str | None = None
    ) -> RoomResult:
        """What waits for that member is for whoever answers when nobody is addressed."""
        params = MemberRemoveParams(
            session_id=session_id, name=name, idempotency_key=idempotency_key
        )
        return await self._call("session/memberRemove", params)
