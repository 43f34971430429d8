"""Opens files beneath a workspace's roots without following any symlink.

A path that `Workspace.resolve` returned holds no link. If one is found on the way here, somebody put
it there since, and the open fails with `PathDenied`: there is no moment between check and use. It fails
likewise when the root itself is another folder than it was.
"""

import contextlib
import errno
import os
import secrets
import stat
import sys
from collections.abc import Generator
from pathlib import Path

from ..log.faultpoints import point
from .base import WITHHELD, PathDenied, ToolFailure, Workspace
from .display import printable

_BY_DESCRIPTOR = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0) | _NOFOLLOW
# Without O_NONBLOCK the open of a FIFO would wait for its other end.
_READ = (
    os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0) | _NOFOLLOW
)  # fmt: skip
_CREATE = (
    os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0) | _NOFOLLOW
)  # fmt: skip

_SPECIAL = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def shown(workspace: Workspace, path: Path) -> str:
    """`path` for people and models: relative to the root where it lies there."""
    relative = path.relative_to(workspace.root) if path.is_relative_to(workspace.root) else path
    return printable(str(relative))


def _root_of(workspace: Workspace, path: Path) -> Path:
    for root in workspace.roots:
        if path.is_relative_to(root):
            return root
    raise PathDenied(str(path))


@contextlib.contextmanager
def folder(
    workspace: Workspace, path: Path, *, missing: tuple[str, ...] = ()
) -> Generator[int | None, None, None]:
    """A descriptor of the directory `path` (as resolved). `missing` are trailing components to make.

    Yields None where the system cannot open relative to a descriptor; the caller then uses paths.
    """
    if not _BY_DESCRIPTOR:
        (path / Path(*missing)).mkdir(parents=True, exist_ok=True)
        if os.path.realpath(path) != str(path):
            raise PathDenied(str(path))
        yield None
        return
    root = _root_of(workspace, path)
    here = os.open(root, _FOLDER & ~_NOFOLLOW)
    try:
        _check_root(workspace, root, path, os.fstat(here))
        for part in path.relative_to(root).parts:
            here = _step(here, part, path)
        for part in missing:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, dir_fd=here)
            here = _step(here, part, path)
        yield here
    finally:
        os.close(here)


def _check_root(workspace: Workspace, root: Path, path: Path, found: os.stat_result) -> None:
    if not workspace.is_root(root, found):
        raise PathDenied(
            str(path),
            f"is not in the workspace any more: something else has taken the place of {root}, "
            "which the next turn will go by",
        )


def way_to(descriptor: int | None, path: Path) -> Path:
    """How a process that is started now gets into the `folder` that was opened as `path`: through the
    descriptor where the system has such a way, so that it is that very folder."""
    if descriptor is not None and sys.platform == "linux" and Path("/proc/self/fd").is_dir():
        return Path(f"/proc/self/fd/{descriptor}")
    return path


def _step(here: int, part: str, path: Path) -> int:
    """Goes from the descriptor `here` into `part`, and closes `here` when that worked."""
    try:
        below = os.open(part, _FOLDER, dir_fd=here)
    except OSError as fault:
        # Systems differ in what they say of a link here: "not a directory", or "too many links".
        if fault.errno in (errno.ENOTDIR, errno.ELOOP) and stat.S_ISLNK(
            os.stat(part, dir_fd=here, follow_symlinks=False).st_mode
        ):
            raise PathDenied(str(path), "changed into a symbolic link while in use") from None
        raise
    os.close(here)
    return below


@contextlib.contextmanager
def regular_file(workspace: Workspace, path: Path) -> Generator[int, None, None]:
    """A descriptor for reading the regular file `path` (as resolved).

    Raises `ToolFailure` for anything that is not a regular file, `OSError` as `open` does.
    """
    _refuse_root(workspace, path)
    with folder(workspace, path.parent) as parent:
        name = str(path) if parent is None else path.name
        try:
            descriptor = os.open(name, _READ, dir_fd=parent)
        except OSError as fault:
            _explain_special(workspace, path, parent, name)
            raise fault from None
    try:
        found = os.fstat(descriptor)
        refuse_special(workspace, path, found)
        if workspace.withholds(path, found):  # by another name
            raise PathDenied(str(path), WITHHELD)
        if parent is None and os.path.realpath(path) != str(path):
            raise PathDenied(str(path))
        yield descriptor
    finally:
        os.close(descriptor)


def _refuse_root(workspace: Workspace, path: Path) -> None:
    if path in workspace.roots:
        raise ToolFailure(f"{shown(workspace, path)} is a directory, not a file.")


def _explain_special(workspace: Workspace, path: Path, parent: int | None, name: str) -> None:
    """Sockets and some devices cannot be opened at all: says so rather than "no such device"."""
    with contextlib.suppress(OSError):
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            raise PathDenied(
                str(path), "is a loop of symbolic links, or became a link while in use"
            )
        refuse_special(workspace, path, found)


def refuse_special(workspace: Workspace, path: Path, found: os.stat_result) -> None:
    """Raises `ToolFailure` when `found` is not a regular file."""
    for is_kind, name in _SPECIAL:
        if is_kind(found.st_mode):
            raise ToolFailure(f"{shown(workspace, path)} is {name}, not a file.")


def status(workspace: Workspace, path: Path) -> os.stat_result | None:
    """What is at `path` now (not followed), or None when there is nothing."""
    if path in workspace.roots:
        found = path.stat()
        _check_root(workspace, path, path, found)
        return found
    try:
        with folder(workspace, path.parent) as parent:
            name = str(path) if parent is None else path.name
            return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None


def replace(workspace: Workspace, path: Path, data: bytes) -> None:
    """Writes `data` as `path`: a new file beside it is filled, synced, and renamed over it.

    Mode and ownership of an existing file are kept; a new one gets the user's defaults, and folders
    that it needs are made. Readers see the old or the new content, never a mixture, also after a
    crash. Raises `ToolFailure` when `path` is not a file that may be written, `OSError` otherwise.
    """
    _refuse_root(workspace, path)
    existing_parent, missing = _existing_part(path.parent)
    with folder(workspace, existing_parent, missing=missing) as parent:
        target = str(path) if parent is None else path.name
        try:
            before = os.stat(target, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            before = None
        if before is not None:
            _check_writable(workspace, path, before, target, parent)
        temporary = f".callboard-{secrets.token_hex(8)}.tmp"
        if parent is None:
            temporary = str(path.parent / temporary)
        # What is there already may be private: nobody may read the new content before it has its mode.
        mode = 0o666 if before is None else 0o600
        descriptor = os.open(temporary, _CREATE, mode, dir_fd=parent)
        try:
            try:
                _fill(descriptor, data, before)
            finally:
                os.close(descriptor)
            point("tools.file_filled")
            os.replace(temporary, target, src_dir_fd=parent, dst_dir_fd=parent)
            point("tools.file_replaced")
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=parent)
            raise
        if parent is not None:
            with contextlib.suppress(OSError):  # not every file system can sync a directory
                os.fsync(parent)


def _existing_part(path: Path) -> tuple[Path, tuple[str, ...]]:
    missing: list[str] = []
    while not os.path.lexists(path):
        missing.insert(0, path.name)
        path = path.parent
    return path, tuple(missing)


def _check_writable(
    workspace: Workspace, path: Path, before: os.stat_result, target: str, parent: int | None
) -> None:
    if stat.S_ISLNK(before.st_mode):
        raise PathDenied(str(path), "changed into a symbolic link while in use")
    refuse_special(workspace, path, before)
    # A rename would replace a read-only file all the same: the person meant it to stay.
    read_only = not before.st_mode & 0o222
    if read_only or not os.access(target, os.W_OK, dir_fd=parent):
        raise ToolFailure(
            f"{shown(workspace, path)} is read-only (mode {stat.S_IMODE(before.st_mode):04o}); "
            "it was left unchanged."
        )


def _fill(descriptor: int, data: bytes, before: os.stat_result | None) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    if before is not None and hasattr(os, "fchown"):
        mine = os.fstat(descriptor)
        if (mine.st_uid, mine.st_gid) != (before.st_uid, before.st_gid):
            _keep_owner(descriptor, before)
        os.fchmod(descriptor, stat.S_IMODE(before.st_mode))
    os.fsync(descriptor)


def _keep_owner(descriptor: int, before: os.stat_result) -> None:
    """Only a privileged process may give a file away; the group alone can often be kept."""
    try:
        os.fchown(descriptor, before.st_uid, before.st_gid)
    except PermissionError:
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, -1, before.st_gid)
