"""Values that are read from files, kept for as long as the files stay as they are."""

import os
import stat
import time
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")

Stamp: TypeAlias = tuple[tuple[int, ...], ...]
"""One entry for a file, one more for each file in a folder; none for what is not there."""

_KEPT = 256
_ENTRIES = 2_000
_SETTLED_NS = 100_000_000
"""A file that was changed a moment ago may be changed again within one tick of its clock."""


def stamp_of(path: str) -> Stamp:
    """What changes when the file at `path` does, or the folder there, or a file in that."""
    try:
        status = os.stat(path)  # noqa: PTH116 (this runs for every turn, and pathlib is slow)
        if not stat.S_ISDIR(status.st_mode):
            return (_entry(status),)
        with os.scandir(path) as entries:
            names = sorted(entry.name for entry in islice(entries, _ENTRIES))
    except OSError:
        return ()
    return (_entry(status), *(e for name in names for e in _file(f"{path}{os.sep}{name}")))


def _file(path: str) -> Stamp:
    try:
        return (_entry(os.stat(path)),)  # noqa: PTH116
    except OSError:
        return ()


def _entry(status: os.stat_result) -> tuple[int, ...]:
    return (
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_size,
        status.st_mode,
        status.st_ino,
        status.st_dev,
    )


class Fresh(Generic[T]):
    """What `read` makes of a workspace's files, by the workspace's folder.

    `sources` names the files and folders that it depends on. They are looked at each time, and read
    only when one is not as it was.
    """

    def __init__(
        self,
        read: Callable[[str], T],
        sources: Callable[[str], Iterable[os.PathLike[str]]],
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._read = read
        self._sources = sources
        self._now_ns = now_ns
        self._kept: dict[str, tuple[tuple[str, ...], list[Stamp], T]] = {}

    def get(self, folder: str) -> T:
        """The value for `folder`. Raises what `read` raises."""
        kept = self._kept.get(folder)
        if kept is not None and kept[1] == [stamp_of(path) for path in kept[0]]:
            return kept[2]
        self._kept.pop(folder, None)
        paths = tuple(os.fspath(path) for path in self._sources(folder))
        stamps = [stamp_of(path) for path in paths]
        value = self._read(folder)
        if self._settled(stamps):
            while len(self._kept) >= _KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[folder] = (paths, stamps, value)
        return value

    def _settled(self, stamps: list[Stamp]) -> bool:
        latest = max((max(e[0], e[1]) for stamp in stamps for e in stamp), default=0)
        return latest < self._now_ns() - _SETTLED_NS
