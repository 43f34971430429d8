"""Messages between the children of one parent, as far as that parent allows (seed 004, 3).

Who may write to whom is a list in the event that made the sender; nothing changes it afterwards. It is
looked at when something is sent, and it has a direction. Nobody waits for a reply, so that no two can wait
for each other; and nobody is woken, so that they cannot keep each other going.
"""

from attrs import frozen

from callboard_rpc.common import Actor, MessageId, TextContent
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import AgentMessageQueued, Author, DeliveryKind

from ..log.text import redacted
from ..log.transaction import Transaction
from ..sessions.inbox import deliveries
from ..sessions.inbox.runs import is_asked
from ..sessions.inbox.state import Envelope
from ..tools.base import ToolFailure
from ..turns.reservation import Grant, assert_fence
from .frames import sibling_frame, sibling_marker
from .mail import must_be_open
from .naming import clean_name, shown
from .projection import SQL, digest_of, find
from .state import AgentState

KIND: DeliveryKind = "sibling"

MAX_IN_TREE = 2_000
"""Messages that the agents of one tree may send each other, ever."""
MAX_BY_ONE = 20
"""Those that one agent may send, ever."""
SAME_AMONG = 100
"""Among how many of a recipient's last messages the same one again is not sent twice."""
MAX_QUEUED = 50
"""Those that may wait for one agent."""


@frozen(kw_only=True)
class Sent:
    """What became of a message. `message_id` is None when the same one was sent before."""

    recipient: AgentState
    message_id: MessageId | None


def send(
    tx: Transaction,
    grant: Grant,
    to: str,
    text: str,
    *,
    expects_reply: bool,
    host_id: str,
) -> Sent:
    """Queues a message of a child's run for a sibling, which reads it at its next boundary.

    `text` has been checked (`mail.checked_short`). Raises `StaleFence`; agentNotFound for a session that is
    nobody's child; `ToolFailure`, whose text begins with a code, for everything that is refused, and then
    nothing is written (interrupts-and-peers 29, 35).
    """
    # as it is in the log, before it is framed and shortened
    text = redacted(tx.writing.redact, text)
    assert_fence(tx, grant)
    sender = must_be_open(tx, grant.session_id)
    recipient = _addressed(tx, sender, to, expects_reply)
    _must_have_room(tx, sender)
    if _said_lately(tx, sender, recipient, text):
        return Sent(recipient=recipient, message_id=None)
    queued: int = tx.value(SQL["count_queued"], recipient.agent_id)
    if queued >= MAX_QUEUED:
        raise ToolFailure(
            f"queue_full: {queued} messages wait for {recipient.name!r} already; try again when it has read "
            "some"
        )
    return Sent(recipient=recipient, message_id=_queue(tx, sender, recipient, text, host_id))


# --- may it be sent? ----------------------------------------------------------------------------


def _addressed(tx: Transaction, sender: AgentState, to: str, expects_reply: bool) -> AgentState:
    """Who is meant, if the sender may write to it; the checks in the order of the spec."""
    name = _as_name(to)
    if expects_reply:
        raise ToolFailure(
            "no_reply_between_agents: another agent cannot be waited for; send it with expect_reply false, "
            "or ask your parent"
        )
    if name not in sender.message_allow:
        allowed = ", ".join(repr(each) for each in sender.message_allow)
        whom = f"your parent, and {allowed}" if allowed else "your parent alone"
        raise ToolFailure(f"not_allowed: you may not write to {shown(to)}, but to {whom}")
    row = tx.one(SQL["of_name"], sender.parent_id, name)
    recipient = None if row is None else find(tx.all, row[0])
    if recipient is None:
        if tx.one(SQL["elsewhere_in_tree"], sender.root_id, name, sender.parent_id) is not None:
            raise ToolFailure(
                f"other_parent: {name!r} has another parent than you; ask your own to pass it on"
            )
        raise ToolFailure(
            f"not_spawned: there is no agent {name!r} yet; try again later, or tell your parent"
        )
    if not _will_read(tx, recipient):
        raise ToolFailure(
            f"recipient_finished: {name!r} has ended its work, and is not woken by a message; tell your "
            "parent"
        )
    return recipient


def _as_name(to: str) -> str:
    try:
        return clean_name(to)
    except CallboardError:
        return ""  # it is in nobody's list


def _will_read(tx: Transaction, recipient: AgentState) -> bool:
    """Whether a turn of the recipient runs, or will without a message's doing."""
    if recipient.closing or recipient.status == "closed":
        return False
    return recipient.status in ("starting", "running") or is_asked(tx.all, recipient.agent_id)


def _must_have_room(tx: Transaction, sender: AgentState) -> None:
    if tx.value(SQL["count_said_in_tree"], sender.root_id) >= MAX_IN_TREE:
        raise ToolFailure(
            f"limit_reached: the agents here have sent each other {MAX_IN_TREE} messages, and may send no more"
        )
    if tx.value(SQL["count_said_by"], sender.agent_id) >= MAX_BY_ONE:
        raise ToolFailure(
            f"limit_reached: you have sent {MAX_BY_ONE} messages to other agents, and may send no more; put "
            "what else there is to say into your report"
        )


def _said_lately(tx: Transaction, sender: AgentState, recipient: AgentState, text: str) -> bool:
    digest = digest_of(text)
    known = tx.one(SQL["said_lately"], recipient.agent_id, sender.agent_id, digest, SAME_AMONG)
    return known is not None


# --- the message --------------------------------------------------------------------------------


def _queue(
    tx: Transaction, sender: AgentState, recipient: AgentState, text: str, host_id: str
) -> MessageId:
    message_id = MessageId(tx.new_id("msg"))
    author = Author(kind="agent", name=sender.name, id=sender.agent_id)
    envelope = Envelope(
        delivery_id=message_id,
        content=(
            TextContent(text=sibling_frame(sender.name, text), meta={"audience": "model"}),
            TextContent(text=sibling_marker(sender.name, text), meta={"audience": "person"}),
        ),
        author=author,
        kind=KIND,
        meta={"agentId": sender.agent_id, "messageId": message_id},
    )
    by = Actor(kind="agent", id=sender.agent_id, name=sender.name)
    accepted = deliveries.deliver(tx, recipient.agent_id, envelope, by=by, host_id=host_id)
    tx.append(
        recipient.agent_id,
        AgentMessageQueued(message_id=message_id, kind="sibling", author=author, text=text),
        actor=by,
    )
    deliveries.leave(tx, recipient.agent_id, accepted.generation)
    return message_id
