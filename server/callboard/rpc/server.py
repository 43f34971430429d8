"""Puts the parts together for Callboard's own protocol: one client on one wire."""

from collections.abc import Awaitable, Callable

from .boot import Boot
from .call import LspHooks, Served
from .connection import Connection, Terms
from .conversing import Means, WireLimits, converse
from .fault import Faults
from .handshake import Handshake
from .lifecycle import EndReason
from .wire import Wire

__all__ = ["WireLimits", "serve_connection"]


def _closed(_: Connection, _reason: str) -> None:
    return None


async def serve_connection(
    wire: Wire,
    boot: Boot,
    *,
    handshake: Handshake,
    serve: Callable[[Connection], Awaitable[Served]],
    on_end: Callable[[EndReason], Awaitable[None]],
    redact: Callable[[str], str],
    new_id: Callable[[], str],
    version: str,
    on_close: Callable[[Connection, str], None] = _closed,
    hooks: LspHooks | None = None,
    limits: WireLimits | None = None,
    last_resort: Callable[[int], None] | None = None,
) -> int:
    """Serves one client until it is gone, and returns the exit code of the process; see `converse` for
    how it ends.

    Args:
        boot: what `boot.start` left.
        handshake: the one that `boot.start` had.
        serve: called once ``initialize`` is answered, before any further message is looked at; tells
            what this client can ask for. It must not raise.
        redact: takes secrets out of a text.
        new_id: makes correlation ids.
        version: of the server, for LSP's ``serverInfo``.
        on_close: called when nothing can be sent any more.
        last_resort: called in a thread with the exit code if the process does not end.
    """
    bounds = limits or WireLimits()
    terms = Terms(
        handshake=handshake,
        faults=Faults(redact),
        new_id=new_id,
        version=version,
        hooks=hooks or LspHooks(),
        frames=boot.frames,
        max_in_flight=bounds.max_in_flight,
    )

    def make(means: Means) -> Connection:
        return Connection(
            terms,
            outbound=means.outbound,
            tasks=means.tasks,
            end=means.end,
            on_open=lambda _: means.opened(),
        )

    async def opened(connection: Connection) -> int | None:
        connection.serve(await serve(connection))
        return connection.client.process_id

    return await converse(
        wire,
        boot,
        make=make,
        serve=opened,
        on_end=on_end,
        on_close=on_close,
        limits=bounds,
        last_resort=last_resort,
    )
