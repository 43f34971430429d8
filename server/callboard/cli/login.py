"""``callboard login`` and ``callboard logout``: keys that are kept for servers which no shell has given any.

A key is read where nobody sees it: without echo, or from standard input. It is never an argument, since the
list of processes shows those.
"""

import getpass
import os
import sys
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from attrs import frozen
from cyclopts import Parameter

from .exits import CommandError, Exit
from .keys import person_is_there
from .server import settings_of
from .terminal import line, open_console

if TYPE_CHECKING:
    from callboard.models.keys import KeyRing
    from callboard.models.providers import Provider

NOT_AN_ARGUMENT = (
    "A key is not taken from the command line, where others could see it: it is asked for, or read from "
    "standard input."
)
_KEYRING_S = 5.0

Held = Literal["environment", "stored", "keyring", "none"]


@frozen(kw_only=True)
class _Standing:
    """What a provider has now."""

    name: str
    held: Held
    told: str
    stored: bool
    wants: bool


@frozen
class _Keys:
    """The key ring of this person, and what is configured of the providers."""

    ring: "KeyRing"
    providers: "Mapping[str, Provider]"

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "_Keys":
        from callboard.config import user_config_dir
        from callboard.models.builtin import all_providers
        from callboard.models.keys import KeyRing

        settings = settings_of(environment)
        ring = KeyRing(environment, user_config_dir(environment))
        return cls(ring, all_providers(settings.providers, environment))

    def standings(self) -> list[_Standing]:
        """The providers that may want a key, and those that have one. Raises `CallboardError` for a key file that
        is not in order."""
        from callboard.models.builtin import LOCAL

        stored = self.ring.stored()
        names = [name for name in self.providers if name not in LOCAL or name in stored]
        return [
            self._standing(name, name in stored)
            for name in (*names, *(n for n in stored if n not in self.providers))
        ]

    def _standing(self, name: str, stored: bool) -> _Standing:
        provider = self.providers.get(name)
        variable = None if provider is None else provider.key_env
        key = self.ring.find(name, variable)
        if key is None and provider is not None:
            self._ask_keyring(name)
            key = self.ring.find(name, variable)
        held: Held = "none" if key is None else key.kind
        told = {
            "environment": f"in the environment ({variable})"
            + (", which goes before the one that is stored" if stored else ""),
            "stored": "stored",
            "keyring": "in the keyring",
            "none": "none",
        }[held]
        if provider is None:
            told += ", for a provider that is not configured"
        elif held == "none" and not provider.needs_key:
            told += "; it may want none"
        wants = provider is not None and provider.needs_key
        return _Standing(name=name, held=held, told=told, stored=stored, wants=wants)

    def _ask_keyring(self, name: str) -> None:
        """Waits for it for a while only: it may hang, or open a dialogue that nobody sees."""
        import threading

        asking = threading.Thread(target=self.ring.ask_keyring, args=(name,), daemon=True)
        asking.start()
        asking.join(_KEYRING_S)


def login(provider: Annotated[str | None, Parameter()] = None, /) -> int:
    """Store an API key, for servers that editors start without your shell's variables.

    Without a provider it lists those that there are, with where each has its key from, and asks for which one the
    key is. The key is asked for without showing it, or read as a line from standard input. It is kept in a file of
    your own that nobody else can read; servers that run use it from their next request. A variable of the
    environment, such as OPENAI_API_KEY, goes before it.

    Parameters
    ----------
    provider
        Whose key it is: openai, anthropic, or one of config.toml.
    """
    keys = _Keys.of(os.environ)
    console = open_console()
    standings = keys.standings()
    if provider is None:
        width = max(len(each.name) for each in standings)
        for each in standings:
            console.print(line((each.name.ljust(width), "bold"), f"  {each.told}"))
        if not person_is_there():
            first = _proposed(standings)
            console.print(
                line(f"No key was read: say whose it is, as in callboard login {first}"),
                soft_wrap=True,
            )
            return Exit.OK
        provider = _chosen(standings)
    provider = provider.strip()
    if provider not in keys.providers:
        known = ", ".join(keys.providers)
        raise CommandError(  # what was given could be a key, and is not repeated
            f"there is no provider of that name; there are {known}",
            exit=Exit.USAGE,
            hint=f"A table [providers.NAME] of config.toml describes another one. {NOT_AN_ARGUMENT}",
        )
    key = _asked(provider)
    keys.ring.store(provider, key)
    console.print(
        line(f"The key of {provider} is stored in {keys.ring.path}, for you alone."), soft_wrap=True
    )
    variable = keys.providers[provider].key_env
    if variable is not None and os.environ.get(variable, "").strip():
        console.print(
            line((f"{variable} is set here, too, and goes before it.", "yellow")), soft_wrap=True
        )
    return Exit.OK


def logout(provider: Annotated[str | None, Parameter()] = None, /) -> int:
    """Remove a stored API key.

    Servers that run have it no more from their next request. Variables of the environment and the keyring stay as
    they are.

    Parameters
    ----------
    provider
        Whose key is removed. It may be left out where only one is stored.
    """
    keys = _Keys.of(os.environ)
    console = open_console()
    stored = keys.ring.stored()
    if provider is None:
        if not stored:
            console.print(line(f"No key is stored in {keys.ring.path}."), soft_wrap=True)
            return Exit.OK
        if len(stored) > 1:
            raise CommandError(
                f"several keys are stored: {', '.join(stored)}",
                exit=Exit.USAGE,
                hint="Say whose is to be removed: callboard logout PROVIDER",
            )
        provider = next(iter(stored))
    if provider not in stored and provider not in keys.providers:
        raise CommandError(
            f"there is no provider of that name; there are {', '.join(dict.fromkeys((*keys.providers, *stored)))}",
            exit=Exit.USAGE,
        )
    removed = keys.ring.forget(provider)
    said = "is removed" if removed else "was not stored"
    console.print(line(f"The key of {provider} {said}."), soft_wrap=True)
    known = keys.providers.get(provider)
    left = keys.ring.find(provider, None if known is None else known.key_env)
    if left is not None:
        console.print(line((f"There is still one, from {left.source}.", "yellow")), soft_wrap=True)
    return Exit.OK


def _proposed(standings: list[_Standing]) -> str:
    first = next((each.name for each in standings if each.wants and each.held == "none"), None)
    return first or standings[0].name


def _chosen(standings: list[_Standing]) -> str:
    proposed = _proposed(standings)
    try:
        return input(f"Provider [{proposed}]: ").strip() or proposed
    except EOFError:
        raise _nothing() from None


def _asked(provider: str) -> str:
    """A line from whoever is there, without the blanks around it."""
    if not person_is_there():
        return _piped()
    try:
        with warnings.catch_warnings():
            # it would go on with echo where that cannot be switched off
            warnings.simplefilter("error", getpass.GetPassWarning)
            key = getpass.getpass(f"Key of {provider} (it is not shown): ").strip()
    except EOFError:
        raise _nothing() from None
    except getpass.GetPassWarning:
        raise CommandError(
            "this terminal shows what is typed",
            hint=f"Give the key on standard input: callboard login {provider} < FILE",
        ) from None
    if not key:
        raise _nothing()
    return key


def _piped() -> str:
    from callboard.models.keyfile import MOST_CHARS

    source = sys.stdin
    if source is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise _nothing()
    data = source.buffer.read(4 * MOST_CHARS)
    key = data.decode("utf-8", "replace").strip()
    if not key:
        raise _nothing()
    return key


def _nothing() -> CommandError:
    return CommandError("no key was given, and nothing was changed", exit=Exit.USAGE)
