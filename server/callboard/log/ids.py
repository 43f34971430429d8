"""Ids: a prefix, then 26 characters that sort by time. Opaque to everybody else."""

import os
import threading
import time
from collections.abc import Callable

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]


def _encode(value: int, pairs: int) -> str:
    out = [""] * pairs
    for index in range(pairs - 1, -1, -1):
        out[index] = _PAIRS[value & 1023]
        value >>= 10
    return "".join(out)


class IdSource:
    """Makes ids. `clock_ms` gives milliseconds since the epoch, `entropy` bytes; both are for tests.

    Ids of one source rise strictly, also within a millisecond and when the clock steps back.
    """

    def __init__(
        self,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        entropy: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._clock_ms = clock_ms
        self._entropy = entropy
        self._last = 0
        self._head = 0
        self._head_text = _encode(0, 8)
        self._lock = threading.Lock()

    def new(self, prefix: str) -> str:
        """A fresh id such as ``ses_01j…``."""
        with self._lock:
            now = self._clock_ms()
            if now > self._last >> 82:
                # 82 random bits under 48 bits of time: room to count upwards within a millisecond
                self._last = (now << 82) | (int.from_bytes(self._entropy(11)) & ((1 << 81) - 1))
            else:
                self._last += 1 + int.from_bytes(self._entropy(4))
            return f"{prefix}_{self._text(self._last)}"

    def _text(self, value: int) -> str:
        # within a millisecond the ids of one source mostly differ in their last 50 bits
        head = value >> 50
        if head != self._head:
            self._head, self._head_text = head, _encode(head, 8)
        return (
            f"{self._head_text}{_PAIRS[value >> 40 & 1023]}{_PAIRS[value >> 30 & 1023]}"
            f"{_PAIRS[value >> 20 & 1023]}{_PAIRS[value >> 10 & 1023]}{_PAIRS[value & 1023]}"
        )
