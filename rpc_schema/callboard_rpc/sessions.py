"""The ``session/*`` methods and what they return."""

from typing import Literal, TypeAlias

from .approvals import Approval
from .common import (
    UNSET,
    Content,
    ContextItem,
    Cursor,
    Effort,
    Failure,
    ForkedFrom,
    Json,
    Limits,
    MessageId,
    Mode,
    SessionId,
    SessionOption,
    SessionStatus,
    TurnId,
    TurnOutcome,
    TurnState,
    Unset,
    Usage,
)
from .events import Delivery, Trigger
from .frozen import frozen

PromptOutcome: TypeAlias = Literal["started", "queued", "steered", "recorded"]
CancelScope: TypeAlias = Literal["turn", "queue", "tree"]


@frozen(kw_only=True)
class Owner:
    """The host that runs the session now, and the fence of its run."""

    host_id: str
    fence: int


@frozen(kw_only=True)
class Session:
    session_id: SessionId
    root_id: SessionId
    cwd: str
    profile: str
    mode: Mode
    status: SessionStatus
    created_at: str
    updated_at: str
    head_seq: int
    queue_length: int
    pending_approvals: int
    model: str | None = None
    title: str | None = None
    parent_id: SessionId | None = None
    depth: int = 0
    additional_directories: tuple[str, ...] = ()
    archived: bool = False
    pinned: bool = False
    closed: bool = False
    active_turn_id: TurnId | None = None
    last_outcome: TurnOutcome | None = None
    owner: Owner | None = None
    usage: Usage | None = None
    metadata: Json | None = None
    forked_from: ForkedFrom | None = None
    members: tuple[str, ...] = ()
    """The agents of a room."""
    options: tuple[SessionOption, ...] = ()
    """What its agents that are programs of their own let it be set to, as far as they have told; not in lists."""


@frozen(kw_only=True)
class Turn:
    turn_id: TurnId
    session_id: SessionId
    index: int
    state: TurnState
    trigger: Trigger
    started_at: str
    model: str | None = None
    ended_at: str | None = None
    usage: Usage | None = None
    error: Failure | None = None
    final_text: str | None = None
    stop_reason: str | None = None


@frozen(kw_only=True)
class SessionCreateParams:
    """`cwd` is absolute. `members` are the profiles of a room, in order, `host` who of them answers when nobody
    is addressed (the first, unless given); `roster` is a list of them that the configuration names. An empty
    list is a session without a room, whatever the configuration has for new sessions. `burst_budget` is how
    many messages of agents may follow one another."""

    cwd: str
    profile: str | None = None
    title: str | None = None
    model: str | None = None
    mode: Mode | None = None
    members: tuple[str, ...] | None = None
    roster: str | None = None
    host: str | None = None
    burst_budget: int | None = None
    additional_directories: tuple[str, ...] = ()
    metadata: Json | None = None
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class Draft:
    """What a running turn has streamed so far of a message that is not in the log. `next_index` says, per kind of
    delta, which piece comes next. Whoever subscribes first and asks then misses no piece: what came before is
    in the draft. No delta spans that place: each is wholly in the draft, or wholly behind it. Of a turn that
    another process runs, which sends no deltas here, it holds what was saved last (250 ms or 4 KiB)."""

    turn_id: TurnId
    message_id: MessageId
    answer: str
    thought: str
    next_index: dict[str, int]


@frozen(kw_only=True)
class SessionResult:
    session: Session
    cursor: Cursor
    draft: Draft | None = None


@frozen(kw_only=True)
class SessionGetParams:
    session_id: SessionId
    meta: Json | None = None


@frozen(kw_only=True)
class SessionListParams:
    """Newest first. Children are hidden unless `parent` asks for them."""

    cwd: str | None = None
    status: SessionStatus | None = None
    archived: bool | None = None
    parent: SessionId | None = None
    query: str | None = None
    cursor: str | None = None
    limit: int | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class SessionPromptParams:
    session_id: SessionId
    content: tuple[Content, ...]
    delivery: Delivery = "auto"
    client_message_id: str | None = None
    context: tuple[ContextItem, ...] = ()
    to: str | None = None
    limits: Limits | None = None
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class SessionPromptResult:
    """The prompt is durable. `turn_id` is the turn that answers it, when that is already known. `warning` says
    that it addresses somebody who takes no part in the room, and who answers instead."""

    event_seq: int
    outcome: PromptOutcome
    cursor: Cursor
    turn_id: TurnId | None = None
    warning: str | None = None


@frozen(kw_only=True)
class SessionCancelParams:
    session_id: SessionId
    turn_id: TurnId | None = None
    scope: CancelScope = "turn"
    reason: str | None = None
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class SessionCancelResult:
    """`dropped` are the seqs of waiting prompts that will not be answered."""

    state: Literal["cancelling", "idle"]
    turn_id: TurnId | None = None
    dropped: tuple[int, ...] = ()


@frozen(kw_only=True)
class SessionWaitParams:
    """`attention` returns for a pending approval as well as for an end."""

    session_id: SessionId
    until: Literal["turnEnd", "idle", "attention"] = "idle"
    turn_id: TurnId | None = None
    timeout_ms: int | None = None
    work_done_token: str | int | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class SessionWaitResult:
    reason: Literal["turnEnd", "idle", "attention", "timeout", "closed"]
    cursor: Cursor
    approvals: tuple[Approval, ...] = ()
    turn: Turn | None = None
    final_text: str | None = None


@frozen(kw_only=True)
class SessionTurnsParams:
    """Oldest first."""

    session_id: SessionId
    cursor: str | None = None
    limit: int | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class SessionUpdateParams:
    """Changes what is given; metadata are replaced as a whole. `burst_budget` null is as configured, `effort`
    null as the profile or the model has it.

    `if_unchanged_since` is the `headSeq` of the session as it was read: when its title, pin, metadata, effort or
    burst budget were changed after that, nothing is changed now (sessionChanged). So who reads metadata, adds to
    them and writes them back loses nothing that others wrote meanwhile: read again, and try again.

    `options` are those of `Session.options`, by their ids (as ``AGENT/ID`` where several agents of a room have one of
    that id), each with the value that it is to have; null leaves it to the agent. They hold from the next prompt on, and
    are set again when the agent is started again."""

    session_id: SessionId
    title: str | Unset | None = UNSET
    pinned: bool | Unset = UNSET
    metadata: Json | Unset | None = UNSET
    mode: Mode | Unset = UNSET
    model: str | Unset | None = UNSET
    burst_budget: int | Unset | None = UNSET
    if_unchanged_since: int | None = None
    effort: Effort | Unset | None = UNSET
    options: Json | Unset = UNSET
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class SessionMutateParams:
    """Names the session to archive, unarchive, delete or close."""

    session_id: SessionId
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class SessionCompactParams:
    session_id: SessionId
    instructions: str | None = None
    work_done_token: str | int | None = None
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class SessionCompactResult:
    """`summary_seq` is null when there was too little to summarise."""

    compacted: bool
    cursor: Cursor
    summary_seq: int | None = None


@frozen(kw_only=True)
class SessionSearchParams:
    """Every word must occur; a word that ends in ``*`` is a prefix of at least three letters."""

    query: str
    session_id: SessionId | None = None
    cwd: str | None = None
    cursor: str | None = None
    limit: int | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class SearchHit:
    session_id: SessionId
    seq: int
    type: str
    at: str
    snippet: str
    turn_id: TurnId | None = None
    title: str | None = None


@frozen(kw_only=True)
class SessionExportParams:
    session_id: SessionId
    format: Literal["jsonl", "markdown"] = "jsonl"
    cursor: str | None = None
    limit: int | None = None
    work_done_token: str | int | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class SessionExportResult:
    """A piece of the export; ask again with `next_cursor` until it is null.

    The pieces of ``jsonl`` make a file for ``session/import``: the session as it was when the first piece
    was asked for.
    """

    text: str
    next_cursor: str | None = None
