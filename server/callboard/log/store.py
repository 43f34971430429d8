"""Opening a store: where it lies, whether it may be used, and bringing its schema up to date.

Nothing here needs an event loop, so that the answer to ``initialize`` can be given at once.
"""

import glob
import os
import shutil
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path

from attrs import frozen

from callboard_rpc.errors import CallboardError

from . import filesystem
from .faultpoints import point
from .faults import store_error
from .ids import IdSource
from .lockfile import TurnLock
from .sqlite import sqlite3

_MAGIC = b"SQLite format 3\x00"
BUSY_MS = 5_000


@frozen(kw_only=True)
class Store:
    """An opened store. `connection` is the writer's; only the writer's thread may use it."""

    path: Path
    store_id: str
    connection: "sqlite3.Connection"
    lock: TurnLock
    file: tuple[int, int]
    """Device and number of the file that is open."""

    def must_be_in_place(self) -> None:
        """Raises storeIo when the open file is no longer the one at `path`: whatever is committed to
        it then is lost when it is closed, and must not be called durable."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            found = None
        if found is None or (found.st_dev, found.st_ino) != self.file:
            raise CallboardError(
                "storeIo",
                f"the store {self.path} was {'deleted' if found is None else 'replaced'} while it was "
                "in use; put it back, or start the server again",
            )

    def head(self) -> int:
        """The last `pos` that was committed, 0 for an empty log."""
        row = self.connection.execute("SELECT max(pos) FROM events").fetchone()
        return row[0] or 0

    def reader(self) -> "sqlite3.Connection":
        """A connection that can only read, and never checkpoints."""
        connection = _connect(self.path)
        connection.execute("PRAGMA query_only = ON")
        return connection

    def close(self) -> None:
        """Gives the file and its locks back. Readers must be closed before."""
        self.connection.close()
        self.lock.close()
        _OPEN[self.path] -= 1
        if _OPEN[self.path] <= 0:
            del _OPEN[self.path]


def open_store(path: Path, *, ids: IdSource, now: Callable[[], str]) -> Store:
    """Opens, or creates, the store at `path`.

    Raises `CallboardError`: storeUnsupported (network file system), storeVersion (made by a newer
    Callboard), storeCorrupt (a copy is put aside, the file is left as it is), storeReadOnly,
    storeFull, storeIo. The data is untouched in each case.
    """
    try:
        return _open(path.expanduser().absolute(), ids, now)
    except (OSError, sqlite3.Error) as fault:
        named = store_error(fault, path)
        if named is None:
            raise
        if named.kind == "storeCorrupt":
            named = _set_aside(path, str(fault), now)
        raise named from fault


def _open(path: Path, ids: IdSource, now: Callable[[], str]) -> Store:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = (
        path.resolve()
    )  # one store has one name, and so one lock folder, whatever links lead to it
    kind = filesystem.type_of(path.parent)
    if filesystem.is_network(kind):
        raise CallboardError(
            "storeUnsupported",
            f"the store {path} would lie on a network file system ({kind}), where SQLite cannot keep "
            "it safe; choose a local folder with --store or CALLBOARD_STORE",
        )
    if path not in _OPEN:
        # Only while nothing here has it open: closing a file that SQLite has open, too, would drop
        # the locks that SQLite holds on it (sqlite.org, "How To Corrupt", 2.2).
        _check_file(path, now)
        # made here and not by SQLite, so that file and WAL are private from the first byte
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        point("log.store_made")
    lock = TurnLock(_lock_folder(path))
    connection: sqlite3.Connection | None = None
    try:
        connection = _connect(path)
        with lock.held():
            _refuse_foreign(connection, path)
            _check_version(connection, path)
            _use_wal(connection, path)
            _migrate(connection)
            store_id = _store_id(connection, ids)
    except BaseException:
        if connection is not None:
            connection.close()
        lock.close()
        raise
    _OPEN[path] += 1
    opened = path.stat()
    return Store(
        path=path,
        store_id=store_id,
        connection=connection,
        lock=lock,
        file=(opened.st_dev, opened.st_ino),
    )


_OPEN: Counter[Path] = Counter()
"""How many times each store is open in this process."""


def _refuse_foreign(connection: "sqlite3.Connection", path: Path) -> None:
    """Leaves alone a database that is somebody else's."""
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
    if tables and not {"meta", "events"} <= tables:
        raise CallboardError(
            "storeUnsupported",
            f"{path} is a database of another program; choose another file with --store or "
            "CALLBOARD_STORE",
        )


def _use_wal(connection: "sqlite3.Connection", path: Path) -> None:
    mode: str = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise CallboardError(
            "storeUnsupported",
            f"the file system under {path} lacks what the store needs (SQLite's WAL); choose a local "
            "folder with --store or CALLBOARD_STORE",
        )


def _locks_of(path: Path) -> Path:
    return path.with_name(path.name + ".locks")


def _lock_folder(path: Path) -> Path:
    folder = _locks_of(path)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _connect(path: Path) -> "sqlite3.Connection":
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    for pragma in (
        f"busy_timeout = {BUSY_MS}",
        "synchronous = FULL",
        "foreign_keys = ON",
        "wal_autocheckpoint = 0",
        "temp_store = MEMORY",
        "cache_size = -8000",
        "trusted_schema = OFF",
    ):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def _check_file(path: Path, now: Callable[[], str]) -> None:
    """Sees damage that SQLite would only meet later: a foreign header, a file that was cut off."""
    if not path.exists() or path.stat().st_size == 0:
        return
    if not os.access(path, os.W_OK):
        raise CallboardError(
            "storeReadOnly",
            f"the store {path} cannot be written; check the permissions of the file and its folder",
        )
    with path.open("rb") as file:
        header = file.read(100)
    if len(header) < 100 or not header.startswith(_MAGIC):
        if not _locks_of(path).exists():
            raise CallboardError(
                "storeUnsupported",
                f"{path} is no store of Callboard's; choose another place with --store or "
                "CALLBOARD_STORE",
            )
        raise _set_aside(path, "it does not begin like an SQLite database", now)
    page_size = struct.unpack(">H", header[16:18])[0]
    pages = struct.unpack(">I", header[28:32])[0]
    size = (65536 if page_size == 1 else page_size) * pages
    if path.stat().st_size < size and not path.with_name(path.name + "-wal").exists():
        raise _set_aside(path, f"it should have {size} bytes and has {path.stat().st_size}", now)


def _copy_of(path: Path) -> Path | None:
    """The copy that was put aside before, of the very same file; one is enough."""
    mine = path.stat()
    for copy in path.parent.glob(f"{glob.escape(path.name)}.corrupt-*"):
        found = copy.stat()
        if (found.st_size, found.st_mtime_ns) == (mine.st_size, mine.st_mtime_ns):
            return copy
    return None


def _set_aside(path: Path, what: str, now: Callable[[], str]) -> CallboardError:
    stamp = "".join(c for c in now() if c.isdigit())[:14]
    copy = path.with_name(f"{path.name}.corrupt-{stamp}")
    try:
        same = _copy_of(path)
        if same is not None:
            copy = same
        elif not copy.exists():
            for tail in ("", "-wal"):  # what was not checkpointed yet may be all that is whole
                source = path.with_name(path.name + tail)
                if source.exists():
                    shutil.copy2(source, copy.with_name(copy.name + tail))
                    copy.with_name(copy.name + tail).chmod(0o600)
        kept = f"; a copy is at {copy}"
    except OSError:
        kept = "; there was no room for a copy"
    return CallboardError(
        "storeCorrupt",
        f"the store {path} is damaged: {what}{kept}. Restore a backup, or move the file away to "
        "start with an empty store",
        data={"copy": str(copy)},
    )


def migrations() -> list[str]:
    """The schema's steps, oldest first; the store's ``user_version`` counts how many it has."""
    folder = files("callboard.log") / "migrations"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(folder / name).read_text("utf-8") for name in names]


def _version(connection: "sqlite3.Connection") -> int:
    return connection.execute("PRAGMA user_version").fetchone()[0]


def _check_version(connection: "sqlite3.Connection", path: Path) -> None:
    found, supported = _version(connection), len(migrations())
    if found > supported:
        raise CallboardError(
            "storeVersion",
            f"the store {path} was made by a newer Callboard (schema {found}, this one knows "
            f"{supported}); upgrade Callboard, or use another store with --store",
            data={"found": found, "supported": supported},
        )


def _migrate(connection: "sqlite3.Connection") -> None:
    found, steps = _version(connection), migrations()
    if found == len(steps):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in steps[found:]:
            for statement in _statements(step):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        point("log.migrating")
        connection.execute("COMMIT")
        point("log.migrated")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _statements(script: str) -> Iterator[str]:
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
    if pending.strip():
        yield pending


def _store_id(connection: "sqlite3.Connection", ids: IdSource) -> str:
    row = connection.execute("SELECT value FROM meta WHERE key = 'store_id'").fetchone()
    if row is not None:
        return row[0]
    store_id = ids.new("store")
    connection.execute("INSERT INTO meta VALUES ('store_id', ?)", (store_id,))
    return store_id
