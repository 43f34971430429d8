"""How a person says when, where and what a schedule is; and looks at its times before there is one."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from attrs import frozen
from cyclopts import Parameter, validators

from callboard_rpc.common import SessionId
from callboard_rpc.convert import unstructure
from callboard_rpc.schedules import FreshTarget, ScheduleTarget, ScheduleTrigger

from .exits import CommandError, Exit
from .naming import resolve
from .server import StoreOption, connect
from .terminal import line, open_console, write_json_line
from .wording import local_time

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_SPAN = re.compile(r"(\d{1,9})([smhd])", re.ASCII)
Json = Annotated[bool, Parameter(negative=())]


def seconds_of(span: str) -> int:
    """``90s``, ``10m``, ``2h``, ``1d``, and several of them. Raises `CommandError`."""
    text = span.strip().lower()
    parts = _SPAN.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise CommandError(
            f"{span!r} is no span of time",
            exit=Exit.USAGE,
            hint="Write it as 90s, 10m, 2h, 1d or 1h30m.",
        )
    return sum(int(number) * _UNITS[unit] for number, unit in parts)


@Parameter(name="*")
@frozen(kw_only=True)
class When:
    """When a schedule fires: one of them."""

    cron: Annotated[str | None, Parameter(name="--cron")] = None
    """A cron pattern of five fields, or six with the second before them: '0 9 * * 1-5'."""
    zone: Annotated[str | None, Parameter(name="--zone")] = None
    """The time zone of the pattern, such as Europe/Berlin; UTC without it."""
    at: Annotated[str | None, Parameter(name="--at")] = None
    """Once, at a local time (2031-05-17T09:30) or an instant with its offset."""
    in_: Annotated[str | None, Parameter(name="--in")] = None
    """Once, after a while: 10m, 2h, 1d."""
    every: Annotated[str | None, Parameter(name="--every")] = None
    """Again and again, so far apart: 30m, 6h, 1d."""

    @classmethod
    def of(cls, trigger: ScheduleTrigger) -> "When":
        every = None if trigger.every_seconds is None else _span(trigger.every_seconds)
        return cls(cron=trigger.cron, zone=trigger.time_zone, at=trigger.at, every=every)

    @property
    def words(self) -> str:
        if self.cron is not None:
            return f"{self.cron} ({self.zone or 'UTC'})"
        if self.at is not None:
            return f"once, {local_time(self.at, seconds=True)}"
        return f"every {self.every}"

    def trigger(self, now: datetime) -> ScheduleTrigger:
        """Raises `CommandError` unless exactly one is given."""
        given = [each for each in (self.cron, self.at, self.in_, self.every) if each is not None]
        if len(given) != 1:
            raise CommandError(
                "say when: exactly one of --cron, --at, --in and --every", exit=Exit.USAGE
            )
        if self.cron is not None:
            return ScheduleTrigger(cron=self.cron, time_zone=self.zone)
        if self.zone is not None:
            raise CommandError("--zone goes with --cron", exit=Exit.USAGE)
        if self.every is not None:
            return ScheduleTrigger(every_seconds=seconds_of(self.every))
        if self.in_ is not None:
            return ScheduleTrigger(at=_instant(now + timedelta(seconds=seconds_of(self.in_))))
        return ScheduleTrigger(at=instant_of(self.at or ""))


def instant_of(text: str) -> str:
    """A local time, or an instant, as the server takes it. Raises `CommandError`."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        raise CommandError(
            f"{text!r} is no time",
            exit=Exit.USAGE,
            hint="Write it as 2031-05-17T09:30, with an offset (+02:00, Z) where it is not local.",
        ) from None
    return _instant(at.astimezone(UTC))


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def _span(seconds: int) -> str:
    parts: list[str] = []
    for unit in ("d", "h", "m", "s"):
        count, seconds = divmod(seconds, _UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


async def add(
    prompt: str,
    /,
    *,
    when: When | None = None,
    session: Annotated[str | None, Parameter(name=["--session", "-s"])] = None,
    cwd: Annotated[Path | None, Parameter(name=["--cwd", "-C"])] = None,
    profile: Annotated[str | None, Parameter(name=["--profile", "-p"])] = None,
    name: str | None = None,
    max_fires: Annotated[int | None, Parameter(validator=validators.Number(gte=1))] = None,
    expires: str | None = None,
    max_failures: Annotated[int, Parameter(validator=validators.Number(gte=0))] = 3,
    missed: Literal["skip", "run-once"] = "skip",
    busy: Literal["skip", "queue"] | None = None,
    paused: Annotated[bool, Parameter(negative=())] = False,
    json: Json = False,
    store: StoreOption | None = None,
) -> int:
    """Have an agent woken by the clock, while any server of Callboard runs: an editor's, say.

    Parameters
    ----------
    prompt
        What the agent is told then.
    session
        The session in which it runs. Without it each run has a fresh session of its own.
    cwd
        The folder of fresh sessions; the current one by default.
    profile
        The agent; by default the session's own, or the configured one.
    name
        What it is called; unique for its agent.
    max_fires
        Ends after so many times.
    expires
        Ends at this time.
    max_failures
        Switched off after so many failures in a row; 0 never.
    missed
        Times that passed while no server was there: skip them, or run once for all. What fires once fires late.
    busy
        A time that finds the session at work: skip it, or let it wait. What fires once always waits.
    paused
        Make it switched off.
    json
        The schedule as one JSON object.
    """
    trigger = (when or When()).trigger(datetime.now(UTC))
    if session is not None and cwd is not None:
        raise CommandError("--session and --cwd exclude each other", exit=Exit.USAGE)
    expires_at = None if expires is None else instant_of(expires)
    async with connect(store, name="schedule") as client:
        if session is not None:
            found = await resolve(client, session)
            target = ScheduleTarget(session_id=SessionId(found.session_id))
            profile = profile or found.profile
        else:
            folder = (cwd or Path.cwd()).absolute()
            target = ScheduleTarget(fresh=FreshTarget(cwd=str(folder)))
            if profile is None:
                (configured,) = (await client.config.get(cwd=folder, keys=["profile"])).values
                profile = str(configured.value or "default")
        made = await client.schedules.create(
            profile,
            trigger,
            prompt,
            target,
            name=name,
            max_fires=max_fires,
            expires_at=expires_at,
            max_failures=max_failures,
            misfire="run_once" if missed == "run-once" else "skip",
            overlap=busy,
            enabled=not paused,
        )
    schedule = made.schedule
    if json:
        write_json_line(unstructure(schedule))
        return Exit.OK
    console = open_console()
    following = (
        "paused"
        if schedule.next_at is None
        else f"next {local_time(schedule.next_at, seconds=True)}"
    )
    head = line((schedule.name, "bold"), (f"  {schedule.schedule_id}", "dim"), f"  {following}")
    console.print(head, soft_wrap=True)
    note = "It fires while a server of Callboard runs, such as an editor's."
    console.print(line((note, "dim")), soft_wrap=True)
    return Exit.OK


async def preview(
    *,
    when: When | None = None,
    count: Annotated[
        int, Parameter(name=["--lines", "-n"], validator=validators.Number(gte=1, lte=100))
    ] = 5,
    json: Json = False,
) -> int:
    """Show when something would fire, before there is a schedule: by the clock of --zone, else by yours.

    Parameters
    ----------
    count
        How many of the next times.
    json
        One JSON text a line, in UTC.
    """
    from callboard.schedules import reading  # only this command works it out itself

    now = datetime.now(UTC)
    trigger = (when or When()).trigger(now)
    times = reading.preview(trigger, count, _instant(now))
    zone = None if trigger.time_zone is None else ZoneInfo(trigger.time_zone)
    console = open_console()
    for each in times:
        if json:
            write_json_line(each)  # pyright: ignore[reportArgumentType]
        else:
            shown = datetime.fromisoformat(each).astimezone(zone)
            console.print(line(shown.strftime("%a %Y-%m-%d %H:%M:%S %Z")), soft_wrap=True)
    return Exit.OK
