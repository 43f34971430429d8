"""The server behind ``callboard serve``, once ``initialize`` is answered: a host, and its one client."""

import logging
import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from callboard_rpc.common import Actor
from callboard_rpc.errors import CallboardError
from callboard_rpc.methods import METHODS

from ..host import Environment, Host
from ..log.ids import IdSource
from ..log.redact import Redactor
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
    probing,
    rooms,
    schedules,
    server,
    sessions,
    transfer,
)
from .handlers.client import Clients, ClientState
from .handlers.remade import remakes
from .hosting import Again, log_to_stderr, opened_host, tell, warm
from .idempotency import StoredAnswers
from .lifecycle import EndReason
from .offers import Offers
from .questions import asking
from .server import serve_connection
from .subscriptions import Subscription, Subscriptions
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


def handlers_of(host: Host, clients: Clients) -> dict[str, Handler | Heed]:
    """Every method of this server: its own, and those that features bring."""
    table: dict[str, Handler | Heed] = {
        **server.handlers(host),
        **probing.handlers(host),
        **sessions.handlers(host, clients),
        **transfer.handlers(host, clients),
        **history.handlers(host, clients),
        **approvals.handlers(host),
        **agents.handlers(host, clients.held),
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
    log_to_stderr()
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
            tell(error)
            raise
        self._take_limit()
        return answer

    async def serve(self, connection: Connection) -> Served:
        """Opens the host. Where that fails, whatever the client asks is answered by the reason, and tried
        again for a reason that may pass."""
        try:
            host = await self._opened(connection)
        except CallboardError as error:
            tell(error)
            return _refusing(error, Again(error, partial(self._serve_anew, connection)))
        except Exception:
            _log.exception("the host could not be started")
            error = CallboardError("internal", "the server could not start; its log says why")
            return _refusing(error, Again(error, partial(self._serve_anew, connection)))
        self._host = host
        self._redactor = host.redactor
        clients = self._clients = Clients(host)
        clients.add(id(connection), _state(host, connection))
        answers = StoredAnswers(
            host.log, days=host.settings.store.idempotency_days, remakes=remakes(host)
        )
        host.spawn(answers.prune, "pruning of stored answers")
        host.spawn(lambda: warm(host), "warm-up")
        return Served(handlers=handlers_of(host, clients), replay=answers)

    async def _serve_anew(self, connection: Connection) -> None:
        connection.serve(await self.serve(connection))

    async def _opened(self, connection: Connection) -> Host:
        environment = Environment.of_process(connection.client.config)
        return await self._stack.enter_async_context(opened_host(environment, self._opening))

    def closed(self, connection: Connection, reason: str) -> None:
        state = None if self._clients is None else self._clients.pop(id(connection))
        if state is not None and self._host is not None:
            self._host.spawn(lambda: _leave(state), f"clean-up of a client ({reason})")

    async def ended(self, reason: EndReason) -> None:
        if self._host is not None:
            await self._host.stop(f"the client is gone ({reason})")


def _state(host: Host, connection: Connection) -> ClientState:
    subscriptions = Subscriptions(host, connection, window=host.settings.limits.window)
    offers: Offers | None = None
    client = connection.client
    if client.capabilities.approvals:
        name = client.info.name if client.info else None
        actor = Actor(kind="client", id=client.client_id, name=name)
        offers = Offers(
            host,
            covers=subscriptions.offers,
            ask=asking(connection, subscriptions.holds),
            actor=actor,
        )
        subscriptions.on_live = _look_with(offers)
        offers.start()
    return ClientState(subscriptions=subscriptions, offers=offers)


def _look_with(offers: Offers) -> Callable[[Subscription], None]:
    return lambda subscription: offers.look(subscription.offers)


async def _leave(state: ClientState) -> None:
    if state.offers is not None:
        await state.offers.close()
    await state.subscriptions.close()


def _refusing(error: CallboardError, again: Again) -> Served:
    """What is served without a host: nothing can be done, and the client is told so, whatever it asks."""

    async def unserved(_: Call, __: Any) -> Any:
        await again()
        raise error

    return Served(
        handlers={
            name: unserved
            for name, method in METHODS.items()
            if method.direction == "clientToServer" and name.partition("/")[0] in _SERVED
        }
    )
