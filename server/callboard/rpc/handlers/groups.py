"""``group/*``: a person at the task board, in the place of the root."""

from typing import Any, Literal

from callboard_rpc.common import MessageId, SessionId
from callboard_rpc.errors import CallboardError
from callboard_rpc.groups import (
    GroupGetParams,
    GroupGetResult,
    GroupMessage,
    GroupMessageListParams,
    GroupMessageSendParams,
    GroupMessageSendResult,
    GroupTask,
    TaskBlockParams,
    TaskCancelParams,
    TaskClaimParams,
    TaskCompleteParams,
    TaskCreateParams,
    TaskListParams,
    TaskParams,
    TaskReassignParams,
    TaskResult,
)

from ...groups.membership import Participant
from ...groups.reading import FIRST, NEWEST
from ...groups.service import Groups
from ...groups.tasks import NewTask, Said
from ...host import Host
from ...log.text import quoted
from ..call import Call, Handler
from ..pages import page_size, sized
from .client import actor_of


def groups_of(host: Host) -> Groups:
    service = host.services["groups"]
    assert isinstance(service, Groups)
    return service


def handlers(host: Host) -> dict[str, Handler]:
    groups = groups_of(host)
    limits = host.settings.limits

    def who(call: Call, root_id: str) -> Participant:
        return groups.person(root_id, actor_of(call))

    def result(task: GroupTask) -> TaskResult:
        return TaskResult(task=task, cursor=host.log.cursor())

    async def get(_: Call, params: GroupGetParams) -> GroupGetResult:
        group = await groups.reading.group(params.root_id)
        return GroupGetResult(cursor=host.log.cursor(), group=group)

    async def create(call: Call, params: TaskCreateParams) -> TaskResult:
        wanted = NewTask(
            title=params.title,
            description=params.description,
            dependencies=params.dependencies,
            required=params.required,
            expected_paths=params.expected_paths,
        )
        return result(await groups.create(who(call, params.root_id), wanted))

    async def list_(_: Call, params: TaskListParams) -> dict[str, Any]:
        place = FIRST if params.cursor is None else _place(params.cursor)

        async def fetch(limit: int) -> tuple[tuple[GroupTask, ...], str | None]:
            page = await groups.reading.tasks(
                params.root_id,
                params.status,
                after=place,
                limit=limit,
                max_chars=limits.page_bytes,
            )
            return page.tasks, _cursor(page.tasks[-1]) if page.more else None

        return await sized(fetch, page_size(params.limit, limits.page_items), limits.page_bytes)

    async def claim(call: Call, params: TaskClaimParams) -> TaskResult:
        person = who(call, params.root_id)
        if params.agent_id is not None:
            return result(await groups.reassign(person, params.task_id, params.agent_id))
        return result(await groups.claim(person, params.task_id))

    async def change(
        call: Call,
        params: TaskParams | TaskCompleteParams | TaskBlockParams | TaskCancelParams,
        operation: Literal["start", "complete", "block", "release", "cancel"],
        said: Said,
    ) -> TaskResult:
        person = who(call, params.root_id)
        return result(await groups.change(person, params.task_id, operation, said))

    async def start(call: Call, params: TaskParams) -> TaskResult:
        return await change(call, params, "start", Said())

    async def release(call: Call, params: TaskParams) -> TaskResult:
        return await change(call, params, "release", Said())

    async def complete(call: Call, params: TaskCompleteParams) -> TaskResult:
        said = Said(
            summary=params.summary,
            findings=params.findings,
            touched_files=params.touched_files,
        )
        return await change(call, params, "complete", said)

    async def block(call: Call, params: TaskBlockParams) -> TaskResult:
        return await change(call, params, "block", Said(reason=params.reason))

    async def cancel(call: Call, params: TaskCancelParams) -> TaskResult:
        return await change(call, params, "cancel", Said(reason=params.reason))

    async def reassign(call: Call, params: TaskReassignParams) -> TaskResult:
        person = who(call, params.root_id)
        return result(await groups.reassign(person, params.task_id, params.agent_id))

    async def send(call: Call, params: GroupMessageSendParams) -> GroupMessageSendResult:
        sent = await groups.send(who(call, params.root_id), params.to, params.agent_id, params.text)
        return message_sent(host, sent.message_id, sent.recipients)

    async def inbox(_: Call, params: GroupMessageListParams) -> dict[str, Any]:
        before = NEWEST if params.cursor is None else _position(params.cursor)

        async def fetch(limit: int) -> tuple[tuple[GroupMessage, ...], str | None]:
            page = await groups.reading.inbox(
                params.root_id, params.agent_id, before=before, limit=limit
            )
            return page.messages, None if page.before is None else str(page.before)

        return await sized(fetch, page_size(params.limit, limits.page_items), limits.page_bytes)

    return {
        "group/get": get,
        "group/taskCreate": create,
        "group/taskList": list_,
        "group/taskClaim": claim,
        "group/taskStart": start,
        "group/taskComplete": complete,
        "group/taskBlock": block,
        "group/taskRelease": release,
        "group/taskCancel": cancel,
        "group/taskReassign": reassign,
        "group/messageSend": send,
        "group/messageList": inbox,
    }


def message_sent(
    host: Host, message_id: MessageId, recipients: tuple[SessionId, ...]
) -> GroupMessageSendResult:
    """What ``group/messageSend`` answers."""
    return GroupMessageSendResult(
        message_id=message_id, recipients=recipients, cursor=host.log.cursor()
    )


# --- cursors: the place of the last item of a page, which nothing new can move ------------------------


def _cursor(task: GroupTask) -> str:
    return f"{task.created_at}/{task.task_id}"


def _place(cursor: str) -> tuple[str, str]:
    created_at, slash, task_id = cursor.partition("/")
    if not created_at or not slash or not task_id:
        raise _no_cursor(cursor)
    return created_at, task_id


def _position(cursor: str) -> int:
    if not (cursor.isascii() and cursor.isdecimal()) or len(cursor) > 18:
        raise _no_cursor(cursor)
    return int(cursor)


def _no_cursor(cursor: str) -> CallboardError:
    return CallboardError(
        "invalidCursor",
        f"the cursor {quoted(cursor)} is none of this list; leave it out to begin from the start",
    )
