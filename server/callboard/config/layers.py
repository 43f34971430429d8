"""One layer of the configuration: reading it, and holding it to what it may say.

Nothing here raises for bad input: what is wrong becomes a `ConfigWarning`, and the rest counts.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, cast

from attrs import frozen

from .fields import Kind, Unfit, did_you_mean
from .settings import GROUPS, Source, each_setting

MAX_FILE_BYTES = 1024 * 1024
WORKSPACE_FILE = ".callboard/config.toml"
USER_FILE = "config.toml"

KINDS: dict[str, Kind] = dict(each_setting())
VARIABLES: dict[str, str] = {
    "CALLBOARD_STORE": "store.path",
    **{"CALLBOARD_" + key.upper().replace(".", "_"): key for key in KINDS},
}
_OTHER_VARIABLES = frozenset({"CALLBOARD_CONFIG_DIR"})

WORKSPACE_KEYS = frozenset({"instructions", "approvals.mode", "approvals.policy"})
"""All that an untrusted workspace may set, and of these only what narrows (PROTOCOL 7)."""


USER_ONLY = ("hooks",)
"""What names commands, and so is taken from the user's own file alone: a client may pass on what a
workspace says."""


@frozen(kw_only=True)
class ConfigWarning:
    """Something in the configuration that does not count, where it stands, and what to do.

    ``error``: a whole layer could not be read. ``warning``: one value of it is not used.
    """

    source: Source
    place: str
    message: str
    key: str | None = None
    line: int | None = None
    severity: Literal["warning", "error"] = "warning"

    def __str__(self) -> str:
        place = self.place if self.line is None else f"{self.place}:{self.line}"
        return (
            f"{place}: {self.message}"
            if self.key is None
            else f"{place}: {self.key}: {self.message}"
        )


@frozen(kw_only=True)
class Given:
    """A value that fits its setting."""

    key: str
    value: Any
    source: Source
    place: str
    line: int | None = None


@frozen(kw_only=True)
class Layer:
    """What one source gives, in its own order, and what was wrong with it."""

    given: tuple[Given, ...] = ()
    warnings: tuple[ConfigWarning, ...] = ()


def from_file(
    path: Path, source: Literal["user", "workspace"], within: Path | None = None
) -> Layer:
    """The layer in a TOML file; empty when there is none. `within`: a folder that it must lie in,
    all symlinks followed."""

    def broken(message: str, line: int | None = None) -> Layer:
        fault = ConfigWarning(
            source=source, place=str(path), message=message, line=line, severity="error"
        )
        return Layer(warnings=(fault,))

    try:
        if within is not None and not path.resolve().is_relative_to(within.resolve()):
            return broken("is a link to outside of the workspace; it is not read")
        if not path.exists():
            return Layer()
        if not path.is_file():
            return broken("is not a file")
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as fault:
        return broken(f"cannot be read: {fault.strerror or fault}")
    except RuntimeError:  # a loop of links, as Python 3.11 tells it
        return broken("is a link to itself")
    if len(data) > MAX_FILE_BYTES:
        return broken(f"is larger than {MAX_FILE_BYTES} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        return broken("is not UTF-8", data[: fault.start].count(b"\n") + 1)
    try:
        document = tomllib.loads(text)
    except RecursionError:
        return broken("is nested too deeply")
    except tomllib.TOMLDecodeError as fault:
        line = re.search(r"at line (\d+)", str(fault))
        # Without a number it is the end of the file, where something that never ends is noticed.
        where = int(line[1]) if line else text.count("\n") + 1
        what = re.sub(r"\s*\(at .*\)$", "", str(fault))
        return broken(f"is not valid TOML ({what}); nothing in this file is used", where)
    return _checked(document, source, str(path), text)


def from_client(config: Mapping[str, Any]) -> Layer:
    """The layer of ``initializationOptions.callboard.config``: names in camelCase are taken, too,
    and so are dotted keys."""
    return _checked(_nested(config), "client", "initializationOptions.callboard.config", None)


def from_environment(environ: Mapping[str, str]) -> Layer:
    """The layer of the ``CALLBOARD_*`` variables. A blank one counts as absent."""
    given: list[Given] = []
    warnings: list[ConfigWarning] = []
    for name, text in environ.items():
        if not name.startswith("CALLBOARD_") or not text.strip() or name in _OTHER_VARIABLES:
            continue
        key = VARIABLES.get(name)
        if key is None:
            message = "is no setting" + did_you_mean(name, VARIABLES)
            warnings.append(ConfigWarning(source="environment", place=name, message=message))
            continue
        try:
            value = KINDS[key].from_text(text)
        except Unfit as unfit:
            fault = ConfigWarning(source="environment", place=name, key=key, message=str(unfit))
            warnings.append(fault)
            if unfit.rest is None:
                continue
            value = unfit.rest
        given.append(Given(key=key, value=value, source="environment", place=name))
    return Layer(given=tuple(given), warnings=tuple(warnings))


def _checked(document: Mapping[str, Any], source: Source, place: str, text: str | None) -> Layer:
    given: list[Given] = []
    warnings: list[ConfigWarning] = []

    def warn(key: str, message: str) -> None:
        line = _line_of(text, key)
        warnings.append(
            ConfigWarning(source=source, place=place, key=key, line=line, message=message)
        )

    for key, value in _leaves(document):
        kind = KINDS.get(key)
        if source == "client" and key.startswith(USER_ONLY):
            warn(key, "may only be set in your own config.toml; it is ignored")
        elif source == "workspace" and _may_not(key):
            warn(key, "a workspace may not set this; it is ignored. Set it in your own config.toml")
        elif kind is None and key in GROUPS:
            warn(key, "expected a table")
        elif kind is None:
            warn(key, "is no setting" + did_you_mean(key, KINDS))
        else:
            try:
                fitting = kind.parse(value)
            except Unfit as unfit:
                warn(key, str(unfit))
                if unfit.rest is None:
                    continue
                fitting = unfit.rest
            line = _line_of(text, key)
            given.append(Given(key=key, value=fitting, source=source, place=place, line=line))
    return Layer(given=tuple(given), warnings=tuple(warnings))


def _may_not(key: str) -> bool:
    """Whether a workspace's file must not say this; what is no setting at all is told otherwise."""
    known = key in KINDS or key.partition(".")[0] in GROUPS or key in GROUPS
    return known and key not in WORKSPACE_KEYS


def _leaves(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in document.items():
        if name in GROUPS and isinstance(value, dict):
            for inner, item in cast("dict[str, Any]", value).items():
                yield f"{name}.{inner}", item
        else:
            yield name, value


def _nested(config: Mapping[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for name, value in config.items():
        head, dot, rest = name.partition(".")
        head = _snake(head)
        if head not in GROUPS:
            document[head if not dot else name] = value
        elif dot:
            _group(document, head)[_snake(rest)] = value
        elif isinstance(value, dict):
            inner = cast("dict[str, Any]", value)
            _group(document, head).update({_snake(key): item for key, item in inner.items()})
        else:
            document[head] = value
    return document


def _group(document: dict[str, Any], name: str) -> dict[str, Any]:
    found = document.setdefault(name, {})
    if not isinstance(found, dict):
        found = document[name] = {}
    return cast("dict[str, Any]", found)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda m: "_" + m[1].lower(), name)


def _line_of(text: str | None, key: str) -> int | None:
    """The line of a TOML file on which `key` is given. A good guess: the parser does not tell."""
    if text is None:
        return None
    group = key.rpartition(".")[0]
    table = ""
    fallback = None
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if header := re.match(r"\[\[?\s*([^\]]+?)\s*\]", stripped):
            table = header[1].replace('"', "").replace(" ", "")
            if table == key or table.startswith(key + "."):
                return number
            if table == group:
                fallback = number
        elif assignment := re.match(r"([A-Za-z0-9_.\"'\s-]+?)\s*=", stripped):
            left = assignment[1].replace('"', "").replace("'", "").replace(" ", "")
            full = f"{table}.{left}" if table else left
            if full == key or full.startswith(key + "."):
                return number
            if full == group:  # an inline table
                fallback = number
    return fallback
