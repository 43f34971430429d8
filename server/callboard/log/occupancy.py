"""Who has a store open: a lock that all share who do, and that whoever must be alone takes alone.

To restore, migrate, repair or make a store smaller, nobody else may have it open, not even for a look.
The kernel gives the lock back when a process dies.
"""

import errno
import os
import re
import time
from pathlib import Path

from callboard_rpc.errors import CallboardError

from . import swap
from .lockfile import try_exclusive, try_shared

WAIT_S = 5.0
"""How long opening a store waits for one that must be alone."""
_POLL_S = 0.02
_FLOCK = re.compile(r"^\d+: FLOCK +\S+ +\S+ (\d+) [0-9a-f]+:[0-9a-f]+:(\d+) ", re.MULTILINE)


def locks_of(store: Path) -> Path:
    """The folder of a store's lock files; there is one beside whatever was opened as a store."""
    return store.with_name(store.name + ".locks")


def make_locks(store: Path) -> Path:
    """The same, made when it is not there."""
    folder = locks_of(store)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


class Occupancy:
    """A place among those that have the store open, or the store for oneself. `close` gives it back."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def close(self) -> None:
        os.close(self._descriptor)

    def __enter__(self) -> "Occupancy":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def share(store: Path, *, wait_s: float = WAIT_S) -> Occupancy:
    """Joins those that have the store open. What somebody who was alone left half done is finished.

    Raises storeBusy when somebody is alone for longer than `wait_s`.
    """
    deadline = time.monotonic() + wait_s
    while True:
        descriptor = _open(store)
        try:
            if swap.is_pending(store):
                if try_exclusive(descriptor):
                    swap.finish(store)
            elif try_shared(descriptor) and not swap.is_pending(store):
                return Occupancy(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        who = _named(_holders(descriptor))
        os.close(descriptor)
        if time.monotonic() >= deadline:
            raise CallboardError(
                "storeBusy",
                f"the store {store} is being restored, migrated, repaired or made smaller{who}; "
                "try again when that is done",
                retry_after_ms=1_000,
            )
        time.sleep(_POLL_S)


def alone(store: Path) -> Occupancy:
    """Takes the store for oneself. Raises storeBusy when anybody else has it open."""
    descriptor = _open(store)
    try:
        if not try_exclusive(descriptor):
            raise CallboardError(
                "storeBusy",
                f"the store {store} is in use{_named(_holders(descriptor))}; close the editors and "
                "commands that use it and try again",
                retry_after_ms=1_000,
            )
        swap.finish(store)
    except BaseException:
        os.close(descriptor)
        raise
    return Occupancy(descriptor)


def _open(store: Path) -> int:
    path = locks_of(store) / "open.lock"
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
    try:
        return os.open(path, flags, 0o600)
    except OSError as fault:
        if fault.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        return os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))  # enough to hold a lock


def _holders(descriptor: int) -> list[int]:
    """The processes that hold the lock, where the system tells."""
    try:
        told = Path("/proc/locks").read_text("utf-8", "replace")
    except OSError:
        return []
    number = str(os.fstat(descriptor).st_ino)
    found = {int(pid) for pid, inode in _FLOCK.findall(told) if inode == number}
    return sorted(found - {0, os.getpid()})


def _named(pids: list[int]) -> str:
    if not pids:
        return ""
    shown = ", ".join(map(str, pids[:8]))
    return f" by process {shown}" if len(pids) == 1 else f" by the processes {shown}"
