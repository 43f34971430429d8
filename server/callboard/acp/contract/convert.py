"""Between JSON and the classes of the protocol: strict for what our own clients send, lenient for agents."""

import functools
from typing import Any, TypeVar

from cattrs import Converter

from callboard_rpc.convert import StructureError, TaggedUnion, explained, make_converter

from . import content, server, services, sessions, tool_calls, updates

__all__ = ["StructureError", "structure", "structure_lenient", "unstructure"]

T = TypeVar("T")

UNIONS = (
    TaggedUnion(union=content.ContentBlock, members=content.CONTENT_BLOCKS),
    TaggedUnion(union=tool_calls.ToolCallContent, members=tool_calls.TOOL_CALL_CONTENTS),
    TaggedUnion(
        union=tool_calls.RequestPermissionOutcome,
        members=tool_calls.PERMISSION_OUTCOMES,
        tag="outcome",
    ),
    TaggedUnion(union=updates.SessionUpdate, members=updates.SESSION_UPDATES, tag="sessionUpdate"),
    TaggedUnion(union=sessions.SessionConfigOption, members=sessions.CONFIG_OPTIONS),
    TaggedUnion(
        union=sessions.McpServer, members=sessions.MCP_SERVERS, otherwise=sessions.McpServerStdio
    ),
    TaggedUnion(
        union=server.AuthMethod,
        members={"terminal": server.AuthMethodTerminal, "agent": server.AuthMethodAgent},
        otherwise=server.AuthMethodAgent,
    ),
    TaggedUnion(
        union=services.CreateElicitationResponse,
        members=services.ELICITATION_ANSWERS,
        tag="action",
    ),
)


def _converter(*, detailed: bool = False, lenient: bool = False) -> Converter:
    converter = make_converter(
        detailed=detailed, lenient=lenient, unions=UNIONS, null_is_absent=True
    )

    def by_field(union: Any, field: str, there: type[Any], absent: type[Any]) -> None:
        def structure(value: Any, _: Any) -> Any:
            cls = there if isinstance(value, dict) and field in value else absent
            return converter.structure(value, cls)

        converter.register_structure_hook_func(lambda cls: cls == union, structure)

    by_field(
        content.EmbeddedResourceResource,
        "blob",
        content.BlobResourceContents,
        content.TextResourceContents,
    )
    by_field(
        sessions.SelectEntry,
        "group",
        sessions.SessionConfigSelectGroup,
        sessions.SessionConfigSelectOption,
    )
    marker = converter.get_structure_hook(server.Marker)

    def offered(value: Any, _: Any) -> server.Marker | None:
        """Some say true where an object belongs, and false where nothing does."""
        if isinstance(value, bool):
            return server.Marker() if value else None
        return None if value is None else marker(value, server.Marker)

    converter.register_structure_hook_func(lambda cls: cls == server.Marker | None, offered)
    return converter


_fast = _converter()


@functools.cache
def _of(*, detailed: bool, lenient: bool) -> Converter:
    return _converter(detailed=detailed, lenient=lenient)


def structure(value: Any, cls: type[T]) -> T:
    """`value` (parsed JSON) as a `cls`. Raises `StructureError` that names each faulty path."""
    try:
        return _fast.structure(value, cls)
    except Exception as fault:
        raise explained(value, cls, fault, _of(detailed=True, lenient=False)) from None


def structure_lenient(value: Any, cls: type[T]) -> T:
    """Like `structure`, for what an agent sent: variants and values that are not known pass."""
    try:
        return _of(detailed=False, lenient=True).structure(value, cls)
    except Exception as fault:
        raise explained(value, cls, fault, _of(detailed=True, lenient=True)) from None


def unstructure(value: Any) -> Any:
    """`value` as plain dicts and lists with the wire's names, ready for a JSON encoder."""
    return _fast.unstructure(value)
