"""Opening a store of 1,000 sessions whose server died while 50 of them ran."""

import asyncio
import shutil
import sqlite3
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from appending import PROJECTIONS, a_message, new_session
from figure import Figure, Topic, rounds

from callboard.host import Environment, open_host
from callboard.log.clock import utc_now
from callboard.log.ids import IdSource
from callboard.log.log import Log
from callboard.log.store import open_store
from callboard.log.transaction import Transaction
from callboard.turns.reservation import take
from callboard_rpc.common import Actor, CallId, HostId, MessageId, TextContent, TurnId
from callboard_rpc.events import Ack, Author, Message, ToolCall, Trigger, TurnStarted

_SESSIONS = 1_000
_RUNNING = 50
_SAID = 10
_DEAD = "host_dead"
_ACTOR = Actor(kind="client", id="bench", name="person")


def _run(tx: Transaction, session_id: str) -> None:
    """A turn in the middle of a command, as its server left it."""
    said = tx.append(
        session_id,
        Message(
            message_id=MessageId(tx.new_id("msg")),
            author=Author(kind="person", name="person", id="bench"),
            content=(TextContent(text="Run the tests."),),
            delivery="queue",
            host_id=HostId(_DEAD),
        ),
        actor=_ACTOR,
    )
    turn_id = tx.new_id("trn")
    fence = take(tx, session_id, _DEAD, kind="run", turn_id=turn_id)
    assert fence is not None
    for data in (
        TurnStarted(
            turn_id=TurnId(turn_id),
            index=0,
            trigger=Trigger(kind="prompt", seqs=(said.seq,)),
            model="scripted/demo",
            mode="work",
            profile="default",
            host_id=HostId(_DEAD),
        ),
        Ack(admits=(said.seq,)),
        ToolCall(
            call_id=CallId(tx.new_id("call")),
            message_id=MessageId(tx.new_id("msg")),
            name="run_command",
            index=0,
            arguments={"command": "make test"},
            title="Run make test",
            kind="execute",
            effect="execute",
        ),
    ):
        tx.append(session_id, data, actor=_ACTOR, turn_id=turn_id, fence=fence)
    tx.execute(
        "INSERT INTO drafts VALUES (?, ?, ?, ?, '', '{}', ?)",
        turn_id, session_id, tx.new_id("msg"), "The tests ", tx.now(),
    )  # fmt: skip


async def _build(path: Path) -> None:
    ids = IdSource()
    store = open_store(path, ids=ids, now=utc_now)
    async with Log(store, ids=ids, now=utc_now, projections=PROJECTIONS) as log:

        def one(tx: Transaction, number: int) -> None:
            session_id = new_session(tx)
            for _ in range(_SAID):
                tx.append(session_id, a_message(ids), actor=_ACTOR)
            if number < _RUNNING:
                _run(tx, session_id)

        await asyncio.gather(
            *(log.transact(lambda tx, n=number: one(tx, n)) for number in range(_SESSIONS))
        )
        await log.index_all()


async def _opened(path: Path) -> float:
    """Seconds until the store can be used and every run of the dead server has its end."""
    environment = Environment(
        environ={"HOME": str(path.parent), "PATH": "/usr/bin:/bin", "CALLBOARD_MODEL": "scripted/demo"},
        user_dir=path.parent / "config",
        store=path,
    )  # fmt: skip
    began = time.perf_counter()
    async with open_host(environment) as host:
        took = time.perf_counter() - began
        ((ended,),) = await host.log.query(
            "SELECT count(*) FROM events WHERE type = 'turn_finished'"
        )
        assert ended == _RUNNING, f"{ended} turns were ended"
    return took


def _bare(path: Path) -> float:
    """As many transactions of as many rows with nothing but sqlite3, which recovery cannot do without."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE bare (a INTEGER PRIMARY KEY, b TEXT)")
    began = time.perf_counter()
    for _ in range(_RUNNING):
        connection.execute("BEGIN IMMEDIATE")
        for _ in range(4):
            connection.execute("INSERT INTO bare (b) VALUES (?)", ("x" * 300,))
        connection.execute("COMMIT")
    took = time.perf_counter() - began
    connection.close()
    return took


def measure(thorough: float) -> list[Figure]:
    samples: list[float] = []
    bare: list[float] = []
    with TemporaryDirectory(prefix="callboard-bench-") as name:
        built = Path(name) / "built" / "store.db"
        asyncio.run(_build(built))
        for number in range(rounds(5, thorough) + 1):
            folder = Path(name) / f"{number}"
            shutil.copytree(built.parent, folder)
            samples.append(asyncio.run(_opened(folder / "store.db")))
            bare.append(_bare(folder / "store.db"))
            shutil.rmtree(folder)
    return [
        Figure(
            name="recovery: 50 runs of 1,000 sessions ended", unit="s",
            ours=samples[1:], floor=bare[1:], target=2,
        )
    ]  # fmt: skip


TOPIC = Topic(name="recovery", about="a store whose server died", measure=measure)
