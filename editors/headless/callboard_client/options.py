"""How a client starts its server and introduces itself."""

import sys
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from attrs import field, frozen

from callboard_rpc.common import Json
from callboard_rpc.server import ClientCapabilities

from .backoff import Backoff
from .connection import Handler

DEFAULT_COMMAND = (sys.executable, "-P", "-m", "callboard", "serve", "--framing", "ndjson")
"""`-P` keeps the current folder, which may be anybody's, off the server's import path."""


def _new_key() -> str:
    return uuid.uuid4().hex


@frozen(kw_only=True)
class ClientOptions:
    """How a client starts its server and introduces itself. Times are in seconds.

    With `restart` a server that ends is started again after a delay of `backoff`; subscriptions go
    on from their cursors and open requests are sent again with the same idempotency key.
    `stable_after_s`: a server that lived as long is not counted as a failed attempt.
    `new_key` makes idempotency keys.
    """

    command: tuple[str, ...] = DEFAULT_COMMAND
    env: Mapping[str, str] | None = None
    cwd: str | Path | None = None
    stderr: IO[bytes] | None = None
    client_id: str = field(factory=lambda: f"cli_{_new_key()}")
    name: str = "callboard_client"
    version: str | None = None
    capabilities: ClientCapabilities = field(factory=ClientCapabilities)
    experimental: bool = False
    config: Json | None = None
    restart: bool = False
    handlers: Mapping[str, Handler] = field(factory=dict[str, Handler])
    backoff: Backoff = field(factory=Backoff)
    start_timeout_s: float = 30.0
    stop_grace_s: float = 3.0
    stable_after_s: float = 30.0
    new_key: Callable[[], str] = _new_key
