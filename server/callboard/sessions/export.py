"""A session as text to keep: JSON lines that hold everything, or Markdown to read."""

from typing import Any

import orjson

from callboard_rpc.common import TextContent
from callboard_rpc.events import Directive, Message, Summary, ToolCall, ToolResult, TurnFinished

from ..log.log import Log
from ..log.record import Record
from ..log.scope import Filter

_FENCE = "`````"


class Exporting:
    """Exports a session piece by piece, each at most about 1 MiB."""

    def __init__(self, log: Log) -> None:
        self._log = log

    async def jsonl(self, session_id: str, *, after: int, limit: int) -> tuple[str, int | None]:
        """Events as lines of JSON, large values whole; and the position after which to go on."""
        records = await self._log.page(Filter(session_id=session_id), after=after, limit=limit)
        lines: list[bytes] = []
        for record in records:
            wire: dict[str, Any] = record.wire()
            if '"_blobs"' in record.data:
                wire["data"] = await self._log.whole(record)
            lines.append(orjson.dumps(wire, option=orjson.OPT_APPEND_NEWLINE))
        return b"".join(lines).decode(), (records[-1].pos if records else None)

    async def markdown(self, session_id: str, *, after: int, limit: int) -> tuple[str, int | None]:
        """The conversation for people; and the position after which to go on."""
        records = await self._log.page(Filter(session_id=session_id), after=after, limit=limit)
        parts = [text for record in records if (text := _section(record))]
        return "".join(parts), (records[-1].pos if records else None)


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
            return (
                f"{_FENCE}\n{text}\n{_FENCE}\n\n" if status == "ok" else f"_{status}_: {text}\n\n"
            )
        case TurnFinished(outcome=outcome) if outcome != "completed":
            return f"_The turn ended: {outcome}._\n\n"
        case _:
            return None
