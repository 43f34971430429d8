"""When there is reason to look at the other hosts: so seldom that it costs nothing, and at once when one
has died.

The kernel tells of the end of a process of this machine, and a host that comes, or leaves a session free,
knocks. Beyond that a look is due when something was committed, and now and then, since some things come
with time alone.
"""

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Callable

from ..log.bell import Bell
from .identity import Life, life

_LOOK_S = 0.5
"""How often the end of a process is looked for where it is not told: its runs are taken over within a
second all the same."""
_GLANCE_S = 1.0
"""How often it is asked whether something was committed."""
_SELDOM_S = 2.0


class Vigil:
    """Watches over the hosts whose `life` was asked for. `version` tells changes of the store apart;
    `door` hears when another process knocks; `clock` is monotonic, in seconds."""

    def __init__(
        self,
        version: Callable[[], int],
        door: Callable[[Callable[[], None]], Bell],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._version = version
        self._clock = clock
        self._seen: int | None = None
        self._last = clock()
        self._called = asyncio.Event()
        self._door = door(self._called.set)
        self._watched: dict[tuple[int, str], int] = {}
        self._unwatched: set[tuple[int, str]] = set()

    def life(self, pid: int, told: str) -> Life:
        """As `identity.life`; from then on the end of a process that lives is told, where it can be."""
        process = (pid, told)
        if process in self._watched:
            return "alive"
        found = life(pid, told)
        if found == "alive" and not self._watch(pid, told):
            self._unwatched.add(process)
        else:
            self._unwatched.discard(process)
        return found

    async def due(self) -> None:
        """Waits until there is reason to look."""
        self._door.listen()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S if self._unwatched else _GLANCE_S):
                    await self._called.wait()
            version = self._version()
            if (
                self._called.is_set()
                or self._unwatched
                or version != self._seen
                or self._clock() - self._last >= _SELDOM_S
            ):
                self._called.clear()
                self._seen = version
                self._last = self._clock()
                return

    def close(self) -> None:
        """Watches over nobody any more."""
        self._door.stop()
        for process in list(self._watched):
            self._forget(process)

    def _watch(self, pid: int, told: str) -> bool:
        if sys.platform != "linux":
            return False
        try:
            descriptor = os.pidfd_open(pid)
        except OSError:
            return False
        if life(pid, told) != "alive":  # the pid is another process's by now
            os.close(descriptor)
            return False
        process = (pid, told)
        self._watched[process] = descriptor
        asyncio.get_running_loop().add_reader(descriptor, self._has_ended, process)
        return True

    def _has_ended(self, process: tuple[int, str]) -> None:
        self._forget(process)
        self._called.set()

    def _forget(self, process: tuple[int, str]) -> None:
        descriptor = self._watched.pop(process)
        asyncio.get_running_loop().remove_reader(descriptor)
        os.close(descriptor)
