"""A server as a child process: its pipes, what it said on stderr, and its end."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

from .errors import StartError

_TAIL_BYTES = 16 * 1024
_KILL_WAIT_S = 2.0


class ServerProcess:
    """A running child. Its stderr goes to a file, or its last 16 KiB are kept for error texts.

    The child is in a session of its own, so that Ctrl-C in the terminal reaches the client alone,
    which then decides.
    """

    def __init__(self, process: Process) -> None:
        self._process = process
        self._tail = b""

    @classmethod
    async def spawn(
        cls,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None,
        cwd: str | Path | None,
        stderr: IO[bytes] | None,
    ) -> "ServerProcess":
        """Raises `StartError` when there is no such program or folder."""
        try:
            process = await anyio.open_process(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if stderr is None else stderr,
                env=None if env is None else dict(env),
                cwd=cwd,
                start_new_session=os.name == "posix",
            )
        except OSError as fault:
            reason = fault.strerror or type(fault).__name__
            named = fault.filename if isinstance(fault.filename, str) else command[0]
            raise StartError(f"the server could not be started: {named}: {reason}") from None
        return cls(process)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    @property
    def stdin(self) -> ByteSendStream:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def stdout(self) -> ByteReceiveStream:
        assert self._process.stdout is not None
        return self._process.stdout

    @property
    def stderr_tail(self) -> str:
        """The last lines that it wrote to stderr, when they were not sent to a file."""
        return self._tail.decode(errors="replace").strip()

    async def drain_stderr(self) -> None:
        """Keeps the end of stderr, and so keeps the child from blocking on a full pipe."""
        stderr = self._process.stderr
        if stderr is None:
            return
        with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            while True:
                self._tail = (self._tail + await stderr.receive())[-_TAIL_BYTES:]

    async def wait(self) -> None:
        """Returns when it has ended."""
        await self._process.wait()

    def terminate(self) -> None:
        """Asks it by a signal to end now."""
        self._signal(signal.SIGTERM)

    async def stop(self, grace_s: float) -> None:
        """Ends the child: end of input, then after `grace_s` seconds a signal, then a kill."""
        with anyio.CancelScope(shield=True):
            with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                with anyio.move_on_after(grace_s):
                    await self.stdin.aclose()
            if not await self._ends_within(grace_s):
                self._signal(signal.SIGTERM)
                if not await self._ends_within(_KILL_WAIT_S):
                    self._kill()
                    await self._process.wait()
            await self._process.aclose()

    async def _ends_within(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            await self._process.wait()
        return self.returncode is not None

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            self._process.send_signal(number)

    def _kill(self) -> None:
        if os.name != "posix":
            self._process.kill()
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def describe_end(self) -> str:
        """How it ended, in words, with what it said last."""
        match self.returncode:
            case None:
                how = "closed its output"
            case code if code < 0:
                how = f"was ended by signal {-code}"
            case code:
                how = f"ended with status {code}"
        said = [line.strip() for line in self.stderr_tail.splitlines() if line.strip()][-5:]
        if any(line.startswith("Traceback ") for line in self.stderr_tail.splitlines()):
            said = said[-1:]  # what was raised; where it was raised helps nobody here
        return how + (": " + " | ".join(said) if said else "")
