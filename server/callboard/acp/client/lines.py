"""The lines of a stream of bytes, each of a bounded length. Pure."""

from attrs import define, field

LIMIT = 16 * 1024 * 1024
"""The longest line that is read; a longer one is passed over."""


_HEAD = 4 * 1024


@define
class Lines:
    """Give it what comes, in order."""

    limit: int = LIMIT
    heads: list[bytes] = field(factory=list[bytes])
    """How the lines began that were too long, for whoever takes them out."""
    _held: bytearray = field(factory=bytearray)
    _skipping: bool = False

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that end with `data`, without their ends and without blank ones."""
        *whole, rest = data.split(b"\n")
        lines: list[bytes] = []
        for piece in whole:
            line = self._ended(piece)
            if line is not None and line.strip():
                lines.append(line)
        self._hold(rest)
        return lines

    def _ended(self, piece: bytes) -> bytes | None:
        self._hold(piece)
        skipped, self._skipping = self._skipping, False
        line = bytes(self._held)
        self._held.clear()
        return None if skipped else line

    def _hold(self, piece: bytes) -> None:
        if self._skipping:
            return
        if len(self._held) + len(piece) > self.limit:
            self.heads.append((bytes(self._held[:_HEAD]) + piece)[:_HEAD])
            self._held.clear()
            self._skipping = True
        else:
            self._held += piece
