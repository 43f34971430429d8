"""How turns and inboxes meet: what wakes a session, what a boundary takes in, what a turn's end leaves.

Dispatch treats an asked-for delivery as it does a trigger: `due` tells of it, `begun` writes down, in the
transaction that takes the session, that a turn tries. The delivery becomes an event at that turn's first
boundary, with its receipt, under the turn's fence. `ended` is part of the turn's final transaction, and
decides there whether a successor is due: for what was asked meanwhile, and never twice for the same.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import orjson
from attrs import frozen

from callboard_rpc.common import Actor, MessageId
from callboard_rpc.convert import structure_lenient
from callboard_rpc.events import Ack, Author, Delivered, DeliveryKind, Message

from ...log.transaction import Transaction
from ...turns.boundary import Order, Query, Source
from ...turns.finish import Ending
from ...turns.reservation import SYSTEM, Grant
from .deliveries import Body, drop, read_body, set_aside_exhausted
from .projection import SQL
from .state import MAX_ATTEMPTS, MAX_PER_DRAIN

JOINED: frozenset[DeliveryKind] = frozenset({"sibling"})
"""What comes of these kinds by a boundary is one message, behind the others, however many there are."""

# --- dispatch -----------------------------------------------------------------------------------


def due(
    query: Query, session_id: str, host_id: str, now: str, *, adopts: bool = True
) -> DeliveryKind | None:
    """What the first delivery is for which this host has to begin a turn; None when there is none. One
    that `adopts` has to for those, too, that a host was to see to which is gone."""
    rows = query(SQL["due"], session_id, host_id, now, MAX_ATTEMPTS, adopts)
    return rows[0][0] if rows else None


def due_sessions(query: Query, host_id: str, now: str, *, adopts: bool = True) -> list[str]:
    """The sessions that nobody owns and in which something is `due`."""
    return [row[0] for row in query(SQL["due_sessions"], host_id, now, MAX_ATTEMPTS, adopts)]


def is_asked(query: Query, session_id: str) -> bool:
    """Whether somebody's wish that a turn takes something in is still open."""
    return bool(query(SQL["is_asked"], session_id))


def begun(tx: Transaction, grant: Grant, host_id: str) -> None:
    """A turn begins, for whatever reason: it tries what was asked. Counted before it runs, so that what
    brings the process down is not tried for ever. What it cannot take in, because a claim is in its way,
    it does not try: that is still asked when the claim is over."""
    set_aside_exhausted(tx, grant.session_id)
    tx.execute(SQL["tried"], grant.turn_id, host_id, grant.session_id, tx.now())


def begun_selected(
    tx: Transaction, grant: Grant, host_id: str, generation: int, now: str
) -> DeliveryKind | None:
    """A turn begins that is to take in one delivery only; its kind, or None when that one does not wait, is
    not authorised, or is somebody's by a claim.

    What was asked before starts no turn by itself any more: what is asked from here on does, when this
    one has ended (execution 31, 32).
    """
    reach = tx.one(SQL["reach"], grant.session_id, grant.turn_id)
    if reach is None or generation > reach[0]:
        return None
    kind = tx.value(SQL["selectable"], grant.session_id, generation, now)
    if kind is not None:
        tx.execute(SQL["hold_back"], grant.session_id)
        tx.execute(SQL["try_selected"], grant.turn_id, host_id, grant.session_id, generation)
        tx.execute(SQL["select"], generation, grant.turn_id, grant.session_id)
    return kind


def ended(tx: Transaction, grant: Grant, ending: Ending) -> None:
    """A `Hook`. What the turn tried and did not take in is not tried again by itself in this process
    (execution 38); what was asked after the turn began is, by its successor (37)."""
    del ending  # however it ended
    tx.execute(SQL["spent"], grant.session_id, grant.turn_id)


def recover(tx: Transaction, host_id: str) -> None:
    """Asks anew for what was authorised under hosts that are gone, and sets aside what has been tried
    too often. What nobody authorised stays inert (execution 34)."""
    for (session_id,) in tx.all(SQL["forgotten"], MAX_ATTEMPTS):
        set_aside_exhausted(tx, session_id)
        tx.execute(SQL["ask_again"], host_id, session_id)


def to_recover(query: Query) -> bool:
    return bool(query(SQL["forgotten"], MAX_ATTEMPTS))


# --- the boundary -------------------------------------------------------------------------------


def source(now: Callable[[], str], *, withheld: Collection[DeliveryKind] = ()) -> Source:
    """The inbox as what waits for a turn: in order of generation, up to what is authorised, and not
    beyond what somebody holds by a claim. What is of a `withheld` kind lies where it is, as if it were
    not there."""
    held = f",{','.join(sorted(withheld))},"  # a list for SQL, which looks for `,kind,` in it

    def waiting(query: Query, grant: Grant) -> bool:
        return bool(_admissible(query, grant, now(), 1, held))

    def supersedes(query: Query, grant: Grant) -> bool:
        reach = query(SQL["reach"], grant.session_id, grant.turn_id)
        if not reach or not reach[0][1]:
            return False
        first = _admissible(query, grant, now(), 1, held)
        return bool(first) and first[0] <= reach[0][1]

    def drain(tx: Transaction, grant: Grant) -> None:
        joined: list[tuple[Any, ...]] = []
        seqs: list[int] = []
        for generation in _admissible(tx.all, grant, now(), MAX_PER_DRAIN, held):
            row = tx.one(SQL["envelope"], grant.session_id, generation)
            assert row is not None
            if row[3] in JOINED:
                joined.append(row)
            else:
                seqs += _take_in(tx, grant, [row])
        seqs += _take_in(tx, grant, joined)
        if seqs:
            acknowledge(tx, grant, seqs)

    return Source(
        name="inbox", order=Order.MAILBOX, drain=drain, waiting=waiting, supersedes=supersedes
    )


def _admissible(query: Query, grant: Grant, now: str, limit: int, withheld: str) -> list[int]:
    reach = query(SQL["reach"], grant.session_id, grant.turn_id)
    if not reach:
        return []  # nothing was ever delivered, as in most sessions
    activated, _, selected = reach[0]
    if selected is not None:
        rows = query(SQL["selected"], grant.session_id, selected, now)
    else:
        rows = query(SQL["admissible"], grant.session_id, activated, now, limit, withheld)
    return [generation for (generation,) in rows]


def _take_in(tx: Transaction, grant: Grant, rows: Sequence[tuple[Any, ...]]) -> list[int]:
    """The seq of the message that these deliveries became. One that cannot be read is set aside, and the
    others are not kept up by it."""
    good: list[_Read] = []
    for row in rows:
        try:
            good.append(_read(*row))
        except Exception as fault:
            reason = f"it cannot be read: {type(fault).__name__}"
            drop(tx, grant.session_id, [row[:4]], by=SYSTEM, reason=reason)
    return [_admit(tx, grant, good)] if good else []


@frozen(kw_only=True)
class _Read:
    """A delivery out of the inbox, and who sent it."""

    delivered: Delivered
    body: Body
    actor: Actor


def _read(
    delivery_id: str, generation: int, digest: str, kind: DeliveryKind, body: str, actor: str
) -> _Read:
    return _Read(
        delivered=Delivered(
            delivery_id=delivery_id, generation=generation, digest=digest, kind=kind
        ),
        body=read_body(body),
        actor=structure_lenient(orjson.loads(actor), Actor),
    )


def _admit(tx: Transaction, grant: Grant, reads: Sequence[_Read]) -> int:
    """Several deliveries are one message, whose author and actor are those of the first only if they
    are of all."""
    first = reads[0]
    alone = all(each.body.author == first.body.author for each in reads)
    message = Message(
        message_id=MessageId(tx.new_id("msg")),
        author=first.body.author if alone else Author(kind="system", name="inbox"),
        content=tuple(block for each in reads for block in each.body.content),
        delivered=first.delivered,
        joined=tuple(each.delivered for each in reads[1:]),
        meta=first.body.meta if len(reads) == 1 else {"parts": [each.body.meta for each in reads]},
    )
    record = tx.append(
        grant.session_id,
        message,
        actor=first.actor if alone else SYSTEM,
        turn_id=grant.turn_id,
        fence=grant.fence,
    )
    return record.seq


def admit(tx: Transaction, grant: Grant, row: tuple[Any, ...]) -> int:
    """Writes a delivery (its row of ``envelope``) into the history and returns its seq; its receipt is
    written, and its row taken out, by the event. The caller asserts the fence, and `acknowledge`s it in the
    same transaction."""
    return _admit(tx, grant, [_read(*row)])


def acknowledge(tx: Transaction, grant: Grant, seqs: list[int]) -> None:
    """Makes admitted deliveries context, in this place."""
    tx.append(
        grant.session_id,
        Ack(admits=tuple(seqs)),
        actor=SYSTEM,
        turn_id=grant.turn_id,
        fence=grant.fence,
    )
