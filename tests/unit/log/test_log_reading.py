"""Reading the log: pages, filters, cursors, following, drafts."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from log_workbench import AGENT, CLIENT, log_at, returned, said, session_in, told

from callboard.log import paging
from callboard.log.log import Log
from callboard.log.looking import Rows
from callboard.log.record import Record
from callboard.log.scope import Filter
from callboard.log.transaction import Transaction
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import ModeChanged

pytestmark = pytest.mark.anyio

EVERYTHING = Filter()


async def _two_trees(log: Log) -> list[Record]:
    """Two roots, one with a child; their events interleaved."""
    await session_in(log, "ses_a")
    await session_in(log, "ses_b")
    await session_in(log, "ses_c", root_id="ses_a")
    for n in range(12):
        for each in ("ses_a", "ses_b", "ses_c"):
            data: Any = said(f"{each}.{n}") if n % 3 else ModeChanged(mode="ask")
            await log.append(each, data, actor=CLIENT)
    return await log.page(EVERYTHING, limit=10_000)


async def test_coordination_4_events_after_0_are_all_and_after_and_before_exclude(
    store_path: Path,
) -> None:
    async with log_at(store_path) as log:
        everything = await _two_trees(log)
        assert len(everything) == 39
        own = [r for r in everything if r.session_id == "ses_a"]
        for filter, records in ((EVERYTHING, everything), (Filter(session_id="ses_a"), own)):
            whole = [r.pos for r in await log.page(filter, after=0, limit=1000)]
            assert whole == [r.pos for r in records]
            for cut in (whole[0], whole[7], whole[-1]):
                after = [r.pos for r in await log.page(filter, after=cut, limit=1000)]
                before = [r.pos for r in await log.page(filter, before=cut, limit=1000)]
                assert after == [pos for pos in whole if pos > cut]
                assert before == [pos for pos in whole if pos < cut]
                between = await log.page(filter, after=whole[2], before=cut, limit=1000)
                assert [r.pos for r in between] == [p for p in whole if whole[2] < p < cut]
        assert [r.seq for r in await log.session("ses_a", after_seq=9)] == [10, 11, 12, 13]


@pytest.mark.parametrize("backwards", [False, True])
async def test_pages_in_both_directions_join_to_the_whole(
    store_path: Path, backwards: bool
) -> None:
    async with log_at(store_path) as log:
        everything = await _two_trees(log)
        for filter in (
            EVERYTHING,
            Filter(session_id="ses_b"),
            Filter(root_id="ses_a"),
            Filter(root_id="ses_a", types=frozenset({"mode_changed"})),
        ):
            wanted = [r.pos for r in everything if _admitted(filter, r)]
            got: list[int] = []
            while True:
                page = (
                    await log.page(filter, before=got[0] if got else None, limit=4, backwards=True)
                    if backwards
                    else await log.page(filter, after=got[-1] if got else 0, limit=4)
                )
                if not page:
                    break
                pos = [r.pos for r in page]
                assert pos == sorted(pos)
                got = pos + got if backwards else got + pos
            assert got == wanted


def _admitted(filter: Filter, record: Record) -> bool:
    """What `Filter.admits` says when it knows the record's root."""
    roots = {"ses_a": "ses_a", "ses_b": "ses_b", "ses_c": "ses_a"}
    record.root_id = roots[record.session_id]
    return filter.admits(record)


async def test_coordination_5_the_newest_of_some_types_is_the_one_with_the_highest_seq(
    store_path: Path,
) -> None:
    async with log_at(store_path) as log:
        everything = await _two_trees(log)
        filter = Filter(session_id="ses_a", types=frozenset({"mode_changed", "directive"}))
        (newest,) = await log.page(filter, limit=1, backwards=True)
        assert newest.seq == max(
            r.seq for r in everything if r.session_id == "ses_a" and r.type == "mode_changed"
        )


async def test_coordination_6_no_types_give_nothing(store_path: Path) -> None:
    async with log_at(store_path) as log:
        await _two_trees(log)
        for filter in (Filter(types=frozenset()), Filter(session_id="ses_a", types=frozenset())):
            assert await log.page(filter) == []


async def test_a_tree_is_a_root_and_all_below_it_near_the_head_and_far_from_it(
    store_path: Path,
) -> None:
    async with log_at(store_path) as log:
        everything = await _two_trees(log)
        await asyncio.gather(*(log.append("ses_b", told("x"), actor=CLIENT) for _ in range(300)))
        tree = [r.pos for r in everything if r.session_id != "ses_b"]
        near = await log.page(Filter(root_id="ses_a"), limit=500)
        far = await log.page(Filter(root_id="ses_a"), limit=20)
        assert [r.pos for r in near] == tree
        assert [r.pos for r in far] == tree[:20]


async def test_a_page_ends_at_its_bytes_and_holds_at_least_one_record(store_path: Path) -> None:
    async with log_at(store_path) as log:
        await session_in(log)
        for n in range(10):
            await log.append("ses_a", returned(f"c{n}", "x" * 10_000), actor=AGENT)
        sizes = [len(await log.page(EVERYTHING, after=1, max_bytes=n)) for n in (1, 11_000, 35_000)]
        assert sizes == [1, 1, 3]
        back = await log.page(EVERYTHING, max_bytes=35_000, backwards=True)
        assert [r.seq for r in back] == [9, 10, 11]  # the newest, in order
        got: list[int] = []
        while page := await log.page(EVERYTHING, after=got[-1] if got else 0, max_bytes=25_000):
            got += [r.pos for r in page]
        assert len(got) == 11


_SESSIONS = ("ses_a", "ses_b", "ses_c", "ses_d")


@given(
    order=st.lists(st.sampled_from(_SESSIONS), max_size=60),
    data=st.data(),
)
@settings(
    max_examples=20,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_coordination_4_any_page_of_any_log_is_what_a_naive_reader_finds(
    tmp_path_factory: pytest.TempPathFactory, order: list[str], data: st.DataObject
) -> None:
    near = data.draw(st.sampled_from([0, 10, 2_000]))

    async def run() -> None:
        async with log_at(tmp_path_factory.mktemp("page") / "store.db", projections=()) as log:
            for each in ("ses_a", "ses_d"):
                await session_in(log, each)
            for each in ("ses_b", "ses_c"):
                await session_in(log, each, root_id="ses_a")

            def appends(tx: Transaction) -> None:
                for n, each in enumerate(order):
                    event: Any = said(str(n)) if n % 3 else ModeChanged(mode="ask")
                    tx.append(each, event, actor=CLIENT)
                if len(order) % 2:
                    tx.delete_session("ses_b", actor=CLIENT)

            await log.transact(appends)
            everything = await log.page(EVERYTHING, limit=10_000)
            assert [r.pos for r in everything] == sorted({r.pos for r in everything})
            roots = {"ses_a": "ses_a", "ses_c": "ses_a", "ses_d": "ses_d"}
            if not len(order) % 2:
                roots["ses_b"] = "ses_a"
            for record in everything:
                record.root_id = roots.get(record.session_id)
            positions = st.integers(0, log.head + 2)
            for _ in range(8):
                filter = Filter(
                    session_id=data.draw(st.sampled_from([None, None, *_SESSIONS])),
                    root_id=data.draw(st.sampled_from([None, "ses_a", "ses_d", "ses_none"])),
                    types=data.draw(st.sampled_from([None, frozenset({"message"}), frozenset()])),
                )
                after = data.draw(positions)
                before = data.draw(st.one_of(st.none(), positions))
                limit = data.draw(st.integers(1, 12))
                backwards = data.draw(st.booleans())
                wanted = [
                    r.pos
                    for r in everything
                    if filter.admits(r) and after < r.pos and (before is None or r.pos < before)
                ]
                page = await log.page(
                    filter, after=after, before=before, limit=limit, backwards=backwards
                )
                part = wanted[-limit:] if backwards else wanted[:limit]
                assert [r.pos for r in page] == part, (filter, after, before, limit, backwards)
                through = log.head + 2 if before is None else before - 1
                found = await log.count(filter, after=after, through=through, limit=limit)
                assert found == len(wanted[:limit]), (filter, after, through, limit)
            tree = [r for r in everything if r.root_id == "ses_a"]
            for limit in (1, 2, 3, 5, 8, 100):
                found = await log.count(
                    Filter(root_id="ses_a"), after=0, through=log.head, limit=limit
                )
                assert found == len(tree[:limit])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paging, "_NEAR", near)
        anyio.run(run)


# --- cursors ----------------------------------------------------------------------------------


async def test_interrupts_65_a_cursor_says_where_one_was_and_no_other_store_s_is_taken(
    store_path: Path, tmp_path: Path
) -> None:
    async with log_at(tmp_path / "other.db") as other:
        await _two_trees(other)
        foreign = other.cursor()
    async with log_at(store_path) as log:
        await session_in(log)
        record = await log.append("ses_a", said("x"), actor=CLIENT)
        assert log.position(log.cursor()) == record.pos == log.head
        assert log.position(log.cursor(1)) == 1
        assert log.position(log.cursor(0)) == 0
        hostile = (
            foreign, "", ".", "7", f"{log.store_id}.", f"{log.store_id}.-1", f"{log.store_id}.x",
            f"{log.store_id}.²", f"{log.store_id}.3", f"{log.store_id}.{'9' * 5_000}", "x" * 9_999,
        )  # fmt: skip
        for cursor in hostile:
            with pytest.raises(CallboardError) as error:
                log.position(cursor)
            assert error.value.kind == "invalidCursor"
            assert "start" in error.value.message  # the way out
            assert len(error.value.message) < 400


async def test_a_cursor_of_another_process_s_last_commit_is_taken_at_once(store_path: Path) -> None:
    async with log_at(store_path) as here, log_at(store_path) as there:
        await session_in(there)
        record = await there.append("ses_a", said("x"), actor=CLIENT)
        assert here.head < record.pos  # nobody watches here, so nobody has looked
        assert here.position(there.cursor()) == record.pos


async def test_a_cursor_survives_a_restart(store_path: Path) -> None:
    async with log_at(store_path) as log:
        await session_in(log)
        cursor = log.cursor()
        await log.append("ses_a", said("later"), actor=CLIENT)
    async with log_at(store_path) as log:
        page = await log.page(EVERYTHING, after=log.position(cursor))
        assert [r.seq for r in page] == [2]


# --- following --------------------------------------------------------------------------------


async def test_whoever_waits_is_told_of_a_commit_by_any_process(store_path: Path) -> None:
    async with log_at(store_path) as here, log_at(store_path) as there:
        await session_in(there)
        await here.moved(0)
        before = here.head
        waiting = asyncio.ensure_future(here.moved(before))
        with here.watching("ses_a") as changed:
            await there.append("ses_a", said("x"), actor=CLIENT)
            assert await waiting == before + 1
            await changed.wait()


async def test_the_recent_records_hold_what_others_committed_in_between(store_path: Path) -> None:
    async with log_at(store_path) as here, log_at(store_path) as there:
        await session_in(here)
        for n in range(3):
            await here.append("ses_a", said(str(n)), actor=CLIENT)
        recent = here.recent(1)
        assert recent is not None
        assert [r.pos for r in recent] == [2, 3, 4]
        assert here.recent(4) == []
        await there.append("ses_a", said("foreign"), actor=CLIENT)
        last = await here.append("ses_a", said("own"), actor=CLIENT)
        both = here.recent(3)
        assert both is not None
        assert [r.pos for r in both] == [4, 5, 6]  # 5 is not ours, and stands in its place
        only = here.recent(last.pos - 1)
        assert only is not None
        assert [r.pos for r in only] == [last.pos]


async def test_recent_records_of_a_deleted_session_are_gone(store_path: Path) -> None:
    async with log_at(store_path) as log:
        await session_in(log)
        await log.append("ses_a", said("secret plans"), actor=CLIENT)
        await log.transact(lambda tx: tx.delete_session("ses_a", actor=CLIENT))
        recent = log.recent(0)
        assert recent is None or all("secret" not in r.data for r in recent)


async def test_approvals_moved_misses_nothing_that_was_committed_before_it_listened(
    store_path: Path,
) -> None:
    from callboard_rpc.approvals import Resolution
    from callboard_rpc.common import ApprovalId, CallId
    from callboard_rpc.events import ApprovalDecision

    async with log_at(store_path, projections=()) as log:
        await session_in(log)
        before = log.head
        decision = ApprovalDecision(
            approval_id=ApprovalId("apr"),
            call_id=CallId("c"),
            resolution=Resolution(outcome="rejected", by=CLIENT, via="method", at=log.now()),
        )
        await log.append("ses_a", decision, actor=CLIENT)
        await asyncio.wait_for(log.approvals_moved(before), 10)
        waiting = asyncio.ensure_future(log.approvals_moved(log.head))
        await log.append("ses_a", said("not this"), actor=CLIENT)
        assert not waiting.done()
        await log.append("ses_a", decision, actor=CLIENT)
        await asyncio.wait_for(waiting, 10)


# --- drafts -----------------------------------------------------------------------------------


async def test_a_draft_grows_and_a_new_message_begins_anew(store_path: Path) -> None:
    async with log_at(store_path) as log:
        await session_in(log)

        async def add(message_id: str, answer: str, thought: str, index: str) -> None:
            await log.append_draft(
                session_id="ses_a",
                turn_id="trn",
                message_id=message_id,
                answer=answer,
                thought=thought,
                next_index=index,
            )

        assert await log.draft("trn") is None
        await add("m1", "Hel", "", '{"answer":1}')
        await add("m1", "lo 🙂", "hm", '{"answer":2}')
        assert await log.draft("trn") == ("m1", "Hello 🙂", "hm", '{"answer":2}')
        await add("m2", "Next", "", '{"answer":1}')
        assert await log.draft("trn") == ("m2", "Next", "", '{"answer":1}')
        assert await log.draft("other") is None
    async with log_at(store_path) as log:
        assert await log.draft("trn") == ("m2", "Next", "", '{"answer":1}')


async def test_however_fast_a_draft_grows_one_save_of_it_waits(store_path: Path) -> None:
    async with log_at(store_path) as log:
        await session_in(log)
        begun, go_on = threading.Event(), threading.Event()

        def hold(_: Transaction) -> None:
            begun.set()
            go_on.wait(10)

        held = asyncio.ensure_future(log.transact(hold))
        await asyncio.to_thread(begun.wait, 10)
        saves = [
            log.append_draft(
                session_id="ses_a",
                turn_id="trn",
                message_id="m1",
                answer=f"{number} ",
                thought="",
                next_index=f'{{"answer":{number}}}',
            )
            for number in range(1000)
        ]
        assert log.queue_length == 1
        go_on.set()
        await asyncio.gather(held, *saves)
        whole = "".join(f"{number} " for number in range(1000))
        assert await log.draft("trn") == ("m1", whole, "", '{"answer":999}')


async def test_what_is_read_at_once_is_of_one_state_whatever_is_committed_meanwhile(
    store_path: Path,
) -> None:
    reading, committed = threading.Event(), threading.Event()

    def function(rows: Rows) -> tuple[int, int]:
        before = rows("SELECT count(*) FROM events")[0][0]
        reading.set()
        assert committed.wait(30)
        return before, rows("SELECT count(*) FROM events WHERE pos > ?", 0)[0][0]

    async with log_at(store_path) as log:
        await session_in(log)
        work = asyncio.create_task(log.at_once(function))
        assert await asyncio.to_thread(reading.wait, 30)
        await log.append("ses_a", said("meanwhile"), actor=CLIENT)
        committed.set()
        before, after = await work
        assert before == after == 1
        assert (await log.query("SELECT count(*) FROM events"))[0][0] == 2
