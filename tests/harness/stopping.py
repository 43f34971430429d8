"""A server process that stands still for a while, as one of a machine that swaps or of a debugger does."""

import fcntl
import os
import signal
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psutil

from .process import PATIENCE_S, ServerProcess


@contextmanager
def stopped(server: ServerProcess) -> Generator[None]:
    """SIGSTOP, and SIGCONT on leaving; while the server holds no lock of the store, since who is stopped
    with that holds up all others."""
    stop(server)
    try:
        yield
    finally:
        if server.process.poll() is None:
            os.kill(server.process.pid, signal.SIGCONT)


def stop(server: ServerProcess) -> None:
    """SIGSTOP, for good."""
    locks = server.folder / "store.db.locks"
    with _locked(locks / "turnstile.lock"), _locked(locks / "writer.lock"):
        os.kill(server.process.pid, signal.SIGSTOP)
        process = psutil.Process(server.process.pid)
        ends = time.monotonic() + PATIENCE_S
        while process.status() != psutil.STATUS_STOPPED:
            assert time.monotonic() < ends
            time.sleep(0.005)  # something of the operating system, which sends no event


@contextmanager
def _locked(path: Path) -> Generator[None]:
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
