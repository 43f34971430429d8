"""What every test may ask for. Anything that only some rooms need lives in their own folder."""

import os
import shutil
from pathlib import Path

import psutil
import pytest
from hypothesis import settings

# The same examples on every run, no time limits that a busy machine could miss, nothing on disk.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")

MEMORY = Path("/dev/shm")
ROOM = 2 << 30
"""Bytes that there must be: many times what tests keep at a time."""
PLACE = "PYTEST_DEBUG_TEMPROOT"
"""Where pytest makes the folders of tests, if the environment says so."""


def pytest_configure() -> None:
    """Has what tests write lie in memory, where there is some: none of them cuts the power, so none has to
    wait for a disk."""
    if PLACE not in os.environ and _has_room(MEMORY):
        os.environ[PLACE] = str(MEMORY)


def _has_room(folder: Path) -> bool:
    """For files, programs among them."""
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        return False
    if os.statvfs(folder).f_flag & os.ST_NOEXEC:
        return False
    return min(shutil.disk_usage(folder).free, psutil.virtual_memory().available) > ROOM


@pytest.fixture
def anyio_backend() -> str:
    """The back end that the product runs on; the only one that its tests run on."""
    return "asyncio"


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    """Where a test may put a store: a path in a private folder, nothing there yet."""
    return tmp_path / "store" / "callboard.db"
