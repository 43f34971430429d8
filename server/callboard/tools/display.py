"""Text that came from outside, made fit to be stored, sent, shown, or shortened."""

import re

from attrs import frozen

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

# C0 but tab and newline, DEL, C1, line separators, and every character that reorders or hides text:
# bidi marks, embeddings, overrides and isolates, zero-width characters, the byte order mark, tags.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_SPACE = re.compile(r"\s+")


def well_formed(text: str) -> str:
    """`text` without lone surrogates and NULs, so that it is valid UTF-8 for store and wire.

    Surrogates that form a pair become the character they stand for
    (`specs/interrupts-and-peers.md` #72).
    """
    if _UNSTORABLE.search(text) is None:
        return text
    paired = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return paired.replace("\x00", REPLACEMENT)


def printable(text: str) -> str:
    """`text` as it may be shown to a person: control and reordering characters are spelled out.

    Tab and newline stay, a carriage return before a newline goes. What is shown then reads in the
    order in which it will be used.
    """
    return _UNPRINTABLE.sub(_spelled, text.replace("\r\n", "\n"))


def _spelled(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def one_line(text: str, limit: int = 120) -> str:
    """`text` as a title: one line, printable, at most `limit` characters."""
    # A title shows a little; looking at a bounded piece keeps a 10 MiB argument cheap.
    line = _SPACE.sub(" ", printable(text[: limit * 8])).strip()
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


@frozen(kw_only=True)
class Clipped:
    """A text of at most some bytes, and whether anything was left out of it."""

    text: str
    truncated: bool


def clip(text: str, limit_bytes: int) -> Clipped:
    """`text` within about `limit_bytes` of UTF-8: its head and tail, and between them a line that
    says how many bytes were left out. Never splits a code point.
    """
    if len(text) * 4 <= limit_bytes:
        return Clipped(text=text, truncated=False)
    data = text.encode("utf-8", "replace")
    if len(data) <= limit_bytes:
        return Clipped(text=text, truncated=False)
    head = decoded_head(data[: limit_bytes // 2])
    tail = decoded_tail(data[len(data) - (limit_bytes - limit_bytes // 2) :])
    return Clipped(text=joined(head, tail, len(data)), truncated=True)


_LONGEST_WORD = 1_024
"""Characters without white space that are taken for one word; more are a picture or the like."""


def _without_last_word(text: str) -> str:
    kept = len(text)
    while kept and not text[kept - 1].isspace() and len(text) - kept <= _LONGEST_WORD:
        kept -= 1
    return text[:kept] if kept and len(text) - kept <= _LONGEST_WORD else text


def _without_first_word(text: str) -> str:
    gone = 0
    while gone < len(text) and not text[gone].isspace() and gone <= _LONGEST_WORD:
        gone += 1
    return text[gone:] if gone < len(text) and gone <= _LONGEST_WORD else text


def joined(head: str, tail: str, total_bytes: int) -> str:
    """`head` and `tail` of something of `total_bytes`, with a line between that tells the gap. The words at
    the cuts go, too: half of a secret is none that the log would know (session-messaging 12)."""
    head, tail = _without_last_word(head), _without_first_word(tail)
    left_out = total_bytes - len(head.encode()) - len(tail.encode())
    return f"{head}\n[… {max(left_out, 0)} bytes left out …]\n{tail}"


def decoded_head(data: bytes) -> str:
    """UTF-8 that was cut off at its end: a code point that is not whole is dropped."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        needed = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        if needed > back:
            data = data[:-back]
        break
    return well_formed(data.decode("utf-8", "replace"))


def decoded_tail(data: bytes) -> str:
    """UTF-8 that was cut off at its beginning: what is left of a code point there is dropped."""
    skip = 0
    while skip < min(3, len(data)) and data[skip] & 0xC0 == 0x80:
        skip += 1
    return well_formed(data[skip:].decode("utf-8", "replace"))
