"""Durable events a second, by fifty sessions at once, through the whole of `callboard.log`.

The floor is what the same disk gives without it: one ``fdatasync`` a page, and aiosqlite with one
transaction an event.
"""

import asyncio
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import aiosqlite
from figure import Figure, Topic, rounds

from callboard.host import projections_of
from callboard.log.clock import utc_now
from callboard.log.ids import IdSource
from callboard.log.log import Log
from callboard.log.redact import Redactor
from callboard.log.store import open_store
from callboard.log.transaction import Projection, Transaction
from callboard.rpc import loop
from callboard.sessions.telling import RunListeners
from callboard_rpc.common import Actor, MessageId, SessionId, TextContent
from callboard_rpc.events import Author, Message, SessionCreated

_SESSIONS = 50
_EACH = 100
_TEXT = "The tests pass now; the fault was in how the path was joined. " * 3
_ACTOR = Actor(kind="agent", id="bench", name="default")
_AUTHOR = Author(kind="agent", name="default", id="bench")
PROJECTIONS = projections_of(RunListeners())
"""Those that a host keeps."""


def new_session(tx: Transaction) -> str:
    """A session in the log, as the product makes one."""
    session_id = tx.new_id("ses")
    tx.begin_session(session_id, session_id)
    created = SessionCreated(
        session_id=SessionId(session_id),
        root_id=SessionId(session_id),
        cwd="/work",
        profile="default",
        mode="ask",
    )
    tx.append(session_id, created, actor=_ACTOR)
    return session_id


def a_message(log_ids: IdSource) -> Message:
    """An agent's message of about 300 bytes."""
    return Message(
        message_id=MessageId(log_ids.new("msg")),
        author=_AUTHOR,
        content=(TextContent(text=_TEXT),),
        final=False,
    )


async def _appended(path: Path, count: int, projections: tuple[Projection, ...]) -> list[float]:
    """Events a second. Each session waits for an event to be durable before it appends the next."""
    ids = IdSource()
    redactor = Redactor(("a-secret-of-the-bench",))
    store = open_store(path, ids=ids, now=utc_now)
    log = Log(store, ids=ids, now=utc_now, redact=redactor.json_text, projections=projections)
    samples: list[float] = []
    async with log:
        session_ids = [await log.transact(new_session) for _ in range(_SESSIONS)]

        async def work(session_id: str) -> None:
            for _ in range(_EACH):
                await log.append(session_id, a_message(ids), actor=_ACTOR)

        for _ in range(count):
            before, began = log.head, time.perf_counter()
            await asyncio.gather(*(work(session_id) for session_id in session_ids))
            samples.append(_SESSIONS * _EACH / (time.perf_counter() - began))
            assert log.head - before == _SESSIONS * _EACH
    return samples


async def _aiosqlite(path: Path, count: int) -> list[float]:
    """The same events, each in a transaction of its own."""
    samples: list[float] = []
    async with aiosqlite.connect(path, isolation_level=None) as connection:
        for statement in (
            "PRAGMA journal_mode = WAL",
            "PRAGMA synchronous = FULL",
            "CREATE TABLE events (pos INTEGER PRIMARY KEY, session TEXT, seq INTEGER, data TEXT,"
            " UNIQUE (session, seq))",
        ):
            await connection.execute(statement)

        async def work(session: int, seqs: range) -> None:
            for seq in seqs:
                await connection.execute(
                    "INSERT INTO events (session, seq, data) VALUES (?, ?, ?)",
                    (str(session), seq, _TEXT + "x" * 120),
                )

        each = 10
        for number in range(count):
            seqs = range(number * each, (number + 1) * each)
            began = time.perf_counter()
            await asyncio.gather(*(work(session, seqs) for session in range(_SESSIONS)))
            samples.append(_SESSIONS * each / (time.perf_counter() - began))
    return samples


def _syncs(path: Path, count: int) -> list[float]:
    """Pages of 4 KiB that one thread writes and syncs in a second."""
    samples: list[float] = []
    page = os.urandom(4096)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.pwrite(descriptor, bytes(4096 * 256), 0)
        os.fsync(descriptor)
        for _ in range(count):
            began = time.perf_counter()
            for number in range(200):
                os.pwrite(descriptor, page, 4096 * number)
                os.fdatasync(descriptor)
            samples.append(200 / (time.perf_counter() - began))
    finally:
        os.close(descriptor)
    return samples


def measure(thorough: float) -> list[Figure]:
    count = rounds(7, thorough)
    with TemporaryDirectory(prefix="callboard-bench-") as name:
        folder = Path(name)
        syncs = _syncs(folder / "pages", count)
        one_by_one = asyncio.run(_aiosqlite(folder / "bare.db", count))
        alone = loop.run(_appended(folder / "log.db", count, ()))
        whole = loop.run(_appended(folder / "whole.db", count, PROJECTIONS))
    return [
        Figure(name="fdatasync of one page", unit="/s", ours=syncs, note=""),
        Figure(
            name="50 sessions, durable events",
            unit="/s",
            ours=whole,
            floor=one_by_one,
            target=10_000,
            note="with the read models that a host keeps",
        ),
        Figure(
            name="the same, without read models",
            unit="/s",
            ours=alone,
            floor=one_by_one,
        ),
    ]


TOPIC = Topic(name="append", about="durable appends", measure=measure)
