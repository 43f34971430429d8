"""Events of the log. `EVENT_TYPES` maps each type's name to the class of its ``data``.

A client must tolerate types and fields that it does not know (PROTOCOL 2).
"""

from typing import Any, Literal, TypeAlias

from .approvals import Approval, Resolution
from .common import (
    Actor,
    ApprovalId,
    AskId,
    BlobRef,
    CallId,
    Content,
    ContextItem,
    EventId,
    Failure,
    FileChange,
    FireId,
    ForkedFrom,
    GroupId,
    HostId,
    InterruptId,
    Json,
    Limits,
    Location,
    MessageContent,
    MessageId,
    Mode,
    ReportId,
    RuleId,
    ScheduleId,
    SessionId,
    SessionOption,
    TaskId,
    ToolEffect,
    ToolKind,
    ToolStatus,
    TurnId,
    TurnOutcome,
    Usage,
)
from .frozen import frozen

Delivery: TypeAlias = Literal["auto", "queue", "steer"]


@frozen(kw_only=True)
class Author:
    """Who said it. `kind` is stored, never guessed from the name (session-messaging 1)."""

    kind: Literal["person", "agent", "peer", "schedule", "system"]
    name: str
    id: str | None = None


DeliveryKind: TypeAlias = Literal[
    "directive",
    "mention",
    "peer",
    "schedule",
    "continue",
    "information",
    "report",
    "question",
    "update",
    "sibling",
]
"""What a delivery is to its session; a turn that it wakes has a trigger of this kind. To a child:
``continue`` and ``information`` from above, ``sibling`` from beside it. To a parent, from its child: a
``report``, a ``question`` that waits for a reply, an ``update`` that does not."""


@frozen(kw_only=True)
class Delivered:
    """An accepted delivery of a session's inbox (specs/execution.md 4).

    `delivery_id` is its producer's, `generation` its place among all that were delivered to the session,
    `digest` tells a repetition from another content under the same id.
    """

    delivery_id: str
    generation: int
    digest: str
    kind: DeliveryKind


# --- transcript -----------------------------------------------------------------------------


@frozen(kw_only=True)
class Message:
    """Something said, by a person or by an agent.

    A person's message is a trigger: it waits until an ``ack`` admits it, by the host that accepted it
    (`host_id`) while that one lives. So is what the inbox delivered, by whomever it was written: it is
    in the log, with `delivered`, from the moment at which a turn takes it in, and exactly once.
    What came together may be one message: `delivered` is the first of it, `joined` are the others.
    An agent's message holds the blocks of one model answer in their own order; `final` marks the one
    that ends its turn, `partial` text that was cut off by a crash or a cancel.
    """

    message_id: MessageId
    author: Author
    content: tuple[MessageContent, ...]
    delivery: Delivery | None = None
    client_message_id: str | None = None
    context: tuple[ContextItem, ...] = ()
    to: str | None = None
    limits: Limits | None = None
    host_id: HostId | None = None
    final: bool = False
    partial: bool = False
    usage: Usage | None = None
    model: str | None = None
    stop_reason: str | None = None
    delivered: Delivered | None = None
    joined: tuple[Delivered, ...] = ()
    meta: Json | None = None

    @property
    def from_outside(self) -> bool:
        """Whether it was said to the session's agent, and not by it."""
        return self.author.kind != "agent" or self.delivered is not None


GROUP_MESSAGE_FRAME = "<group-message "
"""How a message of a group begins, as its recipient's model reads it."""


@frozen(kw_only=True)
class Directive:
    """An instruction to an agent from another agent or the system; always a trigger, always user role.

    The host that wrote it (`host_id`) is to run it while that one lives.
    """

    message_id: MessageId
    author: Author
    text: str
    context: str | None = None
    host_id: HostId | None = None

    @property
    def is_group_message(self) -> bool:
        """Whether it is what a member of the group has said, in its frame: information, and no instruction."""
        return self.author.kind == "agent" and self.text.startswith(GROUP_MESSAGE_FRAME)


@frozen(kw_only=True)
class ToolCall:
    """A model's request to use a tool, committed before its side effect.

    `arguments` are redacted; `raw_arguments` is what the model wrote when it was not a JSON object.
    `effect` says whether calls of one answer may run at the same time (reads only).
    `message_id` joins the calls of one model answer; `provider_call_id` is the provider's own id.
    """

    call_id: CallId
    message_id: MessageId
    name: str
    arguments: Json
    title: str
    kind: ToolKind = "other"
    effect: ToolEffect = "execute"
    index: int = 0
    provider_call_id: str | None = None
    raw_arguments: str | None = None
    locations: tuple[Location, ...] = ()
    approval_id: ApprovalId | None = None


@frozen(kw_only=True)
class ToolResult:
    """The one result of a tool call, by whatever path it ended. `text` is what the model is told."""

    call_id: CallId
    name: str
    status: ToolStatus
    text: str
    changes: tuple[FileChange, ...] = ()
    locations: tuple[Location, ...] = ()
    exit_code: int | None = None
    duration_ms: int | None = None
    truncated: bool = False
    blob: BlobRef | None = None


@frozen(kw_only=True)
class Ack:
    """The turn has taken these trigger events (their seqs) into its context: each exactly once."""

    admits: tuple[int, ...]


@frozen(kw_only=True)
class Error:
    """Why a turn failed, for people. Not context, wakes nothing, is not retried."""

    error: Failure


@frozen(kw_only=True)
class Summary:
    """Stands for everything up to and including seq `covers_through`; always user role."""

    text: str
    covers_through: int
    author: Author
    reason: Literal["command", "tool", "window"]
    usage: Usage | None = None
    model: str | None = None


@frozen(kw_only=True)
class ApprovalRequest:
    approval: Approval


@frozen(kw_only=True)
class ApprovalDecision:
    approval_id: ApprovalId
    call_id: CallId
    resolution: Resolution


# --- runs -----------------------------------------------------------------------------------


TriggerKind: TypeAlias = Literal[
    "prompt",
    "directive",
    "mention",
    "peer",
    "schedule",
    "approval",
    "continue",
    "information",
    "report",
    "question",
    "update",
    "sibling",
]


@frozen(kw_only=True)
class Trigger:
    """What woke a turn; `seqs` are the trigger events that it answers."""

    kind: TriggerKind
    seqs: tuple[int, ...] = ()


@frozen(kw_only=True)
class TurnStarted:
    turn_id: TurnId
    index: int
    trigger: Trigger
    model: str
    mode: Mode
    profile: str | None = None
    host_id: str | None = None


@frozen(kw_only=True)
class TurnFinished:
    """The one end of a turn. `final_text` is what was said last, or the last tool result."""

    turn_id: TurnId
    outcome: TurnOutcome
    answered_through: int
    usage: Usage
    error: Failure | None = None
    final_text: str | None = None
    stop_reason: str | None = None
    iterations: int = 0
    duration_ms: int | None = None


@frozen(kw_only=True)
class TurnParked:
    """The turn only waits for an approval and gave its owner back (DESIGN 4)."""

    turn_id: TurnId
    approval_ids: tuple[ApprovalId, ...]


@frozen(kw_only=True)
class TurnResumed:
    """A parked turn goes on, under a new fence and perhaps in another host: an answer woke it."""

    turn_id: TurnId
    trigger: Trigger
    host_id: HostId | None = None


@frozen(kw_only=True)
class ModelRetried:
    """A model request failed before its answer began and is tried again after `delay_ms`."""

    attempt: int
    delay_ms: int
    error: Failure


@frozen(kw_only=True)
class CancelRequested:
    """Someone asked to stop; written before anything is stopped, so that intent is never lost."""

    scope: Literal["turn", "queue", "tree"]
    turn_id: TurnId | None = None
    reason: str | None = None


@frozen(kw_only=True)
class TriggersDropped:
    """Waiting triggers that will not be answered, and why; without any, that what waits in the inbox starts
    no turn any more."""

    seqs: tuple[int, ...]
    reason: str


@frozen(kw_only=True)
class PromptUpdated:
    """A waiting prompt (the message at `seq`) has other content from now on; nobody had read it yet."""

    seq: int
    content: tuple[Content, ...]


@frozen(kw_only=True)
class DeliveriesDropped:
    """Deliveries of the inbox that will never be in the history, and why: the session was closed, or
    turns that were to take them in have ended too often before they could."""

    deliveries: tuple[Delivered, ...]
    reason: str


# --- the session itself -----------------------------------------------------------------------


@frozen(kw_only=True)
class SessionCreated:
    session_id: SessionId
    cwd: str
    root_id: SessionId
    profile: str
    mode: Mode
    model: str | None = None
    title: str | None = None
    parent_id: SessionId | None = None
    depth: int = 0
    additional_directories: tuple[str, ...] = ()
    metadata: Json | None = None
    forked_from: ForkedFrom | None = None
    tools: tuple[str, ...] | None = None
    """The only tools that the session's agent may use, whatever its profile says; null is no limit."""
    members: tuple[str, ...] = ()
    """The agents (profiles) of a room, in order; without any the session's own profile answers alone."""
    host: str | None = None
    """Who of them answers when nobody is addressed."""
    burst_budget: int | None = None
    """How many messages of agents may follow one another in this room; null is as configured."""


@frozen(kw_only=True)
class SessionForked:
    """A fork is whole: all before this event is inherited, its own history begins here. Until then the
    session cannot be found, and goes again if its server dies.

    Inherited events keep their time, their actor and the turn, message and call ids of their origin; the
    turns themselves belong to it.
    """

    forked_from: ForkedFrom
    inherited: int


@frozen(kw_only=True)
class SessionRewound:
    """The session is as if the turn `before_turn_id`, and all after it, had not been.

    What has a seq from `before_seq` through `through_seq`, and the prompts (their seqs) that those turns
    had taken in from before, are no context any more; they stay in the log. Files are as they were left:
    `changed_paths` are those that the turns' tools changed, the first ones of many (`more_paths` of them
    are not named), and `commands` is how many commands they ran, whose effects are not known.
    `rules` are standing answers that were given for the session in those turns, and went with them.
    """

    before_turn_id: TurnId
    before_seq: int
    through_seq: int
    turns: int
    prompts: tuple[int, ...] = ()
    changed_paths: tuple[str, ...] = ()
    more_paths: int = 0
    commands: int = 0
    rules: tuple[RuleId, ...] = ()


@frozen(kw_only=True)
class SessionUpdated:
    """A patch: what is absent did not change, ``null`` was cleared."""

    changes: Json


@frozen(kw_only=True)
class SessionArchived:
    pass


@frozen(kw_only=True)
class SessionUnarchived:
    pass


@frozen(kw_only=True)
class SessionClosed:
    reason: str | None = None


@frozen(kw_only=True)
class SessionDeleted:
    """The last event of a session, and the only one that remains of it."""


@frozen(kw_only=True)
class ModeChanged:
    mode: Mode


@frozen(kw_only=True)
class ModelChanged:
    model: str | None


@frozen(kw_only=True)
class PlanEntry:
    content: str
    status: Literal["pending", "in_progress", "completed"] = "pending"
    priority: Literal["high", "medium", "low"] = "medium"


@frozen(kw_only=True)
class PlanUpdated:
    """The agent's whole plan; replaces the one before."""

    entries: tuple[PlanEntry, ...]


# --- agents (seed 001) ------------------------------------------------------------------------


AgentStatus: TypeAlias = Literal[
    "starting", "running", "completed", "interrupted", "failed", "closed"
]
"""``starting``: it has its brief, and no turn of it has begun. ``running``: a turn runs, or is parked for
an approval. Only ``closed`` is final; the others may run again by a continue."""

InterruptKind: TypeAlias = Literal["steer", "cancel", "abort"]
InterruptVerb: TypeAlias = Literal["interrupt", "steer", "cancel", "abort"]
"""``interrupt`` is an abort of which the parent wants no report."""
InterruptOrigin: TypeAlias = Literal["user", "parent", "clock"]
"""Who interrupts: a person, an agent above, or the server when a cancel's grace is over."""


@frozen(kw_only=True)
class AgentReport:
    """What a child's turn came to, as its parent is told; exactly one for each turn that ended by itself,
    failed, or was cancelled or aborted by a verb of that name.

    `summary` is the last text or the error, of at most 2,000 characters. `reason` is there when it was
    ``aborted``. `touched_files` (absolute paths) are those that the turn's tools changed, `open_steps` the
    steps of its plan that it has not done. Nothing of it is evidence for the parent.
    """

    report_id: ReportId
    agent_id: SessionId
    name: str
    status: Literal["completed", "failed", "aborted"]
    summary: str
    turn_id: TurnId
    reason: str | None = None
    touched_files: tuple[str, ...] = ()
    open_steps: tuple[str, ...] = ()


@frozen(kw_only=True)
class AgentSpawned:
    """The first event of a child session, in the transaction that makes it; the directive that follows is
    its brief (coordination 14).

    `session` is what the session is from the start: its parent, depth, profile and model are pinned
    there, and its tools are no more than its parent's. `name` is unique among the open children of a
    parent. `depth_left` is how many levels of agents may be below this one. `message_allow` are the names
    of siblings that it may write to. `call_id` is the parent's call that made it, where one did.
    """

    session: SessionCreated
    name: str
    depth_left: int
    agent_type: str | None = None
    message_allow: tuple[str, ...] = ()
    call_id: CallId | None = None


@frozen(kw_only=True)
class AgentMessageQueued:
    """A message to the agent is durable, and waits in its inbox under `message_id`. The message event with
    that delivery is its receipt."""

    message_id: MessageId
    kind: Literal["information", "continue", "sibling"]
    author: Author
    text: str


@frozen(kw_only=True)
class AgentStatusChanged:
    """The agent `status` is another one, for a reason that no other event tells."""

    status: AgentStatus
    reason: str | None = None


@frozen(kw_only=True)
class AgentReportCreated:
    """A turn of the agent has ended with something to report; the status is now the report's
    (``interrupted`` for ``aborted``)."""

    report: AgentReport


@frozen(kw_only=True)
class AgentNotificationDelivered:
    """A parent was told something of its child by the result of `call_id`, so that no message will do it
    again."""

    delivered: Delivered
    call_id: CallId


@frozen(kw_only=True)
class AgentInterruptRequested:
    """Somebody wants the agent to be interrupted. At most one steer or cancel waits for its boundary; an
    abort never waits. `deadline_at` is when a cancel becomes an abort."""

    interrupt_id: InterruptId
    kind: InterruptVerb
    origin: InterruptOrigin
    reason: str | None = None
    deadline_at: str | None = None


@frozen(kw_only=True)
class AgentInterruptConsumed:
    """The agent was told, at its boundary, by the directive before this event."""

    interrupt_id: InterruptId
    kind: InterruptKind
    turn_id: TurnId


@frozen(kw_only=True)
class AgentInterrupted:
    """The agent's turn was ended before its own end, or there was none to end; the agent can be
    continued. `kind` and `origin` are there when a verb of that name did it, and then a report follows."""

    reason: str
    kind: InterruptKind | None = None
    origin: InterruptOrigin | None = None


@frozen(kw_only=True)
class AgentCloseRequested:
    pass


@frozen(kw_only=True)
class AgentClosed:
    """The agent's last event but ``session_closed``: nothing of it runs any more."""


@frozen(kw_only=True)
class AgentAsked:
    """The agent says something to its parent. With `expects_reply` it waits for the answer until
    `expires_at`."""

    ask_id: AskId
    text: str
    expects_reply: bool
    expires_at: str | None = None
    call_id: CallId | None = None


AskOutcome: TypeAlias = Literal[
    "replied", "timed_out", "cancelled", "parent_gone", "parent_restarted"
]
"""How a question ended. ``cancelled``: the agent's turn did, or it was called away by something else
that was said to it."""


@frozen(kw_only=True)
class AgentReplied:
    """A question of the agent is settled, once: by a reply (`text`, of `author`: its parent, or a person in
    the parent's place), or because none came."""

    ask_id: AskId
    outcome: AskOutcome
    text: str | None = None
    author: Author | None = None


# --- groups -------------------------------------------------------------------------------------


TaskStatus: TypeAlias = Literal[
    "pending", "claimed", "in_progress", "completed", "blocked", "cancelled"
]
"""Of a task of a group. ``claimed`` and ``in_progress`` are active, ``completed`` and ``cancelled`` final.
A blocked one can only be cancelled or given to somebody else."""

GroupTarget: TypeAlias = Literal["agent", "root", "group"]
"""To whom a message in a group goes: one member, the root, or everybody but its sender."""


@frozen(kw_only=True)
class AgentGroupCreated:
    """The tree has a group, in its root session; there is one at the most (coordination 8.2)."""

    group_id: GroupId
    name: str


@frozen(kw_only=True)
class AgentGroupMemberJoined:
    """An agent of the tree takes part. The root always does, without this event."""

    group_id: GroupId
    agent_id: SessionId


@frozen(kw_only=True)
class GroupTaskCreated:
    """A pending task. `dependencies` are tasks that were there before. `required`: the root's work is not
    complete before it is. `expected_paths` are what whoever does it expects to change."""

    task_id: TaskId
    group_id: GroupId
    title: str
    created_by: SessionId
    description: str = ""
    dependencies: tuple[TaskId, ...] = ()
    required: bool = True
    expected_paths: tuple[str, ...] = ()


@frozen(kw_only=True)
class GroupTaskClaimed:
    """The agent owns the task now; nobody did before."""

    task_id: TaskId
    agent_id: SessionId


@frozen(kw_only=True)
class GroupTaskReleased:
    """The task is pending again, and nobody's; the agent had it."""

    task_id: TaskId
    agent_id: SessionId


@frozen(kw_only=True)
class GroupTaskStatusChanged:
    """`agent_id` has changed the task. `assignee` is its new owner, where the root has given it to
    another one. What is empty leaves what was said before."""

    task_id: TaskId
    status: TaskStatus
    agent_id: SessionId
    assignee: SessionId | None = None
    summary: str | None = None
    reason: str | None = None
    findings: tuple[str, ...] = ()
    touched_files: tuple[str, ...] = ()


@frozen(kw_only=True)
class GroupMessageQueued:
    """A message in the group is durable. `recipients` are those who get it: the members at this moment,
    and the root, without the sender, where it is to the group."""

    message_id: MessageId
    group_id: GroupId
    sender: SessionId
    to: GroupTarget
    recipients: tuple[SessionId, ...]
    text: str


@frozen(kw_only=True)
class GroupMessageDelivered:
    """In the session of a recipient, with the directive by which its model reads the message: it is
    never delivered there again."""

    message_id: MessageId
    group_id: GroupId
    sender: SessionId


@frozen(kw_only=True)
class CompletionChanged:
    """The agent says that what it was asked for is implemented; nobody has verified it."""

    completion: Literal["implemented_not_verified"]
    summary: str = ""


# --- rooms ------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class MemberAdded:
    """An agent takes part in the session from here on."""

    name: str


@frozen(kw_only=True)
class MemberRemoved:
    name: str


@frozen(kw_only=True)
class RoomHostChanged:
    """`name` answers when nobody is addressed; null: the first member does."""

    name: str | None


@frozen(kw_only=True)
class MemberMentioned:
    """The message at `message_seq`, by the member `by`, has woken the member `name`: always a trigger.

    `burst` is how many messages of agents have followed one another by then, of `budget`. The host that
    wrote it (`host_id`) is to run it while that one lives.
    """

    name: str
    by: str
    message_seq: int
    burst: int
    budget: int
    host_id: HostId | None = None


@frozen(kw_only=True)
class WakeSuppressed:
    """The message at `message_seq` addresses the member `name`, who is not woken: so many messages of agents
    have followed one another (`burst`) that the `budget` is spent. A person's message begins anew."""

    name: str
    by: str
    message_seq: int
    burst: int
    budget: int


# --- schedules --------------------------------------------------------------------------------------


@frozen(kw_only=True)
class ScheduleFired:
    """A schedule was due at `due_at` and starts a turn of its own here: a trigger, whose `prompt` the agent
    reads in that turn alone.

    `fresh`: the session was made for it. The host that wrote it (`host_id`) is to run it while that one
    lives.
    """

    schedule_id: ScheduleId
    fire_id: FireId
    name: str
    due_at: str
    prompt: str
    profile: str
    fresh: bool = False
    host_id: HostId | None = None


# --- links between sessions --------------------------------------------------------------------------


@frozen(kw_only=True)
class PeerLinked:
    """This session and another one may write to each other from here on; it stands in both."""

    peer_id: SessionId


@frozen(kw_only=True)
class PeerUnlinked:
    """`by` is the session that has left the link; it stands in both. `dropped` are messages that were on the
    way to this session and are not delivered any more."""

    peer_id: SessionId
    by: SessionId
    dropped: tuple[MessageId, ...] = ()


@frozen(kw_only=True)
class PeerMessageSent:
    """A message to a linked session is durable; it stands in the sender's log. It is delivered as a `message`
    of the same id, whose author is of the kind ``peer``, in the recipient's."""

    message_id: MessageId
    to: SessionId
    text: str


@frozen(kw_only=True)
class PeerMessageDropped:
    """A message to this session that will never be read, and why."""

    message_id: MessageId
    sender: SessionId | None
    reason: Literal["malformed", "unlinked"]


# --- agents that are programs of their own ------------------------------------------------------------


@frozen(kw_only=True)
class ExternalSession:
    """The agent `profile`, a program of its own, is told all that waited for it up to the event `through`. It keeps
    that in a session of its own, `agent_session_id`, in which it is asked to go on the next time."""

    profile: str
    agent_session_id: str
    through: int
    agent: str | None = None
    """What it calls itself, and its version."""


@frozen(kw_only=True)
class ExternalOptions:
    """All that the agent `profile`, a program of its own, lets its session be set to, and what it is set to, as the
    agent has told; replaces what it has told before."""

    profile: str
    options: tuple[SessionOption, ...]


@frozen(kw_only=True)
class Notice:
    """Something for the person that is no part of the conversation: what an agent did not say, or what was done
    for want of something better. Not context, wakes nothing."""

    severity: Literal["info", "warning", "error"]
    title: str
    description: str | None = None


EventData: TypeAlias = (
    Message
    | Directive
    | ToolCall
    | ToolResult
    | Ack
    | Error
    | Summary
    | ApprovalRequest
    | ApprovalDecision
    | TurnStarted
    | TurnFinished
    | TurnParked
    | TurnResumed
    | ModelRetried
    | CancelRequested
    | TriggersDropped
    | DeliveriesDropped
    | PromptUpdated
    | SessionCreated
    | SessionForked
    | SessionRewound
    | SessionUpdated
    | SessionArchived
    | SessionUnarchived
    | SessionClosed
    | SessionDeleted
    | ModeChanged
    | ModelChanged
    | PlanUpdated
    | AgentSpawned
    | AgentMessageQueued
    | AgentStatusChanged
    | AgentReportCreated
    | AgentNotificationDelivered
    | AgentInterruptRequested
    | AgentInterruptConsumed
    | AgentInterrupted
    | AgentCloseRequested
    | AgentClosed
    | AgentAsked
    | AgentReplied
    | AgentGroupCreated
    | AgentGroupMemberJoined
    | GroupTaskCreated
    | GroupTaskClaimed
    | GroupTaskReleased
    | GroupTaskStatusChanged
    | GroupMessageQueued
    | GroupMessageDelivered
    | CompletionChanged
    | MemberAdded
    | MemberRemoved
    | RoomHostChanged
    | MemberMentioned
    | WakeSuppressed
    | ScheduleFired
    | PeerLinked
    | PeerUnlinked
    | PeerMessageSent
    | PeerMessageDropped
    | ExternalSession
    | ExternalOptions
    | Notice
)

EVENT_TYPES: dict[str, type[Any]] = {
    "message": Message,
    "directive": Directive,
    "tool_call": ToolCall,
    "tool_result": ToolResult,
    "ack": Ack,
    "error": Error,
    "summary": Summary,
    "approval_request": ApprovalRequest,
    "approval_decision": ApprovalDecision,
    "turn_started": TurnStarted,
    "turn_finished": TurnFinished,
    "turn_parked": TurnParked,
    "turn_resumed": TurnResumed,
    "model_retried": ModelRetried,
    "cancel_requested": CancelRequested,
    "triggers_dropped": TriggersDropped,
    "deliveries_dropped": DeliveriesDropped,
    "prompt_updated": PromptUpdated,
    "session_created": SessionCreated,
    "session_forked": SessionForked,
    "session_rewound": SessionRewound,
    "session_updated": SessionUpdated,
    "session_archived": SessionArchived,
    "session_unarchived": SessionUnarchived,
    "session_closed": SessionClosed,
    "session_deleted": SessionDeleted,
    "mode_changed": ModeChanged,
    "model_changed": ModelChanged,
    "plan_updated": PlanUpdated,
    "agent_spawned": AgentSpawned,
    "agent_message_queued": AgentMessageQueued,
    "agent_status_changed": AgentStatusChanged,
    "agent_report_created": AgentReportCreated,
    "agent_notification_delivered": AgentNotificationDelivered,
    "agent_interrupt_requested": AgentInterruptRequested,
    "agent_interrupt_consumed": AgentInterruptConsumed,
    "agent_interrupted": AgentInterrupted,
    "agent_close_requested": AgentCloseRequested,
    "agent_closed": AgentClosed,
    "agent_asked": AgentAsked,
    "agent_replied": AgentReplied,
    "agent_group_created": AgentGroupCreated,
    "agent_group_member_joined": AgentGroupMemberJoined,
    "group_task_created": GroupTaskCreated,
    "group_task_claimed": GroupTaskClaimed,
    "group_task_released": GroupTaskReleased,
    "group_task_status_changed": GroupTaskStatusChanged,
    "group_message_queued": GroupMessageQueued,
    "group_message_delivered": GroupMessageDelivered,
    "completion_changed": CompletionChanged,
    "member_added": MemberAdded,
    "member_removed": MemberRemoved,
    "room_host_changed": RoomHostChanged,
    "member_mentioned": MemberMentioned,
    "wake_suppressed": WakeSuppressed,
    "schedule_fired": ScheduleFired,
    "peer_linked": PeerLinked,
    "peer_unlinked": PeerUnlinked,
    "peer_message_sent": PeerMessageSent,
    "peer_message_dropped": PeerMessageDropped,
    "external_session": ExternalSession,
    "external_options": ExternalOptions,
    "notice": Notice,
}

EVENT_NAMES: dict[type[Any], str] = {cls: name for name, cls in EVENT_TYPES.items()}


@frozen(kw_only=True)
class UnknownData:
    """The data of an event type that this version does not know, kept as it came."""

    type: str
    data: Json


@frozen(kw_only=True)
class Event:
    """One entry of the log.

    `pos` grows over the whole store, `seq` without holes inside a session, from 1. In the stored
    data a text over 64 KiB is cut to its head and tail, and ``_blobs`` maps its JSON pointer to a
    `BlobRef` of the whole.
    """

    pos: int
    session_id: SessionId
    seq: int
    event_id: EventId
    type: str
    at: str
    actor: Actor
    data: EventData | UnknownData
    turn_id: TurnId | None = None
