"""When a schedule is due: a pattern, one instant, or an interval. Pure: time is a parameter."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Protocol

import attrs
from attrs import frozen

from callboard_rpc.errors import CallboardError
from callboard_rpc.schedules import ScheduleTrigger

from ..log.text import quoted
from . import cron

MAX_EVERY_S = 10 * 366 * 24 * 3600
_INSTANT = re.compile(
    r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})",
    re.ASCII | re.IGNORECASE,
)
_MICROSECOND = timedelta(microseconds=1)


class Times(Protocol):
    """Instants, in UTC."""

    def after(self, instant: datetime) -> datetime | None:
        """The first one after `instant`; None when there is none any more."""
        ...

    def each_after(self, instant: datetime) -> Iterator[datetime]:
        """All that come after `instant`, rising."""
        ...


@frozen
class Once:
    at: datetime

    def after(self, instant: datetime) -> datetime | None:
        return self.at if self.at > instant else None

    def each_after(self, instant: datetime) -> Iterator[datetime]:
        if self.at > instant:
            yield self.at


@frozen
class Every:
    """Every so many seconds from `anchor` on, which is none of them itself."""

    anchor: datetime
    seconds: int

    def after(self, instant: datetime) -> datetime | None:
        step = timedelta(seconds=self.seconds)
        past = max(0, (instant - self.anchor) // step)
        try:
            return self.anchor + (past + 1) * step
        except OverflowError:  # beyond the end of the calendar
            return None

    def each_after(self, instant: datetime) -> Iterator[datetime]:
        at = self.after(instant)
        while at is not None:
            yield at
            at = self.after(at)


def invalid(message: str) -> CallboardError:
    return CallboardError("scheduleInvalid", message)


def instant_of(text: str, what: str) -> datetime:
    """An instant in RFC 3339, in UTC. Raises scheduleInvalid."""
    if _INSTANT.fullmatch(text):
        try:
            return datetime.fromisoformat(text.upper()).astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    raise invalid(
        f"{what} is {quoted(text)}; it takes an instant with its offset, such as 2031-05-17T09:30:00Z"
    )


def text_of(instant: datetime) -> str:
    """An instant as the store has it: UTC with milliseconds, so that texts sort as the instants do."""
    shown = instant.astimezone(UTC).isoformat(timespec="milliseconds")
    return shown.removesuffix("+00:00") + "Z"


def checked(trigger: ScheduleTrigger) -> ScheduleTrigger:
    """The trigger as it is kept. Raises scheduleInvalid."""
    kinds = {"cron": trigger.cron, "at": trigger.at, "everySeconds": trigger.every_seconds}
    given = [name for name, value in kinds.items() if value is not None]
    if len(given) != 1:
        said = " and ".join(given) or "none of them"
        raise invalid(f"a trigger has exactly one of cron, at and everySeconds; this has {said}")
    if trigger.time_zone is not None and trigger.cron is None:
        raise invalid("timeZone goes with cron only; an instant has its own offset")
    if trigger.cron is not None:
        kept = _cron(trigger)
        return attrs.evolve(trigger, cron=kept.pattern)
    if trigger.at is not None:
        return attrs.evolve(trigger, at=text_of(instant_of(trigger.at, "at")))
    assert trigger.every_seconds is not None
    if not 1 <= trigger.every_seconds <= MAX_EVERY_S:
        raise invalid(f"everySeconds is {trigger.every_seconds}; it takes 1 to {MAX_EVERY_S}")
    return trigger


def times_of(trigger: ScheduleTrigger, anchor: datetime) -> Times:
    """The times of a trigger that was `checked`; an interval is counted from `anchor`. Raises scheduleInvalid for
    a zone that this machine does not know."""
    if trigger.cron is not None:
        return _cron(trigger)
    if trigger.at is not None:
        return Once(instant_of(trigger.at, "at"))
    assert trigger.every_seconds is not None
    return Every(anchor, trigger.every_seconds)


def _cron(trigger: ScheduleTrigger) -> cron.Cron:
    try:
        return cron.parse(trigger.cron or "", trigger.time_zone)
    except cron.BadPattern as fault:
        raise invalid(str(fault)) from None


def following(times: Times, instant: datetime, count: int) -> tuple[datetime, ...]:
    """The first `count` times after `instant`, or as many as there are."""
    return tuple(islice(times.each_after(instant), count))


def first_after(trigger: ScheduleTrigger, times: Times, instant: datetime) -> datetime:
    """The first time to come. Raises scheduleInvalid when there is none."""
    found = times.after(instant)
    if found is not None:
        return found
    if trigger.at is not None:
        raise invalid(f"at is {trigger.at}, which is past; give a time that is to come")
    raise invalid(
        f"the trigger {trigger.cron or trigger.every_seconds!r} never fires: no such time comes; try it with "
        "schedule/preview"
    )


@frozen(kw_only=True)
class Passed:
    """What became of the times up to a moment. `missed` is how many nobody was there for, of which `last_missed`
    is the last; `on_time` is the one that is due now; `following` is the next to come."""

    missed: int
    last_missed: datetime | None
    on_time: datetime | None
    following: datetime | None


def passed(
    times: Times, first: datetime, now: datetime, grace: timedelta, most: int = 100
) -> Passed:
    """The times from `first`, which is one of them, up to `now`.

    One that came less than `grace` ago is on time, the last of them if there are several; more than `most`
    of a pattern are not counted one by one, since a pattern for every second may have missed a year. A single
    instant is never missed: whenever somebody is there, it is due (DESIGN 6).
    """
    if isinstance(times, Once):
        return Passed(missed=0, last_missed=None, on_time=first, following=None)
    on_time: datetime | None = None
    following: datetime | None = None
    for at in times.each_after(max(now - grace, first) - _MICROSECOND):
        if at > now:
            following = at
            break
        on_time = at
    missed, last = _missed(times, first, now if on_time is None else on_time - _MICROSECOND, most)
    return Passed(missed=missed, last_missed=last, on_time=on_time, following=following)


def _missed(
    times: Times, first: datetime, through: datetime, most: int
) -> tuple[int, datetime | None]:
    if first > through:
        return 0, None
    if isinstance(times, Every):
        step = timedelta(seconds=times.seconds)
        count = (through - first) // step
        return count + 1, first + count * step
    count, last = 1, first
    for at in islice(times.each_after(first), most - 1):
        if at > through:
            break
        count, last = count + 1, at
    return count, last
