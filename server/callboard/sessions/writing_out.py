"""A session as JSON lines that hold everything: what `session/import` reads. See `transfer` for the form.

A file is written in pieces, by as many requests; what has to be known between them is in the cursor. It is
the session as it was when the first piece was asked for, however it goes on meanwhile.
"""

import re
from collections.abc import AsyncGenerator
from typing import Any, Final

import attrs
import orjson
from attrs import frozen

from callboard_rpc.errors import CallboardError

from ..log.log import Log
from ..log.record import Record
from ..log.text import quoted
from .reading import Reading
from .transfer import (
    BLOB_PIECE,
    blob_line,
    chained,
    closing_line,
    header_line,
    missing_blob_line,
)

PIECE_BYTES: Final = 1024 * 1024
_EVENTS = "SELECT pos, session_id, seq, event_id, type, at, actor, turn_id, fence, data FROM events"
_CURSOR = re.compile(r"([0-9]{1,18})\.([0-9]{1,9})\.([0-9]{1,18})\.([0-9a-f]{64})", re.ASCII)


@frozen(kw_only=True)
class _At:
    """Where an export is: behind the event `seq` and the next one's first `part` lines, of `through`
    events, with the digest so far."""

    seq: int
    part: int
    through: int
    digest: str

    @property
    def cursor(self) -> str:
        return f"{self.seq}.{self.part}.{self.through}.{self.digest}"

    @classmethod
    def of(cls, cursor: str) -> "_At":
        found = _CURSOR.fullmatch(cursor)
        if found is None:
            raise CallboardError(
                "invalidCursor",
                f"the cursor {quoted(cursor)} is none of this export; leave it out to begin from the start",
            )
        seq, part, through, digest = found.groups()
        return cls(seq=int(seq), part=int(part), through=int(through), digest=digest)


@frozen(kw_only=True)
class Written:
    """A piece, and how far it has come."""

    text: str
    cursor: str | None
    events: int
    through: int


class WritingOut:
    """Writes a session piece by piece, each at most about 1 MiB, or a single line."""

    def __init__(self, log: Log, reading: Reading) -> None:
        self._log = log
        self._reading = reading

    async def piece(self, session_id: str, *, cursor: str | None, limit: int) -> Written:
        """The next piece, of at most `limit` events. Raises sessionNotFound, invalidCursor."""
        lines: list[bytes] = []
        at: _At
        if cursor is None:
            through = (await self._reading.session(session_id)).head_seq
            lines.append(header_line(session_id, through))
            at = _At(seq=0, part=0, through=through, digest=chained("", lines[0]))
        else:
            at = _At.of(cursor)
        size = sum(map(len, lines))
        for record in await self._events(session_id, at, limit):
            part = 0
            async for line in self._lines(record):
                part += 1
                if part <= at.part:
                    continue
                if lines and size + len(line) > PIECE_BYTES:
                    return _written(lines, at, at.cursor)
                lines.append(line)
                size += len(line)
                at = attrs.evolve(at, part=part, digest=chained(at.digest, line))
            at = attrs.evolve(at, seq=record.seq, part=0)
        if at.seq < at.through:
            return _written(lines, at, at.cursor)
        lines.append(closing_line(at.through, at.digest))
        return _written(lines, at, None)

    async def _events(self, session_id: str, at: _At, limit: int) -> list[Record]:
        rows = await self._log.query(
            f"{_EVENTS} WHERE session_id = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?",
            session_id,
            at.seq,
            at.through,
            limit,
        )
        if not rows and at.seq < at.through:
            raise CallboardError(
                "sessionNotFound", f"session {quoted(session_id)} was deleted while it was exported"
            )
        return [Record.of(row) for row in rows]

    async def _lines(self, record: Record) -> AsyncGenerator[bytes]:
        """The lines of one event: first the pieces of the blob that it names."""
        if record.type == "tool_result" and '"blob":{' in record.data:
            blob = orjson.loads(record.data).get("blob")
            if blob is not None:
                async for line in self._blob(blob["blobId"]):
                    yield line
        wire: dict[str, Any] = record.wire()
        del wire["pos"]  # it belongs to the store
        if '"_blobs"' in record.data:
            wire["data"] = await self._log.whole(record)
        yield orjson.dumps(wire)

    async def _blob(self, blob_id: str) -> AsyncGenerator[bytes]:
        offset = 0
        while True:
            try:
                data, size, mime = await self._log.read_blob(
                    blob_id, offset=offset, length=BLOB_PIECE
                )
            except CallboardError as error:
                if error.kind != "blobNotFound":
                    raise
                yield missing_blob_line(blob_id)
                return
            yield blob_line(blob_id, mime, size, offset, data)
            offset += len(data)
            if offset >= size or not data:
                return


def _written(lines: list[bytes], at: _At, cursor: str | None) -> Written:
    text = b"".join(line + b"\n" for line in lines).decode()
    return Written(text=text, cursor=cursor, events=at.seq, through=at.through)
