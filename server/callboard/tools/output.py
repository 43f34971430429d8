"""What a command printed, kept in bounded memory: head and tail of it, however much there was."""

import codecs
from collections import deque
from collections.abc import Callable
from time import monotonic

from .display import Clipped, decoded_head, decoded_tail, joined, well_formed

KEPT_BYTES = 16 * 1024 * 1024
"""How much of an output is kept as a whole; of more, half of this from each end."""

_PIECE_BYTES = 256 * 1024


class OutputBuffer:
    """Head and tail of a stream of bytes, each at most `kept_bytes` / 2."""

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._half = kept_bytes // 2
        self._piece = max(min(_PIECE_BYTES, self._half // 8), 1)
        self._head: deque[bytearray] = deque()
        self._head_size = 0
        self._tail: deque[bytearray] = deque()
        self._tail_size = 0
        self.total = 0
        """Bytes that came, also those that were not kept."""

    def feed(self, data: bytes) -> None:
        self.total += len(data)
        room = self._half - self._head_size
        if room > 0:
            _append(self._head, data[:room], self._piece)
            self._head_size += min(room, len(data))
            data = data[room:]
        if not data:
            return
        _append(self._tail, data, self._piece)
        self._tail_size += len(data)
        while self._tail_size - len(self._tail[0]) >= self._half:
            self._tail_size -= len(self._tail.popleft())

    @property
    def complete(self) -> bool:
        """Whether nothing that came was dropped."""
        return self._head_size + self._tail_size == self.total

    def text(self, limit_bytes: int) -> Clipped:
        """The output as text of about `limit_bytes`: the whole, or its head and tail and a line
        between that says how much was left out (`specs/interrupts-and-peers.md` #71)."""
        if self.total <= limit_bytes and self.complete:
            whole = b"".join((*self._head, *self._tail))
            return Clipped(text=well_formed(whole.decode("utf-8", "replace")), truncated=False)
        head = decoded_head(_first(self._head, limit_bytes // 2))
        tail = decoded_tail(_last((*self._head, *self._tail), limit_bytes - limit_bytes // 2))
        return Clipped(text=joined(head, tail, self.total), truncated=True)

    def whole(self) -> bytes:
        """Everything that was kept, as valid UTF-8 without NULs. Empties the buffer; slow for much."""
        if self.complete:
            return b"".join(_valid([*self._drained(self._head), *self._drained(self._tail)]))
        oldest = self._tail.popleft()
        del oldest[: len(oldest) - max(self._half - sum(map(len, self._tail)), 0)]
        self._tail.appendleft(oldest)
        left_out = self.total - self._head_size - min(self._tail_size, self._half)
        gap = f"\n[… {left_out} bytes left out …]\n".encode()
        return b"".join(
            (*_valid(self._drained(self._head)), gap, *_valid(self._drained(self._tail)))
        )

    @staticmethod
    def _drained(pieces: deque[bytearray]) -> list[bytearray]:
        drained = list(pieces)
        pieces.clear()
        return drained


def _append(pieces: deque[bytearray], data: bytes, size: int) -> None:
    """Small pieces are put together: a million pieces of a byte each would cost fifty times that."""
    if pieces and len(pieces[-1]) + len(data) <= size:
        pieces[-1] += data
    else:
        pieces.append(bytearray(data))


def _first(pieces: deque[bytearray], size: int) -> bytes:
    out = bytearray()
    for piece in pieces:
        out += piece[: size - len(out)]
        if len(out) >= size:
            break
    return bytes(out)


def _last(pieces: tuple[bytearray, ...], size: int) -> bytes:
    taken: list[bytearray] = []
    missing = size
    for piece in reversed(pieces):
        if missing <= 0:
            break
        taken.append(piece[-missing:])
        missing -= len(taken[-1])
    return b"".join(reversed(taken))


def _valid(pieces: list[bytearray]) -> list[bytes | bytearray]:
    """The pieces of one stream of bytes as pieces of valid UTF-8; most are passed on as they are."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    out: list[bytes | bytearray] = []
    for index, piece in enumerate(pieces):
        last = index == len(pieces) - 1
        text = decoder.decode(piece, last)
        # As many characters as bytes: plain ASCII, and nothing was carried over from piece to piece.
        same = len(text) == len(piece) and text.isascii() and "\x00" not in text
        out.append(piece if same else well_formed(text).encode())
    return out


class Streamer:
    """Passes output on as text, a few pieces a second and never more than a watcher can take.

    Bytes are coalesced for `interval_s`; of what one interval brings beyond `piece_bytes`, the rest
    is passed over with a note. A code point is never split.
    """

    def __init__(
        self,
        emit: Callable[[str], None],
        *,
        clock: Callable[[], float] = monotonic,
        interval_s: float = 0.05,
        piece_bytes: int = 64 * 1024,
    ) -> None:
        self._emit = emit
        self._clock = clock
        self._interval_s = interval_s
        self._limit = piece_bytes
        self._pending = bytearray()
        self._passed_over = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._next_at = 0.0

    def feed(self, data: bytes) -> float | None:
        """Takes `data`. Returns in how many seconds `flush` is due, or None when nothing waits."""
        room = self._limit - len(self._pending)
        self._pending += data[:room]
        self._passed_over += max(len(data) - room, 0)
        wait = self._next_at - self._clock()
        if wait > 0:
            return wait
        self.flush()
        return None

    def flush(self, *, final: bool = False) -> None:
        """Passes on what waits."""
        text = self._decoder.decode(bytes(self._pending), final or self._passed_over > 0)
        self._pending.clear()
        if self._passed_over:
            text += f"\n[… {self._passed_over} bytes passed over …]\n"
            self._passed_over = 0
            self._decoder.reset()
        self._next_at = self._clock() + self._interval_s
        if text:
            self._emit(well_formed(text))
