"""One conversation over one wire, whatever is spoken: from the first frame to the exit code."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

import anyio
from anyio.abc import TaskGroup
from attrs import frozen

from .boot import Boot
from .intake import MAX_IN_FLIGHT, Intake, Receiver
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


class Conversation(Receiver, Protocol):
    """What is spoken with one client. `closed` says why nothing is sent any more; `shutdown_seen` whether
    the client has said that it goes."""

    @property
    def closed(self) -> str | None: ...
    @property
    def shutdown_seen(self) -> bool: ...
    def adopt(self, params: dict[str, Any]) -> None:
        """Takes over an ``initialize`` that was answered before."""
        ...

    def refuse_new(self) -> None:
        """From now on new requests are refused."""
        ...

    async def idle(self) -> None:
        """Returns once no handler runs."""
        ...

    def cancel_all(self) -> None:
        """Cancels every request that runs; each is answered."""
        ...

    async def flush(self) -> None:
        """Returns once everything that was sent so far is written."""
        ...

    def close(self, reason: str) -> None:
        """Sends nothing any more, and fails what was asked of the client."""
        ...


C = TypeVar("C", bound=Conversation)


@frozen(kw_only=True)
class Means:
    """What a conversation is made with: where it sends, where its handlers run, how it ends, and what it
    calls, once, when ``initialize`` was answered."""

    outbound: Outbound
    tasks: TaskGroup
    end: Callable[[EndReason], None]
    opened: Callable[[], None]


def _nothing() -> None:
    return None


async def converse(
    wire: Wire,
    boot: Boot,
    *,
    make: Callable[[Means], C],
    serve: Callable[[C], Awaitable[int | None]],
    on_end: Callable[[EndReason], Awaitable[None]],
    on_close: Callable[[C, str], None],
    limits: WireLimits | None = None,
    last_resort: Callable[[int], None] | None = None,
) -> int:
    """Speaks with one client until it is gone, and returns the exit code of the process.

    Ends at the end of the input, ``exit``, a lost framing, a client that closed its reading end, a dead
    parent, or the first SIGTERM or SIGINT. Then new requests are refused, `on_end` has
    ``limits.drain_seconds`` to bring running work to a checkpoint, what was asked is answered, the queue
    is written out.

    Args:
        boot: what the fast start left.
        serve: called once ``initialize`` is answered, before any further message is looked at; gives the
            process to watch as the parent, if there is one. It must not raise.
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
            code = exit_code(reason, shutdown_seen=conversation.shutdown_seen)
            _arm(last_resort, code, bounds.last_resort_seconds)

    def stalled() -> None:
        close(f"the client has read nothing for {bounds.stall_seconds:g} s")

    def close(reason: str) -> None:
        if conversation.closed is None:
            conversation.close(reason)
            on_close(conversation, reason)

    def agreed() -> None:
        intake.pause()
        opened.set()

    outbound = Outbound(
        loop=loop,
        on_stall=stalled,
        max_frames=bounds.outbound_frames,
        max_bytes=bounds.outbound_bytes,
        stall_seconds=bounds.stall_seconds,
    )
    async with anyio.create_task_group() as tasks, anyio.create_task_group() as handlers_tasks:
        conversation = make(Means(outbound=outbound, tasks=handlers_tasks, end=end, opened=agreed))
        intake = Intake(conversation, outbound, spawn=tasks.start_soon, end=end)
        reader = ReaderThread(
            wire,
            boot.frames,
            lambda items, at_end: _post(loop, intake.put, items, at_end, reader.taken),
        )
        WriterThread(wire, outbound, lambda: _post(loop, end, "eof")).start()
        with watch_signals(end):
            if boot.params is not None:
                conversation.adopt(boot.params)
            intake.put(boot.pending, boot.ended, _nothing)
            if not boot.ended:
                reader.start()
            await _either(opened, ended)
            if opened.is_set():
                parent = await serve(conversation)
                if parent is not None:
                    tasks.start_soon(_watch, parent, lambda: end("parent"), bounds)
                intake.resume()
            reason = await ended
            code = exit_code(reason, shutdown_seen=conversation.shutdown_seen)
            logger.info("ending: %s", reason)
            await _drain(conversation, reason, on_end, bounds)
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
    conversation: Conversation,
    reason: EndReason,
    on_end: Callable[[EndReason], Awaitable[None]],
    bounds: WireLimits,
) -> None:
    """Running work to a checkpoint, then the answers, then the queue; each within its time."""
    conversation.refuse_new()
    with anyio.move_on_after(bounds.drain_seconds):
        try:
            await on_end(reason)
        except Exception:
            logger.exception("the host did not end cleanly")
    with anyio.move_on_after(bounds.answer_seconds):
        await conversation.idle()
    conversation.cancel_all()
    with anyio.move_on_after(bounds.answer_seconds):
        await conversation.idle()
    with anyio.move_on_after(bounds.flush_seconds):
        await conversation.flush()


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
