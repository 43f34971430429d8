"""Paths as a model writes them: resolved, or refused in words that help it on."""

import difflib
import os
from pathlib import Path

from . import beneath
from .base import PathDenied, ToolFailure, Workspace
from .display import one_line

_LOOKED_AT = 2000


def resolved(workspace: Workspace, path: str) -> Path:
    """`path` as the workspace resolves it. Raises `ToolFailure` when that is not allowed."""
    try:
        return workspace.resolve(path)
    except PathDenied as denied:
        raise ToolFailure(denied_text(workspace, denied)) from None


def denied_text(workspace: Workspace, denied: PathDenied) -> str:
    """What a model is told of a path that it may not touch."""
    roots = ", ".join(one_line(str(root), 300) for root in workspace.roots)
    return f"{one_line(denied.path, 300)} {denied.reason}. Paths are relative to, or inside of: {roots}"


def looked_at(workspace: Workspace, path: Path) -> os.stat_result | None:
    """What is at `path` (as resolved), or None. Raises `ToolFailure` when it may not be seen."""
    try:
        return beneath.status(workspace, path)
    except PathDenied as denied:
        raise ToolFailure(denied_text(workspace, denied)) from None
    except OSError as fault:
        raise ToolFailure(system_text(workspace, path, fault)) from None


def missing_text(workspace: Workspace, path: Path) -> str:
    """What a model is told of a path that does not exist, with names that are near to it."""
    name = beneath.shown(workspace, path)
    here = path.parent
    while here not in workspace.roots and not here.is_dir():
        here = here.parent
    sought = path.relative_to(here).parts[0] if path != here else path.name
    try:
        with os.scandir(here) as entries:
            names = [entry.name for entry, _ in zip(entries, range(_LOOKED_AT), strict=False)]
    except OSError:
        names = []
    near = _near(sought, names)
    if near:
        hints = ", ".join(beneath.shown(workspace, here / hint) for hint in near)
        return f"{name} does not exist. Near to it: {hints}"
    if here != path.parent:
        return f"{name} does not exist; neither does its folder. {beneath.shown(workspace, here)} does."
    return f"{name} does not exist. Use list_files to see what does."


def _near(sought: str, names: list[str]) -> list[str]:
    folded = {name.casefold(): name for name in names}
    close = difflib.get_close_matches(sought.casefold(), folded, n=3, cutoff=0.6)
    stem = sought.rpartition(".")[0].casefold() or sought.casefold()
    same_stem = [name for fold, name in folded.items() if fold.rpartition(".")[0] == stem]
    return list(dict.fromkeys([*(folded[fold] for fold in close), *same_stem]))[:3]


def system_text(workspace: Workspace, path: Path, fault: OSError) -> str:
    """What a model is told when the system refuses: the path, and the system's own words."""
    if isinstance(fault, FileNotFoundError):
        return missing_text(workspace, path)
    reason = os.strerror(fault.errno) if fault.errno else type(fault).__name__
    return f"{beneath.shown(workspace, path)}: {reason}."
