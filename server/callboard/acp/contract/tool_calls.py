"""Tool calls, and what a person is asked about them."""

from typing import Any, Literal, TypeAlias

from callboard_rpc.common import Json
from callboard_rpc.frozen import frozen

from .content import ContentBlock

ToolKind: TypeAlias = Literal[
    "read",
    "edit",
    "delete",
    "move",
    "search",
    "execute",
    "think",
    "fetch",
    "switch_mode",
    "other",
]
ToolCallStatus: TypeAlias = Literal["pending", "in_progress", "completed", "failed"]
PermissionOptionKind: TypeAlias = Literal[
    "allow_once", "allow_always", "reject_once", "reject_always"
]


@frozen(kw_only=True)
class Content:
    content: ContentBlock
    type: Literal["content"] = "content"
    meta: Json | None = None


@frozen(kw_only=True)
class Diff:
    """A change of one file; `old_text` is null for a new one."""

    path: str
    new_text: str
    type: Literal["diff"] = "diff"
    old_text: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class Terminal:
    terminal_id: str
    type: Literal["terminal"] = "terminal"
    meta: Json | None = None


ToolCallContent: TypeAlias = Content | Diff | Terminal
TOOL_CALL_CONTENTS: dict[str, type[object]] = {
    "content": Content,
    "diff": Diff,
    "terminal": Terminal,
}


@frozen(kw_only=True)
class ToolCallLocation:
    """`path` is absolute, `line` counts from 1."""

    path: str
    line: int | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class ToolCallUpdate:
    """A patch of a tool call: what is absent did not change."""

    tool_call_id: str
    title: str | None = None
    name: str | None = None
    kind: ToolKind | None = None
    status: ToolCallStatus | None = None
    content: tuple[ToolCallContent, ...] | None = None
    locations: tuple[ToolCallLocation, ...] | None = None
    raw_input: Any = None
    raw_output: Any = None
    meta: Json | None = None


@frozen(kw_only=True)
class PermissionOption:
    option_id: str
    name: str
    kind: PermissionOptionKind
    meta: Json | None = None


@frozen(kw_only=True)
class RequestPermissionRequest:
    session_id: str
    tool_call: ToolCallUpdate
    options: tuple[PermissionOption, ...]
    meta: Json | None = None


@frozen(kw_only=True)
class CancelledPermissionOutcome:
    """The turn was cancelled before the person decided."""

    outcome: Literal["cancelled"] = "cancelled"


@frozen(kw_only=True)
class SelectedPermissionOutcome:
    option_id: str
    outcome: Literal["selected"] = "selected"
    meta: Json | None = None


RequestPermissionOutcome: TypeAlias = CancelledPermissionOutcome | SelectedPermissionOutcome
PERMISSION_OUTCOMES: dict[str, type[object]] = {
    "cancelled": CancelledPermissionOutcome,
    "selected": SelectedPermissionOutcome,
}


@frozen(kw_only=True)
class RequestPermissionResponse:
    outcome: RequestPermissionOutcome
    meta: Json | None = None
