"""The store's lock file: one writer at a time over all processes, in fair turns.

SQLite's busy handler polls without a queue, so that one process committing flat out can starve
the others for seconds (specs/limits.md 3.2). Here a writer first takes the *turnstile*, then the
*lock*, then leaves the turnstile: whoever has just released must queue behind those who wait.
The kernel drops both locks when a process dies.
"""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform == "win32":  # pragma: no cover - exercised on Windows only
    import msvcrt
    import time

    def _acquire(fd: int) -> None:
        while True:
            try:
                os.lseek(fd, 0, os.SEEK_SET)
                msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
                return
            except OSError:
                time.sleep(0.001)

    def _release(fd: int) -> None:
        os.lseek(fd, 0, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

    _EVERYBODY = 1 << 16
    """Bytes of which each that shares holds one, and who is alone all."""

    def _try(fd: int, at: int, count: int) -> bool:
        try:
            os.lseek(fd, at, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_NBLCK, count)
        except OSError:
            return False
        return True

    def try_shared(fd: int) -> bool:
        """Takes the lock beside others that share it; False when somebody has it alone."""
        return _try(fd, os.getpid() * 31 % _EVERYBODY, 1) or _try(fd, fd % _EVERYBODY, 1)

    def try_exclusive(fd: int) -> bool:
        """Takes the lock alone; False when somebody has it."""
        return _try(fd, 0, _EVERYBODY)
else:
    import fcntl

    def _acquire(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX)

    def _release(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_UN)

    def _try(fd: int, operation: int) -> bool:
        try:
            fcntl.flock(fd, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def try_shared(fd: int) -> bool:
        """Takes the lock beside others that share it; False when somebody has it alone."""
        return _try(fd, fcntl.LOCK_SH)

    def try_exclusive(fd: int) -> bool:
        """Takes the lock alone; False when somebody has it."""
        return _try(fd, fcntl.LOCK_EX)


def _touch(fd: int) -> None:
    if sys.platform != "win32":  # where a locked byte cannot be written, and nobody listens
        with suppress(OSError):
            os.pwrite(fd, b"\0", 0)


class TurnLock:
    """An exclusive lock between processes, and between threads that each own one `TurnLock`.

    Not re-entrant. `close` gives the descriptors back; a closed lock cannot be held.
    """

    def __init__(self, directory: Path) -> None:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        self.bell = directory / "turnstile.lock"
        """The file that `ring` writes to."""
        self.door = directory / "writer.lock"
        """The file that `knock` writes to."""
        self._turnstile = os.open(self.bell, flags, 0o600)
        self._lock = os.open(self.door, flags, 0o600)

    @contextmanager
    def held(self) -> Generator[None]:
        """Blocks until it is our turn; for a thread that may block, never for the event loop."""
        _acquire(self._turnstile)
        try:
            _acquire(self._lock)
        finally:
            _release(self._turnstile)
        try:
            yield
        finally:
            _release(self._lock)

    def ring(self) -> None:
        """Tells other processes that events were committed; takes a microsecond."""
        _touch(self._turnstile)

    def knock(self) -> None:
        """Tells other processes of what is seldom and leaves no event: a host came, a session is free."""
        _touch(self._lock)

    def close(self) -> None:
        os.close(self._turnstile)
        os.close(self._lock)
