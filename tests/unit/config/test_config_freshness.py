"""What is read from files is read again exactly when they are not as they were."""

import os
from pathlib import Path

import pytest

from callboard.config.freshness import Fresh, stamp_of

_LATER_NS = 10**9


class _Reading:
    """A file and a folder that are read, and how often they were. Its clock is an hour ahead of the
    files', so that they count as settled."""

    def __init__(self, folder: Path, ahead_ns: int = 3_600 * _LATER_NS) -> None:
        self.file = folder / "config.toml"
        self.folder = folder / "agents"
        self.reads = 0
        self.ahead_ns = ahead_ns
        self.fresh = Fresh(self._read, lambda _: (self.file, self.folder), self._now_ns)

    def _now_ns(self) -> int:
        times = [p.stat().st_ctime_ns for p in (self.file, self.folder) if p.exists()]
        return max(times, default=0) + self.ahead_ns

    def _read(self, _: str) -> str:
        self.reads += 1
        return self.file.read_text() if self.file.exists() else ""


@pytest.fixture
def reading(tmp_path: Path) -> _Reading:
    return _Reading(tmp_path)


def test_config_freshness_nothing_is_read_twice_while_nothing_changes(reading: _Reading) -> None:
    reading.file.write_text("a")
    assert [reading.fresh.get("w") for _ in range(3)] == ["a", "a", "a"]
    assert reading.reads == 1


def test_config_freshness_each_workspace_has_its_own_value(reading: _Reading) -> None:
    reading.fresh.get("v")
    reading.fresh.get("w")
    assert reading.reads == 2


@pytest.mark.parametrize("change", ["write", "replace", "remove", "mode"])
def test_config_freshness_a_changed_file_is_read_anew(reading: _Reading, change: str) -> None:
    reading.file.write_text("a")
    reading.fresh.get("w")
    match change:
        case "write":
            reading.file.write_text("longer")
        case "replace":
            other = reading.file.with_name("other")
            other.write_text("b")
            other.replace(reading.file)
        case "remove":
            reading.file.unlink()
        case _:
            reading.file.chmod(0o600 if reading.file.stat().st_mode & 0o077 else 0o644)
    assert reading.fresh.get("w") == (reading.file.read_text() if change != "remove" else "")
    assert reading.reads == 2


def test_config_freshness_a_file_that_appears_is_read(reading: _Reading) -> None:
    assert reading.fresh.get("w") == ""
    reading.file.write_text("a")
    assert reading.fresh.get("w") == "a"


def test_config_freshness_a_folder_is_followed_into_its_files(reading: _Reading) -> None:
    reading.folder.mkdir()
    (reading.folder / "one.md").write_text("1")
    reading.fresh.get("w")
    (reading.folder / "two.md").write_text("2")
    reading.fresh.get("w")
    assert reading.reads == 2
    (reading.folder / "one.md").write_text("changed")
    reading.fresh.get("w")
    assert reading.reads == 3
    (reading.folder / "one.md").unlink()
    reading.fresh.get("w")
    assert reading.reads == 4
    reading.fresh.get("w")
    assert reading.reads == 4


def test_config_freshness_what_was_changed_a_moment_ago_is_not_trusted(tmp_path: Path) -> None:
    """Two edits within a tick of the file system's clock look alike."""
    reading = _Reading(tmp_path, ahead_ns=1_000_000)
    reading.file.write_text("a")
    reading.fresh.get("w")
    times = reading.file.stat()
    reading.file.write_text("b")
    os.utime(reading.file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert reading.fresh.get("w") == "b"
    assert reading.reads == 2


def test_config_freshness_a_fault_is_raised_and_not_kept(reading: _Reading) -> None:
    faults = [OSError("once")]

    def read(_: str) -> str:
        if faults:
            raise faults.pop()
        return "read"

    fresh = Fresh(read, lambda _: (reading.file,), lambda: _LATER_NS)
    with pytest.raises(OSError, match="once"):
        fresh.get("w")
    assert fresh.get("w") == "read"


def test_config_freshness_what_is_not_there_has_an_empty_stamp(tmp_path: Path) -> None:
    assert stamp_of(str(tmp_path / "nothing")) == ()
    assert len(stamp_of(str(tmp_path))) == 1
