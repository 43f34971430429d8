"""Where API keys come from: the environment, a private file, the system's keyring. Never the log.

The file is described in `keyfile`. The keyring is asked only where the package `keyring` is installed,
under the service ``callboard`` and the provider's name.
"""

import contextlib
import importlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, Protocol, cast

from attrs import field, frozen

from callboard.models.keyfile import LEAST_CHARS, KeyFile
from callboard_rpc.errors import CallboardError

SERVICE = "callboard"
_SECRET_NAME = re.compile(r"(?:^|_)(?:API_?KEY|TOKEN|SECRET|PASSWORD|ACCESS_KEY)$", re.IGNORECASE)


@frozen
class ApiKey:
    """A key and where it was found, in words and by kind. `value` is in no repr."""

    value: str = field(repr=False)
    source: str
    kind: Literal["environment", "stored", "keyring"] = "environment"


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
        self._kept = KeyFile(directory, heard=self._tell)
        self._keyring = keyring
        self._on_secret = on_secret
        self._told: set[str] = set()
        self._asked: dict[str, str | None] = {}
        self._variables: set[str] = set()
        self._extra: set[str] = set()

    def __repr__(self) -> str:
        return f"KeyRing({self.path})"

    @property
    def path(self) -> Path:
        """The key file, there or not."""
        return self._kept.path

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
        value = self._kept.entries().get(provider)
        if value:
            return ApiKey(value, str(self.path), "stored")
        value = self._asked.get(provider)
        return ApiKey(value, "the keyring", "keyring") if value else None

    def stored(self) -> tuple[str, ...]:
        """The providers whose keys are in the file. Raises `CallboardError` like `find`."""
        return tuple(name for name, value in self._kept.entries().items() if value)

    def store(self, provider: str, key: str) -> None:
        """Keeps `key` in the file. Raises `CallboardError`, as `KeyFile.store` does."""
        self._tell(key)
        self._kept.store(provider, key)

    def forget(self, provider: str) -> bool:
        """Removes the key of `provider` from the file; False when it has none there. Raises `CallboardError`."""
        return self._kept.forget(provider)

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
            self._kept.entries()

    def secrets(self) -> tuple[str, ...]:
        """Every secret known by now, the longest first, for the redactor.

        That is: all keys that this object holds, and the environment's variables whose names say
        that they are secret. Values of under 8 characters are left out.
        """
        named = (v for k, v in self._environ.items() if _SECRET_NAME.search(k) is not None)
        asked = (self._environ.get(name, "") for name in self._variables)
        try:
            filed = tuple(self._kept.entries().values())
        except CallboardError:
            filed = ()  # Nothing of it is in use.
        ring = (value for value in self._asked.values() if value)
        found = {s.strip() for s in (*named, *asked, *filed, *ring, *self._extra)}
        return tuple(
            sorted((s for s in found if len(s) >= LEAST_CHARS), key=lambda s: (-len(s), s))
        )

    def _tell(self, secret: str) -> None:
        secret = secret.strip()
        if len(secret) >= LEAST_CHARS and secret not in self._told:
            self._told.add(secret)
            self._on_secret(secret)
