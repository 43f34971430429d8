"""``group/*`` as typed methods: the task board of a tree, where a person stands in the place of the root."""

from collections.abc import AsyncIterator, Iterable

from callboard_rpc.common import SessionId, TaskId
from callboard_rpc.events import GroupTarget
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
    TaskFilter,
    TaskListParams,
    TaskParams,
    TaskReassignParams,
    TaskResult,
)

from .family import Family, pages


class Groups(Family):
    """`root_id` is any session of the tree."""

    async def get(self, root_id: SessionId) -> GroupGetResult:
        """The group with its members and how its tasks stand; none until something was done with one."""
        return await self._call("group/get", GroupGetParams(root_id=root_id))

    def tasks(self, root_id: SessionId, status: TaskFilter = "open") -> AsyncIterator[GroupTask]:
        """The tasks of this kind, the oldest first."""
        return pages(
            self._call,
            "group/taskList",
            lambda cursor: TaskListParams(root_id=root_id, status=status, cursor=cursor),
        )

    async def create(
        self,
        root_id: SessionId,
        title: str,
        *,
        description: str = "",
        dependencies: Iterable[TaskId] = (),
        required: bool = True,
        expected_paths: Iterable[str] = (),
        idempotency_key: str | None = None,
    ) -> TaskResult:
        """A new task, ready as soon as all that it depends on is completed. While one that is `required` is
        open the root's work is not complete."""
        params = TaskCreateParams(
            root_id=root_id,
            title=title,
            description=description,
            dependencies=tuple(dependencies),
            required=required,
            expected_paths=tuple(expected_paths),
            idempotency_key=idempotency_key,
        )
        return await self._call("group/taskCreate", params)

    async def claim(
        self,
        root_id: SessionId,
        task_id: TaskId,
        *,
        agent_id: SessionId | None = None,
        idempotency_key: str | None = None,
    ) -> TaskResult:
        """Takes a ready task for the root; with `agent_id` it is that member's, as by `reassign`."""
        params = TaskClaimParams(
            root_id=root_id, task_id=task_id, agent_id=agent_id, idempotency_key=idempotency_key
        )
        return await self._call("group/taskClaim", params)

    async def start(
        self, root_id: SessionId, task_id: TaskId, *, idempotency_key: str | None = None
    ) -> TaskResult:
        """Begins a task that the root has claimed."""
        return await self._call("group/taskStart", _one(root_id, task_id, idempotency_key))

    async def complete(
        self,
        root_id: SessionId,
        task_id: TaskId,
        summary: str,
        *,
        findings: Iterable[str] = (),
        touched_files: Iterable[str] = (),
        idempotency_key: str | None = None,
    ) -> TaskResult:
        """Ends a task of the root's as done; what waited only for it is ready."""
        params = TaskCompleteParams(
            root_id=root_id,
            task_id=task_id,
            summary=summary,
            findings=tuple(findings),
            touched_files=tuple(touched_files),
            idempotency_key=idempotency_key,
        )
        return await self._call("group/taskComplete", params)

    async def block(
        self,
        root_id: SessionId,
        task_id: TaskId,
        reason: str,
        *,
        idempotency_key: str | None = None,
    ) -> TaskResult:
        """Says what keeps the root from doing a task of its own; only `reassign` and `cancel` go on from
        there."""
        params = TaskBlockParams(
            root_id=root_id, task_id=task_id, reason=reason, idempotency_key=idempotency_key
        )
        return await self._call("group/taskBlock", params)

    async def release(
        self, root_id: SessionId, task_id: TaskId, *, idempotency_key: str | None = None
    ) -> TaskResult:
        """Gives a task of the root's back: it is pending, and nobody's."""
        return await self._call("group/taskRelease", _one(root_id, task_id, idempotency_key))

    async def cancel(
        self,
        root_id: SessionId,
        task_id: TaskId,
        reason: str | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> TaskResult:
        """Ends a task that need not be done, whosever it is."""
        params = TaskCancelParams(
            root_id=root_id, task_id=task_id, reason=reason, idempotency_key=idempotency_key
        )
        return await self._call("group/taskCancel", params)

    async def reassign(
        self,
        root_id: SessionId,
        task_id: TaskId,
        agent_id: SessionId,
        *,
        idempotency_key: str | None = None,
    ) -> TaskResult:
        """Gives a task to a member, or to the root, whosever it was."""
        params = TaskReassignParams(
            root_id=root_id, task_id=task_id, agent_id=agent_id, idempotency_key=idempotency_key
        )
        return await self._call("group/taskReassign", params)

    async def send(
        self,
        root_id: SessionId,
        text: str,
        *,
        to: GroupTarget = "group",
        agent_id: SessionId | None = None,
        idempotency_key: str | None = None,
    ) -> GroupMessageSendResult:
        """Tells members something in 4,000 bytes at the most; it wakes nobody. `agent_id` goes with `to`
        ``agent``, and with nothing else."""
        params = GroupMessageSendParams(
            root_id=root_id,
            to=to,
            text=text,
            agent_id=agent_id,
            idempotency_key=idempotency_key,
        )
        return await self._call("group/messageSend", params)

    def messages(
        self, root_id: SessionId, agent_id: SessionId | None = None
    ) -> AsyncIterator[GroupMessage]:
        """What was written to a member (the root, unless told), the newest first. Looking marks nothing as
        read."""
        return pages(
            self._call,
            "group/messageList",
            lambda cursor: GroupMessageListParams(
                root_id=root_id, agent_id=agent_id, cursor=cursor
            ),
        )


def _one(root_id: SessionId, task_id: TaskId, idempotency_key: str | None) -> TaskParams:
    return TaskParams(root_id=root_id, task_id=task_id, idempotency_key=idempotency_key)
