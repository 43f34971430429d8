"""Bringing a session into the log that was written elsewhere.

It is first played into a scratch store, which has the same schema and the same projections: whatever the
log could not hold shows there, before anything of it is written. Then it is published in pieces that are
short enough for everybody else's commits. Until the last one the session has no head: nobody can
find it or write to it. What a dead host has left of an import is taken out again.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import orjson
from attrs import frozen

from callboard_rpc.common import Actor
from callboard_rpc.convert import unstructure
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import SessionDeleted

from .migrating import migrate, migrations
from .record import Record
from .sqlite import sqlite3
from .text import redacted
from .transaction import SQL, Transaction, Writing

PIECE_EVENTS: Final = 250
PIECE_BYTES: Final = 1024 * 1024
"""What one commit of an import holds at the most; a single event or blob may be larger."""
_DELETED_AT_ONCE = 500
_ENDED = "ended "
"""Stands before the id of an import that is being taken back: nobody publishes under such an id."""

Blob = tuple[str, str, bytes]
"""Id, media type, content."""
Row = tuple[Any, ...]
"""seq, event_id, type, at, actor, turn_id, data."""


@frozen(kw_only=True)
class Piece:
    """What one transaction publishes."""

    blobs: tuple[Blob, ...] = ()
    rows: tuple[Row, ...] = ()


class Scratch:
    """A store for one session, in a file that has no name and is gone with the process, however that ends.

    `tx` is a transaction that is never committed, since nobody else will ever see it.
    """

    def __init__(self, writing: Writing) -> None:
        # the empty name: SQLite makes a file of its own, private, and unlinks it at once
        self.connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "trusted_schema = OFF"):
            self.connection.execute(f"PRAGMA {pragma}")
        migrate(self.connection, migrations())
        self.connection.execute("BEGIN")
        self.tx = Transaction(self.connection, writing)

    def close(self) -> None:
        self.connection.close()

    def clean(self, data: bytes) -> bytes:
        """A text without the secrets in it."""
        return redacted(self.tx.writing.redact, data.decode("utf-8", "replace")).encode()

    def head(self, session_id: str) -> int:
        """The last seq."""
        return self.tx.value("SELECT seq FROM heads WHERE session_id = ?", session_id)

    def pieces(self) -> Iterator[Piece]:
        """All of it, blobs first, in pieces of one transaction each."""
        blob_id = ""
        while (row := self.tx.one(SQL["scratch_blobs"], blob_id)) is not None:
            blob_id = row[0]
            yield Piece(blobs=((row[0], row[1], bytes(row[2])),))
        seq = 0
        while rows := self.tx.all(SQL["scratch_events"], seq, PIECE_EVENTS):
            size = 0
            taken: list[Row] = []
            for row in rows:
                size += len(row[6])
                if taken and size > PIECE_BYTES:
                    break
                taken.append(row)
            seq = taken[-1][0]
            yield Piece(rows=tuple(taken))


# --- transactions of an import ------------------------------------------------------------------------


def begin(tx: Transaction, session_id: str, *, import_id: str, host_id: str) -> None:
    """Takes the session's id for an import. Raises sessionExists.

    An id whose session was deleted can come back: the event that told of its end stays where it is for
    whoever follows the store, with a seq that is none.
    """
    if tx.one("SELECT 1 FROM heads WHERE session_id = ?", session_id) is not None:
        raise CallboardError(
            "sessionExists",
            f"there is a session {session_id} in this store already; import the file as a new session "
            "(newId, on the command line --new-id), or delete that one first",
            data={"sessionId": session_id},
        )
    if tx.one(SQL["import_of"], session_id) is not None:
        raise CallboardError(
            "sessionExists",
            f"session {session_id} is being imported just now; wait for it to end",
            data={"sessionId": session_id},
        )
    tx.execute(SQL["set_tombstones_apart"], session_id)
    tx.execute(SQL["begin_import"], session_id, import_id, host_id, tx.now())


def must_be_ours(tx: Transaction, session_id: str, import_id: str) -> None:
    """Raises leaseLost when the import was taken for left behind."""
    row = tx.one(SQL["import_of"], session_id)
    if row is None or row[0] != import_id:
        raise lost(session_id)


def lost(session_id: str) -> CallboardError:
    """What is said to whoever publishes an import that is not theirs any more."""
    return CallboardError(
        "leaseLost",
        f"session {session_id} was being published here, until another server ended that; try again",
    )


def publish(tx: Transaction, session_id: str, root_id: str, piece: Piece) -> None:
    """Puts a piece into the log, at the end of it. The events have no fence: no run of this store
    wrote them."""
    for blob_id, mime_type, data in piece.blobs:
        kept = tx.put_blob(session_id, data, mime_type)
        assert kept.blob_id == blob_id  # it is the content's address
    for seq, event_id, kind, at, actor, turn_id, data in piece.rows:
        tx.place(
            Record(
                pos=0,
                session_id=session_id,
                seq=seq,
                event_id=event_id,
                type=kind,
                at=at,
                actor=actor,
                turn_id=turn_id,
                fence=0,
                data=data,
                root_id=root_id,
            )
        )


def complete(
    tx: Transaction, session_id: str, root_id: str, *, head: int, folders_claimed: bool
) -> None:
    """Gives the session its head: from here on it is a session like any other."""
    tx.execute(
        SQL["insert_imported_head"],
        session_id,
        head,
        tx.new_id("birth"),
        root_id,
        head,
        int(folders_claimed),
    )
    tx.execute(SQL["forget_deletion"], session_id)
    tx.execute(SQL["end_import"], session_id)


def take_back(tx: Transaction, session_id: str, import_id: str, *, actor: Actor) -> bool:
    """Takes out some of what an import has left, the newest first; True while there is more.

    With the first of it the publishing is over: one more piece between two steps would make a whole session
    of what is left. With the last of it goes all that belongs to the session, and whoever follows the
    store, and may have seen some of it, is told that it is deleted. Nothing when somebody has done it
    already.
    """
    ended = import_id if import_id.startswith(_ENDED) else _ENDED + import_id
    row = tx.one(SQL["import_of"], session_id)
    if row is None or row[0] not in (import_id, ended):
        return False
    tx.execute(SQL["set_import_id"], ended, session_id)
    newest = tx.all(SQL["newest_of_import"], session_id, _DELETED_AT_ONCE)
    for (pos,) in newest:
        tx.execute(SQL["delete_search_row"], pos)
        tx.execute(SQL["delete_event"], pos)
    if len(newest) == _DELETED_AT_ONCE:
        return True
    alone = tx.all(SQL["blobs_of_session_alone"], session_id)
    tx.execute(SQL["delete_blob_refs"], session_id)
    for (blob_id,) in alone:
        tx.execute(SQL["delete_blob"], blob_id)
    for projection in tx.writing.projections:
        projection.forget(tx, session_id)
    tx.execute(SQL["end_import"], session_id)
    tombstone = Record(
        pos=0,
        session_id=session_id,
        seq=0,
        event_id=tx.new_id("evt"),
        type="session_deleted",
        at=tx.now(),
        actor=orjson.dumps(unstructure(actor)).decode(),
        turn_id=None,
        fence=0,
        data=orjson.dumps(unstructure(SessionDeleted())).decode(),
    )
    tx.execute(SQL["forget_deletion"], session_id)
    tx.execute(SQL["insert_deletion"], session_id, tx.now())
    tx.place(tombstone)
    tx.execute(SQL["set_tombstones_apart"], session_id)
    tombstone.seq = -tombstone.pos
    return False


def ids_in_use(tx: Transaction, table: str, column: str, ids: Sequence[str]) -> str | None:
    """One of `ids` that `table` has already, or None."""
    return tx.value(
        f"SELECT t.{column} FROM json_each(?) j JOIN {table} t ON t.{column} = j.value LIMIT 1",
        orjson.dumps(list(ids)).decode(),
    )
