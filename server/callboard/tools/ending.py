"""Ending processes as a whole: a command's group, its descendants, and all that bear its mark.

All of this blocks, and runs in a worker thread. A process is held as a `psutil.Process`, which knows a
reused number; the group is signalled by number only while its leader is not collected, since until then
nobody else can get that number.
"""

import contextlib
import errno
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

MARK = "CALLBOARD_CALL"
"""The environment variable that marks what belongs to one call."""

GRACE_S = 0.3
"""How long processes have between being asked to end and being killed."""

_BACKGROUND_S = 0.1
"""How long what a command left behind has to end, or to go its own way, before it is ended."""

_POLL_S = 0.01
_KILL_ROUNDS = 50
_BLIND = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Faults of a look that say nothing of what was looked at: the system has nothing left to look with."""


def group_exists(leader: int) -> bool:
    """Whether any process is left in the group. Called right after its leader was collected."""
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def end_tree(leader: int, mark: str) -> None:
    """Ends the group of `leader`, which must not have been collected, its descendants and all that
    bear `mark`: asked first, killed after the grace, again until nothing is left.

    Raises `OSError` when the system has nothing left to look with. The group is killed then all the
    same, and whatever else was seen.
    """
    _end(partial(_tree, leader, mark), leader)


def end_group(leader: int) -> int:
    """Ends what stays in the group of the collected `leader`. Returns how many that were. Raises as
    `end_tree` does."""
    deadline = time.monotonic() + _BACKGROUND_S
    while _group(leader):
        if time.monotonic() > deadline:
            return _end(partial(_group, leader), None)
        time.sleep(_POLL_S)
    return 0


def end_marked(marks: Collection[str]) -> int:
    """Ends every process that bears one of `marks`: what a server that was killed has left running.
    Returns how many that were. Blocks; what this process itself descends from is left alone."""
    wanted = set(marks) - {os.environ.get(MARK, "")}
    if not wanted:
        return 0
    return _end(
        lambda: _those(lambda number: any(_bears(number, mark) for mark in wanted)), leader=None
    )


def _end(members: "Callable[[], list[psutil.Process]]", leader: int | None) -> int:
    known: list[psutil.Process] = []

    def living() -> "list[psutil.Process]":
        known[:] = [process for process in {*known, *members()} if _lives(process)]
        known.extend([child for child in _descendants(known) if child not in known])
        return list(known)

    try:
        # Held first, and all at once: what forks on would outrun every look at it.
        _to_group(leader, signal.SIGSTOP)
        # Looked at before it is ended: what has left the group and its environment is a descendant
        # only while those between it and the leader live. Twice, for what was being forked just then.
        known[:] = members()
        found = living()
        count = len(found)
        _halt(found)
        for number in (signal.SIGTERM, signal.SIGCONT):
            _to_group(leader, number)
            _send(found, number)
        deadline = time.monotonic() + GRACE_S
        while found and time.monotonic() < deadline:
            time.sleep(_POLL_S)
            found = [process for process in found if _lives(process)]
        for _ in range(_KILL_ROUNDS):
            _to_group(leader, signal.SIGSTOP)
            found = living()
            if not found:
                break
            _halt(found)
            _to_group(leader, signal.SIGKILL)
            _send(found, signal.SIGKILL)
            time.sleep(_POLL_S)
        return count
    finally:
        # Whatever came of it: what is halted and left behind would stay for ever.
        _to_group(leader, signal.SIGKILL)
        _kill_blindly(known)


def _to_group(leader: int | None, number: signal.Signals) -> None:
    """Reaches the whole group at once, also what is being forked in it just now."""
    if leader is not None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, number)


def _halt(processes: "Iterable[psutil.Process]") -> None:
    """Holds all of them before any is ended: a shell would go on with its next command when the one that
    it waits for ends first."""
    _send(processes, signal.SIGSTOP)


def _send(processes: "Iterable[psutil.Process]", number: signal.Signals) -> None:
    import psutil

    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.send_signal(number)


def _kill_blindly(processes: "Iterable[psutil.Process]") -> None:
    """Kills what was seen alive a moment ago, also when there is nothing left to look again with."""
    for process in processes:
        try:
            _send((process,), signal.SIGKILL)
        except OSError:
            # it lived a moment ago, and no number comes round so soon
            with contextlib.suppress(OSError):
                os.kill(process.pid, signal.SIGKILL)


def _lives(process: "psutil.Process") -> bool:
    import psutil

    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _group(leader: int) -> "list[psutil.Process]":
    return _those(lambda number: os.getpgid(number) == leader)


def _tree(leader: int, mark: str) -> "list[psutil.Process]":
    import psutil

    found = _those(
        lambda number: (
            os.getpgid(number) == leader or os.getsid(number) == leader or _bears(number, mark)
        )
    )
    with contextlib.suppress(psutil.Error):
        found += [p for p in _descendants([psutil.Process(leader), *found]) if p not in found]
    return found


def _descendants(ancestors: "Iterable[psutil.Process]") -> "list[psutil.Process]":
    import psutil

    below: dict[int, list[int]] = {}
    for number, parent in _parents():
        below.setdefault(parent, []).append(number)
    found: list[psutil.Process] = []
    ahead = list(ancestors)
    while ahead:
        above = ahead.pop()
        numbers = below.pop(above.pid, [])
        if not numbers or not above.is_running():
            continue  # its number may be another's by now, and so the children
        for number in numbers:
            with contextlib.suppress(psutil.Error):
                process = psutil.Process(number)
                # One that is older is no child of it: it has got the number of one that was. The time
                # of the parent is read anew, since both move when the system's clock is set.
                since = psutil.Process(above.pid).create_time()
                if process.create_time() >= since and _lives(process):
                    found.append(process)
                    ahead.append(process)
    return found


def _parents() -> Iterator[tuple[int, int]]:
    """Each process's number and its parent's, all at one look: `psutil` looks at all of them again for
    each whose children it is asked for, which takes longer than the ending of a large tree may."""
    import psutil

    if sys.platform != "linux":
        for process in psutil.process_iter(["ppid"]):
            if process.info["ppid"] is not None:
                yield process.pid, process.info["ppid"]
        return
    for number in psutil.pids():
        try:
            line = Path(f"/proc/{number}/stat").read_bytes()
        except OSError as fault:  # it is gone
            if fault.errno in _BLIND:
                raise
            continue
        # the name stands in parentheses, and may hold any character
        yield number, int(line[line.rindex(b")") + 2 :].split()[1])


def _those(belongs: Callable[[int], bool]) -> "list[psutil.Process]":
    import psutil

    found: list[psutil.Process] = []
    for number in psutil.pids():
        try:
            if number != os.getpid() and belongs(number):
                process = psutil.Process(number)
                if _lives(process):
                    found.append(process)
        except psutil.Error:
            continue
        except OSError as fault:  # it is gone, or another user's
            if fault.errno in _BLIND:
                raise
    return found


def _bears(number: int, mark: str) -> bool:
    import psutil

    if sys.platform == "linux":
        return f"{MARK}={mark}".encode() in Path(f"/proc/{number}/environ").read_bytes().split(
            b"\0"
        )
    return psutil.Process(number).environ().get(MARK) == mark
