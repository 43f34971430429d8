"""What every test may ask for. Anything that only some rooms need lives in their own folder."""

from pathlib import Path

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """The back end that the product runs on; the only one that its tests run on."""
    return "asyncio"


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    """Where a test may put a store: a path in a private folder, nothing there yet."""
    return tmp_path / "store" / "callboard.db"
