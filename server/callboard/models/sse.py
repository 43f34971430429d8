"""Server-sent events, cut out of a byte stream.

Pure and incremental: bytes in, whole events out, wherever the network happened to split them. Line
ends are ASCII, so lines are cut first and decoded whole: no character is ever torn apart.
"""

from attrs import frozen

_BOM = b"\xef\xbb\xbf"
MAX_EVENT_BYTES = 32 * 1024 * 1024
"""The default bound of one event: larger than any answer, smaller than the memory of a laptop."""


@frozen(kw_only=True)
class SseEvent:
    """One event. `event` is None when the server named none; lines of `data` are joined by LF."""

    event: str | None
    data: str


class SseTooLarge(ValueError):
    """An event grew over the parser's bound; the stream cannot be trusted any further."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"an event of the stream is larger than {limit} bytes")
        self.limit = limit


class SseParser:
    """Cuts one stream. `feed` takes what came, `close` what is left when the stream has ended.

    Follows the HTML standard, with one leniency: an event that the end of the stream completes
    (no blank line after it) is given too, since servers do end with a bare ``data: [DONE]``.
    Raises `SseTooLarge` when one event is larger than `max_event_bytes`.
    """

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._limit = max_event_bytes
        self._tail: list[bytes] = []
        self._event: str | None = None
        self._data: list[str] = []
        self._size = 0
        self._first_line = True
        self._skip_lf = False

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that `chunk` completes, in order."""
        if self._skip_lf and chunk:
            # A chunk that ended in CR has ended its line already; the LF of a CRLF may follow.
            self._skip_lf = False
            if chunk.startswith(b"\n"):
                chunk = chunk[1:]
        if not chunk:
            return []
        if b"\n" not in chunk and b"\r" not in chunk:
            self._hold(chunk)
            return []
        if self._tail:
            chunk = b"".join((*self._tail, chunk))
            self._size -= sum(map(len, self._tail))
            self._tail.clear()
        lines = chunk.splitlines(keepends=True)
        if not lines[-1].endswith((b"\n", b"\r")):
            self._hold(lines.pop())
        else:
            self._skip_lf = lines[-1].endswith(b"\r")
        events: list[SseEvent] = []
        for line in lines:
            self._line(line.rstrip(b"\r\n"), events)
        return events

    def close(self) -> list[SseEvent]:
        """What the end of the stream completes. The parser takes nothing afterwards."""
        events: list[SseEvent] = []
        if self._tail:
            self._line(b"".join(self._tail), events)
            self._tail.clear()
        self._line(b"", events)
        return events

    def _hold(self, part: bytes) -> None:
        self._tail.append(part)
        self._grow(len(part))

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > self._limit:
            raise SseTooLarge(self._limit)

    def _line(self, line: bytes, events: list[SseEvent]) -> None:
        if self._first_line:
            self._first_line = False
            line = line.removeprefix(_BOM)
        if not line:
            if self._data:
                events.append(SseEvent(event=self._event, data="\n".join(self._data)))
            self._event = None
            self._data.clear()
            self._size = sum(map(len, self._tail))
            return
        name, _, value = line.partition(b":")
        # `id` and `retry` serve reconnection, which a model's answer has none of; a line that
        # starts with a colon is a comment.
        if name == b"data":
            self._grow(len(value) + 1)
            self._data.append(value.removeprefix(b" ").decode("utf-8", "replace"))
        elif name == b"event":
            self._event = value.removeprefix(b" ").decode("utf-8", "replace") or None
