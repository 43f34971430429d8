"""Handshake, ``server/*``, ``config/*``, ``model/*``, ``profile/*``, ``blob/*`` and client methods."""

from typing import Any, Literal

from attrs import field

from .common import BlobId, Cursor, Json, Mode, Range
from .frozen import frozen
from .profiles import ProfileStatus


@frozen(kw_only=True)
class PeerInfo:
    name: str
    version: str | None = None


@frozen(kw_only=True)
class ClientCapabilities:
    """What the server may send to this client. Everything is off unless declared."""

    approvals: bool = False
    deltas: bool = True
    apply_edit: bool = False
    read_file: bool = False


@frozen(kw_only=True)
class CallboardOptions:
    """Callboard's part of ``initialize``: in LSP framing under ``initializationOptions.callboard``."""

    protocol_versions: tuple[str, ...] = ("1.0",)
    client_id: str | None = None
    client_info: PeerInfo | None = None
    capabilities: ClientCapabilities = field(factory=ClientCapabilities)
    experimental: bool = False
    config: Json | None = None


@frozen(kw_only=True)
class InitializeParams:
    """LSP's params as far as Callboard reads them; the rest is left alone."""

    process_id: int | None = None
    client_info: PeerInfo | None = None
    root_uri: str | None = None
    initialization_options: Json | None = None
    callboard: CallboardOptions | None = None


@frozen(kw_only=True)
class ServerLimits:
    """Bytes and counts that this server holds clients to. Of agents: levels below a root session, and
    children of one parent that are open, and that run at once."""

    max_frame_bytes: int
    page_items: int
    page_bytes: int
    window: int
    agent_depth: int | None = None
    agents_open: int | None = None
    agents_running: int | None = None


@frozen(kw_only=True)
class HandshakeResult:
    """``capabilities.experimental.callboard`` of the answer to ``initialize``."""

    protocol_version: str
    store_id: str
    host_id: str
    server_info: PeerInfo
    features: dict[str, bool]
    limits: ServerLimits
    head: Cursor


@frozen(kw_only=True)
class InitializeResult:
    capabilities: Json
    server_info: PeerInfo


@frozen(kw_only=True)
class ServerInfo:
    name: str
    version: str
    protocol_version: str
    store_id: str
    host_id: str
    pid: int
    started_at: str
    uptime_ms: int
    store_path: str
    head: Cursor
    features: dict[str, bool]
    sqlite_version: str
    model: str | None = None
    model_source: str | None = None


@frozen(kw_only=True)
class PingParams:
    echo: Any = None


@frozen(kw_only=True)
class PingResult:
    at: str
    head: Cursor
    echo: Any = None


@frozen(kw_only=True)
class LeaseInfo:
    session_id: str
    host_id: str
    fence: int
    turn_id: str | None = None


@frozen(kw_only=True)
class HostInfo:
    host_id: str
    pid: int
    started_at: str
    heartbeat_at: str
    alive: bool


@frozen(kw_only=True)
class Diagnostics:
    """Queues (lengths), leases, hosts, and sizes in bytes."""

    queues: dict[str, int]
    leases: tuple[LeaseInfo, ...]
    hosts: tuple[HostInfo, ...]
    store_bytes: int
    wal_bytes: int
    events: int
    sessions: int
    tasks: int
    memory_bytes: int
    indexed_through: int
    warnings: tuple[str, ...] = ()


@frozen(kw_only=True)
class SchemaParams:
    format: Literal["json", "typescript", "lua", "methods"] = "json"


@frozen(kw_only=True)
class SchemaResult:
    text: str


@frozen(kw_only=True)
class ConfigGetParams:
    cwd: str | None = None
    keys: tuple[str, ...] | None = None


@frozen(kw_only=True)
class ConfigValue:
    """One setting, its value ("set" for a secret), and the layer that gave it."""

    key: str
    value: Any
    source: Literal["params", "client", "environment", "workspace", "user", "default"]
    origin: str | None = None


@frozen(kw_only=True)
class ConfigGetResult:
    values: tuple[ConfigValue, ...]


@frozen(kw_only=True)
class ModelListParams:
    cursor: str | None = None
    limit: int | None = None


@frozen(kw_only=True)
class ModelInfo:
    """A model by its id ``provider/name``. `selected` is the one a new session gets."""

    model_id: str
    provider: str
    name: str
    available: bool
    selected: bool = False
    reason: str | None = None
    source: str | None = None
    context_window: int | None = None
    max_output_tokens: int | None = None
    supports_tools: bool | None = None
    supports_images: bool | None = None


@frozen(kw_only=True)
class ProfileListParams:
    cwd: str | None = None
    cursor: str | None = None
    limit: int | None = None


@frozen(kw_only=True)
class ProfileInfo:
    """An agent definition. `tools` absent means every tool. `status` is that of an agent that is a program of its
    own, which ``agent/probe`` finds out."""

    name: str
    description: str
    source: Literal["builtin", "user", "workspace"]
    kind: Literal["builtin", "acp"] = "builtin"
    model: str | None = None
    mode: Mode | None = None
    tools: tuple[str, ...] | None = None
    path: str | None = None
    status: ProfileStatus | None = None


@frozen(kw_only=True)
class BlobReadParams:
    blob_id: BlobId
    offset: int = 0
    length: int | None = None


@frozen(kw_only=True)
class BlobReadResult:
    data_base64: str
    size: int
    eof: bool
    mime_type: str


@frozen(kw_only=True)
class ReadFileParams:
    """Server to client: the text of a buffer, saved or not."""

    uri: str
    range: Range | None = None


@frozen(kw_only=True)
class ReadFileResult:
    text: str
    version: int | None = None
