"""A session as text to keep: JSON lines that hold everything, or Markdown to read."""

import re
from typing import Any

import orjson

from callboard_rpc.common import TextContent
from callboard_rpc.events import Directive, Message, Summary, ToolCall, ToolResult, TurnFinished

from ..log.log import Log
from ..log.record import Record
from ..log.scope import Filter

_PIECE_BYTES = 1024 * 1024


class Exporting:
    """Exports a session piece by piece, each at most about 1 MiB, or a single event."""

    def __init__(self, log: Log) -> None:
        self._log = log

    async def jsonl(self, session_id: str, *, after: int, limit: int) -> tuple[str, int | None]:
        """Events as lines of JSON, large values whole; and the position after which to go on."""
        lines: list[bytes] = []
        size = 0
        reached: int | None = None
        for record in await self._page(session_id, after, limit):
            wire: dict[str, Any] = record.wire()
            if '"_blobs"' in record.data:
                wire["data"] = await self._log.whole(record)
            line = orjson.dumps(wire, option=orjson.OPT_APPEND_NEWLINE)
            if lines and size + len(line) > _PIECE_BYTES:
                break
            lines.append(line)
            size += len(line)
            reached = record.pos
        return b"".join(lines).decode(), reached

    async def markdown(self, session_id: str, *, after: int, limit: int) -> tuple[str, int | None]:
        """The conversation for people; and the position after which to go on."""
        records = await self._page(session_id, after, limit)
        parts = [text for record in records if (text := _section(record))]
        return "".join(parts), (records[-1].pos if records else None)

    async def _page(self, session_id: str, after: int, limit: int) -> list[Record]:
        return await self._log.page(
            Filter(session_id=session_id), after=after, limit=limit, max_bytes=_PIECE_BYTES
        )


def _fenced(text: str) -> str:
    """`text` as a code block, whatever fences it holds itself."""
    fence = "`" * max(5, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}\n{text}\n{fence}\n\n"


def _section(record: Record) -> str | None:
    match record.value:
        case Message(author=author, content=content):
            text = "\n\n".join(b.text for b in content if isinstance(b, TextContent))
            return f"## {author.name}\n\n{text}\n\n" if text.strip() else None
        case Directive(author=author, text=text):
            return f"## {author.name} (directive)\n\n{text}\n\n"
        case Summary(text=text):
            return f"## Summary\n\n{text}\n\n"
        case ToolCall(title=title, name=name):
            return f"**{name}**: {title}\n\n"
        case ToolResult(status=status, text=text):
            return _fenced(text) if status == "ok" else f"_{status}_: {text}\n\n"
        case TurnFinished(outcome=outcome) if outcome != "completed":
            return f"_The turn ended: {outcome}._\n\n"
        case _:
            return None
