"""Who answers what waits in a session, and how much of it in one turn.

The agent of a session is its profile, and a turn answers all that waits; but what the clock has started is
a turn of its own, and features (rooms) may know better. Decided in the transaction that takes the session.
"""

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import TypeAlias

from attrs import frozen

from callboard_rpc.events import TriggerKind

from ..log.transaction import Transaction
from ..turns.projection import SQL as TURN_SQL


@frozen
class Pending:
    """A trigger that waits: the seq of its event, its kind, and how it was delivered."""

    seq: int
    kind: TriggerKind
    delivery: str


@frozen(kw_only=True)
class Answering:
    """The turn is `profile`'s, and admits these of the triggers; the others wait for the next one."""

    profile: str
    admitted: tuple[Pending, ...]

    @property
    def seqs(self) -> tuple[int, ...]:
        return tuple(each.seq for each in self.admitted)

    @property
    def kind(self) -> TriggerKind | None:
        """Of the oldest one; None for a turn that begins for the inbox alone."""
        return self.admitted[0].kind if self.admitted else None


Router: TypeAlias = Callable[[Transaction, str, Sequence[Pending]], Answering | None]
"""Says who answers in a session, given what waits there, oldest first; None where it has no say. It is asked
with nothing, too, when the turn is for the inbox."""


@frozen(kw_only=True)
class Addressed:
    """Whom a prompt is for. `joins`: the turn that runs may take it in as a steer, since it is the agent's that is
    meant, or nobody in particular is. `warning` tells whoever prompts that it did not reach whom it names."""

    to: str | None = None
    joins: bool = True
    warning: str | None = None


Addressing: TypeAlias = Callable[[Transaction, str, str | None], Addressed]
"""Says of a prompt, in the transaction that takes it, whom it is for: asked with the session, and the turn that
runs there. It may refuse the prompt."""


def to_whoever_is_there(_: Transaction, __: str, ___: str | None) -> Addressed:
    return Addressed()


ALONE: frozenset[TriggerKind] = frozenset({"schedule"})
"""Kinds of triggers that share no turn with others."""


def nobody_says(_: Transaction, __: str, ___: Sequence[Pending]) -> Answering | None:
    return None


def answering(tx: Transaction, session_id: str, routers: Sequence[Router]) -> Answering:
    """Who answers now. Steers that no turn has read join whichever is next."""
    pending = [Pending(*row) for row in tx.all(TURN_SQL["pending_triggers"], session_id)]
    for router in routers:
        found = router(tx, session_id, pending)
        if found is not None:
            return found
    profile: str = tx.value("SELECT profile FROM sessions WHERE session_id = ?", session_id)
    return Answering(profile=profile, admitted=tuple(together(pending)))


def together(pending: Sequence[Pending]) -> Sequence[Pending]:
    """The oldest of what waits, with all behind it that may share its turn."""
    if pending and pending[0].kind in ALONE:
        return pending[:1]
    return list(takewhile(lambda each: each.kind not in ALONE, pending))
