"""A store with something of everything in it, and ways to care for it."""

from pathlib import Path
from typing import Any
from unittest.mock import patch

from log_workbench import AGENT, CLIENT, PROJECTIONS, called, log_at, returned, said, session_in

from callboard.log import checking, migrating, store
from callboard.log.clock import utc_now
from callboard.log.examining import Finding
from callboard.log.ids import IdSource
from callboard.log.occupancy import make_locks
from callboard.log.sqlite import sqlite3

LARGE = "many words " * 8_000


_FILLED: dict[int, bytes] = {}
"""The file of a store with so many sessions; it is made once."""


async def fill(path: Path, *, sessions: int = 2) -> None:
    """Sessions with messages, a tool call, a blob and a search index that is up to date."""
    if sessions in _FILLED:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.write_bytes(_FILLED[sessions])
        path.chmod(0o600)
        make_locks(path)
        return
    # of the version that it has now, also in tests of a Callboard that knows more
    with patch.object(store, "migrations", migrating.migrations):
        await _fill(path, sessions)
    _FILLED[sessions] = path.read_bytes()


async def _fill(path: Path, sessions: int) -> None:
    async with log_at(path) as log:
        for number in range(sessions):
            session_id = await session_in(log, f"ses_{number}")
            await log.append(session_id, said("precious words"), actor=CLIENT)
            await log.append(session_id, said(f"{number} {LARGE}", by="agent"), actor=AGENT)
            await log.append(session_id, called("call_a"), actor=AGENT, turn_id="trn_a")
            await log.append(session_id, returned("call_a", "found it"), actor=AGENT)
            await log.put_blob(session_id, b"attachment", "text/plain")
        await log.index_all()


def look(path: Path, **more: Any) -> checking.Report:
    return checking.check(path, now=utc_now, ids=IdSource(), projections=PROJECTIONS, **more)


def mend(path: Path, **more: Any) -> checking.Report:
    return checking.repair(path, now=utc_now, ids=IdSource(), projections=PROJECTIONS, **more)


def alter(path: Path, *statements: str, foreign_keys: bool = False) -> None:
    """Does to a store what no Callboard would."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute(f"PRAGMA foreign_keys = {int(foreign_keys)}")
        for statement in statements:
            connection.execute(statement)
    finally:
        connection.close()


def contents(path: Path) -> list[Any]:
    """All that is in a store's tables, but for its id."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        tables = [
            name
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' "
                "AND name NOT LIKE 'search_%' AND name <> 'meta' ORDER BY name"
            )
        ]
        return [
            (name, sorted(connection.execute(f"SELECT * FROM {name}").fetchall(), key=repr))
            for name in tables
        ]
    finally:
        connection.close()


def store_id(path: Path) -> str:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        return connection.execute("SELECT value FROM meta WHERE key = 'store_id'").fetchone()[0]
    finally:
        connection.close()


def parts(findings: tuple[Finding, ...]) -> list[str]:
    return [each.part for each in findings]
