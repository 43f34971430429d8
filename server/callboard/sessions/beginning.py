"""How a turn begins: what is written in the transaction that takes its session.

Each of these is a `begin` of `Reservations.reserve`: None says that there is nothing to do, and then
nothing is taken.
"""

from collections.abc import Callable, Sequence

from attrs import frozen

from callboard_rpc.common import HostId, Limits, TurnId
from callboard_rpc.events import Ack, Message, Trigger, TurnResumed, TurnStarted

from ..log.record import SELECT, Record
from ..log.transaction import Transaction
from ..turns import parking
from ..turns.projection import SQL as TURN_SQL
from ..turns.reservation import SYSTEM, Grant
from .answering import Answering, Router, answering, nobody_says
from .inbox import runs as inbox
from .projection import SQL


@frozen(kw_only=True)
class Begun:
    """What the reserving transaction found and wrote. `profile` is the agent that runs the turn."""

    session_id: str
    profile: str
    admitted: tuple[int, ...]
    limits: Limits | None
    resumed: bool = False
    """The turn was parked; its open calls come first."""


def _always(_: Transaction, __: str) -> bool:
    return True


def _nothing(_: Transaction, __: Grant) -> None:
    return None


@frozen(kw_only=True)
class Opening:
    """What a feature has to say of a new turn, in the transaction that takes the session.

    While `may_begin` says no, what waits in the session goes on waiting, and whoever has said no wakes
    the session when that is over. `begun` writes of the turn's beginning, `answers` says whose turn it is. A
    parked turn that goes on is no new one.
    """

    name: str
    may_begin: Callable[[Transaction, str], bool] = _always
    begun: Callable[[Transaction, Grant], None] = _nothing
    answers: Router = nobody_says


ModelOf = Callable[[str], str]
"""The model that a profile would use in the session now."""


def begin(
    tx: Transaction,
    grant: Grant,
    *,
    model: ModelOf,
    host_id: str,
    takes_up: bool,
    openings: Sequence[Opening] = (),
) -> Begun | None:
    """Begins what waits in a session and is for this host to run: a parked turn that was answered, else
    a new turn, which admits the triggers that are for it and is to take in the inbox. What a host has accepted
    that is gone is only for one that `takes_up`."""
    session_id = grant.session_id
    if not _is_open(tx, session_id):
        return None
    if parking.is_parked(tx, session_id):
        return _resume(tx, grant, host_id)
    if not _may_begin(tx, session_id, openings):
        return None
    delivery = inbox.due(tx.all, session_id, host_id, tx.now(), adopts=takes_up)
    if delivery is None and tx.one(TURN_SQL["ours_wait"], session_id, host_id, takes_up) is None:
        return None  # nothing waits, or only what another host has accepted and will run
    answers = answering(tx, session_id, [opening.answers for opening in openings])
    seqs = answers.seqs
    inbox.begun(tx, grant, host_id)
    trigger = Trigger(kind=answers.kind or delivery or "prompt", seqs=seqs)
    _started(tx, grant, trigger, answers, model, host_id, openings)
    if seqs:
        tx.append(
            session_id, Ack(admits=seqs), actor=SYSTEM, turn_id=grant.turn_id, fence=grant.fence
        )
    return Begun(
        session_id=session_id,
        profile=answers.profile,
        admitted=seqs,
        limits=_limits_of(tx, session_id, seqs),
    )


def begin_selected(
    tx: Transaction,
    grant: Grant,
    generation: int,
    *,
    model: ModelOf,
    host_id: str,
    openings: Sequence[Opening] = (),
) -> Begun | None:
    """Begins a turn that takes in one delivery of the inbox and nothing else that waits (execution 31);
    steers, which are for the running turn, aside."""
    session_id = grant.session_id
    if not _is_open(tx, session_id) or parking.is_parked(tx, session_id):
        return None
    if not _may_begin(tx, session_id, openings):
        return None
    kind = inbox.begun_selected(tx, grant, host_id, generation, tx.now())
    if kind is None:
        return None
    answers = answering(tx, session_id, [opening.answers for opening in openings])
    _started(tx, grant, Trigger(kind=kind), answers, model, host_id, openings)
    return Begun(session_id=session_id, profile=answers.profile, admitted=(), limits=None)


def _is_open(tx: Transaction, session_id: str) -> bool:
    flags = tx.one(SQL["flags"], session_id)
    return flags is not None and not flags[0]


def _may_begin(tx: Transaction, session_id: str, openings: Sequence[Opening]) -> bool:
    return all(opening.may_begin(tx, session_id) for opening in openings)


def _started(
    tx: Transaction,
    grant: Grant,
    trigger: Trigger,
    answers: Answering,
    model: ModelOf,
    host_id: str,
    openings: Sequence[Opening],
) -> None:
    session_id = grant.session_id
    tx.append(
        session_id,
        TurnStarted(
            turn_id=TurnId(grant.turn_id),
            index=tx.value(TURN_SQL["next_index"], session_id),
            trigger=trigger,
            model=model(answers.profile),
            mode=tx.value("SELECT mode FROM sessions WHERE session_id = ?", session_id),
            profile=answers.profile,
            host_id=HostId(host_id),
        ),
        actor=SYSTEM,
        turn_id=grant.turn_id,
        fence=grant.fence,
    )
    for opening in openings:
        opening.begun(tx, grant)


def _resume(tx: Transaction, grant: Grant, host_id: str) -> Begun | None:
    """Goes on with the parked turn if an answer is there; what waits behind it waits on."""
    if parking.answered(tx, grant.session_id) != grant.turn_id:
        return None
    tx.append(
        grant.session_id,
        TurnResumed(
            turn_id=TurnId(grant.turn_id),
            trigger=Trigger(kind="approval"),
            host_id=HostId(host_id),
        ),
        actor=SYSTEM,
        turn_id=grant.turn_id,
        fence=grant.fence,
    )
    return Begun(
        session_id=grant.session_id,
        profile=tx.value(SQL["profile_of_turn"], grant.turn_id),
        admitted=(),
        limits=_limits_of(tx, grant.session_id, admitted_by(tx, grant)),
        resumed=True,
    )


def admitted_by(tx: Transaction, grant: Grant) -> tuple[int, ...]:
    """The triggers that a turn has taken in so far."""
    return tuple(seq for (seq,) in tx.all(TURN_SQL["admitted_by"], grant.session_id, grant.turn_id))


def _limits_of(tx: Transaction, session_id: str, seqs: Sequence[int]) -> Limits | None:
    """The limits of the newest prompt that names some."""
    for seq in reversed(seqs):
        row = tx.one(
            f"{SELECT} WHERE session_id = ? AND seq = ? AND type = 'message'", session_id, seq
        )
        if row is not None:
            message: Message = Record.of(row).value
            if message.limits is not None:
                return message.limits
    return None
