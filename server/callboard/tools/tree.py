"""Walks a workspace without following links, leaving out what its ``.gitignore`` files leave out."""

import os
import re
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from attrs import frozen

from . import beneath, textfile
from .base import PathDenied, ToolFailure, Workspace

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_IGNORE_FILE = ".gitignore"
_ALWAYS_IGNORED = frozenset({".git"})

Kind: TypeAlias = Literal["file", "folder", "link", "other"]


@frozen
class Entry:
    """Something in the tree. `path` is relative to the workspace root that was walked, with ``/``."""

    path: str
    kind: Kind
    depth: int


@frozen
class _Rules:
    base: str
    spec: "GitIgnoreSpec"

    def decide(self, path: str) -> bool | None:
        inner = path[len(self.base) + 1 :] if self.base else path
        return self.spec.check_file(inner).include


def spec_of(patterns: list[str]) -> "GitIgnoreSpec":
    """Patterns of the ``.gitignore`` kind, made ready for matching."""
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(patterns)


def is_tame(pattern: str) -> bool:
    """Whether matching `pattern` takes bounded time.

    Each ``*`` of a pattern multiplies what a backtracking matcher may have to try on a long name of a
    hostile tree; while it tries, nothing else in this process runs.
    """
    stars = len(re.findall(r"(?<!\*)\*(?!\*)", pattern))
    return stars <= 3 and len(re.findall(r"\*\*+", pattern)) <= 3 and len(pattern) <= 1000


def walk(
    workspace: Workspace, start: Path, *, depth: int, stop: Callable[[], bool]
) -> Generator[Entry, None, None]:
    """Everything below the directory `start` (as resolved), folders first seen before what they
    hold, names in order, down to `depth` levels; ends early once `stop` says so.

    Ignored folders are not entered; a `start` that is itself ignored is walked all the same.
    Folders that cannot be read are passed over.
    """
    root = next(r for r in workspace.roots if start.is_relative_to(r))
    above = start.relative_to(root)
    rules: tuple[_Rules, ...] = ()
    for ancestor in reversed(above.parents):
        rules += _rules_in(workspace, root / ancestor, _slashed(ancestor))
    at = _slashed(above)
    if at and _ignored(rules, at + "/"):
        rules = ()
    yield from _below(workspace, root, at, rules, 1, depth, stop)


def _below(
    workspace: Workspace,
    root: Path,
    at: str,
    rules: tuple[_Rules, ...],
    level: int,
    depth: int,
    stop: Callable[[], bool],
) -> Generator[Entry, None, None]:
    here = root / at
    try:
        found = _names(workspace, here)
    except (OSError, PathDenied):
        return
    if any(name == _IGNORE_FILE for name, _ in found):
        rules += _rules_in(workspace, here, at)
    for name, kind in found:
        if stop():
            return
        path = f"{at}/{name}" if at else name
        if name in _ALWAYS_IGNORED or _ignored(rules, path + "/" * (kind == "folder")):
            continue
        yield Entry(path, kind, level)
        if kind == "folder" and level < depth:
            yield from _below(workspace, root, path, rules, level + 1, depth, stop)


def _names(workspace: Workspace, here: Path) -> list[tuple[str, Kind]]:
    with (
        beneath.folder(workspace, here) as descriptor,
        os.scandir(here if descriptor is None else descriptor) as entries,
    ):
        return sorted((entry.name, _kind(entry)) for entry in entries)


def _kind(entry: "os.DirEntry[str]") -> Kind:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def _rules_in(workspace: Workspace, folder: Path, at: str) -> tuple[_Rules, ...]:
    try:
        lines = textfile.read(workspace, folder / _IGNORE_FILE).plain.split("\n")
    except (OSError, ToolFailure, PathDenied):
        return ()
    patterns = [line for line in lines if line.strip() and line[0] != "#" and is_tame(line)]
    try:
        return (_Rules(at, spec_of(patterns)),) if patterns else ()
    except ValueError:  # a pattern that is none: git passes over it, and so does this
        return tuple(_Rules(at, spec_of([p])) for p in patterns if _is_pattern(p))


def _is_pattern(pattern: str) -> bool:
    try:
        spec_of([pattern])
    except ValueError:
        return False
    return True


def _ignored(rules: tuple[_Rules, ...], path: str) -> bool:
    """The rules nearest to the entry decide; a folder's path ends in ``/``."""
    for rule in reversed(rules):
        decision = rule.decide(path)
        if decision is not None:
            return decision
    return False


def _slashed(path: Path) -> str:
    text = path.as_posix()
    return "" if text == "." else text
