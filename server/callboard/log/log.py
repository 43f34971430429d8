"""The event log: one object that a process opens once, and everything goes through.

Writes are transaction functions (see `transaction`); reads go over connections of their own and
never wait for the writer. Every commit, of this process or another, is published by the `feed`.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import aiosqlite
import orjson

from callboard_rpc.common import Actor, BlobRef, Cursor
from callboard_rpc.errors import CallboardError

from . import paging, search
from .comparing import rebuild
from .drafts import GrowingDraft
from .faults import store_error
from .feed import Feed
from .ids import IdSource
from .importing import Scratch
from .looking import Rows, at_once
from .record import OUTLINE, SELECT, Record
from .scope import APPROVAL_TYPES, Filter
from .sqlite import sqlite3
from .store import Store
from .text import quoted, redacted, restore
from .transaction import SQL, Projection, Transaction, Writing
from .writer import WalLimits, Writer

T = TypeVar("T")

_log = logging.getLogger(__name__)

_LONG = 256 * 1024
"""Bytes of text that take long enough to look through that the loop should not wait for it."""
_INDEX_DELAY_S = 0.3
_PAGE_BYTES = 1024 * 1024
_ANEW_S = 1.0
"""After how long something begins anew that goes on for ever, and has failed."""


class Log:
    """The log of one store, in one process. Use as an async context manager.

    `redact` takes secrets out of every event; `projections` follow the log in the same transaction.
    """

    def __init__(
        self,
        store: Store,
        *,
        ids: IdSource,
        now: Callable[[], str],
        redact: Callable[[str], str] = lambda text: text,
        projections: Sequence[Projection] = (),
        wal: WalLimits | None = None,
    ) -> None:
        self.search_limit_s = 2.0
        """How long a search may take, from when it is asked for."""
        self._store = store
        self._wal = wal or WalLimits()
        self._writing = Writing.of(store.path, ids, now, projections, redact=redact)
        self.feed = Feed(store)
        self._drafts: dict[str, GrowingDraft] = {}
        """By turn, as they streamed; the store has them redacted."""
        self._tasks: list[asyncio.Task[None]] = []
        self._index_wanted = asyncio.Event()

    @property
    def store_id(self) -> str:
        return self._store.store_id

    @property
    def path(self) -> Path:
        return self._store.path

    @property
    def ids(self) -> IdSource:
        return self._writing.ids

    @property
    def redact(self) -> Callable[[str], str]:
        """Takes secrets out of a JSON text, as it is done for every event."""
        return self._writing.redact

    @property
    def now(self) -> Callable[[], str]:
        return self._writing.now

    @property
    def head(self) -> int:
        """The last `pos` that this process knows to be committed."""
        return self.feed.head

    @property
    def queue_length(self) -> int:
        """Transactions that wait for the writer."""
        return self._writer.waiting

    async def __aenter__(self) -> "Log":
        loop = asyncio.get_running_loop()
        self._writer = Writer(self._store, self._writing, self.feed.committed, loop, self._wal)
        self._reader = await self._open_reader()
        self._searcher = await self._open_reader()
        self.feed.listen(self._heard)
        self._tasks = [
            loop.create_task(_for_ever(self._index), name="callboard-indexer"),
            loop.create_task(_for_ever(self.feed.poll), name="callboard-poll"),
        ]
        if self.feed.head:
            self._index_wanted.set()
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._writer.close()
        await self._reader.close()
        await self._searcher.close()
        self.feed.close()
        self._store.close()

    async def _open_reader(self) -> aiosqlite.Connection:
        return await aiosqlite.Connection(self._store.reader, 64)  # pyright: ignore[reportArgumentType]

    # --- writing ---

    async def transact(self, function: Callable[[Transaction], T]) -> T:
        """Runs `function` in one durable transaction and returns what it returns.

        Raises what it raises, or a store error; either way nothing of it was written. Cancelling
        the caller does not stop the transaction.
        """
        return await self._writer.submit(function)

    def submit(self, function: Callable[[Transaction], T]) -> "asyncio.Future[T]":
        """Queues a transaction and goes on; transactions happen in the order in which they came."""
        return self._writer.submit(function)

    def scratch(self) -> Scratch:
        """A store of its own for a session that is to be imported; to be closed."""
        return Scratch(self._writing)

    async def append(
        self,
        session_id: str,
        data: Any,
        *,
        actor: Actor,
        turn_id: str | None = None,
        fence: int = 0,
    ) -> Record:
        """Appends one event; see `Transaction.append`."""
        return await self._writer.submit(
            lambda tx: tx.append(session_id, data, actor=actor, turn_id=turn_id, fence=fence)
        )

    # --- reading ---

    async def query(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        """Rows of a read-only statement."""
        try:
            rows: Any = await self._reader.execute_fetchall(sql, params)
            return list(rows)
        except (sqlite3.Error, OSError) as fault:
            raise store_error(fault, self.path) or fault from fault

    async def _read(self, function: "Callable[[sqlite3.Connection], T]") -> T:
        """Runs `function` in the reader's thread."""
        connection: Any = self._reader._conn  # pyright: ignore[reportPrivateUsage]
        try:
            return await self._reader._execute(function, connection)  # pyright: ignore
        except (sqlite3.Error, OSError) as fault:
            raise store_error(fault, self.path) or fault from fault

    async def at_once(self, function: Callable[[Rows], T]) -> T:
        """What `function` makes of several read-only statements that all see one state of the store."""
        return await self._read(lambda connection: at_once(connection, function))

    def glance(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        """Rows of a read-only statement that finds a few of them by an index, or in a table that is
        never large: on the spot, since the way to another thread and back takes ten times as long."""
        try:
            return self.feed.query(sql, params)
        except (sqlite3.Error, OSError) as fault:
            raise store_error(fault, self.path) or fault from fault

    async def query_named(self, sql: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Like `query`, for a statement with ``:named`` parameters."""
        try:
            rows: Any = await self._reader.execute_fetchall(sql, dict(params))  # pyright: ignore[reportArgumentType]
            return list(rows)
        except (sqlite3.Error, OSError) as fault:
            raise store_error(fault, self.path) or fault from fault

    async def page(
        self,
        filter: Filter,
        *,
        after: int = 0,
        before: int | None = None,
        limit: int = 500,
        max_bytes: int = _PAGE_BYTES,
        backwards: bool = False,
    ) -> list[Record]:
        """Records with ``after < pos < before``, in order of `pos`: the first `limit`, or with
        `backwards` the last. A page ends at `max_bytes` too, but holds at least one record."""
        span = paging.Span(after=after, before=before, backwards=backwards)
        rows = await self._read(lambda connection: paging.rows(connection, filter, span, limit))
        records: list[Record] = []
        size = 0
        for row in rows:
            record = Record.of(row)
            size += record.size
            if records and size > max_bytes:
                break
            records.append(record)
        return records[::-1] if backwards else records

    async def count(self, filter: Filter, *, after: int, through: int, limit: int) -> int:
        """How many records have ``after < pos <= through``; `limit` if there are as many or more."""
        span = paging.Span(after=after, before=through + 1, backwards=False)
        return await self._read(lambda connection: paging.count(connection, filter, span, limit))

    async def outline(self, session_id: str, whole: Collection[str]) -> list[Record]:
        """All records of a session, in order; only those of the types `whole` with their data."""
        rows = await self.query(
            f"{OUTLINE} WHERE session_id = ? ORDER BY seq",
            orjson.dumps(sorted(whole)).decode(),
            session_id,
        )
        return [Record.of(row) for row in rows]

    async def session(self, session_id: str, *, after_seq: int = 0) -> list[Record]:
        """All records of a session above `after_seq`, in order."""
        rows = await self.query(
            f"{SELECT} WHERE session_id = ? AND seq > ? ORDER BY seq", session_id, after_seq
        )
        return [Record.of(row) for row in rows]

    async def whole(self, record: Record) -> dict[str, Any]:
        """The data of a record as parsed JSON, with the values that lie in blobs put back."""
        value: dict[str, Any] = orjson.loads(record.data)
        parts: dict[str, Any] = value.pop("_blobs", {})
        if not parts:
            return value
        texts: dict[str, str] = {}
        for pointer, reference in parts.items():
            data, _, _ = await self.read_blob(reference["blobId"])
            texts[pointer] = data.decode("utf-8", "replace")
        return restore(value, texts)

    async def read_blob(
        self, blob_id: str, *, offset: int = 0, length: int | None = None
    ) -> tuple[bytes, int, str]:
        """A piece of a blob, its whole size in bytes, and its media type. Raises blobNotFound."""
        wanted = (1 << 31) if length is None else length
        rows = await self.query(SQL["read_blob"], offset, wanted, blob_id)
        if not rows:
            raise CallboardError("blobNotFound", f"there is no blob {quoted(blob_id)}")
        data, size, mime_type = rows[0]
        return bytes(data), size, mime_type

    async def put_blob(self, session_id: str, data: bytes, mime_type: str) -> BlobRef:
        """Keeps a value for a session; secrets in text are taken out first."""
        if mime_type.startswith("text/"):
            if len(data) < _LONG:
                data = self._clean(data)
            else:  # it is looked through beside the loop
                data = await asyncio.to_thread(self._clean, data)
        return await self._writer.submit(lambda tx: tx.put_blob(session_id, data, mime_type))

    def _clean(self, data: bytes) -> bytes:
        return redacted(self._writing.redact, data.decode("utf-8", "replace")).encode()

    # --- drafts ---

    def append_draft(
        self,
        *,
        session_id: str,
        turn_id: str,
        message_id: str,
        answer: str,
        thought: str,
        next_index: str,
        holds: Callable[[Transaction], None] = lambda _: None,
    ) -> "asyncio.Future[int]":
        """Adds text to the turn's draft. `next_index` says where the deltas go on (JSON); `holds`
        raises, in the transaction, when the turn is not the writer's any more. What is added before an
        earlier save has begun is saved with that."""
        draft = self._drafts.get(turn_id)
        if draft is None or draft.message_id != message_id:
            draft = self._drafts[turn_id] = GrowingDraft(message_id)
        if not draft.add(answer, thought, next_index) and draft.saving is not None:
            return draft.saving
        growing, redact = draft, self._writing.redact

        def write(tx: Transaction) -> int:
            answer, thought, next_index = growing.whole()
            holds(tx)
            # as a whole, so that a secret that streams in pieces is found
            clean = [redacted(redact, text) for text in (answer, thought)]
            return tx.execute(
                SQL["write_draft"], turn_id, session_id, message_id, *clean, next_index, tx.now()
            )

        draft.saving = self._writer.submit(write)
        return draft.saving

    async def draft(self, turn_id: str) -> tuple[str, str, str, str] | None:
        """The turn's draft: message id, answer, thought, next indices."""
        rows = await self.query(SQL["read_draft"], turn_id)
        return tuple(rows[0]) if rows else None  # pyright: ignore[reportReturnType]

    # --- search ---

    async def search(
        self, query: str, *, session_id: str | None = None, before: int | None = None, limit: int
    ) -> list[search.Hit]:
        """The newest `limit` matches, newest first. Bounded in time: raises overloaded."""
        upper = 1 << 62 if before is None else before
        stop, running = threading.Event(), threading.Event()

        def find() -> list[search.Hit]:
            connection = self._searcher._conn  # pyright: ignore[reportPrivateUsage]
            running.set()
            try:
                return search.find(
                    connection,
                    query,
                    session_id=session_id,
                    before=upper,
                    limit=limit,
                    stop=stop,
                )
            finally:
                running.clear()

        async def end() -> None:
            stop.set()
            if running.is_set():  # else the connection is busy with somebody else's search
                await self._searcher.interrupt()

        work = asyncio.ensure_future(self._searcher._execute(find))  # pyright: ignore
        try:
            return await asyncio.wait_for(asyncio.shield(work), self.search_limit_s)
        except TimeoutError:
            await end()
            with contextlib.suppress(sqlite3.Error):
                await work
            raise CallboardError(
                "overloaded",
                "the search took too long; use more, or longer, words",
            ) from None
        except asyncio.CancelledError:
            await end()
            # nobody will ask for its outcome
            work.add_done_callback(lambda done: done.cancelled() or done.exception())
            raise
        except (sqlite3.Error, OSError) as fault:
            raise store_error(fault, self.path) or fault from fault

    async def index_all(self) -> int:
        """Brings the search index up to the head; returns the last `pos` that it holds."""
        while await self._writer.submit(search.index_batch):
            pass
        return (await self.query(SQL["indexed_through"]))[0][0]

    async def _index(self) -> None:
        while True:
            await self._index_wanted.wait()
            await asyncio.sleep(_INDEX_DELAY_S)  # gathers a batch; nobody waits for the index
            self._index_wanted.clear()
            with contextlib.suppress(CallboardError):
                while await self._writer.submit(search.index_batch):
                    pass

    # --- following (see `feed`) ---

    def listen(self, listener: Callable[[list[Record]], None]) -> Callable[[], None]:
        return self.feed.listen(listener)

    async def moved(self, pos: int) -> int:
        return await self.feed.moved(pos)

    def recent(self, after: int) -> list[Record] | None:
        return self.feed.recent(after)

    def watching(self, session_id: str) -> contextlib.AbstractContextManager[asyncio.Event]:
        return self.feed.watching(session_id)

    def watching_tree(self, session_id: str) -> contextlib.AbstractContextManager[asyncio.Event]:
        """Watches the tree that a session is in; see `Feed.watching_tree`."""
        rows = self.glance("SELECT root_id FROM heads WHERE session_id = ?", session_id)
        return self.feed.watching_tree(rows[0][0] if rows else session_id)

    def refresh(self) -> int:
        """Takes in what other processes have committed by now, and returns the head."""
        self.feed.look()
        return self.feed.head

    async def approvals_moved(self, pos: int) -> None:
        """Waits for an approval that is asked or decided after `pos`: by this process, or by
        another one before the wait began."""
        moved = asyncio.Event()

        def heard(records: list[Record]) -> None:
            if any(r.type in APPROVAL_TYPES for r in records):
                moved.set()

        stop = self.feed.listen(heard)
        try:
            # listening comes first: what is committed meanwhile is in the page or is heard
            if not await self.page(Filter(types=APPROVAL_TYPES), after=pos, limit=1):
                await moved.wait()
        finally:
            stop()

    def _heard(self, records: list[Record]) -> None:
        self._index_wanted.set()
        if self._drafts:
            for record in records:
                if record.type == "turn_finished":
                    self._drafts.pop(record.turn_id or "", None)

    # --- cursors ---

    def cursor(self, pos: int | None = None) -> Cursor:
        """The cursor of a position, the head's by default."""
        return Cursor(f"{self.store_id}.{self.feed.head if pos is None else pos}")

    def position(self, cursor: str) -> int:
        """The position of a cursor. Raises invalidCursor for another store's, or one that this
        store has not reached."""
        store_id, _, text = cursor.rpartition(".")
        if store_id != self.store_id or not text.isascii() or not text.isdigit():
            raise CallboardError(
                "invalidCursor",
                f"the cursor {quoted(cursor)} is none of the store {self.store_id}; subscribe from 'start'",
            )
        pos = int(text) if len(text) < 19 else 1 << 62
        if pos > self.feed.head:
            self.feed.look()  # it may come from another process of this store, just now
        if pos > self.feed.head:
            raise CallboardError(
                "invalidCursor",
                f"the cursor {quoted(cursor)} is beyond the end of this store (it was restored from an older "
                "copy?); subscribe from 'start'",
            )
        return pos

    # --- care ---

    async def rebuild(self) -> None:
        """Empties every projection and makes it anew from the log, in one transaction."""

        def all_anew(transaction: Transaction) -> None:
            rebuild(transaction)

        await self._writer.submit(all_anew)


async def _for_ever(work: Callable[[], Awaitable[None]]) -> None:
    """Begins `work` anew when it fails: without it nothing would be heard, or found, any more."""
    while True:
        try:
            await work()
        except Exception:
            _log.exception("following the log failed, and begins anew")
        await asyncio.sleep(_ANEW_S)
