"""A group as it is now, for people and for models: members, counts, and what follows from its tasks."""

from collections.abc import Callable
from typing import Any, TypeVar

from attrs import frozen

from callboard_rpc.common import MessageId, SessionId
from callboard_rpc.errors import CallboardError
from callboard_rpc.groups import (
    Group,
    GroupMember,
    GroupMessage,
    GroupTask,
    TaskFilter,
)

from ..log.log import Log
from ..log.looking import Rows
from .membership import find_group
from .projection import SQL, board_beside, board_of
from .state import (
    ACTIVE,
    conflicts,
    dependency_failures,
    is_shown,
    required_unfinished,
    tally,
)
from .tasks import as_it_stands, names

T = TypeVar("T")

NEWEST = 1 << 62
"""The place before which everything stands."""


@frozen(kw_only=True)
class Inbox:
    """A page of what was written to a member, the newest first. `before` is where the next page begins;
    None when this is the last."""

    messages: tuple[GroupMessage, ...]
    before: int | None = None


class GroupReading:
    def __init__(self, log: Log) -> None:
        self._log = log

    async def group(self, session_id: str) -> Group | None:
        """The group of the tree that a session is in; None when there is none yet. Raises sessionNotFound."""
        return await self._read(session_id, _group)

    async def tasks(self, session_id: str, wanted: TaskFilter) -> tuple[GroupTask, ...]:
        """By creation, then id (coordination 8.7). Raises sessionNotFound."""

        def read(rows: Rows, root_id: str) -> tuple[GroupTask, ...]:
            tasks = board_of(rows(SQL["tasks"], root_id))
            return tuple(task for task in tasks.values() if is_shown(task, wanted))

        return await self._read(session_id, read)

    async def task(self, session_id: str, task_id: str) -> GroupTask:
        """Raises sessionNotFound, taskNotFound."""
        return await self._read(
            session_id, lambda rows, root_id: as_it_stands(rows, root_id, task_id)
        )

    async def inbox(
        self, session_id: str, agent_id: str | None = None, *, before: int = NEWEST, limit: int = 20
    ) -> Inbox:
        """What was written to a member (the root, unless told): looking marks nothing as delivered
        (coordination 105). Raises sessionNotFound, notAMember."""

        def read(rows: Rows, root_id: str) -> Inbox:
            recipient = root_id if agent_id is None else agent_id
            if recipient != root_id and not rows(SQL["is_member"], root_id, recipient):
                raise CallboardError("notAMember", f"{recipient[:80]!r} is no member of this group")
            named = names(rows, root_id)
            found = rows(SQL["inbox"], recipient, root_id, before, limit + 1)
            messages = tuple(
                GroupMessage(
                    message_id=MessageId(message_id),
                    sender=SessionId(sender),
                    sender_name=named(sender),
                    to=target,
                    text=text,
                    at=at,
                    seen=bool(delivered),
                )
                for _, message_id, sender, target, text, at, delivered in found[:limit]
            )
            more = len(found) > limit
            return Inbox(messages=messages, before=found[limit - 1][0] if more else None)

        return await self._read(session_id, read)

    async def _read(self, session_id: str, read: Callable[[Rows, str], T]) -> T:
        """One state of the store, whatever others commit meanwhile."""

        def look(rows: Rows) -> T:
            place = rows(SQL["root_of"], session_id)
            if not place:
                raise CallboardError("sessionNotFound", f"there is no session {session_id[:80]!r}")
            return read(rows, place[0][0])

        return await self._log.at_once(look)


def _group(rows: Rows, root_id: str) -> Group | None:
    known = find_group(rows, root_id)
    if known is None:
        return None
    completed = frozenset(task_id for (task_id,) in rows(SQL["completed_ids"], root_id))
    tasks = board_beside(rows(SQL["uncompleted_tasks"], root_id), completed)
    shown = tasks.values()
    ready = tuple(task for task in shown if task.ready)
    return Group(
        group_id=known.group_id,
        root_id=SessionId(root_id),
        name=known.name,
        created_at=known.created_at,
        members=(_root(root_id), *map(_member, rows(SQL["named_members"], root_id))),
        counts=tally((t.status for t in shown), ready=len(ready), completed=len(completed)),
        ready=ready,
        active=tuple(task for task in shown if task.status in ACTIVE),
        blocked=tuple(task for task in shown if task.status == "blocked"),
        dependency_failures=dependency_failures(tasks),
        conflicts=conflicts(tasks),
        required_unfinished=tuple(task.task_id for task in required_unfinished(tasks)),
    )


def _root(root_id: str) -> GroupMember:
    return GroupMember(agent_id=SessionId(root_id), name="root", is_root=True)


def _member(row: tuple[Any, ...]) -> GroupMember:
    agent_id, name, status = row
    return GroupMember(agent_id=SessionId(agent_id), name=name or agent_id, status=status)
