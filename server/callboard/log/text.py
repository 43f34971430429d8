"""Text that may be stored and sent: valid UTF-8, and not too large for an event."""

from collections.abc import Callable
from typing import Any, Final, cast

import orjson

LARGE: Final = 64 * 1024
"""Bytes of text from which a value is moved to a blob (DESIGN 3)."""

_KEPT = 8_000
"""Characters of each end: even in four bytes each, both fit into an event."""
_LONGEST_ID = 96


def well_formed(text: str) -> str:
    """`text` with lone surrogates and NULs replaced by U+FFFD (interrupts-and-peers 72)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\x00", "\ufffd") if "\x00" in text else text


def all_well_formed(value: Any) -> Any:
    """`value` with every text in it, keys included, `well_formed`."""
    match value:
        case str():
            return well_formed(value)
        case dict():
            fields = cast("dict[str, Any]", value)
            return {well_formed(key): all_well_formed(item) for key, item in fields.items()}
        case list() | tuple():
            return [all_well_formed(item) for item in cast("list[Any]", value)]
        case _:
            return value


def redacted(redact: Callable[[str], str], text: str) -> str:
    """A plain text through `redact`, which knows JSON.

    What is cut, put on one line, framed or escaped before it reaches the log goes through here first: half
    of a secret, or an escaped one, is no secret that the log would know (session-messaging 12).
    """
    return orjson.loads(redact(orjson.dumps(well_formed(text)).decode()))


def quoted(given: str) -> str:
    """What somebody gave for an id, as an error repeats it: whole, or not at all. A piece of it may be half of
    a secret, which is none that the wire or the log would know (session-messaging 12)."""
    return repr(given) if len(given) <= _LONGEST_ID else f"of {len(given)} characters"


def head_and_tail(text: str, kept: int = _KEPT) -> str:
    """The first and the last `kept` characters, with a note of what lies between."""
    if len(text) <= 2 * kept:
        return text
    return f"{text[:kept]}\n[… {len(text) - 2 * kept} characters …]\n{text[-kept:]}"


def spill(value: Any) -> tuple[Any, dict[str, str]]:
    """`value` with each large text cut to head and tail, and the whole texts by JSON pointer."""
    parts: dict[str, str] = {}

    def walk(node: Any, pointer: str) -> Any:
        match node:
            case str() if len(node) > LARGE // 4 and len(node.encode()) > LARGE:
                parts[pointer] = node
                return head_and_tail(node)
            case dict():
                fields = cast("dict[str, Any]", node)
                return {
                    key: walk(item, f"{pointer}/{_escape(key)}") for key, item in fields.items()
                }
            case list() | tuple():
                items = cast("list[Any]", node)
                return [walk(item, f"{pointer}/{index}") for index, item in enumerate(items)]
            case _:
                return node

    return walk(value, ""), parts


def restore(value: Any, parts: dict[str, str]) -> Any:
    """The inverse of `spill`."""
    for pointer, text in parts.items():
        node: Any = value
        *path, last = (
            part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]
        )
        for part in path:
            node = cast("Any", node[int(part)] if isinstance(node, list) else node[part])
        if isinstance(node, list):
            node[int(last)] = text
        else:
            node[last] = text
    return value


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
