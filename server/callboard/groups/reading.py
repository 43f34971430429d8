"""A group as it is now, for people and for models: members, counts, and what follows from its tasks."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias, TypeVar

import attrs
from attrs import define, field, frozen

from callboard_rpc.common import MessageId, SessionId, TaskId
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import TaskStatus
from callboard_rpc.groups import (
    Group,
    GroupMember,
    GroupMessage,
    GroupTask,
    TaskFilter,
)

from ..log.faults import no_session
from ..log.log import Log
from ..log.looking import Rows
from ..log.text import quoted
from .membership import find_group
from .projection import SQL, ids, size_of, task_of
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
MAX_TOLD_CHARS = 1024 * 1024
"""Characters of those of one kind. However they are escaped, all of them are less than a frame that every client
takes."""
_AT_FIRST, _AT_ONCE = 8, 256
"""Tasks that are read at once: few where a few large ones fill a page, and then more."""
_SMALL = 2_000
"""Characters of a task that is kept whole while a board is looked at."""

_UNCOMPLETED: tuple[TaskStatus, ...] = ("pending", "claimed", "in_progress", "blocked", "cancelled")

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
    max_chars: int | None

    def are_passed(self, count: int, size: int) -> bool:
        """Whether one more is too much for a list of `count`, which has `size` characters with it."""
        if self.limit is not None and count >= self.limit:
            return True
        return self.max_chars is not None and count > 0 and size > self.max_chars


_ROOM = _Bounds(limit=MAX_TOLD, max_chars=MAX_TOLD_CHARS)


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
        max_chars: int | None = None,
    ) -> Page:
        """By creation, then id (coordination 8.7), those behind a place; at most `limit`, and no more than have
        about so many characters, but at least one. Raises sessionNotFound."""
        bounds = _Bounds(limit=limit, max_chars=max_chars)
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
                raise CallboardError(
                    "notAMember", f"agent {quoted(recipient)} is no member of this group"
                )
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
                raise no_session(session_id)
            return read(rows, place[0][0])

        return await self._log.at_once(look)


def _page(rows: Rows, root_id: str, wanted: TaskFilter, after: Place, bounds: _Bounds) -> Page:
    found: list[GroupTask] = []
    size = 0
    completed = _completed(rows, root_id)
    for task, chars in _board(rows, root_id, statuses_of(wanted), after, completed, _AT_FIRST):
        if not is_shown(task, wanted):
            continue
        size += chars
        if bounds.are_passed(len(found), size):
            return Page(tasks=tuple(found), more=True)
        found.append(task)
    return Page(tasks=tuple(found))


def _completed(rows: Rows, root_id: str) -> frozenset[str]:
    return frozenset(task_id for (task_id,) in rows(SQL["completed_ids"], root_id))


def _board(
    rows: Rows,
    root_id: str,
    statuses: Iterable[TaskStatus],
    after: Place,
    completed: frozenset[str],
    at_once: int,
) -> Iterator[tuple[GroupTask, int]]:
    """Tasks in the order of lists, each with what follows from the others, and with its size in characters.
    First so many are read `at_once`, then more: those of a large board have no room in memory together."""
    wanted = ids(statuses)
    while True:
        found = rows(SQL["tasks_behind"], root_id, *after, wanted, at_once)
        for row in found:
            yield task_of(row, completed), size_of(row)
        if len(found) < at_once:
            return
        after = (found[-1][5], found[-1][0])
        at_once = min(2 * at_once, _AT_ONCE)


@define
class _Shown:
    """The first tasks of a kind, as far as a look at the whole group has room for them."""

    count: int = 0
    tasks: list[GroupTask] = field(factory=list[GroupTask])
    _chars: int = 0

    def add(self, task: GroupTask, chars: int) -> None:
        self.count += 1
        self._chars += chars
        # none behind one that has no room, even if it is small: they are the first ones
        if not _ROOM.are_passed(self.count - 1, self._chars):
            self.tasks.append(task)


def _group(rows: Rows, root_id: str) -> Group | None:
    known = find_group(rows, root_id)
    if known is None:
        return None
    completed = _completed(rows, root_id)
    ready, active, blocked = _Shown(), _Shown(), _Shown()
    outlines: dict[TaskId, GroupTask] = {}
    for task, chars in _board(rows, root_id, _UNCOMPLETED, FIRST, completed, _AT_ONCE):
        outlines[task.task_id] = task if chars <= _SMALL else _outline(task)
        if task.ready:
            ready.add(task, chars)
        elif task.status in ACTIVE:
            active.add(task, chars)
        elif task.status == "blocked":
            blocked.add(task, chars)
    statuses: list[TaskStatus] = [task.status for task in outlines.values()]
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
