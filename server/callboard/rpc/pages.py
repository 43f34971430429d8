"""Fields that many methods have: cursors and sizes of lists, folders; and what is wrong with one."""

import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import orjson

from callboard_rpc.errors import CallboardError

from ..log.text import quoted
from . import codec

LARGEST = (1 << 62) - 1
"""The largest number that a list's cursor may stand for; far beyond any position."""

_MAX_PATH = 4096
_NUMBER = re.compile(r"-?[0-9]{1,19}", re.ASCII)


def page_size(limit: int | None, maximum: int) -> int:
    """How many items a page holds. Raises invalidParams for a limit below 1."""
    if limit is None:
        return min(100, maximum)
    if limit < 1:
        raise invalid("$.limit", "must be at least 1")
    return min(limit, maximum)


def number(cursor: str | None, default: int) -> int:
    """The number that a list's cursor stands for. Raises invalidCursor."""
    if cursor is None:
        return default
    if _NUMBER.fullmatch(cursor) is None or abs(int(cursor)) > LARGEST:
        raise CallboardError(
            "invalidCursor",
            f"the cursor {quoted(cursor)} is none of this list; leave it out to begin from the start",
        )
    return int(cursor)


def text(cursor: int | None) -> str | None:
    """The cursor that stands for a number."""
    return None if cursor is None else str(cursor)


async def sized(
    fetch: Callable[[int], Awaitable[tuple[Sequence[Any], str | None]]],
    limit: int,
    max_bytes: int,
) -> dict[str, Any]:
    """A page in wire form that ends at `max_bytes` too, but holds at least one item.

    `fetch` gives up to so many items, and the cursor of what follows them.
    """
    items, following = await fetch(limit)
    encoded: list[bytes] = []
    size = 0
    for item in items:
        text = codec.encode(item)
        size += len(text)
        if encoded and size > max_bytes:
            _, following = await fetch(len(encoded))  # for the cursor of the page as it is cut
            break
        encoded.append(text)
    page: dict[str, Any] = {"data": [orjson.Fragment(text) for text in encoded]}
    if following is not None:
        page["nextCursor"] = following
    return page


def is_folder_name(path: str) -> bool:
    """Whether a text can be the absolute path of a folder."""
    return Path(path).is_absolute() and "\x00" not in path and len(path) <= _MAX_PATH


def invalid(path: str, message: str) -> CallboardError:
    """An invalidParams error about one field."""
    return CallboardError(
        "invalidParams", f"{path} {message}", data={"errors": [{"path": path, "message": message}]}
    )
