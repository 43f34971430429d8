"""What must hold of a log, and what can be made anew from it: looked at, never changed.

Each examination asks a connection that only reads, and tells what it finds.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, TypeAlias

import orjson
from attrs import frozen

from . import sqlfile
from .looking import Rows
from .search import INDEXED_TYPES, searchable_text
from .transaction import SQL as LOG_SQL

SQL = sqlfile.load("callboard.log", "care.sql")

Part: TypeAlias = Literal["file", "log", "blobs", "search", "projections", "runs"]
_SHOWN = 5


@frozen(kw_only=True)
class Finding:
    """Something about a store. A ``problem`` should not be; a ``note`` is worth knowing. `repairable`:
    it can be made anew from the log, which loses nothing."""

    part: Part
    message: str
    severity: Literal["problem", "note"] = "problem"
    repairable: bool = False


Examination: TypeAlias = Callable[[Rows], list[Finding]]


def _some(names: Iterable[Any]) -> str:
    """The first few of some names, and how many there are."""
    every = [str(each) for each in names]
    more = f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    return ", ".join(every[:_SHOWN]) + more


def examine_log(rows: Rows) -> list[Finding]:
    """Whether every session's events are all there, from the first to its head."""
    found = [
        Finding(
            part="log",
            message=f"session {session_id} has its head at {head} and {count} events, from seq "
            f"{first} to {last}",
        )
        for session_id, head, count, first, last in rows(SQL["sessions_with_gaps"])
    ]
    strays = [session_id for (session_id,) in rows(SQL["events_without_session"])]
    if strays:
        message = f"there are events of sessions that do not exist: {_some(strays)}"
        found.append(Finding(part="log", message=message))
    ((known, highest),) = rows(SQL["positions"])
    if known < highest:
        message = f"the next position would be {known + 1}, and {highest} is taken already"
        found.append(Finding(part="log", message=message))
    return found


def examine_events(rows: Rows) -> list[Finding]:
    """Whether every event can be read at all; where one cannot, nothing can be made from the log."""
    broken = [pos for (pos,) in rows(SQL["events_that_are_no_objects"])]
    if not broken:
        return []
    message = f"events hold what is no JSON object, at position {_some(broken)}"
    return [Finding(part="log", message=message)]


# --- blobs ------------------------------------------------------------------------------------------


def examine_blobs(rows: Rows, each_blob: Iterable[tuple[str, bytes]]) -> list[Finding]:
    """Whether each blob is what its address says, and whether all are there that events refer to."""
    found: list[Finding] = []
    wrong = {blob_id for (blob_id,) in rows(SQL["wrong_blob_sizes"])}
    wrong |= {
        blob_id
        for blob_id, data in each_blob
        if blob_id != f"blob_{hashlib.sha256(data).hexdigest()}"
    }
    if wrong:
        message = f"blobs hold something else than their address says: {_some(sorted(wrong))}"
        found.append(Finding(part="blobs", message=message))
    missing: set[str] = set()
    unclaimed: set[str] = set()
    for session_id, blob_id in _referred(rows):
        ((there, claimed),) = rows(SQL["blob_is_referred_to"], blob_id, session_id)
        if not there:
            missing.add(blob_id)
        elif not claimed:
            unclaimed.add(blob_id)
    if missing:
        message = f"events refer to blobs that are not there: {_some(sorted(missing))}"
        found.append(Finding(part="blobs", message=message))
    if unclaimed:
        message = (
            f"blobs would go although their sessions still need them: {_some(sorted(unclaimed))}"
        )
        found.append(Finding(part="blobs", message=message))
    ((stray,),) = rows(SQL["refs_without_session"])
    if stray:
        message = f"{stray} blobs are kept for sessions that do not exist"
        found.append(Finding(part="blobs", message=message))
    ((count, size),) = rows(SQL["unreferenced_blobs"])
    if count:
        message = f"{count} blobs ({size} bytes) belong to no session; they can go"
        found.append(Finding(part="blobs", message=message, severity="note", repairable=True))
    return found


def _referred(rows: Rows) -> Iterator[tuple[str, str]]:
    """The sessions of events that refer to blobs, and the blobs."""
    for _, session_id, data in rows(SQL["events_with_blobs"]):
        value: dict[str, Any] = orjson.loads(data)
        parts: dict[str, Any] = value.get("_blobs") or {}
        references = [*parts.values(), value.get("blob")]
        for reference in references:
            if isinstance(reference, dict) and "blobId" in reference:
                yield session_id, str(reference["blobId"])  # pyright: ignore[reportUnknownArgumentType]


# --- search -----------------------------------------------------------------------------------------


def examine_search(rows: Rows) -> list[Finding]:
    """Whether the search index holds what the log says, up to where it says that it does."""

    def wrong(message: str) -> list[Finding]:
        return [Finding(part="search", message=message, repairable=True)]

    progress = rows(LOG_SQL["indexed_through"])
    if len(progress) != 1:
        return wrong("it is not known how far the search index goes")
    through: int = progress[0][0]
    ((known, head),) = rows(SQL["positions"])
    if through > max(head, known):
        return wrong(f"the search index says it goes to {through}, and the log ends at {head}")
    types = orjson.dumps(INDEXED_TYPES).decode()
    different = sum(
        searchable_text(kind, data) != text
        for _, kind, data, text in rows(SQL["search_of_events"], through, types)
    )
    ((strays,),) = rows(SQL["search_of_nothing"], through, types)
    if different or strays:
        return wrong(f"the search index differs from the log in {different + strays} entries")
    return []
