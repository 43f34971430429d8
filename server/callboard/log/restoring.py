"""Putting a backup in the store's place, while nobody has the store open."""

from collections.abc import Callable
from pathlib import Path

from attrs import frozen

from callboard_rpc.errors import CallboardError

from . import filesystem, occupancy
from .copying import DamagedCopyError, copy_database
from .durable import free_name, make_private
from .examining import examine_events, examine_log
from .faultpoints import point as care_point
from .faults import store_error
from .ids import IdSource
from .looking import Rows, looking_at, occupied, rows_of
from .occupancy import make_locks
from .sqlite import sqlite3
from .store import usable_place
from .swap import staging_of, swap


@frozen(kw_only=True)
class Restored:
    """A store that holds a backup now. `replaced` is where the old one lies, if there was one."""

    path: Path
    store_id: str
    head: int
    sessions: int
    replaced: Path | None


def restore(
    store: Path,
    source: Path,
    *,
    ids: IdSource,
    now: Callable[[], str],
    users: Callable[[Rows], list[str]],
) -> Restored:
    """Puts the backup `source` in the store's place. The old store is kept beside it.

    The restored store is another one than that which was backed up: it has an id of its own, so that a
    cursor of what happened since the backup is refused, and never taken for one of this store. `users`
    names the hosts of a store that live. Raises storeBusy (somebody has the store open), storeCorrupt
    and storeUnsupported (the backup is no good), storeVersion, storeFull, storeIo. Up to
    the last step nothing is changed, and that is made wholly or not at all.
    """
    origin = filesystem.real(source)
    if not origin.exists():
        raise CallboardError(
            "pathNotFound", f"there is no backup at {origin}", data={"path": str(origin)}
        )
    try:
        path = usable_place(store)
        if origin == staging_of(path) or (path.exists() and path.samefile(origin)):
            raise CallboardError(
                "pathDenied", f"{origin} is the store itself", data={"path": str(origin)}
            )
        make_locks(path)
        with occupancy.alone(path):
            _must_be_unused(path, users)
            store_id, head, sessions = _stage(path, origin, ids)
            replaced = free_name(path.with_name(f"{path.name}.replaced-{_stamp(now())}"))
            existed = path.exists()
            swap(path, replaced)
    except (OSError, sqlite3.Error) as fault:
        named = store_error(fault, store)
        if named is None:
            raise
        raise named from fault
    return Restored(
        path=path,
        store_id=store_id,
        head=head,
        sessions=sessions,
        replaced=replaced if existed else None,
    )


def _must_be_unused(path: Path, users: Callable[[Rows], list[str]]) -> None:
    """Belt and braces: a host whose lock folder was deleted under it still lives."""
    try:
        with looking_at(path) as connection:
            living = users(rows_of(connection))
    except (CallboardError, sqlite3.Error):
        return  # that it cannot be read may be why it is to be restored
    if living:
        raise CallboardError(
            "storeBusy",
            f"the store {path} is in use by {', '.join(living)}; close the editors and commands that "
            "use it and try again",
            retry_after_ms=1_000,
        )


def _stage(path: Path, origin: Path, ids: IdSource) -> tuple[str, int, int]:
    """Makes what is to take the store's place, and looks it through."""
    staged = staging_of(path)
    for tail in ("", "-wal", "-shm", "-journal"):
        staged.with_name(staged.name + tail).unlink(missing_ok=True)
    make_private(staged)
    store_id = ids.new("store")

    def amend(copy: "sqlite3.Connection") -> None:
        copy.execute("INSERT OR REPLACE INTO meta VALUES ('store_id', ?)", (store_id,))
        tables = {name for (name,) in copy.execute("SELECT name FROM sqlite_master")}
        if "hosts" in tables:
            # those that lived at the time of the backup run nothing here: their turns are taken over
            copy.execute("DELETE FROM hosts")

    try:
        with occupied(origin), looking_at(origin, what="backup") as connection:
            try:
                copy_database(connection, staged, amend=amend)
            except (OSError, sqlite3.Error) as fault:
                named = store_error(fault, path)  # it is beside the store that there is no room
                if named is None or named.kind not in ("storeFull", "storeIo"):
                    raise
                message = f"{named.message}. It is as it was; {origin} was not put in its place"
                raise CallboardError(named.kind, message) from fault
        care_point("care.staged")
        with looking_at(staged, what="backup") as connection:
            rows = rows_of(connection)
            problems = examine_events(rows) + examine_log(rows)
            if problems:
                raise CallboardError(
                    "storeCorrupt",
                    f"the backup {origin} is damaged: {problems[0].message}. The store is as it was",
                )
            head, sessions = connection.execute(
                "SELECT (SELECT coalesce(max(pos), 0) FROM events), (SELECT count(*) FROM heads)"
            ).fetchone()
    except BaseException as fault:
        staged.unlink(missing_ok=True)
        if isinstance(fault, DamagedCopyError):
            raise CallboardError(
                "storeCorrupt",
                f"the backup {origin} is damaged ({fault}). The store is as it was",
            ) from fault
        raise
    return store_id, head, sessions


def _stamp(at: str) -> str:
    return "".join(c for c in at if c.isdigit())[:14]
