"""What is to be committed together with something that others write.

Whoever asks for work and must know for certain, even after a crash, whether it was done, sets
`ALONGSIDE` around it. The transaction that decides what was asked says so (`Transaction.decided`),
and what is to be known is written with it.
"""

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol, TypeVar

from callboard_rpc.common import Json

if TYPE_CHECKING:
    from .transaction import Transaction

T = TypeVar("T")


class Beside(Protocol):
    """What is told of the transactions that are submitted in a context. Both are called in the
    writer's thread, and undo the whole transaction by raising."""

    def before(self, tx: "Transaction") -> None:
        """A transaction begins; it may find out here that there is nothing to do any more."""
        ...

    def decided(self, tx: "Transaction", outcome: Json) -> None:
        """This transaction does what was asked; `outcome` tells what came of it, as JSON."""
        ...


ALONGSIDE: ContextVar[Beside | None] = ContextVar("callboard_alongside", default=None)


def joined(function: "Callable[[Transaction], T]") -> "Callable[[Transaction], T]":
    """`function`, and what is to be committed alongside."""
    beside = ALONGSIDE.get()
    if beside is None:
        return function

    def both(tx: "Transaction") -> T:
        beside.before(tx)
        tx.beside = beside
        return function(tx)

    return both
