"""``session/members*``: several agents in one session, each woken when it is addressed (session-messaging 9)."""

from .common import Cursor, Json, SessionId
from .frozen import frozen


@frozen(kw_only=True)
class Member:
    """An agent of a room, by the name of its profile. `available`: the profile can be used; `description` says
    what it is, or what is wrong with it."""

    name: str
    description: str
    is_host: bool = False
    available: bool = True


@frozen(kw_only=True)
class Burst:
    """How many messages of agents have followed one another since a person's, of how many that may. When it
    is `exhausted`, a mention wakes nobody until a person has said something."""

    used: int
    budget: int
    exhausted: bool


@frozen(kw_only=True)
class Room:
    """`host` answers when nobody is addressed; null: the first member does."""

    members: tuple[Member, ...]
    burst: Burst
    host: str | None = None


@frozen(kw_only=True)
class MembersParams:
    session_id: SessionId
    meta: Json | None = None


@frozen(kw_only=True)
class MemberAddParams:
    """Adds the profile `name`; one that takes part already stays where it is. `host`: it is to answer when
    nobody is addressed."""

    session_id: SessionId
    name: str
    host: bool = False
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class MemberRemoveParams:
    """Removes a member; one that takes no part stays away. A turn of it that runs goes on to its end."""

    session_id: SessionId
    name: str
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class RoomResult:
    room: Room
    cursor: Cursor
