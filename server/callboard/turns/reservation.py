"""Who may run a session: one owner at a time, under a fence that only ever rises.

Slot, logical owner and fence are one row, taken and given back in one transaction each
(specs/execution.md 3 and 6). An execution reservation is for a run; a preparation reservation is for
changing history, excludes runs and cannot start one. Both are given back on leaving their context,
unless a run has taken the first over.
"""

import asyncio
import contextvars
import logging
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Generic, TypeAlias, TypeVar

from attrs import evolve, frozen

from callboard_rpc.common import Actor, ApprovalId, TurnId, Usage
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import TurnFinished, TurnParked

from ..log.faults import StaleFence, no_session
from ..log.log import Log
from ..log.retrying import delays, may_pass
from ..log.transaction import Transaction
from .projection import SQL

T = TypeVar("T")
U = TypeVar("U")

Freed: TypeAlias = Callable[[str], None]
"""Hears that a session was given back. Unlike the end of a run, that of a change leaves no event."""

_log = logging.getLogger(__name__)

SYSTEM = Actor(kind="system", id="callboard")


@frozen(kw_only=True)
class Grant:
    """What a reservation gives: the right to write to a session under `fence`."""

    session_id: str
    turn_id: str
    fence: int


@frozen(kw_only=True)
class Reserved(Generic[T]):
    """The session is ours. `begun` is what the reserving transaction returned."""

    reservation: "ExecutionReservation"
    begun: T


@frozen(kw_only=True)
class AlreadyRunning:
    """Somebody else runs the session; `turn_id` names their run, to be followed by its events."""

    turn_id: str


@frozen(kw_only=True)
class NoWork:
    """There was nothing to do, and the session was not taken."""


def assert_fence(tx: Transaction, grant: Grant) -> None:
    """First step of every write of a run (execution 8). Raises `StaleFence`, nothing is written."""
    if tx.one(SQL["holds"], grant.session_id, grant.fence) is None:
        raise StaleFence(grant.session_id, grant.fence)


def take(
    tx: Transaction, session_id: str, host_id: str, *, kind: str, turn_id: str | None
) -> int | None:
    """Takes the session in a transaction; the fence, or None when it has an owner."""
    row = tx.one(SQL["owner"], session_id)
    if row is not None and row[1] is not None:
        return None
    fence: int = 1 if row is None else row[0]
    tx.execute(SQL["take"], session_id, fence + 1, fence, kind, turn_id, host_id)
    return fence


def seize(tx: Transaction, grant: Grant, host_id: str) -> Grant | None:
    """Takes a session from an owner that is gone, under a new fence: whatever that owner may yet want
    to write is refused from here on. None when it is not the owner any more."""
    rows = tx.all(SQL["seize"], host_id, grant.session_id, grant.fence)
    return evolve(grant, fence=rows[0][0]) if rows else None


def _a_new_turn(_: Transaction) -> None:
    return None


def _is_known(_: Transaction) -> None:
    return None


def _as_it_is(_: Transaction, __: Grant) -> Any:
    return None


def _end_unrun(tx: Transaction, grant: Grant) -> None:
    tx.append(
        grant.session_id,
        TurnFinished(
            turn_id=TurnId(grant.turn_id),
            outcome="cancelled",
            answered_through=tx.value(SQL["answered_through"], grant.session_id),
            usage=Usage(),
        ),
        actor=SYSTEM,
        turn_id=grant.turn_id,
        fence=grant.fence,
    )


def _unheard(_: str) -> None:
    return None


class Reservations:
    """Hands out reservations for one host. Releases run in tasks of their own, so that cancelling
    whoever waits for one strands nothing (execution 6).

    `attend` makes sure, in the transaction that takes a session, that the others know this host: what
    an unknown host owns is taken from it. `end` writes the end of a turn that began and will not be run.
    """

    def __init__(
        self,
        log: Log,
        host_id: str,
        *,
        attend: Callable[[Transaction], None] = _is_known,
        end: Callable[[Transaction, Grant], None] = _end_unrun,
    ) -> None:
        self._log = log
        self.host_id = host_id
        self._attend = attend
        self._end = end
        self._releases: set[asyncio.Task[None]] = set()
        self._later: set[asyncio.Task[None]] = set()
        """Those that the store has refused."""

    async def reserve(
        self,
        session_id: str,
        begin: Callable[[Transaction, Grant], T | None],
        *,
        resume: Callable[[Transaction], str | None] = _a_new_turn,
    ) -> "Reserved[T] | AlreadyRunning | NoWork":
        """Takes the session for a run, together with what `begin` writes; all or nothing.

        `begin` returning None means that there is nothing to do: then nothing is taken. `resume` names
        the turn that goes on, where it is not a new one.
        """

        def commit(tx: Transaction) -> "tuple[Grant, T] | AlreadyRunning | NoWork":
            turn_id = resume(tx) or tx.new_id("trn")
            fence = take(tx, session_id, self.host_id, kind="run", turn_id=turn_id)
            if fence is None:
                return AlreadyRunning(turn_id=_running(tx, session_id))
            self._attend(tx)
            grant = Grant(session_id=session_id, turn_id=turn_id, fence=fence)
            begun = begin(tx, grant)
            if begun is None:
                raise _Nothing
            return grant, begun

        try:
            outcome = await self._taking(
                commit, lambda taken: taken[0] if isinstance(taken, tuple) else None
            )
        except _Nothing:
            return NoWork()
        if isinstance(outcome, AlreadyRunning | NoWork):
            return outcome
        grant, begun = outcome
        return Reserved(reservation=ExecutionReservation(self, grant), begun=begun)

    async def _taking(
        self,
        commit: Callable[[Transaction], T],
        grant_of: Callable[[T], Grant | None],
        freed: Freed = _unheard,
    ) -> T:
        """Runs a transaction that may take a session. When the caller is cancelled meanwhile it cannot
        be called back: what it took is given back as soon as that is known (execution 4)."""
        attempt = self._log.submit(commit)
        try:
            return await asyncio.shield(attempt)
        except asyncio.CancelledError:
            self._in_background(self._give_back_late(attempt, grant_of, freed))
            raise

    async def _give_back_late(
        self, attempt: "asyncio.Future[T]", grant_of: Callable[[T], Grant | None], freed: Freed
    ) -> None:
        try:
            grant = grant_of(await attempt)
        except Exception:
            return  # nothing was taken
        if grant is not None:
            await self._give_back(grant, freed)

    async def prepare(
        self,
        session_id: str,
        begin: Callable[[Transaction, Grant], T] = _as_it_is,
        *,
        freed: Freed = _unheard,
    ) -> "PreparationReservation[T]":
        """Takes the session for a change of its history (execution 29), together with what `begin`
        finds or writes; it refuses by raising. `freed` is called, on the loop, once the session was given
        back, whatever became of the change or of its caller.

        What other processes had committed by then is told when this returns, so that nothing which follows
        the log is behind the change. Raises sessionNotFound, and turnInProgress while the session has an
        owner or a turn that waits, parked, for an approval: what that turn has asked for must be there when
        the answer comes.
        """

        def commit(tx: Transaction) -> tuple[Grant, T]:
            fence = take(tx, session_id, self.host_id, kind="prepare", turn_id=None)
            if fence is None:
                raise _is_taken(tx, session_id)
            self._attend(tx)
            if tx.one(SQL["last_seq"], session_id) is None:
                raise no_session(session_id)
            parked: str | None = tx.value(SQL["parked_turn"], session_id)
            if parked is not None:
                raise CallboardError(
                    "turnInProgress",
                    f"turn {parked} of session {session_id} waits for an approval; answer that, or "
                    "cancel the turn",
                    data={"turnId": parked},
                )
            grant = Grant(session_id=session_id, turn_id="", fence=fence)
            return grant, begin(tx, grant)

        grant, begun = await self._taking(commit, lambda taken: taken[0], freed)
        self._log.refresh()
        return PreparationReservation(self, grant, begun, freed)

    async def write(self, grant: Grant, function: Callable[[Transaction], T], *, last: bool) -> T:
        """Writes under a reservation's fence, and with the `last` write gives the session back.
        Raises `StaleFence`."""

        def commit(tx: Transaction) -> T:
            assert_fence(tx, grant)
            result = function(tx)
            if last:
                tx.execute(SQL["release"], grant.session_id, grant.fence)
            return result

        result = await self._log.transact(commit)
        if last:
            self._log.feed.knock()  # what waits here may be another host's to run
        return result

    async def abandon(self, grant: Grant, freed: Freed = _unheard) -> None:
        """Ends a run that never began, as cancelled, and frees the session. A no-op when the
        session has another owner by now (execution 7). A turn that was parked is parked again: the
        answer that has woken it is in the log, and wakes it the next time. `freed` as in `prepare`."""

        def commit(tx: Transaction) -> None:
            if tx.one(SQL["holds"], grant.session_id, grant.fence) is None:
                return
            calls = tx.all(SQL["open_calls_with_approvals"], grant.turn_id)
            if calls:
                tx.append(
                    grant.session_id,
                    TurnParked(
                        turn_id=TurnId(grant.turn_id),
                        approval_ids=tuple(
                            ApprovalId(approval) for _, _, approval, *_ in calls if approval
                        ),
                    ),
                    actor=SYSTEM,
                    turn_id=grant.turn_id,
                    fence=grant.fence,
                )
            elif grant.turn_id and tx.one(SQL["turn"], grant.turn_id) is not None:
                self._end(tx, grant)
            tx.execute(SQL["release"], grant.session_id, grant.fence)

        await self._log.transact(commit)
        self._log.feed.knock()  # what waits here may be another host's to run
        freed(grant.session_id)

    def release(self, grant: Grant, freed: Freed = _unheard) -> "asyncio.Task[None]":
        """`abandon` in a task that nobody's cancellation reaches."""
        return self._in_background(self._give_back(grant, freed))

    async def _give_back(self, grant: Grant, freed: Freed) -> None:
        """Raises what keeps the store from taking it now, and goes on trying: a session must not have an
        owner that does nothing for as long as this host lives."""
        try:
            await self.abandon(grant, freed)
        except CallboardError as error:
            if may_pass(error):
                later = asyncio.get_running_loop().create_task(
                    self._give_back_later(grant, freed), context=contextvars.Context()
                )
                self._later.add(later)
                later.add_done_callback(self._later.discard)
            raise

    async def _give_back_later(self, grant: Grant, freed: Freed) -> None:
        for delay in delays():
            await asyncio.sleep(delay)
            try:
                await self.abandon(grant, freed)
            except CallboardError as error:
                if may_pass(error):
                    continue
                _log.error("session %s could not be given back: %s", grant.session_id, error)
            return

    def _in_background(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        # a clean context: what a request wants to know of its work is no affair of a release
        task = asyncio.get_running_loop().create_task(work, context=contextvars.Context())
        self._releases.add(task)
        task.add_done_callback(self._released)
        return task

    def _released(self, task: "asyncio.Task[None]") -> None:
        self._releases.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("a reservation could not be given back", exc_info=task.exception())

    async def settled(self) -> None:
        """Waits for the releases that are under way. What the store refuses is tried no more: it is left to
        whoever sees that this host is gone."""
        while self._releases:
            await asyncio.wait(list(self._releases))
        for later in self._later:
            later.cancel()


def _running(tx: Transaction, session_id: str) -> str:
    row = tx.one(SQL["owner"], session_id)
    return "" if row is None or row[3] is None else row[3]


def _is_taken(tx: Transaction, session_id: str) -> CallboardError:
    turn_id = _running(tx, session_id)
    if turn_id:
        said = "is running; wait for the turn to end, or cancel it"
    else:
        said = "is being changed (summarised or rewound) just now; try again when that is done"
    return CallboardError(
        "turnInProgress", f"session {session_id} {said}", data={"turnId": turn_id or None}
    )


def _lost(grant: Grant) -> CallboardError:
    return CallboardError(
        "leaseLost",
        f"session {grant.session_id} was closed, deleted or taken over while it was being changed; "
        "what was not written until then is not written any more",
    )


class _Nothing(Exception):
    """Undoes a reservation that turned out to have no work."""


class ExecutionReservation:
    """The right to run a session once. Leaving the context without `transfer` abandons it."""

    def __init__(self, reservations: Reservations, grant: Grant) -> None:
        self._reservations = reservations
        self.grant = grant
        self._armed = True

    @property
    def session_id(self) -> str:
        return self.grant.session_id

    @property
    def turn_id(self) -> str:
        return self.grant.turn_id

    async def __aenter__(self) -> "ExecutionReservation":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.abandon()

    def transfer(self) -> Grant:
        """Hands the session to a run, which must end it. Only once, and only for its own session."""
        if not self._armed:
            raise ValueError(f"the reservation of turn {self.turn_id} was used already")
        self._armed = False
        return self.grant

    async def abandon(self) -> None:
        """Gives the session back. A no-op the second time, and after `transfer`."""
        if self._armed:
            self._armed = False
            await asyncio.shield(self._reservations.release(self.grant))


class PreparationReservation(Generic[T]):
    """The right to change a session's history. It has no turn, writes no event of its own, and cannot
    start a run. `begun` is what the transaction found that took the session.

    What was written under a fence that is not the session's any more leaves the context as leaseLost.
    """

    def __init__(
        self, reservations: Reservations, grant: Grant, begun: T, freed: Freed = _unheard
    ) -> None:
        self._reservations = reservations
        self._freed = freed
        self.grant = grant
        self.begun = begun
        self._armed = True

    async def __aenter__(self) -> "PreparationReservation[T]":
        return self

    async def transact(self, function: Callable[[Transaction], U]) -> U:
        """Writes under the fence, in one transaction."""
        return await self._reservations.write(self.grant, function, last=False)

    async def conclude(self, function: Callable[[Transaction], U]) -> U:
        """Writes under the fence and gives the session back, in one transaction: nobody sees the one
        without the other."""
        result = await self._reservations.write(self.grant, function, last=True)
        self._armed = False
        self._freed(self.grant.session_id)
        return result

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.abandon()
        if isinstance(fault, StaleFence):
            raise _lost(self.grant) from fault

    async def abandon(self) -> None:
        """Gives the session back. A no-op the second time, and after `conclude`."""
        if self._armed:
            self._armed = False
            await asyncio.shield(self._reservations.release(self.grant, self._freed))
