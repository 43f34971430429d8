"""One agent's program: started apart, its output read line by line at our pace, ended as a whole.

It leads a session and a group of its own and bears a mark, as commands do, so that whatever it starts can be found
and ended with it. What it writes to stderr is kept, the end of it, for whoever is told why it is gone.
"""

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ...tools.ending import MARK, end_group, end_marked, end_tree, group_exists
from ...tools.offload import ended
from ...tools.processes import exit_watched
from .last_words import kept
from .lines import Lines

_log = logging.getLogger(__name__)

_READ_BYTES = 64 * 1024
_KEPT_STDERR = 16 * 1024
_UNREAD_BYTES = 64 * 1024 * 1024
"""How much may wait for an agent that does not read."""
_DRAIN_S = 0.5
"""How long what was written before the end may take to be read after it."""


class AgentProcess:
    """`line` is given each line that it writes, and is awaited: while it waits nothing more is read, and so the
    agent waits, too. `passed_over` is given how a line began that is too long to be read. `gone` is called once, when nothing more comes."""

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        mark: str,
        *,
        line: Callable[[bytes], Awaitable[None]],
        passed_over: Callable[[bytes], None],
        gone: Callable[[], None],
    ) -> None:
        self.mark = mark
        self.pid = process.pid
        self._process = process
        self._line = line
        self._passed_over = passed_over
        self._gone = gone
        self._stderr = bytearray()
        self._stdin: asyncio.WriteTransport | None = None
        self._exit_code: int | None = None
        self._ending: asyncio.Task[None] | None = None
        self.over = asyncio.Event()
        """Nothing of it is left."""
        self._tasks: list[asyncio.Task[Any]] = []
        self._sources: list[asyncio.ReadTransport] = []

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        mark: str,
        line: Callable[[bytes], Awaitable[None]],
        passed_over: Callable[[bytes], None],
        gone: Callable[[], None],
    ) -> "AgentProcess":
        """Raises `OSError` and `ValueError` as `subprocess.Popen` does."""
        process = _started(command, cwd, {**environment, MARK: mark})
        self = cls(process, mark, line=line, passed_over=passed_over, gone=gone)
        try:
            await self._open()
        except BaseException:
            self._kill()
            raise
        return self

    async def _open(self) -> None:
        loop = asyncio.get_running_loop()
        process = self._process
        stdin, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, process.stdin)
        self._stdin = stdin
        out = await self._reader(process.stdout)
        err = await self._reader(process.stderr)
        reading = loop.create_task(self._read(out), name=f"output of agent {self.mark}")
        draining = loop.create_task(self._drain(err), name=f"stderr of agent {self.mark}")
        watching = loop.create_task(self._watch(reading), name=f"end of agent {self.mark}")
        self._tasks = [reading, draining, watching]

    async def _reader(self, pipe: Any) -> asyncio.StreamReader:
        reader = asyncio.StreamReader(limit=_READ_BYTES)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), pipe
        )
        self._sources.append(transport)
        return reader

    # --- its output ---

    async def _read(self, reader: asyncio.StreamReader) -> None:
        lines = Lines()
        while data := await reader.read(_READ_BYTES):
            for each in lines.feed(data):
                await self._line(each)
            while lines.heads:
                _log.warning(
                    "agent %s wrote a line that is too long; it was passed over", self.mark
                )
                self._passed_over(lines.heads.pop(0))

    async def _drain(self, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(_READ_BYTES):
            self._stderr += data
            del self._stderr[:-_KEPT_STDERR]

    def last_words(self, lines: int = 8) -> str:
        """The end of what it wrote to stderr. It may hold secrets."""
        text = self._stderr.decode("utf-8", "replace")
        return "\n".join(line[:400] for line in kept(text.splitlines(), lines))

    # --- its input ---

    def send(self, body: bytes) -> None:
        """Writes one message. An agent that reads nothing for long is ended: no more can wait for it."""
        if self._stdin is None or self._stdin.is_closing():
            return
        self._stdin.write(body + b"\n")
        if self._stdin.get_write_buffer_size() > _UNREAD_BYTES:
            _log.warning("agent %s does not read what it is sent, and is ended", self.mark)
            self._kill()

    # --- its end ---

    @property
    def lives(self) -> bool:
        return self._exit_code is None and self._ending is None

    @property
    def how_ended(self) -> str:
        """How it ended, as the end of a sentence about it."""
        code = self._exit_code
        if code is None:
            return "closed its output"
        if code < 0:
            with contextlib.suppress(ValueError):
                return f"was ended by {signal.Signals(-code).name}"
        return f"ended with exit code {code}"

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    async def _watch(self, reading: "asyncio.Task[None]") -> None:
        """Sees the end of the process, or of its output, whichever is first; both end the conversation."""
        loop = asyncio.get_running_loop()
        exited: asyncio.Future[None] = loop.create_future()
        with exit_watched(self._process, loop, exited):
            await asyncio.wait({exited, reading}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({exited, reading}, timeout=_DRAIN_S)
        if not exited.done():
            await self._end_tree()
        elif self._exit_code is None:
            self._exit_code = self._process.wait()
            await self._end_rest()
        self._close()

    async def _end_rest(self) -> None:
        """What it had started and left behind, also where that has gone to a session of its own."""
        try:
            if group_exists(self.pid):
                await ended(partial(end_group, self.pid))
            await ended(partial(end_marked, (self.mark,)))
        except OSError:
            _log.exception("something that agent %s had started may not have ended", self.mark)

    async def _end_tree(self) -> None:
        def end() -> None:
            if self._process.returncode is None:
                try:
                    end_tree(self.pid, self.mark)
                finally:
                    self._process.wait()

        try:
            await ended(end)
        except OSError:
            _log.exception("something that agent %s had started may not have ended", self.mark)
        self._exit_code = self._process.returncode

    def _close(self) -> None:
        if self.over.is_set():
            return
        for task in self._tasks[:2]:
            task.cancel()
        for source in self._sources:
            source.close()
        if self._stdin is not None and not self._stdin.is_closing():
            self._stdin.abort()
        self.over.set()
        self._gone()

    async def end(self) -> None:
        """Ends it and all that it has started. Returns when nothing is left; whoever is cancelled meanwhile
        does not stop it."""
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        if not self.over.is_set():
            self._tasks[2].cancel()
            await asyncio.gather(self._tasks[2], return_exceptions=True)
            if not self.over.is_set():
                if self._exit_code is None:
                    await self._end_tree()
                else:  # it had left by itself, and the end of the rest was cut off just now
                    await self._end_rest()
                self._close()


def _started(
    command: Sequence[str], cwd: Path, environment: Mapping[str, str]
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env=environment,
        start_new_session=True,
        close_fds=True,
        bufsize=0,
    )
