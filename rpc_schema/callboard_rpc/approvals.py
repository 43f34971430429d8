"""Approvals: durable questions to a person, and the rules that their answers can create."""

from typing import Literal, TypeAlias

from .common import (
    Actor,
    ApprovalId,
    CallId,
    FileChange,
    Json,
    Location,
    RuleId,
    SessionId,
    TurnId,
)
from .frozen import frozen

OptionKind: TypeAlias = Literal[
    "allow_once", "allow_session", "allow_always", "reject_once", "reject_always"
]
ApprovalState: TypeAlias = Literal["pending", "resolved", "cancelled", "expired"]
Risk: TypeAlias = Literal["low", "medium", "high"]
RuleScope: TypeAlias = Literal["session", "workspace", "global"]
Effect: TypeAlias = Literal["allow", "ask", "deny"]


@frozen(kw_only=True)
class ToolCallSubject:
    """A tool call shown by its name and (redacted) arguments."""

    name: str
    arguments: Json
    locations: tuple[Location, ...] = ()
    type: Literal["toolCall"] = "toolCall"


@frozen(kw_only=True)
class CommandSubject:
    """A command line that would run in `cwd`."""

    command: str
    cwd: str
    type: Literal["command"] = "command"


@frozen(kw_only=True)
class FileChangeSubject:
    """Files that would change, each with its diff."""

    changes: tuple[FileChange, ...]
    type: Literal["fileChange"] = "fileChange"


@frozen(kw_only=True)
class FormSubject:
    """A question with a JSON Schema for its answer."""

    message: str
    schema: Json
    type: Literal["form"] = "form"


Subject: TypeAlias = ToolCallSubject | CommandSubject | FileChangeSubject | FormSubject


@frozen(kw_only=True)
class ApprovalOption:
    """One way to answer. Clients choose by `option_id` and may style by `kind`."""

    option_id: str
    name: str
    kind: OptionKind


@frozen(kw_only=True)
class Resolution:
    """How an approval ended. `via` tells the road the answer came by."""

    outcome: Literal["allowed", "rejected", "cancelled", "expired"]
    by: Actor
    via: Literal["request", "method", "policy", "timeout", "cancel", "restart"]
    at: str
    option_id: str | None = None
    feedback: str | None = None
    reason: str | None = None
    rule_id: RuleId | None = None


@frozen(kw_only=True)
class AgentStep:
    """One step of the path from a root session to the agent that asks."""

    session_id: SessionId
    name: str


@frozen(kw_only=True)
class Approval:
    """A durable question about one tool call (DESIGN 5)."""

    approval_id: ApprovalId
    session_id: SessionId
    root_id: SessionId
    turn_id: TurnId
    call_id: CallId
    kind: Literal["permission", "question"]
    title: str
    tool: str
    subject: Subject
    options: tuple[ApprovalOption, ...]
    created_at: str
    state: ApprovalState = "pending"
    path: tuple[AgentStep, ...] = ()
    risk: Risk = "medium"
    reason: str | None = None
    resolution: Resolution | None = None
    expires_at: str | None = None


@frozen(kw_only=True)
class Rule:
    """A standing answer: what a person allowed or denied for longer than one call.

    `tool` is a tool's name or ``*``; `pattern` is matched against the command line (a prefix of
    whole words) or the resolved path (a glob relative to the workspace); absent matches every call.
    """

    rule_id: RuleId
    scope: RuleScope
    effect: Effect
    tool: str
    created_at: str
    by: Actor
    pattern: str | None = None
    session_id: SessionId | None = None
    workspace: str | None = None


@frozen(kw_only=True)
class ApprovalListParams:
    state: ApprovalState | None = None
    session_id: SessionId | None = None
    cursor: str | None = None
    limit: int | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class ApprovalGetParams:
    approval_id: ApprovalId
    meta: Json | None = None


@frozen(kw_only=True)
class ApprovalAnswerParams:
    """`feedback` goes to the model when the answer is a rejection."""

    approval_id: ApprovalId
    option_id: str
    feedback: str | None = None
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class ApprovalResult:
    approval: Approval


@frozen(kw_only=True)
class ApprovalRequestParams:
    approval: Approval


@frozen(kw_only=True)
class ApprovalRequestResult:
    """A client's answer to ``approval/request``: an option, or ``defer`` to leave it to others."""

    option_id: str | None = None
    feedback: str | None = None
    defer: bool = False


@frozen(kw_only=True)
class RuleListParams:
    scope: RuleScope | None = None
    session_id: SessionId | None = None
    cursor: str | None = None
    limit: int | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class RuleAddParams:
    scope: RuleScope
    effect: Effect
    tool: str
    pattern: str | None = None
    session_id: SessionId | None = None
    workspace: str | None = None
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class RuleRemoveParams:
    rule_id: RuleId
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class RuleResult:
    rule: Rule
