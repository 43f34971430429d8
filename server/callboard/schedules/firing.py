"""What a schedule does when its time has come: pieces of the one transaction in which it fires.

Whichever host is first moves `next_at`, and whoever comes later finds it moved; so it fires once, however many
hosts look (session-messaging 8). All that is checked is read there, whether anybody has the session open or not.
"""

from attrs import frozen

from callboard_rpc.common import Actor, FireId, HostId, SessionId
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import ScheduleFired, SessionCreated, TriggersDropped
from callboard_rpc.schedules import Schedule, ScheduleFire

from ..log.transaction import Transaction
from ..sessions.projection import SQL as SESSION_SQL
from ..sessions.projection import find_room
from ..turns.projection import SQL as TURN_SQL
from ..turns.reservation import SYSTEM
from . import state
from .places import Place
from .rows import SQL, find, record, stands
from .state import Due, Kept

MARK = "callboard/schedule"
"""Under which key the metadata of a fresh session names the schedule that it was made for."""


@frozen(kw_only=True)
class Firing:
    """By which host, when, and for which time. `asked`: somebody wants it now."""

    host_id: str
    now: str
    due_at: str
    count: int = 1
    asked: bool = False


@frozen(kw_only=True)
class Obstacle:
    """Why a schedule cannot fire. `ends`: it never will again."""

    error: CallboardError
    ends: bool = False

    @property
    def reason(self) -> str:
        return self.error.message


@frozen(kw_only=True)
class Fired:
    """`session_id` is what is to be woken, if something is."""

    fire: ScheduleFire | None = None
    session_id: str | None = None


def claim(
    tx: Transaction, seen: Kept, due: Due, *, host_id: str, now: str, place: Place | None
) -> Fired | None:
    """Does what is due, unless somebody has done so or has changed the schedule since it was `seen`."""
    kept = find(tx.all, seen.schedule.schedule_id)
    if kept is None or not kept.schedule.enabled or kept.revision != seen.revision:
        return None
    schedule = kept.schedule
    if schedule.next_at != seen.schedule.next_at:
        return None
    if due.missed and due.missed_at is not None:
        missed = Firing(host_id=host_id, now=now, due_at=due.missed_at, count=due.missed)
        record(tx, skip(tx, schedule, missed, due.missed_reason))
        schedule = state.skipped(schedule, due.missed)
    fired = Fired()
    if due.fires_at is not None:
        firing = Firing(host_id=host_id, now=now, due_at=due.fires_at, count=due.count)
        schedule, fired = _attempt(tx, schedule, firing, place)
    stands(tx, state.moved(schedule, due.next_at))
    return fired


def _attempt(
    tx: Transaction, schedule: Schedule, firing: Firing, place: Place | None
) -> tuple[Schedule, Fired]:
    found = obstacle(tx, schedule, place)
    reason = None if found is None else found.reason
    if reason is None:
        reason = _kept_waiting(tx, schedule)
    if reason is None:
        return state.fired(schedule, firing.now), start(tx, schedule, firing, place)
    record(tx, skip(tx, schedule, firing, reason))
    schedule = state.skipped(schedule, firing.count)
    if found is not None and found.ends:
        schedule = state.disabled(schedule, reason)
    return schedule, Fired()


def obstacle(tx: Transaction, schedule: Schedule, place: Place | None) -> Obstacle | None:
    """What keeps a schedule from firing, whatever is at work."""
    session_id = schedule.target.session_id
    if session_id is None:
        fault = None if place is None else place.fault
        return None if fault is None else Obstacle(error=fault)
    flags = tx.one(SESSION_SQL["flags"], session_id)
    if flags is None:
        error = CallboardError("sessionNotFound", f"its session {session_id} was deleted")
        return Obstacle(error=error, ends=True)
    closed, archived = flags
    if closed:
        error = CallboardError("sessionClosed", f"its session {session_id} is closed")
        return Obstacle(error=error, ends=True)
    if archived:
        error = CallboardError(
            "sessionArchived", f"its session {session_id} is archived; unarchive it first"
        )
        return Obstacle(error=error)
    if member_of(tx, session_id, schedule.profile) is None:
        return Obstacle(
            error=CallboardError(
                "scheduleInvalid",
                f"not a member: {schedule.profile} takes no part in session {session_id}; add it there, or give "
                "the schedule another target",
            )
        )
    if tx.one(SQL["held_back"], session_id) is not None:
        return Obstacle(
            error=CallboardError(
                "scheduleInvalid",
                f"in session {session_id} something waits that wakes nobody, since it was imported, or stopped "
                "with its server; prompt the session, or continue its agent, first",
            )
        )
    return None


def member_of(tx: Transaction, session_id: str, profile: str) -> str | None:
    """The agent of a session that is called so: its own, or a member of its room."""
    own: str = tx.value("SELECT profile FROM sessions WHERE session_id = ?", session_id)
    return own if own == profile else find_room(tx.all, session_id).named(profile)


def _kept_waiting(tx: Transaction, schedule: Schedule) -> str | None:
    """Why a time passes because something is at work. One waits at the most: what comes behind it would only
    say the same once more."""
    session_id = schedule.target.session_id
    open_fires = tx.all(SQL["open_fires"], schedule.schedule_id)
    if session_id is None:
        if not open_fires:
            return None
        reason = "its last session is still at work"
    else:
        if not is_at_work(tx, session_id):
            return None
        reason = "its session is at work"
    if schedule.overlap == "skip":
        return reason
    if any(outcome == "queued" for *_, outcome in open_fires):
        return f"{reason}, and an earlier time waits for it already"
    return None


def start_asked(tx: Transaction, schedule: Schedule, firing: Firing, place: Place | None) -> Fired:
    """`start`, for somebody who wants it now. In a session that is at work it waits, unless one waits already:
    then it is recorded as a time that passed."""
    waits = [row for row in tx.all(SQL["open_fires"], schedule.schedule_id) if row[-1] == "queued"]
    if waits and schedule.target.session_id is not None:
        fire = skip(tx, schedule, firing, "one that was fired before waits already")
        record(tx, fire, asked=True)
        return Fired(fire=fire)
    return start(tx, schedule, firing, place)


def is_at_work(tx: Transaction, session_id: str) -> bool:
    """Whether a turn runs or is parked, or something waits that some host will take up."""
    return (
        tx.one(TURN_SQL["goes_on"], session_id) is not None
        or tx.one(TURN_SQL["parked_turn"], session_id) is not None
    )


def skip(tx: Transaction, schedule: Schedule, firing: Firing, reason: str) -> ScheduleFire:
    """A time at which nothing was started."""
    return ScheduleFire(
        fire_id=FireId(tx.new_id("fire")),
        schedule_id=schedule.schedule_id,
        due_at=firing.due_at,
        outcome="skipped",
        fired_at=firing.now,
        fresh=schedule.target.fresh is not None,
        session_id=schedule.target.session_id,
        reason=reason,
        count=firing.count,
    )


def start(tx: Transaction, schedule: Schedule, firing: Firing, place: Place | None) -> Fired:
    """Appends the trigger, in a session that is made for it if need be, and records the fire."""
    actor = Actor(kind="schedule", id=schedule.schedule_id, name=schedule.name)
    session_id = schedule.target.session_id or _fresh(tx, schedule, place, actor)
    fire = ScheduleFire(
        fire_id=FireId(tx.new_id("fire")),
        schedule_id=schedule.schedule_id,
        due_at=firing.due_at,
        outcome="queued",
        fired_at=firing.now,
        fresh=schedule.target.fresh is not None,
        session_id=SessionId(session_id),
        count=firing.count,
    )
    event = tx.append(
        session_id,
        ScheduleFired(
            schedule_id=schedule.schedule_id,
            fire_id=fire.fire_id,
            name=schedule.name,
            due_at=firing.due_at,
            prompt=schedule.prompt,
            profile=schedule.profile,
            fresh=fire.fresh,
            host_id=HostId(firing.host_id),
        ),
        actor=actor,
    )
    record(tx, fire, event.seq, asked=firing.asked)
    return Fired(fire=fire, session_id=session_id)


def _fresh(tx: Transaction, schedule: Schedule, place: Place | None, actor: Actor) -> SessionId:
    assert place is not None
    session_id = SessionId(tx.new_id("ses"))
    tx.begin_session(session_id, session_id)
    tx.append(
        session_id,
        SessionCreated(
            session_id=session_id,
            root_id=session_id,
            cwd=place.cwd,
            profile=schedule.profile,
            mode=place.mode,
            title=schedule.name,
            metadata={MARK: schedule.schedule_id},
        ),
        actor=actor,
    )
    return session_id


def drop_waiting(tx: Transaction, schedule: Schedule, reason: str) -> None:
    """Takes back what has fired and has not begun."""
    for _, session_id, seq, outcome in tx.all(SQL["open_fires"], schedule.schedule_id):
        if outcome != "queued":
            continue
        trigger = tx.one(TURN_SQL["trigger_state"], session_id, seq)
        if trigger is not None and trigger[1] == "pending":
            tx.append(session_id, TriggersDropped(seqs=(seq,), reason=reason), actor=SYSTEM)
