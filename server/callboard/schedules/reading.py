"""Schedules and their fires, for whoever asks. Nothing here waits for the writer."""

import orjson

from callboard_rpc.errors import CallboardError
from callboard_rpc.schedules import Schedule, ScheduleFire, ScheduleTrigger

from ..log.clock import parse
from ..log.log import Log
from ..log.text import quoted
from . import triggers
from .keeping import not_found
from .rows import SQL, find, fire_of, kept_of
from .state import Kept
from .triggers import invalid

MOST_PREVIEWED = 100
NEWEST = 1 << 62


class ScheduleReading:
    def __init__(self, log: Log) -> None:
        self._log = log

    def schedule(self, schedule_id: str) -> Schedule:
        """Raises scheduleNotFound."""
        kept = find(self._log.glance, schedule_id)
        if kept is None:
            raise not_found(schedule_id)
        return kept.schedule

    def of_agent(self, session_id: str) -> tuple[Schedule, ...]:
        """Those that the agent of a session has made, the newest first."""
        rows = self._log.glance(SQL["schedules_of_agent"], session_id)
        return tuple(kept_of(row).schedule for row in rows)

    async def page(
        self,
        *,
        after: str | None = None,
        profile: str | None = None,
        session_id: str | None = None,
        enabled: bool | None = None,
        limit: int,
    ) -> tuple[tuple[Schedule, ...], str | None]:
        """Schedules by profile, then name; and the cursor of what follows. Raises invalidCursor."""
        rows = await self._log.query(
            SQL["schedules_page"],
            *_place(after),
            profile,
            session_id,
            None if enabled is None else int(enabled),
            limit + 1,
        )
        found = tuple(kept_of(row).schedule for row in rows[:limit])
        more = len(rows) > limit
        return found, _cursor(found[-1]) if more else None

    async def runs(
        self, schedule_id: str, *, before: int = NEWEST, limit: int
    ) -> tuple[tuple[ScheduleFire, ...], int | None]:
        """The fires of a schedule, the newest first; and where the next page begins. Raises scheduleNotFound."""
        self.schedule(schedule_id)
        rows = await self._log.query(SQL["fires_page"], schedule_id, before, limit + 1)
        found = tuple(fire_of(row) for row in rows[:limit])
        return found, rows[limit - 1][0] if len(rows) > limit else None

    # --- the engine ---

    def earliest(self) -> str | None:
        """When the next schedule is due, if one is: one look into an index."""
        rows = self._log.glance(SQL["earliest"])
        return rows[0][0] if rows else None

    def due(self, now: str, limit: int) -> tuple[Kept, ...]:
        return tuple(kept_of(row) for row in self._log.glance(SQL["due"], now, limit))

    def waiting_behind(self, session_id: str) -> tuple[str, ...]:
        """The sessions that were made for fires which wait for one in this session to end."""
        return tuple(each for (each,) in self._log.glance(SQL["waits_behind"], session_id))

    def waiting(self) -> tuple[str, ...]:
        """The sessions that were made for fires which have not begun."""
        return tuple(each for (each,) in self._log.glance(SQL["waiting"]))


def preview(trigger: ScheduleTrigger, count: int, now: str) -> tuple[str, ...]:
    """The next times of a trigger. Raises scheduleInvalid."""
    if not 1 <= count <= MOST_PREVIEWED:
        raise invalid(f"count is {count}; it takes 1 to {MOST_PREVIEWED}")
    at = parse(now)
    times = triggers.times_of(triggers.checked(trigger), at)
    triggers.first_after(trigger, times, at)
    return tuple(triggers.text_of(each) for each in triggers.following(times, at, count))


# --- cursors: the place of the last item of a page, which nothing new can move ------------------------


def _cursor(schedule: Schedule) -> str:
    return orjson.dumps([schedule.profile, schedule.name]).decode()


def _place(cursor: str | None) -> tuple[str, str]:
    if cursor is None:
        return "", ""
    try:
        match orjson.loads(cursor):
            case [str() as profile, str() as name]:
                return profile, name
            case _:
                pass
    except orjson.JSONDecodeError:
        pass
    raise CallboardError(
        "invalidCursor",
        f"the cursor {quoted(cursor)} is none of this list; leave it out to begin from the start",
    )
