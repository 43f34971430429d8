"""A session as text to read: Markdown. (What can be imported again is in `writing_out`.)"""

from collections.abc import Collection
from typing import Any, Final

from callboard_rpc.convert import structure_lenient
from callboard_rpc.events import EVENT_TYPES, ApprovalDecision, ToolCall, ToolResult

from ..log.log import Log
from ..log.record import Record
from ..log.scope import Filter
from .markdown import heading, section
from .reading import Reading

_PIECE_BYTES = 1024 * 1024
_CALLS: Final = frozenset({"tool_call"})
_CALLS_AT_ONCE = 100


class Exporting:
    """Exports a session piece by piece, each at most about 1 MiB, or a single event."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._reading = Reading(log)

    async def markdown(self, session_id: str, *, after: int, limit: int) -> tuple[str, int | None]:
        """The conversation for people, large values whole; and the position after which to go on."""
        records = await self._page(session_id, after, limit)
        parts = [await self._heading(session_id)] if after == 0 else []
        calls = await self._calls(session_id, records)
        size = 0
        reached: int | None = None
        for record in records:
            part = section(await self._value(record), calls)
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

    async def _calls(self, session_id: str, records: Collection[Record]) -> dict[str, ToolCall]:
        """The calls that `records` tell of, also those that an earlier piece holds."""
        calls: dict[str, ToolCall] = {}
        wanted: set[str] = set()
        for record in records:
            match record.value:
                case ToolCall() as call:
                    calls[call.call_id] = call
                case ToolResult(call_id=call_id) | ApprovalDecision(call_id=call_id):
                    wanted.add(call_id)
                case _:
                    pass
        before = min((record.pos for record in records), default=0)
        while not wanted <= calls.keys():
            earlier = await self._log.page(
                Filter(session_id=session_id, types=_CALLS),
                before=before,
                limit=_CALLS_AT_ONCE,
                backwards=True,
            )
            if not earlier:
                break
            calls.update((each.value.call_id, each.value) for each in earlier)
            before = min(each.pos for each in earlier)
        return calls

    async def _value(self, record: Record) -> Any:
        cls = EVENT_TYPES.get(record.type)
        if cls is None or '"_blobs"' not in record.data:
            return record.value
        return structure_lenient(await self._log.whole(record), cls)

    async def _page(self, session_id: str, after: int, limit: int) -> list[Record]:
        return await self._log.page(
            Filter(session_id=session_id), after=after, limit=limit, max_bytes=_PIECE_BYTES
        )
