"""What producers do with an inbox, as pieces of transactions: deliver, authorise, ask for a turn.

Each of them can stand in a transaction of its producer, beside the producer's own events. Who may send
to whom is the producer's to decide (children: the same root; peers: mutual consent); here counts only
that the session takes something in.
"""

from collections.abc import Sequence
from typing import Any

import orjson
from attrs import frozen

from callboard_rpc.common import Actor, Content, Json
from callboard_rpc.convert import structure_lenient, unstructure
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import Author, Delivered, DeliveriesDropped, DeliveryKind

from ...log.faults import no_session
from ...log.text import quoted
from ...log.transaction import Transaction
from ...turns.boundary import Query
from ..projection import SQL as SESSION_SQL
from ..reading import refuse_unless_open
from .projection import SQL
from .state import (
    MAX_ATTEMPTS,
    MAX_PENDING,
    Accepted,
    ActiveNotified,
    Coalesced,
    Envelope,
    Watermarks,
    body_of,
    digest_of,
)


@frozen(kw_only=True)
class Body:
    """What the inbox keeps of an envelope, as it is read back."""

    content: tuple[Content, ...]
    author: Author
    kind: DeliveryKind
    meta: Json | None = None


def deliver(
    tx: Transaction,
    session_id: str,
    envelope: Envelope,
    *,
    by: Actor,
    host_id: str,
    insist: bool = False,
) -> Accepted:
    """Puts an envelope into a session's inbox, where it lies inert until it is authorised.

    What must not get lost (a report) can `insist`: then an archived session takes it, too, and one in
    which too much waits already. The same id with the same content again returns the first generation, whatever became of it. Raises
    idempotencyConflict for another content under the same id, and then, in this order,
    sessionNotFound, sessionClosed, sessionArchived, queueFull; messageTooLarge and invalidParams come first.
    """
    body = tx.writing.redact(body_of(envelope).decode())
    delivery_id = _id_of(tx, envelope)
    digest = digest_of(body.encode())
    known = tx.one(SQL["known"], session_id, delivery_id)
    if known is not None:
        return _repeated(session_id, delivery_id, known, digest)
    _must_be_open(tx, session_id, archived_too=insist)
    waiting: int = 0 if insist else tx.value(SQL["pending"], session_id)
    if waiting >= MAX_PENDING:
        raise CallboardError(
            "queueFull",
            f"{waiting} deliveries wait in session {session_id}; try again when a turn has taken some in",
            retry_after_ms=5_000,
        )
    generation: int | None = tx.value(SQL["next_generation"], session_id)
    if generation is None:  # the first one, or the first since an import
        generation = tx.value(SQL["open_inbox"], session_id)
        assert generation is not None
    tx.execute(
        SQL["insert"],
        session_id,
        generation,
        delivery_id,
        digest,
        envelope.kind,
        envelope.policy,
        body,
        tx.writing.redact(orjson.dumps(unstructure(by)).decode()),
        tx.now(),
        host_id,
    )
    tx.bytes += len(body)
    return Accepted(generation=generation, repeated=False)


def _id_of(tx: Transaction, envelope: Envelope) -> str:
    """The id as the log can keep it. One that would be redacted there could not be found again."""
    quoted = orjson.dumps(envelope.delivery_id).decode()
    if tx.writing.redact(quoted) != quoted:
        raise CallboardError(
            "invalidParams", "the delivery's id holds what looks like a secret; use another one"
        )
    return envelope.delivery_id


def _repeated(session_id: str, delivery_id: str, known: tuple[Any, ...], digest: str) -> Accepted:
    generation, first = known
    if first != digest:
        raise CallboardError(
            "idempotencyConflict",
            f"session {session_id} has accepted another content as {quoted(delivery_id)}; use a new id",
        )
    return Accepted(generation=generation, repeated=True)


def _must_be_open(tx: Transaction, session_id: str, *, archived_too: bool) -> None:
    row = tx.one(SESSION_SQL["flags"], session_id)
    if row is None:
        raise no_session(session_id)
    archived = bool(row[1]) and not archived_too
    refuse_unless_open(session_id, closed=bool(row[0]), archived=archived)


def authorise(tx: Transaction, session_id: str, generation: int) -> Watermarks:
    """Lets turns take in everything up to `generation`. Starts none by itself, but for recovery: what
    was authorised is not forgotten when this process dies.

    A producer whose delivery ends a wait calls it when that wait is durably over, no earlier. Raises
    invalidParams for a generation that was never delivered.
    """
    row = tx.one(SQL["watermarks"], session_id, generation) or (0, 0, 0, None)
    so_far = Watermarks(delivered=row[0], interrupts=row[1], activated=row[2])
    reached = so_far.authorise(generation, row[3] or "respect_wait")
    tx.execute(SQL["set_watermarks"], reached.interrupts, reached.activated, session_id)
    return reached


def leave(tx: Transaction, session_id: str, generation: int) -> None:
    """Lets turns take a delivery in that begin for something else, or run already; this one begins
    none, now or at a restart."""
    authorise(tx, session_id, generation)
    tx.execute(SQL["leave"], session_id, generation)


def ask(
    tx: Transaction, session_id: str, generation: int, *, host_id: str
) -> ActiveNotified | Coalesced | None:
    """Asks that a turn takes a delivery in; None when somebody has to begin one (`Inbox.carry_out`).

    The wish is durable: a turn that ends without having taken the delivery in has a successor, once.
    Raises invalidParams for a generation that was not authorised.
    """
    activated, attempts, is_tried_now = tx.one(SQL["asked_of"], session_id, generation) or (
        0,
        None,
        0,
    )
    if not 1 <= generation <= activated:
        raise CallboardError(
            "invalidParams",
            f"generation {generation} of session {session_id} is not authorised; authorise it first",
        )
    if attempts is None:
        return Coalesced()  # a turn has taken it in
    if not is_tried_now:
        if attempts >= MAX_ATTEMPTS:
            set_aside_exhausted(tx, session_id)
            return Coalesced()
        tx.execute(SQL["ask"], host_id, session_id, generation)
    return _taker(tx.all, session_id, generation)


def outlook(query: Query, session_id: str, generation: int) -> ActiveNotified | Coalesced | None:
    """Who will take in a delivery that was asked for; None when nobody has the session."""
    if not query(SQL["waits"], session_id, generation):
        return Coalesced()
    return _taker(query, session_id, generation)


def _taker(query: Query, session_id: str, generation: int) -> ActiveNotified | Coalesced | None:
    rows = query(SQL["taker"], session_id, generation)
    if not rows:
        return None
    turn_id, kind, state, takes_another = rows[0]
    if kind != "run" or state == "finalizing" or takes_another:
        return Coalesced()
    return ActiveNotified(turn_id=turn_id)


# --- what will never be taken in ----------------------------------------------------------------


def mute(tx: Transaction, session_id: str) -> bool:
    """Takes back that turns were asked for; False when none was. The deliveries stay: the next turn takes
    them in."""
    return tx.execute(SQL["mute"], session_id) > 0


def drop_all(tx: Transaction, session_id: str, *, by: Actor, reason: str) -> None:
    """Ends what waits in the inbox of a session that no turn will ever run in again."""
    drop(tx, session_id, tx.all(SQL["all_of"], session_id), by=by, reason=reason)


def set_aside_exhausted(tx: Transaction, session_id: str) -> None:
    """Ends deliveries for which turns were begun, again and again, that ended before they could take
    them in: one that brings its process down is not tried for ever."""
    drop(
        tx,
        session_id,
        tx.all(SQL["exhausted"], session_id, MAX_ATTEMPTS),
        by=Actor(kind="system", id="callboard"),
        reason=f"{MAX_ATTEMPTS} turns ended before they could take it in; send it again under a new id",
    )


def drop(
    tx: Transaction,
    session_id: str,
    rows: Sequence[tuple[Any, ...]],
    *,
    by: Actor,
    reason: str,
) -> None:
    """Rows are delivery id, generation, digest, kind. An event tells of them; nothing else remains."""
    if rows:
        tx.append(
            session_id,
            DeliveriesDropped(
                deliveries=tuple(
                    Delivered(delivery_id=each, generation=generation, digest=digest, kind=kind)
                    for each, generation, digest, kind in rows
                ),
                reason=reason,
            ),
            actor=by,
        )


def read_body(text: str) -> Body:
    return structure_lenient(orjson.loads(text), Body)
