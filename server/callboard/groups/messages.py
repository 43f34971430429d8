"""Messages in a group: information, read once by each recipient, waking nobody (coordination 8.8).

Queued in the root's log with those who get it. A recipient's turn takes what waits for it in at a boundary:
what its model reads and the marker that it was delivered are one transaction, in the recipient's session.
"""

from attrs import frozen

from callboard_rpc.common import MessageId, SessionId
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import (
    Ack,
    Author,
    Directive,
    GroupMessageDelivered,
    GroupMessageQueued,
    GroupTarget,
)
from callboard_rpc.groups import MAX_MESSAGES

from ..log.text import redacted, well_formed
from ..log.transaction import Transaction
from ..turns.boundary import Order, Query, Source
from ..turns.reservation import SYSTEM, Grant
from .frames import message_frame
from .membership import GroupRow, Participant, append, join, may_act, must_be_member, the_group
from .projection import SQL
from .tasks import invalid, names

MAX_BYTES = 4_000
"""UTF-8 bytes of one message (coordination 104)."""
MAX_PER_BOUNDARY = 64


@frozen(kw_only=True)
class Sent:
    message_id: MessageId
    recipients: tuple[SessionId, ...]


def checked_text(text: str) -> str:
    """Trimmed. Raises invalidParams for a blank one, messageTooLong."""
    clean = well_formed(text).strip()
    if not clean:
        raise invalid("text", "the message is blank; say something")
    size = len(clean.encode())
    if size > MAX_BYTES:
        raise CallboardError(
            "messageTooLong",
            f"the message has {size} bytes; {MAX_BYTES} are allowed: put the material into a file and name it",
            data={"bytes": size, "limit": MAX_BYTES},
        )
    return clean


def send(
    tx: Transaction, who: Participant, to: GroupTarget, agent_id: str | None, text: str
) -> Sent:
    """Queues a message; its sender is a member from here on. `text` has been checked. Raises invalidParams,
    notAMember, agentClosed, limitReached, and what `may_act` does."""
    may_act(tx, who)
    _check_target(who, to, agent_id)
    if tx.value(SQL["count_messages"], who.root_id) >= MAX_MESSAGES:
        raise CallboardError(
            "limitReached", f"{MAX_MESSAGES} messages were sent in this group, and no more may be"
        )
    if agent_id is not None:
        must_be_member(tx, who.root_id, agent_id)
    group = the_group(tx, who)
    join(tx, who, group, who.agent_id)
    recipients = _recipients(tx, who, to, agent_id)
    message_id = MessageId(tx.new_id("msg"))
    append(tx, who, _queued(message_id, group, who, to, recipients, text))
    return Sent(message_id=message_id, recipients=recipients)


def _queued(
    message_id: MessageId,
    group: GroupRow,
    who: Participant,
    to: GroupTarget,
    recipients: tuple[SessionId, ...],
    text: str,
) -> GroupMessageQueued:
    return GroupMessageQueued(
        message_id=message_id,
        group_id=group.group_id,
        sender=who.agent_id,
        to=to,
        recipients=recipients,
        text=text,
    )


def _check_target(who: Participant, to: GroupTarget, agent_id: str | None) -> None:
    if (to == "agent") != (agent_id is not None):
        raise invalid(
            "agentId",
            "agent_id names the member that is written to: it goes with to 'agent', and with nothing else",
        )
    if agent_id == who.agent_id or (to == "root" and who.is_root):
        raise invalid("to", "that is yourself; write to somebody else")


def _recipients(
    tx: Transaction, who: Participant, to: GroupTarget, agent_id: str | None
) -> tuple[SessionId, ...]:
    """To the group: those who are members now and can still read something, and the root, without the
    sender (DESIGN 6)."""
    match to:
        case "agent":
            assert agent_id is not None
            return (SessionId(agent_id),)
        case "root":
            return (who.root_id,)
        case "group":
            members = [SessionId(each) for (each,) in tx.all(SQL["open_members"], who.root_id)]
            return tuple(each for each in (who.root_id, *members) if each != who.agent_id)


# --- the boundary -------------------------------------------------------------------------------


def _waits(query: Query, grant: Grant) -> bool:
    return bool(query(SQL["something_waits"], grant.session_id))


def _drain(tx: Transaction, grant: Grant) -> None:
    """Each message as one that the model reads, with its marker, in the order in which they were sent."""
    rows = tx.all(SQL["waiting"], grant.session_id, MAX_PER_BOUNDARY)
    if not rows:
        return
    root_id: str = tx.value(SQL["root_of"], grant.session_id)
    named = names(tx.all, root_id)
    seqs: list[int] = []
    for message_id, sender, target, text, group_id, group_name in rows:
        name = named(sender)
        record = tx.append(
            grant.session_id,
            Directive(
                message_id=MessageId(tx.new_id("msg")),
                author=Author(kind="agent", name=name, id=sender),
                text=message_frame(
                    redacted(tx.writing.redact, text), sender=name, to=target, group=group_name
                ),
            ),
            actor=SYSTEM,
            turn_id=grant.turn_id,
            fence=grant.fence,
        )
        seqs.append(record.seq)
        tx.append(
            grant.session_id,
            GroupMessageDelivered(message_id=message_id, group_id=group_id, sender=sender),
            actor=SYSTEM,
            turn_id=grant.turn_id,
            fence=grant.fence,
        )
    tx.append(
        grant.session_id,
        Ack(admits=tuple(seqs)),
        actor=SYSTEM,
        turn_id=grant.turn_id,
        fence=grant.fence,
    )


SOURCE = Source(
    name="group messages", order=Order.GROUP_MESSAGES, drain=_drain, waiting=_waits, renews=False
)
"""What members of the group have said to an agent, behind everything else that waits for it."""
