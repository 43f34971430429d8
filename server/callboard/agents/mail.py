"""Messages to a child from above: queue-only, or to go on with (coordination 5.4)."""

from attrs import frozen

from callboard_rpc.common import Actor, MessageId, TextContent, TurnId
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import AgentMessageQueued, Author

from ..log.text import well_formed
from ..log.transaction import Transaction
from ..sessions.inbox import deliveries
from ..sessions.inbox.state import ActiveNotified, Coalesced, Envelope
from ..turns.boundary import Query
from .naming import invalid, shown
from .projection import SQL, find
from .state import AgentState

MESSAGE_CHARS = 16_000
"""What agents may say to each other at once; longer is refused (interrupts-and-peers 2)."""


@frozen(kw_only=True)
class Queued:
    """A message that is durable. `asked` is None when somebody has to begin a turn for it now."""

    message_id: MessageId
    generation: int
    asked: ActiveNotified | Coalesced | None


def checked_text(text: str) -> str:
    """Raises invalidParams for a blank text."""
    clean = well_formed(text)
    if not clean.strip():
        raise invalid("text", "the message is blank; say something")
    return clean


def checked_short(text: str) -> str:
    """Something that one agent says to another. Raises invalidParams for a blank text, messageTooLarge."""
    clean = checked_text(text)
    if len(clean) > MESSAGE_CHARS:
        raise CallboardError(
            "messageTooLarge",
            f"the message has {len(clean)} characters, more than the {MESSAGE_CHARS} allowed; put the "
            "material into a file of the workspace and name it",
            data={"limit": MESSAGE_CHARS},
        )
    return clean


def must_be_open(tx: Transaction, agent_id: str) -> AgentState:
    """Raises agentNotFound, agentClosed."""
    agent = find(tx.all, agent_id)
    if agent is None:
        raise not_found(agent_id)
    if agent.status == "closed" or agent.closing:
        raise CallboardError(
            "agentClosed", f"the agent {agent.name!r} ({agent_id}) is closed; spawn another one"
        )
    return agent


def not_found(agent: str) -> CallboardError:
    """One error for all that is not there, or not below the one who asks (interrupts-and-peers 9)."""
    return CallboardError(
        "agentNotFound", f"there is no agent {shown(agent)} below this session; list them"
    )


def send(
    tx: Transaction,
    agent_id: str,
    text: str,
    *,
    goes_on: bool,
    author: Author,
    by: Actor,
    host_id: str,
) -> Queued:
    """Queues a message for an agent: for its next boundary or turn, or (`goes_on`) for one that begins
    now, if none runs. Its event and its delivery are one transaction.

    Raises agentNotFound, agentClosed, and what `deliveries.deliver` does.
    """
    must_be_open(tx, agent_id)
    message_id = MessageId(tx.new_id("msg"))
    envelope = Envelope(
        delivery_id=message_id,
        content=(TextContent(text=text),),
        author=author,
        kind="continue" if goes_on else "information",
        policy="interrupt_wait" if goes_on else "respect_wait",
    )
    accepted = deliveries.deliver(tx, agent_id, envelope, by=by, host_id=host_id)
    tx.append(
        agent_id,
        AgentMessageQueued(
            message_id=message_id,
            kind="continue" if goes_on else "information",
            author=author,
            text=text,
        ),
        actor=by,
    )
    if not goes_on:
        deliveries.leave(tx, agent_id, accepted.generation)
        return Queued(message_id=message_id, generation=accepted.generation, asked=Coalesced())
    deliveries.authorise(tx, agent_id, accepted.generation)
    asked = deliveries.ask(tx, agent_id, accepted.generation, host_id=host_id)
    return Queued(message_id=message_id, generation=accepted.generation, asked=asked)


def taker(query: Query, agent_id: str, message_id: MessageId) -> TurnId | None:
    """The turn that has taken a message in, or that tries to."""
    rows = query(SQL["taker"], agent_id, message_id)
    return TurnId(rows[0][0]) if rows else None
