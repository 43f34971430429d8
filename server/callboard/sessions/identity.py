"""Telling processes apart: a pid is used again, a machine boots again, a container has pids of its own."""

import sys
from pathlib import Path
from typing import Literal, TypeAlias

import psutil

Life: TypeAlias = Literal["alive", "gone", "unknown"]
"""``unknown``: the process is of another machine or container, whose processes cannot be seen."""

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def realm() -> str:
    """Where this process's pids mean something: this boot of this machine, in this pid namespace."""
    if not sys.platform.startswith("linux"):
        return "here"
    try:
        return f"{_BOOT_ID.read_text().strip()}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return "here"


def born(pid: int) -> str | None:
    """When a process began, as text that no other process with its pid shares; None when there is none.

    On Linux in ticks since the boot, which setting the clock does not change.
    """
    if sys.platform.startswith("linux"):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
        except OSError:
            return None
        fields = stat.rpartition(")")[2].split()
        return None if fields[0] == "Z" else fields[19]
    try:
        return f"{psutil.Process(pid).create_time():.2f}"
    except psutil.Error:
        return None


def identity(pid: int) -> str:
    """A process of this realm, as it is told to others."""
    return f"{realm()}@{born(pid)}"


def life(pid: int, told: str) -> Life:
    """Whether the process that told its `identity` still lives."""
    where, _, when = told.rpartition("@")
    if where != realm():
        return "unknown"
    return "alive" if born(pid) == when else "gone"
