"""The one SQLite library of this process, and what it is able to do.

SQLite from 3.7.0 to 3.51.2 can lose or corrupt commits when two connections write and checkpoint
at the same instant (sqlite.org, "the WAL-reset bug"). The library of the `pysqlite3` wheel is newer
and is taken where it is installed; with an older one the store's lock file keeps such instants
from happening. Two SQLite libraries never open one file in one process, so nothing else in
Callboard imports `sqlite3`.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import sqlite3
else:
    try:
        import pysqlite3 as sqlite3
    except ImportError:
        import sqlite3

__all__ = ["LIBRARY", "VERSION", "has_wal_reset_bug", "sqlite3"]

VERSION: Final[str] = sqlite3.sqlite_version
LIBRARY: Final[str] = "pysqlite3" if "pysqlite3" in sqlite3.connect.__module__ else "sqlite3"

_BACKPORTS = {(3, 44): 6, (3, 50): 7}


def has_wal_reset_bug(version: str) -> bool:
    """Whether SQLite `version` (``3.40.1``) can lose commits when writers checkpoint at once."""
    major, minor, patch = (int(part) for part in (*version.split("."), "0", "0")[:3])
    if (major, minor) in _BACKPORTS:
        return patch < _BACKPORTS[major, minor]
    return (3, 7, 0) <= (major, minor, patch) < (3, 51, 3)
