"""The bounded queue between the event loop and the writer thread (PROTOCOL 1, 3).

Replies and requests always go in and always come out, in order. What streams (deltas) is put as a
`Mergeable`: while the client is slow, later ones join those that still wait, then they are dropped.
Whoever produces batches of events looks at `pressure` and waits on `drained`. So only replies can fill
the queue beyond its bound; when they have filled it twice, no more requests are let in (`intake`).
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Hashable
from typing import Literal, Protocol, Self, TypeAlias

logger = logging.getLogger("callboard.rpc")

MAX_FRAMES = 4096
MAX_BYTES = 16 * 1024 * 1024
STALL_SECONDS = 60.0
_WRITE_TOGETHER = 256 * 1024

Pressure: TypeAlias = Literal["none", "high", "full"]
"""``high`` from half of a bound on, ``full`` from the bound on."""

Outcome: TypeAlias = Literal["queued", "merged", "dropped"]


class Mergeable(Protocol):
    """Something that may wait, join its predecessor of the same `key`, or be dropped."""

    @property
    def key(self) -> Hashable: ...

    @property
    def weight(self) -> int:
        """About how many bytes its frame has."""
        ...

    def merged(self, newer: Self) -> Self | None:
        """Both in one, or ``None`` when they cannot be joined."""
        ...

    def frame(self) -> bytes:
        """The bytes for the wire. Called in the writer thread."""
        ...


class _Slot:
    __slots__ = ("taken", "value", "weight")

    def __init__(self, value: bytes | Mergeable, weight: int) -> None:
        self.value: bytes | Mergeable | None = value
        self.weight = weight
        self.taken = False


def _bytes_of(value: bytes | Mergeable) -> bytes:
    if isinstance(value, bytes):
        return value
    try:
        return value.frame()
    except Exception:  # a delta may be lost, the writer must not be
        logger.exception("a delta could not be encoded")
        return b""


class Outbound:
    """Put on the loop's thread, taken by the writer thread.

    `on_stall` is called on the loop when something waits and nothing could be written for
    `stall_seconds`.
    """

    def __init__(
        self,
        *,
        loop: asyncio.AbstractEventLoop,
        on_stall: Callable[[], None],
        max_frames: int = MAX_FRAMES,
        max_bytes: int = MAX_BYTES,
        stall_seconds: float = STALL_SECONDS,
    ) -> None:
        self._loop = loop
        self._on_stall = on_stall
        self._max_frames = max_frames
        self._max_bytes = max_bytes
        self._stall_seconds = stall_seconds
        self._changed = threading.Condition()
        self._slots: deque[_Slot] = deque()
        self._open: dict[Hashable, _Slot] = {}
        self._frames = 0
        self._bytes = 0
        self._in_hand = (0, 0, 0)
        self._put_count = 0
        self._done_count = 0
        self._progress = 0
        self._progress_seen = 0
        self._closed = False
        self._flushers: list[tuple[int, asyncio.Future[None]]] = []
        self._stall_timer: asyncio.TimerHandle | None = None
        self.drained = asyncio.Event()
        """Set while there is no pressure; cleared from ``high`` on until a quarter is left."""
        self.drained.set()

    # -- the loop's side

    @property
    def pressure(self) -> Pressure:
        """How full the queue is, what the writer has in hand included."""
        if self._frames >= self._max_frames or self._bytes >= self._max_bytes:
            return "full"
        if self._frames * 2 >= self._max_frames or self._bytes * 2 >= self._max_bytes:
            return "high"
        return "none"

    @property
    def flooded(self) -> bool:
        """Whether there is twice as much as the bound: the client asks, and does not read."""
        return not self._closed and (
            self._frames >= 2 * self._max_frames or self._bytes >= 2 * self._max_bytes
        )

    @property
    def frames(self) -> int:
        """Frames that wait."""
        return self._frames

    @property
    def closed(self) -> bool:
        return self._closed

    def put(self, frame: bytes) -> None:
        """Queues a frame that must arrive. Only a closed queue drops it."""
        with self._changed:
            if self._closed:
                return
            self._open.clear()  # what comes later must not overtake this frame by merging
            self._append(_Slot(frame, len(frame)))
        self._after_put()

    def put_mergeable(self, item: Mergeable) -> Outcome:
        """Queues, merges or drops `item`. When the queue is full, all that could be merged goes."""
        with self._changed:
            if self._closed:
                return "dropped"
            slot = self._open.get(item.key)
            if slot is not None and not slot.taken and not isinstance(slot.value, bytes | None):
                joined = slot.value.merged(item)
                if joined is not None:
                    self._bytes += joined.weight - slot.weight
                    slot.value, slot.weight = joined, joined.weight
                    self._grown()
                    return "merged"
            if self.pressure == "full":
                self._drop_mergeable()
                return "dropped"
            slot = _Slot(item, item.weight)
            self._open[item.key] = slot
            self._append(slot)
        self._after_put()
        return "queued"

    async def flush(self) -> None:
        """Returns once all that was put before is written, or the queue is closed."""
        with self._changed:
            if self._closed or self._done_count >= self._put_count:
                return
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._flushers.append((self._put_count, waiter))
        await waiter

    def close(self) -> None:
        """Drops what waits, lets flushers go, ends the writer. Nothing can be put afterwards."""
        with self._changed:
            self._closed = True
            self._slots.clear()
            self._open.clear()
            self._changed.notify_all()
            waiters, self._flushers = self._flushers, []
        for _, waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None
        self.drained.set()

    def _append(self, slot: _Slot) -> None:
        self._slots.append(slot)
        self._frames += 1
        self._bytes += slot.weight
        self._put_count += 1
        self._grown()
        self._changed.notify()

    def _grown(self) -> None:
        if self.pressure != "none":
            self.drained.clear()

    def _drop_mergeable(self) -> None:
        for slot in self._slots:
            if not isinstance(slot.value, bytes | None):
                slot.value = None
                self._frames -= 1
                self._bytes -= slot.weight
                slot.weight = 0
        self._open.clear()

    def _after_put(self) -> None:
        if self._stall_timer is None:
            self._watch_for_stall()

    def _watch_for_stall(self) -> None:
        self._progress_seen = self._progress
        self._stall_timer = self._loop.call_later(self._stall_seconds, self._judge_stall)

    def _judge_stall(self) -> None:
        self._stall_timer = None
        if self._closed or self._frames == 0:
            return
        if self._progress != self._progress_seen:
            self._watch_for_stall()
        else:
            self._on_stall()

    # -- the writer's side

    def take(self) -> bytes | None:
        """Waits for frames and returns some of them as one piece; ``None`` when closed."""
        with self._changed:
            while not self._slots and not self._closed:
                self._changed.wait()
            if self._closed:
                return None
            pieces: list[bytes] = []
            count = frames = size = 0
            while self._slots and size < _WRITE_TOGETHER:
                slot = self._slots.popleft()
                slot.taken = True
                count += 1
                if slot.value is None:
                    continue
                frames += 1
                size += slot.weight
                pieces.append(_bytes_of(slot.value))
            self._in_hand = (count, frames, size)
        return b"".join(pieces)

    def progressed(self) -> None:
        """Some bytes went out: the client is alive."""
        self._progress += 1

    def written(self) -> None:
        """What `take` returned last is on the wire."""
        with self._changed:
            count, frames, size = self._in_hand
            self._in_hand = (0, 0, 0)
            self._done_count += count
            self._frames -= frames
            self._bytes -= size
            self._progress += 1
            ready = [w for upto, w in self._flushers if upto <= self._done_count]
            self._flushers = [(u, w) for u, w in self._flushers if u > self._done_count]
            calm = (
                not self.drained.is_set()
                and self._frames * 4 <= self._max_frames
                and self._bytes * 4 <= self._max_bytes
            )
        if ready or calm:
            try:
                self._loop.call_soon_threadsafe(self._tell, ready)
            except RuntimeError:  # the loop is closed: nobody waits any more
                return

    def _tell(self, ready: list[asyncio.Future[None]]) -> None:
        for waiter in ready:
            if not waiter.done():
                waiter.set_result(None)
        if self.pressure == "none":
            self.drained.set()
