"""What a turn may spend, and the watchdog that sees to it."""

import asyncio

from attrs import frozen

from .live import Cause, LiveTurn
from .reservation import SYSTEM


@frozen(kw_only=True)
class TurnLimits:
    """What a turn may spend. `None` is no limit; times in seconds.

    `total_s` and `idle_s` leave out the time in which a person is asked; `deadline_s` does not.
    """

    iterations: int = 50
    tokens: int | None = None
    cost: float | None = None
    total_s: float = 3_600.0
    deadline_s: float | None = None
    idle_s: float = 900.0
    cancel_grace_s: float = 5.0


async def watch(live: LiveTurn, limits: TurnLimits) -> None:
    """Stops a turn that makes no progress, or takes too long altogether (execution 45)."""
    while True:
        total = limits.total_s - live.worked_s
        idle = limits.idle_s - live.idle_s
        left = total if limits.deadline_s is None else limits.deadline_s - live.elapsed_s
        if total <= 0:
            reason = f"the turn worked for longer than {limits.total_s:g} s"
        elif left <= 0:
            reason = f"the turn took longer than the {limits.deadline_s or 0:g} s it was given"
        elif idle <= 0:
            reason = f"nothing happened for {limits.idle_s:g} s"
        else:
            await asyncio.sleep(min(idle, total, left))
            continue
        live.stop(Cause(outcome="timed_out", by=SYSTEM, reason=reason))
        return
