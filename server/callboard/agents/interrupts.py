"""Interrupting one agent: steer, cancel, abort, and the parent's plain interrupt (seed 004, 1).

At most one steer or cancel waits for an agent's boundary, in its row; an abort waits for nothing. Each is
an event first; what runs the turn hears of it by the commit. The terminal record is an event, too, so a
restart still knows that the agent was stopped, and why. An agent that waits for its turn to begin (for a
slot, say) is about to run, and can be stopped and corrected like one that does.
"""

from collections.abc import Sequence

from attrs import frozen

from callboard_rpc.agents import InterruptOutcome
from callboard_rpc.common import Actor, InterruptId, MessageId, TurnId, Usage
from callboard_rpc.events import (
    Ack,
    AgentInterruptConsumed,
    AgentInterrupted,
    AgentInterruptRequested,
    Author,
    CancelRequested,
    Directive,
    InterruptKind,
    InterruptOrigin,
    InterruptVerb,
)
from callboard_rpc.sessions import CancelScope

from ..config.settings import AgentSettings
from ..log.clock import later
from ..log.text import well_formed
from ..log.transaction import Transaction
from ..sessions.inbox import deliveries
from ..sessions.inbox import runs as inbox_runs
from ..sessions.projection import SQL as SESSION_SQL
from ..turns import parking
from ..turns.boundary import Order, Query, Source
from ..turns.finish import Ending, Hook
from ..turns.projection import SQL as TURN_SQL
from ..turns.reservation import SYSTEM, Grant
from .frames import element, reason_of
from .mail import must_be_open
from .naming import invalid
from .projection import SQL, find, find_interrupted
from .state import AgentState

WIND_DOWN_REQUESTS = 2
"""Model requests that an agent has after it was told of a cancel (interrupts-and-peers 5)."""


@frozen(kw_only=True)
class Verb:
    """What is done to an agent, by whom and why. `grant` is the run whose call does it, where one does."""

    kind: InterruptVerb
    by: Actor
    origin: InterruptOrigin
    reason: str | None = None
    grant: Grant | None = None


@frozen(kw_only=True)
class Interrupted:
    """What came of it. `pending` is what the agent will be told; `ended` are agents whose parked turns
    were ended with it."""

    outcome: InterruptOutcome
    pending: InterruptKind | None = None
    ended: tuple[str, ...] = ()


def checked(tx: Transaction, kind: InterruptVerb, reason: str | None) -> str | None:
    """The reason as it is kept (`frames.reason_of`). Raises invalidParams for a steer or a cancel without
    one."""
    text = None if reason is None else reason_of(tx.writing.redact, well_formed(reason))
    if not text and kind in ("steer", "cancel"):
        raise invalid("reason", f"a {kind} needs a reason: it is what the agent is told")
    return text or None


def interrupt(
    tx: Transaction,
    agent_id: str,
    verb: Verb,
    settings: AgentSettings,
    *,
    host_id: str,
    hooks: Sequence[Hook] = (),
) -> Interrupted:
    """Interrupts one agent, in one transaction. Raises agentNotFound, agentClosed, invalidParams."""
    agent = must_be_open(tx, agent_id)
    reason = checked(tx, verb.kind, verb.reason)
    # one that has not begun has nothing to wind down
    at_once = verb.kind == "cancel" and (agent.status == "starting" or _is_about_to(tx, agent))
    if verb.kind in ("steer", "cancel") and not at_once:
        done = _tell_later(tx, agent, verb, reason, settings)
    else:
        done = _end_now(tx, agent, verb, reason, host_id, hooks)
    tx.decided(outcome=done.outcome, pending=done.pending)
    return done


def _is_about_to(tx: Transaction, agent: AgentState) -> bool:
    """Whether a turn of an agent that is at rest was asked for, and has not begun."""
    if not agent.is_terminal or agent.status == "closed":
        return False
    waits = tx.one(TURN_SQL["goes_on"], agent.agent_id) is not None
    return waits or inbox_runs.is_asked(tx.all, agent.agent_id)


def _has_turn(tx: Transaction, agent: AgentState) -> bool:
    """Whether there is a turn to be interrupted, or will be one."""
    return agent.status in ("running", "starting") or _is_about_to(tx, agent)


def _request(
    tx: Transaction, agent: AgentState, verb: Verb, reason: str | None, deadline_at: str | None
) -> None:
    tx.append(
        agent.agent_id,
        AgentInterruptRequested(
            interrupt_id=InterruptId(tx.new_id("int")),
            kind=verb.kind,
            origin=verb.origin,
            reason=reason,
            deadline_at=deadline_at,
        ),
        actor=verb.by,
    )


# --- steer and cancel ---------------------------------------------------------------------------


def _tell_later(
    tx: Transaction, agent: AgentState, verb: Verb, reason: str | None, settings: AgentSettings
) -> Interrupted:
    """The newest steer wins; a cancel takes a steer's place; a steer behind a cancel, or behind an abort,
    is ignored and says so (interrupts-and-peers 1-3)."""
    if not _has_turn(tx, agent) or _is_ending(tx, agent):
        return Interrupted(outcome="already_finished")
    waits = None if agent.pending is None else agent.pending.kind
    if waits in ("abort", "interrupt"):
        return Interrupted(outcome="ignored")
    if verb.kind == "steer" and (waits == "cancel" or agent.winding is not None):
        return Interrupted(outcome="ignored", pending="cancel" if waits == "cancel" else None)
    if verb.kind == "cancel" and agent.winding is not None:
        return Interrupted(outcome="ignored")  # it winds down already, and gets no more time (6)
    deadline_at = None
    if verb.kind == "cancel":
        deadline_at = later(tx.now(), settings.cancel_grace_s)
    _request(tx, agent, verb, reason, deadline_at)
    return Interrupted(outcome="delivered", pending="cancel" if verb.kind == "cancel" else "steer")


def _is_ending(tx: Transaction, agent: AgentState) -> bool:
    """Whether the agent's turn takes in nothing more: how it ends is decided."""
    owner = tx.one(TURN_SQL["owner"], agent.agent_id)
    return owner is not None and owner[5] == "finalizing"


# --- abort and interrupt ------------------------------------------------------------------------


def _end_now(
    tx: Transaction,
    agent: AgentState,
    verb: Verb,
    reason: str | None,
    host_id: str,
    hooks: Sequence[Hook],
) -> Interrupted:
    """Ends the agent's turn, and those of all below it: nobody would hear what they come to
    (interrupts-and-peers 19). Their reports wake nobody, then, as when a person cancels a tree."""
    below = [each for (each,) in tx.all(SESSION_SQL["descendants"], agent.agent_id)]
    had_turn = _has_turn(tx, agent)
    if not had_turn and verb.kind == "interrupt":
        _request(tx, agent, verb, reason, None)
        why = reason or "it was interrupted while idle"
        tx.append(agent.agent_id, AgentInterrupted(reason=why), actor=verb.by)
    ended: list[str] = []
    for each in (agent.agent_id, *below):
        target = find(tx.all, each)
        scope: CancelScope = "turn" if each == agent.agent_id else "tree"
        if target is not None and _end_turn(tx, target, verb, reason, scope, host_id, hooks):
            ended.append(each)
    outcome: InterruptOutcome = "aborted" if had_turn else "already_finished"
    return Interrupted(outcome=outcome, ended=tuple(ended))


def _end_turn(
    tx: Transaction,
    agent: AgentState,
    verb: Verb,
    reason: str | None,
    scope: CancelScope,
    host_id: str,
    hooks: Sequence[Hook],
) -> bool:
    """Asks whoever runs the agent's turn to stop it, once; ends one that is parked, or has not begun. True
    when something may wait behind it now."""
    if not _has_turn(tx, agent):
        return False
    is_asked = agent.pending is not None and agent.pending.kind in ("abort", "interrupt")
    if not is_asked:
        _request(tx, agent, verb, reason, None)
    owner = tx.one(TURN_SQL["owner"], agent.agent_id)
    turn_id = None if owner is None or owner[1] is None else owner[3]
    turn_id = turn_id or tx.value(TURN_SQL["parked_turn"], agent.agent_id)
    if turn_id is None:
        why = reason or "it was stopped before it began"
        tx.append(agent.agent_id, AgentInterrupted(reason=why), actor=verb.by)
        _take_back(tx, agent.agent_id)
        return False
    why = reason or "the agent was stopped"
    if not (is_asked and _is_told(tx, agent.agent_id, turn_id, scope)):
        tx.append(
            agent.agent_id,
            CancelRequested(scope=scope, turn_id=TurnId(turn_id), reason=why),
            actor=verb.by,
            turn_id=turn_id,
        )
    ending = Ending(outcome="cancelled", usage=Usage(partial=True), by=verb.by, reason=why)
    return parking.end_parked(tx, agent.agent_id, host_id, ending, hooks=hooks) is not None


def _take_back(tx: Transaction, agent_id: str) -> None:
    """Lets nothing that waits for an agent begin a turn any more. It stays where it is, for the turn that
    somebody begins next."""
    tx.execute(SQL["hold"], agent_id)
    deliveries.mute(tx, agent_id)


def _is_told(tx: Transaction, agent_id: str, turn_id: str, scope: CancelScope) -> bool:
    """Whether whoever runs a turn that is to stop has no more to be told: that all around it stops, too,
    is news once."""
    return scope == "turn" or tx.one(SQL["cancelled_with_tree"], agent_id, turn_id) is not None


# --- the boundary -------------------------------------------------------------------------------

_STEER = (
    "Go on with your task, with this correction. Keep what you have done, unless it says otherwise."
)
_CANCEL = (
    "Stop your task. Start nothing new: say in your next answer what is done, and what is left, and end. "
    "After two answers at the most you will be stopped."
)


def _waiting(query: Query, grant: Grant) -> AgentState | None:
    agent = find_interrupted(query, grant.session_id)
    if agent is None or agent.pending is None or agent.pending.kind not in ("steer", "cancel"):
        return None
    return agent


def _drain(tx: Transaction, grant: Grant) -> bool:
    """Tells the agent of the pending interrupt, and empties its slot. True when it is a cancel: then
    nothing else is taken in at this boundary (interrupts-and-peers 33)."""
    agent = _waiting(tx.all, grant)
    if agent is None or agent.pending is None:
        return False
    told, cancels = agent.pending, agent.pending.kind == "cancel"
    person = told.origin == "user"
    record = tx.append(
        grant.session_id,
        Directive(
            message_id=MessageId(tx.new_id("msg")),
            author=Author(kind="person", name="person")
            if person
            else Author(kind="agent", name="parent", id=agent.parent_id),
            text=element(
                "agent-interrupt",
                told.reason or "",
                kind=told.kind,
                origin="user" if person else "parent",
            ),
            context=_CANCEL if cancels else _STEER,
        ),
        actor=SYSTEM,
        turn_id=grant.turn_id,
        fence=grant.fence,
    )
    for event in (
        Ack(admits=(record.seq,)),
        AgentInterruptConsumed(
            interrupt_id=told.interrupt_id,
            kind="cancel" if cancels else "steer",
            turn_id=TurnId(grant.turn_id),
        ),
    ):
        tx.append(grant.session_id, event, actor=SYSTEM, turn_id=grant.turn_id, fence=grant.fence)
    return cancels


def _requests_left(query: Query, grant: Grant) -> int | None:
    """How many requests an agent that winds down may yet make; None for one that does not."""
    agent = find_interrupted(query, grant.session_id)
    if agent is None or agent.winding is None:
        return None
    rows = query(SQL["requests_since"], grant.session_id, grant.turn_id, agent.winding.interrupt_id)
    return max(0, WIND_DOWN_REQUESTS - rows[0][0])


SOURCE = Source(
    name="interrupts",
    order=Order.INTERRUPT,
    drain=_drain,
    waiting=lambda query, grant: _waiting(query, grant) is not None,
    supersedes=lambda query, grant: _waiting(query, grant) is not None,
    requests_left=_requests_left,
)
"""What an agent is told by who interrupts it, before anything else."""


# --- the clock ----------------------------------------------------------------------------------


def overdue(tx: Transaction, now: str) -> list[str]:
    """Agents whose grace is over by the server's clock."""
    return [agent_id for (agent_id,) in tx.all(SQL["overdue"], now)]
