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
    """Runs for as long as the host lives."""
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
    due = agents.next_deadline()
    wait_s = _LONGEST_S
    if due is not None:
        left = parse(due) - parse(agents.now())
        wait_s = min(wait_s, max(0.0, left / timedelta(seconds=1)))
    if due is not None and wait_s <= 0:
        await agents.end_overdue()
        return
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(wait_s):
            await changed.wait()
