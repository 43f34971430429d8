"""Turns that only wait for an approval, when nobody runs them any more.

A turn whose open calls cannot have begun has nothing to lose: it is parked instead of interrupted. Its
approvals keep their ids and can be answered from anywhere; the answer is the trigger that resumes it
(DESIGN 4 and 5).
"""

from collections.abc import Sequence

from attrs import evolve

from callboard_rpc.common import ApprovalId, TurnId
from callboard_rpc.events import CancelRequested, TurnParked

from ..log.record import Record
from ..log.transaction import SQL as LOG_SQL
from ..log.transaction import Transaction
from .finish import Ending, Hook, close_turn
from .projection import SQL
from .reservation import SYSTEM, Grant, take


def waits_only(tx: Transaction, grant: Grant) -> tuple[str, ...]:
    """The pending approvals of a turn none of whose open calls can have begun; empty otherwise.

    Calls of one answer that are all reads run together, so each must still be waiting. Any others run
    in order, so what matters is the first that is open: those behind it have not begun. A question that a program
    has asked can be answered by nobody when the program is gone, and such a turn has begun.
    """
    calls = tx.all(SQL["open_calls_with_approvals"], grant.turn_id)
    pending = tuple(approval for _, _, approval, state, _ in calls if state == "pending")
    questions = any(kind == "question" for *_, state, kind in calls if state == "pending")
    if not pending or questions:
        return ()
    effects = [e for (e,) in tx.all(SQL["effects_of_answer"], grant.session_id, grant.turn_id)]
    if all(effect == "read" for effect in effects):
        return pending if len(pending) == len(calls) else ()
    return pending if calls[0][3] == "pending" else ()


def cancelled(tx: Transaction, grant: Grant, ending: Ending) -> Ending | None:
    """The end of a turn that somebody had asked to stop when its server did: the wish holds, so it is
    neither parked nor merely interrupted. None when nobody had."""
    row = tx.one(SQL["cancel_wish"], grant.session_id, grant.turn_id)
    if row is None:
        return None
    record = Record.of(row)
    wish: CancelRequested = record.value
    reason = wish.reason or "the turn was cancelled"
    return evolve(ending, outcome="cancelled", by=record.by, reason=reason)


def is_cancelled(tx: Transaction, grant: Grant) -> bool:
    """Whether somebody had asked a turn to stop."""
    return tx.one(SQL["cancel_wish"], grant.session_id, grant.turn_id) is not None


def park(tx: Transaction, grant: Grant, approvals: tuple[str, ...]) -> None:
    """Parks a turn and gives its session back. The caller has asserted the fence."""
    tx.execute(LOG_SQL["delete_draft"], grant.turn_id)
    tx.append(
        grant.session_id,
        TurnParked(
            turn_id=TurnId(grant.turn_id),
            approval_ids=tuple(ApprovalId(each) for each in approvals),
        ),
        actor=SYSTEM,
        turn_id=grant.turn_id,
        fence=grant.fence,
    )
    tx.execute(SQL["release"], grant.session_id, grant.fence)


def answered(tx: Transaction, session_id: str) -> str | None:
    """The session's parked turn, when an answer to one of its approvals is in the log."""
    turn_id: str | None = tx.value(SQL["parked_turn"], session_id)
    if turn_id is None or tx.one(SQL["answered_of_turn"], turn_id) is None:
        return None
    return turn_id


def end_parked(
    tx: Transaction, session_id: str, host_id: str, ending: Ending, *, hooks: Sequence[Hook] = ()
) -> str | None:
    """Ends the session's parked turn, if it has one: its approvals are cancelled, nothing is run."""
    turn_id: str | None = tx.value(SQL["parked_turn"], session_id)
    if turn_id is None:
        return None
    fence = take(tx, session_id, host_id, kind="run", turn_id=turn_id)
    if fence is None:
        return None  # it was resumed just now: whoever has it is asked to stop
    grant = Grant(session_id=session_id, turn_id=turn_id, fence=fence)
    close_turn(tx, grant, ending, actor=SYSTEM, hooks=hooks)
    return turn_id


def is_parked(tx: Transaction, session_id: str) -> bool:
    """Whether a turn of the session waits, unowned, for an approval."""
    return tx.one(SQL["parked_turn"], session_id) is not None
