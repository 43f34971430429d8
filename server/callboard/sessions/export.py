"""A session as text to read: Markdown. (What can be imported again is in `writing_out`.)"""

from collections.abc import Callable, Collection, Set
from typing import Any

from callboard_rpc.convert import structure_lenient
from callboard_rpc.events import (
    EVENT_TYPES,
    ApprovalDecision,
    GroupTaskClaimed,
    GroupTaskReleased,
    GroupTaskStatusChanged,
    ToolResult,
)

from ..log.log import Log
from ..log.record import Record
from ..log.scope import Filter
from .markdown import Known, heading, section
from .reading import Reading

_PIECE_BYTES = 1024 * 1024
_AT_ONCE = 100


class Exporting:
    """Exports a session piece by piece, each at most about 1 MiB, or a single event."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._reading = Reading(log)

    async def markdown(self, session_id: str, *, after: int, limit: int) -> tuple[str, int | None]:
        """The conversation for people, large values whole; and the position after which to go on."""
        records = await self._page(session_id, after, limit)
        parts = [await self._heading(session_id)] if after == 0 else []
        known = await self._known(session_id, records)
        size = 0
        reached: int | None = None
        for record in records:
            part = section(await self._value(record), known)
            if reached is not None and size + len(part) > _PIECE_BYTES:
                break
            parts.append(part)
            size += len(part)
            reached = record.pos
        return "".join(parts), reached

    async def _heading(self, session_id: str) -> str:
        session = await self._reading.session(session_id)
        last = await self._reading.last_turn(session_id)
        return heading(session, (last.model if last is not None else None) or session.model)

    async def _known(self, session_id: str, records: Collection[Record]) -> Known:
        """What `records` tell of, also where an earlier piece holds its beginning."""
        calls: set[str] = set()
        tasks: set[str] = set()
        for record in records:
            match record.value:
                case ToolResult(call_id=call_id) | ApprovalDecision(call_id=call_id):
                    calls.add(call_id)
                case (
                    GroupTaskClaimed(task_id=task_id)
                    | GroupTaskReleased(task_id=task_id)
                    | GroupTaskStatusChanged(task_id=task_id)
                ):
                    tasks.add(task_id)
                case _:
                    pass
        called = await self._begun(session_id, records, "tool_call", lambda c: c.call_id, calls)
        made = await self._begun(
            session_id, records, "group_task_created", lambda t: t.task_id, tasks
        )
        return Known(calls=called, tasks={each: task.title for each, task in made.items()})

    async def _begun(
        self,
        session_id: str,
        records: Collection[Record],
        kind: str,
        id_of: Callable[[Any], str],
        wanted: Set[str],
    ) -> dict[str, Any]:
        """The events of this kind by the ids of what they begin: all of `records`, and of those before them as
        many as it takes to have all that are wanted."""
        found = {id_of(each.value): each.value for each in records if each.type == kind}
        before = min((record.pos for record in records), default=0)
        while not wanted <= found.keys():
            earlier = await self._log.page(
                Filter(session_id=session_id, types=frozenset({kind})),
                before=before,
                limit=_AT_ONCE,
                backwards=True,
            )
            if not earlier:
                break
            found.update((id_of(each.value), each.value) for each in earlier)
            before = min(each.pos for each in earlier)
        return found

    async def _value(self, record: Record) -> Any:
        cls = EVENT_TYPES.get(record.type)
        if cls is None or '"_blobs"' not in record.data:
            return record.value
        return structure_lenient(await self._log.whole(record), cls)

    async def _page(self, session_id: str, after: int, limit: int) -> list[Record]:
        return await self._log.page(
            Filter(session_id=session_id), after=after, limit=limit, max_bytes=_PIECE_BYTES
        )
