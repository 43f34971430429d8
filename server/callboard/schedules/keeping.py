"""What a schedule is, in the store: pieces of the transactions that make, change and end one."""

import attrs
from attrs import frozen

from callboard_rpc.common import SessionId
from callboard_rpc.errors import CallboardError
from callboard_rpc.schedules import FreshTarget, Schedule, ScheduleTarget

from ..config.settings import ScheduleSettings
from ..log.faults import no_session
from ..log.text import quoted, redacted
from ..log.transaction import Transaction
from ..sessions.projection import SQL as SESSION_SQL
from ..sessions.reading import refuse_unless_open
from ..turns.reservation import Grant
from . import firing, state
from .rows import SQL, find
from .state import Kept
from .triggers import invalid

_KEPT_OF_AGENT = 20
"""How many of an agent's schedules are kept when they are over."""


@frozen(kw_only=True)
class Maker:
    """The run whose agent makes a schedule: for itself, and in its own session."""

    session_id: SessionId
    profile: str
    grant: Grant


def check_room(tx: Transaction, limits: ScheduleSettings) -> None:
    """Raises limitReached when the store has as many schedules as it may."""
    count: int = tx.value(SQL["count_schedules"])
    if count >= limits.max_schedules:
        raise CallboardError(
            "limitReached",
            f"there are {count} schedules, and no more than {limits.max_schedules} may be "
            "(schedules.max_schedules); delete those that are over",
        )


def check_room_of_agent(tx: Transaction, limits: ScheduleSettings, session_id: str) -> None:
    """Takes away what an agent has long been woken by. Raises limitReached when it has as many as it may."""
    for (schedule_id,) in tx.all(SQL["finished_of_agent"], session_id, _KEPT_OF_AGENT):
        delete(tx, schedule_id)
    _check_count_of_agent(tx, limits, session_id)


def check_resumed(
    tx: Transaction, limits: ScheduleSettings, session_id: str, before: Schedule, after: Schedule
) -> None:
    """What was over counts again when the agent switches it on. Raises limitReached."""
    if _counts(after) and not _counts(before):
        _check_count_of_agent(tx, limits, session_id)


def _counts(schedule: Schedule) -> bool:
    """One that is switched off by hand counts as well: else an agent could make them without end."""
    return schedule.enabled or schedule.disabled_reason is None


def _check_count_of_agent(tx: Transaction, limits: ScheduleSettings, session_id: str) -> None:
    count: int = tx.value(SQL["count_of_agent"], session_id)
    if count >= limits.max_of_agent:
        raise CallboardError(
            "limitReached",
            f"this session has {count} schedules of its agent's that are not over, and no more than "
            f"{limits.max_of_agent} may be (schedules.max_of_agent); delete one",
        )


def delete(tx: Transaction, schedule_id: str) -> bool:
    """Ends a schedule, and takes back what waits of it. False for an unknown one."""
    kept = find(tx.all, schedule_id)
    if kept is None:
        return False
    firing.drop_waiting(tx, kept.schedule, "its schedule was deleted")
    tx.execute(SQL["forget_fires"], schedule_id)
    tx.execute(SQL["delete_schedule"], schedule_id)
    return True


def completed(tx: Transaction, kept: Kept, *, anew: bool) -> Kept:
    """A schedule with all that only the store knows: who is meant by its profile, and that its name is free.
    `anew`: its target was given just now. Secrets leave what it says."""
    schedule = kept.schedule
    session_id = schedule.target.session_id
    if session_id is not None and anew:
        flags = tx.one(SESSION_SQL["flags"], session_id)
        if flags is None:
            raise no_session(session_id)
        refuse_unless_open(session_id, closed=bool(flags[0]), archived=bool(flags[1]))
        profile = firing.member_of(tx, session_id, schedule.profile)
        if profile is None:
            raise invalid(
                f"the profile {quoted(schedule.profile)} takes no part in session {session_id}; add it there "
                "(session/memberAdd), or name the session's own profile"
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


def placed(kept: Kept, cwd: str) -> Kept:
    """With fresh sessions in this folder."""
    target = ScheduleTarget(fresh=FreshTarget(cwd=cwd))
    return attrs.evolve(kept, schedule=attrs.evolve(kept.schedule, target=target))


def refuse_when_over(schedule: Schedule, now: str) -> None:
    """Raises scheduleInvalid for one that has reached a bound."""
    reached = state.bound_of(schedule)
    if reached is None and schedule.expires_at is not None and schedule.expires_at <= now:
        reached = f"it expired at {schedule.expires_at}"
    if reached is not None:
        raise invalid(f"{reached}; give it another bound, or none (schedule/update)")


def not_found(schedule_id: str) -> CallboardError:
    return CallboardError(
        "scheduleNotFound",
        f"there is no schedule {quoted(schedule_id)}; schedule/list tells those that there are",
    )
