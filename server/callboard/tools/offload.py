"""Blocking file work in worker threads."""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

T = TypeVar("T")

_log = logging.getLogger(__name__)

_AT_ONCE = 40
"""Of each kind. What is in excess waits for its turn."""

_under_way: set[object] = set()
_changed = threading.Condition()

_ENDINGS: RunVar[anyio.CapacityLimiter] = RunVar("callboard endings")
_SEARCHES: RunVar[anyio.CapacityLimiter] = RunVar("callboard searches")


async def finished(work: Callable[[], T]) -> T:
    """The result of `work`, run in a worker thread.

    A cancelled caller still waits until `work` is done: when a cancelled write has ended, the file is
    either as before or as wanted, and whoever takes the write coordinator next meets no straggler.
    """
    return await _through_cancels(anyio.to_thread.run_sync(work))


async def ended(work: Callable[[], T]) -> T:
    """The same for `work` that ends processes. Its threads are nobody else's: what has to stop waits
    for nothing."""
    return await _through_cancels(_ending(work))


def searches() -> anyio.CapacityLimiter:
    """The threads that walk or search a tree, for seconds perhaps, so that what is short need not
    wait for them."""
    return _limiter(_SEARCHES)


def see_endings_through(within_s: float) -> None:
    """Waits for the ends of processes that are under way: one that is cut off leaves what it has halted, for ever.
    For the very end of a process, when no loop runs that would."""
    with _changed:
        _changed.wait_for(lambda: not _under_way, within_s)


def _counted(work: Callable[[], T]) -> T:
    mine = object()
    with _changed:
        _under_way.add(mine)
    try:
        return work()
    finally:
        with _changed:
            _under_way.remove(mine)
            _changed.notify_all()


async def _ending(work: Callable[[], T]) -> T:
    try:
        return await anyio.to_thread.run_sync(partial(_counted, work), limiter=_limiter(_ENDINGS))
    except RuntimeError as fault:
        # Not one more thread can be started, as when a command has filled the system with processes.
        # Then everything waits for that second.
        _log.warning("processes are ended on the loop: %s", fault)
        return work()


def _limiter(kept: RunVar[anyio.CapacityLimiter]) -> anyio.CapacityLimiter:
    try:
        return kept.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(_AT_ONCE)
        kept.set(limiter)
        return limiter


async def _through_cancels(work: Coroutine[Any, Any, T]) -> T:
    job = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    with anyio.CancelScope(shield=True):  # anyio's cancellation waits at the end of this block,
        while not job.done():  # asyncio's own comes through it, and is kept for later
            try:
                await asyncio.wait((job,))
            except asyncio.CancelledError as request:
                cancelled = request
    if cancelled is not None:
        if not job.cancelled():
            job.exception()  # seen: the cancellation is what the caller asked for
        raise cancelled
    return job.result()
