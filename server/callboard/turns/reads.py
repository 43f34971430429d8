"""Reads of one answer begin before they are committed, since they change nothing.

What is over in no time is then committed together with its call: one transaction, and one wait for
the disk, for what would be two. What takes longer is shown as it runs, like every other call.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from attrs import field, frozen

from ..tools.scheduling import READS_AT_ONCE
from .call import Call, Settled
from .calls import Caller

_QUICK_S = 0.01
"""Nobody sees so short a delay of a call."""


@frozen(kw_only=True)
class Reads:
    """The calls of one batch that have begun, by call id; none when not all of it are free reads."""

    caller: Caller
    begun: dict[str, "asyncio.Task[Settled]"] = field(factory=dict[str, "asyncio.Task[Settled]"])

    async def quick(self) -> list[Settled]:
        """Those that are over in no time, in the order of the calls."""
        if not self.begun:
            return []
        await asyncio.wait(self.begun.values(), timeout=_QUICK_S)
        return [
            task.result()
            for task in self.begun.values()
            if task.done() and not task.cancelled() and task.exception() is None
        ]

    async def run(self, call: Call) -> Settled:
        """Runs a call, or waits for it where it has begun."""
        task = self.begun.get(call.call_id)
        return await (self.caller.run(call) if task is None else task)


@asynccontextmanager
async def reading(caller: Caller, calls: Sequence[Call]) -> AsyncGenerator[Reads]:
    """Begins `calls` when all of them are reads about which nobody has to be asked. What still runs
    at the end of the context is cancelled and waited for."""
    reads = Reads(caller=caller)
    if len(calls) <= READS_AT_ONCE and all(caller.reads_freely(call) for call in calls):
        for call in calls:
            reads.begun[call.call_id] = asyncio.create_task(
                caller.run(call), name=f"read {call.call_id}"
            )
    try:
        yield reads
    finally:
        if reads.begun:
            for task in reads.begun.values():
                task.cancel()
            await asyncio.gather(*reads.begun.values(), return_exceptions=True)
