"""What the tools of schedules have in common: who calls, the codes of errors, and how a model reads one."""

from collections.abc import Mapping

from callboard_rpc.common import SessionId
from callboard_rpc.schedules import Schedule, ScheduleTrigger

from ..sessions.projection import SQL as SESSION_SQL
from ..tools.base import ToolContext, ToolFailure
from ..tools.display import one_line
from ..turns.kernel_tools import coded, grant_of
from .keeping import Maker
from .service import Schedules

SERVICE = "schedules"
"""Under which name the host gives tools the `Schedules`."""

PERMISSION = "schedule"
"""Under which name policy knows all of these tools."""

CODES: Mapping[str, str] = {
    "scheduleInvalid": "invalid_schedule",
    "scheduleNotFound": "unknown_schedule",
    "nameInUse": "name_in_use",
    "limitReached": "limit_reached",
    "sessionNotFound": "session_closed",
    "sessionClosed": "session_closed",
    "sessionArchived": "session_archived",
}
"""What a model is told for an error's kind: a code that stays, before a text that may change."""

_PROMPT_CHARS = 120

with_codes = coded(CODES)


def schedules_of(context: ToolContext) -> Schedules:
    service = context.services[SERVICE]
    assert isinstance(service, Schedules)
    return service


def maker_of(context: ToolContext) -> Maker:
    """The run that makes the call: what it makes is for its own agent, in its own session."""
    ((profile,),) = schedules_of(context).glance(SESSION_SQL["profile_of_turn"], context.turn)
    return Maker(session_id=SessionId(context.session), profile=profile, grant=grant_of(context))


def own(context: ToolContext, given: str) -> Schedule:
    """A schedule of this session's agent, by its id or its name. Raises `ToolFailure`; one of somebody else looks
    just like one that is not there."""
    found = schedules_of(context).reading.of_agent(context.session)
    for each in found:
        if given in (each.schedule_id, each.name):
            return each
    there = ", ".join(repr(each.name) for each in found if each.enabled) or "none"
    raise ToolFailure(
        f"unknown_schedule: you have made no schedule {one_line(given, 80)!r}; switched on are: {there}"
    )


def when(trigger: ScheduleTrigger) -> str:
    if trigger.cron is not None:
        return f"cron {trigger.cron!r} in {trigger.time_zone or 'UTC'}"
    if trigger.at is not None:
        return f"once at {trigger.at}"
    return f"every {trigger.every_seconds} s"


def schedule_line(schedule: Schedule) -> str:
    """A schedule on one line: its id, name and times, how it stands, and what it says."""
    parts = [f"[{schedule.schedule_id}] {schedule.name}", when(schedule.trigger)]
    if schedule.enabled:
        parts.append(f"next {schedule.next_at}")
    else:
        parts.append(f"off: {schedule.disabled_reason or 'it was switched off'}")
    fires = "fired" if schedule.max_fires is None else f"of {schedule.max_fires} fired"
    parts.append(f"{schedule.fire_count} {fires}")
    if schedule.expires_at is not None:
        parts.append(f"expires {schedule.expires_at}")
    if schedule.skip_count:
        parts.append(f"{schedule.skip_count} skipped")
    if schedule.last_error is not None:
        parts.append(f"last error: {one_line(schedule.last_error, _PROMPT_CHARS)}")
    parts.append(one_line(schedule.prompt, _PROMPT_CHARS))
    return " · ".join(parts)
