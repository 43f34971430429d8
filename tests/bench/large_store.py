"""A store of a million events: opening it, its last page, one session of it.

It is built once, with the real schema, and kept in the system's folder for temporary files.
"""

import asyncio
import gc
import hashlib
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
from appending import PROJECTIONS
from figure import Figure, Topic, rounds

from callboard.host import Environment, open_host
from callboard.log.clock import utc_now
from callboard.log.ids import IdSource
from callboard.log.log import Log
from callboard.log.scope import Filter
from callboard.log.store import migrations, open_store
from callboard.sessions.transcript import Transcript

_SESSIONS = 500
_EACH = 2_000
_PAGE = 200
_AT = "2026-01-01T00:00:00.000Z"
_AGENT = '{"kind":"agent","id":"a","name":"default"}'
_PERSON = '{"kind":"client","id":"c","name":"person"}'
_WORDS = "The tests pass now; the fault was in how the path was joined. " * 3


def _place() -> Path:
    """Where the store lies; another schema or another recipe has another one."""
    recipe = "".join(migrations()).encode() + Path(__file__).read_bytes()
    stamp = hashlib.sha256(recipe).hexdigest()[:12]
    user = os.getuid() if hasattr(os, "getuid") else 0
    return Path(tempfile.gettempdir()) / f"callboard-bench-{user}-{stamp}" / "million.db"


def _turn(session: str, turn: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Type, actor and data of ten events: a prompt, an answer with two calls, a last word."""
    author = {"kind": "agent", "name": "default", "id": session}
    person = {"kind": "person", "name": "person", "id": "c"}
    text = [{"type": "text", "text": _WORDS}]
    yield "message", _PERSON, {
        "messageId": f"{turn}p", "author": person, "content": text, "delivery": "queue",
    }  # fmt: skip
    yield "turn_started", _AGENT, {
        "turnId": turn, "index": 0, "trigger": {"kind": "prompt", "seqs": [1]}, "model": "openai/bench",
    }  # fmt: skip
    yield "ack", _AGENT, {"admits": []}
    calls = [f"{turn}c{n}" for n in range(2)]
    said = [*text, *({"type": "tool_use", "callId": call} for call in calls)]
    yield "message", _AGENT, {
        "messageId": f"{turn}a", "author": author, "content": said, "final": False,
    }  # fmt: skip
    for number, call in enumerate(calls):
        yield "tool_call", _AGENT, {
            "callId": call, "messageId": f"{turn}a", "name": "read_file", "index": number,
            "arguments": {"path": f"src/module{number}.py"}, "title": f"Read src/module{number}.py",
            "kind": "read",
        }  # fmt: skip
    for call in calls:
        yield "tool_result", _AGENT, {
            "callId": call, "name": "read_file", "status": "ok", "text": _WORDS, "durationMs": 3,
        }  # fmt: skip
    yield "message", _AGENT, {
        "messageId": f"{turn}f", "author": author, "content": text, "final": True,
    }  # fmt: skip
    yield "turn_finished", _AGENT, {
        "turnId": turn, "outcome": "completed", "answeredThrough": 1, "usage": {"requests": 2},
    }  # fmt: skip


def _rows(session: str) -> Iterator[tuple[Any, ...]]:
    yield (
        session, 1, f"evt_{session}_1", "session_created", _AT, _PERSON, None, 0,
        orjson.dumps({"sessionId": session, "rootId": session, "cwd": "/work",
                      "profile": "default", "mode": "ask"}).decode(),
    )  # fmt: skip
    seq = 2
    while True:
        turn = f"trn_{session}_{seq}"
        for kind, actor, data in _turn(session, turn):
            if kind == "ack":
                data = {"admits": [seq - 2]}
            yield (
                session, seq, f"evt_{session}_{seq}", kind, _AT, actor, turn, 1,
                orjson.dumps(data).decode(),
            )  # fmt: skip
            seq += 1
            if seq > _EACH:
                return


def build(path: Path) -> float:
    """Makes the store; the seconds that it took. Session after session, a transaction each, so that
    the log is as large as a real one, and its rows as they are in one. The search index counts as
    complete and is empty: nothing here searches."""
    for other in path.parent.parent.glob(f"{path.parent.name.rpartition('-')[0]}-*"):
        shutil.rmtree(other, ignore_errors=True)  # half a gigabyte each, of another recipe
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = path.with_suffix(".part")
    began = time.perf_counter()
    open_store(made, ids=IdSource(), now=utc_now).close()
    connection = sqlite3.connect(made, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    for number in range(_SESSIONS):
        session = f"ses_{number:06}"
        connection.execute("BEGIN")
        connection.executemany(
            "INSERT INTO events (session_id, seq, event_id, type, at, actor, turn_id, fence, data) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            _rows(session),
        )
        connection.execute(
            "INSERT INTO heads (session_id, seq, birth, root_id) VALUES (?, ?, ?, ?)",
            (session, _EACH, f"birth_{session}", session),
        )
        pos = (number + 1) * _EACH
        connection.execute(
            "INSERT INTO sessions (session_id, root_id, depth, cwd, directories, profile, mode, "
            "created_at, updated_at, updated_pos, answered_through, turns) "
            "VALUES (?, ?, 0, '/work', '[]', 'default', 'ask', ?, ?, ?, ?, 200)",
            (session, session, _AT, _AT, pos, _EACH),
        )
        connection.executemany(
            "INSERT INTO triggers (session_id, seq, kind, delivery, state) "
            "VALUES (?, ?, 'prompt', 'queue', 'admitted')",
            ((session, seq) for seq in range(2, _EACH, 10)),
        )
        connection.executemany(
            "INSERT INTO turns (turn_id, session_id, idx, state, trigger, started_at, ended_at) "
            'VALUES (?, ?, ?, \'completed\', \'{"kind":"prompt","seqs":[1]}\', ?, ?)',
            (
                (f"trn_{session}_{seq}", session, index, _AT, _AT)
                for index, seq in enumerate(range(2, _EACH, 10))
            ),
        )
        connection.execute("COMMIT")
    connection.execute("UPDATE search_progress SET through = (SELECT max(pos) FROM events)")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    made.rename(path)
    return time.perf_counter() - began


async def _opened(path: Path, count: int) -> list[float]:
    """The whole of a host on the store: checks, connections, recovery, what waits is woken."""
    samples: list[float] = []
    environment = Environment(
        environ={
            "HOME": str(path.parent),
            "PATH": "/usr/bin:/bin",
            "CALLBOARD_MODEL": "scripted/demo",
        },
        user_dir=path.parent / "config",
        store=path,
    )
    for _ in range(count + 1):
        began = time.perf_counter()
        async with open_host(environment):
            samples.append(time.perf_counter() - began)
    return samples[1:]  # the first one imports


async def _last_pages(log: Log, count: int) -> list[float]:
    """The newest events of the whole store, as a client gets them."""
    samples: list[float] = []
    for _ in range(count):
        began = time.perf_counter()
        records = await log.page(Filter(), limit=_PAGE, backwards=True)
        orjson.dumps([record.wire() for record in records])
        samples.append(time.perf_counter() - began)
        assert len(records) == _PAGE
    return samples


async def _sessions(log: Log, count: int, use: Callable[[list[Any]], object]) -> list[float]:
    """All events of a session that was not looked at before, through `use`."""
    samples: list[float] = []
    for number in range(count):
        began = time.perf_counter()
        records = await log.session(f"ses_{number * 7 + 3:06}")
        use(records)
        samples.append(time.perf_counter() - began)
        assert len(records) == _EACH
    return samples


def _transcript(records: list[Any]) -> None:
    transcript = Transcript()
    for record in records:
        transcript.apply(record)
    assert transcript.messages("replay")


def _wire(records: list[Any]) -> None:
    orjson.dumps([record.wire() for record in records])


async def _read(path: Path, count: int) -> tuple[list[float], list[float], list[float]]:
    ids = IdSource()
    store = open_store(path, ids=ids, now=utc_now)
    async with Log(store, ids=ids, now=utc_now, projections=PROJECTIONS) as log:
        await _sessions(log, 2, _transcript)
        gc.freeze()  # as a server does, once it is warm
        return (
            await _last_pages(log, count),
            await _sessions(log, count, _wire),
            await _sessions(log, count, _transcript),
        )


def _bare(path: Path, count: int) -> tuple[list[float], list[float], list[float]]:
    """The same with nothing but sqlite3: open and ask for the head, the last rows, a session's rows."""
    opened: list[float] = []
    pages: list[float] = []
    sessions: list[float] = []
    for number in range(count):
        began = time.perf_counter()
        connection = sqlite3.connect(path)
        connection.execute("SELECT max(pos) FROM events").fetchone()
        opened.append(time.perf_counter() - began)
        began = time.perf_counter()
        connection.execute("SELECT * FROM events ORDER BY pos DESC LIMIT ?", (_PAGE,)).fetchall()
        pages.append(time.perf_counter() - began)
        began = time.perf_counter()
        session = f"ses_{number * 7 + 5:06}"
        connection.execute(
            "SELECT * FROM events WHERE session_id = ? ORDER BY seq", (session,)
        ).fetchall()
        sessions.append(time.perf_counter() - began)
        connection.close()
    return opened, pages, sessions


def measure(thorough: float) -> list[Figure]:
    path = _place()
    figures: list[Figure] = []
    if not path.exists():
        took = build(path)
        figures.append(Figure(name="building a store of 1,000,000 events", unit="s", ours=[took]))
    count = rounds(15, thorough)
    opened = asyncio.run(_opened(path, count))
    pages, shown, transcripts = asyncio.run(_read(path, count))
    bare_opened, bare_pages, bare_sessions = _bare(path, count)

    def figure(name: str, ours: list[float], floor: list[float], target: float) -> Figure:
        return Figure(
            name=name,
            unit="ms",
            ours=[1000 * s for s in ours],
            floor=[1000 * s for s in floor],
            target=target,
        )

    return [
        *figures,
        figure("opening a store of 1,000,000 events", opened, bare_opened, 50),
        figure("its last page, 200 events for the wire", pages, bare_pages, 5),
        figure("a session of 2,000 events, for the wire", shown, bare_sessions, 25),
        figure("the same, as a model's context", transcripts, bare_sessions, 25),
    ]


TOPIC = Topic(name="store", about="a store of a million events", measure=measure)
