"""The private descriptors that carry frames, and the two threads that read and write them.

At start the process' own fd 0 and fd 1 are moved away (`Wire.take_stdio`), so that a ``print``, a
library or a child cannot reach the wire (PROTOCOL 1, interrupts-and-peers 70). Light: imported
before the answer to ``initialize``.
"""

import contextlib
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from .framing import Frame, FrameReader, Item

READ_BYTES = 64 * 1024
WRITE_BYTES = 64 * 1024
AHEAD_BYTES = 16 * 1024 * 1024
_LOOK_SECONDS = 0.2
_FRAME_BYTES = 256
"""What a frame takes beside its body."""


class WireClosed(Exception):
    """The other side does not take bytes any more: the same as the end of its input."""


class Wire:
    """Two descriptors, blocking, not inherited by children."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self.read_fd = read_fd
        self.write_fd = write_fd

    @classmethod
    def take_stdio(cls) -> "Wire":
        """Moves stdin and stdout to private descriptors; fd 0 reads nothing, fd 1 is stderr then.

        Call it once, before anything can print. Raises `WireClosed` when there is no stdin or stdout.
        """
        if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison]
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
        try:
            wire = cls(os.dup(0), os.dup(1))
        except OSError as fault:
            raise WireClosed(
                "stdin and stdout must be open: the client speaks over them"
            ) from fault
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        try:
            os.dup2(2, 1)
        except OSError:  # there is no stderr: what is printed goes nowhere
            os.dup2(nothing, 1)
            os.dup2(nothing, 2)
        os.close(nothing)
        if sys.platform == "win32":
            import msvcrt

            for fd in (wire.read_fd, wire.write_fd):
                msvcrt.setmode(fd, os.O_BINARY)
        return wire

    def read(self) -> bytes:
        """The next bytes, up to 64 KiB; empty once the input has ended, for whatever reason."""
        while True:
            try:
                return os.read(self.read_fd, READ_BYTES)
            except BlockingIOError:
                _wait_for(self.read_fd, "read")
            except OSError:
                return b""

    def hung_up(self) -> bool:
        """Whether nobody writes any more, though there may be something left to read. Only POSIX tells
        before all of it is read."""
        if sys.platform == "win32":
            return False
        import select

        poll = select.poll()
        poll.register(self.read_fd, 0)
        return any(events & select.POLLHUP for _, events in poll.poll(0))

    def write(self, data: bytes, progress: Callable[[], None] | None = None) -> None:
        """Writes all of `data`; `progress` is called after each piece. Raises `WireClosed`."""
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self.write_fd, view[:WRITE_BYTES]) :]
            except BlockingIOError:
                _wait_for(self.write_fd, "write")
                continue
            except OSError as fault:
                raise WireClosed(str(fault)) from fault
            if progress is not None:
                progress()

    def close(self) -> None:
        """Closes both descriptors. Only when no thread uses them any more."""
        for fd in (self.read_fd, self.write_fd):
            with contextlib.suppress(OSError):
                os.close(fd)


def _wait_for(fd: int, what: str) -> None:
    """Waits on a descriptor that whoever gave it to us had made non-blocking."""
    import select

    if what == "read":
        select.select([fd], [], [])
    else:
        select.select([], [fd], [])


class ReaderThread:
    """Reads and splits in a daemon thread, and posts what each read completed in one call.

    `post(items, ended)` is called in the thread. The consumer calls `taken` once per post, in order. A
    reader that is `ahead_bytes` ahead of it waits, so that a flood cannot fill the memory; but the end
    of the input is found behind what waits.
    """

    def __init__(
        self,
        wire: Wire,
        frames: FrameReader,
        post: Callable[[list[Item], bool], None],
        *,
        ahead_bytes: int = AHEAD_BYTES,
    ) -> None:
        self._wire = wire
        self._frames = frames
        self._post = post
        self._most = ahead_bytes
        self._room = threading.Condition()
        self._posted: deque[int] = deque()
        self._ahead = 0

    def start(self) -> None:
        threading.Thread(target=self._run, name="callboard-wire-reader", daemon=True).start()

    def taken(self) -> None:
        """The consumer has dealt with one post."""
        with self._room:
            self._ahead -= self._posted.popleft()
            self._room.notify()

    def _run(self) -> None:
        while True:
            data = self._wire.read()
            items = self._frames.feed(data) if data else self._frames.finish()
            if items or not data:
                self._count(sum(_size(item) for item in items))
                try:
                    self._post(items, not data)
                except RuntimeError:  # the loop is closed: nobody listens any more
                    return
            if not data:
                return

    def _count(self, size: int) -> None:
        with self._room:
            while self._ahead >= self._most and not self._wire.hung_up():
                self._room.wait(_LOOK_SECONDS)
            self._posted.append(size)
            self._ahead += size


def _size(item: Item) -> int:
    return _FRAME_BYTES + (len(item.body) if isinstance(item, Frame) else 0)


class Source(Protocol):
    """Where the writer thread takes its bytes from; see `outbound.Outbound`."""

    def take(self) -> bytes | None: ...
    def progressed(self) -> None: ...
    def written(self) -> None: ...


class WriterThread:
    """The only writer of the wire: a daemon thread with one ``os.write`` loop.

    `broken` is called in the thread when the other side has closed its end (EPIPE).
    """

    def __init__(self, wire: Wire, source: Source, broken: Callable[[], None]) -> None:
        self._wire = wire
        self._source = source
        self._broken = broken

    def start(self) -> None:
        threading.Thread(target=self._run, name="callboard-wire-writer", daemon=True).start()

    def _run(self) -> None:
        while (data := self._source.take()) is not None:
            try:
                self._wire.write(data, self._source.progressed)
            except WireClosed:
                with contextlib.suppress(RuntimeError):
                    self._broken()
                return
            self._source.written()
