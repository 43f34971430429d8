"""Cuts a stream of bytes into lines of any length, whatever the pieces it arrives in."""

from attrs import define, field


@define
class LineSplitter:
    """Feed it what was read, get the whole lines.

    A line may be as long as `limit_bytes`; a longer one is dropped while it arrives, so that it
    never fills the memory, and reported once in `dropped`. Work is linear in the bytes fed.
    """

    limit_bytes: int = 64 * 1024 * 1024
    dropped: int = 0
    _parts: list[bytes] = field(factory=list[bytes])
    _held: int = 0
    _skipping: bool = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` completes, without their ends and without empty ones."""
        *ended, rest = chunk.split(b"\n")
        lines = [line for piece in ended if (line := self._end_line(piece))]
        self._hold(rest)
        return lines

    def _end_line(self, piece: bytes) -> bytes:
        self._hold(piece)
        line = b"".join(self._parts).strip()
        skipped = self._skipping
        self._parts.clear()
        self._held, self._skipping = 0, False
        return b"" if skipped else line

    def _hold(self, piece: bytes) -> None:
        if self._skipping or not piece:
            return
        self._held += len(piece)
        if self._held > self.limit_bytes:
            self._parts.clear()
            self._skipping = True
            self.dropped += 1
            return
        self._parts.append(piece)
