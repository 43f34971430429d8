"""The one way in which a run begins: a durable trigger is in the log, then `wake` decides.

Prompt, directive, continue, mention, peer message, approval after a restart: whoever appends a trigger
calls `wake` afterwards, and nothing else ever calls the loop. When a run has ended, or a change of the
history, its session is looked at again: what came meanwhile begins the next one (session-messaging 2).
"""

import asyncio
import contextlib
import contextvars
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from callboard_rpc.common import Usage
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import CancelRequested, TurnResumed, TurnStarted

from ..log.log import Log
from ..log.record import Record
from ..log.retrying import delays, may_pass
from ..log.transaction import Transaction
from ..turns import parking
from ..turns.completion import CompletionHook
from ..turns.ending import ending_of, write_end
from ..turns.finish import Hook
from ..turns.live import Cause, LiveTurn
from ..turns.projection import SQL as TURN_SQL
from ..turns.reservation import SYSTEM, AlreadyRunning, Grant, NoWork, Reservations, Reserved
from .beginning import Begun, ModelOf, Opening, begin, begin_selected
from .inbox import runs as inbox
from .inbox.state import Started
from .projection import SQL

_log = logging.getLogger(__name__)

_LOST = Cause(outcome="interrupted", by=SYSTEM, reason="another server has taken the session over")


class Runner(Protocol):
    """Builds a turn and runs it to its end. Raises when it cannot even be built."""

    async def __call__(self, live: LiveTurn, begun: Begun) -> None: ...


class Dispatcher:
    """Starts and supervises the turns of one host.

    `spawn` gives a task to the host, so that no turn lives in a request; `models_of` names the model
    that each agent of a session would use now; `openings` are asked before a new turn; `hooks` and `completion` are for
    the end of a turn that could not be built. A host that `takes_up` goes on with what others have left:
    answers to parked turns, prompts and deliveries that hosts had accepted which are gone. One that does
    not begins only what is asked of it: what it began besides would be interrupted when it goes, which
    is soon.
    """

    def __init__(
        self,
        log: Log,
        reservations: Reservations,
        *,
        runner: Runner,
        models_of: Callable[[str], Awaitable[ModelOf]],
        spawn: Callable[[Callable[[], Awaitable[None]], str], None],
        openings: Sequence[Opening] = (),
        hooks: Sequence[Hook] = (),
        completion: Sequence[CompletionHook] = (),
        takes_up: bool = True,
    ) -> None:
        self._log = log
        self._reservations = reservations
        self._takes_up = takes_up
        self._runner = runner
        self._models_of = models_of
        self._spawn = spawn
        self._openings = openings
        self.hooks = hooks
        self._completion = completion
        self._retrying: set[str] = set()
        self._live: dict[str, LiveTurn] = {}
        self._wakes: set[asyncio.Task[str | None]] = set()
        self._stopping: Cause | None = None
        log.listen(self._heard)
        log.feed.on_skip(self._look_again)

    def live(self, session_id: str) -> LiveTurn | None:
        """The turn that runs here for this session, if one does."""
        return self._live.get(session_id)

    @property
    def host_id(self) -> str:
        return self._reservations.host_id

    @property
    def running(self) -> int:
        return len(self._live)

    def _heard(self, records: list[Record]) -> None:
        for record in records:
            match record.type:
                case "turn_started" | "turn_resumed":
                    self._begins(record)
                case "approval_decision" if self._takes_up:
                    self.answered(record.session_id)
                case "message" if '"delivery":"steer"' in record.data:
                    live = self._live.get(record.session_id)
                    if live is not None:
                        live.steer(record.seq)
                case "cancel_requested":
                    self._cancels(record)
                case "turn_finished" | "turn_parked" | "session_deleted":
                    live = self._live.get(record.session_id)
                    if live is None:
                        self._may_go_on(record.session_id)
                    elif not live.supervised:
                        self._ended(live)  # it was given back before it began
                        self._may_go_on(record.session_id)
                    elif record.type == "session_deleted" or record.fence != live.grant.fence:
                        live.stop(_LOST)  # others took this host for gone, and have done it
                case _:
                    pass

    def _look_again(self) -> None:
        """So much was committed elsewhere, while this process stood still, that it is not told one by
        one: what it may have meant for the turns that run here is read from the store."""
        for live in list(self._live.values()):
            grant = live.grant
            with contextlib.suppress(CallboardError):
                if not self._log.glance(TURN_SQL["holds"], grant.session_id, grant.fence):
                    live.stop(_LOST)
                for row in self._log.glance(
                    TURN_SQL["cancel_wish"], grant.session_id, grant.turn_id
                ):
                    self._cancels(Record.of(row))
                for (seq,) in self._log.glance(TURN_SQL["pending_steers"], grant.session_id):
                    live.steer(seq)

    def _begins(self, record: Record) -> None:
        """Knows a turn from its commit on, so that whoever sees it in the log can stop it."""
        started: TurnStarted | TurnResumed = record.value
        # without a fence it is history: it was imported, and ran wherever it did
        if started.host_id == self._reservations.host_id and record.fence:
            grant = Grant(session_id=record.session_id, turn_id=started.turn_id, fence=record.fence)
            self._live[record.session_id] = LiveTurn(grant)

    def _may_go_on(self, session_id: str) -> None:
        """A turn of another host has ended, or one of ours before it began: what was accepted here
        meanwhile is ours to run."""
        try:
            waits = self._log.glance(TURN_SQL["own_wait"], session_id, self.host_id) or inbox.due(
                self._log.glance, session_id, self.host_id, self._log.now(), adopts=self._takes_up
            )
        except CallboardError:
            waits = True  # it is looked at until it can be seen
        if waits:
            self.look_at(session_id)

    def answered(self, session_id: str) -> None:
        """An answer to a parked turn is what wakes it; whichever host takes it runs it: any that takes up
        what others have left, and the one through which it was given."""
        if session_id in self._live:
            return
        try:
            parked = bool(self._log.glance(TURN_SQL["parked_turn"], session_id))
        except CallboardError:
            parked = True  # it is looked at until it can be seen
        if parked:
            self.look_at(session_id)

    def look_at(self, session_id: str) -> None:
        """`wake`, for whoever does not wait for it."""
        if self._stopping is None:
            self._spawn(lambda: self._go_on(session_id), f"wake {session_id}")

    async def _go_on(self, session_id: str) -> None:
        try:
            await self.wake_here(session_id)
        except CallboardError as error:
            if error.kind not in ("sessionNotFound", "shuttingDown"):
                _log.warning("session %s could not go on: %s", session_id, error)

    def _cancels(self, record: Record) -> None:
        live = self._live.get(record.session_id)
        wish: CancelRequested = record.value
        if live is not None and wish.turn_id == live.turn_id:
            reason = wish.reason or "the turn was cancelled"
            live.stop(Cause(outcome="cancelled", by=record.by, reason=reason))

    def _ended(self, live: LiveTurn) -> None:
        live.ended.set()
        if self._live.get(live.session_id) is live:
            del self._live[live.session_id]

    async def wake(self, session_id: str) -> str | None:
        """Looks at the session's triggers and starts a turn if they wait and nobody runs it.

        Returns the id of the turn that was started here, else None. Losing the session to somebody
        else is not an error: whoever has it looks again when its turn ends. Nor is a store that
        cannot be written just now: the triggers are durable, and are looked at again until it can.

        It is done in a task of the host. Whoever asks for it may be cancelled, as a request is, at any
        moment: the triggers that the turn had admitted by then would be answered by nobody.
        """
        task = asyncio.get_running_loop().create_task(
            self.wake_here(session_id), name=f"wake {session_id}", context=contextvars.Context()
        )
        self._wakes.add(task)
        task.add_done_callback(self._woke)
        return await asyncio.shield(task)

    def _woke(self, task: "asyncio.Task[str | None]") -> None:
        self._wakes.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waits has it; who was cancelled needs it no more

    async def wake_here(self, session_id: str) -> str | None:
        """`wake`, in the task of the caller, which nobody must cancel. Transactions that were submitted just
        before share its commit."""
        try:
            return await self._wake(session_id)
        except CallboardError as error:
            if not may_pass(error):
                raise
            _log.warning("session %s waits for the store: %s", session_id, error)
            if session_id not in self._retrying:
                self._retrying.add(session_id)
                self._spawn(lambda: self._wake_later(session_id), f"wake {session_id}")
            return None

    async def _wake_later(self, session_id: str) -> None:
        try:
            for delay in delays():
                await asyncio.sleep(delay)
                try:
                    await self._wake(session_id)
                    return
                except CallboardError as error:
                    if not may_pass(error):
                        _log.warning("session %s could not go on: %s", session_id, error)
                        return
        finally:
            self._retrying.discard(session_id)

    async def _wake(self, session_id: str) -> str | None:
        if self._stopping is not None:
            return None
        model = await self._models_of(session_id)

        def commit(tx: Transaction, grant: Grant) -> Begun | None:
            return begin(
                tx,
                grant,
                model=model,
                host_id=self.host_id,
                takes_up=self._takes_up,
                openings=self._openings,
            )

        outcome = await self._reservations.reserve(
            session_id, commit, resume=lambda tx: parking.answered(tx, session_id)
        )
        if isinstance(outcome, AlreadyRunning | NoWork):
            return None
        return await self._launch(outcome)

    async def _launch(self, reserved: Reserved[Begun]) -> str:
        """Runs a turn that was begun, and returns its id. One that has ended already stays as it is."""
        async with reserved.reservation as reservation:
            live = self._live.get(reservation.session_id)
            if live is None or live.grant != reservation.grant:
                # this process stood still just now, was taken for gone, and has heard of that turn's end
                return reservation.turn_id
            live.supervised = True
            begun = reserved.begun
            self._spawn(lambda: self._supervise(live, begun), f"turn {live.turn_id}")
            reservation.transfer()
        if self._stopping is not None:
            live.stop(self._stopping)
        return live.turn_id

    async def reserve_selected(
        self, session_id: str, generation: int
    ) -> Reserved[Begun] | AlreadyRunning | NoWork:
        """Takes a session for a turn that takes in one delivery of its inbox and leaves the others where
        they are (execution 31). Whoever does not `launch` it gives it back.

        `NoWork`: the delivery is not authorised, or does not wait any more.
        """
        if self._stopping is not None:
            raise CallboardError("shuttingDown", "the server is stopping; ask another one")
        model = await self._models_of(session_id)

        def commit(tx: Transaction, grant: Grant) -> Begun | None:
            return begin_selected(
                tx, grant, generation, model=model, host_id=self.host_id, openings=self._openings
            )

        outcome = await self._reservations.reserve(session_id, commit)
        if isinstance(outcome, NoWork):
            for (turn_id,) in self._log.glance(TURN_SQL["parked_turn"], session_id):
                return AlreadyRunning(turn_id=turn_id)
        return outcome

    async def run_selected(
        self, session_id: str, generation: int
    ) -> Started | AlreadyRunning | NoWork:
        """`reserve_selected`, and runs it."""
        outcome = await self.reserve_selected(session_id, generation)
        if isinstance(outcome, Reserved):
            return Started(turn_id=await self._launch(outcome))
        return outcome

    async def _supervise(self, live: LiveTurn, begun: Begun) -> None:
        """Runs a turn. Whatever happens inside, it ends, and ends nothing else."""
        try:
            # other hosts' cancels, steers, answers and modes are heard while it runs
            with self._log.feed.followed():
                try:
                    await self._runner(live, begun)
                except Exception as fault:
                    await self._fail(live, fault)
        finally:
            self._ended(live)
        if self._may_be_next(live.session_id):
            await self._go_on(live.session_id)

    def _may_be_next(self, session_id: str) -> bool:
        """Whether something waits behind a turn that has ended here. A look at what is committed is enough:
        whoever commits more from now on wakes the session, and finds it free."""
        glance = self._log.glance
        try:
            return bool(
                glance(TURN_SQL["ours_wait"], session_id, self.host_id, self._takes_up)
                or inbox.due(
                    glance, session_id, self.host_id, self._log.now(), adopts=self._takes_up
                )
                or glance(TURN_SQL["parked_turn"], session_id)
            )
        except CallboardError:
            return True  # it is looked at until it can be seen

    async def _fail(self, live: LiveTurn, fault: Exception) -> None:
        """Ends a turn that could not be built (its model is gone, its folder is)."""
        await write_end(
            self._log,
            live.grant,
            ending_of(live, fault, usage=Usage()),
            actor=SYSTEM,
            hooks=self.hooks,
            completion=self._completion,
        )

    async def stop_all(self, cause: Cause, *, within_s: float) -> None:
        """Starts no more turns, stops those that run, and waits for their ends."""
        self._stopping = cause
        turns = list(self._live.values())
        for live in turns:
            live.stop(cause)
        ends = [asyncio.ensure_future(live.ended.wait()) for live in turns]
        if ends or self._wakes:
            await asyncio.wait([*ends, *self._wakes], timeout=within_s)
        for end in ends:
            end.cancel()

    async def wake_own(self) -> None:
        """Wakes sessions in which something waits that was accepted here, and that nobody owns: what
        another host's compaction held up ends without an event that would tell."""
        for (session_id,) in self._log.glance(TURN_SQL["own_left"], self.host_id):
            await self.wake_here(session_id)

    async def wake_delivered(self) -> None:
        """Wakes sessions of which nobody takes in what was asked for: a claim is over, or a change of the
        history by another host."""
        for session_id in self._due_sessions():
            if session_id not in self._retrying:
                await self.wake_here(session_id)

    def _due_sessions(self) -> list[str]:
        return inbox.due_sessions(
            self._log.glance, self.host_id, self._log.now(), adopts=self._takes_up
        )

    async def wake_waiting(self) -> int:
        """Wakes every session whose triggers and deliveries nobody has taken: what was queued when a
        process died."""
        if inbox.to_recover(self._log.glance):
            await self._log.transact(lambda tx: inbox.recover(tx, self.host_id))
        rows = await self._log.query(SQL["with_pending_triggers"])
        rows += await self._log.query(TURN_SQL["parked_and_answered"])
        rows += [(session_id,) for session_id in self._due_sessions()]
        for (session_id,) in rows:
            try:
                await self.wake_here(session_id)
            except CallboardError as error:
                _log.warning("session %s could not be woken: %s", session_id, error)
        return len(rows)
