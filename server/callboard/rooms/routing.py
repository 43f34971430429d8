"""Whose turn it is in a room, and how much of what waits is for that one (session-messaging 9).

Decided in the transaction that takes the session, by who takes part then and by what the prompts say then:
members come and go, and a prompt that waits can be changed.
"""

from collections.abc import Sequence
from itertools import takewhile
from typing import Any, Final

import orjson

from callboard_rpc.events import MemberMentioned, ScheduleFired

from ..log.record import SELECT, Record
from ..log.text import restore
from ..log.transaction import SQL as LOG_SQL
from ..log.transaction import Transaction
from ..sessions.answering import ALONE, Answering, Pending
from ..sessions.projection import find_room
from ..sessions.state import Room
from ..sessions.submitting import HOOK_META
from .mentions import mentioned
from .projection import SQL

MOST_TEXT: Final = 1024 * 1024
"""Bytes of a text in which mentions are looked for, since the writer waits meanwhile."""


def route(tx: Transaction, session_id: str, pending: Sequence[Pending]) -> Answering | None:
    """A `Router`: the oldest trigger says who answers; those right behind it that are for the same agent
    join its turn. Steers that no turn has read are for whoever is next."""
    room = find_room(tx.all, session_id)
    host = room.answers()
    if host is None:
        return None
    if not pending:
        return Answering(profile=host, admitted=())
    first = pending[0]
    who = _meant_by(tx, session_id, room, host, first)
    if first.kind in ALONE:
        return Answering(profile=who, admitted=(first,))

    def joins(each: Pending) -> bool:
        if each is first or each.delivery == "steer":
            return True
        return each.kind not in ALONE and _meant_by(tx, session_id, room, host, each) == who

    return Answering(profile=who, admitted=tuple(takewhile(joins, pending)))


def _meant_by(tx: Transaction, session_id: str, room: Room, host: str, pending: Pending) -> str:
    """The agent that is to answer a trigger. A member that was addressed and has left since was not."""
    if pending.kind not in ("prompt", "mention", "schedule"):
        return host
    record = _record(tx, session_id, pending.seq)
    match record.value:
        case ScheduleFired(profile=profile):
            return profile
        case MemberMentioned(name=name):
            return room.named(name) or host
        case message:
            to: str | None = getattr(message, "to", None)
            chosen = None if to is None else room.named(to)
            if chosen is not None:
                return chosen
    updated: int | None = tx.value(SQL["updated_by"], session_id, pending.seq)
    said = record if updated is None else _record(tx, session_id, updated)
    return mentioned(text_of(tx, said), room.members) or host


def _record(tx: Transaction, session_id: str, seq: int) -> Record:
    row = tx.one(f"{SELECT} WHERE session_id = ? AND seq = ?", session_id, seq)
    assert row is not None
    return Record.of(row)


def text_of(tx: Transaction, record: Record) -> str:
    """What a message, or a change of one, says in words: nothing attached, nothing that a hook has added.
    Only the first `MOST_TEXT` bytes of a large text."""
    data: dict[str, Any] = orjson.loads(record.data)
    texts: dict[str, str] = {}
    for pointer, reference in data.pop("_blobs", {}).items():
        if pointer.startswith("/content/"):
            row = tx.one(LOG_SQL["read_blob"], 0, MOST_TEXT, reference["blobId"])
            if row is not None:
                texts[pointer] = bytes(row[0]).decode("utf-8", "ignore")
    return words_of(restore(data, texts)["content"])


def words_of(content: Sequence[dict[str, Any]]) -> str:
    """The words of content as it is on the wire."""
    own = (
        block["text"]
        for block in content
        if block.get("type") == "text" and (block.get("_meta") or {}) != HOOK_META
    )
    return "\n\n".join(own)[:MOST_TEXT]
