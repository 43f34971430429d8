"""Appending: gap-free numbers, all or nothing, and nobody's failure is anybody else's."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from log_workbench import (
    AGENT,
    CLIENT,
    PROJECTIONS,
    begin,
    called,
    log_at,
    returned,
    said,
    session_in,
    tables,
    texts,
    told,
)

import callboard
from callboard.log.ids import IdSource
from callboard.log.record import Record
from callboard.log.redact import Redactor
from callboard.log.scope import Filter
from callboard.log.transaction import Projection, Transaction
from callboard_rpc.common import Actor
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import ModeChanged, Summary, UnknownData

pytestmark = pytest.mark.anyio


async def test_coordination_1_events_begin_with_seq_1_and_each_follows_the_one_before(
    store_path: Path,
) -> None:
    async with log_at(store_path) as log:
        await session_in(log)
        for n in range(5):
            record = await log.append("ses_a", said(str(n)), actor=CLIENT)
            assert record.seq == n + 2
        records = await log.session("ses_a")
    assert [r.seq for r in records] == [1, 2, 3, 4, 5, 6]
    assert records[0].type == "session_created"
    assert len({r.event_id for r in records}) == 6
    assert [r.pos for r in records] == sorted(r.pos for r in records)


async def test_coordination_2_seqs_are_gap_free_under_concurrent_appends(store_path: Path) -> None:
    async with log_at(store_path) as log:
        for each in ("ses_a", "ses_b", "ses_c"):
            await session_in(log, each)

        async def appends(session_id: str, task: int) -> None:
            for n in range(20):
                await log.append(session_id, said(f"{task}.{n}"), actor=CLIENT)

        await asyncio.gather(
            *(appends(each, task) for each in ("ses_a", "ses_b", "ses_c") for task in range(8))
        )
        for each in ("ses_a", "ses_b", "ses_c"):
            records = await log.session(each)
            assert [r.seq for r in records] == list(range(1, 162))
            spoken = await texts(log, each)
            for task in range(8):
                mine = [t for t in spoken if t.startswith(f"{task}.")]
                assert mine == [f"{task}.{n}" for n in range(20)]  # each task's own order holds


_APPENDER = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from log_workbench import CLIENT, log_at, said

async def main():
    async with log_at(Path(sys.argv[2])) as log:
        print("ready", flush=True)
        sys.stdin.readline()
        for start in range(0, 1000, 10):
            await asyncio.gather(*(
                log.append("ses_a", said(f"{sys.argv[3]}.{n}"), actor=CLIENT)
                for n in range(start, start + 10)
            ))
        print("done", flush=True)
        sys.stdin.readline()

asyncio.run(main())
"""


async def test_coordination_2_interrupts_68_eight_writers_of_a_thousand_events_lose_none_and_meet_no_lock(
    store_path: Path,
) -> None:
    writers = "abcdefgh"
    async with log_at(store_path) as log:
        await session_in(log)
        children = [
            subprocess.Popen(
                [sys.executable, "-c", _APPENDER, str(Path(__file__).parent), store_path, name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for name in writers
        ]
        try:
            for child in children:
                assert child.stdout is not None
                assert child.stdout.readline() == "ready\n"
            for child in children:
                assert child.stdin is not None
                child.stdin.write("go\n")
                child.stdin.flush()
            ends = [await asyncio.to_thread(c.stdout.readline) for c in children if c.stdout]
            # first what one of them has met, if it met anything
            said_last = [child.communicate("bye\n", timeout=60) for child in children]
            assert said_last == [("", "")] * len(writers)
            assert ends == ["done\n"] * len(writers)
            assert {child.returncode for child in children} == {0}
        finally:
            for child in children:
                child.kill()
                child.wait()
        records = await log.session("ses_a")
        assert [r.seq for r in records] == list(range(1, 8_002))
        spoken = await texts(log, "ses_a")
        for name in writers:
            # none lost, none twice, and each writer's own in the order in which it wrote them
            assert [t for t in spoken if t[0] == name] == [f"{name}.{n}" for n in range(1000)]
        rebuilt = await tables(log)
        await log.rebuild()
        assert await tables(log) == rebuilt


async def test_coordination_3_a_failed_append_leaves_no_event_no_search_row_no_projection(
    store_path: Path,
) -> None:
    def broken(_: Transaction, record: Record) -> None:
        if "poison" in record.data:
            raise ValueError("the projection broke")

    bad = Projection(
        name="bad", tables=(), apply={"message": broken}, forget=lambda _tx, _session: None
    )
    async with log_at(store_path, projections=(*PROJECTIONS, bad)) as log:
        await session_in(log)
        await log.append("ses_a", said("first"), actor=CLIENT)
        before = await tables(log)
        with pytest.raises(ValueError, match="the projection broke"):
            await log.append("ses_a", said("poison"), actor=CLIENT)
        assert await tables(log) == before
        assert await texts(log, "ses_a") == ["first"]
        await log.index_all()
        assert await log.search("poison", limit=10) == []
        record = await log.append("ses_a", said("second"), actor=CLIENT)
        assert record.seq == 3  # the number was not used up


async def test_a_failing_decision_fails_alone_in_its_group_commit(store_path: Path) -> None:
    async with log_at(store_path) as log:
        await session_in(log)
        commits: list[int] = []
        log.listen(lambda records: commits.append(len(records)))

        def fails(tx: Transaction) -> None:
            tx.append("ses_a", said("never"), actor=CLIENT)
            tx.execute("INSERT INTO meta VALUES ('never', '1')")
            raise KeyError("mine")

        held = asyncio.Event()
        loop = asyncio.get_running_loop()

        def holds(tx: Transaction) -> None:
            # keeps the writer busy until the others have queued, so that they share one commit
            del tx
            asyncio.run_coroutine_threadsafe(held.wait(), loop).result(30)

        first = log.submit(holds)
        jobs = [
            log.submit(lambda tx, n=n: tx.append("ses_a", said(str(n)), actor=CLIENT))
            for n in range(3)
        ]
        failing = log.submit(fails)
        lost = log.submit(lambda tx: tx.append("ses_none", said("x"), actor=CLIENT))
        jobs += [
            log.submit(lambda tx, n=n: tx.append("ses_a", said(str(n)), actor=CLIENT))
            for n in range(3, 6)
        ]
        held.set()
        await first
        records = await asyncio.gather(*jobs)
        with pytest.raises(KeyError, match="mine"):
            await failing
        with pytest.raises(CallboardError) as error:
            await lost
        assert error.value.kind == "sessionNotFound"
        assert [r.seq for r in records] == [2, 3, 4, 5, 6, 7]
        assert await texts(log, "ses_a") == ["0", "1", "2", "3", "4", "5"]
        assert await log.query("SELECT * FROM meta WHERE key = 'never'") == []
        assert commits == [6]  # one commit for all of them


async def test_cancelling_the_caller_does_not_stop_the_transaction(store_path: Path) -> None:
    async with log_at(store_path) as log:
        await session_in(log)
        held = asyncio.Event()
        loop = asyncio.get_running_loop()

        def slowly(tx: Transaction) -> None:
            asyncio.run_coroutine_threadsafe(held.wait(), loop).result(30)
            tx.append("ses_a", said("kept"), actor=CLIENT)

        heard = asyncio.Event()
        log.listen(lambda _: heard.set())
        caller = asyncio.ensure_future(log.transact(slowly))
        await asyncio.sleep(0)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        held.set()
        await heard.wait()
        assert await texts(log, "ses_a") == ["kept"]


async def test_commit_comes_before_publish_and_the_order_is_the_log_s(store_path: Path) -> None:
    async with log_at(store_path) as log:
        await session_in(log)
        heard: list[int] = []
        log.listen(lambda records: heard.extend(r.pos for r in records))
        await asyncio.gather(*(log.append("ses_a", said(str(n)), actor=CLIENT) for n in range(200)))
        page = await log.page(Filter(session_id="ses_a"), after=1, limit=1000)
        assert heard == [r.pos for r in page]


async def test_a_fence_turn_and_actor_are_kept_with_the_event(store_path: Path) -> None:
    async with log_at(store_path) as log:
        await session_in(log)
        await log.append("ses_a", said("x", by="agent"), actor=AGENT, turn_id="trn_1", fence=7)
        record = (await log.session("ses_a"))[-1]
        event = record.event()
    assert (record.turn_id, record.fence, event.actor, event.turn_id) == (
        "trn_1",
        7,
        AGENT,
        "trn_1",
    )
    wire = orjson.loads(orjson.dumps(record.wire()))
    assert wire["actor"] == {"kind": "agent", "id": "agent"}
    assert wire["data"]["content"] == [{"type": "text", "text": "x"}]
    assert "fence" not in wire  # an internal of the server


async def test_coordination_2_6_unknown_event_types_are_kept_as_they_came(store_path: Path) -> None:
    async with log_at(store_path) as log:
        await session_in(log)
        odd = UnknownData(type="from_the_future", data={"a": [1, {"b": None}], "ü": "🙂"})
        await log.append("ses_a", odd, actor=CLIENT)
        await log.append("ses_a", said("after"), actor=CLIENT)
    async with log_at(store_path) as log:
        await log.rebuild()
        record = (await log.session("ses_a"))[1]
        assert record.type == "from_the_future"
        assert record.value == odd
        assert json.loads(record.data) == odd.data


@pytest.mark.parametrize(
    "text",
    ["\ud83d alone", "a\udcffb", "\U0001f642 whole", "e\u0301", "\u202e reversed"],
    ids=["high", "low", "emoji", "accent", "bidi"],
)
async def test_interrupts_72_half_characters_are_replaced_before_storing(
    store_path: Path, text: str
) -> None:
    async with log_at(store_path) as log:
        await session_in(log)
        await log.append(
            "ses_a",
            called("c1", **{f"k{text}": [text, {"deep": text}]}),
            actor=Actor(kind="client", id="x", name=text),
            turn_id="trn_1",
        )
        await log.append("ses_a", returned("c1", text * 70_000), actor=CLIENT, turn_id="trn_1")
        await log.append("ses_a", told(text), actor=CLIENT)
        for record in await log.session("ses_a"):
            record.data.encode()
            json.loads(record.data)
            record.actor.encode()
            whole = await log.whole(record)
            json.dumps(whole, ensure_ascii=False).encode()
        call = (await log.session("ses_a"))[1].value
        clean = next(iter(call.arguments.values()))[0]
        assert [c for c in clean if c != "\ufffd"] == [
            c for c in text if not "\ud800" <= c <= "\udfff"
        ]


async def test_secrets_reach_neither_events_nor_blobs_nor_drafts(store_path: Path) -> None:
    key = "sk-" + "Ab1" * 16
    own = 'hush"hush\\hush-and-more'
    redact = Redactor([own]).json_text
    async with log_at(store_path, redact=redact) as log:
        await session_in(log)
        filler = "x" * 70_000
        # across the cut between head and the rest, in the middle, and at the end
        for text in (
            f"a {key} b",
            f"{filler} {key} {own} {filler}",
            filler[: 8_000 - 20] + f" {key} " + filler,
            filler + f" {own}",
        ):
            await log.append("ses_a", said(text), actor=Actor(kind="client", id="x", name=key))
        await log.put_blob("ses_a", f"plain {key} and {own}".encode(), "text/plain")
        for piece in ("see ", key[:10], key[10:25], key[25:], " and ", own[:9], own[9:]):
            await log.append_draft(
                session_id="ses_a",
                turn_id="trn",
                message_id="msg",
                answer=piece,
                thought=piece,
                next_index="{}",
            )
        draft = await log.draft("trn")
        assert draft is not None
        assert draft[1] == draft[2] == "see [redacted:openai_key] and [redacted:secret]"
    raw = store_path.read_bytes()
    assert key.encode() not in raw.replace(b"\n", b"")
    assert own.encode() not in raw
    assert b"hush-and-more" not in raw
    assert ("Ab1" * 4).encode() not in raw


@pytest.mark.parametrize(
    "text",
    ["plain", "\ud83d alone", "sk-" + "Ab1" * 16, "long " * 40_000, "\u202e\U0001f642 caf\u00e9"],
    ids=["plain", "half a character", "secret", "spilled", "astral"],
)
async def test_whoever_hears_of_an_event_reads_what_a_later_reader_reads(
    store_path: Path, text: str
) -> None:
    async with log_at(store_path, redact=Redactor().json_text) as log:
        await session_in(log)
        heard: list[Record] = []
        log.listen(heard.extend)
        given = called("c1", given=[text, {"deep": text}])
        for event in (given, returned("c1", text), said(text)):
            await log.append("ses_a", event, actor=CLIENT, turn_id="trn_1")
        stored = (await log.session("ses_a"))[1:]
        assert [r.value for r in heard] == [r.value for r in stored]
        assert [r.data for r in heard] == [r.data for r in stored]


async def test_one_decision_reads_its_own_writes_and_appends_several_events(
    store_path: Path,
) -> None:
    async with log_at(store_path) as log:

        def decision(tx: Transaction) -> tuple[int, str]:
            begin(tx, "ses_a")
            tx.append("ses_a", ModeChanged(mode="plan"), actor=CLIENT)
            tx.append(
                "ses_a",
                Summary(text="s", covers_through=2, author=said("").author, reason="command"),
                actor=CLIENT,
            )
            return len(tx.appended), tx.value("SELECT mode FROM sessions")

        assert await log.transact(decision) == (3, "plan")


async def test_a_closed_log_says_so(store_path: Path) -> None:
    async with log_at(store_path) as log:
        await session_in(log)
        kept = log
    with pytest.raises(CallboardError) as error:
        await kept.append("ses_a", said("late"), actor=CLIENT)
    assert error.value.kind == "shuttingDown"


async def test_what_was_submitted_is_committed_before_the_log_closes(store_path: Path) -> None:
    async with log_at(store_path) as log:
        await session_in(log)
        jobs = [
            log.submit(lambda tx, n=n: tx.append("ses_a", said(str(n)), actor=CLIENT))
            for n in range(100)
        ]
    assert all(job.done() for job in jobs)
    async with log_at(store_path) as again:
        assert await texts(again, "ses_a") == [str(n) for n in range(100)]


async def test_ids_rise_also_when_the_clock_steps_back() -> None:
    times = iter([1_000, 1_000, 2_000, 500, 500, 3_000])
    source = IdSource(clock_ms=lambda: next(times), entropy=lambda n: b"\xff" * n)
    made = [source.new("ses") for _ in range(6)]
    assert made == sorted(made)
    assert len(set(made)) == 6
    assert {len(each) for each in made} == {30}


def test_the_log_is_the_only_one_to_open_sqlite() -> None:
    root = Path(callboard.__file__).parent
    users = {
        path.relative_to(root).parts[0]
        for path in root.rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        if line.strip().startswith(
            ("import sqlite3", "from sqlite3", "import aiosqlite", "import pysqlite3")
        )
    }
    assert users == {"log"}
