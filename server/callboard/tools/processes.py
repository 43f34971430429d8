"""A command's process, and everything that it starts: started apart, watched, ended as a whole.

The process leads a session and a group of its own. Whatever leaves that group is found again as a
descendant, or by a mark in its environment.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from attrs import frozen

from ..log.faultpoints import point
from .offload import finished

if TYPE_CHECKING:
    import psutil

MARK = "CALLBOARD_CALL"
"""The environment variable that marks what belongs to one call."""

GRACE_S = 0.3
"""How long processes have between being asked to end and being killed."""

_READ_BYTES = 256 * 1024
_PIPE_BYTES = 1024 * 1024
_BACKGROUND_S = 0.1
"""How long what a command left behind has to end, or to go its own way, before it is ended."""

_POLL_S = 0.01
_KILL_ROUNDS = 50


@frozen(kw_only=True)
class Ended:
    """How a process ended. `exit_code` is 128 + n after signal n, as shells have it.

    `background` is how many processes it had left behind in its group, which were ended too.
    """

    exit_code: int
    signal: int | None = None
    timed_out: bool = False
    background: int = 0


async def run_process(
    argv: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    mark: str,
    time_limit_s: float,
    feed: Callable[[bytes], None],
    feed_errors: Callable[[bytes], None] | None = None,
    given: bytes = b"",
) -> Ended:
    """Runs `argv`, passes what it prints (both streams, in order) to `feed`, and says how it ended.

    With `feed_errors` what goes to stderr is passed there, apart. `given` is its input. It ends
    when the process itself ends: what it left in the background is ended then, unless that took a
    session of its own. After `time_limit_s`, or when the caller is cancelled, the whole tree
    is ended, within one second. Raises `OSError` and `ValueError` as `subprocess.Popen` does.
    """
    loop = asyncio.get_running_loop()
    apart = feed_errors is not None
    pipes, process = _started(argv, cwd, {**environment, MARK: mark}, apart=apart, given=given)
    streams = tuple(zip(pipes, (feed, feed_errors or feed), strict=False))
    point("tools.command_started")
    exited: asyncio.Future[None] = loop.create_future()

    def take(source: int, feed: Callable[[bytes], None]) -> None:
        if not _pass_on(source, feed):
            loop.remove_reader(source)

    def drain() -> None:
        for source, feeds in streams:
            _drain(source, feeds)

    whole = False
    try:
        for source, feeds in streams:
            loop.add_reader(source, take, source, feeds)
        with _exit_watched(process, loop, exited), anyio.move_on_after(time_limit_s) as limit:
            await asyncio.wait((exited,))
        if limit.cancelled_caught:
            await finished(partial(_end_tree, process.pid, mark))
            drain()
            whole = True
            return Ended(exit_code=_code(process.wait()), timed_out=True)
        drain()
        code = process.wait()
        background = 0
        if _group_exists(process.pid):
            background = await finished(partial(_end_group, process.pid))
            drain()
        whole = True
        return Ended(
            exit_code=_code(code), signal=-code if code < 0 else None, background=background
        )
    finally:
        for source in pipes:
            loop.remove_reader(source)
            os.close(source)
        if not whole:
            await finished(partial(_end_abandoned, process, mark))


def _started(
    argv: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    *,
    apart: bool,
    given: bytes,
) -> tuple[tuple[int, ...], "subprocess.Popen[bytes]"]:
    """The process, and where what it prints can be read: one pipe, or two when they are kept apart."""
    with contextlib.ExitStack() as ours, contextlib.ExitStack() as failed:
        sources: list[int] = []
        sinks: list[int] = []
        for _ in range(2 if apart else 1):
            source, sink = os.pipe()
            failed.callback(os.close, source)
            ours.callback(os.close, sink)
            _widen(source, sink)
            sources.append(source)
            sinks.append(sink)
        file = None
        if given:  # a file without a name, so that nobody has to write it while it is read
            file = ours.enter_context(tempfile.TemporaryFile())
            file.write(given)
            file.seek(0)
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL if file is None else file,
            stdout=sinks[0],
            stderr=sinks[-1],
            cwd=cwd,
            env=environment,
            start_new_session=True,
            close_fds=True,
        )
        failed.pop_all()
    return tuple(sources), process


def _widen(source: int, sink: int) -> None:
    os.set_blocking(source, False)
    if sys.platform == "linux":
        import fcntl

        # A wider pipe wakes us less often; a user may have only so many of them.
        with contextlib.suppress(OSError):
            fcntl.fcntl(sink, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


@contextlib.contextmanager
def _exit_watched(
    process: "subprocess.Popen[bytes]",
    loop: asyncio.AbstractEventLoop,
    exited: "asyncio.Future[None]",
) -> Generator[None, None, None]:
    """Settles `exited` when the process has ended, without collecting it."""
    try:
        watched = os.pidfd_open(process.pid) if sys.platform == "linux" else None
    except OSError:  # an old kernel, or a sandbox that forbids it
        watched = None
    if watched is None:
        waiter = partial(_wait_in_thread, process.pid, loop, exited)
        threading.Thread(target=waiter, name="exit", daemon=True).start()
        yield
        return

    def seen() -> None:
        loop.remove_reader(watched)
        _settle(exited)

    loop.add_reader(watched, seen)
    try:
        yield
    finally:
        loop.remove_reader(watched)
        os.close(watched)


def _wait_in_thread(
    number: int, loop: asyncio.AbstractEventLoop, exited: "asyncio.Future[None]"
) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitid(os.P_PID, number, os.WEXITED | os.WNOWAIT)
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
        loop.call_soon_threadsafe(_settle, exited)


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def _pass_on(source: int, feed: Callable[[bytes], None]) -> bool:
    """Passes on one piece of what waits in the pipe. Returns whether more may come."""
    try:
        data = os.read(source, _READ_BYTES)
    except BlockingIOError:
        return True
    except OSError:
        return False
    if data:
        feed(data)
    return bool(data)


def _drain(source: int, feed: Callable[[bytes], None]) -> None:
    """Passes on what is in the pipe now. At most a pipe full: a process that is still there may print
    for ever, and what ended before had no more than that to leave."""
    left = _PIPE_BYTES
    while left > 0:
        try:
            data = os.read(source, min(_READ_BYTES, left))
        except OSError:
            return
        if not data:
            return
        left -= len(data)
        feed(data)


def _code(returned: int) -> int:
    return 128 - returned if returned < 0 else returned


# --- ending -----------------------------------------------------------------------------------
# All of this blocks, and runs in a worker thread. A process is held as a `psutil.Process`, which
# knows a reused number; the group is signalled by number only while its leader is not collected,
# since until then nobody else can get that number.


def _group_exists(leader: int) -> bool:
    """Whether any process is left in the group. Called right after its leader was collected."""
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _end_abandoned(process: "subprocess.Popen[bytes]", mark: str) -> None:
    _end_tree(process.pid, mark)
    process.wait()


def _end_tree(leader: int, mark: str) -> None:
    """Ends the group of `leader`, which must not have been collected, its descendants and all that
    bear `mark`: asked first, killed after the grace, again until nothing is left."""
    # Held first, and all at once: what forks on would outrun every look at it.
    _to_group(leader, signal.SIGSTOP)
    # Looked at before it is ended: what has left the group and its environment is a descendant only
    # while those between it and the leader live.
    known = _tree(leader, mark)
    _end(partial(_tree, leader, mark), leader, known)


def _end_group(leader: int) -> int:
    """Ends what stays in the group of the collected `leader`. Returns how many that were."""
    deadline = time.monotonic() + _BACKGROUND_S
    while _group(leader):
        if time.monotonic() > deadline:
            return _end(partial(_group, leader), None)
        time.sleep(_POLL_S)
    return 0


def _end(
    members: "Callable[[], list[psutil.Process]]",
    leader: int | None,
    known: "Sequence[psutil.Process]" = (),
) -> int:
    def living() -> "list[psutil.Process]":
        nonlocal known
        known = [process for process in {*known, *members()} if _lives(process)]
        known += [child for child in _descendants(known) if child not in known]
        return list(known)

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

    found: dict[int, psutil.Process] = {}
    for ancestor in ancestors:
        with contextlib.suppress(psutil.Error):
            for process in ancestor.children(recursive=True):
                if process.pid not in found and _lives(process):
                    found[process.pid] = process
    return list(found.values())


def end_marked(marks: Collection[str]) -> int:
    """Ends every process that bears one of `marks`: what a server that was killed has left running.
    Returns how many that were. Blocks; what this process itself descends from is left alone."""
    wanted = set(marks) - {os.environ.get(MARK, "")}
    if not wanted:
        return 0
    return _end(
        lambda: _those(lambda number: any(_bears(number, mark) for mark in wanted)), leader=None
    )


def _those(belongs: Callable[[int], bool]) -> "list[psutil.Process]":
    import psutil

    found: list[psutil.Process] = []
    for number in psutil.pids():
        with contextlib.suppress(psutil.Error, OSError):
            if number != os.getpid() and belongs(number):
                process = psutil.Process(number)
                if _lives(process):
                    found.append(process)
    return found


def _bears(number: int, mark: str) -> bool:
    import psutil

    if sys.platform == "linux":
        return f"{MARK}={mark}".encode() in Path(f"/proc/{number}/environ").read_bytes().split(
            b"\0"
        )
    return psutil.Process(number).environ().get(MARK) == mark
