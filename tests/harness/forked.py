"""Server processes that are forked off one that has imported the server already: a start costs a tenth.

They are processes like any other, with their own pipes and a SIGKILL of their own. The one that they
come from is armed for nothing; each is told its own fault, or that there is none.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.context import ForkServerProcess
from multiprocessing.reduction import DupFd
from typing import Any

from callboard.log import faultpoints

_NEVER = "no point at all"
_IMPORTED = [
    "anyio._backends._asyncio",
    "callboard.acp.agent.serve",
    "callboard.acp.agent.service",
    "callboard.cli",
    "callboard.models.scenario_file",
    "callboard.models.scripted",
    "callboard.rpc.serve",
    "callboard.rpc.service",
    "psutil",
    "uvloop",
    "yaml",
]
_FORKING = multiprocessing.get_context("forkserver")
_STARTING = threading.Lock()
"""Tests start servers in threads, too; the environment is that of all of them."""


def _serve(pipes: tuple[Any, Any, Any], environ: dict[str, str], arguments: list[str]) -> None:
    """The child: becomes a server as if it had been started with this environment."""
    for number, pipe in enumerate(pipes):
        descriptor = pipe.detach()
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(environ)
    _arm(os.environ.pop(faultpoints.VARIABLE, None))
    from callboard.cli import main

    sys.argv = ["callboard", "serve", *arguments]
    code = 1
    try:
        code = main() or 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        with suppress(OSError):
            sys.stderr.flush()
        os._exit(code)


def _arm(wanted: str | None) -> None:
    """As the variable would have done before the import."""
    if wanted is None:
        from callboard.log import writer

        faultpoints.ARMED = writer.ARMED = False
    else:
        point: Any = faultpoints.point
        point.want(wanted)


def _start_the_first() -> None:
    """Starts the process that all come from, with the server imported and its points armed."""
    _FORKING.set_forkserver_preload(_IMPORTED)
    from multiprocessing.forkserver import ensure_running

    with _STARTING:
        before = os.environ.get(faultpoints.VARIABLE)
        os.environ[faultpoints.VARIABLE] = _NEVER
        try:
            ensure_running()
        finally:
            os.environ.pop(faultpoints.VARIABLE)
            if before is not None:
                os.environ[faultpoints.VARIABLE] = before


class ForkedProcess:
    """A forked server with the face of `subprocess.Popen`."""

    def __init__(self, environ: Mapping[str, str], arguments: list[str], stderr: int) -> None:
        _start_the_first()
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        self._process: ForkServerProcess = _FORKING.Process(target=_start, args=(
            _Pipes(theirs_in, theirs_out, stderr), dict(environ), arguments))  # fmt: skip
        self._process.start()
        os.close(theirs_in)
        os.close(theirs_out)
        self.stdin = os.fdopen(ours_in, "wb")
        self.stdout = os.fdopen(ours_out, "rb")

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("callboard serve", timeout or 0)
        return self._process.exitcode

    def kill(self) -> None:
        if self._process.exitcode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


class _Pipes:
    """Three descriptors, as they travel to the child."""

    def __init__(self, *descriptors: int) -> None:
        self._descriptors = descriptors

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, ([DupFd(each) for each in self._descriptors],)


def _start(pipes: Any, environ: dict[str, str], arguments: list[str]) -> None:
    _serve(pipes, environ, arguments)
