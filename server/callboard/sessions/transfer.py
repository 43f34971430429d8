"""The form of an export that can be imported: JSON lines, with a first and a last one of their own.

The first line says what the file is and how many events it has; then come the events as they lie in the
log, without the places that belong to a store (`pos`, fences), large texts whole; before an event, the
pieces of each blob that it names. The last line has the number of events and a digest of all lines before
it, so that a file that was cut off or changed is told from a whole one. The digest is a chain: that of the
first line, then of each line's digest so far and the line itself; so an export can be written in pieces.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, cast

import orjson
from attrs import define, frozen

VERSION: Final = 1
"""Of the form. A file of a newer one is refused."""
BLOB_PIECE: Final = 384 * 1024
"""Bytes of a blob in one line."""
LINE_LIMIT: Final = 48 * 1024 * 1024
"""Bytes of a line: more than the largest event, which came through a frame of 32 MiB, has as JSON."""

_ID = re.compile(r"[a-z]{1,16}_[0-9a-zA-Z]{1,80}", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


class Refused(Exception):
    """What is wrong with a line, in words that follow ``line 7``. Never has the line's own text in it:
    the file may be anything that the server can read."""

    def __init__(self, why: str, *, line: int | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.line = line


@frozen(kw_only=True)
class Header:
    session_id: str
    events: int


@frozen(kw_only=True)
class BlobPiece:
    """A part of a blob; `missing` when the exporting store did not have it any more."""

    blob_id: str
    mime_type: str
    size: int
    offset: int
    data: bytes
    missing: bool = False


@frozen(kw_only=True)
class Closing:
    events: int
    digest: str


# --- writing ------------------------------------------------------------------------------------------


def header_line(session_id: str, events: int) -> bytes:
    return orjson.dumps(
        {"callboard": {"export": VERSION, "sessionId": session_id, "events": events}}
    )


def blob_line(blob_id: str, mime_type: str, size: int, offset: int, data: bytes) -> bytes:
    return orjson.dumps(
        {
            "blob": {
                "blobId": blob_id,
                "mimeType": mime_type,
                "size": size,
                "offset": offset,
                "data": base64.b64encode(data).decode(),
            }
        }
    )


def missing_blob_line(blob_id: str) -> bytes:
    return orjson.dumps({"blob": {"blobId": blob_id, "missing": True}})


def closing_line(events: int, digest: str) -> bytes:
    return orjson.dumps({"end": {"events": events, "digest": digest}})


def chained(digest: str, line: bytes) -> str:
    """The digest after one more line (without its line end); begin with an empty one."""
    return hashlib.sha256(bytes.fromhex(digest) + line).hexdigest()


# --- reading ------------------------------------------------------------------------------------------


def is_id(value: Any) -> bool:
    """Whether a value has the form of an id of Callboard's."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


@define
class Lines:
    """The lines of a file, numbered from 1, each at most `LINE_LIMIT` long."""

    file: BinaryIO
    number: int = 0

    def __iter__(self) -> Iterator[bytes]:
        while line := self._next():
            self.number += 1
            if len(line) > LINE_LIMIT:
                raise Refused(f"is longer than {LINE_LIMIT // 2**20} MiB, as no event is")
            yield line.removesuffix(b"\n").removesuffix(b"\r")

    def _next(self) -> bytes:
        try:
            return self.file.readline(LINE_LIMIT + 2)
        except OSError as fault:
            self.number += 1
            raise Refused(f"cannot be read ({fault.strerror})") from None


def parsed(line: bytes) -> dict[str, Any]:
    """A line as an object. Raises `Refused`."""
    try:
        value: Any = orjson.loads(line)
    except orjson.JSONDecodeError as fault:
        raise Refused(
            f"is not JSON in UTF-8 ({_kind_of(fault)}): the file was cut off or changed, or is none "
            "of ours"
        ) from None
    if not isinstance(value, dict):
        raise Refused("is not a JSON object")
    return cast("dict[str, Any]", value)


def _kind_of(fault: orjson.JSONDecodeError) -> str:
    return fault.msg.partition(":")[0]


def header_of(value: dict[str, Any]) -> Header:
    """The first line. Raises `Refused`."""
    head = value.get("callboard")
    if not isinstance(head, dict) or len(value) != 1:
        raise Refused(
            "does not say that this is an exported session; `session/export` with the format 'jsonl' "
            "makes one (Markdown is for reading only)"
        )
    fields = cast("dict[str, Any]", head)
    version = fields.get("export")
    if type(version) is not int or version < 1:
        raise Refused("names no version of the form")
    if version > VERSION:
        raise Refused(
            f"has version {version} of the form, and this server knows {VERSION}: update Callboard"
        )
    session_id, events = fields.get("sessionId"), fields.get("events")
    if not is_id(session_id) or type(events) is not int or events < 1 or len(fields) != 3:
        raise Refused("must name the session and how many events it has, and nothing else")
    return Header(session_id=cast("str", session_id), events=events)


def closing_of(value: dict[str, Any]) -> Closing:
    """The last line. Raises `Refused`."""
    end = value["end"]
    fields = cast("dict[str, Any]", end) if isinstance(end, dict) else {}
    events, digest = fields.get("events"), fields.get("digest")
    if type(events) is not int or not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise Refused("must have the number of events and their digest")
    return Closing(events=events, digest=digest)


def blob_of(value: dict[str, Any]) -> BlobPiece:
    """A piece of a blob. Raises `Refused`."""
    blob = value["blob"]
    fields = cast("dict[str, Any]", blob) if isinstance(blob, dict) else {}
    blob_id = fields.get("blobId")
    if not isinstance(blob_id, str) or not _DIGEST.fullmatch(blob_id.removeprefix("blob_")):
        raise Refused("has no blob's id")
    if fields.get("missing") is True:
        return BlobPiece(blob_id=blob_id, mime_type="", size=0, offset=0, data=b"", missing=True)
    mime, size, offset, data = (fields.get(k) for k in ("mimeType", "size", "offset", "data"))
    if (
        not isinstance(mime, str)
        or not 0 < len(mime) <= 200
        or type(size) is not int
        or type(offset) is not int
        or not isinstance(data, str)
    ):
        raise Refused("is not a piece of a blob: it needs mimeType, size, offset and data")
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise Refused("has a piece of a blob that is not base64") from None
    return BlobPiece(blob_id=blob_id, mime_type=mime, size=size, offset=offset, data=content)
