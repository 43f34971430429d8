"""``group/*``: the task board and the messages that a root session shares with its agents (coordination 8).

A person acts in the place of the root: what only the root may do they may, and a task that they claim
is the root's.
"""

from typing import Literal, TypeAlias

from .common import Cursor, GroupId, Json, MessageId, SessionId, TaskId
from .events import AgentStatus, GroupTarget, TaskStatus
from .frozen import frozen

MAX_TASKS = 10_000
"""Tasks of one group, ever."""
MAX_MESSAGES = 10_000
"""Messages in one group, ever."""
MAX_ITEMS = 200
"""Dependencies, paths or findings of one task."""

TaskFilter: TypeAlias = Literal[
    "open", "ready", "active", "blocked", "pending", "completed", "cancelled", "all"
]
"""``open``: neither completed nor cancelled. ``ready``: pending, with every dependency completed.
``active``: claimed or in progress."""


@frozen(kw_only=True)
class GroupTask:
    """A task as it is now. `assignee` stays when it is completed, blocked or cancelled. `ready`: somebody
    can claim it; `blockers` are its dependencies that are not completed."""

    task_id: TaskId
    group_id: GroupId
    title: str
    status: TaskStatus
    created_by: SessionId
    created_at: str
    updated_at: str
    description: str = ""
    dependencies: tuple[TaskId, ...] = ()
    required: bool = True
    expected_paths: tuple[str, ...] = ()
    assignee: SessionId | None = None
    summary: str | None = None
    reason: str | None = None
    findings: tuple[str, ...] = ()
    touched_files: tuple[str, ...] = ()
    ready: bool = False
    blockers: tuple[TaskId, ...] = ()


@frozen(kw_only=True)
class GroupMember:
    """One who takes part. The root is the first, and has no `status` of an agent."""

    agent_id: SessionId
    name: str
    is_root: bool = False
    status: AgentStatus | None = None


@frozen(kw_only=True)
class GroupCounts:
    """How many tasks there are of each kind; those that are `ready` are `pending`, too."""

    total: int = 0
    pending: int = 0
    ready: int = 0
    claimed: int = 0
    in_progress: int = 0
    completed: int = 0
    blocked: int = 0
    cancelled: int = 0


@frozen(kw_only=True)
class DependencyFailure:
    """A task that cannot become ready by itself: a dependency of it is blocked or cancelled."""

    task_id: TaskId
    dependency_id: TaskId
    status: Literal["blocked", "cancelled"]


@frozen(kw_only=True)
class GroupConflict:
    """Two active tasks (`task_ids`) that mean to change, or have changed, the same file. It forbids nothing."""

    task_ids: tuple[TaskId, ...]
    path: str


@frozen(kw_only=True)
class Group:
    """A group as it is now. Tasks stand in the order in which they were created; of `ready`, `active` and
    `blocked` ones, of failures and conflicts no more than the first 1,000 are told, and fewer where they are
    large: `counts` has how many tasks there are, and ``group/taskList`` all of them. `required_unfinished` are
    what keeps the root's work from being complete."""

    group_id: GroupId
    root_id: SessionId
    name: str
    created_at: str
    members: tuple[GroupMember, ...]
    counts: GroupCounts
    ready: tuple[GroupTask, ...] = ()
    active: tuple[GroupTask, ...] = ()
    blocked: tuple[GroupTask, ...] = ()
    dependency_failures: tuple[DependencyFailure, ...] = ()
    conflicts: tuple[GroupConflict, ...] = ()
    required_unfinished: tuple[TaskId, ...] = ()


@frozen(kw_only=True)
class GroupGetParams:
    """The group of the tree of `root_id` (its root, or any session of it)."""

    root_id: SessionId
    meta: Json | None = None


@frozen(kw_only=True)
class GroupGetResult:
    """`group` is null until something was done with one."""

    cursor: Cursor
    group: Group | None = None


@frozen(kw_only=True)
class TaskCreateParams:
    root_id: SessionId
    title: str
    description: str = ""
    dependencies: tuple[TaskId, ...] = ()
    required: bool = True
    expected_paths: tuple[str, ...] = ()
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class TaskListParams:
    """By creation, the oldest first."""

    root_id: SessionId
    status: TaskFilter = "open"
    cursor: str | None = None
    limit: int | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class TaskParams:
    """One task of the tree's group: ``group/taskStart``, ``group/taskRelease``."""

    root_id: SessionId
    task_id: TaskId
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class TaskClaimParams:
    """Without `agent_id` the root claims it; with one it is given to that member, as by
    ``group/taskReassign``."""

    root_id: SessionId
    task_id: TaskId
    agent_id: SessionId | None = None
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class TaskCompleteParams:
    root_id: SessionId
    task_id: TaskId
    summary: str
    findings: tuple[str, ...] = ()
    touched_files: tuple[str, ...] = ()
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class TaskBlockParams:
    root_id: SessionId
    task_id: TaskId
    reason: str
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class TaskCancelParams:
    root_id: SessionId
    task_id: TaskId
    reason: str | None = None
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class TaskReassignParams:
    """Gives a task to a member, or to the root."""

    root_id: SessionId
    task_id: TaskId
    agent_id: SessionId
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class TaskResult:
    task: GroupTask
    cursor: Cursor


@frozen(kw_only=True)
class GroupMessage:
    """A message as its recipient has it. `seen`: a turn of the recipient has read it."""

    message_id: MessageId
    sender: SessionId
    sender_name: str
    to: GroupTarget
    text: str
    at: str
    seen: bool = False


@frozen(kw_only=True)
class GroupMessageSendParams:
    """`agent_id` goes with ``agent``, and with nothing else. `text` has 1 to 4,000 bytes."""

    root_id: SessionId
    to: GroupTarget
    text: str
    agent_id: SessionId | None = None
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class GroupMessageSendResult:
    message_id: MessageId
    recipients: tuple[SessionId, ...]
    cursor: Cursor


@frozen(kw_only=True)
class GroupMessageListParams:
    """What was written to a member (to the root, unless `agent_id` names another), the newest first.
    Looking marks nothing as read."""

    root_id: SessionId
    agent_id: SessionId | None = None
    cursor: str | None = None
    limit: int | None = None
    meta: Json | None = None
