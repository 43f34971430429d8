"""The safe point of a turn: every earlier tool call has its result, the next request is not built.

What waits for a session is taken in here and nowhere else, source by source in a fixed order
(DESIGN 4): interrupt, steering, mailbox, child reports, group messages, peer inbox. A source lives in
the store, so that "is there more?" and "the turn is over" are decided in one transaction.
"""

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, TypeAlias

from attrs import frozen

from callboard_rpc.events import Ack

from ..log.record import Record
from ..log.transaction import Transaction
from .projection import SQL
from .reservation import SYSTEM, Grant


class Order(IntEnum):
    """When a source is drained, among the others."""

    INTERRUPT = 10
    STEERING = 20
    MAILBOX = 30
    REPORTS = 40
    GROUP_MESSAGES = 50
    PEER_INBOX = 60


Query: TypeAlias = Callable[..., Sequence[tuple[Any, ...]]]
"""``query(sql, *params)``: `Transaction.all`, or `Log.glance`."""


def _never(_: Query, __: Grant) -> bool:
    return False


@frozen(kw_only=True)
class Source:
    """Something that can wait for a session.

    `drain` takes all of it into the log in a transaction; what it appends becomes context.
    `waiting` tells by a query whether there is anything, without changing it: on a glance before a
    boundary, and for good in the transaction that would end the turn. `supersedes` tells whether it is
    such that calls which have not begun give way to it, as they do to a steer (coordination 62).
    """

    name: str
    order: Order
    drain: Callable[[Transaction, Grant], None]
    waiting: Callable[[Query, Grant], bool]
    supersedes: Callable[[Query, Grant], bool] = _never


def drain_all(tx: Transaction, grant: Grant, sources: Sequence[Source]) -> list[Record]:
    """Drains the sources in order; what they appended. The caller asserts the fence."""
    before = len(tx.appended)
    for source in sorted(sources, key=lambda s: s.order):
        source.drain(tx, grant)
    return tx.appended[before:]


def anything_waiting(query: Query, grant: Grant, sources: Sequence[Source]) -> bool:
    return any(source.waiting(query, grant) for source in sources)


def anything_superseding(query: Query, grant: Grant, sources: Sequence[Source]) -> bool:
    return any(source.supersedes(query, grant) for source in sources)


def _drain_steering(tx: Transaction, grant: Grant) -> None:
    seqs = tuple(seq for (seq,) in tx.all(SQL["pending_steers"], grant.session_id))
    if seqs:
        tx.append(
            grant.session_id,
            Ack(admits=seqs),
            actor=SYSTEM,
            turn_id=grant.turn_id,
            fence=grant.fence,
        )


STEERING = Source(
    name="steering",
    order=Order.STEERING,
    drain=_drain_steering,
    waiting=lambda query, grant: bool(query(SQL["pending_steers"], grant.session_id)),
)
"""What people said to the running turn: each message once, in the order in which it came."""
