"""Types that every family of messages shares: ids, actors, content, usage, pages."""

from typing import Any, Generic, Literal, NewType, TypeAlias, TypeVar

from attrs import field

from .frozen import frozen

SessionId = NewType("SessionId", str)
TurnId = NewType("TurnId", str)
MessageId = NewType("MessageId", str)
CallId = NewType("CallId", str)
EventId = NewType("EventId", str)
ApprovalId = NewType("ApprovalId", str)
RuleId = NewType("RuleId", str)
BlobId = NewType("BlobId", str)
HostId = NewType("HostId", str)
ReportId = NewType("ReportId", str)
AskId = NewType("AskId", str)
InterruptId = NewType("InterruptId", str)
GroupId = NewType("GroupId", str)
TaskId = NewType("TaskId", str)
ScheduleId = NewType("ScheduleId", str)
FireId = NewType("FireId", str)
SubscriptionId = NewType("SubscriptionId", str)
Cursor = NewType("Cursor", str)
"""Opaque position in a store's log. Order cursors only by handing them back to the server."""

Json: TypeAlias = dict[str, Any]
"""A JSON object that Callboard carries and never looks into."""

T = TypeVar("T")


class Unset:
    """The type of `UNSET`: a field that was absent, as opposed to one that was ``null``."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "UNSET"


UNSET = Unset()
"""Absent from the message: leave unchanged. ``None`` means clear."""

ActorKind: TypeAlias = Literal["client", "agent", "policy", "schedule", "peer", "system"]
Mode: TypeAlias = Literal["ask", "plan", "work"]
Effort: TypeAlias = Literal["low", "medium", "high"]
"""How much a model is to think before it answers, where it can be told."""
SessionStatus: TypeAlias = Literal["idle", "running", "waiting_approval", "parked", "closed"]
TurnState: TypeAlias = Literal[
    "running",
    "waiting_approval",
    "parked",
    "completed",
    "failed",
    "cancelled",
    "interrupted",
    "timed_out",
]
TurnOutcome: TypeAlias = Literal["completed", "failed", "cancelled", "interrupted", "timed_out"]
ToolKind: TypeAlias = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"
]
ToolEffect: TypeAlias = Literal["read", "write", "execute", "kernel"]
ToolStatus: TypeAlias = Literal[
    "ok", "error", "denied", "timed_out", "superseded", "cancelled", "interrupted"
]


@frozen(kw_only=True)
class Actor:
    """Who caused an event. `name` is for display; `kind` and `id` are what may be relied on."""

    kind: ActorKind
    id: str
    name: str | None = None


@frozen(kw_only=True)
class TextContent:
    """Plain or Markdown text."""

    text: str
    type: Literal["text"] = "text"
    meta: Json | None = None


@frozen(kw_only=True)
class ImageContent:
    """An image, base64 in `data`."""

    data: str
    mime_type: str
    type: Literal["image"] = "image"
    meta: Json | None = None


@frozen(kw_only=True)
class ResourceLink:
    """A pointer to something the agent may read itself, usually a file of the workspace."""

    uri: str
    name: str | None = None
    mime_type: str | None = None
    type: Literal["resource_link"] = "resource_link"
    meta: Json | None = None


@frozen(kw_only=True)
class EmbeddedResource:
    """A resource whose text is sent along: an unsaved buffer, a selection, a diagnostic."""

    uri: str
    text: str
    mime_type: str | None = None
    type: Literal["resource"] = "resource"
    meta: Json | None = None


Content: TypeAlias = TextContent | ImageContent | ResourceLink | EmbeddedResource
"""What a person can put into a prompt; tagged by ``type``."""


@frozen(kw_only=True)
class Thinking:
    """A model's reasoning. `provider` names the format of `opaque`, which is replayed as it came."""

    text: str
    provider: str
    opaque: Json | None = None
    type: Literal["thinking"] = "thinking"


@frozen(kw_only=True)
class ToolUse:
    """The place of a tool call among an answer's blocks; the call itself is a ``tool_call`` event."""

    call_id: CallId
    type: Literal["tool_use"] = "tool_use"


MessageContent: TypeAlias = (
    TextContent | ImageContent | ResourceLink | EmbeddedResource | Thinking | ToolUse
)
"""What a message in the log can hold: a person's content, or a model's answer in its own order."""


@frozen(kw_only=True)
class UnknownVariant:
    """A block or a subject of a kind that this version does not know, kept as it came.

    Only a client meets it, from a newer server; it may show or ignore it (PROTOCOL 2).
    """

    type: str
    fields: Json


@frozen(kw_only=True)
class Position:
    """A place in a text document, as in LSP: zero-based line and UTF-16 character."""

    line: int
    character: int


@frozen(kw_only=True)
class Range:
    """From `start` up to but without `end`."""

    start: Position
    end: Position


@frozen(kw_only=True)
class ContextItem:
    """A file, or a range of it, that the person wants the agent to see with a prompt."""

    uri: str
    range: Range | None = None


@frozen(kw_only=True)
class Location:
    """A file (absolute path), and a 1-based line, that a tool call touches."""

    path: str
    line: int | None = None


@frozen(kw_only=True)
class FileChange:
    """One file as a tool would change it: a unified diff, and how it comes to be."""

    path: str
    operation: Literal["create", "modify", "delete", "move"]
    diff: str
    added: int
    removed: int
    old_path: str | None = None
    truncated: bool = False


@frozen(kw_only=True)
class ForkedFrom:
    """Where a fork's history comes from: all of `session_id` up to and including `seq`. `turn_id` is the
    last turn of it. What was rewound or is audit only (approvals, ends of turns) is not taken over."""

    session_id: SessionId
    turn_id: TurnId
    seq: int


@frozen(kw_only=True)
class OptionValue:
    """One value that an option can have, and what it is called."""

    value: str
    name: str
    description: str | None = None


@frozen(kw_only=True)
class SessionOption:
    """Something that an agent which is a program of its own lets its session be set to: its model, its mode, and
    whatever else it has. `category` is ``model``, ``mode`` or ``thought_level`` where it is one of these. A switch has
    the values ``true`` and ``false``."""

    profile: str
    option_id: str
    name: str
    value: str
    values: tuple[OptionValue, ...]
    category: str | None = None
    description: str | None = None


@frozen(kw_only=True)
class Usage:
    """Tokens and cost. Absent means unknown, which is never the same as zero.

    `cost` is in `currency` and only what the provider reported or a configured price gives;
    `partial` says that some request of the sum did not report.
    """

    requests: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    context_tokens: int | None = None
    cost: float | None = None
    currency: str | None = None
    partial: bool = False


@frozen(kw_only=True)
class Failure:
    """Why a turn did not complete: the same kinds as RPC errors, as data (PROTOCOL 5)."""

    kind: str
    message: str
    retryable: bool = False
    provider: str | None = None
    http_status: int | None = None
    retry_after_ms: int | None = None


@frozen(kw_only=True)
class BlobRef:
    """Where the whole of a large value is; the event keeps its head and tail."""

    blob_id: BlobId
    bytes: int
    mime_type: str = "text/plain; charset=utf-8"


RetryMode: TypeAlias = Literal["bounded", "until_cancelled"]


@frozen(kw_only=True)
class Limits:
    """What one prompt may spend at the most.

    `retry` says how often a model request of its turn may be made again when it fails before its
    answer has begun: a few times (`bounded`, the default), or until it is cancelled. It holds for that
    turn alone, not for later ones, nor for those of children; with a budget of `tokens` or `cost`
    nothing is tried again, since that would be spent unseen.
    """

    turns: int | None = None
    tokens: int | None = None
    cost: float | None = None
    timeout_ms: int | None = None
    retry: RetryMode | None = None


@frozen(kw_only=True)
class Page(Generic[T]):
    """A page of a list. `next_cursor` is null on the last one."""

    data: tuple[T, ...]
    next_cursor: str | None = field(default=None)


@frozen(kw_only=True)
class Empty:
    """A result, or params, without content."""

    meta: Json | None = None
