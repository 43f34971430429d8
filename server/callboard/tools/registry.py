"""The tools that there are, and which of them a session may use."""

import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import attrs

from ..models.base import ToolSpec
from .base import Tool
from .schema import json_schema

Scope: TypeAlias = frozenset[str] | None
"""Names, and globs of the form ``server__*``; None is every tool, the empty set is none."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_GLOB_END = "__*"


class ToolRegistry:
    """Tools by name, in the order in which they were registered, which never changes.

    A model's prompt cache holds only while the list of tools stays the same, so `specs` is stable.
    """

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        self._specs: dict[str, ToolSpec] = {}
        for tool in tools:
            self.register(tool)

    def register(self, tool: Tool) -> None:
        """Adds `tool`. Raises `ValueError` when its name is taken or no name, `TypeError` when its
        arguments have no schema: faults of the program, found when the host starts."""
        if _NAME.match(tool.name) is None:
            raise ValueError(
                f"{tool.name!r} is no name for a tool: 1 to 64 letters, digits, '_' and '-'"
            )
        if tool.name in self._tools:
            raise ValueError(f"there is already a tool {tool.name}; the first one keeps its name")
        schema = tool.schema or json_schema(tool.arguments)
        self._tools[tool.name] = attrs.evolve(tool, schema=schema)
        self._specs[tool.name] = ToolSpec(
            name=tool.name, description=tool.description, schema=schema
        )

    def get(self, name: str) -> Tool | None:
        """The tool called `name`, or None."""
        return self._tools.get(name)

    def __iter__(self) -> Iterator[Tool]:
        return iter(tuple(self._tools.values()))

    def specs(self, scope: Scope = None) -> tuple[ToolSpec, ...]:
        """The tools of `scope` as a model sees them, in the order of registration."""
        return tuple(spec for name, spec in self._specs.items() if in_scope(name, scope))


def in_scope(name: str, scope: Scope) -> bool:
    """Whether `scope` holds the tool `name`. ``server__*`` holds ``server__x`` and nothing else."""
    if scope is None or name in scope:
        return True
    return any(
        entry.endswith(_GLOB_END) and len(name) > len(entry) - 1 and name.startswith(entry[:-1])
        for entry in scope
    )


def narrow(parent: Scope, child: Scope) -> Scope:
    """What a child may use: only ever what both allow (`specs/session-messaging.md` 5)."""
    if parent is None or child is None:
        return child if parent is None else parent
    return frozenset(name for name in child if _covers(parent, name)) | frozenset(
        name for name in parent if _covers(child, name)
    )


def _covers(scope: frozenset[str], entry: str) -> bool:
    """Whether everything that `entry` (a name or a glob) holds is in `scope`."""
    if entry in scope:
        return True
    if entry.endswith(_GLOB_END):
        return any(wide.endswith(_GLOB_END) and entry.startswith(wide[:-1]) for wide in scope)
    return in_scope(entry, scope)
