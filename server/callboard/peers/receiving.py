"""Receiving from a linked session, in two halves (interrupts-and-peers 4.5): at the boundary of a turn that
runs, and as what wakes a session that is idle.

Both do the same in one transaction: the message is appended to the recipient's log and its row is gone. So
there is nothing that a row could be claimed for: of several who try, one finds it; of one that dies, nothing
or all is left. Consent is read again, and each row stands for itself.
"""

from typing import Literal

from attrs import frozen

from callboard_rpc.common import Actor, HostId, MessageId, SessionId, TextContent
from callboard_rpc.events import Ack, Author, Message, PeerMessageDropped

from ..log.transaction import Transaction
from ..turns.boundary import Order, Query, Source
from ..turns.reservation import SYSTEM, Grant
from .capsule import Capsule, read
from .consent import SQL
from .frame import framed, name_of

MAX_AT_ONCE = 1_000
"""Messages that one transaction takes in."""
_MAX_CHARS_AT_ONCE = 4_000_000
"""Characters of capsules, after which the rest is left for the next one."""


@frozen(kw_only=True)
class _Into:
    """Where messages go: into the turn of a grant, or as triggers that a host is to run."""

    session_id: str
    grant: Grant | None = None
    host_id: str | None = None

    def append(self, tx: Transaction, event: object, actor: Actor = SYSTEM) -> int:
        record = tx.append(
            self.session_id,
            event,
            actor=actor,
            turn_id=None if self.grant is None else self.grant.turn_id,
            fence=0 if self.grant is None else self.grant.fence,
        )
        return record.seq


def _take_in(tx: Transaction, into: _Into) -> tuple[int, ...]:
    """The seqs of the messages that what waits has become, in the order in which it was sent."""
    seqs: list[int] = []
    size = 0
    for arrival, message_id, sender_id, text, created_at, linked in tx.all(
        SQL["waiting"], into.session_id, MAX_AT_ONCE
    ):
        size += len(text)
        if seqs and size > _MAX_CHARS_AT_ONCE:
            break
        if not linked:
            tx.execute(SQL["delivered"], arrival)
            tx.execute(SQL["forget_digest"], message_id)
            _drop(tx, into, message_id, sender_id, "unlinked")
            continue
        capsule = read(text, message_id=message_id, sender_id=sender_id, created_at=created_at)
        taken = capsule is not None and _admit(tx, into, capsule, seqs)
        if taken:
            tx.execute(SQL["delivered"], arrival)
        else:
            tx.execute(SQL["bury"], "malformed", arrival)
            _drop(tx, into, message_id, sender_id, "malformed")
    return tuple(seqs)


def _admit(tx: Transaction, into: _Into, capsule: Capsule, seqs: list[int]) -> bool:
    """Whether it could be written; one that could not keeps up none of the others."""

    def write() -> None:
        seqs.append(into.append(tx, _message(capsule, into.host_id), _actor(capsule)))

    return tx.contain(write) is None


def _message(capsule: Capsule, host_id: str | None) -> Message:
    return Message(
        message_id=MessageId(capsule.message_id),
        author=Author(kind="peer", name=name_of(capsule), id=capsule.sender_id),
        content=(TextContent(text=framed(capsule)),),
        delivery="queue",
        host_id=None if host_id is None else HostId(host_id),
    )


def _actor(capsule: Capsule) -> Actor:
    return Actor(kind="peer", id=capsule.sender_id, name=name_of(capsule))


def _drop(
    tx: Transaction,
    into: _Into,
    message_id: str,
    sender_id: str,
    reason: Literal["malformed", "unlinked"],
) -> None:
    dropped = PeerMessageDropped(
        message_id=MessageId(message_id), sender=SessionId(sender_id), reason=reason
    )
    into.append(tx, dropped)


# --- a session that runs ------------------------------------------------------------------------


def _waits(query: Query, grant: Grant) -> bool:
    return bool(query(SQL["something_waits"], grant.session_id))


def _drain(tx: Transaction, grant: Grant) -> None:
    seqs = _take_in(tx, _Into(session_id=grant.session_id, grant=grant))
    if seqs:
        tx.append(
            grant.session_id,
            Ack(admits=seqs),
            actor=SYSTEM,
            turn_id=grant.turn_id,
            fence=grant.fence,
        )


SOURCE = Source(name="peer inbox", order=Order.PEER_INBOX, drain=_drain, waiting=_waits)
"""What linked sessions have said, behind everything else. No call gives way to it."""


# --- a session that is idle ---------------------------------------------------------------------


def deliver(tx: Transaction, session_id: str, host_id: str) -> bool:
    """Makes what waits for an idle session triggers that `host_id` is to run; whether there are any now. A
    session that has an owner, a turn that waits for an approval, or prompts that were imported and nobody has
    let begin, is left to the boundary of its next turn."""
    if tx.one(SQL["is_idle"], session_id) is None:
        return False
    return bool(_take_in(tx, _Into(session_id=session_id, host_id=host_id)))
