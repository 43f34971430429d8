"""Looking at a store as it is: nothing is made, migrated, checkpointed or changed by it."""

import contextlib
import os
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from callboard_rpc.errors import CallboardError

from . import occupancy
from .faults import store_error
from .occupancy import locks_of
from .quarantine import WAY_OUT
from .sqlite import sqlite3
from .store import check_version, connect, is_open_here, refuse_foreign

T = TypeVar("T")

Rows: TypeAlias = Callable[..., list[tuple[Any, ...]]]
"""Rows of a read-only statement, with its parameters."""

_MAGIC = b"SQLite format 3\x00"


@contextlib.contextmanager
def occupied(path: Path) -> Generator[None]:
    """Keeps others from restoring or replacing a store meanwhile, where it has been one. Raises
    storeBusy."""
    if not locks_of(path).is_dir():
        yield
        return
    with occupancy.share(path):
        yield


@contextlib.contextmanager
def looking_at(path: Path, *, what: str = "store") -> Generator["sqlite3.Connection"]:
    """A read-only connection to a database of Callboard's, be it in use or only a backup.

    `path` is absolute. Raises pathNotFound, storeUnsupported (it is none), storeVersion, storeCorrupt,
    storeReadOnly, storeIo.
    """
    try:
        if not is_open_here(path):
            _must_be_database(path, what)
        connection = _connection(path)
        try:
            refuse_foreign(connection, path)
            if not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
                raise CallboardError("storeUnsupported", f"the {what} {path} is empty")
            check_version(connection, path)
            yield connection
        finally:
            connection.close()
    except (OSError, sqlite3.Error) as fault:
        named = store_error(fault, path)
        if named is None:
            raise
        if named.kind == "storeCorrupt":
            named = CallboardError("storeCorrupt", f"the {what} {path} is damaged: {fault}")
        raise named from fault


def address(path: Path) -> str:
    """How to open a database without ever writing to it, as an SQLite URI."""
    wal = path.with_name(path.name + "-wal")
    alone = not wal.exists() or wal.stat().st_size == 0
    if alone and (not locks_of(path).exists() or not os.access(path.parent, os.W_OK)):
        return path.as_uri() + "?immutable=1"  # a backup, or one that nobody can change
    return path.as_uri() + "?mode=ro"


def _connection(path: Path) -> "sqlite3.Connection":
    uri = address(path)
    wal = path.with_name(path.name + "-wal")
    if uri.endswith("mode=ro") and (not wal.exists() or is_open_here(path)):
        # as any reader; it finds nothing to checkpoint, and takes the empty WAL with it that it makes
        connection = connect(path)
        connection.execute("PRAGMA query_only = ON")
        return connection
    return sqlite3.connect(uri, uri=True, isolation_level=None)


def _must_be_database(path: Path, what: str) -> None:
    if not path.exists():
        raise CallboardError(
            "pathNotFound", f"there is no {what} at {path}", data={"path": str(path)}
        )
    if not path.is_file():
        raise CallboardError("storeUnsupported", f"the {what} {path} is not a file")
    with path.open("rb") as file:
        start = file.read(len(_MAGIC))
    if start == _MAGIC:
        return
    if start and not locks_of(path).exists():
        raise CallboardError("storeUnsupported", f"the {what} {path} is no store of Callboard's")
    what_is_wrong = "it does not begin like an SQLite database" if start else "it is empty"
    raise CallboardError(
        "storeCorrupt" if start else "storeUnsupported",
        f"the {what} {path} cannot be used: {what_is_wrong}. {WAY_OUT if start else ''}".strip(),
    )


def rows_of(connection: "sqlite3.Connection") -> Rows:
    """What asks `connection`, for whoever is to look at the tables and not to know SQLite."""

    def rows(sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        return connection.execute(sql, parameters).fetchall()

    return rows


def at_once(connection: "sqlite3.Connection", function: Callable[[Rows], T]) -> T:
    """Runs `function` in one read transaction: all that it asks is answered from one state of the store."""
    connection.execute("BEGIN")
    try:
        return function(rows_of(connection))
    finally:
        connection.execute("ROLLBACK")
