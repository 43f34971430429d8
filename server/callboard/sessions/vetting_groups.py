"""What a file says of a group, vetted: no more than a root could have written, and no more than every host can
go through when it begins. Pure, like `vetting`.

How its tasks went from hand to hand is not asked: the tables follow whatever was said, and nothing goes by
it but what is on the board.
"""

from typing import Any, Final

from attrs import define, field

from callboard_rpc.events import (
    AgentGroupCreated,
    AgentGroupMemberJoined,
    GroupMessageDelivered,
    GroupMessageQueued,
    GroupTaskClaimed,
    GroupTaskCreated,
    GroupTaskReleased,
    GroupTaskStatusChanged,
)
from callboard_rpc.groups import MAX_ITEMS, MAX_MESSAGES, MAX_TASKS

from .transfer import Refused, is_id

MAX_EVENTS: Final = 100_000
"""Events of one session about its group."""
MAX_DELIVERIES: Final = 250_000
"""Recipients of all messages together."""
MAX_CHARS: Final = 64_000
"""Of one text: a secret that stood in it may have been shorter than what stands there now."""

_MESSAGE_CHARS: Final = 16_000
_NAME_CHARS: Final = 256

_OF_ROOTS = (
    AgentGroupCreated
    | AgentGroupMemberJoined
    | GroupTaskCreated
    | GroupTaskClaimed
    | GroupTaskReleased
    | GroupTaskStatusChanged
    | GroupMessageQueued
)


@define(kw_only=True)
class GroupVetting:
    """Follows the events of one session. Give it every one, in order."""

    session_id: str
    _group_id: str | None = None
    _events: int = 0
    _deliveries: int = 0
    _members: set[str] = field(factory=set[str])
    _tasks: set[str] = field(factory=set[str])
    _messages: dict[str, tuple[str, ...]] = field(factory=dict[str, tuple[str, ...]])
    _read: set[str] = field(factory=set[str])

    def event(self, value: Any, *, is_root: bool) -> None:
        """The next event. Raises `Refused`."""
        if isinstance(value, GroupMessageDelivered):
            self._count()
            self._deliver(value, is_root=is_root)
        elif isinstance(value, _OF_ROOTS):
            self._count()
            if not is_root:
                raise Refused("is of a group, in the session of an agent: a group is in its root's")
            self._follow(value)

    def _count(self) -> None:
        self._events += 1
        if self._events > MAX_EVENTS:
            raise Refused(f"is of a group that has more than {MAX_EVENTS:,} events")

    def _follow(
        self,
        value: AgentGroupCreated
        | AgentGroupMemberJoined
        | GroupTaskCreated
        | GroupTaskClaimed
        | GroupTaskReleased
        | GroupTaskStatusChanged
        | GroupMessageQueued,
    ) -> None:
        match value:
            case AgentGroupCreated(group_id=group_id):
                if self._group_id is not None or not is_id(group_id):
                    raise Refused("creates a second group, or one whose id is none")
                if len(value.name) > _NAME_CHARS or not value.name.isprintable():
                    raise Refused("calls a group what is no name")
                self._group_id = group_id
            case AgentGroupMemberJoined(agent_id=agent_id):
                self._must_be_of_group(value.group_id)
                if not is_id(agent_id) or agent_id in self._members or agent_id == self.session_id:
                    raise Refused("makes somebody a member who is one already, or whose id is none")
                self._members.add(agent_id)
            case GroupTaskCreated():
                self._create(value)
            case GroupMessageQueued():
                self._queue(value)
            case _:
                if value.task_id not in self._tasks:
                    raise Refused("is about a task that is not in the file before it")
                _must_be_ids(value.agent_id)
                if isinstance(value, GroupTaskStatusChanged):
                    _must_be_ids(*([] if value.assignee is None else [value.assignee]))
                    _check_size(
                        value.findings,
                        value.touched_files,
                        (value.summary or "", value.reason or ""),
                    )

    def _must_be_of_group(self, group_id: str) -> None:
        if self._group_id is None or group_id != self._group_id:
            raise Refused("is of a group that is not in the file before it")

    def _create(self, task: GroupTaskCreated) -> None:
        self._must_be_of_group(task.group_id)
        _must_be_ids(task.created_by)
        if not is_id(task.task_id) or task.task_id in self._tasks:
            raise Refused("creates a task whose id is none, or was used before")
        if len(self._tasks) == MAX_TASKS:
            raise Refused(f"is a task more than the {MAX_TASKS:,} that a group takes")
        if not set(task.dependencies) <= self._tasks:
            raise Refused("creates a task that depends on one that is not in the file before it")
        if len(set(task.dependencies)) < len(task.dependencies):
            raise Refused("creates a task that depends on another one twice")
        _check_size(task.dependencies, task.expected_paths, (task.title, task.description))
        self._tasks.add(task.task_id)

    def _queue(self, message: GroupMessageQueued) -> None:
        self._must_be_of_group(message.group_id)
        _must_be_ids(message.sender)
        recipients = message.recipients
        if not is_id(message.message_id) or message.message_id in self._messages:
            raise Refused("is a message whose id is none, or was used before")
        if len(self._messages) == MAX_MESSAGES:
            raise Refused(f"is a message more than the {MAX_MESSAGES:,} that a group takes")
        if not set(recipients) <= self._members | {self.session_id}:
            raise Refused("is a message for somebody who is no member of the group")
        if len(set(recipients)) < len(recipients):
            raise Refused("is a message for the same member twice")
        self._deliveries += len(recipients)
        if self._deliveries > MAX_DELIVERIES:
            raise Refused(
                f"is of a group with messages for more than {MAX_DELIVERIES:,} recipients together"
            )
        if len(message.text) > _MESSAGE_CHARS:
            raise Refused(f"is a message of more than {_MESSAGE_CHARS:,} characters")
        self._messages[message.message_id] = recipients

    def _deliver(self, marker: GroupMessageDelivered, *, is_root: bool) -> None:
        message_id = marker.message_id
        if not is_id(message_id) or message_id in self._read:
            raise Refused("delivers a message whose id is none, or which was delivered before")
        if is_root and self.session_id not in self._messages.get(message_id, ()):
            raise Refused("delivers a message that is not in the file before it")
        if len(self._read) == MAX_MESSAGES:
            raise Refused(f"delivers a message more than the {MAX_MESSAGES:,} that a group takes")
        self._read.add(message_id)


def _must_be_ids(*agent_ids: str) -> None:
    if not all(map(is_id, agent_ids)):
        raise Refused("names an agent whose id is none")


def _check_size(*lists: tuple[str, ...]) -> None:
    if any(len(each) > MAX_ITEMS for each in lists):
        raise Refused(f"has a list of more than {MAX_ITEMS} entries")
    if any(len(text) > MAX_CHARS for each in lists for text in each):
        raise Refused(f"has a text of more than {MAX_CHARS:,} characters")
