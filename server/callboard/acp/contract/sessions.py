"""Sessions: how they begin, what can be set, how they are prompted and how they end."""

from typing import Literal, TypeAlias

from callboard_rpc.common import Json
from callboard_rpc.frozen import frozen

from .content import ContentBlock

StopReason: TypeAlias = Literal[
    "end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"
]

# --- MCP servers that a client wants an agent to use ------------------------------------------------


@frozen(kw_only=True)
class EnvVariable:
    name: str
    value: str
    meta: Json | None = None


@frozen(kw_only=True)
class HttpHeader:
    name: str
    value: str
    meta: Json | None = None


@frozen(kw_only=True)
class McpServerHttp:
    name: str
    url: str
    headers: tuple[HttpHeader, ...]
    type: Literal["http"] = "http"
    meta: Json | None = None


@frozen(kw_only=True)
class McpServerSse:
    name: str
    url: str
    headers: tuple[HttpHeader, ...]
    type: Literal["sse"] = "sse"
    meta: Json | None = None


@frozen(kw_only=True)
class McpServerStdio:
    name: str
    command: str
    args: tuple[str, ...] = ()
    env: tuple[EnvVariable, ...] = ()
    meta: Json | None = None


McpServer: TypeAlias = McpServerHttp | McpServerSse | McpServerStdio
MCP_SERVERS: dict[str, type[object]] = {"http": McpServerHttp, "sse": McpServerSse}

# --- modes and options ------------------------------------------------------------------------------


@frozen(kw_only=True)
class SessionMode:
    id: str
    name: str
    description: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class SessionModeState:
    current_mode_id: str
    available_modes: tuple[SessionMode, ...]
    meta: Json | None = None


@frozen(kw_only=True)
class SessionConfigSelectOption:
    value: str
    name: str
    description: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class SessionConfigSelectGroup:
    group: str
    name: str
    options: tuple[SessionConfigSelectOption, ...]
    meta: Json | None = None


SelectEntry: TypeAlias = SessionConfigSelectOption | SessionConfigSelectGroup
"""A list holds either options or groups of them, never both."""


@frozen(kw_only=True)
class SessionConfigSelect:
    id: str
    name: str
    current_value: str
    options: tuple[SelectEntry, ...]
    type: Literal["select"] = "select"
    description: str | None = None
    category: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class SessionConfigBoolean:
    id: str
    name: str
    current_value: bool
    type: Literal["boolean"] = "boolean"
    description: str | None = None
    category: str | None = None
    meta: Json | None = None


SessionConfigOption: TypeAlias = SessionConfigSelect | SessionConfigBoolean
CONFIG_OPTIONS: dict[str, type[object]] = {
    "select": SessionConfigSelect,
    "boolean": SessionConfigBoolean,
}

# --- beginning --------------------------------------------------------------------------------------


@frozen(kw_only=True)
class NewSessionRequest:
    """`cwd` is absolute. That `mcp_servers` may be left out is more than the schema says."""

    cwd: str
    mcp_servers: tuple[McpServer, ...] = ()
    additional_directories: tuple[str, ...] = ()
    meta: Json | None = None


@frozen(kw_only=True)
class NewSessionResponse:
    session_id: str
    modes: SessionModeState | None = None
    config_options: tuple[SessionConfigOption, ...] | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class LoadSessionRequest:
    session_id: str
    cwd: str
    mcp_servers: tuple[McpServer, ...] = ()
    additional_directories: tuple[str, ...] = ()
    meta: Json | None = None


@frozen(kw_only=True)
class LoadSessionResponse:
    modes: SessionModeState | None = None
    config_options: tuple[SessionConfigOption, ...] | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class ResumeSessionRequest:
    session_id: str
    cwd: str
    mcp_servers: tuple[McpServer, ...] = ()
    additional_directories: tuple[str, ...] = ()
    meta: Json | None = None


@frozen(kw_only=True)
class ResumeSessionResponse:
    modes: SessionModeState | None = None
    config_options: tuple[SessionConfigOption, ...] | None = None
    meta: Json | None = None


# --- the list ---------------------------------------------------------------------------------------


@frozen(kw_only=True)
class ListSessionsRequest:
    cwd: str | None = None
    cursor: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class SessionInfo:
    """`updated_at` is RFC 3339."""

    session_id: str
    cwd: str
    title: str | None = None
    updated_at: str | None = None
    additional_directories: tuple[str, ...] = ()
    meta: Json | None = None


@frozen(kw_only=True)
class ListSessionsResponse:
    sessions: tuple[SessionInfo, ...]
    next_cursor: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class DeleteSessionRequest:
    session_id: str
    meta: Json | None = None


@frozen(kw_only=True)
class DeleteSessionResponse:
    meta: Json | None = None


@frozen(kw_only=True)
class CloseSessionRequest:
    session_id: str
    meta: Json | None = None


@frozen(kw_only=True)
class CloseSessionResponse:
    meta: Json | None = None


# --- working ----------------------------------------------------------------------------------------


@frozen(kw_only=True)
class SetSessionModeRequest:
    session_id: str
    mode_id: str
    meta: Json | None = None


@frozen(kw_only=True)
class SetSessionModeResponse:
    meta: Json | None = None


@frozen(kw_only=True)
class SetSessionConfigOptionRequest:
    """`value` is an option's, or true or false, with the `type` ``boolean``."""

    session_id: str
    config_id: str
    value: str | bool
    type: Literal["boolean"] | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class SetSessionConfigOptionResponse:
    config_options: tuple[SessionConfigOption, ...]
    meta: Json | None = None


@frozen(kw_only=True)
class PromptRequest:
    session_id: str
    prompt: tuple[ContentBlock, ...]
    meta: Json | None = None


@frozen(kw_only=True)
class PromptResponse:
    stop_reason: StopReason
    meta: Json | None = None


@frozen(kw_only=True)
class CancelNotification:
    """``session/cancel``: ends the turn of a session; its prompts answer ``cancelled``."""

    session_id: str
    meta: Json | None = None
