"""``group_status``: how a group stands, as a model reads it, a line for each thing (coordination 9)."""

from collections.abc import Sequence

from attrs import frozen

from callboard_rpc.groups import GroupMember, GroupTask, TaskFilter

from ..tools.base import ToolContext, ToolOutcome
from ..tools.display import one_line
from ..turns.kernel_tools import kernel_tool
from .calling import NONE_YET, groups_of, header_line, id_in_line, task_line, with_codes
from .state import count_of
from .tasks import names

_MANY = 8
_FEW = 4
_MEMBERS = 20
_PATH_CHARS = 400


@frozen(kw_only=True)
class GroupStatusCall:
    pass


@with_codes
async def _status(context: ToolContext, _: GroupStatusCall) -> ToolOutcome:
    groups = groups_of(context)
    group = await groups.reading.group(context.session)
    if group is None:
        return ToolOutcome(text=NONE_YET)
    named = names(groups.glance, group.root_id)
    lines = [header_line(group), *_members(group.members)]
    kinds: tuple[tuple[TaskFilter, tuple[GroupTask, ...]], ...] = (
        ("ready", group.ready),
        ("active", group.active),
        ("blocked", group.blocked),
    )
    for kind, tasks in kinds:
        shown = tasks[:_MANY]
        lines += [f"{kind}: {task_line(task, named)}" for task in shown]
        lines += _more(kind, count_of(group.counts, kind) - len(shown))
    lines += [
        f"dependency failure: {id_in_line(f.task_id)} waits for {id_in_line(f.dependency_id)}, "
        f"which is {f.status}"
        for f in group.dependency_failures[:_FEW]
    ]
    lines += _more("dependency failures", len(group.dependency_failures) - _FEW)
    lines += [
        f"conflict: {' and '.join(map(id_in_line, c.task_ids))} both mean to change "
        f"{one_line(c.path, _PATH_CHARS)}"
        for c in group.conflicts[:_FEW]
    ]
    lines += _more("conflicts", len(group.conflicts) - _FEW)
    return ToolOutcome(text="\n".join(lines))


def _members(members: Sequence[GroupMember]) -> list[str]:
    """Those who can still act come first. Their ids are what a message, or a task, is addressed by."""
    agents = sorted(
        (member for member in members if not member.is_root),
        key=lambda member: not _is_open(member),
    )
    shown = [
        f"{id_in_line(m.name)} [{id_in_line(m.agent_id)}]{'' if _is_open(m) else ' (closed)'}"
        for m in agents[:_MEMBERS]
    ]
    return [
        f"members: {', '.join(shown) or 'none but the root'}",
        *_more("members", len(agents) - _MEMBERS),
    ]


def _is_open(member: GroupMember) -> bool:
    """One without a status is none of this tree, or was deleted."""
    return member.status not in (None, "closed")


def _more(what: str, count: int) -> list[str]:
    return [f"{what}: {count} more"] if count > 0 else []


GROUP_STATUS = kernel_tool(
    "group_status",
    "How the group stands: members, counts, ready, active and blocked tasks, conflicts.",
    GroupStatusCall,
    _status,
    lambda a: "Look at the task board",
)
