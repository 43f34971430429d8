"""``schedule/*``: agents that are woken by the clock (session-messaging 8).

Times are RFC 3339 in UTC. A schedule belongs to a profile and is no event; what it fires is one, in the
session in which it runs.
"""

from typing import Literal, TypeAlias

from .common import UNSET, Cursor, FireId, Json, ScheduleId, SessionId, TurnId, Unset, Usage
from .frozen import frozen

Misfire: TypeAlias = Literal["skip", "run_once"]
"""What becomes of times that passed while no server was there: nothing but being counted, or one run for all."""

Overlap: TypeAlias = Literal["skip", "queue"]
"""What becomes of a time that finds the session at work (or the last fresh one): it is counted, or waits."""

FireOutcome: TypeAlias = Literal[
    "queued", "running", "completed", "failed", "cancelled", "interrupted", "timed_out", "skipped"
]
"""``skipped``: no turn was started; the fire's `reason` says why. The others are those of its turn."""


@frozen(kw_only=True)
class ScheduleTrigger:
    """When it fires: exactly one of `cron`, `at`, `every_seconds`.

    `cron` has five fields (minute, hour, day of month, month, day of week) or six (a second before them), in
    the IANA zone `time_zone` (UTC unless given). Where a clock goes forward, a time of day that does not exist
    fires at the first moment after the gap; where it goes back, one that comes twice fires the first time
    only. Patterns with ``*`` for the hour or the minute go by elapsed time and do neither. Day of month and day of
    week: either is enough when both are restricted; 0 and 7 are Sunday.
    """

    cron: str | None = None
    time_zone: str | None = None
    at: str | None = None
    every_seconds: int | None = None


@frozen(kw_only=True)
class FreshTarget:
    """A session of its own for each fire, in the folder `cwd`."""

    cwd: str


@frozen(kw_only=True)
class ScheduleTarget:
    """Where it runs: exactly one of a session that is there, and a fresh one for each fire."""

    session_id: SessionId | None = None
    fresh: FreshTarget | None = None


@frozen(kw_only=True)
class Schedule:
    """`next_at` is when it fires next, null when it will not. A schedule that has reached a bound, or has failed
    `max_failures` times one after the other, is not `enabled` any more, and `disabled_reason` says why."""

    schedule_id: ScheduleId
    name: str
    profile: str
    trigger: ScheduleTrigger
    prompt: str
    target: ScheduleTarget
    enabled: bool
    created_at: str
    updated_at: str
    misfire: Misfire = "skip"
    overlap: Overlap = "skip"
    max_fires: int | None = None
    expires_at: str | None = None
    max_failures: int = 3
    fire_count: int = 0
    skip_count: int = 0
    failures: int = 0
    next_at: str | None = None
    last_fired_at: str | None = None
    last_error: str | None = None
    disabled_reason: str | None = None
    created_by: SessionId | None = None
    """The session whose agent has made it; null: a person has."""


@frozen(kw_only=True)
class ScheduleFire:
    """One time at which it was due. `count`: so many times that passed are told as one."""

    fire_id: FireId
    schedule_id: ScheduleId
    due_at: str
    outcome: FireOutcome
    fired_at: str
    fresh: bool = False
    session_id: SessionId | None = None
    turn_id: TurnId | None = None
    usage: Usage | None = None
    reason: str | None = None
    count: int = 1


@frozen(kw_only=True)
class ScheduleCreateParams:
    """`name` is unique among the schedules of a profile; without it one is made up. `overlap` is 'skip' unless
    given, and always 'queue' for a one-shot. `max_failures` 0 never disables."""

    profile: str
    trigger: ScheduleTrigger
    prompt: str
    target: ScheduleTarget
    name: str | None = None
    max_fires: int | None = None
    expires_at: str | None = None
    max_failures: int = 3
    misfire: Misfire = "skip"
    overlap: Overlap | None = None
    enabled: bool = True
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class ScheduleResult:
    schedule: Schedule
    cursor: Cursor


@frozen(kw_only=True)
class ScheduleGetParams:
    schedule_id: ScheduleId
    meta: Json | None = None


@frozen(kw_only=True)
class ScheduleListParams:
    """By profile, then name."""

    profile: str | None = None
    session_id: SessionId | None = None
    enabled: bool | None = None
    cursor: str | None = None
    limit: int | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class ScheduleUpdateParams:
    """Changes what is given and nothing else; at least one field. Null clears. Enabling one that had failed
    too often forgets the failures; one that has reached a bound needs another bound."""

    schedule_id: ScheduleId
    trigger: ScheduleTrigger | Unset = UNSET
    prompt: str | Unset = UNSET
    target: ScheduleTarget | Unset = UNSET
    name: str | Unset = UNSET
    max_fires: int | Unset | None = UNSET
    expires_at: str | Unset | None = UNSET
    max_failures: int | Unset = UNSET
    misfire: Misfire | Unset = UNSET
    overlap: Overlap | Unset = UNSET
    enabled: bool | Unset = UNSET
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class ScheduleDeleteParams:
    """An unknown schedule is deleted already."""

    schedule_id: ScheduleId
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class ScheduleDeleteResult:
    cursor: Cursor
    deleted: bool


@frozen(kw_only=True)
class ScheduleRunNowParams:
    """Fires once, now, whatever its times are; counts towards its bounds."""

    schedule_id: ScheduleId
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class ScheduleRunNowResult:
    fire: ScheduleFire
    cursor: Cursor


@frozen(kw_only=True)
class ScheduleRunsParams:
    """The fires of a schedule, the newest first."""

    schedule_id: ScheduleId
    cursor: str | None = None
    limit: int | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class SchedulePreviewParams:
    """The next `count` times (1 to 100) of a trigger, from now on."""

    trigger: ScheduleTrigger
    count: int = 5
    meta: Json | None = None


@frozen(kw_only=True)
class SchedulePreviewResult:
    times: tuple[str, ...]
