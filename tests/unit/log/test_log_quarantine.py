"""A damaged store is copied aside, whole and a few times at the most, and is never overwritten."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from log_care_kit import fill

from callboard.log import quarantine, store
from callboard.log.clock import utc_now
from callboard.log.ids import IdSource
from callboard_rpc.errors import CallboardError

pytestmark = pytest.mark.anyio


def _damaged(path: Path, now: Callable[[], str] = utc_now) -> CallboardError:
    with pytest.raises(CallboardError) as refused:
        store.open_store(path, ids=IdSource(), now=now)
    assert refused.value.kind == "storeCorrupt"
    return refused.value


def _copies(path: Path) -> list[str]:
    return sorted(each.name for each in path.parent.glob("*.corrupt-*"))


async def test_the_error_names_the_copy_and_the_ways_out(store_path: Path) -> None:
    await fill(store_path)
    store_path.write_bytes(b"words " * 100)
    error = _damaged(store_path)
    assert error.data["copy"] in error.message
    assert "callboard store check" in error.message
    assert "callboard store restore" in error.message


async def test_tries_without_end_make_one_copy(store_path: Path) -> None:
    await fill(store_path)
    store_path.write_bytes(b"words " * 100)
    copies = {_damaged(store_path).data["copy"] for _ in range(5)}
    os.utime(store_path, (1, 1))  # the time of a file says nothing about what is in it
    copies.add(_damaged(store_path).data["copy"])
    assert len(copies) == 1
    assert len(_copies(store_path)) == 1


async def test_a_file_that_goes_on_changing_is_copied_three_times_at_the_most(
    store_path: Path,
) -> None:
    await fill(store_path)
    for number in range(6):
        store_path.write_bytes(f"words {number} ".encode() * 100)
        error = _damaged(store_path)
        assert Path(error.data["copy"]).exists()
    assert len(_copies(store_path)) == 3
    assert "3 copies" in error.message
    assert store_path.read_bytes() == b"words 5 " * 100


async def test_the_wal_is_a_part_of_the_copy_and_a_new_one_of_a_new_copy(store_path: Path) -> None:
    await fill(store_path)
    store_path.write_bytes(b"words " * 100)
    wal = store_path.with_name("callboard.db-wal")
    moment = utc_now()  # both copies are made at the same one
    for text in (b"one", b"two"):
        wal.write_bytes(text)
        copy = Path(_damaged(store_path, lambda: moment).data["copy"])
        kept = copy.with_name(copy.name + "-wal")
        assert kept.read_bytes() == text
        assert stat.S_IMODE(kept.stat().st_mode) == stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert len(_copies(store_path)) == 4


async def test_a_copy_that_a_crash_cut_off_is_no_copy(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(store_path)
    store_path.write_bytes(b"words " * 100)

    def cut_off(source: Path, target: Path) -> None:
        target.write_bytes(source.read_bytes()[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(quarantine.shutil, "copyfile", cut_off)
    error = _damaged(store_path)
    assert "No space left" in error.message
    assert "copy" not in error.data
    assert _copies(store_path) == []
    monkeypatch.undo()
    assert Path(_damaged(store_path).data["copy"]).read_bytes() == store_path.read_bytes()
