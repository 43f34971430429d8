"""What is to be committed together with something that others write.

Whoever asks for work and must know for certain, even after a crash, whether it was done, sets
`ALONGSIDE` around it: the transaction that does the work then writes down that it did.
"""

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from .transaction import Transaction

T = TypeVar("T")

ALONGSIDE: ContextVar["Callable[[Transaction], None] | None"] = ContextVar(
    "callboard_alongside", default=None
)
"""Called in every transaction that is submitted in its context, when what it does is done: it sees
what was appended, may write more, and undoes the whole transaction by raising."""


def joined(function: "Callable[[Transaction], T]") -> "Callable[[Transaction], T]":
    """`function`, and what is to be committed alongside."""
    beside = ALONGSIDE.get()
    if beside is None:
        return function

    def both(tx: "Transaction") -> T:
        result = function(tx)
        beside(tx)
        return result

    return both
