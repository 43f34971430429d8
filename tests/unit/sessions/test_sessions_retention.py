"""Sessions that were put away long ago go, if the configuration wants it, and no others."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sessions_kit import Player, host_with, says

from callboard.host import Host
from callboard.log.clock import parse, utc_now
from callboard.sessions import retention
from callboard.sessions.projection import SQL
from callboard.sessions.retention import Retention
from callboard_rpc.common import SessionId
from callboard_rpc.events import SessionCreated
from harness.inside import CLIENT, host_in, idle, new_session, say

pytestmark = pytest.mark.anyio

_DAYS = 30.0


def _later(days: float) -> str:
    return (parse(utc_now()) + timedelta(days=days)).isoformat(timespec="milliseconds")


def _in(host: Host, days: float) -> Retention:
    """A retention that looks so many days from now."""
    return Retention(host.log, days=_DAYS, now=lambda: _later(days))


async def _left(host: Host) -> set[str]:
    return {row[0] for row in await host.log.query("SELECT session_id FROM sessions")}


async def _child(host: Host, root_id: str) -> str:
    def begin(tx: Any) -> str:
        session_id = tx.new_id("ses")
        tx.begin_session(session_id, root_id)
        tx.append(
            session_id,
            SessionCreated(
                session_id=SessionId(session_id),
                root_id=SessionId(root_id),
                parent_id=SessionId(root_id),
                depth=1,
                cwd="/w",
                profile="default",
                mode="work",
            ),
            actor=CLIENT,
        )
        return session_id

    return await host.log.transact(begin)


async def test_only_what_was_put_away_long_ago_goes_with_its_children_and_all_that_it_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with host_in(tmp_path) as host:
        archived, closed, pinned, open_one = [await new_session(host, tmp_path) for _ in range(4)]
        await say(host, archived, "hello")
        await idle(host, archived)
        await host.log.put_blob(archived, b"attachment", "text/plain")
        child = await _child(host, archived)
        await host.sessions.set_archived(archived, archived=True, by=CLIENT)
        await host.sessions.close(closed, by=CLIENT)
        await host.log.transact(lambda tx: tx.execute(SQL["set_pinned"], 1, pinned))
        await host.sessions.set_archived(pinned, archived=True, by=CLIENT)
        assert await _in(host, _DAYS - 1).forget_old() == []
        assert set(await _in(host, _DAYS + 1).forget_old()) == {archived, closed}
        assert await _left(host) == {pinned, open_one}
        assert await host.log.query("SELECT count(*) FROM blobs") == [(0,)]
        events = await host.log.query("SELECT session_id, type, actor FROM events ORDER BY pos")
        told = [(session, kind) for session, kind, _ in events if session in (archived, child)]
        assert told == [(child, "session_deleted"), (archived, "session_deleted")]
        assert "callboard" in events[-1][2]
        assert await _in(host, _DAYS + 1).forget_old() == []


async def test_nothing_goes_in_which_something_runs_or_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    async def answer(request: Any) -> Any:
        started.set()
        await go_on.wait()
        async for event in says("done.")(request):
            yield event

    async with host_with(tmp_path, Player(answers=[answer])) as host:
        session = await new_session(host, tmp_path)
        await say(host, session, "hello")
        await started.wait()
        await host.sessions.set_archived(session, archived=True, by=CLIENT)
        assert await _in(host, _DAYS + 1).forget_old() == []
        go_on.set()
        await idle(host, session)
        assert await _in(host, _DAYS + 1).forget_old() == [session]


async def test_a_root_stays_as_long_as_something_happens_below_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with host_in(tmp_path) as host:
        root = await new_session(host, tmp_path)
        child = await _child(host, root)
        await host.sessions.set_archived(root, archived=True, by=CLIENT)
        at = _later(_DAYS)
        await host.log.transact(lambda tx: tx.execute(SQL["touch"], at, 99, child))
        assert await _in(host, _DAYS + 1).forget_old() == []
        assert await _in(host, 2 * _DAYS + 1).forget_old() == [root]
        assert await _left(host) == set()


async def test_what_is_taken_up_again_in_the_last_moment_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with host_in(tmp_path) as host:
        session = await new_session(host, tmp_path)
        await host.sessions.set_archived(session, archived=True, by=CLIENT)
        looking = _in(host, _DAYS + 1)
        query = host.log.query

        async def found_and_then(sql: str, *params: Any) -> list[tuple[Any, ...]]:
            patch.undo()
            rows = await query(sql, *params)
            await host.sessions.set_archived(session, archived=False, by=CLIENT)
            return rows

        with monkeypatch.context() as patch:
            patch.setattr(host.log, "query", found_and_then)
            assert await looking.forget_old() == []
        assert await _left(host) == {session}


async def test_many_go_in_as_many_transactions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "_BATCH", 2)
    async with host_in(tmp_path) as host:
        sessions = [await new_session(host, tmp_path) for _ in range(5)]
        for session in sessions:
            await host.sessions.set_archived(session, archived=True, by=CLIENT)
        assert await _in(host, _DAYS + 1).forget_old() == sessions


async def test_a_host_does_it_when_the_configuration_says_so_and_else_never(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "FIRST_LOOK_S", 0.0)
    looked = asyncio.Event()

    async def look(self: Retention) -> list[str]:
        looked.set()
        return []

    monkeypatch.setattr(Retention, "forget_old", look)
    async with host_in(tmp_path) as host:
        await say(host, await new_session(host, tmp_path), "hello")
        assert not looked.is_set()
    async with host_in(tmp_path, environ={"CALLBOARD_STORE_RETAIN_ARCHIVED_DAYS": "30"}):
        await asyncio.wait_for(looked.wait(), 30)


async def test_a_look_that_fails_as_nobody_foresaw_is_not_the_last_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "FIRST_LOOK_S", 0.0)
    monkeypatch.setattr(retention, "LOOK_S", 0.0)
    looks = 0
    again = asyncio.Event()

    async def look(self: Retention) -> list[str]:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise RuntimeError("nobody has foreseen this")
        again.set()
        return []

    monkeypatch.setattr(Retention, "forget_old", look)
    async with host_in(tmp_path, environ={"CALLBOARD_STORE_RETAIN_ARCHIVED_DAYS": "30"}):
        await asyncio.wait_for(again.wait(), 30)
