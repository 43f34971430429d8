"""The schedules of one store, as one host serves them. Every change is one transaction."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import attrs

from callboard_rpc.common import ScheduleId
from callboard_rpc.convert import unstructure
from callboard_rpc.errors import CallboardError
from callboard_rpc.schedules import (
    Schedule,
    ScheduleCreateParams,
    ScheduleFire,
    ScheduleTarget,
    ScheduleUpdateParams,
)

from ..config import Settings
from ..config.settings import ScheduleSettings
from ..log.clock import parse
from ..log.log import Log
from ..log.record import Record
from ..log.transaction import Transaction
from ..sessions.dispatch import Dispatcher
from ..sessions.profiles import ProfileBook
from ..turns.boundary import Query
from ..turns.reservation import assert_fence
from . import firing, keeping, rules, state, triggers
from .firing import Fired, Firing
from .keeping import Maker, not_found
from .places import Place, find_place
from .reading import ScheduleReading
from .rows import find, put, stands
from .state import Due, Kept

T = TypeVar("T")

_ENDS = frozenset({"turn_finished", "triggers_dropped", "session_deleted"})


class Schedules:
    """`now` is the clock by which schedules are due. `settings` and `profiles` are those of a folder, read anew.
    `changed` is set when something may be due sooner than was known."""

    def __init__(
        self,
        log: Log,
        dispatcher: Dispatcher,
        *,
        limits: ScheduleSettings,
        settings: Callable[[str], Settings],
        profiles: Callable[[str], ProfileBook],
        now: Callable[[], str],
        fires: bool,
    ) -> None:
        self._log = log
        self._dispatcher = dispatcher
        self._limits = limits
        self._settings = settings
        self._profiles = profiles
        self.now = now
        self.fires = fires
        """Whether this host fires what is due; one that goes soon does not."""
        self.changed = asyncio.Event()
        self.reading = ScheduleReading(log)
        self._unheard = False
        log.listen(self._heard)
        log.feed.on_skip(self._missed)

    def _heard(self, records: list[Record]) -> None:
        """Where a fire has ended, another one of its schedule may have waited for that."""
        for record in records:
            if record.type in _ENDS:
                try:
                    waiting = self.reading.waiting_behind(record.session_id)
                except CallboardError:
                    self._missed()
                    continue
                for session_id in waiting:
                    self._dispatcher.look_at(session_id)

    def _missed(self) -> None:
        """Something was not told, or not understood: the engine looks for what it may have meant."""
        self._unheard = True
        self.changed.set()

    def wake_waiting(self) -> None:
        """Wakes what may have waited for an end that was not heard of."""
        if self._unheard:
            for session_id in self.reading.waiting():
                self._dispatcher.look_at(session_id)
            self._unheard = False

    @property
    def glance(self) -> Query:
        """A quick look at the store."""
        return self._log.glance

    # --- what a schedule is ---

    async def create(self, wanted: ScheduleCreateParams, maker: Maker | None = None) -> Schedule:
        """Raises scheduleInvalid, nameInUse, limitReached, profileNotFound, pathNotFound, sessionNotFound,
        sessionClosed, sessionArchived."""
        now = self.now()
        kept = self._new(wanted, now, maker)
        if kept.schedule.enabled:
            first = rules.first_time(kept, parse(now))
            kept = attrs.evolve(kept, schedule=attrs.evolve(kept.schedule, next_at=first))
        if maker is not None:
            rules.refuse_too_often(kept.schedule.trigger, parse(now), self._limits.min_interval_s)
        if kept.schedule.target.fresh is not None:
            place = await self._place(kept.schedule)
            assert place is not None
            kept = keeping.placed(kept, place.checked())

        def commit(tx: Transaction) -> Schedule:
            if maker is not None:
                assert_fence(tx, maker.grant)
                keeping.check_room_of_agent(tx, self._limits, maker.session_id)
            keeping.check_room(tx, self._limits)
            made = keeping.completed(tx, kept, anew=True)
            put(tx, made)
            tx.decided(schedule=unstructure(made.schedule))
            return made.schedule

        return await self._decided(commit)

    def _new(self, wanted: ScheduleCreateParams, now: str, maker: Maker | None) -> Kept:
        rules.checked_count("maxFires", wanted.max_fires, 1)
        rules.checked_count("maxFailures", wanted.max_failures, 0)
        trigger = triggers.checked(wanted.trigger)
        schedule = Schedule(
            schedule_id=ScheduleId(self._log.ids.new("sched")),
            name="" if wanted.name is None else rules.checked_name(wanted.name),
            profile=wanted.profile,
            trigger=trigger,
            prompt=rules.checked_prompt(wanted.prompt),
            target=rules.checked_target(wanted.target),
            enabled=wanted.enabled,
            created_at=now,
            updated_at=now,
            misfire=wanted.misfire,
            overlap=rules.overlap_of(trigger, wanted.overlap),
            max_fires=wanted.max_fires,
            expires_at=rules.checked_expiry(wanted.expires_at, now),
            max_failures=wanted.max_failures,
            created_by=None if maker is None else maker.session_id,
        )
        if not schedule.name:
            schedule = attrs.evolve(schedule, name=f"schedule {schedule.schedule_id[-6:]}")
        return Kept(schedule=schedule, anchor_at=now)

    async def update(self, params: ScheduleUpdateParams, maker: Maker | None = None) -> Schedule:
        """Changes what is given. Raises scheduleNotFound, and what `create` does."""
        now = self.now()
        seen = self._own(params.schedule_id, maker)
        after = rules.changed(seen, params, now)
        if maker is not None:
            rules.refuse_too_often(after.schedule.trigger, parse(now), self._limits.min_interval_s)
        cwd: str | None = None
        if isinstance(params.target, ScheduleTarget) and params.target.fresh is not None:
            place = await self._place(after.schedule)
            assert place is not None
            cwd = place.checked()

        def commit(tx: Transaction) -> Schedule:
            if maker is not None:
                assert_fence(tx, maker.grant)
            kept = find(tx.all, params.schedule_id)
            if kept is None:
                raise not_found(params.schedule_id)
            changed = rules.changed(kept, params, now)
            if maker is not None:
                keeping.check_resumed(
                    tx, self._limits, maker.session_id, kept.schedule, changed.schedule
                )
            if cwd is not None:
                changed = keeping.placed(changed, cwd)
            switched_on = changed.schedule.enabled and not kept.schedule.enabled
            anew = switched_on or isinstance(params.target, ScheduleTarget)
            changed = keeping.completed(tx, changed, anew=anew)
            put(tx, changed)
            if kept.schedule.enabled and not changed.schedule.enabled:
                firing.drop_waiting(tx, kept.schedule, "its schedule was switched off")
            tx.decided(schedule=unstructure(changed.schedule))
            return changed.schedule

        return await self._decided(commit)

    async def delete(self, schedule_id: str, maker: Maker | None = None) -> bool:
        """Ends a schedule; what runs of it goes on, what waits of it does not begin. False for an unknown one."""
        if maker is not None:
            self._own(schedule_id, maker)

        def commit(tx: Transaction) -> bool:
            if maker is not None:
                assert_fence(tx, maker.grant)
            deleted = keeping.delete(tx, schedule_id)
            tx.decided(deleted=deleted)
            return deleted

        return await self._decided(commit)

    def _own(self, schedule_id: str, maker: Maker | None) -> Kept:
        """An agent's own; those of others look to it as if they were not there."""
        kept = find(self._log.glance, schedule_id)
        if kept is None or (maker is not None and kept.schedule.created_by != maker.session_id):
            raise not_found(schedule_id)
        return kept

    # --- what it does ---

    async def run_now(self, schedule_id: str) -> ScheduleFire:
        """Fires once, now. It waits for a session that is at work; when a fire of it waits already, it is told as
        skipped. Raises scheduleNotFound, scheduleInvalid for one that has reached a bound, profileNotFound,
        pathNotFound, sessionNotFound, sessionClosed, sessionArchived."""
        seen = self._own(schedule_id, None)
        place = await self._place(seen.schedule)
        now = self.now()

        def commit(tx: Transaction) -> Fired:
            kept = find(tx.all, schedule_id)
            if kept is None:
                raise not_found(schedule_id)
            schedule = kept.schedule
            keeping.refuse_when_over(schedule, now)
            found = firing.obstacle(tx, schedule, place)
            if found is not None:
                raise found.error
            what = Firing(
                host_id=self._dispatcher.host_id,
                now=now,
                due_at=now,
                asked=True,
            )
            fired = firing.start_asked(tx, schedule, what, place)
            if fired.session_id is None:
                schedule = state.skipped(schedule, 1)
            else:
                schedule = state.fired(schedule, now)
            stands(tx, state.moved(schedule, schedule.next_at))
            assert fired.fire is not None
            tx.decided(fire=unstructure(fired.fire))
            return fired

        given = self._log.submit(commit)
        given.add_done_callback(self._was_fired)  # whatever becomes of whoever asked
        fired = await asyncio.shield(given)
        assert fired.fire is not None
        return fired.fire

    async def fire(self, seen: Kept, due: Due, now: str) -> Fired | None:
        """Does what is due; None when somebody else was first."""
        place = None
        if due.fires_at is not None:
            place = await self._place(seen.schedule)
        given = self._log.submit(
            lambda tx: firing.claim(
                tx, seen, due, host_id=self._dispatcher.host_id, now=now, place=place
            )
        )
        given.add_done_callback(self._was_fired)
        return await asyncio.shield(given)

    def _was_fired(self, given: "asyncio.Future[Fired] | asyncio.Future[Fired | None]") -> None:
        if given.cancelled() or given.exception() is not None:
            return
        fired = given.result()
        if fired is not None and fired.session_id is not None:
            self._dispatcher.look_at(fired.session_id)

    async def _place(self, schedule: Schedule) -> Place | None:
        return await find_place(schedule, self._settings, self._profiles)

    async def _decided(self, commit: Callable[[Transaction], T]) -> T:
        try:
            return await self._log.transact(commit)
        finally:
            self.changed.set()
