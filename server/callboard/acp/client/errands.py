"""What an agent has us do while it works: it may wait for that, or not, but it does not outlast the turn."""

import asyncio
from collections.abc import Callable, Coroutine, Set
from typing import Any, TypeVar

from ..peer import INVALID_PARAMS
from .desk import Refused

T = TypeVar("T")


class Errands:
    """Of one turn. `asking` are those that wait for a person's answer."""

    def __init__(self, asking: Callable[[], Set[asyncio.Task[Any]]]) -> None:
        self._asking = asking
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False

    def open(self) -> None:
        """Another prompt begins."""
        self._closed = False

    def close(self) -> None:
        """No more are begun."""
        self._closed = True

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Raises `Refused` after the end of the prompt."""
        if self._closed:
            work.close()
            raise Refused(INVALID_PARAMS, "the prompt that this belongs to is over")
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await task

    async def finish(self) -> None:
        """Those that were begun are done; nobody is asked about one any more."""
        self._closed = True
        while busy := self._tasks - self._asking():
            await asyncio.wait(busy, return_when=asyncio.FIRST_COMPLETED)
        await self.end()

    async def end(self) -> None:
        """Ends those that there are, wherever they stand."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
