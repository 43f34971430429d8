"""Ends what a grace or a time limit ends, by the server's clock: cancels that nobody has obeyed, and
questions that nobody has answered. Any host does it; the transaction looks again."""

import asyncio
import contextlib
import logging
from datetime import timedelta

from callboard_rpc.errors import CallboardError

from ..log.clock import parse
from .service import Agents

_log = logging.getLogger(__name__)

_LONGEST_S = 30.0
_AGAIN_S = 1.0


async def keep_time(agents: Agents) -> None:
    """Runs for as long as the host lives, and at its own pace whatever lies in the tables."""
    while True:
        try:
            await _next(agents)
        except CallboardError as error:
            _log.warning("the agents' clock waits for the store: %s", error)
            await asyncio.sleep(_AGAIN_S)
        except Exception:
            _log.exception("the agents' clock stumbled")
            await asyncio.sleep(_AGAIN_S)


async def _next(agents: Agents) -> None:
    changed = agents.attention.deadlines_changed
    changed.clear()  # before the look: what comes meanwhile ends the wait below
    wait_s = seconds_until(agents.next_deadline(), agents.now())
    if wait_s <= 0:
        await agents.end_overdue()
        if seconds_until(agents.next_deadline(), agents.now()) <= 0:
            # it is still there, whyever: to do it again and again would make it no better
            await asyncio.sleep(_AGAIN_S)
        return
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(wait_s):
            await changed.wait()


def seconds_until(due: str | None, now: str) -> float:
    """How long there is nothing to end. Texts are compared, as the store does; one that is no time is as far
    away as can be, or over."""
    if due is None:
        return _LONGEST_S
    if due <= now:
        return 0.0
    try:
        left_s = (parse(due) - parse(now)) / timedelta(seconds=1)
    except (ValueError, TypeError, OverflowError):
        return _LONGEST_S
    # a text that sorts behind now and means a time before it is nothing that the store would call over
    return min(_LONGEST_S, left_s) if left_s > 0 else _AGAIN_S
