"""Puts the parts together: one client on one wire, from the first frame to the exit code."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from attrs import frozen

from .boot import Boot
from .call import LspHooks, Served
from .connection import Connection, Terms
from .dispatcher import MAX_IN_FLIGHT
from .fault import Faults
from .handshake import Handshake
from .intake import Intake
from .lifecycle import EndReason, exit_code
from .outbound import MAX_BYTES, MAX_FRAMES, STALL_SECONDS, Outbound
from .watchdog import PARENT_POLL_SECONDS, watch_parent, watch_signals
from .wire import ReaderThread, Wire, WriterThread

logger = logging.getLogger("callboard.rpc")


@frozen(kw_only=True)
class WireLimits:
    """Bounds of one connection. Seconds, bytes and counts as the names say."""

    max_in_flight: int = MAX_IN_FLIGHT
    outbound_frames: int = MAX_FRAMES
    outbound_bytes: int = MAX_BYTES
    stall_seconds: float = STALL_SECONDS
    drain_seconds: float = 1.5
    answer_seconds: float = 0.2
    flush_seconds: float = 0.5
    last_resort_seconds: float = 3.0
    parent_poll_seconds: float = PARENT_POLL_SECONDS


def _nothing() -> None:
    return None


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
    """Serves one client until it is gone, and returns the exit code of the process.

    Ends at the end of the input, ``exit``, a lost framing, a client that closed its reading end, a dead
    ``processId``, or the first SIGTERM or SIGINT. Then new requests are refused, `on_end` has
    ``limits.drain_seconds`` to bring running work to a checkpoint, what was asked is answered, the queue
    is written out.

    Args:
        boot: what `boot.start` left.
        handshake: the one that `boot.start` had.
        serve: called once ``initialize`` is answered, before any further message is looked at; tells
            what this client can ask for. It must not raise.
        redact: takes secrets out of a text.
        new_id: makes correlation ids.
        version: of the server, for LSP's ``serverInfo``.
        on_close: called when nothing can be sent any more: at the end, or earlier when the client has
            read nothing for ``limits.stall_seconds`` (the sessions go on).
        last_resort: called in a thread with the exit code if the process still lives
            ``limits.last_resort_seconds`` after the end began; ``os._exit`` in a real server.
    """
    bounds = limits or WireLimits()
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[EndReason] = loop.create_future()
    opened = asyncio.Event()
    code = 1

    def end(reason: EndReason) -> None:
        if ended.done():
            return
        ended.set_result(reason)
        if last_resort is not None:  # from here on, whatever the end has to wait for
            code = exit_code(reason, shutdown_seen=connection.shutdown_seen)
            _arm(last_resort, code, bounds.last_resort_seconds)

    def stalled() -> None:
        close(f"the client has read nothing for {bounds.stall_seconds:g} s")

    def close(reason: str) -> None:
        if connection.closed is None:
            connection.close(reason)
            on_close(connection, reason)

    def agreed(_: Connection) -> None:
        intake.pause()
        opened.set()

    outbound = Outbound(
        loop=loop,
        on_stall=stalled,
        max_frames=bounds.outbound_frames,
        max_bytes=bounds.outbound_bytes,
        stall_seconds=bounds.stall_seconds,
    )
    terms = Terms(
        handshake=handshake,
        faults=Faults(redact),
        new_id=new_id,
        version=version,
        hooks=hooks or LspHooks(),
        frames=boot.frames,
        max_in_flight=bounds.max_in_flight,
    )

    async with anyio.create_task_group() as tasks, anyio.create_task_group() as handlers_tasks:
        connection = Connection(
            terms, outbound=outbound, tasks=handlers_tasks, end=end, on_open=agreed
        )
        intake = Intake(connection, outbound, spawn=tasks.start_soon, end=end)
        reader = ReaderThread(
            wire,
            boot.frames,
            lambda items, at_end: _post(loop, intake.put, items, at_end, reader.taken),
        )
        WriterThread(wire, outbound, lambda: _post(loop, end, "eof")).start()
        with watch_signals(end):
            if boot.params is not None:
                connection.adopt(boot.params)
            intake.put(boot.pending, boot.ended, _nothing)
            if not boot.ended:
                reader.start()
            await _either(opened, ended)
            if opened.is_set():
                connection.serve(await serve(connection))
                parent = connection.client.process_id
                if parent is not None:
                    tasks.start_soon(_watch, parent, lambda: end("parent"), bounds)
                intake.resume()
            reason = await ended
            code = exit_code(reason, shutdown_seen=connection.shutdown_seen)
            logger.info("ending: %s", reason)
            await _drain(connection, reason, on_end, bounds)
        close("the process ends")
        tasks.cancel_scope.cancel()
    return code


async def _either(event: asyncio.Event, future: asyncio.Future[Any]) -> None:
    """Waits for whatever comes first, and takes neither away."""
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({waiting, future}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()


async def _drain(
    connection: Connection,
    reason: EndReason,
    on_end: Callable[[EndReason], Awaitable[None]],
    bounds: WireLimits,
) -> None:
    """Running work to a checkpoint, then the answers, then the queue; each within its time."""
    connection.refuse_new()
    with anyio.move_on_after(bounds.drain_seconds):
        try:
            await on_end(reason)
        except Exception:
            logger.exception("the host did not end cleanly")
    with anyio.move_on_after(bounds.answer_seconds):
        await connection.idle()
    connection.cancel_all()
    with anyio.move_on_after(bounds.answer_seconds):
        await connection.idle()
    with anyio.move_on_after(bounds.flush_seconds):
        await connection.flush()


async def _watch(process_id: int, on_dead: Callable[[], None], bounds: WireLimits) -> None:
    try:
        await watch_parent(process_id, on_dead, poll_seconds=bounds.parent_poll_seconds)
    except Exception:  # what only watches must not end what it watches for
        logger.exception("the parent %d is watched no more", process_id)


def _post(loop: asyncio.AbstractEventLoop, call: Callable[..., Any], *args: Any) -> None:
    loop.call_soon_threadsafe(call, *args)


def _arm(last_resort: Callable[[int], None], code: int, seconds: float) -> None:
    timer = threading.Timer(seconds, last_resort, (code,))
    timer.daemon = True
    timer.start()
