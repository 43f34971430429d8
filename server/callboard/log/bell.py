"""Hearing that a file was written to, so that other processes' commits need no busy looking for.

Whoever has committed writes a byte to a file that all processes of the store share (`TurnLock.ring`), and
the kernel wakes those that listen. It is a hint and no more: where it cannot be heard, commits are looked
for on a short poll, and where it can, on a long one all the same.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

_IN_MODIFY = 0x2


class Bell:
    """Listens to one file. `rung` is called on the loop, soon after the file was written to: once for
    whatever was written within `breath_s`."""

    def __init__(self, path: Path, rung: Callable[[], None], *, breath_s: float) -> None:
        self._path = path
        self._rung = rung
        self._breath_s = breath_s
        self._descriptor: int | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._last = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def listening(self) -> bool:
        return self._descriptor is not None

    def listen(self) -> bool:
        """Begins to listen; whether it is possible. Nothing when it listens already."""
        if self._descriptor is not None:
            return True
        self._loop = asyncio.get_running_loop()
        descriptor = _watch(self._path)
        if descriptor is None:
            return False
        try:
            self._loop.add_reader(descriptor, self._heard)
        except (NotImplementedError, OSError):
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def stop(self) -> None:
        """Listens no more; `listen` begins anew."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._descriptor is not None:
            assert self._loop is not None
            if not self._loop.is_closed():
                self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None

    def _heard(self) -> None:
        assert self._descriptor is not None and self._loop is not None
        with contextlib.suppress(BlockingIOError):
            os.read(self._descriptor, 4096)
        if self._timer is not None:
            return
        wait = self._last + self._breath_s - self._loop.time()
        if wait > 0:
            self._timer = self._loop.call_later(wait, self._tell)
        else:
            self._tell()

    def _tell(self) -> None:
        assert self._loop is not None
        self._timer = None
        self._last = self._loop.time()
        self._rung()


def _watch(path: Path) -> int | None:
    """A descriptor that can be read whenever the file was written to; None where there is no such
    thing, or not one more of it."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    try:
        libc = ctypes.CDLL(None)
        descriptor: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if descriptor < 0:
            return None
        if libc.inotify_add_watch(descriptor, os.fsencode(path), _IN_MODIFY) < 0:
            os.close(descriptor)
            return None
    except (AttributeError, OSError):
        return None
    return descriptor
