"""Bringing an older store up to date: a backup beside it first, then every step in one transaction.

It is done by whoever has the store alone, so that no older process meets a schema that it does not
know, and two that open the store at once migrate it once.
"""

import filecmp
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path

from callboard_rpc.errors import CallboardError

from .copying import DamagedCopyError, copy_database
from .durable import free_name, keep, part_of
from .faultpoints import point
from .faultpoints import point as care_point
from .faults import store_error
from .sqlite import sqlite3


def migrations() -> list[str]:
    """The schema's steps, oldest first; the store's ``user_version`` counts how many it has."""
    folder = files("callboard.log") / "migrations"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(folder / name).read_text("utf-8") for name in names]


def version_of(connection: "sqlite3.Connection") -> int:
    """How many of the steps a database has taken."""
    return connection.execute("PRAGMA user_version").fetchone()[0]


def backup_of(path: Path, version: int) -> Path:
    """Where the backup of a store lies that had `version` before it was migrated."""
    return path.with_name(f"{path.name}.backup-v{version}")


def migrate(connection: "sqlite3.Connection", steps: Sequence[str]) -> None:
    """Takes the steps that are missing, all or none. The caller holds the writers' lock."""
    found = version_of(connection)
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


def back_up(connection: "sqlite3.Connection", path: Path) -> Path:
    """Copies the store beside itself before it is migrated. An earlier copy is never overwritten; one
    that holds the very same is enough.

    Raises storeFull and others when there is no room for it: then nothing is migrated.
    """
    version = version_of(connection)
    target = backup_of(path, version)
    try:
        with part_of(target) as part:
            copy_database(connection, part)
            if target.is_file() and filecmp.cmp(part, target, shallow=False):
                return target
            target = free_name(target)
            keep(part, target)
            care_point("care.backed_up")
            return target
    except DamagedCopyError as fault:
        raise CallboardError(
            "storeCorrupt",
            f"the store {path} is damaged ({fault}) and was not migrated; `callboard store check` tells "
            "more, `callboard store restore BACKUP` puts a backup in its place",
        ) from fault
    except (OSError, sqlite3.Error) as fault:
        named = store_error(fault, path)
        if named is None:
            raise
        raise CallboardError(
            named.kind,
            f"the store {path} has to be migrated, and no backup could be made beside it: "
            f"{named.message}. Nothing was changed",
        ) from fault


def _statements(script: str) -> Iterator[str]:
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
    if pending.strip():
        yield pending
