"""The server behind ``callboard serve``, once ``initialize`` is answered: a host, and its one client."""

import asyncio
import gc
import logging
import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callboard_rpc.common import Actor
from callboard_rpc.errors import CallboardError
from callboard_rpc.methods import METHODS

from ..host import Environment, Host, open_host
from ..log.redact import RedactingFilter
from . import loop
from .boot import Boot
from .call import Call, Handler, Heed
from .connection import Connection
from .greeting import version
from .handlers import agents, approvals, events, history, server, sessions, transfer
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

_SERVED = ("server", "config", "model", "profile", "session", "approval", "event", "agent")
"""The families that a server without a store refuses by themselves; the rest is the protocol's own."""

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
    from .serve import client_config

    params = boot.params or {}
    environment = Environment.of_process(client_config(params))
    async with AsyncExitStack() as stack:
        try:
            opening.handshake(params)
            if opening.frame_limit is not None:
                boot.frames.limit = opening.frame_limit
            host = await stack.enter_async_context(
                open_host(
                    environment, store=opening.store, ids=opening.ids, host_id=opening.host_id
                )
            )
        except CallboardError as error:
            return await _refuse(wire, boot, error)
        except Exception:
            _log.exception("the host could not be started")
            return await _refuse(
                wire,
                boot,
                CallboardError("internal", "the server could not start; its log says why"),
            )
        logging.getLogger().setLevel(host.settings.log.level.upper())
        if host.settings.log.file is not None:
            _log_into(Path(host.settings.log.file).expanduser())
        for warning in host.warnings:
            _log.warning("%s", warning)
        for handler in logging.getLogger().handlers:
            handler.addFilter(RedactingFilter(host.redactor))
        return await _serve(wire, boot, opening, host)


def _log_into(path: Path) -> None:
    """Has the server's log written to a file of the user's own, instead of stderr."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        handler = logging.FileHandler(path, encoding="utf-8", errors="replace")
    except (OSError, ValueError) as fault:
        _log.warning("log.file cannot be written, so the log stays here: %s", fault)
        return
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    for each in root.handlers[:]:
        root.removeHandler(each)
    root.addHandler(handler)


async def _serve(wire: Wire, boot: Boot, opening: "Opening", host: Host) -> int:
    clients = Clients(host)
    answers = StoredAnswers(
        host.log,
        days=host.settings.store.idempotency_days,
        remakes=remakes(host),
    )
    host.spawn(answers.prune, "pruning of stored answers")
    host.spawn(lambda: _warm(host), "warm-up")

    def opened(connection: Connection) -> None:
        subscriptions = Subscriptions(host, connection, window=host.settings.limits.window)
        offers: Offers | None = None
        client = connection.client
        if client.capabilities.approvals:
            name = client.info.name if client.info else None
            actor = Actor(kind="client", id=client.client_id, name=name)
            offers = Offers(host, connection, subscriptions, actor=actor)
            offers.start()
        clients.add(id(connection), ClientState(subscriptions=subscriptions, offers=offers))

    def closed(connection: Connection, reason: str) -> None:
        state = clients.pop(id(connection))
        if state is not None:
            host.spawn(lambda: _leave(state), f"clean-up of a client ({reason})")

    async def ended(reason: EndReason) -> None:
        await host.stop(f"the editor is gone ({reason})")

    return await serve_connection(
        wire,
        boot,
        handlers=handlers_of(host, clients),
        handshake=opening.handshake,
        on_end=ended,
        redact=host.redactor.text,
        new_id=lambda: host.log.ids.new("req"),
        version=version(),
        on_open=opened,
        on_close=closed,
        replay=answers,
        last_resort=os._exit,
    )


async def _warm(host: Host) -> None:
    """Loads what the first turn needs before it comes; then the collector need not walk the code."""
    await asyncio.sleep(_WARM_AFTER_S)
    await asyncio.to_thread(host.catalog.warm)
    gc.freeze()


async def _leave(state: ClientState) -> None:
    if state.offers is not None:
        await state.offers.close()
    await state.subscriptions.close()


async def _refuse(wire: Wire, boot: Boot, error: CallboardError) -> int:
    """Without a store nothing can be done; the client is told so as the answer to ``initialize``, and
    to whatever it asks if that was answered already."""
    sys.stderr.write(f"callboard serve: {error.message}\n")

    async def nothing(_: EndReason) -> None:
        return None

    async def unserved(_: Call, __: Any) -> Any:
        raise error

    def refused(_: dict[str, Any]) -> dict[str, Any]:
        raise error  # also for one who asks again: nothing here could serve it

    return await serve_connection(
        wire,
        boot,
        handlers={
            name: unserved
            for name, method in METHODS.items()
            if method.direction == "clientToServer" and name.partition("/")[0] in _SERVED
        },
        handshake=refused,
        on_end=nothing,
        redact=lambda text: text,
        new_id=lambda: "req_0",
        version=version(),
        last_resort=os._exit,
    )
