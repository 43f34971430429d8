"""``kill -9`` at every step of caring for a store: it is the old one or the new one, and always whole."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from callboard.log import store as store_module
from callboard.log.backup import back_up
from callboard.log.clock import utc_now
from callboard.log.ids import IdSource
from callboard.log.migrating import migrations
from callboard.log.sqlite import sqlite3
from callboard.log.store import open_store

Care = Callable[..., int]


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """In memory, where that is possible: a killed process needs no disk to lose what it had not written,
    and these are thousands of syncs."""
    memory = Path("/dev/shm")
    place = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as folder:
        yield Path(folder)


@pytest.fixture
def care() -> Iterator[Care]:
    """Runs a care of a store that is killed at its nth step; how it ended: -9, or 0 when it has no nth."""
    script = Path(__file__).with_name("dying_care.py")
    process = subprocess.Popen(
        [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None and process.stdout is not None

    def run(what: str, store: Path, other: Path, nth: int) -> int:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps([what, str(store), str(other), nth]) + "\n")
        process.stdin.flush()
        return int(process.stdout.readline())

    yield run
    process.stdin.close()
    process.wait(30)
    process.stdout.close()


def _make(path: Path, words: str, *, version: int | None = None) -> None:
    """A store that says `words`, a part of them only in its WAL, as a killed process leaves it."""
    steps = migrations() if version is None else migrations()[:version]
    path.parent.mkdir(exist_ok=True)
    before = store_module.migrations
    store_module.migrations = lambda: steps
    try:
        opened = open_store(path, ids=IdSource(), now=utc_now)
        _say(opened.connection, f"{words} in the file", 200)
        opened.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        _say(opened.connection, f"{words} in the wal", 1)
        files = {tail: path.with_name(path.name + tail).read_bytes() for tail in ("", "-wal")}
        opened.close()
    finally:
        store_module.migrations = before
    for tail, data in files.items():
        path.with_name(path.name + tail).write_bytes(data)


def _say(connection: Any, words: str, count: int) -> None:
    for number in range(count):
        connection.execute(
            "INSERT INTO blobs VALUES (?, 'text/plain', 4, ?)", (f"{words} {number}", b"x" * 900)
        )


def _words(path: Path) -> list[str]:
    """What a database says, read as SQLite reads it; and that it is whole."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return [row[0] for row in connection.execute("SELECT blob_id FROM blobs ORDER BY blob_id")]
    finally:
        connection.close()


def _opened(path: Path) -> list[str]:
    """The same after the store was opened as a server does."""
    open_store(path, ids=IdSource(), now=utc_now).close()
    return _words(path)


def _said(words: str) -> list[str]:
    return sorted([f"{words} in the file {n}" for n in range(200)] + [f"{words} in the wal 0"])


def _fresh(folder: Path) -> Path:
    for each in sorted(folder.rglob("*"), reverse=True):
        each.unlink() if each.is_file() else each.rmdir()
    return folder / "store.db"


def test_a_restore_killed_at_any_step_leaves_the_old_store_or_the_new_one(
    tmp_path: Path, care: Care
) -> None:
    _make(tmp_path / "source" / "source.db", "new")
    backup = back_up(tmp_path / "source" / "source.db", tmp_path, now=utc_now).path
    _make(tmp_path / "template" / "store.db", "old")
    template = {
        p.name: p.read_bytes() for p in (tmp_path / "template").glob("store.db*") if p.is_file()
    }
    folder = tmp_path / "home"
    folder.mkdir()
    outcomes: list[str] = []
    code, nth = -9, 0
    while code == -9:
        nth += 1
        store = _fresh(folder)
        for name, data in template.items():
            (folder / name).write_bytes(data)
        code = care("restore", store, backup, nth)
        assert store.exists()  # at no moment does its name stand for nothing
        words = _opened(store)
        kept = list(folder.glob("store.db.replaced-*[0-9]"))
        if words == _said("new"):
            outcomes.append("new")
            assert [_words(each) for each in kept] == [_said("old")]
        else:
            outcomes.append("old")
            assert words == _said("old")
            assert kept == []
        assert not (folder / "store.db.locks" / "swap.json").exists()
        if nth % 5 == 0:
            assert care("restore", store, backup, 0) == 0  # and it can be done again
            assert _opened(store) == _said("new")
            assert not (folder / "store.db.incoming").exists()
    assert code == 0
    assert outcomes.count("old") > 20
    assert outcomes.count("new") > 8
    assert outcomes == sorted(outcomes, reverse=True)  # decided at one step, and from there on


def test_a_backup_killed_at_any_step_leaves_the_store_and_the_backup_before_it(
    tmp_path: Path, care: Care
) -> None:
    store, backup = tmp_path / "home" / "store.db", tmp_path / "backup.db"
    _make(store, "now")
    before = (store.read_bytes(), store.with_name("store.db-wal").read_bytes())
    _make(tmp_path / "older" / "store.db", "older")
    older = back_up(tmp_path / "older" / "store.db", tmp_path / "older.db", now=utc_now).path
    data = older.read_bytes()
    outcomes: set[str] = set()
    code, nth = -9, 0
    while code == -9:
        nth += 1
        backup.write_bytes(data)
        code = care("backup", store, backup, nth)
        words = _words(backup)
        outcomes.add("new" if words == _said("now") else "older")
        assert words in (_said("now"), _said("older"))
        assert (store.read_bytes(), store.with_name("store.db-wal").read_bytes()) == before
    assert code == 0
    assert outcomes == {"older", "new"}
    assert [p.name for p in tmp_path.glob(".*")] == []
    assert _opened(store) == _said("now")


def test_a_vacuum_killed_at_any_step_loses_nothing(tmp_path: Path, care: Care) -> None:
    _make(tmp_path / "template" / "store.db", "kept")
    store = tmp_path / "template" / "store.db"
    connection = sqlite3.connect(store, isolation_level=None)
    connection.execute(
        "INSERT INTO heads (session_id, seq, birth, root_id) VALUES ('ses_a', 0, 'b', 'ses_a')"
    )
    connection.execute("INSERT INTO blob_refs SELECT blob_id, 'ses_a' FROM blobs")
    connection.close()
    data = store.read_bytes()
    folder = tmp_path / "home"
    folder.mkdir()
    code, nth = -9, 0
    while code == -9:
        nth += 1
        store = _fresh(folder)
        store.write_bytes(data)
        code = care("vacuum", store, store, nth)
        assert _opened(store) == _said("kept")
    assert code == 0
    assert nth > 30
    assert sorted(p.name for p in folder.iterdir()) == ["store.db", "store.db.locks"]


def test_a_migration_killed_at_any_step_is_done_at_the_next_start_with_one_backup(
    tmp_path: Path, care: Care
) -> None:
    _make(tmp_path / "template" / "store.db", "old", version=1)
    template = {
        p.name: p.read_bytes() for p in (tmp_path / "template").glob("store.db*") if p.is_file()
    }
    folder = tmp_path / "home"
    folder.mkdir()
    code, nth = -9, 0
    while code == -9:
        nth += 1
        store = _fresh(folder)
        for name, data in template.items():
            (folder / name).write_bytes(data)
        code = care("open", store, store, nth)
        assert _opened(store) == _said("old")
        connection = sqlite3.connect(store)
        assert connection.execute("PRAGMA user_version").fetchone() == (len(migrations()),)
        connection.close()
        (backup,) = folder.glob("*.backup-v1*")
        assert _words(backup) == _said("old")
        connection = sqlite3.connect(backup)
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        connection.close()
        assert sorted(p.name for p in folder.iterdir()) == [
            "store.db", "store.db.backup-v1", "store.db.locks",
        ]  # fmt: skip
    assert code == 0
    assert nth > 30
