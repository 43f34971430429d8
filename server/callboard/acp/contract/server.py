"""``initialize`` and authentication: what each side can do."""

from typing import Literal, TypeAlias

from callboard_rpc.common import Json
from callboard_rpc.frozen import frozen

PROTOCOL_VERSION = 1


@frozen(kw_only=True)
class Marker:
    """Something that is offered. It is there, as an object, or it is not: never true or false."""

    meta: Json | None = None


@frozen(kw_only=True)
class Implementation:
    name: str
    version: str
    title: str | None = None
    meta: Json | None = None


# --- the client's side ----------------------------------------------------------------------------


@frozen(kw_only=True)
class FileSystemCapabilities:
    read_text_file: bool = False
    write_text_file: bool = False
    meta: Json | None = None


@frozen(kw_only=True)
class SessionConfigOptionsCapabilities:
    boolean: Marker | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class ClientSessionCapabilities:
    config_options: SessionConfigOptionsCapabilities | None = None
    compaction: Marker | None = None
    notices: Marker | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class AuthCapabilities:
    terminal: bool = False
    meta: Json | None = None


@frozen(kw_only=True)
class ElicitationCapabilities:
    form: Marker | None = None
    url: Marker | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class ClientCapabilities:
    fs: FileSystemCapabilities = FileSystemCapabilities()
    terminal: bool = False
    session: ClientSessionCapabilities | None = None
    auth: AuthCapabilities = AuthCapabilities()
    elicitation: ElicitationCapabilities | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class InitializeRequest:
    protocol_version: int
    client_capabilities: ClientCapabilities = ClientCapabilities()
    client_info: Implementation | None = None
    meta: Json | None = None


# --- the agent's side -----------------------------------------------------------------------------


@frozen(kw_only=True)
class PromptCapabilities:
    image: bool = False
    audio: bool = False
    embedded_context: bool = False
    meta: Json | None = None


@frozen(kw_only=True)
class McpCapabilities:
    http: bool = False
    sse: bool = False
    meta: Json | None = None


@frozen(kw_only=True)
class SessionCapabilities:
    list: Marker | None = None
    delete: Marker | None = None
    additional_directories: Marker | None = None
    resume: Marker | None = None
    close: Marker | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class AgentAuthCapabilities:
    logout: Marker | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class AgentCapabilities:
    load_session: bool = False
    prompt_capabilities: PromptCapabilities = PromptCapabilities()
    mcp_capabilities: McpCapabilities = McpCapabilities()
    session_capabilities: SessionCapabilities = SessionCapabilities()
    auth: AgentAuthCapabilities = AgentAuthCapabilities()
    meta: Json | None = None


@frozen(kw_only=True)
class AuthMethodAgent:
    """The agent sees to it itself."""

    id: str
    name: str
    description: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class AuthMethodTerminal:
    """The client runs the agent's own command with these arguments in a terminal of the person's."""

    id: str
    name: str
    type: Literal["terminal"] = "terminal"
    description: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] | None = None
    meta: Json | None = None


AuthMethod: TypeAlias = AuthMethodAgent | AuthMethodTerminal


@frozen(kw_only=True)
class InitializeResponse:
    protocol_version: int
    agent_capabilities: AgentCapabilities = AgentCapabilities()
    auth_methods: tuple[AuthMethod, ...] = ()
    agent_info: Implementation | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class AuthenticateRequest:
    method_id: str
    meta: Json | None = None


@frozen(kw_only=True)
class AuthenticateResponse:
    meta: Json | None = None


@frozen(kw_only=True)
class LogoutRequest:
    meta: Json | None = None


@frozen(kw_only=True)
class LogoutResponse:
    meta: Json | None = None


@frozen(kw_only=True)
class CancelRequestNotification:
    """``$/cancel_request``, both ways."""

    request_id: int | str
    meta: Json | None = None
