"""What ends the process from outside: a parent that died, and signals."""

import asyncio
import contextlib
import logging
import os
import signal
import threading
from collections.abc import Callable, Generator

import anyio

from .lifecycle import EndReason

logger = logging.getLogger("callboard.rpc")

PARENT_POLL_SECONDS = 1.0


async def watch_parent(
    process_id: int, on_dead: Callable[[], None], *, poll_seconds: float = PARENT_POLL_SECONDS
) -> None:
    """Calls `on_dead` once `process_id` has died, or its number belongs to another process.

    A process that is dead and not yet collected (a zombie) is dead. One that cannot be looked at, since
    it is not ours or there are no descriptors left to look with, lives. Ids that can name no parent
    are ignored.
    """
    if process_id <= 0 or process_id == os.getpid():
        logger.warning("processId %d names no parent; it is not watched", process_id)
        return
    born: float | None = None
    told = False
    while True:
        match _look(process_id):
            case None:
                break
            case float() as seen:
                if born is not None and seen != born:
                    break
                born = seen
            case reason if not told:
                told = True
                logger.warning("the parent %d cannot be looked at: %s", process_id, reason)
            case _:
                pass
        await anyio.sleep(poll_seconds)
    on_dead()


def _look(process_id: int) -> float | str | None:
    """When the process was created; ``None`` when it is dead, words when that cannot be told."""
    try:
        import psutil  # here, since it is needed by few and costs 20 ms
    except (ImportError, OSError) as fault:
        return str(fault)
    try:
        process = psutil.Process(process_id)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return process.create_time()
    except psutil.NoSuchProcess:
        return None
    except (psutil.Error, OSError) as fault:
        return str(fault) or type(fault).__name__


@contextlib.contextmanager
def watch_signals(on_signal: Callable[[EndReason], None]) -> Generator[None]:
    """Within the block, the first SIGTERM or SIGINT calls `on_signal` on the loop.

    After that the default handlers are back: a second signal ends the process at once. Does nothing
    outside of the main thread, where Python allows no handlers.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    reasons: dict[signal.Signals, EndReason] = {signal.SIGTERM: "sigterm", signal.SIGINT: "sigint"}
    before = {number: signal.getsignal(number) for number in reasons}

    def first(reason: EndReason) -> None:
        for number in reasons:
            signal.signal(number, signal.SIG_DFL)
        on_signal(reason)

    def handler(number: int, _frame: object) -> None:
        loop.call_soon_threadsafe(first, reasons[signal.Signals(number)])

    for number in reasons:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
