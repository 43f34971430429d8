"""``kill -9`` in the middle of a stream of appends: what was acknowledged is there, without a hole."""

import subprocess
import sys
from pathlib import Path

import pytest

from callboard.log.clock import utc_now
from callboard.log.ids import IdSource
from callboard.log.log import Log
from callboard.log.store import open_store
from callboard.sessions import projection as sessions
from callboard.turns import projection as turns
from callboard_rpc.common import Actor, MessageId, TextContent
from callboard_rpc.events import Author, Message

pytestmark = pytest.mark.anyio

_APPENDER = """
import asyncio, sys
from pathlib import Path
from callboard.log.clock import utc_now
from callboard.log.ids import IdSource
from callboard.log.log import Log
from callboard.log.store import open_store
from callboard.sessions import projection as sessions
from callboard.turns import projection as turns
from callboard_rpc.common import Actor, MessageId, SessionId, TextContent
from callboard_rpc.events import Author, Message, SessionCreated

ME = Actor(kind="client", id="c")

def message(text):
    return Message(message_id=MessageId("m"), author=Author(kind="agent", name="a"),
                   content=(TextContent(text=text),))

async def main():
    ids = IdSource()
    store = open_store(Path(sys.argv[1]), ids=ids, now=utc_now)
    large = sys.argv[2] == "large"
    async with Log(store, ids=ids, now=utc_now,
                   projections=(turns.PROJECTION, sessions.PROJECTION)) as log:
        def begin(tx):
            for s in ("ses_a", "ses_b"):
                tx.begin_session(s, s)
                tx.append(s, SessionCreated(session_id=SessionId(s), root_id=SessionId(s),
                          cwd="/w", profile="p", mode="work"), actor=ME)
        await log.transact(begin)

        async def stream(session, writer):
            n = 0
            while True:
                text = f"{writer}.{n}"
                if large and n % 7 == 0:
                    text += " " + text * 20_000
                record = await log.append(session, message(text), actor=ME)
                sys.stdout.write(f"{session} {record.seq} {writer}.{n}\\n")
                sys.stdout.flush()
                n += 1

        await asyncio.gather(*(stream(s, w) for w in range(6) for s in ("ses_a", "ses_b")))

asyncio.run(main())
"""


@pytest.mark.parametrize("after", [0, 1, 40, 400])
@pytest.mark.parametrize("size", ["small", "large"])
async def test_a_killed_process_loses_nothing_that_was_acknowledged(
    store_path: Path, after: int, size: str
) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", _APPENDER, store_path, size], stdout=subprocess.PIPE, text=True
    )
    acknowledged: list[str] = []
    try:
        assert child.stdout is not None
        for line in child.stdout:
            acknowledged.append(line)
            if len(acknowledged) > after:
                child.kill()
                break
        acknowledged += [line for line in child.stdout if line.endswith("\n")]
    finally:
        child.kill()
        child.wait()
    assert child.returncode == -9

    ids = IdSource()
    store = open_store(store_path, ids=ids, now=utc_now)
    projections = (turns.PROJECTION, sessions.PROJECTION)
    async with Log(store, ids=ids, now=utc_now, projections=projections) as log:
        assert (await log.query("PRAGMA integrity_check")) == [("ok",)]
        kept: dict[tuple[str, int], str] = {}
        for session_id in ("ses_a", "ses_b"):
            records = await log.session(session_id)
            assert [r.seq for r in records] == list(range(1, len(records) + 1))
            for record in records[1:]:
                whole = await log.whole(record)  # large values, too
                kept[session_id, record.seq] = whole["content"][0]["text"].split(" ")[0]
        for line in acknowledged:
            session_id, seq, text = line.split()
            assert kept[session_id, int(seq)] == text

        rows = await log.query("SELECT * FROM sessions ORDER BY session_id")
        await log.rebuild()
        assert await log.query("SELECT * FROM sessions ORDER BY session_id") == rows

        after_all = await log.append(
            "ses_a",
            Message(
                message_id=MessageId("m"),
                author=Author(kind="agent", name="a"),
                content=(TextContent(text="goes on"),),
            ),
            actor=Actor(kind="client", id="c"),
        )
        assert after_all.seq == 1 + max(seq for each, seq in kept if each == "ses_a")
