"""The schedules of one store, as one host serves them. Every change is one transaction."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import attrs
from attrs import frozen

from callboard_rpc.common import Mode, ScheduleId, SessionId
from callboard_rpc.convert import unstructure
from callboard_rpc.errors import CallboardError
from callboard_rpc.schedules import (
    FreshTarget,
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
from ..log.text import redacted
from ..log.transaction import Transaction
from ..sessions.dispatch import Dispatcher
from ..sessions.profiles import ProfileBook
from ..sessions.projection import SQL as SESSION_SQL
from ..sessions.reading import refuse_unless_open
from ..turns.boundary import Query
from ..turns.reservation import Grant, assert_fence
from . import firing, rules, state, triggers
from .firing import Fired, Firing, Place
from .reading import ScheduleReading
from .rows import SQL, find, put, stands
from .state import Due, Kept
from .triggers import invalid

T = TypeVar("T")

_ENDS = frozenset({"turn_finished", "triggers_dropped", "session_deleted"})
_KEPT_OF_AGENT = 20
"""How many of an agent's single instants are kept when they are over."""


@frozen(kw_only=True)
class Maker:
    """The run whose agent makes a schedule: for itself, and in its own session."""

    session_id: SessionId
    profile: str
    grant: Grant


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
            place = await self.place_of(kept.schedule)
            kept = _placed(kept, _sound(place))

        def commit(tx: Transaction) -> Schedule:
            if maker is not None:
                assert_fence(tx, maker.grant)
                self._room_for_agent(tx, maker.session_id)
            self._room(tx)
            made = _as_kept(tx, kept, anew=True)
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

    def _room(self, tx: Transaction) -> None:
        count: int = tx.value(SQL["count_schedules"])
        if count >= self._limits.max_schedules:
            raise CallboardError(
                "limitReached",
                f"there are {count} schedules, and no more than {self._limits.max_schedules} may be "
                "(schedules.max_schedules); delete those that are over",
            )

    def _room_for_agent(self, tx: Transaction, session_id: str) -> None:
        for (schedule_id,) in tx.all(SQL["finished_of_agent"], session_id, _KEPT_OF_AGENT):
            _delete(tx, schedule_id)
        count: int = tx.value(SQL["count_of_agent"], session_id)
        if count >= self._limits.max_of_agent:
            raise CallboardError(
                "limitReached",
                f"{count} schedules of this session are switched on, and no more than "
                f"{self._limits.max_of_agent} may be (schedules.max_of_agent); delete one",
            )

    async def update(self, params: ScheduleUpdateParams, maker: Maker | None = None) -> Schedule:
        """Changes what is given. Raises scheduleNotFound, and what `create` does."""
        now = self.now()
        seen = self._own(params.schedule_id, maker)
        after = rules.changed(seen, params, now)
        if maker is not None:
            rules.refuse_too_often(after.schedule.trigger, parse(now), self._limits.min_interval_s)
        cwd: str | None = None
        if isinstance(params.target, ScheduleTarget) and params.target.fresh is not None:
            cwd = _sound(await self.place_of(after.schedule))

        def commit(tx: Transaction) -> Schedule:
            if maker is not None:
                assert_fence(tx, maker.grant)
            kept = find(tx.all, params.schedule_id)
            if kept is None:
                raise _not_found(params.schedule_id)
            changed = rules.changed(kept, params, now)
            if cwd is not None:
                changed = _placed(changed, cwd)
            switched_on = changed.schedule.enabled and not kept.schedule.enabled
            anew = switched_on or isinstance(params.target, ScheduleTarget)
            changed = _as_kept(tx, changed, anew=anew)
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
            deleted = _delete(tx, schedule_id)
            tx.decided(deleted=deleted)
            return deleted

        return await self._decided(commit)

    def _own(self, schedule_id: str, maker: Maker | None) -> Kept:
        """An agent's own; those of others look to it as if they were not there."""
        kept = find(self._log.glance, schedule_id)
        if kept is None or (maker is not None and kept.schedule.created_by != maker.session_id):
            raise _not_found(schedule_id)
        return kept

    # --- what it does ---

    async def run_now(self, schedule_id: str) -> ScheduleFire:
        """Fires once, now. It waits for a session that is at work; when a fire of it waits already, it is told as
        skipped. Raises scheduleNotFound, scheduleInvalid for one that has reached a bound, profileNotFound,
        pathNotFound, sessionNotFound, sessionClosed, sessionArchived."""
        seen = self._own(schedule_id, None)
        place = await self.place_of(seen.schedule)
        now = self.now()

        def commit(tx: Transaction) -> Fired:
            kept = find(tx.all, schedule_id)
            if kept is None:
                raise _not_found(schedule_id)
            schedule = kept.schedule
            _refuse_when_over(schedule, now)
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
            place = await self.place_of(seen.schedule)
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

    async def place_of(self, schedule: Schedule) -> Place | None:
        """Where a fresh session would be now; None for a schedule that has a session."""
        fresh = schedule.target.fresh
        if fresh is None:
            return None
        try:
            cwd = str(await asyncio.to_thread(_folder, fresh.cwd))
            settings = self._settings(cwd)
            profile = self._profiles(cwd).get(schedule.profile)
        except CallboardError as fault:
            return Place(cwd=fresh.cwd, fault=fault)
        mode: Mode = profile.mode or settings.approvals.mode
        return Place(cwd=cwd, mode=mode)

    async def _decided(self, commit: Callable[[Transaction], T]) -> T:
        try:
            return await self._log.transact(commit)
        finally:
            self.changed.set()


# --- pieces -------------------------------------------------------------------------------------------


def _delete(tx: Transaction, schedule_id: str) -> bool:
    kept = find(tx.all, schedule_id)
    if kept is None:
        return False
    firing.drop_waiting(tx, kept.schedule, "its schedule was deleted")
    tx.execute(SQL["forget_fires"], schedule_id)
    tx.execute(SQL["delete_schedule"], schedule_id)
    return True


def _as_kept(tx: Transaction, kept: Kept, *, anew: bool) -> Kept:
    """A schedule with all that only the store knows: who is meant by its profile, and that its name is free.
    `anew`: its target was given just now. Secrets leave what it says."""
    schedule = kept.schedule
    session_id = schedule.target.session_id
    if session_id is not None and anew:
        flags = tx.one(SESSION_SQL["flags"], session_id)
        if flags is None:
            raise CallboardError("sessionNotFound", f"there is no session {session_id[:80]!r}")
        refuse_unless_open(session_id, closed=bool(flags[0]), archived=bool(flags[1]))
        profile = firing.member_of(tx, session_id, schedule.profile)
        if profile is None:
            raise invalid(
                f"{schedule.profile[:80]!r} takes no part in session {session_id}; add it there "
                "(session/membersAdd), or name the session's own profile"
            )
        schedule = attrs.evolve(schedule, profile=profile)
    redact = tx.writing.redact
    schedule = attrs.evolve(
        schedule, prompt=redacted(redact, schedule.prompt), name=redacted(redact, schedule.name)
    )
    if tx.one(SQL["is_taken"], schedule.profile, schedule.name, schedule.schedule_id) is not None:
        raise CallboardError(
            "nameInUse",
            f"{schedule.profile} has a schedule {schedule.name!r} already; use another name, or change that one",
        )
    return attrs.evolve(kept, schedule=schedule)


def _placed(kept: Kept, cwd: str) -> Kept:
    target = ScheduleTarget(fresh=FreshTarget(cwd=cwd))
    return attrs.evolve(kept, schedule=attrs.evolve(kept.schedule, target=target))


def _sound(place: Place | None) -> str:
    assert place is not None
    if place.fault is not None:
        raise place.fault
    return place.cwd


def _refuse_when_over(schedule: Schedule, now: str) -> None:
    reached = state.bound_of(schedule)
    if reached is None and schedule.expires_at is not None and schedule.expires_at <= now:
        reached = f"it expired at {schedule.expires_at}"
    if reached is not None:
        raise invalid(f"{reached}; give it another bound, or none (schedule/update)")


def _not_found(schedule_id: str) -> CallboardError:
    return CallboardError(
        "scheduleNotFound",
        f"there is no schedule {schedule_id[:80]!r}; schedule/list tells those that there are",
    )


def _folder(path: str) -> Path:
    folder = Path(path)
    if not folder.is_absolute() or "\x00" in path:
        raise invalid(f"the folder {path[:200]!r} of fresh sessions is not an absolute path")
    try:
        resolved = folder.resolve(strict=True)
    except (OSError, RuntimeError) as fault:
        raise CallboardError(
            "pathNotFound", f"there is no folder {path[:200]}", data={"path": path}
        ) from fault
    if not resolved.is_dir():
        raise CallboardError("pathNotFound", f"{path[:200]} is not a folder", data={"path": path})
    return resolved
