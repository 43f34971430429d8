"""What a schedule may be: its fields, each by itself, as they are kept. Pure."""

from datetime import datetime
from itertools import pairwise
from typing import Final

import attrs

from callboard_rpc.common import Unset
from callboard_rpc.schedules import (
    Overlap,
    Schedule,
    ScheduleTarget,
    ScheduleTrigger,
    ScheduleUpdateParams,
)

from ..log.clock import parse
from ..log.text import well_formed
from . import triggers
from .state import Kept, bound_of, bounded, disabled
from .triggers import invalid

MAX_PROMPT_BYTES: Final = 64 * 1024
MAX_NAME_CHARS: Final = 64
MAX_COUNT: Final = 1_000_000_000
PREVIEWED: Final = 100
"""How many times are looked at to find out how often a pattern fires."""


def checked_name(name: str) -> str:
    """Raises scheduleInvalid."""
    text = " ".join(well_formed(name).split())
    if not text.isprintable():
        raise invalid("the name holds characters that cannot be shown; use letters and spaces")
    if not text:
        raise invalid("the name is blank; leave it out, or say in a few words what it is for")
    if len(text) > MAX_NAME_CHARS:
        raise invalid(f"the name has {len(text)} characters; {MAX_NAME_CHARS} are allowed")
    return text


def checked_prompt(prompt: str) -> str:
    """Raises scheduleInvalid."""
    text = well_formed(prompt)
    if not text.strip():
        raise invalid("the prompt is blank; say what the agent is to do when it is woken")
    size = len(text.encode())
    if size > MAX_PROMPT_BYTES:
        raise invalid(
            f"the prompt has {size} bytes, more than the {MAX_PROMPT_BYTES} allowed; put the material into a "
            "file and name it"
        )
    return text


def checked_count(what: str, count: int | None, least: int) -> int | None:
    """Raises scheduleInvalid."""
    if count is not None and not least <= count <= MAX_COUNT:
        raise invalid(f"{what} is {count}; it takes {least} to {MAX_COUNT}")
    return count


def checked_expiry(text: str | None, now: str) -> str | None:
    """Raises scheduleInvalid for what is no instant, or past."""
    if text is None:
        return None
    at = triggers.text_of(triggers.instant_of(text, "expiresAt"))
    if at <= now:
        raise invalid(f"expiresAt is {at}, which is past; give an instant that is to come")
    return at


def checked_target(target: ScheduleTarget) -> ScheduleTarget:
    """Raises scheduleInvalid. Whether there is such a session, or such a folder, is not looked at."""
    if (target.session_id is None) == (target.fresh is None):
        raise invalid("a target is either a session (sessionId) or a folder for fresh ones (fresh)")
    return target


def overlap_of(trigger: ScheduleTrigger, wanted: Overlap | None) -> Overlap:
    """A single instant always waits for a session that is at work: it does not come again (DESIGN 6)."""
    return "queue" if trigger.at is not None else (wanted or "skip")


def first_time(kept: Kept, now: datetime) -> str:
    """When a schedule that is switched on fires next. Raises scheduleInvalid when it never will."""
    schedule = kept.schedule
    reached = bound_of(schedule)
    if reached is not None:
        raise invalid(f"{reached}; give it another bound, or none")
    first = triggers.first_after(schedule.trigger, kept.times, now)
    text = bounded(schedule, first)
    if text is None:
        raise invalid(
            f"it would never fire: its next time is {triggers.text_of(first)}, and it expires at "
            f"{schedule.expires_at}"
        )
    return text


def refuse_too_often(trigger: ScheduleTrigger, now: datetime, least_s: int) -> None:
    """Raises scheduleInvalid when two times of an agent's schedule are nearer to each other than that."""
    times = triggers.following(triggers.times_of(trigger, now), now, PREVIEWED)
    for one, other in pairwise(times):
        gap = (other - one).total_seconds()
        if gap < least_s:
            raise invalid(
                f"it would fire after {gap:g} s; {least_s} s is the least between two times of an agent's "
                "schedule (schedules.min_interval_s)"
            )


def changed(kept: Kept, params: ScheduleUpdateParams, now: str) -> Kept:
    """A schedule after an update, with its next time. Raises scheduleInvalid."""
    before = kept.schedule
    given = {
        field.name: value
        for field in attrs.fields(ScheduleUpdateParams)
        if field.name not in ("schedule_id", "idempotency_key", "meta")
        and not isinstance(value := getattr(params, field.name), Unset)
    }
    if not given:
        raise invalid("nothing is to be changed; give at least one field")
    if "name" in given:
        given["name"] = checked_name(given["name"])
    if "prompt" in given:
        given["prompt"] = checked_prompt(given["prompt"])
    if "trigger" in given:
        given["trigger"] = triggers.checked(given["trigger"])
    if "target" in given:
        given["target"] = checked_target(given["target"])
    if "expires_at" in given:
        given["expires_at"] = checked_expiry(given["expires_at"], now)
    checked_count("maxFires", given.get("max_fires"), 1)
    checked_count("maxFailures", given.get("max_failures"), 0)
    trigger: ScheduleTrigger = given.get("trigger", before.trigger)
    given["overlap"] = overlap_of(trigger, given.get("overlap", before.overlap))
    after = Kept(
        schedule=attrs.evolve(before, **given, updated_at=now),
        anchor_at=now if "trigger" in given else kept.anchor_at,
        revision=kept.revision + 1,
    )
    return _timed(before, after, now, anew="trigger" in given or not before.enabled)


def _timed(before: Schedule, after: Kept, now: str, *, anew: bool) -> Kept:
    schedule = after.schedule
    if not schedule.enabled:
        reason = None if before.enabled else before.disabled_reason
        return attrs.evolve(after, schedule=disabled(schedule, reason))
    if not before.enabled:
        schedule = attrs.evolve(schedule, failures=0, last_error=None, disabled_reason=None)
        after = attrs.evolve(after, schedule=schedule)
    # a time that is due by now and that nobody has come to is not passed over by a change of the prompt
    due_now = before.next_at is not None and before.next_at <= now
    if due_now and not anew and bound_of(schedule) is None:
        return after
    next_at = first_time(after, parse(now))
    return attrs.evolve(after, schedule=attrs.evolve(schedule, next_at=next_at))
