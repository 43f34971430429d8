"""One database copied as it is at one moment, while others go on writing to it."""

from collections.abc import Callable
from pathlib import Path

from .durable import sync_file
from .faultpoints import point as care_point
from .sqlite import sqlite3

_STEP_PAGES = 256
"""Pages in one step, a MiB."""


class DamagedCopyError(Exception):
    """What was copied is no whole database; the text says what is wrong with it."""


def copy_database(
    source: "sqlite3.Connection",
    target: Path,
    *,
    amend: "Callable[[sqlite3.Connection], None] | None" = None,
    told: Callable[[int, int], None] | None = None,
) -> None:
    """Fills `target`, an empty private file, with the state that `source` sees now, and syncs it.

    The copy is one file that needs no WAL. It holds one state of the store, since it is read within one
    transaction, which keeps no writer waiting. `amend` may change the copy; `told` hears of pages done
    and of all pages. Raises `DamagedCopyError` when the copy does not pass SQLite's quick check.
    """
    copy = sqlite3.connect(target, isolation_level=None)
    try:
        # it is synced once, at the end; until then nobody relies on it
        copy.execute("PRAGMA synchronous = OFF")
        copy.execute("PRAGMA journal_mode = OFF")
        _fill(source, copy, told)
        copy.execute("PRAGMA journal_mode = DELETE")
        if amend is not None:
            amend(copy)
        found = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
    finally:
        copy.close()
    if found != "ok":
        raise DamagedCopyError(found)
    sync_file(target)


def _fill(
    source: "sqlite3.Connection",
    copy: "sqlite3.Connection",
    told: Callable[[int, int], None] | None,
) -> None:
    def step(_: int, remaining: int, total: int) -> None:
        care_point("care.copying")
        if told is not None:
            told(total - remaining, total)

    # Within a transaction of its own the source stays as it is: without one, each commit of another
    # process would have the copy begin anew.
    source.execute("BEGIN")
    try:
        source.execute("SELECT count(*) FROM sqlite_master").fetchone()
        source.backup(copy, pages=_STEP_PAGES, progress=step, sleep=0)
    finally:
        source.execute("ROLLBACK")
