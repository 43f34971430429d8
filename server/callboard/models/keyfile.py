"""The file of stored keys, ``keys.toml`` in the user's configuration directory: one line a provider::

    openai = "sk-..."

It is private: one that others can read is refused, and so is writing in a folder that others can write to.
A change is a new file that takes the place of the old one, so a reader sees either, and lines that a person
wrote stay as they are. Two that write at once wait for one another.
"""

import contextlib
import os
import re
import stat
import tomllib
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import IO, Final

from callboard_rpc.errors import CallboardError

FILE: Final = "keys.toml"
LEAST_CHARS: Final = 8
"""Shorter keys are not stored, since nothing could hide them: they would take innocent words out of texts."""
MOST_CHARS: Final = 4096
_MAX_BYTES: Final = 256 * 1024
_NEW: Final = ".new"
_KEY: Final = re.compile(r"[!-~]+")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_READ: Final = (
    os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
)  # fmt: skip
_CREATE: Final = (
    os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
)  # fmt: skip


def withheld_files(directory: Path) -> tuple[Path, ...]:
    """The files below `directory`, a user's configuration directory, that hold keys: no tool may have them."""
    path = directory / FILE
    return path, path.with_name(FILE + _NEW)


def fault_in_key(key: str) -> str | None:
    """Why `key` cannot be a key, in words that do not repeat it; None when it can."""
    if not key:
        return "is empty"
    if len(key) > MOST_CHARS:
        return f"is longer than {MOST_CHARS} characters"
    if "\n" in key or "\r" in key:
        return "has several lines"
    if _KEY.fullmatch(key) is None:
        return "holds blanks, or characters that no key has"
    if len(key) < LEAST_CHARS:
        return f"is shorter than {LEAST_CHARS} characters"
    return None


class KeyFile:
    """The keys in the file of `directory`. `heard` is told of each value that is read, before anybody has it."""

    def __init__(self, directory: Path, *, heard: Callable[[str], None] = lambda _: None) -> None:
        self.path = directory / FILE
        self._heard = heard
        self._read: tuple[tuple[int, ...], dict[str, str]] | None = None

    def entries(self) -> Mapping[str, str]:
        """The keys by provider. The file is read again when it is another one than before. Raises
        `CallboardError` (authRequired) for one that others can read, or that cannot be understood."""
        with self._open() as file:
            if file is None:
                return {}
            status = os.fstat(file.fileno())
            stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
            if self._read is None or self._read[0] != stamp:
                self._read = (stamp, self._parse(file.read(_MAX_BYTES + 1)))
            return self._read[1]

    @contextlib.contextmanager
    def _open(self) -> Generator[IO[bytes] | None]:
        """The file, once it was looked at; None where there is none. A pipe in its place keeps nobody waiting."""
        try:
            with os.fdopen(os.open(self.path, _READ), "rb") as file:
                self._check(os.fstat(file.fileno()))
                yield file
        except FileNotFoundError:
            yield None
        except OSError as error:
            raise self._error(f"cannot be read ({error.strerror})") from None

    def store(self, provider: str, key: str) -> None:
        """Keeps `key` as that of `provider`. Raises `CallboardError` when it cannot be one, or when the file or
        its folder is not in order."""
        fault = fault_in_key(key)
        if fault is not None:
            raise CallboardError("invalidParams", f"the key {fault}")
        self._change(provider, key)

    def forget(self, provider: str) -> bool:
        """Removes the key of `provider`; False when there is none. Raises like `store`."""
        return self._change(provider, None)

    def _change(self, provider: str, key: str | None) -> bool:
        with self._folder():
            self._refuse_link()
            with self._open() as file:
                text = b"" if file is None else file.read(_MAX_BYTES + 1)
            before = self._parse(text)
            if key is None and provider not in before:
                return False
            changed = _changed(text.decode(), before, provider, key)
            if len(changed.encode()) > _MAX_BYTES:
                raise self._error(f"would be larger than {_MAX_BYTES} bytes")
            self._replace(changed)
        return True

    @contextlib.contextmanager
    def _folder(self) -> Generator[None]:
        """The folder is there, is the person's own, and nobody else writes here meanwhile."""
        folder = self.path.parent
        try:
            if not folder.is_dir():
                folder.mkdir(mode=0o700, parents=True)
            if os.name != "posix":
                yield
                return
            import fcntl

            descriptor = os.open(folder, _FOLDER)
            try:
                _check_folder(folder, os.fstat(descriptor))
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                yield
                with contextlib.suppress(OSError):  # not every file system can sync a directory
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise _denied(f"{folder} cannot be written ({error.strerror or error})") from None

    def _refuse_link(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISLNK(self.path.lstat().st_mode):
                raise _denied(
                    f"the key file {self.path} is a link; write the key where it leads, or remove the link"
                )

    def _replace(self, text: str) -> None:
        made = self.path.with_name(FILE + _NEW)
        made.unlink(missing_ok=True)  # of a process that was killed
        descriptor = os.open(made, _CREATE, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
            made.replace(self.path)
        except BaseException:
            made.unlink(missing_ok=True)
            raise

    def _check(self, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise self._error("is not a file")
        if os.name != "posix":
            return
        if status.st_mode & 0o077:
            mode = stat.S_IMODE(status.st_mode)
            raise self._error(
                f"can be read by others (mode {mode:04o}); run: chmod 600 {self.path}"
            )
        if status.st_uid not in (os.geteuid(), 0):
            raise self._error("belongs to another user; make it your own")

    def _parse(self, data: bytes) -> dict[str, str]:
        if len(data) > _MAX_BYTES:
            raise self._error(f"is larger than {_MAX_BYTES} bytes")
        try:
            entries = tomllib.loads(data.decode())
        except (ValueError, RecursionError) as error:
            # The text of the error may quote a key, so only the line's number is told.
            line = re.search(r"\(at (line \d+)", str(error))
            where = f" in {line[1]}" if line else ""
            raise self._error(
                f'is not valid TOML{where}; write one provider = "key" a line'
            ) from None
        for name, value in entries.items():
            if not isinstance(value, str):
                raise self._error(f'has no text for {name}; write {name} = "key"')
        found = {name: value.strip() for name, value in entries.items()}
        for value in found.values():
            self._heard(value)
        return found

    def _error(self, problem: str) -> CallboardError:
        return CallboardError("authRequired", f"the key file {self.path} {problem}")


def _denied(said: str) -> CallboardError:
    return CallboardError("pathDenied", f"no key is stored: {said}")


def _check_folder(folder: Path, status: os.stat_result) -> None:
    if status.st_uid not in (os.geteuid(), 0):
        raise _denied(f"the folder {folder} belongs to another user; make it your own")
    if status.st_mode & 0o022:
        mode = stat.S_IMODE(status.st_mode)
        raise _denied(
            f"others can write to the folder {folder} (mode {mode:04o}); run: chmod go-w {folder}"
        )


def _changed(text: str, before: Mapping[str, str], provider: str, key: str | None) -> str:
    """`text` with another key for `provider`, or none. The other lines stay where the result means what it should;
    else all is written anew."""
    after = {name: value for name, value in before.items() if name != provider}
    if key is not None:
        after[provider] = key
    lines = [line for line in text.splitlines() if not _is_about(line, provider)]
    if key is not None:
        lines.append(_line(provider, key))
    kept = "".join(f"{line}\n" for line in lines)
    try:
        found = {name: value.strip() for name, value in tomllib.loads(kept).items()}
    except (ValueError, AttributeError, RecursionError):
        found = {}
    if found == after:
        return kept
    return "".join(f"{_line(name, value)}\n" for name, value in after.items())


def _is_about(line: str, provider: str) -> bool:
    try:
        return list(tomllib.loads(line)) == [provider]
    except (ValueError, RecursionError):  # a line of a longer text may look like anything
        return False


def _line(name: str, key: str) -> str:
    return f"{name if _BARE.fullmatch(name) else _quoted(name)} = {_quoted(key)}"


def _quoted(text: str) -> str:
    """A basic string of TOML."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in plain) + '"'
