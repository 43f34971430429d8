"""A command's process, and everything that it starts: started apart, watched, ended as a whole.

The process leads a session and a group of its own. Whatever leaves that group is found again as a
descendant, or by a mark in its environment.
"""

import asyncio
import contextlib
import logging
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from pathlib import Path

import anyio
from attrs import frozen

from ..log.faultpoints import point
from .ending import MARK, end_group, end_marked, end_tree, group_exists
from .offload import ended

__all__ = ["MARK", "Ended", "ProcessLost", "end_marked", "exit_watched", "run_process"]

_log = logging.getLogger(__name__)

_READ_BYTES = 256 * 1024
_PIPE_BYTES = 1024 * 1024


class ProcessLost(Exception):
    """A process was started, and could not be watched or ended as it should be. It was killed with its
    group, and with whatever else was known to belong to it. The text is the system's reason."""


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
    is ended, within one second. Raises `OSError` and `ValueError` as `subprocess.Popen` does when it
    cannot be started, and `ProcessLost` for what goes wrong afterwards.
    """
    apart = feed_errors is not None
    pipes, process = _started(argv, cwd, {**environment, MARK: mark}, apart=apart, given=given)
    streams = tuple(zip(pipes, (feed, feed_errors or feed), strict=False))
    try:
        try:
            point("tools.command_started")
            return await _watched(process, streams, mark, time_limit_s)
        finally:
            for source in pipes:
                asyncio.get_running_loop().remove_reader(source)
                os.close(source)
    except BaseException as fault:
        await _abandoned(process, mark)
        if isinstance(fault, OSError | RuntimeError):
            raise ProcessLost(getattr(fault, "strerror", None) or str(fault)) from fault
        raise


async def _watched(
    process: "subprocess.Popen[bytes]",
    streams: Sequence[tuple[int, Callable[[bytes], None]]],
    mark: str,
    time_limit_s: float,
) -> Ended:
    loop = asyncio.get_running_loop()
    exited: asyncio.Future[None] = loop.create_future()

    def take(source: int, feed: Callable[[bytes], None]) -> None:
        if not _pass_on(source, feed):
            loop.remove_reader(source)

    def drain() -> None:
        for source, feeds in streams:
            _drain(source, feeds)

    for source, feeds in streams:
        loop.add_reader(source, take, source, feeds)
    with exit_watched(process, loop, exited), anyio.move_on_after(time_limit_s) as limit:
        await asyncio.wait((exited,))
    if limit.cancelled_caught:
        await ended(partial(end_tree, process.pid, mark))
        drain()
        return Ended(exit_code=_code(process.wait()), timed_out=True)
    drain()
    code = process.wait()
    background = 0
    if group_exists(process.pid):
        background = await ended(partial(end_group, process.pid))
        drain()
    return Ended(exit_code=_code(code), signal=-code if code < 0 else None, background=background)


async def _abandoned(process: "subprocess.Popen[bytes]", mark: str) -> None:
    """Ends what is left of a process that nobody waits for any more. A fault of that is only logged:
    the caller has a reason to leave, and a cancellation stays one."""

    def end() -> None:
        if process.returncode is not None:
            return  # it has ended by itself, and its number may be another's by now
        try:
            end_tree(process.pid, mark)
        finally:
            process.wait()

    try:
        await ended(end)
    except Exception:
        _log.exception("something that the call %s had started may not have ended", mark)


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
def exit_watched(
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
