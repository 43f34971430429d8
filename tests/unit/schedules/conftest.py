"""Tests of schedules own the clock."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "agents"))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
