"""The gate before the end of a root's work: a piece of a transaction (coordination 8.9)."""

from callboard_rpc.events import CompletionChanged

from ..log.transaction import Transaction
from ..tools.display import one_line
from .membership import Participant, may_act
from .projection import SQL
from .tasks import MAX_TITLE_CHARS

_SHOWN = 6
"""How many unfinished tasks a refusal names."""


def complete(tx: Transaction, who: Participant, summary: str) -> str | None:
    """Appends to the session of whoever acts that all is implemented, unless something keeps it from being so:
    then that is returned, and nothing is written. Raises what `may_act` does."""
    may_act(tx, who)
    refusal = _refusal(tx, who)
    if refusal is not None:
        return refusal
    tx.append(
        who.agent_id,
        CompletionChanged(completion="implemented_not_verified", summary=summary),
        actor=who.by,
        turn_id=None if who.grant is None else who.grant.turn_id,
        fence=0 if who.grant is None else who.grant.fence,
    )
    return None


def _refusal(tx: Transaction, who: Participant) -> str | None:
    """A root's work is not complete while its group has required tasks that are neither completed nor
    cancelled. An agent, and a root without a group, has no such rows."""
    rows = tx.all(SQL["gate"], who.agent_id)
    if not rows:
        return None
    shown = ", ".join(
        f"{one_line(title, MAX_TITLE_CHARS)!r} [{status}]" for _, title, status in rows[:_SHOWN]
    )
    more = f", and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
    what, them = ("task that is", "it") if len(rows) == 1 else ("tasks that are", "them")
    return (
        f"the group {one_line(rows[0][0])!r} has {len(rows)} required {what} not done: {shown}{more}. "
        f"Have {them} completed, or cancel {them}"
    )
