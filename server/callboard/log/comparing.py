"""The log is the truth: projections are built anew beside it, and compared with those of the store."""

import re
from collections.abc import Sequence
from pathlib import Path

from .examining import SQL, Finding
from .looking import address
from .record import Record
from .sqlite import sqlite3
from .store import is_open_here
from .transaction import Projection, Transaction, Writing

_NAME = re.compile(r"^[a-z_]+$")


def examine_projections(path: Path, writing: Writing) -> list[Finding]:
    """Where the projected tables of the store at `path` differ from what its log says.

    They are built in a temporary database, to which the store is attached for reading: what the
    projections do not make themselves they find there.
    """
    scratch = sqlite3.connect("", isolation_level=None, uri=True)
    try:
        scratch.execute("PRAGMA trusted_schema = OFF")
        uri = path.as_uri() + "?mode=ro" if is_open_here(path) else address(path)
        scratch.execute("ATTACH ? AS store", (uri,))
        for (table,) in scratch.execute(SQL["tables_beside_the_log"]).fetchall():
            # the projections' own; and others, which stay empty: they tell no projection anything,
            # and may only lose what an event has settled
            for (statement,) in scratch.execute(SQL["schema_of_table"], (table,)).fetchall():
                scratch.execute(statement)
        scratch.execute("BEGIN")  # one state of the store, whatever others commit meanwhile
        try:
            fault = project_all(Transaction(scratch, writing))
            if fault is not None:
                return [Finding(part="log", message=fault)]
            return [
                found
                for table in _tables(writing.projections)
                if (found := _compared(scratch, table)) is not None
            ]
        finally:
            scratch.execute("ROLLBACK")
    finally:
        scratch.close()


def rebuild(transaction: Transaction) -> None:
    """Empties every projection and makes it anew from the log."""
    for table in _tables(transaction.writing.projections):
        transaction.execute(f"DELETE FROM {table}")
    for row in transaction.connection.execute(SQL["events_to_project"]):
        transaction.project(Record.of(row))


def project_all(transaction: Transaction) -> str | None:
    """Projects every event. What is wrong with the first that no projection can take, if any."""
    for row in transaction.connection.execute(SQL["events_to_project"]):
        record = Record.of(row)
        try:
            transaction.project(record)
        except (sqlite3.Error, ValueError, KeyError, TypeError) as fault:
            return (
                f"the event at position {record.pos} ({record.type} of session {record.session_id}, "
                f"seq {record.seq}) does not follow from those before it: {fault}"
            )
    return None


def _tables(projections: Sequence[Projection]) -> list[str]:
    names = [table for projection in projections for table in projection.tables]
    assert all(_NAME.match(name) for name in names)
    return names


def _compared(scratch: "sqlite3.Connection", table: str) -> Finding | None:
    names = [row[1] for row in scratch.execute(f"PRAGMA main.table_info({table})")]
    columns = ", ".join(f'"{name}"' for name in names)

    def only_in(one: str, other: str) -> list[str]:
        rows = scratch.execute(
            f"SELECT {columns} FROM {one}.{table} EXCEPT SELECT {columns} FROM {other}.{table}"
        )
        return [str(row[0]) for row in rows]

    lacks, has = only_in("main", "store"), only_in("store", "main")
    if not lacks and not has:
        return None
    wrong = sorted({*lacks, *has})
    return Finding(
        part="projections",
        message=f"the table {table} differs from the log in {max(len(lacks), len(has))} rows, "
        f"for instance that of {wrong[0]}",
        repairable=True,
    )
