"""How a turn's end comes into the log, whatever became of its work.

The end that fits is worked out here, and it is written however long the store refuses: a full disk
must not lose a turn's end, nor leave its session busy.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from callboard_rpc.common import Actor, Failure
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import Message

from ..log.faults import StaleFence
from ..log.log import Log
from ..log.retrying import delays, may_pass
from ..log.text import well_formed
from ..log.transaction import Transaction
from ..models.base import ModelError
from .completion import CompletionHook, completed
from .finish import Ending, Hook, close_turn, finalize
from .live import Cause, LiveTurn
from .parking import cancelled, park, waits_only
from .projection import SQL
from .reservation import Grant, assert_fence

T = TypeVar("T")

_log = logging.getLogger(__name__)


async def write_end(
    log: Log,
    grant: Grant,
    ending: Ending,
    *,
    actor: Actor,
    said: Message | None = None,
    hooks: Sequence[Hook] = (),
    completion: Sequence[CompletionHook] = (),
) -> None:
    """Commits a turn's end, with what was said last; waits for a store that cannot write now.

    Does nothing when the turn was ended already: by its own last step, or by whoever took it over.
    """

    def begin(tx: Transaction) -> Ending | None:
        assert_fence(tx, grant)
        end = _end_or_park(tx, grant, ending)
        if end is not None:
            finalize(tx, grant)
        return end

    def commit(tx: Transaction) -> None:
        assert_fence(tx, grant)
        end = decided or _end_or_park(tx, grant, ending)
        if end is None:
            return
        if said is not None and not _was_said(tx, grant, said):
            tx.append(grant.session_id, said, actor=actor, turn_id=grant.turn_id, fence=grant.fence)
        close_turn(tx, grant, end, actor=actor, hooks=(*hooks, *outputs))

    outputs: Sequence[Hook] = ()
    decided: Ending | None = None
    if completion:
        decided = await _insist(log, grant, begin)
        if decided is None:
            return
        outputs = await completed(completion, grant, decided)
    await _insist(log, grant, commit)


def _end_or_park(tx: Transaction, grant: Grant, ending: Ending) -> Ending | None:
    """How a turn whose server stops really ends: cancelled, when somebody had asked for that; and not at
    all (None) when it has not begun what it waits for. Then it is parked, and goes on when it is
    answered."""
    if ending.outcome != "interrupted":
        return ending
    wish = cancelled(tx, grant, ending)
    if wish is not None:
        return wish
    waiting = waits_only(tx, grant)
    if not waiting:
        return ending
    park(tx, grant, waiting)
    return None


async def _insist(log: Log, grant: Grant, commit: Callable[[Transaction], T]) -> T | None:
    """Commits, however long the store refuses. None when the session is not ours any more, or when
    the store will never take it."""
    for delay in delays():
        try:
            return await log.transact(commit)
        except StaleFence:
            return None
        except CallboardError as error:
            if not may_pass(error):
                _log.error("the end of turn %s could not be written: %s", grant.turn_id, error)
                return None
            _log.warning("the end of turn %s waits for the store: %s", grant.turn_id, error)
        await asyncio.sleep(delay)
    return None


def _was_said(tx: Transaction, grant: Grant, message: Message) -> bool:
    """Whether the message is in the log already: its commit cannot be called back, so a turn that is
    stopped at that very moment may have said it and not know."""
    return (
        tx.one(SQL["message_of_turn"], grant.session_id, grant.turn_id, message.message_id)
        is not None
    )


def ending_of(live: LiveTurn, fault: BaseException | None, **figures: Any) -> Ending:
    """The end of a turn that did not come to one of its own: stopped from outside, or by a fault."""
    cause = live.cause
    if cause is not None:
        return Ending(
            outcome=cause.outcome,
            error=_failure_for(cause),
            by=cause.by,
            reason=cause.reason,
            **figures,
        )
    if fault is None:
        inside = "the turn's work was cancelled from inside"
        return Ending(outcome="interrupted", reason=inside, **figures)
    return Ending(outcome="failed", error=failure_of(fault, live.turn_id), **figures)


def _failure_for(cause: Cause) -> Failure | None:
    if cause.outcome != "timed_out":
        return None
    return Failure(kind="turnTimedOut", message=cause.reason, retryable=True)


def failure_of(fault: BaseException, turn_id: str) -> Failure:
    """What ended a turn, as data. Decided by type, never by text (execution 15)."""
    match fault:
        case ModelError():
            return fault.failure
        case CallboardError():
            return Failure(
                kind=fault.kind,
                message=fault.message,
                retryable=fault.spec.retryable,
                retry_after_ms=fault.retry_after_ms,
            )
        case BaseExceptionGroup() if len(fault.exceptions) == 1:
            return failure_of(fault.exceptions[0], turn_id)
        case _:
            _log.error("turn %s failed", turn_id, exc_info=fault)
            what = well_formed(str(fault))
            if len(what) > 1_000:  # not cut: nobody would know half of a secret
                what = "what it says is too long, and in the server's log"
            return Failure(
                kind="internal",
                message=f"{type(fault).__name__}: {what}" if what else type(fault).__name__,
            )
