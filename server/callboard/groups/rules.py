"""What may be done to a task, by whom, and in which order that is asked (coordination 8.3, 8.4). Pure.

Every function raises a `CallboardError` that says how the task stands; none writes anything.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

from callboard_rpc.common import TaskId
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import TaskStatus
from callboard_rpc.groups import GroupTask

from ..log.text import quoted
from .state import blockers

Operation: TypeAlias = Literal["start", "complete", "block", "release", "cancel", "reassign"]
"""What changes a task, but for a claim, which is a rule of its own."""

FROM: Mapping[Operation, frozenset[TaskStatus]] = {
    "start": frozenset({"claimed"}),
    "complete": frozenset({"claimed", "in_progress"}),
    "block": frozenset({"claimed", "in_progress"}),
    "release": frozenset({"claimed", "in_progress"}),
    "cancel": frozenset({"pending", "claimed", "in_progress", "blocked"}),
    "reassign": frozenset({"pending", "claimed", "in_progress", "blocked"}),
}
"""In which states of a task each may be done."""

_IN_ORDER: Sequence[TaskStatus] = ("pending", "claimed", "in_progress", "blocked")
"""All of these states, as a task goes through them."""

BY_ROOT: frozenset[Operation] = frozenset({"cancel", "reassign"})
"""What only the root may do; the others are the assignee's, and being root gives no right to them."""

Named = Callable[[str], str]
"""How an agent is called in an error."""


def check_transition(task: GroupTask, operation: Operation, agent_id: str, named: Named) -> None:
    """Raises transitionNotAllowed, then notOwner."""
    if task.status not in FROM[operation]:
        if operation == "release" and task.status == "pending":
            raise _not_allowed(
                task, f"nobody owns task {task.task_id}; there is nothing to release"
            )
        *some, last = (each for each in _IN_ORDER if each in FROM[operation])
        allowed = f"{', '.join(some)} or {last}" if some else last
        raise _not_allowed(
            task,
            f"task {task.task_id} is {task.status}; only one that is {allowed} can be "
            f"{_PAST[operation]}",
        )
    if operation not in BY_ROOT and task.assignee != agent_id:
        owner = "nobody" if task.assignee is None else repr(named(task.assignee))
        raise CallboardError(
            "notOwner",
            f"task {task.task_id} belongs to {owner}; only its owner can {operation} it",
            data={"assignee": task.assignee},
        )


_PAST: Mapping[Operation, str] = {
    "start": "started",
    "complete": "completed",
    "block": "blocked",
    "release": "released",
    "cancel": "cancelled",
    "reassign": "reassigned",
}


def _not_allowed(task: GroupTask, message: str) -> CallboardError:
    return CallboardError("transitionNotAllowed", message, data={"status": task.status})


def check_claim(task: GroupTask, tasks: Mapping[TaskId, GroupTask], named: Named) -> None:
    """Raises taskNotClaimable with the task's status and owner, then taskNotReady with what it waits for
    (coordination 8.5). A claim by its owner is refused like any other."""
    if task.status != "pending" or task.assignee is not None:
        owner = "" if task.assignee is None else f", and {named(task.assignee)!r} has it"
        raise CallboardError(
            "taskNotClaimable",
            f"task {task.task_id} is {task.status}{owner}; list the ready ones",
            data={"status": task.status, "assignee": task.assignee},
        )
    check_ready(task, tasks)


def check_ready(task: GroupTask, tasks: Mapping[TaskId, GroupTask]) -> None:
    """Raises taskNotReady for one that waits for others."""
    waits_for = blockers(task, tasks)
    if waits_for:
        raise CallboardError(
            "taskNotReady",
            f"task {task.task_id} waits for {', '.join(waits_for[:8])}"
            + (f" and {len(waits_for) - 8} more" if len(waits_for) > 8 else ""),
            data={"dependencies": list(waits_for)},
        )


class Node(Protocol):
    """What a task is in the graph."""

    @property
    def dependencies(self) -> tuple[TaskId, ...]: ...


def check_dependencies(
    task_id: TaskId, dependencies: Sequence[TaskId], tasks: Mapping[TaskId, Node]
) -> None:
    """Raises invalidGraph for what would not be a graph without cycles: per dependency the task itself, an
    unknown one, one that is named twice; last a way from the dependencies back to the task (8.4)."""
    named: set[TaskId] = set()
    for each in dependencies:
        if each == task_id:
            raise _invalid("self", f"task {each} cannot depend on itself")
        if each not in tasks:
            raise _invalid(
                "unknown", f"there is no task {quoted(each)} to depend on; list the tasks"
            )
        if each in named:
            raise _invalid("duplicate", f"task {each} is named twice among the dependencies")
        named.add(each)
    reached: set[TaskId] = set()
    ahead = list(named)
    while ahead:
        each = ahead.pop()
        if each == task_id:
            raise _invalid("cycle", f"task {task_id} would come to depend on itself")
        if each not in reached and each in tasks:
            reached.add(each)
            ahead += tasks[each].dependencies


def _invalid(reason: str, message: str) -> CallboardError:
    return CallboardError("invalidGraph", message, data={"reason": reason})
