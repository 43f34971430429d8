"""``callboard serve``: one client on stdin and stdout.

The answer to ``initialize`` needs the configuration and the store and nothing else; all the rest is
imported after it is written.
"""

import os
import sys
from typing import TYPE_CHECKING, Any

from . import boot
from .framing import Framing
from .handshake import options_of
from .wire import Wire, WireClosed

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..config import Settings
    from ..log.ids import IdSource
    from ..log.store import Store

USAGE = "usage: callboard serve [--acp | --framing auto|lsp|ndjson] [--store PATH]"


def client_config(params: dict[str, Any]) -> dict[str, Any] | None:
    """The configuration that came with ``initialize``."""
    options = options_of(params)
    config = options.get("config") if isinstance(options, dict) else None  # pyright: ignore
    return config if isinstance(config, dict) else None  # pyright: ignore


class Opening:
    """The store of the first client that says all that is asked of it, opened by its own configuration;
    what fails is told to whoever asked, and whoever asks again has it tried again."""

    def __init__(self) -> None:
        self.store: Store | None = None
        self.ids: IdSource | None = None
        self.host_id = ""
        self.frame_limit: int | None = None
        """Bytes, as configured; known once somebody was answered."""

    def handshake(self, params: dict[str, Any]) -> dict[str, Any]:
        """Raises the store's own errors: they are the answer to ``initialize``."""
        from .greeting import greeting

        def answer(store: "Store", host_id: str, settings: "Settings") -> dict[str, Any]:
            limits = settings.limits
            return greeting(
                store_id=store.store_id,
                host_id=host_id,
                head=f"{store.store_id}.{store.head()}",
                switched_on=settings.features,
                limits={
                    "maxFrameBytes": limits.frame_bytes,
                    "pageItems": limits.page_items,
                    "pageBytes": limits.page_bytes,
                    "window": limits.window,
                    "agentDepth": settings.agents.max_depth,
                    "agentsOpen": settings.agents.max_open,
                    "agentsRunning": settings.agents.max_running,
                },
            )

        return self.open(client_config(params), answer)

    def open(
        self,
        given: dict[str, Any] | None,
        answer: "Callable[[Store, str, Settings], dict[str, Any]]",
    ) -> dict[str, Any]:
        """Opens the store by the configuration that a client has `given`, and keeps it if it can be
        answered. Raises the store's own errors."""
        from pathlib import Path

        from ..config import load, store_path, user_config_dir
        from ..log.clock import utc_now
        from ..log.ids import IdSource
        from ..log.store import open_store

        environ = dict(os.environ)
        settings = load(environ, user_config_dir(environ), client=given).settings
        ids = IdSource()
        host_id = ids.new("host")
        store = open_store(Path(store_path(settings)), ids=ids, now=utc_now)
        try:
            answered = answer(store, host_id, settings)
        except BaseException:
            store.close()  # the next to ask may mean another one
            raise
        self.store, self.ids, self.host_id = store, ids, host_id
        self.frame_limit = settings.limits.frame_bytes
        return answered


class _Words:
    """What stands behind ``callboard serve``."""

    framing: Framing | None = None
    acp = False


def _words(argv: list[str]) -> _Words:
    """What was asked for. Raises `ValueError` with what is wrong with the words."""
    words = _Words()
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        name, _, value = word.partition("=")
        match name:
            case "--framing" | "--store":
                if not value:
                    if not rest:
                        raise ValueError(f"{name} needs a value")
                    value = rest.pop(0)
                if name == "--store":
                    os.environ["CALLBOARD_STORE"] = value
                elif value in ("lsp", "ndjson"):
                    words.framing = value
                elif value != "auto":
                    raise ValueError(f"--framing is auto, lsp or ndjson, not {value!r}")
            case "--acp":
                words.acp = True
            case _:
                raise ValueError(f"{word!r} is not an option of serve")
    if words.acp and words.framing == "lsp":
        raise ValueError("--acp speaks one JSON object a line, and has no other framing")
    return words


def main(argv: list[str]) -> int:
    """Serves until the client is gone; returns the exit code."""
    try:
        words = _words(argv)
    except ValueError as wrong:
        sys.stderr.write(f"callboard serve: {wrong}\n{USAGE}\n")
        return 2
    try:
        wire = Wire.take_stdio()
    except WireClosed as closed:
        sys.stderr.write(f"callboard serve: {closed}\n")
        return 1
    opening = Opening()
    if words.acp:
        from ..acp.agent.serve import serve

        return serve(wire, opening)
    started = boot.start(wire, opening.handshake, framing=words.framing)
    from .service import run

    return run(wire, started, opening)
