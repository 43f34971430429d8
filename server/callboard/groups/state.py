"""A group, told from its events alone: pure, and the same in every process (coordination 8).

The projection applies these rules to rows, so that the tables and a replay of the log say the same.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias, get_args

import attrs
from attrs import field, frozen

from callboard_rpc.common import GroupId, SessionId, TaskId
from callboard_rpc.events import (
    AgentGroupCreated,
    AgentGroupMemberJoined,
    GroupTaskClaimed,
    GroupTaskCreated,
    GroupTaskReleased,
    GroupTaskStatusChanged,
    TaskStatus,
)
from callboard_rpc.groups import (
    DependencyFailure,
    GroupConflict,
    GroupCounts,
    GroupTask,
    TaskFilter,
)

ACTIVE: frozenset[TaskStatus] = frozenset({"claimed", "in_progress"})
FINAL: frozenset[TaskStatus] = frozenset({"completed", "cancelled"})

_NO_TASKS: Mapping[TaskId, GroupTask] = MappingProxyType({})


@frozen(kw_only=True)
class GroupState:
    """A group as its events tell it. `members` are agents in the order in which they joined, without
    the root. A value: a newer one replaces it."""

    group_id: GroupId
    root_id: SessionId
    name: str
    created_at: str
    members: tuple[SessionId, ...] = ()
    tasks: Mapping[TaskId, GroupTask] = field(default=_NO_TASKS)

    def in_order(self) -> list[GroupTask]:
        """By creation, then id: the order of every list (coordination 8.7)."""
        return in_order(self.tasks.values())


# --- tasks --------------------------------------------------------------------------------------

TaskChange: TypeAlias = GroupTaskClaimed | GroupTaskReleased | GroupTaskStatusChanged


def created(event: GroupTaskCreated, at: str) -> GroupTask:
    return GroupTask(
        task_id=event.task_id,
        group_id=event.group_id,
        title=event.title,
        status="pending",
        created_by=event.created_by,
        created_at=at,
        updated_at=at,
        description=event.description,
        dependencies=event.dependencies,
        required=event.required,
        expected_paths=event.expected_paths,
    )


def changed(task: GroupTask, event: TaskChange, at: str) -> GroupTask:
    """The task after an event about it."""
    return attrs.evolve(task, **changes(event, at))


def changes(event: TaskChange, at: str) -> dict[str, Any]:
    """What an event about a task makes of its fields. What it leaves empty stays what it was (8.3)."""
    match event:
        case GroupTaskClaimed():
            return {"updated_at": at, "status": "claimed", "assignee": event.agent_id}
        case GroupTaskReleased():
            return {"updated_at": at, "status": "pending", "assignee": None}
        case GroupTaskStatusChanged():
            said = {
                "assignee": event.assignee,
                "summary": event.summary,
                "reason": event.reason,
                "findings": event.findings,
                "touched_files": event.touched_files,
            }
            fresh = {name: value for name, value in said.items() if value}
            return {"updated_at": at, "status": event.status, **fresh}


def in_order(tasks: Iterable[GroupTask]) -> list[GroupTask]:
    return sorted(tasks, key=lambda task: (task.created_at, task.task_id))


# --- the group ----------------------------------------------------------------------------------


def apply(state: GroupState | None, event: Any, at: str, root_id: SessionId) -> GroupState | None:
    """The group after an event of its root session, committed `at`. What cannot follow from what was
    there (a claim of an unknown task, in a file that somebody wrote) changes nothing."""
    if state is None:
        if isinstance(event, AgentGroupCreated):
            return GroupState(
                group_id=event.group_id, root_id=root_id, name=event.name, created_at=at
            )
        return None
    match event:
        case AgentGroupMemberJoined(agent_id=agent_id):
            if agent_id in state.members or agent_id == root_id:
                return state
            return attrs.evolve(state, members=(*state.members, agent_id))
        case GroupTaskCreated():
            if event.task_id in state.tasks:
                return state
            return _with(state, created(event, at))
        case GroupTaskClaimed() | GroupTaskReleased() | GroupTaskStatusChanged():
            known = state.tasks.get(event.task_id)
            return state if known is None else _with(state, changed(known, event, at))
        case _:
            return state


def _with(state: GroupState, task: GroupTask) -> GroupState:
    return attrs.evolve(state, tasks=MappingProxyType({**state.tasks, task.task_id: task}))


def replay(events: Iterable[tuple[Any, str]], root_id: SessionId) -> GroupState | None:
    """A group from the events of its root session, each with its time; None without a group. Linear in
    the number of events (coordination 87)."""
    state: GroupState | None = None
    tasks: dict[TaskId, GroupTask] = {}
    since: dict[
        TaskId, dict[str, Any]
    ] = {}  # a task is copied once, and not for each of its events
    members: dict[SessionId, None] = {}
    for event, at in events:
        if state is None:
            state = apply(None, event, at, root_id)
            continue
        match event:
            case GroupTaskClaimed() | GroupTaskReleased() | GroupTaskStatusChanged():
                if event.task_id in tasks:
                    since[event.task_id].update(changes(event, at))
            case GroupTaskCreated() if event.task_id not in tasks:
                tasks[event.task_id] = created(event, at)
                since[event.task_id] = {}
            case AgentGroupMemberJoined(agent_id=agent_id) if agent_id != root_id:
                members.setdefault(agent_id)
            case _:
                pass
    if state is None:
        return None
    now = {
        task_id: attrs.evolve(task, **since[task_id]) if since[task_id] else task
        for task_id, task in tasks.items()
    }
    return attrs.evolve(state, members=tuple(members), tasks=MappingProxyType(now))


# --- what follows from it (8.7) -----------------------------------------------------------------


def blockers(task: GroupTask, tasks: Mapping[TaskId, GroupTask]) -> tuple[TaskId, ...]:
    """Its dependencies that are not completed; one that is unknown never will be."""
    return tuple(
        each
        for each in task.dependencies
        if (known := tasks.get(each)) is None or known.status != "completed"
    )


def is_ready(task: GroupTask, tasks: Mapping[TaskId, GroupTask]) -> bool:
    """Pending, nobody's, and every dependency completed."""
    return task.status == "pending" and task.assignee is None and not blockers(task, tasks)


def seen(task: GroupTask, tasks: Mapping[TaskId, GroupTask]) -> GroupTask:
    """The task with what follows from the others."""
    follow = follows(task.status, task.assignee, blockers(task, tasks))
    if follow == (task.ready, task.blockers):
        return task
    ready, waits_for = follow
    return attrs.evolve(task, ready=ready, blockers=waits_for)


def follows(
    status: TaskStatus, assignee: SessionId | None, waits_for: tuple[TaskId, ...]
) -> tuple[bool, tuple[TaskId, ...]]:
    """Whether a task is ready, and what it is told to wait for, of its dependencies that are not completed."""
    if status in FINAL:
        return False, ()
    return status == "pending" and assignee is None and not waits_for, waits_for


def is_shown(task: GroupTask, wanted: TaskFilter) -> bool:
    """Whether a list of `wanted` shows a task that was `seen`."""
    return task.status in statuses_of(wanted) and (wanted != "ready" or task.ready)


def statuses_of(wanted: TaskFilter) -> Iterable[TaskStatus]:
    """In which states a task is that a list of `wanted` shows; of the pending ones it may show only those
    that are `ready`."""
    match wanted:
        case "all":
            return get_args(TaskStatus)
        case "open":
            return [status for status in get_args(TaskStatus) if status not in FINAL]
        case "ready":
            return ["pending"]
        case "active":
            return ACTIVE
        case _:
            return [wanted]


def count_of(counts: GroupCounts, wanted: TaskFilter) -> int:
    """How many tasks a list of `wanted` shows."""
    match wanted:
        case "all":
            return counts.total
        case "open":
            return counts.total - counts.completed - counts.cancelled
        case "active":
            return counts.claimed + counts.in_progress
        case _:
            return getattr(counts, wanted)


def counts(tasks: Mapping[TaskId, GroupTask]) -> GroupCounts:
    """How many tasks there are of each kind."""
    ready = sum(1 for task in tasks.values() if is_ready(task, tasks))
    return tally((task.status for task in tasks.values()), ready=ready)


def tally(statuses: Iterable[TaskStatus], *, ready: int, completed: int = 0) -> GroupCounts:
    """`counts` of tasks of which so many are ready, and so many more are completed."""
    number = {
        "pending": 0, "claimed": 0, "in_progress": 0, "completed": completed, "blocked": 0,
        "cancelled": 0,
    }  # fmt: skip
    for status in statuses:
        number[status] += 1
    return GroupCounts(total=sum(number.values()), ready=ready, **number)


MAX_FAILURES = 1_000
"""Dependencies that failed, as far as they are told, of a board on which everything waits for the same tasks."""


def dependency_failures(tasks: Mapping[TaskId, GroupTask]) -> tuple[DependencyFailure, ...]:
    """Of each task that is not over: its direct dependencies that are blocked, then those cancelled; by the
    task's id; the first `MAX_FAILURES` of them. Such a task never becomes ready by itself (coordination 89)."""
    broken = {
        task_id: status
        for task_id, task in tasks.items()
        if (status := task.status) == "blocked" or status == "cancelled"
    }
    failures: list[DependencyFailure] = []
    for task_id in sorted(tasks) if broken else ():
        if len(failures) >= MAX_FAILURES:
            break
        task = tasks[task_id]
        if task.status in FINAL:
            continue
        ends = [each for each in task.dependencies if each in broken]
        for status in ("blocked", "cancelled") if ends else ():
            failures += [
                DependencyFailure(task_id=task_id, dependency_id=each, status=status)
                for each in ends
                if broken[each] == status
            ]
    return tuple(failures[:MAX_FAILURES])


MAX_CONFLICTS = 1_000
"""Conflicts that are told, of a board on which everybody names the same files."""


def conflicts(tasks: Mapping[TaskId, GroupTask]) -> tuple[GroupConflict, ...]:
    """Pairs of active tasks that name the same file, each with the alphabetically first of those files, in
    the order of lists; the first `MAX_CONFLICTS` of them. A folder and a file in it are not the same
    (coordination 90, 91)."""
    active = in_order(task for task in tasks.values() if task.status in ACTIVE)
    paths = [
        sorted({*map(normal_path, (*task.expected_paths, *task.touched_files))} - {""})
        for task in active
    ]
    naming: dict[str, list[int]] = {}
    for number, named in enumerate(paths):
        for path in named:
            naming.setdefault(path, []).append(number)
    found: list[GroupConflict] = []
    for number, named in enumerate(paths):
        with_others: dict[int, str] = {}
        room = MAX_CONFLICTS - len(found)
        for path in named:
            others = naming[path]
            first = bisect_right(others, number)
            # the first of all are among the first of each path
            for other in others[first : first + room]:
                with_others.setdefault(other, path)
        for other in sorted(with_others)[:room]:
            pair = (active[number].task_id, active[other].task_id)
            found.append(GroupConflict(task_ids=pair, path=with_others[other]))
        if len(found) == MAX_CONFLICTS:
            break
    return tuple(found)


def normal_path(path: str) -> str:
    """A path as conflicts compare it: trimmed, with slashes, without a leading ``./``, in ASCII lower case
    (in this order, coordination 8.7)."""
    text = path.strip().replace("\\", "/")
    while text.startswith("./"):
        text = text[2:]
    if text.isascii():
        return text.lower()
    return "".join(c.lower() if c.isascii() else c for c in text)


def required_unfinished(tasks: Mapping[TaskId, GroupTask]) -> tuple[GroupTask, ...]:
    """What keeps the root's work from being complete; blocked tasks count."""
    return tuple(t for t in in_order(tasks.values()) if t.required and t.status not in FINAL)
