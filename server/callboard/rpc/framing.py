"""Bytes to frames and back: ``Content-Length`` headers (LSP) and one JSON text per line (ndjson).

Pure and light: this module is imported before the answer to ``initialize``. A reader never buffers
a frame that is over the limit, and never waits for ever on a stream that has lost its framing.
"""

import re
from typing import Final, Literal, NamedTuple, TypeAlias

Framing: TypeAlias = Literal["lsp", "ndjson"]

DEFAULT_FRAME_LIMIT: Final = 32 * 1024 * 1024
"""Bytes of a frame's body that are accepted unless configured otherwise (PROTOCOL 1)."""

HEADER_LIMIT: Final = 8 * 1024
"""Bytes of one block of headers; more is no header."""

HEAD_BYTES: Final = 1024
"""How much of a frame over the limit is kept, to find its id."""

BELIEVABLE_LENGTH: Final = 1 << 32
"""A ``Content-Length`` above this (4 GiB) is taken for a lost framing, not for a frame to skip."""

_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"
_USUAL_HEADER = re.compile(rb"Content-Length: (\d{1,19})\r\n\r\n")
_HEADER_NAME = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_LENGTH = re.compile(rb"\d{1,19}")
_INNER_HEADER = re.compile(rb"content-length:[ \t]{0,8}\d{1,19}[ \t]{0,8}\r?\n", re.IGNORECASE)
_INNER_HEADER_MAX = 64
_TOKEN = re.compile(rb'[ \t\r\n]*(?:("(?:[^"\\]|\\.)*")|([{}\[\],:])|([^ \t\r\n{}\[\],:"]+))', re.S)


class Frame(NamedTuple):
    """One whole message, not yet parsed."""

    body: bytes


class Oversize(NamedTuple):
    """A frame over the limit, which is skipped. `head` is its first KiB; `length` (bytes) is
    unknown in ndjson."""

    length: int | None
    head: bytes


class Desync(NamedTuple):
    """The stream lost its framing: nothing after this can be read, the connection has to end."""

    reason: str


Item: TypeAlias = Frame | Oversize | Desync


class FrameReader:
    """Feed it bytes as they come, split anywhere; it gives the same items for any splitting.

    Args:
        limit: bytes of a body that are accepted; a larger frame is skipped exactly.
        framing: the framing, or ``None`` to let the first non-blank byte decide: a letter means
            headers, anything else one JSON text per line.
    """

    def __init__(self, *, limit: int = DEFAULT_FRAME_LIMIT, framing: Framing | None = None) -> None:
        self.framing: Framing | None = framing
        self.limit = limit
        self._at_start = True
        self._lost = False
        self._buffer = bytearray()
        self._need: int | None = None  # LSP: bytes of the body that is being read
        self._scanned = 0  # up to here the buffer holds no line end, or no inner header
        self._skipping = False
        self._skip_left = 0  # LSP: bytes still to be skipped
        self._announced: int | None = None
        self._head: bytearray | None = None  # of the frame being skipped, until it is reported
        self._tail = b""  # LSP: the last bytes that were skipped, to find a header across reads

    def feed(self, data: bytes) -> list[Item]:
        """The items that `data` completes, in order."""
        out: list[Item] = []
        if self._lost:
            return out
        self._buffer += data
        if self._at_start and not self._start():
            return out
        if self.framing == "lsp":
            self._feed_headers(out)
        else:
            self._feed_lines(out)
        return out

    def finish(self) -> list[Item]:
        """What is left when the input has ended: a last line without its line end is a frame too."""
        out: list[Item] = []
        if self._lost or self.framing != "ndjson":
            return out
        if self._skipping:
            self._report_skipped(out)
        else:
            self._line(bytes(self._buffer), out)
        self._buffer.clear()
        return out

    def _start(self) -> bool:
        """Whether the first byte of the first frame has come; drops what stands before it."""
        buffer = self._buffer
        while True:
            blanks = len(buffer) - len(buffer.lstrip(_BLANK))
            del buffer[:blanks]
            if not buffer.startswith(_BOM):
                break
            del buffer[: len(_BOM)]
        if not buffer or _BOM.startswith(buffer):
            return False
        self._at_start = False
        if self.framing is None:
            self.framing = "lsp" if buffer[:1].isalpha() else "ndjson"
        return True

    # -- one JSON text per line

    def _feed_lines(self, out: list[Item]) -> None:
        buffer = self._buffer
        position = 0
        while True:
            end = buffer.find(b"\n", max(position, self._scanned))
            if self._skipping:
                stop = len(buffer) if end < 0 else end
                self._keep_head(buffer[position:stop], out)
                if end < 0:
                    position = stop
                    break
                self._report_skipped(out)
                self._skipping = False
            elif end < 0:
                if len(buffer) - position > self.limit:
                    self._skip()
                    continue
                break
            else:
                self._line(bytes(buffer[position:end]), out)
            position = end + 1
        del buffer[:position]
        self._scanned = len(buffer)

    def _line(self, line: bytes, out: list[Item]) -> None:
        if len(line) > self.limit:
            out.append(Oversize(None, line[:HEAD_BYTES]))
        elif body := line.strip(_BLANK):
            out.append(Frame(body))

    # -- headers

    def _feed_headers(self, out: list[Item]) -> None:
        buffer = self._buffer
        position = 0
        while not self._lost:
            if self._skipping:
                position = self._skip_body(position, out)
                if self._skipping:
                    break
                continue
            if self._need is None:
                while position < len(buffer) and buffer[position] in _BLANK:
                    position += 1
                header = self._read_header(position, out)
                if header is None:
                    break
                self._need, position = header
                self._scanned = position
                if self._need > self.limit:
                    self._skip_left, self._need = self._need, None
                    self._skip()
                    continue
            end = position + self._need
            have = min(end, len(buffer))
            if _inner_header(buffer, max(position, self._scanned - _INNER_HEADER_MAX), have) >= 0:
                self._lose("a body holds the next header: its Content-Length is too large", out)
                break
            self._scanned = have
            if have < end:
                break
            with memoryview(buffer) as view:
                out.append(Frame(bytes(view[position:end])))
            position, self._need = end, None
        del buffer[:position]
        self._scanned = max(0, self._scanned - position)

    def _read_header(self, position: int, out: list[Item]) -> tuple[int, int] | None:
        """The length that the headers at `position` give, and where the body starts."""
        buffer = self._buffer
        usual = _USUAL_HEADER.match(buffer, position)
        if usual is not None:
            return self._believe(usual.group(1), usual.end(), out)
        length: bytes | None = None
        start = position
        while True:
            end = buffer.find(b"\n", start)
            if (len(buffer) if end < 0 else end + 1) - position > HEADER_LIMIT:
                return self._lose(f"headers of more than {HEADER_LIMIT} bytes", out)
            if end < 0:
                return None
            line = bytes(buffer[start:end]).rstrip(b"\r")
            start = end + 1
            if not line:
                if length is None:
                    return self._lose("headers without Content-Length", out)
                return self._believe(length, start, out)
            name, colon, value = line.partition(b":")
            name, value = name.strip(), value.strip()
            if not colon or not _HEADER_NAME.fullmatch(name):
                return self._lose("a line that is no header where headers must be", out)
            if name.lower() == b"content-length":
                if not _LENGTH.fullmatch(value) or length not in (None, value):
                    return self._lose("a Content-Length that is no number", out)
                length = value

    def _believe(self, digits: bytes, start: int, out: list[Item]) -> tuple[int, int] | None:
        length = int(digits)
        if length > BELIEVABLE_LENGTH:
            return self._lose("a Content-Length that no frame can have", out)
        return length, start

    def _skip_body(self, position: int, out: list[Item]) -> int:
        take = min(self._skip_left, len(self._buffer) - position)
        piece = bytes(self._buffer[position : position + take])
        window = self._tail + piece
        inner = _inner_header(window, 0, len(window))
        self._keep_head(piece if inner < 0 else piece[: inner - len(self._tail)], out)
        self._skip_left -= take
        if inner >= 0:
            self._report_skipped(out)
            self._lose("a body holds the next header: its Content-Length is too large", out)
        elif self._skip_left == 0:
            self._report_skipped(out)
            self._skipping = False
        self._tail = window[-_INNER_HEADER_MAX:]
        return position + take

    # -- frames over the limit

    def _skip(self) -> None:
        self._skipping = True
        self._head = bytearray()
        self._tail = b""
        self._announced = self._skip_left if self.framing == "lsp" else None

    def _keep_head(self, piece: bytes | bytearray, out: list[Item]) -> None:
        if self._head is not None:
            self._head += piece[: HEAD_BYTES - len(self._head)]
            if len(self._head) == HEAD_BYTES:
                self._report_skipped(out)

    def _report_skipped(self, out: list[Item]) -> None:
        if self._head is not None:
            out.append(Oversize(self._announced, bytes(self._head)))
            self._head = None

    def _lose(self, reason: str, out: list[Item]) -> None:
        self._lost = True
        out.append(Desync(reason))


def _inner_header(data: bytes | bytearray, start: int, end: int) -> int:
    """Where ``Content-Length: n`` and its line end end in ``data[start:end]``, or -1.

    No JSON text can hold that: a line end is not allowed inside of a string, nor the words outside.
    """
    at = data.find(b"ength:", start, end)
    while at >= 0:
        header = _INNER_HEADER.match(data, at - 9, end) if at - 9 >= start else None
        if header is not None:
            return header.end()
        at = data.find(b"ength:", at + 1, end)
    return -1


class Head(NamedTuple):
    """What the start of a message tells: its id, and whether it answers one of our requests."""

    id: int | str | None
    kind: Literal["request", "response", "unknown"]


def read_head(head: bytes) -> Head:
    """The id and kind of a message of which only the start is there, as far as they can be read."""
    found: int | str | None = None
    kind: Literal["request", "response", "unknown"] = "unknown"
    depth = 0
    key: bytes | None = None
    wants_value = False
    for token in _TOKEN.finditer(head):
        string, mark, word = token.groups()
        if mark in (b"{", b"["):
            if depth == 0 and mark == b"[":
                break
            depth += 1
        elif mark in (b"}", b"]"):
            depth -= 1
        elif depth == 1 and mark == b":":
            wants_value = True
        elif depth == 1 and mark == b",":
            key, wants_value = None, False
        elif depth == 1 and not wants_value and string:
            key = string
        elif depth == 1 and wants_value and key == b'"id"' and found is None:
            found = _identifier(string, word, whole=token.end() < len(head))
        if key == b'"method"':
            kind = "request"
        elif key in (b'"result"', b'"error"') and kind == "unknown":
            kind = "response"
    return Head(found, kind)


def _identifier(string: bytes | None, word: bytes | None, *, whole: bool) -> int | str | None:
    if word is not None and whole and re.fullmatch(rb"-?\d{1,18}", word):
        return int(word)
    if string is None:
        return None
    import json

    try:
        value = json.loads(string)
        value.encode()
    except ValueError:
        return None
    return value


def encode_frame(framing: Framing, body: bytes) -> bytes:
    """`body` (a JSON text) as it goes onto the wire.

    A line end in a JSON text can only be blank space between tokens; in ndjson it becomes a space.
    """
    if framing == "lsp":
        return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    if b"\n" in body:
        body = body.replace(b"\n", b" ")
    return body + b"\n"
