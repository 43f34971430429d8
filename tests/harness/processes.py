"""Processes as the operating system has them, for tests that must leave none."""

from collections.abc import Sequence
from pathlib import Path

import psutil


def ended(process: psutil.Process) -> bool:
    """Also when nobody took notice yet, as of orphans in a container whose first process does not care."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def is_server(process: psutil.Process) -> bool:
    """Whether it is a ``callboard serve``."""
    try:
        line = process.cmdline()
    except psutil.Error:
        return False
    return "serve" in line and any("callboard" in word for word in line)


def bears(process: psutil.Process, mark: str) -> bool:
    """Whether a process got this of its environment (``NAME=value``), whoever its parent is now."""
    try:
        environ = Path(f"/proc/{process.pid}/environ").read_bytes()
    except OSError:
        return False
    return mark.encode() in environ.split(b"\0")


def bearing(mark: str) -> list[psutil.Process]:
    """All that got this of their environment, and live."""
    return [p for p in psutil.process_iter() if bears(p, mark) and not ended(p)]


def described(process: psutil.Process) -> str:
    try:
        return f"  {process.pid} {' '.join(process.cmdline())[:200]}"
    except psutil.Error:
        return f"  {process.pid} (ended)"


def end(processes: Sequence[psutil.Process]) -> None:
    """SIGKILL, for each that is still there."""
    for process in processes:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
