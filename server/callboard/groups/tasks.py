"""What is done to the tasks of a group: each a piece of a transaction, with every check inside it.

Two that race are decided by the order of their transactions: the first one wins, and the other one reads
how the task stands by then (coordination 8.5).
"""

from collections.abc import Sequence
from typing import Literal

from attrs import frozen

from callboard_rpc.common import SessionId, TaskId
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import (
    GroupTaskClaimed,
    GroupTaskCreated,
    GroupTaskReleased,
    GroupTaskStatusChanged,
    TaskStatus,
)
from callboard_rpc.groups import MAX_ITEMS, MAX_TASKS, GroupTask

from ..log.text import quoted, well_formed
from ..log.transaction import Transaction
from ..turns.boundary import Query
from .membership import Participant, append, join, may_act, must_be_member, must_be_root, the_group
from .projection import SQL, by_id, find_task, graph_of, ids
from .rules import (
    Named,
    Operation,
    check_claim,
    check_dependencies,
    check_ready,
    check_transition,
)
from .state import TaskChange, changed, seen

MAX_TITLE_CHARS = 200
MAX_TEXT_CHARS = 16_000
MAX_ITEM_CHARS = 2_000


@frozen(kw_only=True)
class NewTask:
    title: str
    description: str = ""
    dependencies: tuple[TaskId, ...] = ()
    required: bool = True
    expected_paths: tuple[str, ...] = ()


@frozen(kw_only=True)
class Said:
    """What is said of a task with a change; what is empty leaves what was said before."""

    summary: str | None = None
    reason: str | None = None
    findings: tuple[str, ...] = ()
    touched_files: tuple[str, ...] = ()


# --- what may be said ---------------------------------------------------------------------------


def checked_task(wanted: NewTask) -> NewTask:
    """Raises invalidParams."""
    title = " ".join(well_formed(wanted.title).split())
    if not title:
        raise invalid("title", "a task needs a title that is not blank")
    if len(title) > MAX_TITLE_CHARS:
        raise invalid(
            "title", f"the title has {len(title)} characters; {MAX_TITLE_CHARS} are allowed"
        )
    return NewTask(
        title=title,
        description=text_of("description", wanted.description) or "",
        dependencies=tuple(TaskId(each) for each in _items("dependencies", wanted.dependencies)),
        required=wanted.required,
        expected_paths=_items("expectedPaths", wanted.expected_paths),
    )


def checked_said(operation: Operation, said: Said) -> Said:
    """Raises invalidParams: whoever completes a task says what came of it, whoever blocks one, why."""
    summary, reason = text_of("summary", said.summary), text_of("reason", said.reason)
    if operation == "complete" and not summary:
        raise invalid(
            "summary", "a completed task needs a summary: what was done, and what came of it"
        )
    if operation == "block" and not reason:
        raise invalid("reason", "a blocked task needs a reason: what keeps it from being done")
    return Said(
        summary=summary,
        reason=reason,
        findings=_items("findings", said.findings),
        touched_files=_items("touchedFiles", said.touched_files),
    )


def text_of(name: str, text: str | None) -> str | None:
    """Trimmed; None for a blank one. Raises invalidParams for one that is too long."""
    clean = well_formed(text or "").strip()
    if len(clean) > MAX_TEXT_CHARS:
        raise invalid(name, f"{name} has {len(clean)} characters; {MAX_TEXT_CHARS} are allowed")
    return clean or None


def _items(name: str, items: Sequence[str]) -> tuple[str, ...]:
    clean = tuple(text for each in items if (text := well_formed(each).strip()))
    if len(clean) > MAX_ITEMS:
        raise invalid(name, f"{name} has {len(clean)} entries; {MAX_ITEMS} are allowed")
    if any(len(each) > MAX_ITEM_CHARS for each in clean):
        raise invalid(name, f"an entry of {name} has more than {MAX_ITEM_CHARS} characters")
    return clean


def invalid(field: str, message: str) -> CallboardError:
    """An invalidParams error about one field, by its name on the wire."""
    fault = {"path": f"$.{field}", "message": message}
    return CallboardError("invalidParams", message, data={"errors": [fault]})


# --- creating -----------------------------------------------------------------------------------


def create(tx: Transaction, who: Participant, task: NewTask) -> GroupTask:
    """A new task, of a group that comes to be with it. Raises rootOnly, invalidGraph, limitReached, and what
    `may_act` does; then nothing is written (8.4)."""
    may_act(tx, who)
    must_be_root(who, "create tasks")
    count: int = tx.value(SQL["count_tasks"], who.root_id)
    if count >= MAX_TASKS:
        raise CallboardError("limitReached", f"the group has {count} tasks, and takes no more")
    task_id = TaskId(tx.new_id("tsk"))
    below = graph_of(tx.all(SQL["tasks_below"], who.root_id, ids(task.dependencies)))
    check_dependencies(task_id, task.dependencies, below)
    group = the_group(tx, who)
    append(
        tx,
        who,
        GroupTaskCreated(
            task_id=task_id,
            group_id=group.group_id,
            title=task.title,
            created_by=who.agent_id,
            description=task.description,
            dependencies=task.dependencies,
            required=task.required,
            expected_paths=task.expected_paths,
        ),
    )
    return as_it_stands(tx.all, who.root_id, task_id)


# --- claiming -----------------------------------------------------------------------------------


def claim(tx: Transaction, who: Participant, task_id: str) -> GroupTask:
    """Makes whoever acts the owner of a ready task, and a member. Raises taskNotFound,
    taskNotClaimable, taskNotReady: of any number that try at once one succeeds (coordination 82)."""
    may_act(tx, who)
    return own(tx, who, task_id, who.agent_id)


def own(tx: Transaction, who: Participant, task_id: str, agent_id: SessionId) -> GroupTask:
    """`claim` for an agent: for oneself, or for a child that is made in this transaction (8.6)."""
    task = existing(tx.all, who.root_id, task_id)
    dependencies = dependencies_of(tx.all, who.root_id, task)
    check_claim(task, dependencies, names(tx.all, who.root_id))
    join(tx, who, the_group(tx, who), agent_id)
    claimed = append(tx, who, GroupTaskClaimed(task_id=task.task_id, agent_id=agent_id))
    return seen(changed(task, claimed.value, claimed.at), dependencies)


def may_be_owned(query: Query, root_id: str, task_id: str) -> None:
    """Whether `own` would find the task free, as it stands now. Raises what that does."""
    task = existing(query, root_id, task_id)
    check_claim(task, dependencies_of(query, root_id, task), names(query, root_id))


# --- changing -----------------------------------------------------------------------------------

_BECOMES: dict[Operation, TaskStatus] = {
    "start": "in_progress",
    "complete": "completed",
    "block": "blocked",
    "cancel": "cancelled",
}


def change(
    tx: Transaction,
    who: Participant,
    task_id: str,
    operation: Literal["start", "complete", "block", "release", "cancel"],
    said: Said,
) -> GroupTask:
    """Starts, completes, blocks, releases or cancels a task. `said` has been checked. Raises, in this
    order, taskNotFound, rootOnly, transitionNotAllowed, notOwner (8.3)."""
    may_act(tx, who)
    task = existing(tx.all, who.root_id, task_id)
    if operation == "cancel":
        must_be_root(who, "cancel tasks")
    check_transition(task, operation, who.agent_id, names(tx.all, who.root_id))
    if operation == "release":
        event = GroupTaskReleased(task_id=task.task_id, agent_id=who.agent_id)
    else:
        event = GroupTaskStatusChanged(
            task_id=task.task_id,
            status=_BECOMES[operation],
            agent_id=who.agent_id,
            summary=said.summary,
            reason=said.reason,
            findings=said.findings,
            touched_files=said.touched_files,
        )
    return _with(tx, who, task, event)


def reassign(tx: Transaction, who: Participant, task_id: str, agent_id: str) -> GroupTask:
    """The root gives a task to a member, or to itself. Raises, in this order, taskNotFound, rootOnly,
    transitionNotAllowed, notAMember, agentClosed, taskNotReady (8.3)."""
    may_act(tx, who)
    task = existing(tx.all, who.root_id, task_id)
    must_be_root(who, "give tasks to others")
    check_transition(task, "reassign", who.agent_id, names(tx.all, who.root_id))
    must_be_member(tx, who.root_id, agent_id)
    if task.status == "pending":
        check_ready(task, dependencies_of(tx.all, who.root_id, task))
    event = GroupTaskStatusChanged(
        task_id=task.task_id,
        status="claimed",
        agent_id=who.agent_id,
        assignee=SessionId(agent_id),
        reason="reassigned",
    )
    return _with(tx, who, task, event)


def _with(tx: Transaction, who: Participant, task: GroupTask, event: TaskChange) -> GroupTask:
    """Appends what becomes of a task, and returns it as it stands then."""
    kept = append(tx, who, event)
    now = changed(task, kept.value, kept.at)
    return seen(now, dependencies_of(tx.all, who.root_id, now))


# --- looking ------------------------------------------------------------------------------------


def existing(query: Query, root_id: str, task_id: str) -> GroupTask:
    """Raises taskNotFound, for a task of another group as well."""
    task = find_task(query, root_id, task_id)
    if task is None:
        raise CallboardError(
            "taskNotFound", f"there is no task {quoted(task_id)} in this group; list the tasks"
        )
    return task


def dependencies_of(query: Query, root_id: str, task: GroupTask) -> dict[TaskId, GroupTask]:
    if not task.dependencies:
        return {}
    return by_id(query(SQL["tasks_of"], root_id, ids(task.dependencies)))


def as_it_stands(query: Query, root_id: str, task_id: str) -> GroupTask:
    """A task with what follows from its dependencies."""
    task = existing(query, root_id, task_id)
    return seen(task, dependencies_of(query, root_id, task))


def names(query: Query, root_id: str) -> Named:
    """What agents of a tree are called, in what others read."""

    def named(agent_id: str) -> str:
        if agent_id == root_id:
            return "root"
        rows = query(SQL["name_of"], agent_id, root_id)
        return rows[0][0] if rows else agent_id

    return named
