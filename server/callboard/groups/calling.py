"""What the tools of groups have in common: who calls, the codes of errors, and how a model reads a task."""

from collections.abc import Callable, Mapping

from callboard_rpc.common import Actor, SessionId
from callboard_rpc.groups import Group, GroupTask

from ..tools.base import ToolContext
from ..tools.display import one_line
from ..turns.kernel_tools import coded, grant_of
from .membership import Participant, root_of
from .service import Groups
from .tasks import MAX_TITLE_CHARS

SERVICE = "groups"
"""Under which name the host gives tools the `Groups`."""

NONE_YET = "There is no group yet. It comes to be with its first task or message."

CODES: Mapping[str, str] = {
    "invalidParams": "invalid_argument",
    "invalidGraph": "invalid_argument",
    "rootOnly": "root_only",
    "taskNotFound": "unknown_task",
    "taskNotClaimable": "not_claimable",
    "taskNotReady": "task_not_ready",
    "notOwner": "not_owner",
    "transitionNotAllowed": "transition_not_allowed",
    "notAMember": "not_a_member",
    "agentClosed": "agent_closed",
    "messageTooLong": "message_too_long",
    "limitReached": "limit_reached",
    "sessionClosed": "session_closed",
    "sessionArchived": "session_archived",
}
"""What a model is told for an error's kind: a code that stays, before a text that may change."""

_SUMMARY_CHARS = 200
_ID_CHARS = 80

with_codes = coded(CODES)


def groups_of(context: ToolContext) -> Groups:
    service = context.services[SERVICE]
    assert isinstance(service, Groups)
    return service


def participant(context: ToolContext) -> Participant:
    """The run that makes the call."""
    return Participant(
        root_id=root_of(groups_of(context).glance, context.session),
        agent_id=SessionId(context.session),
        by=Actor(kind="agent", id=context.session),
        grant=grant_of(context),
    )


def task_line(task: GroupTask, named: Callable[[str], str]) -> str:
    """A task on one line, with its whole id: status, id, title, owner, what it waits for, what came of it."""
    parts = [f"{task.status} [{id_in_line(task.task_id)}] {one_line(task.title, MAX_TITLE_CHARS)}"]
    if not task.required:
        parts.append("optional")
    if task.assignee is not None:
        parts.append(f"owner: {id_in_line(named(task.assignee))}")
    if task.blockers:
        parts.append(f"waits for: {', '.join(map(id_in_line, task.blockers))}")
    said = task.reason if task.status in ("blocked", "cancelled") else task.summary
    if said:
        parts.append(one_line(said, _SUMMARY_CHARS))
    return " · ".join(parts)


def header_line(group: Group) -> str:
    """A group on one line: its name, and how many tasks there are of each kind."""
    c = group.counts
    tasks = "1 task" if c.total == 1 else f"{c.total} tasks"
    return (
        f"group {id_in_line(group.name)} ({short_id(group.group_id)}): {tasks}, {c.pending} pending of "
        f"which {c.ready} ready, {c.claimed} claimed, {c.in_progress} in progress, {c.completed} completed, "
        f"{c.blocked} blocked, {c.cancelled} cancelled"
    )


def short_id(full_id: str) -> str:
    """Enough of an id to tell it from others that are near."""
    return id_in_line(full_id[:12])


def id_in_line(text: str) -> str:
    """An id or a name as a part of a line: of one that a file has brought in, nothing ends the line."""
    return one_line(text, _ID_CHARS)
