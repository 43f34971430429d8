"""The three tools of a group, and the one that declares the work complete: always the same, for the root and
its agents, whatever there is of a group (coordination 9)."""

from collections.abc import Mapping
from typing import Literal

from attrs import field, frozen

from callboard_rpc.common import TaskId
from callboard_rpc.errors import CallboardError
from callboard_rpc.groups import GroupTask, TaskFilter

from ..tools.base import ToolContext, ToolFailure, ToolOutcome
from ..tools.display import one_line
from ..tools.schema import describe
from ..turns.kernel_tools import kernel_tool, refuse_other_fields, required
from .calling import (
    NONE_YET,
    groups_of,
    header_line,
    id_in_line,
    participant,
    short_id,
    task_line,
    with_codes,
)
from .state import count_of
from .status_tool import GROUP_STATUS
from .tasks import NewTask, Said, existing, names

# --- group_task ---------------------------------------------------------------------------------

Operation = Literal["create", "list", "claim", "start", "complete", "block", "release", "cancel"]

_FIELDS: Mapping[str, tuple[str, ...]] = {
    "create": ("title", "description", "dependencies", "required", "expected_paths"),
    "list": ("status", "limit"),
    "claim": ("task_id", "agent_id"),
    "start": ("task_id", "reason"),
    "complete": ("task_id", "summary", "touched_files", "findings"),
    "block": ("task_id", "reason"),
    "release": ("task_id", "reason"),
    "cancel": ("task_id", "reason"),
}
_LISTED = 20


@frozen(kw_only=True)
class GroupTaskCall:
    op: Operation = field(
        metadata=describe(
            "create, cancel: the root only. claim: take a ready task (the root may give it to agent_id). "
            "start, complete, block, release: your own task."
        )
    )
    task_id: str | None = field(
        default=None, metadata=describe("The task; for all but create and list.")
    )
    title: str | None = field(default=None, metadata=describe("create: what is to be done."))
    description: str | None = field(
        default=None, metadata=describe("create: what whoever does it has to know.")
    )
    dependencies: tuple[str, ...] | None = field(
        default=None,
        metadata=describe("create: ids of tasks that must be completed before.", maxItems=200),
    )
    required: bool | None = field(
        default=None,
        metadata=describe("create: whether your work is not complete without it. Default true."),
    )
    expected_paths: tuple[str, ...] | None = field(
        default=None,
        metadata=describe("create: files that it will change, to warn of conflicts.", maxItems=200),
    )
    status: TaskFilter | None = field(
        default=None, metadata=describe("list: which tasks. Default 'open'.")
    )
    limit: int | None = field(
        default=None,
        metadata=describe("list: how many. Default 20.", minimum=1, maximum=_LISTED),
    )
    agent_id: str | None = field(
        default=None,
        metadata=describe("claim, by the root: the id of the member that is to own it."),
    )
    summary: str | None = field(
        default=None, metadata=describe("complete: what was done, and what came of it.")
    )
    touched_files: tuple[str, ...] | None = field(
        default=None, metadata=describe("complete: files that were changed.", maxItems=200)
    )
    findings: tuple[str, ...] | None = field(
        default=None, metadata=describe("complete: what others should know.", maxItems=200)
    )
    reason: str | None = field(
        default=None, metadata=describe("block: what keeps it from being done. cancel: why.")
    )


@with_codes
async def _task(context: ToolContext, arguments: GroupTaskCall) -> ToolOutcome:
    operation = arguments.op
    refuse_other_fields(arguments, operation, _FIELDS)
    if operation == "list":
        return await _list(context, arguments)
    if operation == "create":
        required(arguments, operation, "title")
        return await _create(context, arguments)
    required(arguments, operation, "task_id")
    return await _change(context, arguments)


async def _list(context: ToolContext, arguments: GroupTaskCall) -> ToolOutcome:
    groups = groups_of(context)
    group = await groups.reading.group(context.session)
    if group is None:
        return ToolOutcome(text=NONE_YET)
    wanted = arguments.status or "open"
    page = await groups.reading.tasks(context.session, wanted, limit=arguments.limit or _LISTED)
    shown, left_out = page.tasks, count_of(group.counts, wanted) - len(page.tasks)
    named = names(groups.glance, group.root_id)
    lines = [header_line(group), *(task_line(task, named) for task in shown)]
    if not shown:
        lines.append(f"No task is {wanted}." if wanted != "all" else "There are no tasks.")
    if left_out > 0:
        lines.append(f"{left_out} more")
    return ToolOutcome(text="\n".join(lines))


async def _create(context: ToolContext, arguments: GroupTaskCall) -> ToolOutcome:
    assert arguments.title is not None
    task = await groups_of(context).create(
        participant(context),
        NewTask(
            title=arguments.title,
            description=arguments.description or "",
            dependencies=tuple(TaskId(each) for each in arguments.dependencies or ()),
            required=arguments.required is not False,
            expected_paths=arguments.expected_paths or (),
        ),
    )
    return _told(context, task)


async def _change(context: ToolContext, arguments: GroupTaskCall) -> ToolOutcome:
    groups, who, task_id = groups_of(context), participant(context), arguments.task_id
    assert task_id is not None
    await _must_have_group(context, arguments.op)
    if arguments.op == "claim":
        if arguments.agent_id is None:
            return _told(context, await groups.claim(who, task_id))
        return _told(context, await groups.reassign(who, task_id, arguments.agent_id))
    assert arguments.op in ("start", "complete", "block", "release", "cancel")
    said = Said(
        summary=arguments.summary,
        # of a start or a release it is taken, and not kept
        reason=arguments.reason if arguments.op in ("block", "cancel") else None,
        findings=arguments.findings or (),
        touched_files=arguments.touched_files or (),
    )
    return _told(context, await groups.change(who, task_id, arguments.op, said))


async def _must_have_group(context: ToolContext, operation: str) -> None:
    if operation in ("cancel", "release", "claim") and (
        await groups_of(context).reading.group(context.session) is None
    ):
        raise ToolFailure(f"no_group: there is no group yet, and so no task to {operation}")


def _told(context: ToolContext, task: GroupTask) -> ToolOutcome:
    named = names(groups_of(context).glance, participant(context).root_id)
    return ToolOutcome(text=task_line(task, named))


def _title_of(context: ToolContext, task_id: str) -> str:
    try:
        return existing(groups_of(context).glance, participant(context).root_id, task_id).title
    except CallboardError:  # told by the call itself
        return task_id


GROUP_TASK = kernel_tool(
    "group_task",
    (
        "The task board that the root shares with its agents. A task is ready when all that it depends on is "
        "completed; of those who claim it, one gets it. Claim before you begin, and complete, block or release "
        "what you own."
    ),
    GroupTaskCall,
    _task,
    lambda a: f"Task board: {a.op} {a.title or a.task_id or ''}".rstrip(),
    called={"task_id": _title_of},
)


# --- group_message ------------------------------------------------------------------------------

_MESSAGE_FIELDS: Mapping[str, tuple[str, ...]] = {
    "send": ("to", "agent_id", "text"),
    "list": ("limit",),
}
_MESSAGES = 10
_MOST_MESSAGES = 20
_TEXT_CHARS = 400


@frozen(kw_only=True)
class GroupMessageCall:
    op: Literal["send", "list"] = field(
        metadata=describe("send a message, or list those that were written to you.")
    )
    to: Literal["agent", "root", "group"] | None = field(
        default=None, metadata=describe("send: one member, the root, or everybody else.")
    )
    agent_id: str | None = field(
        default=None,
        metadata=describe("send: the member's id (group_status tells them), with to 'agent' only."),
    )
    text: str | None = field(
        default=None, metadata=describe("send: what to say, in at most 4,000 bytes.")
    )
    limit: int | None = field(
        default=None,
        metadata=describe("list: how many. Default 10.", minimum=1, maximum=_MOST_MESSAGES),
    )


@with_codes
async def _message(context: ToolContext, arguments: GroupMessageCall) -> ToolOutcome:
    refuse_other_fields(arguments, arguments.op, _MESSAGE_FIELDS)
    if arguments.op == "list":
        return await _inbox(context, arguments.limit or _MESSAGES)
    required(arguments, "send", "to", "text")
    assert arguments.to is not None
    assert arguments.text is not None
    sent = await groups_of(context).send(
        participant(context), arguments.to, arguments.agent_id, arguments.text
    )
    whom = {"root": "the root", "agent": arguments.agent_id, "group": "the group"}[arguments.to]
    if not sent.recipients:
        return ToolOutcome(
            text=f"{short_id(sent.message_id)}: nobody else is in the group to read it."
        )
    return ToolOutcome(
        text=f"{short_id(sent.message_id)} queued for {whom}; it is read at the recipient's next step, and "
        "wakes nobody."
    )


async def _inbox(context: ToolContext, limit: int) -> ToolOutcome:
    groups, who = groups_of(context), participant(context)
    group = await groups.reading.group(context.session)
    if group is None:
        return ToolOutcome(text=NONE_YET)
    if all(member.agent_id != who.agent_id for member in group.members):
        return ToolOutcome(text="Nobody has written to you: you are no member of the group yet.")
    page = await groups.reading.inbox(context.session, who.agent_id, limit=limit)
    lines = [
        f"{'seen' if m.seen else 'unread'} {short_id(m.message_id)} from {id_in_line(m.sender_name)}: "
        f"{one_line(m.text, _TEXT_CHARS)}"
        for m in reversed(page.messages)
    ]
    return ToolOutcome(text="\n".join(lines) or "Nobody has written to you.")


def _member_name(context: ToolContext, agent_id: str) -> str:
    return names(groups_of(context).glance, participant(context).root_id)(agent_id)


GROUP_MESSAGE = kernel_tool(
    "group_message",
    (
        "Tell members of the group something that they should know. It is information: it wakes nobody and "
        "changes no task."
    ),
    GroupMessageCall,
    _message,
    lambda a: f"Message to {a.agent_id or a.to}: {a.text}" if a.op == "send" else "List messages",
    called={"agent_id": _member_name},
)


# --- complete -----------------------------------------------------------------------------------


@frozen(kw_only=True)
class Complete:
    implementation_done: bool = field(
        metadata=describe("Whether all that was asked for is implemented.")
    )
    summary: str | None = field(
        default=None, metadata=describe("What was done, for the record.", maxLength=16_000)
    )


@with_codes
async def _complete(context: ToolContext, arguments: Complete) -> ToolOutcome:
    if not arguments.implementation_done:
        return ToolOutcome(text="Noted: the work goes on.")
    refusal = await groups_of(context).complete(participant(context), arguments.summary or "")
    if refusal is not None:
        raise ToolFailure(f"not_complete: {refusal}")
    return ToolOutcome(
        text="Recorded as implemented; nobody has verified it. End now with your last words to the user."
    )


COMPLETE = kernel_tool(
    "complete",
    (
        "Declare that all that was asked for is implemented. It is refused while the task board has required "
        "tasks that are open. Only needed when there is a task board."
    ),
    Complete,
    _complete,
    lambda a: "Declare the work complete",
)

GROUP_TOOLS = (GROUP_TASK, GROUP_MESSAGE, GROUP_STATUS, COMPLETE)
