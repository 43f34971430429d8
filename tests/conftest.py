"""What every test may ask for. Anything that only some rooms need lives in their own folder."""

from pathlib import Path

import pytest
from hypothesis import settings

# The same examples on every run, no time limits that a busy machine could miss, nothing on disk.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")


@pytest.fixture
def anyio_backend() -> str:
    """The back end that the product runs on; the only one that its tests run on."""
    return "asyncio"


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    """Where a test may put a store: a path in a private folder, nothing there yet."""
    return tmp_path / "store" / "callboard.db"
