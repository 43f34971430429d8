"""Cron patterns in a time zone: pure.

cronsim knows the patterns. The rules for clocks that are put forward and back are ours, since they hold for
patterns of six fields, too. A pattern with a fixed hour and minute goes by the clock on the wall: what falls into a
gap is due at the first moment after it, what comes twice is due the first time. Any other goes by elapsed time.
"""

import difflib
import re
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from attrs import frozen
from cronsim import CronSim, CronSimError

from ..log.text import quoted

_MAX_CHARS = 200
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*", re.ASCII)
_NO_ZONES = ("posix/", "right/")
"""Folders of the data base of zones that hold others over again, or count leap seconds."""
_LOCAL = frozenset({"localtime", "posixrules", "Factory"})
"""Names that mean another zone on every machine, or none."""
_SECOND = timedelta(seconds=1)
_FIELDS = "minute hour day-of-month month day-of-week, with a second before them if there are six"


class BadPattern(ValueError):
    """The text says what is wrong, and the way out."""


@frozen
class Cron:
    """The times of a pattern. Made by `parse`."""

    pattern: str
    zone: ZoneInfo

    def after(self, instant: datetime) -> datetime | None:
        """The first time after `instant`, in UTC; None when there is none within fifty years."""
        return next(self.each_after(instant), None)

    def each_after(self, instant: datetime) -> Iterator[datetime]:
        """The times after `instant`, in UTC and rising. Read anew the pattern costs more than a time of it."""
        last = instant
        try:
            for due in self._by_the_wall(instant) if self._is_fixed else self._by_elapsing(instant):
                if due > last:
                    yield due
                    last = due
        except OverflowError:  # beyond the end of the calendar
            return

    @property
    def _is_fixed(self) -> bool:
        minute, hour = self.pattern.split()[-5:-3]
        return not minute.startswith("*") and not hour.startswith("*")

    def _by_the_wall(self, instant: datetime) -> Iterator[datetime]:
        shown = instant.astimezone(self.zone).replace(tzinfo=None)
        for each in CronSim(self.pattern, shown):
            yield first_moment(each, self.zone)

    def _by_elapsing(self, instant: datetime) -> Iterator[datetime]:
        for each in CronSim(self.pattern, instant.astimezone(self.zone)):
            due = each.astimezone(UTC)
            # where the clock goes forward at midnight a day is begun at an hour that it does not have
            if due.astimezone(self.zone).replace(tzinfo=None) == each.replace(tzinfo=None):
                yield due


def first_moment(shown: datetime, zone: ZoneInfo) -> datetime:
    """When the clocks of `zone` show a time of day first, in UTC; where they never do, the first moment after
    the gap in which it would lie."""
    found = shown.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if found.astimezone(zone).replace(tzinfo=None) == shown:
        return found
    # read with the offset from before the gap it lies behind the change, with that from after it before it
    before, behind = shown.replace(tzinfo=zone, fold=1).astimezone(UTC), found
    offset = behind.astimezone(zone).utcoffset()
    while behind - before > _SECOND:
        middle = before + (behind - before) // 2
        middle = middle.replace(microsecond=0)
        if middle.astimezone(zone).utcoffset() == offset:
            behind = middle
        else:
            before = middle
    return behind


def parse(pattern: str, time_zone: str | None) -> Cron:
    """Raises `BadPattern` for a pattern or a zone that is none."""
    words = pattern.split()
    text = " ".join(words)
    if len(text) > _MAX_CHARS:
        raise BadPattern(f"the cron pattern is longer than {_MAX_CHARS} characters")
    if len(words) not in (5, 6):
        raise BadPattern(
            f"the cron pattern {text!r} has {len(words)} fields; it takes five or six: {_FIELDS}"
        )
    try:
        CronSim(text, datetime(2000, 1, 1))
    except (CronSimError, AssertionError, ValueError, TypeError) as fault:
        what = str(fault).removeprefix("Bad ") or "a field"
        raise BadPattern(
            f"the cron pattern {text!r} is wrong in {what}, or names a day that never comes; its fields are: "
            f"{_FIELDS}; ranges go upwards, and 0 and 7 are Sunday"
        ) from None
    return Cron(text, zone_of(time_zone or "UTC"))


def zone_of(name: str) -> ZoneInfo:
    """Raises `BadPattern` for a name that is no zone, with those that are like it."""
    if _ZONE.fullmatch(name) and not name.startswith(_NO_ZONES) and name not in _LOCAL:
        try:
            return ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            pass
    zones = zoneinfo.available_timezones()
    like = [each for each in zones if each.casefold() == name.casefold()]
    like = like or difflib.get_close_matches(name[:80], zones, n=3)
    hint = f"; is {' or '.join(like)} meant?" if like else "; write it as Europe/Berlin or UTC"
    raise BadPattern(f"there is no time zone {quoted(name)}{hint}")
