"""Trying again what the store refuses: which failures may pass, and how long to wait each time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from callboard_rpc.errors import CallboardError

T = TypeVar("T")

_log = logging.getLogger(__name__)

_FIRST_DELAY_S = 0.1
_LONGEST_DELAY_S = 2.0


def may_pass(error: CallboardError) -> bool:
    """Whether a failure of the store can be over later: space is freed, permissions are mended."""
    return error.kind == "storeReadOnly" or (
        error.spec.retryable and error.kind.startswith("store")
    )


def delays() -> Iterator[float]:
    """Seconds to wait before each new attempt, without an end."""
    delay = _FIRST_DELAY_S
    while True:
        yield delay
        delay = min(2 * delay, _LONGEST_DELAY_S)


async def insist(read: Callable[[], Awaitable[T]], failing: str) -> T:
    """What `read` returns, however often the store fails: whoever follows it goes on where it was. `failing`
    is what the log says then."""
    for delay in delays():
        try:
            return await read()
        except Exception as fault:
            _log.warning("%s: %s", failing, fault)
        await asyncio.sleep(delay)
    raise AssertionError  # the delays have no end
