"""Which paths a session may touch (DESIGN 5, 8): judged only after symlinks are resolved.

What `resolve` returns holds no symlink. Files are opened by `beneath.py`, which follows none, so
that a link that is put into the way afterwards makes the open fail rather than lead outside. The roots
themselves are known by device and inode: what takes their name later is not the workspace.
"""

import contextlib
import ntpath
import os
import posixpath
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TypeAlias

from .base import WITHHELD, PathDenied

Flavour: TypeAlias = Literal["posix", "windows"]
"""Whose rules for spelling paths apply."""

NATIVE: Flavour = "windows" if os.name == "nt" else "posix"

_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d|conin\$|conout\$)(\..*)?\Z")


def canonical_path(path: str, flavour: Flavour = NATIVE) -> str:
    """The one spelling of an absolute `path`. Pure: looks at no file system.

    On Windows ``d:\\x``, ``D:/x`` and ``D:\\x\\`` are one path (`specs/interrupts-and-peers.md` #74).
    """
    if flavour == "posix":
        plain = posixpath.normpath(path)
        return plain[1:] if plain.startswith("//") else plain
    if path.startswith(("\\\\?\\", "//?/")) and path[5:6] == ":":
        path = path[4:]
    plain = ntpath.normpath(path)
    drive, rest = ntpath.splitdrive(plain)
    return drive.upper() + rest if drive.endswith(":") else plain


def lies_within(path: str, root: str, flavour: Flavour = NATIVE) -> bool:
    """Whether `path` is `root` or below it, component by component. Pure, like `canonical_path`."""
    inner, outer = canonical_path(path, flavour), canonical_path(root, flavour)
    separator = "/" if flavour == "posix" else "\\"
    if flavour == "windows":
        inner, outer = inner.casefold(), outer.casefold()
    return inner == outer or inner.startswith(outer.rstrip(separator) + separator)


def fault_in(path: str, flavour: Flavour = NATIVE) -> str | None:
    """Why `path` cannot be a path at all, whatever the file system holds; None when it can."""
    if not path:
        return "is empty; give a path"
    if "\x00" in path:
        return "holds a NUL character"
    if any("\ud800" <= character <= "\udfff" for character in path):
        return "holds half of a surrogate pair"
    if path.startswith("~"):
        return "starts with ~, which is not expanded; write ./~… for a file of that name"
    if flavour == "posix":
        return None
    drive, rest = ntpath.splitdrive(path)
    if drive.endswith(":") and not rest.startswith(("\\", "/")):
        return "is relative to the current folder of a drive; give an absolute path"
    for part in re.split(r"[\\/]", rest):
        if ":" in part:
            return "names a stream of a file (':')"
        if _RESERVED.match(part.rstrip(" .")):
            return "names a device"
    return None


class FolderWorkspace:
    """A working directory and additional directories. All must exist. `withheld` are files that are not part of
    it though they may lie there, such as those with keys.

    Raises `NotADirectoryError` for a root that is no directory.
    """

    def __init__(
        self, root: Path, additional: Iterable[Path] = (), *, withheld: Iterable[Path] = ()
    ) -> None:
        folders = [Path(os.path.realpath(folder)) for folder in (root, *additional)]
        for folder in folders:
            if not folder.is_dir():
                raise NotADirectoryError(f"{folder} is not a directory")
        self._roots = tuple(dict.fromkeys(folders))
        self._identities = {root: _identity(root.stat()) for root in self._roots}
        self._withheld = tuple(withheld)

    @property
    def root(self) -> Path:
        return self._roots[0]

    @property
    def roots(self) -> tuple[Path, ...]:
        return self._roots

    def is_root(self, root: Path, found: os.stat_result) -> bool:
        return self._identities[root] == _identity(found)

    def resolve(self, path: str) -> Path:
        """`path` (absolute, or relative to `root`) through all symlinks, also when it does not exist.

        Raises `PathDenied` when it ends outside of the roots or cannot be a path.
        """
        fault = fault_in(path)
        if fault is not None:
            raise PathDenied(_shown(path), fault)
        try:
            resolved = os.path.realpath(self.root / path)
            # A loop of links stops realpath half way, and the rest may hold more links.
            settled = os.path.realpath(resolved) == resolved
        except (OSError, ValueError) as fault_of_system:
            raise PathDenied(_shown(path), "cannot be resolved") from fault_of_system
        if not settled:
            raise PathDenied(_shown(path), "goes through a loop of symbolic links")
        if not any(lies_within(resolved, str(root)) for root in self._roots):
            raise PathDenied(_shown(path))
        if self.withholds(Path(resolved)):
            raise PathDenied(_shown(path), WITHHELD)
        return Path(resolved)

    def withholds(self, path: Path, found: os.stat_result | None = None) -> bool:
        if not self._withheld:
            return False
        if found is None:
            with contextlib.suppress(OSError):
                found = path.stat()
        return any(
            str(path) == os.path.realpath(each) or _is_same(each, found) for each in self._withheld
        )


def _is_same(path: Path, found: os.stat_result | None) -> bool:
    try:
        return found is not None and _identity(path.stat()) == _identity(found)
    except OSError:
        return False


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _shown(path: str) -> str:
    return path if fault_in(path) is None else repr(path[:200])
