"""What the tests of schedules share: a host whose schedules go by the test's own clock."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from attrs import define, field

from callboard.host import Feature, Host
from callboard.log.clock import parse
from callboard.schedules.engine import Engine
from callboard.schedules.service import Schedules
from callboard.schedules.triggers import text_of
from callboard_rpc.common import SessionId
from callboard_rpc.schedules import (
    FreshTarget,
    Schedule,
    ScheduleCreateParams,
    ScheduleFire,
    ScheduleTarget,
    ScheduleTrigger,
    ScheduleUpdateParams,
)
from harness.inside import host_in, idle, log_of, new_session, say
from harness.puppets import Puppet, calls, speaks

START = "2031-05-17T09:00:00.000Z"


@define
class Clock:
    """The time, as text; it stands until it is moved, in either direction."""

    at: str = START

    def now(self) -> str:
        return self.at

    def set(self, at: str) -> None:
        self.at = text_of(parse(at))

    def move(self, **by: float) -> None:
        self.at = text_of(parse(self.at) + timedelta(**by))


@define
class Stage:
    host: Host
    puppet: Puppet
    folder: Path
    clock: Clock
    schedules: Schedules
    engine: Engine
    slept: list[float] = field(factory=list[float])

    async def session(self, **more: Any) -> str:
        return await new_session(self.host, self.folder, **more)

    async def say(self, session_id: str, text: str = "hello") -> Any:
        return await say(self.host, session_id, text)

    async def idle(self, session_id: str) -> None:
        assert (await idle(self.host, session_id)).reason == "idle"

    async def log(self, session_id: str) -> list[Any]:
        return await log_of(self.host, session_id)

    async def make(
        self, session_id: str | None = None, *, prompt: str = "look around", **more: Any
    ) -> Schedule:
        """A schedule: pinned to a session, or fresh in this folder; each minute, unless told otherwise."""
        times = {k: more.pop(k) for k in ("cron", "time_zone", "at", "every_seconds") if k in more}
        target = (
            ScheduleTarget(fresh=FreshTarget(cwd=str(self.folder)))
            if session_id is None
            else ScheduleTarget(session_id=SessionId(session_id))
        )
        return await self.schedules.create(
            ScheduleCreateParams(
                profile=more.pop("profile", "default"),
                trigger=ScheduleTrigger(**(times or {"cron": "* * * * *"})),
                prompt=prompt,
                target=target,
                **more,
            ),
            more.pop("maker", None),
        )

    async def use(self, session_id: str, *requested: tuple[str, Any]) -> list[str]:
        """The results of calls that the agent of a session makes, in a turn of its own."""
        self.puppet.scenes[:0] = [calls(*requested), speaks("used.")]
        await self.say(session_id, "use your tools")
        await self.idle(session_id)
        return self.puppet.read()

    async def update(self, schedule: Schedule, **changes: Any) -> Schedule:
        return await self.schedules.update(
            ScheduleUpdateParams(schedule_id=schedule.schedule_id, **changes)
        )

    async def look(self) -> float:
        return await self.engine.look()

    async def at(self, instant: str) -> None:
        """The engine looks at this moment."""
        self.clock.set(instant)
        await self.look()

    def now(self, schedule: Schedule) -> Schedule:
        """The schedule as it stands."""
        return self.schedules.reading.schedule(schedule.schedule_id)

    async def runs(self, schedule: Schedule) -> list[ScheduleFire]:
        """Its fires, the oldest first."""
        found, _ = await self.schedules.reading.runs(schedule.schedule_id, limit=2_000)
        return list(reversed(found))

    async def until(self, schedule: Schedule, *outcomes: str) -> list[ScheduleFire]:
        """Its fires once their outcomes are these, the oldest first."""
        async with asyncio.timeout(30):
            while True:
                position = self.host.log.head
                found = await self.runs(schedule)
                if [fire.outcome for fire in found] == list(outcomes):
                    return found
                await self.host.log.moved(position)


def schedules_of(host: Host) -> Schedules:
    service = host.services["schedules"]
    assert isinstance(service, Schedules)
    return service


@asynccontextmanager
async def stage(
    folder: Path,
    *scenes: Any,
    clock: Clock | None = None,
    environ: Mapping[str, str] | None = None,
    features: Sequence[Feature] = (),
) -> AsyncGenerator[Stage]:
    """Opening the folder again is a restart. The host's own engine is off: the test's takes its place."""
    puppet = Puppet(*scenes)
    async with host_in(folder, environ=environ, features=features, leaves=True) as host:

        async def resolve(model_id: str | None = None, *, text_tool_calls: bool = False) -> Puppet:
            return puppet

        host.catalog.resolve = resolve  # type: ignore[method-assign]
        clock = clock or Clock()
        schedules = schedules_of(host)
        schedules.now = clock.now
        yield Stage(host, puppet, folder, clock, schedules, Engine(schedules))
