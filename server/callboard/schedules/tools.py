"""The five tools by which an agent has itself woken by the clock: always for itself, in its own session."""

from typing import Any

from attrs import field, frozen

from callboard_rpc.common import UNSET
from callboard_rpc.schedules import (
    ScheduleCreateParams,
    ScheduleTarget,
    ScheduleTrigger,
    ScheduleUpdateParams,
)

from ..log.clock import later, parse
from ..tools.base import ToolContext, ToolFailure, ToolOutcome
from ..tools.schema import describe
from ..turns.kernel_tools import kernel_tool
from .calling import (
    PERMISSION,
    maker_of,
    own,
    schedule_line,
    schedules_of,
    when,
    with_codes,
)
from .triggers import instant_of

ONCE_LEAST_S = 30
ONCE_MOST_S = 30 * 24 * 3600
_LISTED = 50

_CRON = (
    "Five fields (minute, hour, day of month, month, day of week) or six (a second before them), "
    "such as '0 9 * * 1-5'."
)
_ZONE = "cron: an IANA time zone, such as Europe/Berlin. Default UTC."
_AT = "One instant with its offset, such as 2031-05-17T09:30:00Z."
_EVERY = "An interval in seconds."
_PROMPT = "What you are told then. Nobody else reads it; say all that you will have to know."
_WHICH = "The schedule, by its id or its name."


# --- schedule_create ----------------------------------------------------------------------------


@frozen(kw_only=True)
class ScheduleCreate:
    prompt: str = field(metadata=describe(_PROMPT))
    cron: str | None = field(default=None, metadata=describe(_CRON))
    time_zone: str | None = field(default=None, metadata=describe(_ZONE))
    at: str | None = field(default=None, metadata=describe(_AT))
    every_seconds: int | None = field(default=None, metadata=describe(_EVERY, minimum=1))
    name: str | None = field(default=None, metadata=describe("What it is called."))
    max_fires: int | None = field(
        default=None, metadata=describe("After how many times it ends.", minimum=1)
    )
    expires_at: str | None = field(
        default=None, metadata=describe("When it ends: an instant with its offset.")
    )


def _refuse_too_soon(context: ToolContext, at: str | None) -> None:
    """An agent that could have itself woken at once, each time anew, would never come to rest. Raises
    scheduleInvalid, `ToolFailure`; what is past is refused elsewhere."""
    if at is None:
        return
    now = parse(schedules_of(context).now())
    ahead_s = (instant_of(at, "at") - now).total_seconds()
    if 0 < ahead_s < ONCE_LEAST_S:
        raise ToolFailure(
            f"invalid_schedule: at is {ahead_s:g} s from now; an agent is woken in {ONCE_LEAST_S} s at the soonest"
        )


@with_codes
async def _create(context: ToolContext, arguments: ScheduleCreate) -> ToolOutcome:
    _refuse_too_soon(context, arguments.at)
    trigger = ScheduleTrigger(
        cron=arguments.cron,
        time_zone=arguments.time_zone,
        at=arguments.at,
        every_seconds=arguments.every_seconds,
    )
    return await _made(
        context,
        trigger,
        arguments.prompt,
        name=arguments.name,
        max_fires=arguments.max_fires,
        expires_at=arguments.expires_at,
    )


async def _made(
    context: ToolContext, trigger: ScheduleTrigger, prompt: str, **more: Any
) -> ToolOutcome:
    maker = maker_of(context)
    made = await schedules_of(context).create(
        ScheduleCreateParams(
            profile=maker.profile,
            trigger=trigger,
            prompt=prompt,
            target=ScheduleTarget(session_id=maker.session_id),
            **more,
        ),
        maker,
    )
    return ToolOutcome(text=schedule_line(made))


SCHEDULE_CREATE = kernel_tool(
    "schedule_create",
    (
        "Have yourself woken in this session, again and again or once: give exactly one of cron, at and "
        "every_seconds. A time at which you are at work is passed over."
    ),
    ScheduleCreate,
    _create,
    lambda a: f"Schedule: {a.prompt}",
    permission=PERMISSION,
)


# --- schedule_once ------------------------------------------------------------------------------


@frozen(kw_only=True)
class ScheduleOnce:
    prompt: str = field(metadata=describe(_PROMPT))
    delay_seconds: int = field(
        metadata=describe(
            "In how many seconds: 30 to 2592000 (30 days).",
            minimum=ONCE_LEAST_S,
            maximum=ONCE_MOST_S,
        )
    )
    name: str | None = field(default=None, metadata=describe("What it is called."))


@with_codes
async def _once(context: ToolContext, arguments: ScheduleOnce) -> ToolOutcome:
    if not ONCE_LEAST_S <= arguments.delay_seconds <= ONCE_MOST_S:
        raise ToolFailure(
            f"invalid_schedule: delay_seconds is {arguments.delay_seconds}; it takes {ONCE_LEAST_S} to "
            f"{ONCE_MOST_S}"
        )
    at = later(schedules_of(context).now(), arguments.delay_seconds)
    return await _made(context, ScheduleTrigger(at=at), arguments.prompt, name=arguments.name)


SCHEDULE_ONCE = kernel_tool(
    "schedule_once",
    (
        "Have yourself woken once in this session, after a while. If you are at work then, you are told when "
        "you are done."
    ),
    ScheduleOnce,
    _once,
    lambda a: f"Wake in {a.delay_seconds} s: {a.prompt}",
    permission=PERMISSION,
)


# --- schedule_update ----------------------------------------------------------------------------


@frozen(kw_only=True)
class ScheduleUpdate:
    schedule: str = field(metadata=describe(_WHICH))
    prompt: str | None = field(default=None, metadata=describe(_PROMPT))
    cron: str | None = field(default=None, metadata=describe(_CRON))
    time_zone: str | None = field(default=None, metadata=describe(_ZONE))
    at: str | None = field(default=None, metadata=describe(_AT))
    every_seconds: int | None = field(default=None, metadata=describe(_EVERY, minimum=1))
    name: str | None = field(default=None, metadata=describe("What it is called."))
    max_fires: int | None = field(
        default=None, metadata=describe("After how many times it ends.", minimum=1)
    )
    expires_at: str | None = field(
        default=None, metadata=describe("When it ends: an instant with its offset.")
    )
    enabled: bool | None = field(default=None, metadata=describe("Switch it on or off."))


@with_codes
async def _update(context: ToolContext, arguments: ScheduleUpdate) -> ToolOutcome:
    schedule = own(context, arguments.schedule)
    _refuse_too_soon(context, arguments.at)
    timed = (arguments.cron, arguments.time_zone, arguments.at, arguments.every_seconds)
    trigger = ScheduleTrigger(
        cron=arguments.cron,
        time_zone=arguments.time_zone,
        at=arguments.at,
        every_seconds=arguments.every_seconds,
    )
    changed = await schedules_of(context).update(
        ScheduleUpdateParams(
            schedule_id=schedule.schedule_id,
            trigger=UNSET if all(each is None for each in timed) else trigger,
            prompt=_given(arguments.prompt),
            name=_given(arguments.name),
            max_fires=_given(arguments.max_fires),
            expires_at=_given(arguments.expires_at),
            enabled=_given(arguments.enabled),
        ),
        maker_of(context),
    )
    return ToolOutcome(text=schedule_line(changed))


def _given(value: Any) -> Any:
    return UNSET if value is None else value


SCHEDULE_UPDATE = kernel_tool(
    "schedule_update",
    "Change a schedule that you have made, or switch it on or off: only what you give is changed.",
    ScheduleUpdate,
    _update,
    lambda a: f"Change the schedule {a.schedule}",
    permission=PERMISSION,
)


# --- schedule_delete ----------------------------------------------------------------------------


@frozen(kw_only=True)
class ScheduleDelete:
    schedule: str = field(metadata=describe(_WHICH))


@with_codes
async def _delete(context: ToolContext, arguments: ScheduleDelete) -> ToolOutcome:
    schedule = own(context, arguments.schedule)
    await schedules_of(context).delete(schedule.schedule_id, maker_of(context))
    return ToolOutcome(text=f"{schedule.name} is deleted ({when(schedule.trigger)}).")


SCHEDULE_DELETE = kernel_tool(
    "schedule_delete",
    "Delete a schedule that you have made.",
    ScheduleDelete,
    _delete,
    lambda a: f"Delete the schedule {a.schedule}",
    permission=PERMISSION,
)


# --- schedule_list ------------------------------------------------------------------------------


@frozen(kw_only=True)
class ScheduleList:
    pass


@with_codes
async def _list(context: ToolContext, _: ScheduleList) -> ToolOutcome:
    found = schedules_of(context).reading.of_agent(context.session)
    lines = [schedule_line(each) for each in found[:_LISTED]]
    if len(found) > _LISTED:
        lines.append(f"{len(found) - _LISTED} more")
    return ToolOutcome(text="\n".join(lines) or "You have made no schedule in this session.")


SCHEDULE_LIST = kernel_tool(
    "schedule_list",
    "The schedules that you have made in this session: when they fire next, and what became of them.",
    ScheduleList,
    _list,
    lambda a: "List schedules",
    permission=PERMISSION,
)

SCHEDULE_TOOLS = (
    SCHEDULE_CREATE,
    SCHEDULE_UPDATE,
    SCHEDULE_DELETE,
    SCHEDULE_LIST,
    SCHEDULE_ONCE,
)
