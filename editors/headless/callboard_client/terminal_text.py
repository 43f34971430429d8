"""Makes text from models, tools and files safe to write to a terminal.

A terminal obeys what it is sent: an escape sequence can rename the window, answer for the
person, move the cursor over text that was already shown, or fill the clipboard; bidirectional
controls can make a command read differently from what it does. None of that may come from
somebody else's text, so all of it is taken out here. What remains is printable text, tabs and
line feeds.
"""

import re
from enum import Enum, auto

from attrs import define

_STRING_LIMIT = 4096
"""Characters after which an unfinished control string is given up, and text shown again."""

_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_INVISIBLE = "\u200b\u2060-\u2064\u206a-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff\u00ad"
_CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f"
_UNSAFE = re.compile(f"[{_CONTROLS}{_BIDI}{_INVISIBLE}]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")

_STRING_STARTS = frozenset("]PX^_")
_C1_STRINGS = frozenset("\x90\x98\x9d\x9e\x9f")
_CSI = "\x9b"
_ST = "\x9c"


class _State(Enum):
    TEXT = auto()
    ESCAPE = auto()
    INTERMEDIATE = auto()
    CSI = auto()
    STRING = auto()
    STRING_ESCAPE = auto()
    RETURN = auto()


@define
class TerminalText:
    """A filter for text that arrives in pieces; a sequence may be cut anywhere between them."""

    _state: _State = _State.TEXT
    _length: int = 0

    def feed(self, piece: str) -> str:
        """What of `piece` may be shown now."""
        if self._state is _State.TEXT and "\x1b" not in piece and not _needs_machine(piece):
            return _plain(piece)
        return _plain("".join(self._step(char) for char in piece))

    def finish(self) -> str:
        """What was held back at the end of the text; the filter is new again afterwards."""
        held = "\n" if self._state is _State.RETURN else ""
        self._state, self._length = _State.TEXT, 0
        return held

    def _step(self, char: str) -> str:
        match self._state:
            case _State.TEXT:
                return self._text(char)
            case _State.RETURN:
                self._state = _State.TEXT
                return "\n" if char == "\n" else "\n" + self._text(char)
            case _State.ESCAPE:
                return self._escape(char)
            case _State.INTERMEDIATE:
                self._state = _State.INTERMEDIATE if " " <= char <= "/" else _State.TEXT
                return "" if " " <= char <= "~" else self._text(char)
            case _State.CSI:
                return self._csi(char)
            case _State.STRING:
                return self._string(char)
            case _State.STRING_ESCAPE:
                self._state = _State.TEXT
                return "" if char == "\\" else self._escape(char)

    def _text(self, char: str) -> str:
        if char == "\x1b":
            self._state = _State.ESCAPE
        elif char == _CSI:
            self._state = _State.CSI
        elif char in _C1_STRINGS:
            self._state, self._length = _State.STRING, 0
        elif char == "\r":
            self._state = _State.RETURN
        else:
            return char
        return ""

    def _escape(self, char: str) -> str:
        self._state = _State.TEXT
        if char == "[":
            self._state = _State.CSI
        elif char in _STRING_STARTS:
            self._state, self._length = _State.STRING, 0
        elif " " <= char <= "/":
            self._state = _State.INTERMEDIATE
        elif not "0" <= char <= "~":
            return self._text(char)
        return ""

    def _csi(self, char: str) -> str:
        if " " <= char <= "?":
            return ""
        self._state = _State.TEXT
        return "" if "@" <= char <= "~" else self._text(char)

    def _string(self, char: str) -> str:
        self._length += 1
        if char == "\x1b":
            self._state = _State.STRING_ESCAPE
        elif char in ("\x07", _ST):
            self._state = _State.TEXT
        elif char in "\n\x18\x1a" or self._length > _STRING_LIMIT:
            self._state = _State.TEXT
            return "\n" if char == "\n" else ""
        return ""


def _needs_machine(piece: str) -> bool:
    return any(char in piece for char in "\r\x9b\x90\x98\x9d\x9e\x9f")


def _plain(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    text = _LINE_ENDS.sub("\n", text)
    return _SURROGATES.sub("\ufffd", _UNSAFE.sub("", text))


def clean(text: str) -> str:
    """The whole of `text` without anything that a terminal would obey; line ends become ``\\n``."""
    machine = TerminalText()
    return machine.feed(text) + machine.finish()


def clean_line(text: str, width: int | None = None) -> str:
    """`text` on one line: runs of white space become one space; cut to `width` characters."""
    line = " ".join(clean(text).split())
    if width is not None and len(line) > width:
        return line[: max(width - 1, 0)] + "…"
    return line
