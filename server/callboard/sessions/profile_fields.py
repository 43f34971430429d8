"""The fields of a profile's front matter, and what may stand in each."""

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias, cast

from callboard_rpc.common import Limits

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class ProfileFault(ValueError):
    """A profile's file cannot be used; the text names the field."""


def front_matter(front: str) -> dict[str, Any]:
    """The fields of a YAML front matter, as they are written. Raises `ProfileFault`."""
    import yaml

    try:
        fields: Any = yaml.safe_load(front)
    except yaml.YAMLError as fault:
        mark = getattr(fault, "problem_mark", None)
        where = f" in line {mark.line + 2}" if mark is not None else ""
        what = getattr(fault, "problem", None) or "it cannot be read"
        raise ProfileFault(f"the front matter is not YAML{where}: {what}") from None
    except (ValueError, RecursionError):
        raise ProfileFault("the front matter is not YAML") from None
    if fields is None:
        return {}
    if not isinstance(fields, dict):
        raise ProfileFault("the front matter must be fields, one a line: name: value")
    return {str(key): value for key, value in cast("dict[Any, Any]", fields).items()}


_Reader: TypeAlias = Callable[[Any], dict[str, Any]]


def _text(name: str, most: int) -> _Reader:
    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, str) or not value.strip() or len(value) > most:
            raise ProfileFault(f"expected text of at most {most} characters")
        return {name: " ".join(value.split())}

    return read


def _one_of(name: str, choices: tuple[str, ...]) -> _Reader:
    def read(value: Any) -> dict[str, Any]:
        if value not in choices:
            raise ProfileFault(f"expected one of {', '.join(choices)}")
        return {name: value}

    return read


def _words(name: str) -> _Reader:
    def read(value: Any) -> dict[str, Any]:
        if isinstance(value, str):
            value = [part.strip() for part in value.split(",") if part.strip()]
        if not isinstance(value, list) or not all(
            isinstance(item, str) and item.strip() for item in cast("list[Any]", value)
        ):
            raise ProfileFault("expected a list of names")
        items = cast("list[str]", value)
        return (
            {} if items == ["*"] else {name: tuple(dict.fromkeys(item.strip() for item in items))}
        )

    return read


def _command(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        import shlex

        try:
            value = shlex.split(value)
        except ValueError as fault:
            raise ProfileFault(f"is no command line: {fault}") from None
    words = cast("list[Any]", value)
    if not isinstance(value, list) or not words or not all(isinstance(w, str) and w for w in words):
        raise ProfileFault("expected a program and its arguments, as a list")
    return {"command": tuple(cast("list[str]", words))}


def _env(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ProfileFault("expected variables of the environment: NAME: text")
    env: dict[str, str] = {}
    for key, item in cast("dict[Any, Any]", value).items():
        name = str(key)
        if not _VARIABLE.fullmatch(name):
            raise ProfileFault(f"{name[:64]!r} is no name of a variable")
        if not isinstance(item, str | int | float) or isinstance(item, bool) or "\x00" in str(item):
            raise ProfileFault(f"{name}: expected a text")
        env[name] = str(item)
    return {"env": env}


def _flag(name: str) -> _Reader:
    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, bool):
            raise ProfileFault("expected true or false")
        return {name: value}

    return read


def _limits(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ProfileFault("expected fields: turns, tokens, cost, timeout_ms")
    values: dict[str, Any] = {}
    for key, item in cast("dict[Any, Any]", value).items():
        name = "timeout_ms" if key == "timeoutMs" else str(key)
        if name not in ("turns", "tokens", "cost", "timeout_ms"):
            raise ProfileFault(f"{name}: is no limit; there are turns, tokens, cost, timeout_ms")
        accepted = (int, float) if name == "cost" else (int,)
        if type(item) not in accepted or not 0 < item < float("inf"):
            raise ProfileFault(f"{name}: expected a number above 0")
        values[name] = float(item) if name == "cost" else item
    return {"limits": Limits(**values)}


def _context(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or set(cast("dict[Any, Any]", value)) - {"tools"}:
        raise ProfileFault("expected the field tools")
    tools = cast("dict[str, Any]", value).get("tools", "replay")
    return _one_of("context_tools", ("replay", "audit"))(tools)


READERS: Final[dict[str, _Reader]] = {
    "name": _text("name", 64),
    "description": _text("description", 1000),
    "model": _text("model", 200),
    "tools": _words("tools"),
    "mode": _one_of("mode", ("ask", "plan", "work")),
    "effort": _one_of("effort", ("low", "medium", "high")),
    "limits": _limits,
    "context": _context,
    "context.tools": _one_of("context_tools", ("replay", "audit")),
    "text_tool_calls": _flag("text_tool_calls"),
    "kind": _one_of("kind", ("builtin", "acp")),
    "command": _command,
    "env": _env,
    "inherit_env": _flag("inherit_env"),
}
