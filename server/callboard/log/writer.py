"""The writer: one thread, one connection, group commit.

Callers hand over transaction functions; those that wait at the same time share one transaction and
so one fsync, each behind its own savepoint, and each learns its own outcome. Jobs always finish: a
caller that is cancelled meanwhile only does not hear of it (execution 6).
"""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from attrs import frozen

from callboard_rpc.errors import CallboardError

from .alongside import joined
from .faultpoints import ARMED, commit_name, commits, point
from .faults import store_error
from .record import Record
from .sqlite import sqlite3
from .store import BUSY_MS, Store
from .transaction import Transaction, Writing

T = TypeVar("T")

_BATCH = 512
_COMMIT_BYTES = 4 * 1024
"""About what a commit and each of its events take in the WAL, where they are not large."""


@frozen(kw_only=True)
class WalLimits:
    """Bytes after which a checkpoint is made, and from which on the file is cut back."""

    checkpoint_bytes: int = 4 * 1024 * 1024
    limit_bytes: int = 64 * 1024 * 1024


class _Job:
    __slots__ = ("error", "function", "future", "name", "result")

    def __init__(
        self, function: Callable[[Transaction], Any], future: "asyncio.Future[Any]"
    ) -> None:
        self.name = commit_name(function) if ARMED else ""
        self.function = joined(function)
        self.future = future
        self.result: Any = None
        self.error: BaseException | None = None


class Writer:
    """Runs transaction functions. `published` is called on the loop with what each commit appended,
    after the callers of that commit have their results."""

    def __init__(
        self,
        store: Store,
        writing: Writing,
        published: Callable[[list[Record]], None],
        loop: asyncio.AbstractEventLoop,
        wal: WalLimits,
    ) -> None:
        self._store = store
        self._writing = writing
        self._published = published
        self._loop = loop
        self._arrived: list[_Job] = []
        self._jobs: queue.SimpleQueue[list[_Job] | None] = queue.SimpleQueue()
        self._handed = 0
        self._taken = 0
        self._closed = False
        self._wal = store.path.with_name(store.path.name + "-wal")
        self._limits = wal
        self._uncheckpointed = self._left()
        self._thread = threading.Thread(target=self._run, name="callboard-writer", daemon=True)
        self._thread.start()

    def submit(self, function: Callable[[Transaction], T]) -> "asyncio.Future[T]":
        """Queues a transaction. The future fails with what `function` raised, or a store's error."""
        future: asyncio.Future[T] = self._loop.create_future()
        if self._closed:
            future.set_exception(CallboardError("shuttingDown", "the store is closed"))
        else:
            if not self._arrived:
                self._loop.call_soon(self._hand_over)
            self._arrived.append(_Job(function, future))
        return future

    def _hand_over(self) -> None:
        """Gives the thread at once what one round of the loop has brought. Each job by itself would
        wake it as often, and have it fight with the loop for the interpreter."""
        if self._arrived:
            self._handed += len(self._arrived)
            self._jobs.put(self._arrived)
            self._arrived = []

    @property
    def waiting(self) -> int:
        """How many transactions have not begun."""
        return len(self._arrived) + self._handed - self._taken

    async def close(self) -> None:
        """Finishes what was submitted, then ends the thread."""
        if not self._closed:
            self._closed = True
            self._hand_over()
            self._jobs.put(None)
            await self._loop.run_in_executor(None, self._thread.join)

    # --- in the writer's thread ---

    def _run(self) -> None:
        while True:
            first = self._jobs.get()
            if first is None:
                return
            batch = first
            ending = False
            while len(batch) < _BATCH:
                try:
                    more = self._jobs.get_nowait()
                except queue.Empty:
                    break
                if more is None:
                    ending = True
                    break
                batch += more
            self._taken += len(batch)
            records = self._commit(batch)
            with contextlib.suppress(RuntimeError):  # the loop may be gone at exit
                self._loop.call_soon_threadsafe(self._deliver, batch, records)
            if ending:
                return

    def _commit(self, batch: list[_Job]) -> list[Record]:
        connection = self._store.connection
        records: list[Record] = []
        try:
            with self._store.lock.held():
                self._store.must_be_in_place()
                connection.execute("BEGIN IMMEDIATE")
                at = self._writing.now()
                for job in batch:
                    records += self._decide(job, at, alone=len(batch) == 1)
                if ARMED:
                    commits(_names(batch), "deciding")
                connection.execute("COMMIT")
                if ARMED:
                    commits(_names(batch), "committed")
                self._checkpoint()
        except BaseException as fault:
            self._undo()
            for job in batch:
                # what a job raised of itself is its own news, whatever became of the others
                job.error = job.error or self._named(fault)
            return []
        return records

    def _decide(self, job: _Job, at: str, *, alone: bool) -> list[Record]:
        connection = self._store.connection
        transaction = Transaction(connection, self._writing, at)
        if alone:
            try:
                job.result = job.function(transaction)
            except Exception as fault:
                job.error = self._named(fault)
                connection.execute("ROLLBACK")
                connection.execute("BEGIN IMMEDIATE")
                return []
            self._count(transaction)
            return transaction.appended
        connection.execute("SAVEPOINT decision")
        try:
            job.result = job.function(transaction)
        except Exception as fault:
            job.error = self._named(fault)
            if not connection.in_transaction:
                raise  # SQLite gave up the whole transaction (disk full, I/O): nobody committed
            connection.execute("ROLLBACK TO decision")
            connection.execute("RELEASE decision")
            return []
        connection.execute("RELEASE decision")
        self._count(transaction)
        return transaction.appended

    def _count(self, transaction: Transaction) -> None:
        self._uncheckpointed += max(
            _COMMIT_BYTES * (1 + len(transaction.appended)), transaction.bytes
        )

    def _left(self) -> int:
        """What to count as written already: a WAL that a killed process left too long is cut back with
        the first commit."""
        with contextlib.suppress(OSError):
            if self._wal.stat().st_size > self._limits.limit_bytes:
                return 10 * self._limits.checkpoint_bytes
        return 0

    def _named(self, fault: BaseException) -> BaseException:
        return store_error(fault, self._store.path) or fault

    def _undo(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            if self._store.connection.in_transaction:
                self._store.connection.execute("ROLLBACK")

    def _checkpoint(self) -> None:
        """Keeps the WAL bounded: gently when nobody waits, for sure when it has grown too long.

        A checkpointed WAL keeps its length and is overwritten from its start, so what counts is how
        much was written since, not how long the file is.
        """
        due = self._limits.checkpoint_bytes
        if self._uncheckpointed < due or (
            self._uncheckpointed < 10 * due and not self._jobs.empty()
        ):
            return
        self._uncheckpointed = 0
        point("log.checkpointing")
        connection = self._store.connection
        with contextlib.suppress(sqlite3.Error, OSError):
            if self._wal.stat().st_size <= self._limits.limit_bytes:
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                point("log.checkpointed")
                return
            connection.execute("PRAGMA busy_timeout = 100")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        with contextlib.suppress(sqlite3.Error):
            connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")

    # --- on the loop ---

    def _deliver(self, batch: list[_Job], records: list[Record]) -> None:
        for job in batch:
            if job.future.done():
                continue
            if job.error is not None:
                job.future.set_exception(job.error)
            else:
                job.future.set_result(job.result)
        if records:
            self._published(records)
        if ARMED:
            self._loop.call_soon(commits, _names(batch), "told")


def _names(batch: list[_Job]) -> set[str]:
    return {job.name for job in batch if job.error is None}
