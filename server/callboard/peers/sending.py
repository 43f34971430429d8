"""Sending to a linked session: one transaction, in which all is decided that a message depends on, whatever
others do at the same time (interrupts-and-peers 4.2, 4.3, 51, 52)."""

from datetime import timedelta

from attrs import frozen

from callboard_rpc.common import MessageId, SessionId
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import PeerMessageSent

from ..config.settings import PeerSettings
from ..log.clock import later, parse
from ..log.text import quoted, redacted, well_formed
from ..log.transaction import Transaction
from ..sessions.reading import refuse_unless_open
from .capsule import MAX_CHARS, Capsule, write
from .consent import SQL, Side, append, digest_of, may_act

HOUR_S = 3_600
SAME_S = 600
"""How long the same text to the same session is a repetition."""


@frozen(kw_only=True)
class Sent:
    """A message that is durable. `left` are those that its sender may yet send within the hour."""

    message_id: MessageId
    repeated: bool
    left: int


def checked_text(text: str) -> str:
    """Trimmed. Raises invalidParams for a blank one, messageTooLong."""
    clean = well_formed(text).strip()
    if not clean:
        raise CallboardError(
            "invalidParams",
            "the message is blank; say something",
            data={"errors": [{"path": "$.text", "message": "must not be blank"}]},
        )
    if len(clean) > MAX_CHARS:
        raise CallboardError(
            "messageTooLong",
            f"the message has {len(clean)} characters; {MAX_CHARS} are allowed: put the material into a file "
            "and name it",
            data={"bytes": len(clean.encode()), "limit": MAX_CHARS},
        )
    return clean


def send(tx: Transaction, side: Side, to: str, text: str, limits: PeerSettings) -> Sent:
    """Queues a message. `text` has been checked. Raises peerNotLinked, peerLimit, sessionClosed and
    sessionArchived of either side, and what `may_act` does."""
    title = may_act(tx, side)
    _must_be_linked(tx, side.session_id, to)
    target = tx.one(SQL["standing"], to)
    if target is None:
        raise _not_linked(side.session_id, to)
    refuse_unless_open(to, closed=bool(target[0]), archived=bool(target[1]))
    # as it is in the log, before it is counted, framed and escaped
    text = redacted(tx.writing.redact, text)[:MAX_CHARS]
    digest, now = digest_of(text), tx.now()
    used, oldest = _used(tx, side.session_id, now)
    lately = later(now, -SAME_S), later(now, SAME_S)
    first = tx.value(SQL["said_lately"], side.session_id, to, digest, *lately)
    if first is not None:
        return Sent(message_id=first, repeated=True, left=max(0, limits.hourly - used))
    _must_have_room(tx, side.session_id, to, used, oldest, limits)
    message_id = MessageId(tx.new_id("msg"))
    capsule = Capsule(
        message_id=message_id, sender_id=side.session_id, title=title, sent_at=now, body=text
    )
    tx.execute(SQL["insert_message"], message_id, to, side.session_id, write(capsule), now)
    tx.execute(SQL["insert_sent"], message_id, side.session_id, to, digest, now)
    append(tx, side, PeerMessageSent(message_id=message_id, to=SessionId(to), text=text))
    return Sent(message_id=message_id, repeated=False, left=limits.hourly - used - 1)


def _must_be_linked(tx: Transaction, session_id: str, to: str) -> None:
    if to == session_id:
        raise CallboardError(
            "peerNotLinked",
            f"{to} is this session itself, which is linked to others alone; peer/list shows them",
        )
    if tx.one(SQL["may_write"], session_id, to) is None:
        raise _not_linked(session_id, to)


def _not_linked(session_id: str, to: str) -> CallboardError:
    """One error for a session that there is not, one that is not linked, and what is no id."""
    return CallboardError(
        "peerNotLinked",
        f"session {session_id} is not linked to {quoted(to)}. A linked session is written to by its id, not by "
        "its title: peer/list shows those that there are, peer/invite begins a new link",
    )


def _used(tx: Transaction, session_id: str, now: str) -> tuple[int, str | None]:
    """How much was sent within the hour, and the first of it."""
    since = later(now, -HOUR_S)
    tx.execute(SQL["prune_sent"], session_id, since, later(now, HOUR_S))
    row = tx.one(SQL["sent_since"], session_id, since)
    assert row is not None
    return row[0], row[1]


def _must_have_room(
    tx: Transaction,
    session_id: str,
    to: str,
    used: int,
    oldest: str | None,
    limits: PeerSettings,
) -> None:
    if used >= limits.hourly and oldest is not None:
        free_at = later(oldest, HOUR_S)
        raise CallboardError(
            "peerLimit",
            f"session {session_id} has sent {used} messages within an hour, and may send the next one at "
            f"{free_at} (peers.hourly)",
            retry_after_ms=_until(tx.now(), free_at),
        )
    waiting: int = tx.value(SQL["count_undelivered"], to)
    if waiting >= limits.undelivered:
        raise CallboardError(
            "peerLimit",
            f"{waiting} messages wait for session {to}; send more when it has read some (peers.undelivered)",
        )


def _until(now: str, at: str) -> int:
    return max(0, (parse(at) - parse(now)) // timedelta(milliseconds=1))
