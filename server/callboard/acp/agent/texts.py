"""Texts in pieces that fit a frame. Pure."""

from collections.abc import Iterator
from typing import Any, Final

import orjson

from ...log.text import head_and_tail
from ...tools.display import one_line

PIECE_BYTES: Final = 48 * 1024
"""What a text may take in one frame, as JSON; older clients read lines of at most 64 KiB."""

_HEADING_CHARS: Final = 500
_ESCAPED = 6
"""Bytes that a character takes at the most, as JSON."""


def pieces(text: str, limit: int = PIECE_BYTES) -> Iterator[str]:
    """`text` in as few pieces as fit, each at most `limit` bytes as JSON; none for an empty one."""
    begin = 0
    while begin < len(text):
        size = min(len(text) - begin, limit)
        while size * _ESCAPED > limit and weight(text[begin : begin + size]) > limit:
            size = max(1, size * 3 // 4)
        yield text[begin : begin + size]
        begin += size


def cut(text: str, limit: int = PIECE_BYTES) -> str:
    """`text` if it fits into `limit` bytes as JSON, else its head and its tail."""
    if len(text) * _ESCAPED <= limit or weight(text) <= limit:
        return text
    kept = limit // 2
    while weight(shown := head_and_tail(text, kept)) > limit:
        kept = kept * 3 // 4
    return shown


def heading(text: str, most: int = _HEADING_CHARS) -> str:
    """`text` as a title: one line, in which nothing is hidden, moves or rings. Some clients print it as it is."""
    return one_line(text, most)


def cut_values(value: Any, limit: int) -> Any:
    """A JSON value of at most about `limit` bytes: long texts in it are cut, and where that is not
    enough there is only a note."""
    if weight(value) <= limit:
        return value
    for most in (limit // 4, limit // 16, 200):
        shorter = _with_texts_of(value, most)
        if weight(shorter) <= limit:
            return shorter
    return {"note": f"left out: {weight(value)} bytes are too much to be shown"}


def _with_texts_of(value: Any, most: int) -> Any:
    match value:
        case str():
            return head_and_tail(value, most // 2)
        case dict():
            return {key: _with_texts_of(item, most) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
        case list() | tuple():
            return [_with_texts_of(item, most) for item in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value


def fenced(text: str) -> str:
    """Output as a block of Markdown, whatever marks are in it."""
    fence = "```"
    while fence in text:
        fence += "`"
    end = "" if text.endswith("\n") else "\n"
    return f"{fence}\n{text}{end}{fence}"


def weight(value: Any) -> int:
    """Bytes of a value as JSON."""
    return len(orjson.dumps(value))
