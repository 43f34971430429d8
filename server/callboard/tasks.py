"""The tasks of a process, and who could be asked in it."""

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Callable

_log = logging.getLogger(__name__)

TASKS_END_S = 0.5
"""How long tasks have that are cancelled then, twice over at the most."""


class Tasks:
    """The tasks of a host: no request owns them, and the crash of one is recorded and ends nothing
    else."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    def spawn(self, run: Callable[[], Awaitable[None]], name: str) -> None:
        async def supervised() -> None:
            try:
                await run()
            except Exception:
                _log.exception("%s crashed", name)

        # a clean context: nothing of the request that happened to be first is inherited
        task = asyncio.get_running_loop().create_task(
            supervised(), name=name, context=contextvars.Context()
        )
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def end(self, within_s: float = TASKS_END_S) -> None:
        """Cancels what still runs and waits for it; what does not end by then is cancelled once more,
        through its shields, and left behind: the next start finds out what became of it."""
        for _ in range(2):
            if not self._running:
                return
            for task in self._running:
                task.cancel()
            await asyncio.wait(list(self._running), timeout=within_s)
        for task in self._running:
            _log.warning("%s did not end and was left behind", task.get_name())


class Attendance:
    """How many connected clients could be asked for an approval."""

    def __init__(self) -> None:
        self.clients = 0

    def anybody(self) -> bool:
        return self.clients > 0
