"""The poller of a host: it wakes idle sessions, and nothing keeps it from that (interrupts-and-peers 46, 49, 50).
In a process of its own it is tried in ``tests/e2e``."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from peers_kit import Links, links, pair

from callboard.log.log import Log
from callboard.models.base import ModelEvent, ModelRequest
from callboard_rpc.errors import CallboardError
from harness.inside import CLIENT
from harness.puppets import PATIENCE_S, Pause, fails, pauses

pytestmark = pytest.mark.anyio

SLOW = {"CALLBOARD_PEERS_POLL_MS": "3600000"}
"""Nothing is found by looking; only what is heard of."""
QUICK = {"CALLBOARD_PEERS_POLL_MS": "250"}


async def _polls(p: Links) -> Any:
    while p.peers.poller.task is None:
        await asyncio.sleep(0)
    return p.peers.poller.task


async def test_peers_46_a_session_that_never_ran_here_is_woken_when_it_is_opened(
    tmp_path: Path,
) -> None:
    async with pair(tmp_path, environ=SLOW) as p:
        await p.send("one", "two", "hello")
        assert await p.received("two") == []
        assert p.waiting("two") == 1  # nobody works with it here
        p.host.opened.note(p.ids["two"])
        (started,) = await p.has("two", 1, "turn_started")
        assert started.trigger.kind == "peer"
        await p.idle("two")
        assert "hello" in p.models["two"].heard()


async def test_peers_46_what_was_not_heard_of_is_found_by_looking(tmp_path: Path) -> None:
    async with pair(tmp_path, opened=True, environ=QUICK) as p:
        capsule = {"version": 1, "body": "unheard of"}
        await p.put("one", "two", capsule, "msg_quiet")  # no event tells of it
        await p.has("two", 1, "turn_finished")
        assert "unheard of" in p.models["two"].heard()


async def test_peers_a_session_that_is_archived_is_woken_when_it_is_back(tmp_path: Path) -> None:
    async with pair(tmp_path, environ=SLOW) as p:
        await p.session("three", opened=True)
        await p.link("one", "three")
        await p.send("one", "two", "hello")
        await p.host.sessions.set_archived(p.ids["two"], archived=True, by=CLIENT)
        p.host.opened.note(p.ids["two"])
        await p.send("one", "three", "it looks")
        await p.has("three", 1, "turn_finished")
        assert p.waiting("two") == 1
        await p.host.sessions.set_archived(p.ids["two"], archived=False, by=CLIENT)
        await p.has("two", 1, "turn_finished")
        assert "hello" in p.models["two"].heard()


async def test_peers_55_a_deleted_session_is_looked_after_no_more(tmp_path: Path) -> None:
    async with pair(tmp_path, opened=True, environ=SLOW) as p:
        await _polls(p)
        assert p.ids["two"] in p.host.opened
        await p.host.sessions.delete(p.ids["two"], by=CLIENT)
        async with asyncio.timeout(PATIENCE_S):
            while p.ids["two"] in p.host.opened:
                await asyncio.sleep(0)
        assert p.ids["one"] in p.host.opened


async def test_peers_messages_that_come_one_by_one_all_arrive(tmp_path: Path) -> None:
    async with pair(tmp_path, opened=True, environ=SLOW) as p:
        for n in range(20):
            await p.send("one", "two", f"message {n}")
        await p.idle("two")
        async with asyncio.timeout(PATIENCE_S):
            while p.waiting("two"):
                await p.host.log.moved(p.host.log.head)
        await p.idle("two")
        heard = p.models["two"].heard()
        assert all(f"\nmessage {n}\n" in heard for n in range(20))
        assert len(await p.received("two")) == 20


async def test_peers_the_end_of_a_turn_that_failed_leaves_nothing_behind(tmp_path: Path) -> None:
    async with pair(tmp_path, opened=True, environ=SLOW) as p:
        pause = Pause()

        async def breaks(request: ModelRequest) -> AsyncIterator[ModelEvent]:
            await pause.here()
            async for event in fails()(request):
                yield event

        p.models["two"].scenes = [breaks]
        await p.say("two")
        await pause.came()
        await p.send("one", "two", "hello")
        pause.open.set()
        finished = await p.has("two", 2, "turn_finished")
        assert [each.outcome for each in finished] == ["failed", "completed"]
        assert "hello" in p.models["two"].heard()


async def test_peers_49_a_long_turn_of_one_session_delays_no_other(tmp_path: Path) -> None:
    async with links(tmp_path, environ=SLOW) as p:
        for name in ("one", "two", "three"):
            await p.session(name, opened=True)
        await p.link("one", "two")
        await p.link("one", "three")
        pause = Pause()
        p.models["two"].scenes = [pauses(pause, "at last")]
        await p.send("one", "two", "begin")
        await pause.came()
        await p.send("one", "three", "you, too")
        await p.has("three", 1, "turn_finished")
        assert await p.events("two", "turn_finished") == []
        pause.open.set()
        await p.has("two", 1, "turn_finished")


async def test_peers_49_what_keeps_one_wake_up_delays_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with links(tmp_path, environ=SLOW) as p:
        for name in ("one", "two", "three"):
            await p.session(name, opened=True)
        await p.link("one", "two")
        await p.link("one", "three")
        held = Pause()
        wake = p.host.dispatcher.wake_here

        async def slowly(session_id: str) -> str | None:
            if session_id == p.ids["two"]:
                await held.here()
            return await wake(session_id)

        monkeypatch.setattr(p.host.dispatcher, "wake_here", slowly)
        await p.send("one", "two", "first")
        await held.came()
        await p.send("one", "two", "second")  # is not lost behind it
        await p.send("one", "three", "you, too")
        await p.has("three", 1, "turn_finished")
        assert await p.events("two", "turn_started") == []
        held.open.set()
        await p.has("two", 1, "turn_finished")
        async with asyncio.timeout(PATIENCE_S):
            while p.waiting("two"):
                await p.host.log.moved(p.host.log.head)
        await p.idle("two")
        assert len(await p.received("two")) == 2


async def test_peers_what_comes_while_a_session_is_woken_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pair(tmp_path, opened=True, environ=SLOW) as p:
        held = Pause()
        wake = p.host.dispatcher.wake_here
        wakes: list[str] = []

        async def fails_once(session_id: str) -> str | None:
            wakes.append(session_id)
            if len(wakes) > 1:
                return await wake(session_id)
            await held.here()
            return None  # as where another host was to run it, and has gone

        monkeypatch.setattr(p.host.dispatcher, "wake_here", fails_once)
        await p.send("one", "two", "first")
        await held.came()
        looked = asyncio.Event()
        query = Log.query

        async def looks(self: Log, sql: str, *params: Any) -> Any:
            rows = await query(self, sql, *params)
            if rows and "peer_inbox" in sql:
                looked.set()
            return rows

        monkeypatch.setattr(Log, "query", looks)
        await p.send("one", "two", "second")
        await looked.wait()
        held.open.set()
        await p.has("two", 1, "turn_finished")
        assert [each.trigger.kind for each in await p.events("two", "turn_started")] == ["peer"]
        assert len(await p.received("two")) == 2


async def test_peers_50_the_poller_survives_a_tick_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pair(tmp_path, opened=True, environ=QUICK) as p:
        task = await _polls(p)
        failed: list[str] = []
        query = Log.query
        faults = [
            CallboardError("storeBusy", "the store is busy"),
            RuntimeError("a tick broke"),
            OSError("the disk is gone"),
        ]

        async def breaks(self: Log, sql: str, *params: Any) -> Any:
            if "peer_" in sql and faults:
                failed.append(sql)
                raise faults.pop()
            return await query(self, sql, *params)

        monkeypatch.setattr(Log, "query", breaks)
        await p.send("one", "two", "hello")
        await p.has("two", 1, "turn_finished")
        assert len(failed) == 3
        assert p.peers.poller.task is task


@pytest.mark.parametrize("how", ["cancelled", "broken"])
async def test_peers_50_another_poller_takes_the_place_of_one_that_is_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    async with pair(tmp_path, opened=True, environ=QUICK) as p:
        first = await _polls(p)
        if how == "cancelled":
            first.cancel()
        else:

            class Fatal(BaseException):
                pass

            query = Log.query
            broken: list[str] = []

            async def breaks(self: Log, sql: str, *params: Any) -> Any:
                if "peer_" in sql and not broken:
                    broken.append(sql)
                    raise Fatal
                return await query(self, sql, *params)

            monkeypatch.setattr(Log, "query", breaks)
        await asyncio.wait([first])
        await p.send("one", "two", "hello")
        await p.has("two", 1, "turn_finished")
        assert p.peers.poller.task is not first
        assert "hello" in p.models["two"].heard()


async def test_peers_one_session_that_cannot_be_given_its_messages_keeps_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from callboard.peers import receiving

    async with links(tmp_path, environ=SLOW) as p:
        for name in ("one", "two", "three"):
            await p.session(name, opened=True)
        await p.link("one", "two")
        await p.link("one", "three")
        deliver = receiving.deliver

        def breaks(tx: Any, session_id: str, host_id: str) -> bool:
            if session_id == p.ids["two"]:
                raise RuntimeError("broken")
            return deliver(tx, session_id, host_id)

        monkeypatch.setattr(receiving, "deliver", breaks)
        await p.send("one", "two")
        await p.send("one", "three")
        await p.has("three", 1, "turn_finished")
        assert p.waiting("two") == 1
        monkeypatch.setattr(receiving, "deliver", deliver)
        await p.send("one", "two", "again")
        await p.has("two", 1, "turn_finished")


async def test_peers_a_host_that_goes_soon_polls_nothing(tmp_path: Path) -> None:
    async with pair(tmp_path, opened=True, leaves=True) as p:
        await p.send("one", "two")
        assert p.peers.poller.task is None
        assert p.waiting("two") == 1
    async with links(tmp_path) as q:
        q.ids.update(p.ids)
        q.models.update(p.models)
        q.host.opened.note(q.ids["two"])  # whoever stays takes it up
        await q.has("two", 1, "turn_finished")
        assert len(await q.received("two")) == 1
