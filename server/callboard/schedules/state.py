"""A schedule, and what its times and its turns make of it: pure, without clock or I/O."""

from datetime import datetime, timedelta
from typing import Final

import attrs
from attrs import frozen

from callboard_rpc.common import TurnOutcome
from callboard_rpc.schedules import Schedule

from ..log.clock import parse
from .triggers import Passed, Times, text_of, times_of

GRACE: Final = timedelta(seconds=60)
"""How late a time may be to count as kept; what came before that was missed."""


@frozen(kw_only=True)
class Kept:
    """A schedule as the store has it. `anchor_at` is what an interval is counted from; `revision` rises with
    every change of what it is."""

    schedule: Schedule
    anchor_at: str
    revision: int = 0

    @property
    def times(self) -> Times:
        """Raises scheduleInvalid for a zone that this machine does not know."""
        return times_of(self.schedule.trigger, parse(self.anchor_at))


@frozen(kw_only=True)
class Due:
    """What is to be done at a moment: fire for `fires_at`, which stands for `count` times; tell that `missed`
    times passed, of which `missed_at` was the last. `next_at` is when to look again."""

    fires_at: str | None = None
    count: int = 1
    missed: int = 0
    missed_at: str | None = None
    missed_reason: str = "no server was there"
    next_at: str | None = None


def due(schedule: Schedule, passed: Passed, now: str) -> Due:
    """What the times that have passed until `now` ask for."""
    next_at = bounded(schedule, passed.following)
    if schedule.expires_at is not None and schedule.expires_at <= now:
        missed = passed.missed + (passed.on_time is not None)
        return Due(
            missed=missed,
            missed_at=_text(passed.on_time or passed.last_missed),
            missed_reason=f"it had expired at {schedule.expires_at}",
        )
    if schedule.misfire == "run_once" and passed.missed:
        return Due(
            fires_at=_text(passed.on_time or passed.last_missed),
            count=passed.missed + (passed.on_time is not None),
            next_at=next_at,
        )
    return Due(
        fires_at=_text(passed.on_time),
        missed=passed.missed,
        missed_at=_text(passed.last_missed),
        next_at=next_at,
    )


def _text(instant: datetime | None) -> str | None:
    return None if instant is None else text_of(instant)


def bounded(schedule: Schedule, following: datetime | None) -> str | None:
    """The next time as the store has it; None when it lies at the end of the schedule, or behind it."""
    if following is None:
        return None
    text = text_of(following)
    return None if schedule.expires_at is not None and text >= schedule.expires_at else text


# --- what happens to a schedule -----------------------------------------------------------------------


def fired(schedule: Schedule, at: str) -> Schedule:
    """It has started something at `at`."""
    return attrs.evolve(schedule, fire_count=schedule.fire_count + 1, last_fired_at=at)


def skipped(schedule: Schedule, count: int) -> Schedule:
    """It has started nothing, `count` times."""
    return attrs.evolve(schedule, skip_count=schedule.skip_count + count)


def moved(schedule: Schedule, next_at: str | None) -> Schedule:
    """With its next time; switched off when there is none any more, or a bound is reached."""
    if not schedule.enabled:
        return schedule
    reached = bound_of(schedule)
    if reached is None and next_at is None:
        reached = _over(schedule)
    if reached is not None:
        return disabled(schedule, reached)
    return attrs.evolve(schedule, next_at=next_at)


def bound_of(schedule: Schedule) -> str | None:
    """The bound that a schedule has reached by its fires, as its `disabled_reason` says it."""
    if schedule.max_fires is not None and schedule.fire_count >= schedule.max_fires:
        return f"it has fired {schedule.fire_count} times, and may {schedule.max_fires} (maxFires)"
    return None


def _over(schedule: Schedule) -> str:
    if schedule.trigger.at is not None:
        return "it has fired" if schedule.fire_count else "its time has passed"
    if schedule.expires_at is not None:
        return f"no time of it is left before it expires at {schedule.expires_at}"
    return "no time of it is to come"


def disabled(schedule: Schedule, reason: str | None) -> Schedule:
    """Switched off; `reason` None: by whoever owns it."""
    return attrs.evolve(schedule, enabled=False, next_at=None, disabled_reason=reason)


def ended(schedule: Schedule, outcome: TurnOutcome, error: str | None) -> Schedule:
    """A turn of it has ended. What a person or a restart has stopped is neither success nor failure."""
    match outcome:
        case "completed":
            return attrs.evolve(schedule, failures=0, last_error=None)
        case "failed" | "timed_out":
            failures = schedule.failures + 1
            failed = attrs.evolve(
                schedule,
                failures=failures,
                last_error=error or ("it took too long" if outcome == "timed_out" else "it failed"),
            )
            if schedule.enabled and 0 < schedule.max_failures <= failures:
                runs = "run" if failures == 1 else "runs"
                return disabled(
                    failed, f"{failures} {runs} failed one after the other (maxFailures)"
                )
            return failed
        case "cancelled" | "interrupted":
            return schedule
