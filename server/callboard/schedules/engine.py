"""Fires what is due, by the clock on the wall. One task of every host that stays.

It looks every two seconds whether something is due: one look into an index, for how many schedules soever, and so
it needs no word from other processes, and sees that a clock was put forward or back. What is due is done in the
order of its times; that another host does it as well is decided by the transaction.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from callboard_rpc.errors import CallboardError

from ..log.clock import parse
from .service import Schedules
from .state import GRACE, Kept, due
from .triggers import passed

_log = logging.getLogger(__name__)

LOOK_S = 2.0
"""The longest time between two looks."""
_AGAIN_S = 1.0
_TOGETHER = 64
"""How many are fired at a time: they share commits, and nobody else waits for long."""

Sleep = Callable[[float], Awaitable[None]]


class Engine:
    """`sleep` waits so many seconds, or until there is a reason to look sooner."""

    def __init__(self, schedules: Schedules, sleep: Sleep | None = None) -> None:
        self._schedules = schedules
        self._sleep = self._until_changed if sleep is None else sleep
        self._broken: set[tuple[str, int]] = set()

    async def run(self) -> None:
        """For as long as the host lives."""
        while True:
            wait_s = _AGAIN_S
            try:
                wait_s = await self.look()
            except CallboardError as error:
                _log.warning("the schedules wait for the store: %s", error)
            except Exception:
                # without this clock nothing would ever fire again
                _log.exception("the schedules could not be looked at")
            await self._sleep(wait_s)

    async def _until_changed(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._schedules.changed.wait()

    async def look(self) -> float:
        """Does all that is due, and tells how many seconds there is nothing to do."""
        schedules = self._schedules
        schedules.changed.clear()  # before the look: what is changed meanwhile ends the sleep
        schedules.wake_waiting()
        while True:
            now = schedules.now()
            earliest = schedules.reading.earliest()
            if earliest is None:
                return LOOK_S
            if earliest > now:
                return min(LOOK_S, (parse(earliest) - parse(now)).total_seconds())
            found = [
                each
                for each in schedules.reading.due(now, _TOGETHER + len(self._broken))
                if (each.schedule.schedule_id, each.revision) not in self._broken
            ]
            if not found:
                return LOOK_S  # only what cannot be done
            await self._fire_all(found, now)

    async def _fire_all(self, found: list[Kept], now: str) -> None:
        """Each is begun by itself: to count the times of a pattern that passed takes a while, and many of them
        in a row would keep everybody else waiting, whose prompt it may be."""
        fires: list[asyncio.Task[None]] = []
        try:
            for each in found:
                fires.append(asyncio.create_task(self._fire(each, now)))
                await asyncio.sleep(0)
            ends = await asyncio.gather(*fires, return_exceptions=True)
        finally:
            for fire in fires:
                fire.cancel()
        for end in ends:
            if isinstance(end, BaseException):
                raise end

    async def _fire(self, kept: Kept, now: str) -> None:
        """One that cannot be done keeps nothing from the others, and is not tried again until it is changed or
        the host begins anew: its zone is not known on this machine, say."""
        try:
            assert kept.schedule.next_at is not None
            gone = passed(kept.times, parse(kept.schedule.next_at), parse(now), GRACE)
            await self._schedules.fire(kept, due(kept.schedule, gone, now), now)
        except CallboardError as error:
            if error.kind != "scheduleInvalid":
                raise
            _log.warning("schedule %s cannot fire here: %s", kept.schedule.schedule_id, error)
            self._broken.add((kept.schedule.schedule_id, kept.revision))
