"""The host behind one client, whatever that client speaks: opened by its configuration, with its log."""

import asyncio
import gc
import logging
import os
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from callboard_rpc.errors import CallboardError

from ..acp.client.feature import feature as external_agents
from ..host import Environment, Feature, Host, open_host
from ..log.redact import RedactingFilter
from ..log.retrying import may_pass

if TYPE_CHECKING:
    from .serve import Opening

_log = logging.getLogger(__name__)

_WARM_AFTER_S = 0.3
"""What a client asks for right after the start goes first."""
_AGAIN_S = 1.0
"""How long a host that could not be opened is not tried again."""


def log_to_stderr() -> None:
    """Where the server's log goes until the configuration says otherwise; stdout is the protocol's."""
    logging.basicConfig(
        stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s", level=logging.WARNING
    )


def tell(error: CallboardError) -> None:
    """The person sees it, too, if the editor shows what a server says; its disk may be the full one."""
    with suppress(OSError):
        sys.stderr.write(f"callboard serve: {error.message}\n")


class Again:
    """Tries anew to open a host that an `error` has kept from opening, if that may pass: for whoever asks a
    second later or more, and once at a time.

    Whoever asks is refused all the same. What follows is served as ever: a request that were let through here
    would pass by what keeps it from being done twice.
    """

    def __init__(self, error: CallboardError, open: Callable[[], Awaitable[object]]) -> None:
        self._open = open
        self._over = not may_pass(error)
        self._due = time.monotonic() + _AGAIN_S
        self._trying = asyncio.Lock()

    async def __call__(self) -> None:
        async with self._trying:
            if not self._over and time.monotonic() >= self._due:
                await self._open()
                self._over = True


@asynccontextmanager
async def opened_host(
    environment: Environment, opening: "Opening", *, features: Sequence[Feature] = ()
) -> AsyncGenerator[Host]:
    """A host on the store that `opening` has opened, and the log as its settings want it. Where it cannot be
    opened that store is closed, and whoever tries again opens it anew."""
    store, opening.store = opening.store, None
    async with open_host(
        environment,
        features=(external_agents(environment.environ), *features),
        store=store,
        ids=opening.ids,
        host_id=opening.host_id,
    ) as host:
        logging.getLogger().setLevel(host.settings.log.level.upper())
        if host.settings.log.file is not None:
            _log_into(host.settings.log.file)
        for warning in host.warnings:
            _log.warning("%s", warning)
        for handler in logging.getLogger().handlers:
            handler.addFilter(RedactingFilter(host.redactor))
        yield host


def _log_into(place: str) -> None:
    """Has the server's log written to a file of the user's own, instead of stderr."""
    try:
        path = Path(place).expanduser()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        handler = logging.FileHandler(path, encoding="utf-8", errors="replace")
    except (OSError, ValueError, RuntimeError) as fault:
        _log.warning("log.file cannot be written, so the log stays here: %s", fault)
        return
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    for each in root.handlers[:]:
        root.removeHandler(each)
    root.addHandler(handler)


async def warm(host: Host) -> None:
    """Loads what the first turn needs before it comes; then the collector need not walk the code."""
    await asyncio.sleep(_WARM_AFTER_S)
    await asyncio.to_thread(host.catalog.warm)
    gc.freeze()
