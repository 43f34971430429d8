"""Where API keys come from: the environment, a private file, the system's keyring. Never the log.

The file is ``keys.toml`` in the user's configuration directory, one line a provider::

    openai = "sk-..."

It is refused when others can read it. The keyring is asked only where the package `keyring` is
installed, under the service ``callboard`` and the provider's name.
"""

import contextlib
import importlib
import os
import re
import stat
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, cast

from attrs import field, frozen

from callboard_rpc.errors import CallboardError

FILE = "keys.toml"
SERVICE = "callboard"
_MAX_BYTES = 256 * 1024
_LEAST = 8
"""Shorter values are not told to the redactor: it would take innocent words out of texts."""
_SECRET_NAME = re.compile(r"(?:^|_)(?:API_?KEY|TOKEN|SECRET|PASSWORD|ACCESS_KEY)$", re.IGNORECASE)


@frozen
class ApiKey:
    """A key and where it was found. `value` is in no repr."""

    value: str = field(repr=False)
    source: str


class Keyring(Protocol):
    """What is used of the package `keyring`."""

    def get_password(self, service_name: str, username: str) -> str | None: ...


def system_keyring() -> Keyring | None:
    """The package `keyring` where it is installed."""
    try:
        return cast(Keyring, importlib.import_module("keyring"))
    except ImportError:
        return None


class KeyRing:
    """Finds keys, in this order: environment, file, keyring.

    `directory` is the user's configuration directory. `find` and `value` never block for long;
    `ask_keyring` may (it can open a dialogue) and belongs in a thread. What the keyring said is kept
    for the life of this object, so a new entry is seen after a restart.

    `on_secret` hears of each secret once, before anybody can use it, whenever it becomes known: from the
    thread that came by it. So what hides secrets can hide those that were not there at its beginning.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        directory: Path,
        keyring: Callable[[], Keyring | None] = system_keyring,
        *,
        on_secret: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._environ = environ
        self._path = directory / FILE
        self._keyring = keyring
        self._on_secret = on_secret
        self._told: set[str] = set()
        self._asked: dict[str, str | None] = {}
        self._variables: set[str] = set()
        self._extra: set[str] = set()
        self._read: tuple[tuple[int, ...], dict[str, str]] | None = None

    def __repr__(self) -> str:
        return f"KeyRing({self._path})"

    @property
    def path(self) -> Path:
        """The key file, there or not."""
        return self._path

    def find(self, provider: str, variable: str | None = None) -> ApiKey | None:
        """The key of `provider`; `variable` is its environment variable.

        Raises `CallboardError` (authRequired) when a key could be in a file that others can read,
        or that cannot be understood.
        """
        if variable is not None:
            self._variables.add(variable)
            value = self._environ.get(variable, "").strip()
            if value:
                self._tell(value)
                self.look()
                return ApiKey(value, f"the environment variable {variable}")
        value = self._file().get(provider)
        if value:
            return ApiKey(value, str(self._path))
        value = self._asked.get(provider)
        return ApiKey(value, "the keyring") if value else None

    def ask_keyring(self, provider: str) -> None:
        """Ask the keyring for the key of `provider`, once. Blocks; whatever fails there is no key."""
        if provider in self._asked:
            return
        value: str | None = None
        try:
            ring = self._keyring()
            if ring is not None:
                value = (ring.get_password(SERVICE, provider) or "").strip() or None
        except Exception:  # A back end may raise anything; none of it is the caller's business.
            value = None
        if value is not None:
            self._tell(value)
        self._asked[provider] = value

    def was_asked(self, provider: str) -> bool:
        """Whether the keyring was asked for the key of `provider` already."""
        return provider in self._asked

    def value(self, provider: str, variable: str | None = None) -> str | None:
        """The bare key, for the request that carries it; None when there is none."""
        key = self.find(provider, variable)
        return key.value if key is not None else None

    def remember(self, secret: str) -> None:
        """Count `secret` among `secrets`: a header of the configuration, for one."""
        self._tell(secret)
        self._extra.add(secret)

    def look(self) -> None:
        """Reads the file when it is another one than before, so that what is in it counts among
        `secrets` though nobody has asked for it yet. One that is not in order is not used, and no error.
        """
        with contextlib.suppress(CallboardError):
            self._file()

    def secrets(self) -> tuple[str, ...]:
        """Every secret known by now, the longest first, for the redactor.

        That is: all keys that this object holds, and the environment's variables whose names say
        that they are secret. Values of under 8 characters are left out.
        """
        named = (v for k, v in self._environ.items() if _SECRET_NAME.search(k) is not None)
        asked = (self._environ.get(name, "") for name in self._variables)
        try:
            filed = tuple(self._file().values())
        except CallboardError:
            filed = ()  # Nothing of it is in use.
        ring = (value for value in self._asked.values() if value)
        found = {s.strip() for s in (*named, *asked, *filed, *ring, *self._extra)}
        return tuple(sorted((s for s in found if len(s) >= _LEAST), key=lambda s: (-len(s), s)))

    def _file(self) -> dict[str, str]:
        try:
            with self._path.open("rb") as file:
                status = os.fstat(file.fileno())
                self._check(status)
                stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
                if self._read is None or self._read[0] != stamp:
                    entries = self._parse(file.read(_MAX_BYTES + 1))
                    for value in entries.values():
                        self._tell(value)
                    self._read = (stamp, entries)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._error(f"cannot be read ({error.strerror})") from None
        return self._read[1]

    def _tell(self, secret: str) -> None:
        secret = secret.strip()
        if len(secret) >= _LEAST and secret not in self._told:
            self._told.add(secret)
            self._on_secret(secret)

    def _check(self, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise self._error("is not a file")
        if os.name != "posix":
            return
        if status.st_mode & 0o077:
            mode = stat.S_IMODE(status.st_mode)
            raise self._error(
                f"can be read by others (mode {mode:04o}); run: chmod 600 {self._path}"
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
        return {name: value.strip() for name, value in entries.items()}

    def _error(self, problem: str) -> CallboardError:
        return CallboardError("authRequired", f"the key file {self._path} {problem}")
