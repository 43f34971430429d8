"""`callboard doctor` tells of the last backup and check, for what a glance costs."""

import re
from pathlib import Path

import pytest

from callboard.doctor import Check, store_checks
from callboard.log import carebook
from callboard.log.clock import utc_now
from callboard.log.ids import IdSource
from callboard.log.occupancy import locks_of
from callboard.log.store import open_store


@pytest.fixture
def store(store_path: Path) -> Path:
    open_store(store_path, ids=IdSource(), now=utc_now).close()
    return store_path


def _care(store: Path) -> Check:
    (found,) = [check for check in store_checks(store) if check.name == "Care"]
    return found


def test_a_store_that_was_never_cared_for_is_no_fault_and_told_how(store: Path) -> None:
    found = _care(store)
    assert found.status == "ok"
    assert found.found == "never backed up, never checked"
    assert "callboard store backup" in found.advice


def test_the_last_backup_and_a_check_that_found_nothing(store: Path) -> None:
    carebook.note(store, "backup", {"at": "2031-05-17T09:30:00.123Z", "path": "/b.db"})
    carebook.note(store, "check", {"at": "2031-05-18T09:30:00.123Z", "problems": 0})
    found = _care(store)
    assert found.status == "ok"
    minute = r"2031-05-1\d \d\d:\d\d"  # by the clock of the place
    assert re.search(f"backup {minute}, last check {minute} found nothing", found.found)


def test_a_check_that_found_something_is_a_warning(store: Path) -> None:
    carebook.note(store, "check", {"at": "2031-05-18T09:30:00.123Z", "problems": 2})
    found = _care(store)
    assert found.status == "warn"
    assert "2 problems" in found.found
    assert "callboard store check" in found.advice


@pytest.mark.parametrize("text", ["", "{", "[]", '{"check": 7}', '{"check": {"at": 1}}', "\x00"])
def test_a_book_that_somebody_spoilt_tells_nothing(store: Path, text: str) -> None:
    (locks_of(store) / "care.json").write_text(text)
    assert _care(store).found == "never backed up, never checked"
    carebook.note(store, "check", {"at": "2031-05-18T09:30:00.123Z", "problems": 0})
    assert "nothing wrong" in _care(store).found


def test_no_store_no_word(store_path: Path) -> None:
    assert [check.name for check in store_checks(store_path)] == ["Store", "Disk"]


def test_the_wal_is_told_beside_the_size_while_there_is_one(store: Path) -> None:
    def size() -> str:
        (found,) = [check for check in store_checks(store) if check.name == "Store"]
        return found.found

    assert "WAL" not in size()
    store.with_name(store.name + "-wal").write_bytes(b"x" * 2048)
    assert "WAL 2 KiB" in size()
