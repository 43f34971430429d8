"""Tests of groups play the parts of a root and its agents as the tests of agents do."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "agents"))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
