"""Blocking file work in worker threads."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

T = TypeVar("T")


async def finished(work: Callable[[], T]) -> T:
    """The result of `work`, run in a worker thread.

    A cancelled caller still waits until `work` is done: when a cancelled write has ended, the file is
    either as before or as wanted, and whoever takes the write coordinator next meets no straggler.
    """
    job = asyncio.ensure_future(anyio.to_thread.run_sync(work))
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
