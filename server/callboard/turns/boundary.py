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


def _no_limit(_: Query, __: Grant) -> int | None:
    return None


@frozen(kw_only=True)
class Source:
    """Something that can wait for a session.

    `drain` takes all of it into the log in a transaction; what it appends becomes context. When it returns
    True, the sources behind it are left for the next boundary.
    `waiting` tells by a query whether there is anything, without changing it: on a glance before a
    boundary, and for good in the transaction that would end the turn. `supersedes` tells whether it is
    such that calls which have not begun give way to it, as they do to a steer (coordination 62).
    What comes of a source that `renews` gives the turn its steps anew, as a new wish does; mere information does
    not, or two agents could keep each other at work for ever.
    `requests_left` is asked after each boundary how many more the turn may make of its model; None is
    no limit.
    """

    name: str
    order: Order
    drain: Callable[[Transaction, Grant], bool | None]
    waiting: Callable[[Query, Grant], bool]
    supersedes: Callable[[Query, Grant], bool] = _never
    renews: bool = True
    requests_left: Callable[[Query, Grant], int | None] = _no_limit


def drain_all(tx: Transaction, grant: Grant, sources: Sequence[Source]) -> list[Record]:
    """Drains the sources in order; what they appended. The caller asserts the fence."""
    before = len(tx.appended)
    for source in sorted(sources, key=lambda s: s.order):
        if source.drain(tx, grant):
            break
    return tx.appended[before:]


def anything_waiting(query: Query, grant: Grant, sources: Sequence[Source]) -> bool:
    return any(source.waiting(query, grant) for source in sources)


def anything_renewing(query: Query, grant: Grant, sources: Sequence[Source]) -> bool:
    return anything_waiting(query, grant, [source for source in sources if source.renews])


def anything_superseding(query: Query, grant: Grant, sources: Sequence[Source]) -> bool:
    return any(source.supersedes(query, grant) for source in sources)


def requests_left(query: Query, grant: Grant, sources: Sequence[Source]) -> int | None:
    """How many requests the turn may yet make, as far as any source limits them."""
    limits = [source.requests_left(query, grant) for source in sources]
    return min((each for each in limits if each is not None), default=None)


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
