"""``session/update``: what an agent tells of a session as it happens."""

from typing import Any, Literal, TypeAlias

from callboard_rpc.common import Json
from callboard_rpc.frozen import frozen

from .content import ContentBlock
from .sessions import SessionConfigOption
from .tool_calls import ToolCallContent, ToolCallLocation, ToolCallStatus, ToolKind


@frozen(kw_only=True)
class UserMessageChunk:
    content: ContentBlock
    message_id: str | None = None
    session_update: Literal["user_message_chunk"] = "user_message_chunk"
    meta: Json | None = None


@frozen(kw_only=True)
class AgentMessageChunk:
    content: ContentBlock
    message_id: str | None = None
    session_update: Literal["agent_message_chunk"] = "agent_message_chunk"
    meta: Json | None = None


@frozen(kw_only=True)
class AgentThoughtChunk:
    content: ContentBlock
    message_id: str | None = None
    session_update: Literal["agent_thought_chunk"] = "agent_thought_chunk"
    meta: Json | None = None


@frozen(kw_only=True)
class ToolCall:
    """A tool call that begins, whole."""

    tool_call_id: str
    title: str
    session_update: Literal["tool_call"] = "tool_call"
    name: str | None = None
    kind: ToolKind | None = None
    status: ToolCallStatus | None = None
    content: tuple[ToolCallContent, ...] | None = None
    locations: tuple[ToolCallLocation, ...] | None = None
    raw_input: Any = None
    raw_output: Any = None
    meta: Json | None = None


@frozen(kw_only=True)
class ToolCallChanged:
    """`ToolCallUpdate` as an update: what is absent did not change."""

    tool_call_id: str
    session_update: Literal["tool_call_update"] = "tool_call_update"
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
class PlanEntry:
    content: str
    priority: Literal["high", "medium", "low"]
    status: Literal["pending", "in_progress", "completed"]
    meta: Json | None = None


@frozen(kw_only=True)
class Plan:
    """The whole plan; replaces the one before."""

    entries: tuple[PlanEntry, ...]
    session_update: Literal["plan"] = "plan"
    meta: Json | None = None


@frozen(kw_only=True)
class UnstructuredCommandInput:
    hint: str
    meta: Json | None = None


@frozen(kw_only=True)
class AvailableCommand:
    name: str
    description: str
    input: UnstructuredCommandInput | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class AvailableCommandsUpdate:
    available_commands: tuple[AvailableCommand, ...]
    session_update: Literal["available_commands_update"] = "available_commands_update"
    meta: Json | None = None


@frozen(kw_only=True)
class CurrentModeUpdate:
    current_mode_id: str
    session_update: Literal["current_mode_update"] = "current_mode_update"
    meta: Json | None = None


@frozen(kw_only=True)
class ConfigOptionUpdate:
    config_options: tuple[SessionConfigOption, ...]
    session_update: Literal["config_option_update"] = "config_option_update"
    meta: Json | None = None


@frozen(kw_only=True)
class SessionInfoUpdate:
    title: str | None = None
    updated_at: str | None = None
    session_update: Literal["session_info_update"] = "session_info_update"
    meta: Json | None = None


@frozen(kw_only=True)
class Cost:
    amount: float
    currency: str


@frozen(kw_only=True)
class UsageUpdate:
    """Tokens of the context that are used, of so many (`size`)."""

    used: int
    size: int
    cost: Cost | None = None
    session_update: Literal["usage_update"] = "usage_update"
    meta: Json | None = None


@frozen(kw_only=True)
class Notice:
    """Something for the person that is no part of the conversation. Only to clients that declare it."""

    severity: Literal["info", "warning", "error"]
    title: str
    description: str | None = None
    session_update: Literal["notice"] = "notice"
    meta: Json | None = None


@frozen(kw_only=True)
class CompactionUpdate:
    """Only to clients that declare it."""

    compaction_id: str
    status: Literal["in_progress", "completed", "failed", "cancelled"]
    summary: tuple[ContentBlock, ...] | None = None
    error: str | None = None
    session_update: Literal["compaction_update"] = "compaction_update"
    meta: Json | None = None


@frozen(kw_only=True)
class CompactionSummaryChunk:
    """Only to clients that declare it."""

    compaction_id: str
    content: ContentBlock
    session_update: Literal["compaction_summary_chunk"] = "compaction_summary_chunk"
    meta: Json | None = None


SessionUpdate: TypeAlias = (
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | ToolCall
    | ToolCallChanged
    | Plan
    | AvailableCommandsUpdate
    | CurrentModeUpdate
    | ConfigOptionUpdate
    | SessionInfoUpdate
    | UsageUpdate
    | Notice
    | CompactionUpdate
    | CompactionSummaryChunk
)
SESSION_UPDATES: dict[str, type[object]] = {
    "user_message_chunk": UserMessageChunk,
    "agent_message_chunk": AgentMessageChunk,
    "agent_thought_chunk": AgentThoughtChunk,
    "tool_call": ToolCall,
    "tool_call_update": ToolCallChanged,
    "plan": Plan,
    "available_commands_update": AvailableCommandsUpdate,
    "current_mode_update": CurrentModeUpdate,
    "config_option_update": ConfigOptionUpdate,
    "session_info_update": SessionInfoUpdate,
    "usage_update": UsageUpdate,
    "notice": Notice,
    "compaction_update": CompactionUpdate,
    "compaction_summary_chunk": CompactionSummaryChunk,
}


@frozen(kw_only=True)
class SessionNotification:
    session_id: str
    update: SessionUpdate
    meta: Json | None = None
