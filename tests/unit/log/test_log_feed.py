"""What listeners are told: every commit, of whatever process, once and in order."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from log_workbench import CLIENT, log_at, said, session_in

from callboard.log.log import Log
from callboard.log.record import Record
from callboard.log.sqlite import sqlite3
from callboard.log.transaction import Transaction

pytestmark = pytest.mark.anyio


async def test_two_processes_are_told_of_each_other_in_one_order(store_path: Path) -> None:
    async with log_at(store_path) as here, log_at(store_path) as there:
        await session_in(here)
        heard: dict[str, list[int]] = {"here": [], "there": []}
        here.listen(lambda records: heard["here"].extend(r.pos for r in records))
        there.listen(lambda records: heard["there"].extend(r.pos for r in records))

        async def write(log: object, name: str) -> None:
            for n in range(60):
                await log.append("ses_a", said(f"{name} {n}"), actor=CLIENT)  # type: ignore[attr-defined]

        async with anyio.create_task_group() as group:
            group.start_soon(write, here, "here")
            group.start_soon(write, there, "there")
        here.refresh()
        there.refresh()
        assert heard["here"] == list(range(heard["here"][0], here.head + 1))
        # the other log was opened before the session began, so it hears of that, too
        assert heard["there"][-len(heard["here"]) :] == heard["here"]
        assert len(set(heard["there"])) == len(heard["there"])


async def test_a_commit_elsewhere_is_told_while_somebody_follows(store_path: Path) -> None:
    async with log_at(store_path) as here, log_at(store_path) as there:
        await session_in(here)
        told = anyio.Event()
        heard: list[Record] = []

        def listener(records: list[Record]) -> None:
            heard.extend(records)
            told.set()

        here.listen(listener)
        with here.feed.followed():
            await there.append("ses_a", said("from there"), actor=CLIENT)
            await told.wait()
        assert [(r.type, r.root_id) for r in heard] == [("message", "ses_a")]


async def test_what_was_derived_is_forgotten_when_too_much_was_committed_unseen(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callboard.log.feed._SKIPPED", 10)
    async with log_at(store_path) as here, log_at(store_path) as there:
        await session_in(here)
        heard: list[int] = []
        forgotten: list[str] = []
        here.listen(lambda records: heard.extend(r.pos for r in records))
        here.feed.on_skip(lambda: forgotten.append("all"))
        for n in range(12):
            await there.append("ses_a", said(str(n)), actor=CLIENT)
        own = await here.append("ses_a", said("own"), actor=CLIENT)
        assert forgotten == ["all"]
        assert heard == [own.pos]
        assert here.recent(own.pos - 3) is None


def deaf(_: Path) -> None:
    """No bell can be heard."""


class Faulty:
    """A connection that cannot read events while it is `broken`."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.broken = False

    def execute(self, sql: str, *more: Any) -> Any:
        if self.broken and "data_version" not in sql:
            raise sqlite3.OperationalError("disk I/O error")
        return self.connection.execute(sql, *more)

    def close(self) -> None:
        self.connection.close()


def faulty(log: Log, monkeypatch: pytest.MonkeyPatch) -> Faulty:
    reader = Faulty(vars(log.feed)["_reader"])
    monkeypatch.setattr(log.feed, "_reader", reader)
    return reader


async def test_what_cannot_be_read_before_an_own_commit_has_everybody_look_then_and_later(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with log_at(store_path) as here, log_at(store_path) as there:
        await session_in(here)
        here.refresh()
        reader = faulty(here, monkeypatch)
        heard: list[int] = []
        looked: list[bool] = []
        here.listen(lambda records: heard.extend(r.pos for r in records))
        here.feed.on_skip(lambda: looked.append(reader.broken))
        with here.watching("ses_a") as changed:
            reader.broken = True
            await there.append("ses_a", said("from there"), actor=CLIENT)
            own = await here.append("ses_a", said("own"), actor=CLIENT)
            assert looked == [True]
            assert changed.is_set()
        await there.append("ses_a", said("from there again"), actor=CLIENT)
        here.refresh()
        assert (heard, looked) == ([own.pos], [True])
        reader.broken = False
        assert here.refresh() == own.pos + 1
        # whoever looked while nothing could be read looks once more, and nothing is told out of order
        assert (heard, looked) == ([own.pos, own.pos + 1], [True, False])


async def test_a_look_that_failed_is_made_again_though_nothing_more_is_committed(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callboard.log.feed._SELDOM_S", 0.02)
    monkeypatch.setattr("callboard.log.log._INDEX_DELAY_S", 3600)  # which commits, too
    async with log_at(store_path) as here, log_at(store_path) as there:
        await session_in(here)
        told, tried = anyio.Event(), anyio.Event()
        reader = faulty(here, monkeypatch)
        here.listen(lambda _: told.set())
        look = here.feed.look

        def looking() -> bool:
            try:
                return look()
            finally:
                if reader.broken:
                    tried.set()

        monkeypatch.setattr(here.feed, "look", looking)
        with here.feed.followed():
            reader.broken = True
            await there.append("ses_a", said("from there"), actor=CLIENT)
            await tried.wait()
            assert not told.is_set()
            reader.broken = False
            await told.wait()


async def test_a_listener_that_fails_keeps_nothing_from_the_others(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callboard.log.bell._watch", deaf)  # so that only the poll can tell
    async with log_at(store_path) as here, log_at(store_path) as there:
        await session_in(here)
        here.refresh()
        heard: list[int] = []
        forgotten: list[str] = []
        told = [anyio.Event(), anyio.Event()]

        def fails(*_: object) -> None:
            raise RuntimeError("no")

        def listener(records: list[Record]) -> None:
            heard.extend(r.pos for r in records)
            told[len(heard) - 1].set()

        for each in (fails, listener):
            here.listen(each)
        for forget in (fails, lambda: forgotten.append("all")):
            here.feed.on_skip(forget)
        with here.feed.followed():
            for number in range(2):
                await there.append("ses_a", said(str(number)), actor=CLIENT)
                await told[number].wait()
        monkeypatch.setattr("callboard.log.feed._SKIPPED", 0)
        await there.append("ses_a", said("skipped"), actor=CLIENT)
        here.refresh()
        assert (heard, forgotten) == ([here.head - 2, here.head - 1], ["all"])


async def test_what_follows_the_log_begins_anew_when_it_fails(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callboard.log.log._ANEW_S", 0)
    monkeypatch.setattr("callboard.log.bell._watch", deaf)
    async with log_at(store_path) as here, log_at(store_path) as there:
        await session_in(here)
        told, failed = anyio.Event(), anyio.Event()
        here.listen(lambda _: told.set())
        version = here.feed.version

        def fails() -> int:
            monkeypatch.setattr(here.feed, "version", version)
            failed.set()
            raise RuntimeError("no")

        with here.feed.followed():
            monkeypatch.setattr(here.feed, "version", fails)
            await failed.wait()
            await there.append("ses_a", said("from there"), actor=CLIENT)
            await told.wait()


async def test_who_watches_a_tree_hears_of_its_sessions_and_of_no_others(store_path: Path) -> None:
    async with log_at(store_path) as here, log_at(store_path) as there:
        for session_id, root_id in (("ses_a", "ses_a"), ("ses_a1", "ses_a"), ("ses_b", "ses_b")):
            await here.transact(lambda tx, s=session_id, r=root_id: tx.begin_session(s, r))
            await here.append(session_id, said("hello"), actor=CLIENT)
        there.refresh()
        with here.watching_tree("ses_a1") as own, there.watching_tree("ses_a") as other:

            async def moves(log: Log, session_id: str) -> tuple[bool, bool]:
                own.clear()
                other.clear()
                await log.append(session_id, said("more"), actor=CLIENT)
                here.refresh()
                there.refresh()
                return own.is_set(), other.is_set()

            for log in (here, there):
                assert await moves(log, "ses_a") == (True, True)
                assert await moves(log, "ses_a1") == (True, True)
                assert await moves(log, "ses_b") == (False, False)
            # where a deleted session was nobody knows who hears of it from elsewhere
            own.clear()
            other.clear()
            await there.transact(lambda tx: tx.delete_session("ses_a1", actor=CLIENT))
            here.refresh()
            assert own.is_set() and other.is_set()
        assert vars(here.feed)["_tree_watches"] == {}


async def test_who_watches_a_tree_looks_again_when_too_much_was_committed_unseen(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callboard.log.feed._SKIPPED", 10)
    async with log_at(store_path) as here, log_at(store_path) as there:
        await session_in(here)
        await here.transact(lambda tx: tx.begin_session("ses_b", "ses_b"))
        there.refresh()
        with here.watching_tree("ses_a") as changed:

            def many(tx: Transaction) -> None:
                for n in range(12):
                    tx.append("ses_b", said(str(n)), actor=CLIENT)

            await there.transact(many)
            here.refresh()
            assert changed.is_set()
