"""An older store: backed up beside itself and migrated once, by one process, or not at all."""

import resource
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from log_care_kit import contents, fill, look
from log_workbench import log_at, texts

from callboard.log import migrating, store
from callboard.log.clock import utc_now
from callboard.log.ids import IdSource
from callboard.log.sqlite import sqlite3
from callboard_rpc.errors import CallboardError

pytestmark = pytest.mark.anyio

_MORE = "CREATE TABLE extra (a TEXT) STRICT;\nINSERT INTO extra VALUES ('made once');"


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> int:
    """This Callboard knows one step more than whatever made the stores; the version that they have."""
    steps = store.migrations()
    monkeypatch.setattr(store, "migrations", lambda: [*steps, _MORE])
    return len(steps)


def _open(path: Path) -> None:
    store.open_store(path, ids=IdSource(), now=utc_now).close()


def _version(path: Path) -> int:
    connection = sqlite3.connect(path)
    try:
        return migrating.version_of(connection)
    finally:
        connection.close()


def _backups(path: Path) -> list[Path]:
    return sorted(path.parent.glob("*.backup-*"))


async def test_a_backup_with_the_version_in_its_name_lies_beside_what_was_migrated(
    store_path: Path, newer: int
) -> None:
    await fill(store_path)
    before = contents(store_path)
    async with log_at(store_path) as log:
        assert await log.query("SELECT a FROM extra") == [("made once",)]
        assert (await texts(log, "ses_0"))[0] == "precious words"
    (backup,) = _backups(store_path)
    assert backup.name == f"callboard.db.backup-v{newer}"
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert _version(backup) == newer
    assert contents(backup) == before
    _open(store_path)
    assert _backups(store_path) == [backup]


async def test_a_new_store_needs_no_backup(store_path: Path) -> None:
    _open(store_path)
    assert _backups(store_path) == []


async def test_an_earlier_backup_is_never_overwritten(store_path: Path, newer: int) -> None:
    await fill(store_path)
    mine = store_path.with_name(f"callboard.db.backup-v{newer}")
    mine.write_text("mine")
    _open(store_path)
    assert mine.read_text() == "mine"
    assert [each.name for each in _backups(store_path)] == [mine.name, f"{mine.name}-2"]
    assert look(_backups(store_path)[1]).problems == ()


async def test_a_migration_that_fails_again_and_again_makes_one_backup(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(store_path)
    before = contents(store_path)
    steps = store.migrations()
    monkeypatch.setattr(store, "migrations", lambda: [*steps, "SELECT nonsense;"])
    for _ in range(3):
        with pytest.raises(sqlite3.OperationalError, match="nonsense"):
            _open(store_path)
    assert len(_backups(store_path)) == 1
    assert contents(store_path) == before
    assert _version(store_path) == len(steps)


async def test_a_full_disk_ends_the_migration_before_it_begins(
    store_path: Path, newer: int
) -> None:
    await fill(store_path, sessions=4)
    before = contents(store_path)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (store_path.stat().st_size // 2, limit[1]))
    try:
        with pytest.raises(CallboardError) as refused:
            _open(store_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert refused.value.kind in ("storeFull", "storeIo")
    assert "Nothing was changed" in refused.value.message
    assert contents(store_path) == before
    assert _version(store_path) == newer
    assert sorted(p.name for p in store_path.parent.iterdir()) == [
        "callboard.db",
        "callboard.db.locks",
    ]
    _open(store_path)  # and there is room again
    assert _version(store_path) == newer + 1


_OPENING = """
import sys
from pathlib import Path
from callboard.log import store
from callboard.log.clock import utc_now
from callboard.log.ids import IdSource
steps = store.migrations()
more = sys.argv[2]
store.migrations = lambda: [*steps, more]
print("ready", flush=True)
sys.stdin.readline()
store.open_store(Path(sys.argv[1]), ids=IdSource(), now=utc_now)
print("opened", flush=True)
sys.stdin.read()
"""


def _opening(path: Path) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", _OPENING, path, _MORE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert _line(process) == "ready"
    return process


def _line(process: Any) -> str:
    return process.stdout.readline().rstrip("\n")


async def test_processes_that_open_an_old_store_at_once_migrate_it_once(store_path: Path) -> None:
    await fill(store_path)
    processes = [_opening(store_path) for _ in range(4)]
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    assert [_line(process) for process in processes] == ["opened"] * 4
    for process in processes:
        process.communicate("")
    connection = sqlite3.connect(store_path)
    assert connection.execute("SELECT a FROM extra").fetchall() == [("made once",)]
    connection.close()
    assert len(_backups(store_path)) == 1


async def test_nobody_s_schema_changes_while_it_is_in_use(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(store_path)
    monkeypatch.setattr("callboard.log.occupancy.WAIT_S", 0.05)
    async with log_at(store_path) as older:
        steps = store.migrations()
        with monkeypatch.context() as patch:
            patch.setattr(store, "migrations", lambda: [*steps, _MORE])
            with pytest.raises(CallboardError) as refused:
                _open(store_path)
        assert refused.value.kind == "storeBusy"
        assert "older version" in refused.value.message
        assert await older.query("PRAGMA user_version") == [(len(steps),)]
    assert _backups(store_path) == []


async def test_a_damaged_older_store_is_not_migrated(store_path: Path, newer: int) -> None:
    await fill(store_path, sessions=4)
    data = bytearray(store_path.read_bytes())
    data[20 * 4096 : 21 * 4096] = b"\xa5" * 4096
    store_path.write_bytes(bytes(data))
    with pytest.raises(CallboardError) as refused:
        _open(store_path)
    assert refused.value.kind == "storeCorrupt"
    assert _backups(store_path) == []
    assert _version(store_path) == newer
    assert store_path.stat().st_size == len(data)
