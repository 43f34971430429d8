"""Telling processes apart: a pid is used again, a machine boots again, a container has pids of its own."""

import hashlib
import sys
from pathlib import Path
from typing import Literal, TypeAlias

import psutil

Life: TypeAlias = Literal["alive", "gone", "unknown"]
"""``unknown``: the process is of another machine or container, whose processes cannot be seen."""

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MACHINE_ID = Path("/etc/machine-id")


def realm() -> str:
    """Where this process's pids mean something: ``machine/boot/namespace``, this boot of this machine, in
    this pid namespace. The machine is empty where it has no name of its own."""
    if not sys.platform.startswith("linux"):
        return "here"
    try:
        boot = _BOOT_ID.read_text().strip()
        return f"{_machine()}/{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return "here"


def _machine() -> str:
    """Which installation this is. Hashed, since its id is not for others to see."""
    try:
        told = _MACHINE_ID.read_bytes().strip()
    except OSError:
        return ""
    return hashlib.sha256(b"callboard" + told).hexdigest()[:16] if told else ""


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


def life(pid: int, told: str, *, here: str | None = None) -> Life:
    """Whether the process that told its `identity` still lives. `here` is our realm."""
    where, _, when = told.rpartition("@")
    here = realm() if here is None else here
    if where != here:
        return "gone" if _before(where, here) else "unknown"
    return "alive" if born(pid) == when else "gone"


def _before(where: str, here: str) -> bool:
    """Whether a realm was another boot of our machine: then nothing of it can be left."""
    machine, _, rest = where.partition("/")
    own, _, own_rest = here.partition("/")
    other_boot = rest.partition("/")[0] != own_rest.partition("/")[0]
    return bool(machine) and machine == own and other_boot
