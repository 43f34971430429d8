"""Claims with a time limit, for a consumer that takes a delivery in by more than one step.

A turn of this house needs none: its boundary reads, writes and receipts a delivery in one transaction
under its fence. Who has to hand a delivery to another process first claims it, hands it over, and
acknowledges; meanwhile nobody else takes it, and nothing behind it overtakes it (execution 40).
"""

from typing import Any

from attrs import frozen

from callboard_rpc.errors import CallboardError

from ...log.clock import later
from ...log.log import Log
from ...log.transaction import Transaction
from ...turns.reservation import Grant, assert_fence
from .deliveries import Body, read_body
from .projection import SQL
from .runs import acknowledge, admit
from .state import MAX_LEASE_S, MAX_PER_DRAIN, Claim, Held, StaleClaim, claimed, renewed


@frozen(kw_only=True)
class Claimed:
    """A delivery that is ours for a time, and what it says."""

    claim: Claim
    body: Body


@frozen(kw_only=True)
class Receipt:
    """What became of a delivery: ``admitted`` by the message at `seq`, or ``dropped``."""

    generation: int
    digest: str
    state: str
    seq: int


class Leases:
    """Claims on the deliveries of sessions. Every change finishes, also when its caller is cancelled: the
    outcome is learnt by doing it again. What nobody has acknowledged when its claim is over waits for a turn
    again."""

    def __init__(self, log: Log) -> None:
        self._log = log

    async def claim(
        self, session_id: str, owner: str, *, lease_s: float, limit: int = MAX_PER_DRAIN
    ) -> tuple[Claimed, ...]:
        """Claims authorised deliveries in order of generation, up to the first that somebody else holds
        or that the running turn is about to take in.

        Claiming again what is ours already gives the same claims, no longer ones. `lease_s` is at most
        an hour. Raises invalidParams.
        """
        _check(owner, lease_s)

        def commit(tx: Transaction) -> tuple[Claimed, ...]:
            out: list[Claimed] = []
            for generation, delivery_id, *held in tx.all(
                SQL["claimable"], session_id, min(limit, MAX_PER_DRAIN)
            ):
                before = _held(held)
                now = tx.now()
                after = claimed(
                    before,
                    owner=owner,
                    now=now,
                    until=later(now, lease_s),
                    incarnation=tx.new_id("clm"),
                )
                if after is None:
                    break
                if after is not before:
                    _hold(tx, session_id, delivery_id, after)
                row = tx.one(SQL["envelope"], session_id, generation)
                assert row is not None
                claim = _claim(session_id, generation, delivery_id, after)
                out.append(Claimed(claim=claim, body=read_body(row[4])))
            return tuple(out)

        return await self._log.transact(commit)

    async def renew(self, claim: Claim, *, lease_s: float) -> Claim:
        """The claim for longer, as a new token; the old one is worth nothing any more, for an
        acknowledgement neither. Its end never moves back. Raises `StaleClaim`."""
        _check(claim.owner, lease_s)

        def commit(tx: Transaction) -> Claim:
            now = tx.now()
            after = renewed(
                _held_now(tx, claim),
                claim,
                now=now,
                until=later(now, lease_s),
                incarnation=tx.new_id("clm"),
            )
            _hold(tx, claim.session_id, claim.delivery_id, after)
            return _claim(claim.session_id, claim.generation, claim.delivery_id, after)

        return await self._log.transact(commit)

    async def acknowledge(self, grant: Grant, claim: Claim) -> Receipt:
        """Writes a claimed delivery into the history, by the run that holds `grant`.

        The very same acknowledgement can be repeated for ever, and tells the same receipt. Raises
        `StaleClaim` when the claim is not exactly the one that counts or its time is up, and
        `StaleFence`; then nothing is written.
        """

        def commit(tx: Transaction) -> Receipt:
            token = (
                claim.session_id,
                claim.delivery_id,
                claim.owner,
                claim.epoch,
                claim.incarnation,
            )
            if tx.one(SQL["settled"], *token) is None:
                held = _held_now(tx, claim)
                if not held.is_of(claim) or not held.is_live(tx.now()):
                    raise StaleClaim(claim.delivery_id, claim.owner)
                _admit(tx, grant, claim)
                tx.execute(SQL["settle_claim"], *token)
            row = tx.one(SQL["receipt"], claim.session_id, claim.delivery_id)
            assert row is not None  # it is written by the event that `_admit` appends
            return Receipt(generation=row[0], digest=row[1], state=row[2], seq=row[3])

        return await self._log.transact(commit)


def _admit(tx: Transaction, grant: Grant, claim: Claim) -> None:
    if grant.session_id != claim.session_id:
        raise CallboardError(
            "invalidParams",
            f"a run of session {grant.session_id} cannot take in a delivery of {claim.session_id}",
        )
    assert_fence(tx, grant)
    row = tx.one(SQL["envelope"], claim.session_id, claim.generation)
    assert row is not None  # its claim was just looked up
    acknowledge(tx, grant, [admit(tx, grant, row)])


def _check(owner: str, lease_s: float) -> None:
    if not owner:
        raise CallboardError("invalidParams", "a claim needs an owner's name")
    if not 0 < lease_s <= MAX_LEASE_S:
        raise CallboardError(
            "invalidParams", f"a lease of {lease_s:g} s is not within 0 to {MAX_LEASE_S:g} s"
        )


def _held(row: list[Any] | tuple[Any, ...]) -> Held:
    owner, epoch, incarnation, expires_at = row
    return Held(owner=owner, epoch=epoch, incarnation=incarnation, expires_at=expires_at)


def _held_now(tx: Transaction, claim: Claim) -> Held:
    row = tx.one(SQL["held"], claim.session_id, claim.delivery_id)
    if row is None:
        raise StaleClaim(claim.delivery_id, claim.owner)  # it is in the history already
    return _held(row)


def _hold(tx: Transaction, session_id: str, delivery_id: str, held: Held) -> None:
    tx.execute(
        SQL["hold"],
        held.owner,
        held.epoch,
        held.incarnation,
        held.expires_at,
        session_id,
        delivery_id,
    )


def _claim(session_id: str, generation: int, delivery_id: str, held: Held) -> Claim:
    assert held.owner is not None
    assert held.incarnation is not None
    assert held.expires_at is not None
    return Claim(
        session_id=session_id,
        generation=generation,
        delivery_id=delivery_id,
        owner=held.owner,
        epoch=held.epoch,
        incarnation=held.incarnation,
        expires_at=held.expires_at,
    )
