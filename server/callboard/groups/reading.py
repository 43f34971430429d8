"""A group as it is now, for people and for models: members, counts, and what follows from its tasks."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypeVar

import attrs
from attrs import define, field, frozen

from callboard_rpc.common import MessageId, SessionId, TaskId
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
from .projection import SQL, ids, task_of
from .state import (
    ACTIVE,
    conflicts,
    dependency_failures,
    is_shown,
    required_unfinished,
    statuses_of,
    tally,
)
from .tasks import as_it_stands, names

T = TypeVar("T")

Place: TypeAlias = tuple[str, str]
"""Of a task in a list: when it was created, and its id."""
FIRST: Place = ("", "")
"""The place behind which everything stands."""

MAX_TOLD = 1_000
"""Tasks of one kind that a look at a whole group tells."""
MAX_TOLD_BYTES = 4 * 1024 * 1024
"""About how many bytes those of one kind have: the three of them are a frame that every client takes."""
_AT_ONCE = 200
_SMALL = 2_000
"""Bytes of a task's texts that may be kept of each one of a board."""

NEWEST = 1 << 62
"""The place before which everything stands."""


@frozen(kw_only=True)
class Inbox:
    """A page of what was written to a member, the newest first. `before` is where the next page begins;
    None when this is the last."""

    messages: tuple[GroupMessage, ...]
    before: int | None = None


@frozen(kw_only=True)
class Page:
    """Some tasks, in their order; `more`: others of the kind follow."""

    tasks: tuple[GroupTask, ...]
    more: bool = False


@frozen(kw_only=True)
class _Bounds:
    limit: int | None
    max_bytes: int | None

    def are_passed(self, count: int, size: int) -> bool:
        """Whether one more is too much for a list of `count`, which has `size` bytes with it."""
        if self.limit is not None and count >= self.limit:
            return True
        return self.max_bytes is not None and count > 0 and size > self.max_bytes


_ROOM = _Bounds(limit=MAX_TOLD, max_bytes=MAX_TOLD_BYTES)


def size_of(task: GroupTask) -> int:
    """About how many bytes a task has in an answer."""
    texts = (task.title, task.description, task.summary or "", task.reason or "")
    lists = (
        task.dependencies,
        task.blockers,
        task.expected_paths,
        task.touched_files,
        task.findings,
    )
    return 400 + sum(map(len, texts)) + sum(len(text) + 3 for each in lists for text in each)


class GroupReading:
    def __init__(self, log: Log) -> None:
        self._log = log

    async def group(self, session_id: str) -> Group | None:
        """The group of the tree that a session is in; None when there is none yet. Raises sessionNotFound."""
        return await self._read(session_id, _group)

    async def tasks(
        self,
        session_id: str,
        wanted: TaskFilter,
        *,
        after: Place = FIRST,
        limit: int | None = None,
        max_bytes: int | None = None,
    ) -> Page:
        """By creation, then id (coordination 8.7), those behind a place; at most `limit`, and no more than hold
        about so many bytes, but at least one. Raises sessionNotFound."""
        bounds = _Bounds(limit=limit, max_bytes=max_bytes)
        return await self._read(
            session_id, lambda rows, root_id: _page(rows, root_id, wanted, after, bounds)
        )

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


def _page(rows: Rows, root_id: str, wanted: TaskFilter, after: Place, bounds: _Bounds) -> Page:
    found: list[GroupTask] = []
    size = 0
    for task in _board(rows, root_id, wanted, after, _completed(rows, root_id)):
        if not is_shown(task, wanted):
            continue
        size += size_of(task)
        if bounds.are_passed(len(found), size):
            return Page(tasks=tuple(found), more=True)
        found.append(task)
    return Page(tasks=tuple(found))


def _completed(rows: Rows, root_id: str) -> frozenset[str]:
    return frozenset(task_id for (task_id,) in rows(SQL["completed_ids"], root_id))


def _board(
    rows: Rows, root_id: str, wanted: TaskFilter, after: Place, completed: frozenset[str]
) -> Iterator[GroupTask]:
    """Tasks in the order of lists, each with what follows from the others; a few are read at once, since
    those of a large board have no room in memory together."""
    statuses = ids(statuses_of(wanted))
    while True:
        found = rows(SQL["tasks_behind"], root_id, *after, statuses, _AT_ONCE)
        for row in found:
            yield task_of(row, completed)
        if len(found) < _AT_ONCE:
            return
        after = (found[-1][5], found[-1][0])


@define
class _Shown:
    """The first tasks of a kind, as far as a look at the whole group has room for them."""

    count: int = 0
    tasks: list[GroupTask] = field(factory=list[GroupTask])
    _bytes: int = 0

    def add(self, task: GroupTask, size: int) -> None:
        self.count += 1
        if len(self.tasks) == self.count - 1 and not _ROOM.are_passed(
            self.count - 1, self._bytes + size
        ):
            self.tasks.append(task)
            self._bytes += size


def _group(rows: Rows, root_id: str) -> Group | None:
    known = find_group(rows, root_id)
    if known is None:
        return None
    completed = _completed(rows, root_id)
    ready, active, blocked = _Shown(), _Shown(), _Shown()
    outlines: dict[TaskId, GroupTask] = {}
    kinds: tuple[TaskFilter, ...] = ("open", "cancelled")
    for kind in kinds:
        for task in _board(rows, root_id, kind, FIRST, completed):
            size = size_of(task)
            outlines[task.task_id] = task if size <= _SMALL else _outline(task)
            if task.ready:
                ready.add(task, size)
            elif task.status in ACTIVE:
                active.add(task, size)
            elif task.status == "blocked":
                blocked.add(task, size)
    statuses = (task.status for task in outlines.values())
    return Group(
        group_id=known.group_id,
        root_id=SessionId(root_id),
        name=known.name,
        created_at=known.created_at,
        members=(_root(root_id), *map(_member, rows(SQL["named_members"], root_id))),
        counts=tally(statuses, ready=ready.count, completed=len(completed)),
        ready=tuple(ready.tasks),
        active=tuple(active.tasks),
        blocked=tuple(blocked.tasks),
        dependency_failures=dependency_failures(outlines),
        conflicts=conflicts(outlines),
        required_unfinished=tuple(task.task_id for task in required_unfinished(outlines)),
    )


def _outline(task: GroupTask) -> GroupTask:
    """A task without the texts from which nothing follows."""
    bare = attrs.evolve(task, title="", description="", summary=None, reason=None, findings=())
    if task.status in ACTIVE:
        return bare
    return attrs.evolve(bare, expected_paths=(), touched_files=())


def _root(root_id: str) -> GroupMember:
    return GroupMember(agent_id=SessionId(root_id), name="root", is_root=True)


def _member(row: tuple[Any, ...]) -> GroupMember:
    agent_id, name, status = row
    return GroupMember(agent_id=SessionId(agent_id), name=name or agent_id, status=status)
