"""``peer/*``: links between unrelated sessions, by the consent of both (interrupts-and-peers 4).

Only where the feature ``peers`` is switched on.
"""

from .common import Cursor, Json, MessageId, SessionId
from .frozen import frozen


@frozen(kw_only=True)
class PeerInviteParams:
    session_id: SessionId
    meta: Json | None = None


@frozen(kw_only=True)
class PeerInviteResult:
    """`token` is told here and nowhere else; whoever accepts it within ten minutes is linked, once."""

    token: str
    expires_at: str


@frozen(kw_only=True)
class PeerAcceptParams:
    session_id: SessionId
    token: str
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class Peer:
    """A session that this one is linked to. `title` is what it is called now; `waiting` are messages to it
    that it has not read. `one_way`: only one of the two consents is there, which cannot be by itself."""

    session_id: SessionId
    title: str | None
    since: str
    waiting: int = 0
    one_way: bool = False


@frozen(kw_only=True)
class PeerAcceptResult:
    peer: Peer
    cursor: Cursor


@frozen(kw_only=True)
class PeerSendParams:
    """`to` is the id of a linked session; `text` has 1 to 16,000 characters."""

    session_id: SessionId
    to: SessionId
    text: str
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class PeerSendResult:
    """`repeated`: the same text went to the same session within ten minutes, and it is the first one's id.
    `left` are the messages that this session may send within the hour."""

    message_id: MessageId
    repeated: bool
    left: int
    cursor: Cursor


@frozen(kw_only=True)
class PeerListParams:
    session_id: SessionId
    meta: Json | None = None


@frozen(kw_only=True)
class PeerListResult:
    peers: tuple[Peer, ...]
    cursor: Cursor


@frozen(kw_only=True)
class PeerLeaveParams:
    """Ends the link for both sides; a session that is not linked is left already."""

    session_id: SessionId
    peer_id: SessionId
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class PeerLeaveResult:
    cursor: Cursor
    left: bool
    dropped: int = 0
    """Messages, of either side, that are not delivered any more."""
