"""Tests of links play with two sessions that know nothing of each other."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
