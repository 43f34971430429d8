"""Making a store smaller: what is of no use any more goes, and the file is written anew without gaps."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

from attrs import frozen

from callboard_rpc.errors import CallboardError

from . import occupancy
from .checking import commit, forget_blobs
from .clock import parse
from .durable import make_private, sync_file, sync_folder
from .examining import SQL
from .faultpoints import point as care_point
from .faults import store_error
from .ids import IdSource
from .occupancy import make_locks
from .quarantine import WAY_OUT
from .sqlite import sqlite3
from .store import open_store, usable_place
from .swap import staging_of
from .transaction import SQL as LOG_SQL
from .transaction import Transaction, Writing


@frozen(kw_only=True)
class Vacuumed:
    """Sizes in bytes, the WAL's with the file's; and how much of no use was found."""

    path: Path
    bytes_before: int
    bytes_after: int
    blobs: int
    answers: int
    drafts: int


def vacuum(
    store: Path,
    *,
    now: Callable[[], str],
    ids: IdSource,
    keep_answers_days: int,
) -> Vacuumed:
    """Removes blobs that belong to no session, answers to requests that are older than
    `keep_answers_days`, drafts of turns that do not run, and all free space.

    The new file is made beside the old one and takes its place in one step. Raises storeBusy while
    anybody has the store open, storeCorrupt, storeFull, storeIo: the store is as it was, then.
    """
    try:
        path = usable_place(store)
        if not path.exists():
            raise CallboardError(
                "pathNotFound", f"there is no store at {path}", data={"path": str(path)}
            )
        make_locks(path)
        with occupancy.alone(path) as mine:
            before = _size(path)
            opened = open_store(path, ids=ids, now=now, held=mine)
            try:
                oldest = parse(now()) - timedelta(days=keep_answers_days)
                until = oldest.isoformat(timespec="milliseconds")
                writing = Writing.of(path, ids, now, ())
                blobs, answers, drafts = commit(opened, writing, partial(_clean, until))
                commit(opened, writing, _merge)
                _write_anew(opened.connection, staging_of(path), path)
            finally:
                opened.close()
            _take_place(path)
    except (OSError, sqlite3.Error) as fault:
        named = store_error(fault, store)
        if named is None:
            raise
        raise named from fault
    return Vacuumed(
        path=path,
        bytes_before=before,
        bytes_after=_size(path),
        blobs=blobs,
        answers=answers,
        drafts=drafts,
    )


def _clean(until: str, tx: Transaction) -> tuple[int, int, int]:
    return (
        forget_blobs(tx),
        tx.execute(LOG_SQL["prune_idempotency"], until),
        tx.execute(SQL["delete_idle_drafts"]),
    )


def _merge(tx: Transaction) -> None:
    tx.execute(SQL["merge_search"])


def _write_anew(connection: "sqlite3.Connection", staged: Path, path: Path) -> None:
    """Writes the store without gaps into its staging place, and looks it through."""
    for tail in ("", "-wal", "-shm", "-journal"):
        staged.with_name(staged.name + tail).unlink(missing_ok=True)
    make_private(staged)
    try:
        connection.execute("VACUUM INTO ?", (str(staged),))
        care_point("care.vacuumed")
        copy = sqlite3.connect(staged, isolation_level=None)
        try:
            found = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
        finally:
            copy.close()
        if found != "ok":
            raise CallboardError(
                "storeCorrupt",
                f"the store {path} is damaged ({found}); it was left as it is. {WAY_OUT}",
            )
        sync_file(staged)
    except BaseException:
        staged.unlink(missing_ok=True)
        raise


def _take_place(path: Path) -> None:
    """The old file is closed, and was the last that had a WAL: so one rename is the whole step."""
    wal = path.with_name(path.name + "-wal")
    staged = staging_of(path)
    if wal.exists() and wal.stat().st_size:
        staged.unlink(missing_ok=True)
        raise CallboardError(
            "storeBusy",
            f"the WAL of the store {path} could not be emptied: another program has it open, or there "
            "is no room for it; end that and try again",
        )
    care_point("care.vacuum_closed")
    staged.replace(path)
    sync_folder(path.parent)
    care_point("care.vacuum_replaced")


def _size(path: Path) -> int:
    files = (path, path.with_name(path.name + "-wal"))
    return sum(each.stat().st_size for each in files if each.exists())
