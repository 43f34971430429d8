"""When a store was last backed up and checked: a small file beside its locks, so that a look costs
nothing and a damaged store can be told of, too."""

import contextlib
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import orjson

from .durable import write_whole
from .occupancy import locks_of

Kind: TypeAlias = Literal["backup", "check"]
_LARGEST = 64 * 1024


def read(store: Path) -> dict[Kind, dict[str, Any]]:
    """The last backup (``at``, ``path``) and check (``at``, ``problems``) that are known of."""
    with contextlib.suppress(OSError, ValueError):
        with _book(store).open("rb") as file:
            value: Any = orjson.loads(file.read(_LARGEST))
        if isinstance(value, dict):
            found = cast("dict[Any, Any]", value)
            return {
                kind: cast("dict[str, Any]", entry)
                for kind in ("backup", "check")
                if isinstance(entry := found.get(kind), dict)
                and isinstance(cast("dict[Any, Any]", entry).get("at"), str)
            }
    return {}


def note(store: Path, kind: Kind, entry: dict[str, Any]) -> None:
    """Writes down what was done. Where that is impossible, it is not: nothing depends on it."""
    with contextlib.suppress(OSError):
        if locks_of(store).is_dir():
            write_whole(_book(store), orjson.dumps({**read(store), kind: entry}))


def _book(store: Path) -> Path:
    return locks_of(store) / "care.json"
