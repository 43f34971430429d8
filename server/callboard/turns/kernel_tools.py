"""Tools that change only Callboard's own state (agents, groups, schedules, links): the run that calls, what is
shown of a call, and errors as results that begin with codes."""

from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any, TypeAlias, cast

import attrs

from callboard_rpc.approvals import ToolCallSubject
from callboard_rpc.errors import CallboardError

from ..tools.base import Preview, Run, Tool, ToolContext, ToolFailure, ToolOutcome
from ..tools.display import one_line
from .reservation import Grant

INVALID = "invalid_argument"
"""The code of arguments that are not valid."""

_ERROR_CHARS = 2_000
_SHOWN_CHARS = 400

Coded: TypeAlias = Callable[[Run], Run]

Called: TypeAlias = Callable[[ToolContext, str], str]
"""What people call that which an argument names by its id; the argument itself where nothing is known of it."""


def grant_of(context: ToolContext) -> Grant:
    """The right to write of the run that makes the call."""
    return Grant(session_id=context.session, turn_id=context.turn, fence=context.fence)


# --- errors -------------------------------------------------------------------------------------


def coded(codes: Mapping[str, str]) -> Coded:
    """Turns errors of these kinds into results that begin with their codes, which stay, before a text that may
    change. What ends the turn (a store that fails) is raised as it is."""

    def decorate(run: Run) -> Run:
        @wraps(run)
        async def guarded(context: ToolContext, arguments: Any) -> ToolOutcome:
            try:
                return await run(context, arguments)
            except CallboardError as error:
                code = codes.get(error.kind)
                if code is None:
                    raise
                raise ToolFailure(f"{code}: {one_line(error.message, _ERROR_CHARS)}") from error

        return guarded

    return decorate


def refuse_other_fields(
    arguments: Any, operation: str, allowed: Mapping[str, tuple[str, ...]]
) -> None:
    """Raises `ToolFailure` for a field that does not belong to the operation, and names those that do
    (coordination 109)."""
    for name in _plain(arguments):
        if name != "op" and name not in allowed[operation]:
            fields = ", ".join(allowed[operation]) or "none"
            raise ToolFailure(
                f"{INVALID}: {operation} has no field {name!r}; its fields are: {fields}"
            )


def required(arguments: Any, operation: str, *names: str) -> None:
    """Raises `ToolFailure` for one that is absent."""
    for name in names:
        if getattr(arguments, name) is None:
            raise ToolFailure(f"{INVALID}: {operation} needs {name}")


# --- the tool -----------------------------------------------------------------------------------


def kernel_tool(
    name: str,
    description: str,
    arguments: type[Any],
    run: Run,
    title: Callable[[Any], str],
    *,
    called: Mapping[str, Called] | None = None,
    waits: bool = False,
    permission: str | None = None,
) -> Tool:
    """A tool whose preview shows the arguments; `title` says of them what it will do. It is given those that
    `called` knows better by the names that people have for them."""
    return Tool(
        name=name,
        description=description,
        arguments=arguments,
        effect="kernel",
        kind="other",
        run=run,
        preview=_preview_as(title, name, called or {}),
        waits=waits,
        permission=permission,
        invalid_code=INVALID,
    )


def _preview_as(
    title: Callable[[Any], str], name: str, called: Mapping[str, Called]
) -> Callable[..., Awaitable[Preview]]:
    async def preview(context: ToolContext, arguments: Any) -> Preview:
        shown = {
            key: one_line(value, _SHOWN_CHARS) if isinstance(value, str) else value
            for key, value in _plain(arguments).items()
        }
        known = {
            key: called_so(context, value)
            for key, called_so in called.items()
            if isinstance(value := getattr(arguments, key), str)
        }
        return Preview(
            title=one_line(title(attrs.evolve(arguments, **known))),
            subject=ToolCallSubject(name=name, arguments=shown),
            risk="low",
        )

    return preview


def _plain(arguments: Any) -> dict[str, Any]:
    """The arguments that were given."""
    given: dict[str, Any] = attrs.asdict(arguments, recurse=False)
    return {
        key: list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else value
        for key, value in given.items()
        if value is not None
    }
