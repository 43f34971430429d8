"""The one end of a turn: everything that ends with it, in one transaction (execution 2, T_final).

Open calls get their results, pending approvals are cancelled, text that was cut off is kept, the
terminal event is written and the session is given back; whoever reads the log sees all or nothing.
"""

import logging
from collections.abc import Callable, Sequence
from typing import TypeAlias

import attrs
from attrs import frozen

from callboard_rpc.common import (
    Actor,
    CallId,
    Failure,
    MessageId,
    ToolStatus,
    TurnId,
    TurnOutcome,
    Usage,
)
from callboard_rpc.events import Author, Error, Message, ToolResult, TurnFinished

from ..approvals import service as approvals
from ..log.transaction import SQL as LOG_SQL
from ..log.transaction import Transaction
from .answer import Answer
from .boundary import Source, anything_waiting
from .projection import SQL
from .reservation import SYSTEM, Grant, assert_fence

_log = logging.getLogger(__name__)


@frozen(kw_only=True)
class Ending:
    """How a turn ended. `by` is who ended it, where somebody did."""

    outcome: TurnOutcome
    usage: Usage
    error: Failure | None = None
    final_text: str | None = None
    stop_reason: str | None = None
    iterations: int = 0
    duration_ms: int | None = None
    by: Actor = SYSTEM
    reason: str = "the turn ended"


Hook: TypeAlias = Callable[[Transaction, Grant, Ending], None]
"""Writes something of its own into the final transaction, once, when the outcome is known.

It runs in the writer's thread: it must be short and wait for nothing. One that raises is recorded and
its writes are undone; the turn ends all the same (execution 19, 20).
"""

_STATUS: dict[TurnOutcome, ToolStatus] = {
    "completed": "cancelled",
    "failed": "cancelled",
    "cancelled": "cancelled",
    "interrupted": "interrupted",
    "timed_out": "timed_out",
}

_TEXT: dict[ToolStatus, str] = {
    "cancelled": "Cancelled before it ended; what it did until then stands.",
    "interrupted": "Interrupted: the server stopped. Whether it took effect is not known.",
    "timed_out": "Stopped by the turn's time limit; what it did until then stands.",
}

_UNANSWERED = (
    "Not run: it was waiting for an approval, and nobody had answered when the turn ended."
)


def message_of(
    answer: Answer, author: Author, model: str, *, final: bool, partial: bool
) -> Message:
    """An answer as the event that keeps it."""
    return Message(
        message_id=MessageId(answer.message_id),
        author=author,
        content=tuple(answer.content),
        final=final,
        partial=partial,
        usage=answer.usage if answer.usage.requests else None,
        model=model,
        stop_reason=answer.stop,
    )


def close_turn(
    tx: Transaction, grant: Grant, ending: Ending, *, actor: Actor, hooks: Sequence[Hook] = ()
) -> None:
    """Writes the end of a turn. The caller has asserted the fence and written what was said last."""
    status = _STATUS[ending.outcome]
    waiting = approvals.waiting_calls(tx, grant.turn_id)
    for call_id, name in tx.all(SQL["open_calls_of_turn"], grant.turn_id):
        text = _UNANSWERED if call_id in waiting else _TEXT[status]
        tx.append(
            grant.session_id,
            ToolResult(call_id=CallId(call_id), name=name, status=status, text=text),
            actor=SYSTEM,
            turn_id=grant.turn_id,
            fence=grant.fence,
        )
    approvals.end_of_turn(
        tx,
        grant.turn_id,
        by=ending.by,
        via="restart" if ending.outcome == "interrupted" else "cancel",
        reason=ending.reason,
        fence=grant.fence,
    )
    for hook in hooks:
        fault = tx.contain(lambda hook=hook: hook(tx, grant, ending))
        if fault is not None:
            _log.error("a hook failed at the end of turn %s", grant.turn_id, exc_info=fault)
    if ending.error is not None:
        tx.append(
            grant.session_id,
            Error(error=ending.error),
            actor=actor,
            turn_id=grant.turn_id,
            fence=grant.fence,
        )
    tx.execute(LOG_SQL["delete_draft"], grant.turn_id)
    tx.append(
        grant.session_id,
        TurnFinished(
            turn_id=TurnId(grant.turn_id),
            outcome=ending.outcome,
            answered_through=tx.value(SQL["answered_through"], grant.session_id),
            usage=ending.usage,
            error=ending.error,
            final_text=ending.final_text,
            stop_reason=ending.stop_reason,
            iterations=ending.iterations,
            duration_ms=ending.duration_ms,
        ),
        actor=actor,
        turn_id=grant.turn_id,
        fence=grant.fence,
    )
    tx.execute(SQL["release"], grant.session_id, grant.fence)


def finalize(tx: Transaction, grant: Grant) -> None:
    """From here on the turn takes in nothing more: what is said to it now starts the next one. The
    caller has asserted the fence and knows how the turn ends."""
    tx.execute(SQL["set_state"], "finalizing", grant.session_id, grant.fence)


def decide_to_end(
    tx: Transaction,
    grant: Grant,
    said: Message | None,
    *,
    actor: Actor,
    sources: Sequence[Source],
) -> bool:
    """The first half of `complete`, for a turn of which somebody must hear before it ends.

    False means that something waits: what was said is committed and the turn goes on. True that it
    will end, and that nothing joins it any more; what was said belongs to the final transaction.
    """
    assert_fence(tx, grant)
    if not anything_waiting(tx.all, grant, sources):
        finalize(tx, grant)
        return True
    _say_meanwhile(tx, grant, said, actor)
    return False


def _say_meanwhile(tx: Transaction, grant: Grant, said: Message | None, actor: Actor) -> None:
    """What was meant to be the last of the turn, and is not."""
    _say(tx, grant, None if said is None else attrs.evolve(said, final=False), actor)


def _say(tx: Transaction, grant: Grant, said: Message | None, actor: Actor) -> None:
    if said is not None:
        tx.append(grant.session_id, said, actor=actor, turn_id=grant.turn_id, fence=grant.fence)
        tx.execute(LOG_SQL["delete_draft"], grant.turn_id)


def complete(
    tx: Transaction,
    grant: Grant,
    ending: Ending,
    said: Message | None,
    *,
    actor: Actor,
    sources: Sequence[Source],
    hooks: Sequence[Hook] = (),
) -> bool:
    """Ends the turn unless something waits for it; what was said is committed either way.

    False means that the turn goes on: decided in the same transaction in which a steer would have
    been accepted, so that none falls between (coordination 59).
    """
    assert_fence(tx, grant)
    if anything_waiting(tx.all, grant, sources):
        _say_meanwhile(tx, grant, said, actor)
        return False
    _say(tx, grant, said, actor)
    close_turn(tx, grant, ending, actor=actor, hooks=hooks)
    return True
