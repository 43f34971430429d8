"""Puts the parts together: one client on one wire, from the first frame to the exit code."""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from attrs import frozen

from .boot import Boot
from .call import Handlers, IdempotencyHook, LspHooks
from .connection import Connection, Terms
from .dispatcher import MAX_IN_FLIGHT
from .fault import Faults
from .framing import Item
from .handshake import Handshake
from .lifecycle import EndReason, exit_code
from .outbound import MAX_BYTES, MAX_FRAMES, STALL_SECONDS, Outbound
from .watchdog import PARENT_POLL_SECONDS, watch_parent, watch_signals
from .wire import ReaderThread, Wire, WriterThread

logger = logging.getLogger("callboard.rpc")

_HELPING = 64


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


class _Inbox:
    """Frames between the reader thread and the connection, dealt with a few at a time.

    Calls that were started get their turn between two helpings, so that a burst of quick requests is
    not taken for hundreds that are in flight, and nothing else on the loop waits for a flood.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        boot: Boot,
        connection: Connection,
        end: Callable[[EndReason], None],
    ) -> None:
        self.taken: Callable[[], None] = lambda: None
        self._loop = loop
        self._frames = boot.frames
        self._connection = connection
        self._end = end
        self._posts: deque[tuple[deque[Item], bool]] = deque()
        self._busy = False

    def put(self, items: list[Item], at_end: bool) -> None:
        self._posts.append((deque(items), at_end))
        if not self._busy:
            self._busy = True
            self._deal()

    def _deal(self) -> None:
        helping = _HELPING
        while self._posts:
            items, at_end = self._posts[0]
            while items:
                if helping == 0:
                    self._loop.call_soon(self._deal)
                    return
                helping -= 1
                self._receive(items.popleft())
            self._posts.popleft()
            self.taken()
            if at_end:
                self._end("eof")
        self._busy = False

    def _receive(self, item: Item) -> None:
        if self._frames.framing is not None:
            self._connection.framing = self._frames.framing
        try:
            self._connection.receive(item)
        except Exception:
            logger.exception("a message could not be dealt with")


def _nothing(_: Connection) -> None:
    return None


def _closed(_: Connection, _reason: str) -> None:
    return None


async def serve_connection(
    wire: Wire,
    boot: Boot,
    *,
    handlers: Handlers,
    handshake: Handshake,
    on_end: Callable[[EndReason], Awaitable[None]],
    redact: Callable[[str], str],
    new_id: Callable[[], str],
    version: str,
    on_open: Callable[[Connection], None] = _nothing,
    on_close: Callable[[Connection, str], None] = _closed,
    replay: IdempotencyHook | None = None,
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
        handlers: by method name; ``shutdown`` may be among them and runs before its answer.
        handshake: the one that `boot.start` had.
        redact: takes secrets out of a text.
        new_id: makes correlation ids.
        version: of the server, for LSP's ``serverInfo``.
        on_open: called once ``initialize`` is answered, before any further message is looked at.
        on_close: called when nothing can be sent any more: at the end, or earlier when the client has
            read nothing for ``limits.stall_seconds`` (the sessions go on).
        last_resort: called in a thread with the exit code if the process still lives
            ``limits.last_resort_seconds`` after the end began; ``os._exit`` in a real server.
    """
    bounds = limits or WireLimits()
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[EndReason] = loop.create_future()
    code = 1

    def end(reason: EndReason) -> None:
        if not ended.done():
            ended.set_result(reason)

    def stalled() -> None:
        close(f"the client has read nothing for {bounds.stall_seconds:g} s")

    def close(reason: str) -> None:
        if connection.closed is None:
            connection.close(reason)
            on_close(connection, reason)

    outbound = Outbound(
        loop=loop,
        on_stall=stalled,
        max_frames=bounds.outbound_frames,
        max_bytes=bounds.outbound_bytes,
        stall_seconds=bounds.stall_seconds,
    )
    terms = Terms(
        handlers=handlers,
        handshake=handshake,
        faults=Faults(redact),
        new_id=new_id,
        version=version,
        replay=replay,
        hooks=hooks or LspHooks(),
        frame_limit=boot.frames.limit,
        max_in_flight=bounds.max_in_flight,
    )

    async with anyio.create_task_group() as tasks, anyio.create_task_group() as handlers_tasks:

        def opened(connection: Connection) -> None:
            parent = connection.client.process_id
            if parent is not None:
                tasks.start_soon(_watch, parent, lambda: end("parent"), bounds.parent_poll_seconds)
            on_open(connection)

        connection = Connection(
            terms,
            framing=boot.frames.framing or "ndjson",
            outbound=outbound,
            tasks=handlers_tasks,
            end=end,
            on_open=opened,
        )

        inbox = _Inbox(loop, boot, connection, end)
        reader = ReaderThread(
            wire, boot.frames, lambda items, at_end: _post(loop, inbox.put, items, at_end)
        )
        inbox.taken = reader.taken
        WriterThread(wire, outbound, lambda: _post(loop, end, "eof")).start()
        with watch_signals(end):
            if boot.params is not None:
                connection.adopt(boot.params)
            inbox.put(boot.pending, boot.ended)
            if not boot.ended:
                reader.start()
            reason = await ended
            code = exit_code(reason, shutdown_seen=connection.shutdown_seen)
            logger.info("ending: %s", reason)
            if last_resort is not None:
                _arm(last_resort, code, bounds.last_resort_seconds)
            await _drain(connection, reason, on_end, bounds)
        close("the process ends")
        tasks.cancel_scope.cancel()
    return code


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


async def _watch(process_id: int, on_dead: Callable[[], None], poll_seconds: float) -> None:
    await watch_parent(process_id, on_dead, poll_seconds=poll_seconds)


def _post(loop: asyncio.AbstractEventLoop, call: Callable[..., Any], *args: Any) -> None:
    loop.call_soon_threadsafe(call, *args)


def _arm(last_resort: Callable[[int], None], code: int, seconds: float) -> None:
    timer = threading.Timer(seconds, last_resort, (code,))
    timer.daemon = True
    timer.start()
