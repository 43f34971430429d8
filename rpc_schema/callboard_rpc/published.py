"""The published contract as text, from an installed wheel or from a checkout."""

from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Literal, TypeAlias

Format: TypeAlias = Literal["json", "typescript", "lua", "methods"]

_FILES: dict[Format, tuple[str, ...]] = {
    "json": ("schema.json",),
    "typescript": ("typescript", "callboard.ts"),
    "lua": ("lua", "callboard.lua"),
    "methods": ("methods.json",),
}


def read(format: Format) -> str:
    """The document in `format`: JSON Schema, TypeScript, Lua annotations, or the method table.

    Raises `KeyError` for another format, `FileNotFoundError` when the installation lacks it.
    """
    return _folder().joinpath(*_FILES[format]).read_text(encoding="utf-8")


def _folder() -> Traversable:
    """A wheel carries the documents in the package; in a checkout they lie beside it."""
    package = files(__package__ or "callboard_rpc")
    packed = package.joinpath("generated")
    return packed if packed.is_dir() else package.joinpath("..", "generated")
