"""The server behind ``callboard serve``, once ``initialize`` is answered: a host, and its one client."""

import asyncio
import gc
import logging
import os
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callboard_rpc.common import Actor
from callboard_rpc.errors import CallboardError
from callboard_rpc.methods import METHODS

from ..host import Environment, Host, open_host
from ..log.ids import IdSource
from ..log.redact import RedactingFilter, Redactor
from ..log.retrying import may_pass
from ..tools.environment import secret_values
from . import loop
from .boot import Boot
from .call import Call, Handler, Heed, Served
from .connection import Connection
from .greeting import version
from .handlers import (
    agents,
    approvals,
    events,
    groups,
    history,
    peers,
    rooms,
    schedules,
    server,
    sessions,
    transfer,
)
from .handlers.client import Clients, ClientState
from .handlers.remade import remakes
from .idempotency import StoredAnswers
from .lifecycle import EndReason
from .offers import Offers
from .server import serve_connection
from .subscriptions import Subscriptions
from .wire import Wire

if TYPE_CHECKING:
    from .serve import Opening

_log = logging.getLogger(__name__)

_SERVED = (
    "server",
    "config",
    "model",
    "profile",
    "session",
    "approval",
    "event",
    "agent",
    "group",
    "schedule",
    "peer",
)
"""The families that a server without a store refuses by themselves; the rest is the protocol's own."""

_AGAIN_S = 1.0
"""How long a host that could not be opened is not tried again."""

_WARM_AFTER_S = 0.3
"""What a client asks for right after the start goes first."""


def handlers_of(host: Host, clients: Clients) -> dict[str, Handler | Heed]:
    """Every method of this server: its own, and those that features bring."""
    table: dict[str, Handler | Heed] = {
        **server.handlers(host),
        **sessions.handlers(host, clients),
        **transfer.handlers(host, clients),
        **history.handlers(host, clients),
        **approvals.handlers(host),
        **agents.handlers(host, clients),
        **groups.handlers(host),
        **rooms.handlers(host),
        **schedules.handlers(host),
        **peers.handlers(host),
        **events.handlers(host, clients),
    }
    for feature in host.features:
        if feature.methods is not None:
            table.update(feature.methods(host))
    return table


def run(wire: Wire, boot: Boot, opening: "Opening") -> int:
    """Runs the event loop until the client is gone; returns the exit code."""
    logging.basicConfig(
        stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s", level=logging.WARNING
    )
    return loop.run(_main(wire, boot, opening))


async def _main(wire: Wire, boot: Boot, opening: "Opening") -> int:
    async with AsyncExitStack() as stack:
        reception = _Reception(stack, boot, opening)
        return await serve_connection(
            wire,
            boot,
            handshake=reception.handshake,
            serve=reception.serve,
            on_end=reception.ended,
            on_close=reception.closed,
            redact=reception.redacted,
            new_id=reception.new_id,
            version=version(),
            last_resort=os._exit,
        )


class _Reception:
    """Brings the client and the host together. There is no host before a client has said all that is
    asked of it: the host, and its store, are opened by that client's configuration."""

    def __init__(self, stack: AsyncExitStack, boot: Boot, opening: "Opening") -> None:
        self._stack = stack
        self._boot = boot
        self._opening = opening
        self._redactor = Redactor(secret_values(os.environ))
        self._ids = IdSource()
        self._host: Host | None = None
        self._clients: Clients | None = None
        self._take_limit()

    def _take_limit(self) -> None:
        if self._opening.frame_limit is not None:
            self._boot.frames.limit = self._opening.frame_limit

    def redacted(self, text: str) -> str:
        return self._redactor.text(text)

    def new_id(self) -> str:
        return self._ids.new("req")

    def handshake(self, params: dict[str, Any]) -> dict[str, Any]:
        """Raises the store's own errors; the person sees them too, if the editor shows them."""
        try:
            answer = self._opening.handshake(params)
        except CallboardError as error:
            _tell(error)
            raise
        self._take_limit()
        return answer

    async def serve(self, connection: Connection) -> Served:
        """Opens the host. Where that fails, whatever the client asks is answered by the reason, and tried
        again for a reason that may pass."""
        try:
            host = await self._opened(connection)
        except CallboardError as error:
            _tell(error)
            again = partial(self.serve, connection) if may_pass(error) else None
            return _Refusing(error, connection, again).served
        except Exception:
            _log.exception("the host could not be started")
            error = CallboardError("internal", "the server could not start; its log says why")
            return _Refusing(error, connection, None).served
        self._host = host
        self._redactor = host.redactor
        clients = self._clients = Clients(host)
        clients.add(id(connection), _state(host, connection))
        answers = StoredAnswers(
            host.log, days=host.settings.store.idempotency_days, remakes=remakes(host)
        )
        host.spawn(answers.prune, "pruning of stored answers")
        host.spawn(lambda: _warm(host), "warm-up")
        return Served(handlers=handlers_of(host, clients), replay=answers)

    async def _opened(self, connection: Connection) -> Host:
        environment = Environment.of_process(connection.client.config)
        opening = self._opening
        store, opening.store = (
            opening.store,
            None,
        )  # whoever fails closes it; the next one opens its own
        host = await self._stack.enter_async_context(
            open_host(environment, store=store, ids=opening.ids, host_id=opening.host_id)
        )
        logging.getLogger().setLevel(host.settings.log.level.upper())
        if host.settings.log.file is not None:
            _log_into(host.settings.log.file)
        for warning in host.warnings:
            _log.warning("%s", warning)
        for handler in logging.getLogger().handlers:
            handler.addFilter(RedactingFilter(host.redactor))
        return host

    def closed(self, connection: Connection, reason: str) -> None:
        state = None if self._clients is None else self._clients.pop(id(connection))
        if state is not None and self._host is not None:
            self._host.spawn(lambda: _leave(state), f"clean-up of a client ({reason})")

    async def ended(self, reason: EndReason) -> None:
        if self._host is not None:
            await self._host.stop(f"the client is gone ({reason})")


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


def _state(host: Host, connection: Connection) -> ClientState:
    subscriptions = Subscriptions(host, connection, window=host.settings.limits.window)
    offers: Offers | None = None
    client = connection.client
    if client.capabilities.approvals:
        name = client.info.name if client.info else None
        actor = Actor(kind="client", id=client.client_id, name=name)
        offers = Offers(host, connection, subscriptions, actor=actor)
        offers.start()
    return ClientState(subscriptions=subscriptions, offers=offers)


async def _warm(host: Host) -> None:
    """Loads what the first turn needs before it comes; then the collector need not walk the code."""
    await asyncio.sleep(_WARM_AFTER_S)
    await asyncio.to_thread(host.catalog.warm)
    gc.freeze()


async def _leave(state: ClientState) -> None:
    if state.offers is not None:
        await state.offers.close()
    await state.subscriptions.close()


def _tell(error: CallboardError) -> None:
    """The person sees it, too, if the editor shows what a server says; its disk may be the full one."""
    with suppress(OSError):
        sys.stderr.write(f"callboard serve: {error.message}\n")


class _Refusing:
    """What is served without a host: nothing can be done, and the client is told so, whatever it asks.

    `again` tries anew to open the host, for whoever asks a second later or more; once it is there it serves
    this request, and all that follow.
    """

    def __init__(
        self,
        error: CallboardError,
        connection: Connection,
        again: Callable[[], Awaitable[Served]] | None,
    ) -> None:
        self._error = error
        self._connection = connection
        self._again = again
        self._due = time.monotonic() + _AGAIN_S
        self._trying = asyncio.Lock()
        self._found: Served | None = None
        self.served = Served(
            handlers={
                name: self._unserved
                for name, method in METHODS.items()
                if method.direction == "clientToServer" and name.partition("/")[0] in _SERVED
            }
        )

    async def _unserved(self, call: Call, params: Any) -> Any:
        found = await self._tried()
        handler = None if found is None else found.handlers.get(call.method)
        if handler is None or isinstance(handler, Heed):
            raise self._error
        return await handler(call, params)

    async def _tried(self) -> Served | None:
        async with self._trying:
            if self._found is None and self._again is not None and time.monotonic() >= self._due:
                self._found, self._again = await self._again(), None
                self._connection.serve(self._found)
            return self._found
