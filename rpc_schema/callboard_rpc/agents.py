"""``agent/*``: the agents below a root session, and what a person can do with them as their parent can."""

from typing import Literal, TypeAlias

from .approvals import AgentStep
from .common import (
    ApprovalId,
    AskId,
    CallId,
    Cursor,
    Json,
    MessageId,
    Mode,
    SessionId,
    TaskId,
    TurnId,
    Usage,
)
from .events import AgentInterrupted, AgentReport, AgentStatus, InterruptKind
from .frozen import frozen

InterruptOutcome: TypeAlias = Literal["delivered", "ignored", "aborted", "already_finished"]
"""``delivered``: a steer or cancel waits for the agent's boundary. ``ignored``: a cancel waits there
already, so a steer came too late. ``aborted``: the turn is being ended. ``already_finished``: no turn runs."""

WaitEnd: TypeAlias = Literal["finished", "report", "question", "message", "timeout", "nothing"]
"""Why a wait ended: an agent has finished, one has reported, one asks, somebody else has said something,
the time was up, or there is nobody to wait for."""


@frozen(kw_only=True)
class AgentTool:
    """The tool call that an agent is at."""

    call_id: CallId
    name: str
    title: str
    started_at: str


@frozen(kw_only=True)
class AgentApproval:
    """What an agent waits for a person to allow."""

    approval_id: ApprovalId
    title: str


@frozen(kw_only=True)
class AgentQuestion:
    """What an agent asks its parent, and until when it waits for the reply."""

    ask_id: AskId
    agent_id: SessionId
    name: str
    text: str
    asked_at: str
    expires_at: str | None = None


@frozen(kw_only=True)
class Agent:
    """A child agent as it is now. `agent_id` is the id of its session.

    `path` names every agent from below the root down to this one. `turn_id`, `turn_started_at` and `tools`
    are of the turn that runs, or is parked; `elapsed_ms` is how long that has taken, and else how long the
    last one took. `usage` is that of all its turns. `queued` messages wait for its next boundary, and
    `waits_for_slot` says that it begins when another child of its parent has ended its turn.
    `interrupt` is what it is about to be told, or winds down for, or the abort that ends its turn;
    `interrupted` is why its last turn ended early.
    """

    agent_id: SessionId
    root_id: SessionId
    parent_id: SessionId
    name: str
    status: AgentStatus
    profile: str
    mode: Mode
    depth: int
    created_at: str
    path: tuple[AgentStep, ...]
    agent_type: str | None = None
    model: str | None = None
    turn_id: TurnId | None = None
    turn_started_at: str | None = None
    elapsed_ms: int | None = None
    tools: tuple[AgentTool, ...] = ()
    usage: Usage | None = None
    approvals: tuple[AgentApproval, ...] = ()
    question: AgentQuestion | None = None
    queued: int = 0
    waits_for_slot: bool = False
    interrupt: InterruptKind | None = None
    interrupted: AgentInterrupted | None = None
    report: AgentReport | None = None
    message_allow: tuple[str, ...] = ()


@frozen(kw_only=True)
class AgentListParams:
    """All agents of the tree of `root_id` (its root, or any session of it), by name and then id."""

    root_id: SessionId
    cursor: str | None = None
    limit: int | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class AgentSpawnParams:
    """A new child of `parent_id`, with `message` as its brief. What is absent comes from the parent;
    `tools` can only take some away. `message_allow` names siblings that it may write to. With `task_id` it
    owns that task of the group from the first, or is not made."""

    parent_id: SessionId
    name: str
    message: str
    profile: str | None = None
    model: str | None = None
    tools: tuple[str, ...] | None = None
    agent_type: str | None = None
    message_allow: tuple[str, ...] = ()
    task_id: TaskId | None = None
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class AgentResult:
    agent: Agent
    cursor: Cursor


@frozen(kw_only=True)
class AgentMessageParams:
    """``agent/send`` leaves the message to the agent's next turn or boundary; ``agent/continue`` starts a
    turn for it when none runs."""

    agent_id: SessionId
    text: str
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class AgentMessageResult:
    """`turn_id` is the turn that was started for the message, where one was."""

    message_id: MessageId
    cursor: Cursor
    turn_id: TurnId | None = None


@frozen(kw_only=True)
class AgentWaitParams:
    """Waits for children of `parent_id`: those named, or all that have not ended when the wait begins, until
    one has finished or asks something. 30 s unless told, 300 s at the most, 0 only looks."""

    parent_id: SessionId
    agent_ids: tuple[SessionId, ...] = ()
    timeout_ms: int | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class AgentWaitResult:
    """`reports_pending` reports wait for the parent's next boundary; their texts are not told here."""

    reason: WaitEnd
    agents: tuple[Agent, ...]
    reports_pending: int
    cursor: Cursor
    questions: tuple[AgentQuestion, ...] = ()


@frozen(kw_only=True)
class AgentInterruptParams:
    """`reason` is cut to 16,000 characters; for a steer and a cancel it must not be blank."""

    agent_id: SessionId
    kind: InterruptKind
    reason: str | None = None
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class AgentInterruptResult:
    """`pending` is what the agent will be told at its boundary, where something waits there."""

    outcome: InterruptOutcome
    cursor: Cursor
    pending: InterruptKind | None = None


@frozen(kw_only=True)
class AgentCloseParams:
    agent_id: SessionId
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class AgentReplyParams:
    """Answers a question of an agent for its parent."""

    ask_id: AskId
    text: str
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class AgentReplyResult:
    agent_id: SessionId
    ask_id: AskId
    cursor: Cursor
