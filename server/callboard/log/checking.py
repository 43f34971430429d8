"""Looking a whole store through, and making anew what can be made from its log."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from callboard_rpc.errors import CallboardError

from . import carebook, filesystem, occupancy, search
from .comparing import examine_projections, rebuild
from .examining import (
    SQL,
    Examination,
    Finding,
    examine_blobs,
    examine_events,
    examine_log,
    examine_search,
)
from .faultpoints import point as care_point
from .faults import store_error
from .ids import IdSource
from .looking import looking_at, occupied, rows_of
from .occupancy import make_locks
from .sqlite import sqlite3
from .store import Store, migrations, open_store, usable_place
from .transaction import SQL as LOG_SQL
from .transaction import Projection, Transaction, Writing

_SHOWN = 20


@frozen(kw_only=True)
class Report:
    """What was found, and how much was looked at. `repaired` are the parts that were made anew."""

    path: Path
    store_id: str
    version: int
    sessions: int
    events: int
    blobs: int
    head: int
    findings: tuple[Finding, ...]
    repaired: tuple[str, ...] = ()

    @property
    def problems(self) -> tuple[Finding, ...]:
        return tuple(each for each in self.findings if each.severity == "problem")


def check(
    store: Path,
    *,
    now: Callable[[], str],
    ids: IdSource,
    projections: Sequence[Projection],
    examinations: Sequence[Examination] = (),
    quick: bool = False,
) -> Report:
    """Looks a store through while others may go on using it. Changes nothing.

    `quick` leaves out what takes long: indices, blobs, the search index and the projections.
    `examinations` look at what higher floors know of. Raises what `looking_at` raises, but for
    storeCorrupt: that is what was to be found out.
    """
    path = filesystem.real(store)
    with occupied(path):
        try:
            report = _look(path, Writing.of(path, ids, now, projections), examinations, quick=quick)
        except CallboardError as fault:
            if fault.kind != "storeCorrupt":
                raise
            report = _unreadable(path, fault.message)
        except sqlite3.Error as fault:
            report = _unreadable(path, f"it cannot be read as a store: {fault}")
    carebook.note(path, "check", {"at": now(), "problems": len(report.problems)})
    return report


def _unreadable(path: Path, why: str) -> Report:
    found = Finding(part="file", message=why)
    return Report(path=path, version=0, findings=(found,), **_NOTHING)


def _look(
    path: Path, writing: Writing, examinations: Sequence[Examination], *, quick: bool
) -> Report:
    with looking_at(path) as connection:
        rows = rows_of(connection)
        findings = _examine_file(connection, quick=quick)
        version: int = rows("PRAGMA user_version")[0][0]
        whole = all(each.part != "file" for each in findings)
        readable = False
        if whole:
            connection.execute("BEGIN")  # one state, whatever others commit meanwhile
            try:
                unreadable = examine_events(rows)
                readable = not unreadable
                findings += unreadable + examine_log(rows)
                if version == len(migrations()):
                    findings += [found for each in examinations for found in each(rows)]
                if readable and not quick:
                    findings += examine_blobs(rows, connection.execute(SQL["each_blob"]))
                    findings += examine_search(rows)
            finally:
                connection.execute("ROLLBACK")
        report = Report(
            path=path,
            version=version,
            findings=(),
            **_counts(connection, whole=whole),
        )
        if version < len(migrations()):
            findings.append(
                Finding(
                    part="projections",
                    severity="note",
                    message=f"the store is of version {version}; it is migrated to "
                    f"{len(migrations())}, with a backup, when it is next opened",
                )
            )
        elif readable and not quick:
            findings += examine_projections(path, writing)
    return evolve(report, findings=tuple(findings))


def _examine_file(connection: "sqlite3.Connection", *, quick: bool) -> list[Finding]:
    pragma = "quick_check" if quick else "integrity_check"
    try:
        told = [row[0] for row in connection.execute(f"PRAGMA {pragma}({_SHOWN})")]
        loose = connection.execute("PRAGMA foreign_key_check").fetchmany(_SHOWN)
    except sqlite3.DatabaseError as fault:
        return [Finding(part="file", message=str(fault))]
    findings = [
        Finding(part="search", message=each, repairable=True)
        if "fts5" in each.lower()
        else Finding(part="file", message=each)
        for each in told
        if each != "ok"
    ]
    findings += [
        Finding(part="file", message=f"a row of {table} refers to one of {other} that is not there")
        for table, _, other, _ in loose
    ]
    return findings


def _counts(connection: "sqlite3.Connection", *, whole: bool) -> dict[str, Any]:
    try:
        sessions, events, blobs, _, head, _ = connection.execute(SQL["counts"]).fetchone()
        (store_id,) = connection.execute(
            "SELECT coalesce((SELECT value FROM meta WHERE key = 'store_id'), '')"
        ).fetchone()
    except sqlite3.DatabaseError:
        if whole:
            raise
        return _NOTHING
    return {
        "store_id": store_id,
        "sessions": sessions,
        "events": events,
        "blobs": blobs,
        "head": head,
    }


_NOTHING: dict[str, Any] = {"store_id": "", "sessions": 0, "events": 0, "blobs": 0, "head": 0}


# --- repair -----------------------------------------------------------------------------------------


def repair(
    store: Path,
    *,
    now: Callable[[], str],
    ids: IdSource,
    projections: Sequence[Projection],
    examinations: Sequence[Examination] = (),
) -> Report:
    """Looks a store through and makes anew what its log tells: projections and search index; blobs that
    belong to nobody go. Nothing else is touched, and nothing at all where the file or the log itself is
    damaged. What is left afterwards stands in the report.

    Raises storeBusy when anybody has the store open.
    """
    before = check(store, now=now, ids=ids, projections=projections, examinations=examinations)
    parts = tuple(dict.fromkeys(each.part for each in before.findings if each.repairable))
    beyond = [each for each in before.problems if each.part in ("file", "log")]
    if beyond or not parts:
        return before
    try:
        path = usable_place(store)
        make_locks(path)
        with occupancy.alone(path) as mine:
            opened = open_store(path, ids=ids, now=now, held=mine)
            try:
                _make_anew(opened, Writing.of(path, ids, now, projections), parts)
            finally:
                opened.close()
    except (OSError, sqlite3.Error) as fault:
        named = store_error(fault, store)
        if named is None:
            raise
        raise named from fault
    after = check(store, now=now, ids=ids, projections=projections, examinations=examinations)
    return evolve(after, repaired=parts)


def _make_anew(store: Store, writing: Writing, parts: Sequence[str]) -> None:
    if "projections" in parts:
        commit(store, writing, rebuild)
        care_point("care.rebuilt")
    if "blobs" in parts:
        commit(store, writing, forget_blobs)
    if "search" in parts:
        commit(store, writing, _forget_index)
        care_point("care.index_cleared")
        while commit(store, writing, search.index_batch):
            pass


def forget_blobs(transaction: Transaction) -> int:
    """Removes the blobs that belong to no session; how many."""
    return transaction.execute(LOG_SQL["delete_unreferenced_blobs"])


def _forget_index(transaction: Transaction) -> None:
    transaction.execute(SQL["rebuild_search"])  # of what is damaged nothing could be deleted
    transaction.execute(SQL["clear_search"])
    transaction.execute(
        "INSERT INTO search_progress VALUES (1, 0) ON CONFLICT (id) DO UPDATE SET through = 0"
    )


def commit(store: Store, writing: Writing, change: Callable[[Transaction], Any]) -> Any:
    """One change of a store that the caller has alone, in one durable transaction."""
    connection = store.connection
    with store.lock.held():
        connection.execute("BEGIN IMMEDIATE")
        try:
            result = change(Transaction(connection, writing))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    return result
