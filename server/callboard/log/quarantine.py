"""A store that is damaged: a copy is put aside, once, and the file itself is left as it is."""

import contextlib
import filecmp
import glob
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from callboard_rpc.errors import CallboardError

_TAILS = ("", "-wal", "-journal")
"""What was not checkpointed yet may be all that is whole."""
_MOST_COPIES = 3
"""However often a damaged store is tried, and however it changes meanwhile."""

WAY_OUT = (
    "`callboard store check` tells what is damaged, `callboard store restore BACKUP` puts a backup in "
    "its place; or move the file away to start with an empty store"
)


def set_aside(path: Path, what: str, now: Callable[[], str]) -> CallboardError:
    """Copies the store, its WAL too, and returns the error that tells of it. Nobody here may have the
    store open."""
    copies = sorted(
        each
        for each in path.parent.glob(f"{glob.escape(path.name)}.corrupt-*")
        if not each.name.endswith(("-wal", "-journal", ".part"))
    )
    copy = next((each for each in reversed(copies) if _is_copy(each, path)), None)
    kept = f"; a copy is at {copy}"
    if copy is None and len(copies) >= _MOST_COPIES:
        copy = copies[-1]
        kept = f"; {len(copies)} copies of it are there already, the last one at {copy}"
    elif copy is None:
        stamp = "".join(c for c in now() if c.isdigit())[:17]
        copy = _unused(path.with_name(f"{path.name}.corrupt-{stamp}"))
        try:
            _copy(path, copy)
            kept = f"; a copy is at {copy}"
        except OSError as fault:
            copy = None
            kept = f"; no copy could be made ({fault.strerror or fault})"
    return CallboardError(
        "storeCorrupt",
        f"the store {path} is damaged: {what}{kept}. {WAY_OUT}",
        data={} if copy is None else {"copy": str(copy)},
    )


def _unused(copy: Path) -> Path:
    """The name of a new copy, another one when there is one of the same moment."""
    names = (copy, *(copy.with_name(f"{copy.name}-{n}") for n in range(2, _MOST_COPIES + 2)))
    return next(each for each in names if not each.exists())


def _is_copy(copy: Path, path: Path) -> bool:
    """Whether all that there is now lies in `copy` already."""
    for tail in _TAILS:
        mine, other = path.with_name(path.name + tail), copy.with_name(copy.name + tail)
        if _size(mine) == 0:
            continue
        if _size(mine) != _size(other) or not filecmp.cmp(mine, other, shallow=False):
            return False
    return True


def _size(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return 0


def _copy(path: Path, copy: Path) -> None:
    """The database comes last under its name: where that is, the rest is there, too."""
    for tail in reversed(_TAILS):
        source = path.with_name(path.name + tail)
        if not source.exists():
            continue
        target = copy.with_name(copy.name + tail)
        part = target.with_name(f"{target.name}.{os.getpid()}.part")
        try:
            os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
            shutil.copyfile(source, part)
            part.rename(target)
        finally:
            part.unlink(missing_ok=True)
