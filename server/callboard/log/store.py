"""Opening a store: where it lies, whether it may be used, and bringing its schema up to date.

Nothing here needs an event loop, so that the answer to ``initialize`` can be given at once.
"""

import os
import struct
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from attrs import frozen

from callboard_rpc.errors import CallboardError

from . import filesystem, occupancy
from .faultpoints import point
from .faults import store_error
from .ids import IdSource
from .lockfile import TurnLock
from .migrating import back_up, migrate, migrations, version_of
from .occupancy import Occupancy, locks_of, make_locks
from .quarantine import set_aside
from .sqlite import sqlite3

_MAGIC = b"SQLite format 3\x00"
BUSY_MS = 5_000
_POLL_S = 0.02


@frozen(kw_only=True)
class Store:
    """An opened store. `connection` is the writer's; only the writer's thread may use it."""

    path: Path
    store_id: str
    connection: "sqlite3.Connection"
    lock: TurnLock
    occupancy: Occupancy | None
    """Its place among those that have the store open; None while whoever opened it has it alone."""
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
        connection = connect(self.path)
        connection.execute("PRAGMA query_only = ON")
        return connection

    def close(self) -> None:
        """Gives the file and its locks back. Readers must be closed before."""
        self.connection.close()
        self.lock.close()
        if self.occupancy is not None:
            self.occupancy.close()
        _OPEN[self.path] -= 1
        if _OPEN[self.path] <= 0:
            del _OPEN[self.path]


def open_store(
    path: Path, *, ids: IdSource, now: Callable[[], str], held: Occupancy | None = None
) -> Store:
    """Opens, or creates, the store at `path`. `held`: the caller has it alone already, and keeps it.

    An older store is migrated, with a backup beside it; what a restore has left half done is finished.
    Raises `CallboardError`: storeUnsupported (network file system), storeVersion (made by a newer
    Callboard), storeCorrupt (a copy is put aside, the file is left as it is), storeReadOnly,
    storeFull, storeIo, storeBusy (somebody must be alone with it). The data is untouched in each case.
    """
    try:
        path = usable_place(path)
        return _open(path, ids, now, held) if held else _open_shared(path, ids, now)
    except (OSError, sqlite3.Error) as fault:
        named = store_error(fault, path)
        if named is None:
            raise
        if named.kind == "storeCorrupt" and path not in _OPEN:
            named = set_aside(path, str(fault), now)
        raise named from fault


def usable_place(path: Path) -> Path:
    """The one name of a store, whatever links lead to it, and so its one lock folder; its folder is
    made. Raises storeUnsupported for a network file system, and what the system raises."""
    path = path.expanduser().absolute()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = filesystem.real(path)
    kind = filesystem.type_of(path.parent)
    if filesystem.is_network(kind):
        raise CallboardError(
            "storeUnsupported",
            f"the store {path} would lie on a network file system ({kind}), where SQLite cannot keep "
            "it safe; choose a local folder with --store or CALLBOARD_STORE",
        )
    return path


def is_open_here(path: Path) -> bool:
    """Whether this process has a store open: then no descriptor of its file may be closed, which would
    drop the locks that SQLite holds on it (sqlite.org, "How To Corrupt", 2.2)."""
    return path in _OPEN


class _OutdatedError(Exception):
    """The store is of an older version; it is migrated by whoever has it alone."""


def _open_shared(path: Path, ids: IdSource, now: Callable[[], str]) -> Store:
    deadline = time.monotonic() + occupancy.WAIT_S
    while True:
        try:
            return _open(path, ids, now, None)
        except _OutdatedError:
            pass
        try:
            with occupancy.alone(path) as mine:
                _open(path, ids, now, mine).close()
        except CallboardError as error:
            if error.kind != "storeBusy":
                raise
            if time.monotonic() >= deadline:
                raise CallboardError(
                    "storeBusy",
                    f"{error.message}: it is of an older version and has to be migrated first",
                    retry_after_ms=1_000,
                ) from error
            time.sleep(_POLL_S)  # whoever else opens it just now may be migrating it


def _open(path: Path, ids: IdSource, now: Callable[[], str], held: Occupancy | None) -> Store:
    known = locks_of(path).exists()
    if not known and not is_open_here(path):
        _check_file(
            path, now, known=False
        )  # before anything is put beside a file of somebody else's
    make_locks(path)
    occupied = held or occupancy.share(path)
    lock: TurnLock | None = None
    connection: sqlite3.Connection | None = None
    try:
        if not is_open_here(path):
            if known:
                _check_file(path, now, known=True)
            # made here and not by SQLite, so that file and WAL are private from the first byte
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            point("log.store_made")
        lock = TurnLock(locks_of(path))
        connection = connect(path)
        with lock.held():
            refuse_foreign(connection, path)
            check_version(connection, path)
            outdated = 0 < version_of(connection) < len(migrations())
            if outdated and held is None:
                raise _OutdatedError
            _use_wal(connection, path)
            if outdated:
                back_up(connection, path)
            migrate(connection, migrations())
            store_id = _store_id(connection, ids)
        opened = path.stat()
    except BaseException:
        if connection is not None:
            connection.close()
        if lock is not None:
            lock.close()
        if held is None:
            occupied.close()
        raise
    _OPEN[path] += 1
    return Store(
        path=path,
        store_id=store_id,
        connection=connection,
        lock=lock,
        occupancy=None if held else occupied,
        file=(opened.st_dev, opened.st_ino),
    )


_OPEN: Counter[Path] = Counter()
"""How many times each store is open in this process."""


def refuse_foreign(connection: "sqlite3.Connection", path: Path) -> None:
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


def connect(path: Path) -> "sqlite3.Connection":
    """A connection set up as every one of a store is."""
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


def _check_file(path: Path, now: Callable[[], str], *, known: bool) -> None:
    """Sees damage that SQLite would only meet later: a foreign header, a file that was cut off. Only
    what is `known` as a store is damaged; anything else is somebody else's."""
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
        if not known:
            raise CallboardError(
                "storeUnsupported",
                f"{path} is no store of Callboard's; choose another place with --store or "
                "CALLBOARD_STORE",
            )
        raise set_aside(path, "it does not begin like an SQLite database", now)
    page_size = struct.unpack(">H", header[16:18])[0]
    pages = struct.unpack(">I", header[28:32])[0]
    size = (65536 if page_size == 1 else page_size) * pages
    if path.stat().st_size < size and not path.with_name(path.name + "-wal").exists():
        raise set_aside(path, f"it should have {size} bytes and has {path.stat().st_size}", now)


def check_version(connection: "sqlite3.Connection", path: Path) -> None:
    """Refuses a database that was made by a newer Callboard."""
    found, supported = version_of(connection), len(migrations())
    if found > supported:
        raise CallboardError(
            "storeVersion",
            f"the store {path} was made by a newer Callboard (schema {found}, this one knows "
            f"{supported}); upgrade Callboard, or use another store with --store",
            data={"found": found, "supported": supported},
        )


def _store_id(connection: "sqlite3.Connection", ids: IdSource) -> str:
    row = connection.execute("SELECT value FROM meta WHERE key = 'store_id'").fetchone()
    if row is not None:
        return row[0]
    store_id = ids.new("store")
    connection.execute("INSERT INTO meta VALUES ('store_id', ?)", (store_id,))
    return store_id
