"""Files that are whole or not there, also after a crash: written, synced, renamed, the folder synced."""

import contextlib
import errno
import os
import stat
from collections.abc import Generator
from pathlib import Path

from callboard_rpc.errors import CallboardError

from .lockfile import try_exclusive


def sync_file(path: Path) -> None:
    """Returns when the disk has what was written to a file."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Returns when the disk has which files a folder holds, where the system can tell."""
    if os.name != "posix":  # pragma: no cover - Windows keeps its folders by itself
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: Path, data: bytes) -> None:
    """Puts a small private file in its place, durably."""
    part = path.with_name(path.name + ".part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    part.replace(path)
    sync_folder(path.parent)


def make_private(path: Path) -> None:
    """Makes a file that nobody else may read. Raises `FileExistsError`."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def free_name(path: Path) -> Path:
    """`path`, or the same with the first number that nothing has yet."""
    candidate, number = path, 1
    while candidate.exists() or candidate.is_symlink():
        number += 1
        candidate = path.with_name(f"{path.name}-{number}")
    return candidate


def keep(part: Path, target: Path, *, overwrite: bool = False) -> None:
    """Gives a finished part its name, durably. Raises `FileExistsError` unless it may `overwrite`."""
    if overwrite:
        part.replace(target)
    else:
        try:
            os.link(part, target)
        except FileExistsError:
            raise
        except OSError:  # a file system without links: the look and the name are two steps then
            if target.exists():
                raise FileExistsError(
                    errno.EEXIST, os.strerror(errno.EEXIST), str(target)
                ) from None
            part.rename(target)
        else:
            part.unlink()
    sync_folder(target.parent)


@contextlib.contextmanager
def part_of(target: Path) -> Generator[Path]:
    """An empty private file beside `target`, for whoever makes it. It is gone afterwards, unless it was
    renamed; what a killed process has left of its own is taken over.

    Raises storeBusy when another process makes the same file just now, and pathDenied when something
    stands there that is no file of this user's.
    """
    part = target.with_name(f".{target.name}.callboard-part")
    descriptor = _claim(part, target)
    try:
        os.ftruncate(descriptor, 0)
        _forget_companions(part)
        yield part
    finally:
        if _is_at(descriptor, part):
            _forget_companions(part)
            part.unlink()
        os.close(descriptor)


def _claim(part: Path, target: Path) -> int:
    while True:
        descriptor, new = _open_part(part)
        try:
            if not new:
                _make_our_own(descriptor, part, target)
            if not try_exclusive(descriptor) or not _is_at(descriptor, part):
                raise CallboardError(
                    "storeBusy",
                    f"another process makes {target} just now; wait for it, or choose another name",
                    retry_after_ms=1_000,
                )
            if os.fstat(descriptor).st_nlink == 1:
                return descriptor
            part.unlink()  # it was finished and has its name; only this one was left by a crash
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _open_part(part: Path) -> tuple[int, bool]:
    """The part, and whether it was made just now."""
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    while True:
        with contextlib.suppress(FileExistsError):
            return os.open(part, flags | os.O_CREAT | os.O_EXCL, 0o600), True
        with contextlib.suppress(FileNotFoundError):
            return os.open(part, flags | getattr(os, "O_NONBLOCK", 0)), False


def _make_our_own(descriptor: int, part: Path, target: Path) -> None:
    """What somebody else has put there would stay theirs, with all that is written into it."""
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or (os.name == "posix" and found.st_uid != os.geteuid()):
        raise CallboardError(
            "pathDenied",
            f"{part} is no file of yours, and {target} cannot be made through it; remove it, or choose "
            "another place",
            data={"path": str(part)},
        )
    if os.name == "posix":
        with contextlib.suppress(PermissionError):  # a file system that knows no modes
            os.fchmod(descriptor, 0o600)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _forget_companions(path: Path) -> None:
    for tail in ("-journal", "-wal", "-shm"):
        path.with_name(path.name + tail).unlink(missing_ok=True)
