import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from callboard_client import Backoff, Client, ClientOptions

FAKE = Path(__file__).with_name("fake_server.py")
Start = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Starts a client of the fake server; `mode` makes the server special."""

    def begin(mode: str = "well", **fields: Any) -> AbstractAsyncContextManager[Client]:
        fields.setdefault("backoff", Backoff(first_s=0, most_s=0))
        command = (sys.executable, str(FAKE), str(tmp_path), mode)
        return Client.start(options=ClientOptions(command=command, **fields))

    return begin
