"""What a decision may do: read, append, project, all in one transaction.

A transaction function runs in the writer's thread under ``BEGIN IMMEDIATE``. It must be short, must
not wait for anything, and sees its own writes. What it raises undoes all that it did, and nothing
of what others did in the same commit.
"""

import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from attrs import frozen

from callboard_rpc.common import Actor, BlobId, BlobRef
from callboard_rpc.convert import unstructure
from callboard_rpc.events import EVENT_NAMES, SessionDeleted, UnknownData

from . import sqlfile
from .alongside import Beside
from .faults import no_session, store_error
from .ids import IdSource
from .record import Record
from .sqlite import sqlite3
from .text import LARGE, all_well_formed, spill

SQL = sqlfile.load("callboard.log")

Apply = Callable[["Transaction", Record], None]


@frozen(kw_only=True)
class Projection:
    """Tables that follow the log, updated in the transaction of each event.

    `apply` maps an event type to what it does; `tables` are emptied before a rebuild; `forget`
    removes a deleted session. Nothing may live only in a projection.
    """

    name: str
    tables: tuple[str, ...]
    apply: Mapping[str, Apply]
    forget: Callable[["Transaction", str], None]


@frozen(kw_only=True)
class Writing:
    """What every transaction of a log needs."""

    path: Path
    ids: IdSource
    now: Callable[[], str]
    redact: Callable[[str], str]
    projections: list[Projection]
    applying: dict[str, list[Apply]]

    @classmethod
    def of(
        cls,
        path: Path,
        ids: IdSource,
        now: Callable[[], str],
        projections: Sequence[Projection],
        *,
        redact: Callable[[str], str] = lambda text: text,
    ) -> "Writing":
        """With every projection found by the types of events that it follows."""
        applying: dict[str, list[Apply]] = {}
        for projection in projections:
            for kind, apply in projection.apply.items():
                applying.setdefault(kind, []).append(apply)
        return cls(
            path=path,
            ids=ids,
            now=now,
            redact=redact,
            projections=list(projections),
            applying=applying,
        )


def _json(value: Any) -> str:
    return _json_as_it_is(value) or orjson.dumps(all_well_formed(value)).decode()


def _json_as_it_is(value: Any) -> str | None:
    """None for a value with half a character in some text (interrupts-and-peers 72)."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return None


@functools.lru_cache(maxsize=1024)
def _actor_text(actor: Actor) -> str:
    return _json(unstructure(actor))


class Transaction:
    """One decision's view of the store. `appended` are its events, in order. `at` is the time of its
    commit: all that is committed together happened together."""

    def __init__(
        self, connection: "sqlite3.Connection", writing: Writing, at: str | None = None
    ) -> None:
        self._at = at
        self.connection = connection
        self.writing = writing
        self.appended: list[Record] = []
        self.bytes = 0
        """About how much was written, for whoever bounds the WAL."""
        self.beside: Beside | None = None
        """Who wants to know, even after a crash, what was decided."""

    # --- reading ---

    def one(self, sql: str, *params: Any) -> tuple[Any, ...] | None:
        return self.connection.execute(sql, params).fetchone()

    def all(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql, params).fetchall()

    def each(self, sql: str, *params: Any) -> Iterator[tuple[Any, ...]]:
        """The rows one after the other, of many."""
        return iter(self.connection.execute(sql, params))

    def value(self, sql: str, *params: Any) -> Any:
        """The first column of the first row, or None."""
        row = self.connection.execute(sql, params).fetchone()
        return None if row is None else row[0]

    # --- writing ---

    def execute(self, sql: str, *params: Any) -> int:
        """Runs a statement and tells how many rows it changed."""
        return self.connection.execute(sql, params).rowcount

    def execute_many(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Runs a statement for each of the rows, one after the other."""
        self.connection.executemany(sql, rows)

    def contain(self, part: Callable[[], object]) -> Exception | None:
        """Runs a part of the decision that may fail alone: then its writes are undone and its fault is
        returned. A failure of the store itself is raised."""
        before = len(self.appended)
        self.connection.execute("SAVEPOINT part")
        try:
            part()
        except Exception as fault:
            store_failed = isinstance(fault, sqlite3.Error) and store_error(
                fault, self.writing.path
            )
            if store_failed or not self.connection.in_transaction:
                raise
            self.connection.execute("ROLLBACK TO part")
            self.connection.execute("RELEASE part")
            del self.appended[before:]
            return fault
        self.connection.execute("RELEASE part")
        return None

    def decided(self, **outcome: Any) -> None:
        """Says that this transaction does what a request asks, and what came of it: JSON from which
        the request can be answered once more, even when its first answer was lost in a crash. Every
        method that changes something has one transaction that says so."""
        if self.beside is not None:
            self.beside.decided(self, outcome)

    def now(self) -> str:
        """The time of the commit."""
        if self._at is None:
            self._at = self.writing.now()
        return self._at

    def new_id(self, prefix: str) -> str:
        return self.writing.ids.new(prefix)

    def begin_session(self, session_id: str, root_id: str) -> None:
        """Gives a session its place in the log; its first event follows in the same transaction."""
        self.execute(SQL["insert_head"], session_id, self.new_id("birth"), root_id)

    def append(
        self,
        session_id: str,
        data: Any,
        *,
        actor: Actor,
        turn_id: str | None = None,
        fence: int = 0,
    ) -> Record:
        """Appends an event (its data as a class of `callboard_rpc.events`) and projects it.

        Raises sessionNotFound. Secrets are taken out here, and values over 64 KiB moved to blobs.
        """
        kind = data.type if isinstance(data, UnknownData) else EVENT_NAMES[type(data)]
        row = self.one(SQL["next_seq"], session_id)
        if row is None:
            raise no_session(session_id)
        plain = unstructure(data)
        given = _json_as_it_is(plain)
        text = self._kept(session_id, given or _json(plain))
        record = Record(
            pos=0,
            session_id=session_id,
            seq=row[0],
            event_id=self.new_id("evt"),
            type=kind,
            at=self.now(),
            actor=self.writing.redact(_actor_text(actor)),
            turn_id=turn_id,
            fence=fence,
            data=text,
            value=data if text == given else None,  # what was changed is read as it was written
            root_id=row[1],
        )
        self.place(record)
        return record

    def restore(
        self,
        session_id: str,
        *,
        event_id: str,
        kind: str,
        at: str,
        actor: Any,
        turn_id: str | None,
        data: Any,
    ) -> Record:
        """Appends an event that was written elsewhere (`actor` and `data` as JSON values): it keeps its
        id, its time, its actor and its turn, and is looked through for secrets like every other."""
        row = self.one(SQL["next_seq"], session_id)
        assert row is not None
        record = Record(
            pos=0,
            session_id=session_id,
            seq=row[0],
            event_id=event_id,
            type=kind,
            at=at,
            actor=self.writing.redact(_json(actor)),
            turn_id=turn_id,
            fence=0,
            data=self.encode(session_id, data),
            root_id=row[1],
        )
        self.place(record)
        return record

    def place(self, record: Record) -> None:
        """Puts a record that is ready into the log, at its end, and projects it."""
        cursor = self.connection.execute(
            SQL["insert_event"],
            (
                record.session_id,
                record.seq,
                record.event_id,
                record.type,
                record.at,
                record.actor,
                record.turn_id,
                record.fence,
                record.data,
            ),
        )
        record.pos = cursor.lastrowid or 0
        self.bytes += record.size
        self.project(record)
        self.appended.append(record)

    def project(self, record: Record) -> None:
        """Brings the projections up to date with one event."""
        for apply in self.writing.applying.get(record.type, ()):
            apply(self, record)

    def encode(self, session_id: str, value: Any) -> str:
        """An event's data as it is stored: clean, and with its large texts in blobs."""
        return self._kept(session_id, _json(value))

    def _kept(self, session_id: str, text: str) -> str:
        # the secrets go first: a cut could leave half of one, and a blob's address tells its content
        text = self.writing.redact(text)
        if len(text) > LARGE:
            slim, parts = spill(orjson.loads(text))
            if parts:
                slim["_blobs"] = {
                    pointer: unstructure(self.put_blob(session_id, part.encode()))
                    for pointer, part in parts.items()
                }
                text = orjson.dumps(slim).decode()
        return text

    def put_blob(
        self, session_id: str, data: bytes, mime_type: str = "text/plain; charset=utf-8"
    ) -> BlobRef:
        """Keeps `data` under its content's address; it lives as long as a session refers to it."""
        blob_id = BlobId(f"blob_{hashlib.sha256(data).hexdigest()}")
        self.bytes += len(data)
        self.execute(SQL["put_blob"], blob_id, mime_type, len(data), data)
        self.execute(SQL["refer_to_blob"], blob_id, session_id)
        return BlobRef(blob_id=blob_id, bytes=len(data), mime_type=mime_type)

    def delete_session(self, session_id: str, *, actor: Actor) -> bool:
        """Deletes a session with all that belongs to it; a `session_deleted` event stays in its
        place, so that nobody misses it. False when there is no such session."""
        row = self.one("SELECT seq, root_id FROM heads WHERE session_id = ?", session_id)
        if row is None:
            return False
        self.execute(SQL["delete_search_rows"], session_id)
        for statement in ("delete_events", "delete_drafts", "delete_blob_refs", "delete_head"):
            self.connection.execute(SQL[statement], (session_id,)).fetchall()
        self.execute(SQL["delete_unreferenced_blobs"])
        self.execute(SQL["insert_deletion"], session_id, self.now())
        for projection in self.writing.projections:
            projection.forget(self, session_id)
        self.place(
            Record(
                pos=0,
                session_id=session_id,
                seq=row[0] + 1,
                event_id=self.new_id("evt"),
                type="session_deleted",
                at=self.now(),
                actor=self.writing.redact(_actor_text(actor)),
                turn_id=None,
                fence=0,
                data=orjson.dumps(unstructure(SessionDeleted())).decode(),
                root_id=row[1],
            )
        )
        return True
