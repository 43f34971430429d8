"""Lists and looks change nothing, and show roots (coordination 2.7)."""

from pathlib import Path
from typing import Any

import pytest
from sessions_kit import Player, host_with, says

from callboard.log.transaction import Transaction
from callboard_rpc.common import SessionId
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import SessionCreated
from harness.inside import CLIENT, host_in, idle, new_session, say
from harness.process import scenario

pytestmark = pytest.mark.anyio


async def test_coordination_9_listing_and_reading_leave_the_time_of_update_alone(
    tmp_path: Path,
) -> None:
    async with host_with(tmp_path, Player([says("first")])) as host:
        session_id = await new_session(host, tmp_path)
        await say(host, session_id, "hello")
        await idle(host, session_id)
        before, head = await host.reading.session(session_id), host.log.head
        for _ in range(3):
            (listed,), _ = await host.reading.sessions()
            await host.log.search("hello", limit=3)
            await host.reading.turns(session_id)
            await host.waiting.wait(session_id, until="idle", turn_id=None, timeout_s=1)
            await host.approvals.page(session_id=session_id)
        assert listed == before == await host.reading.session(session_id)
        assert host.log.head == head


async def test_coordination_10_no_list_no_last_word_and_no_search_shows_what_was_only_thought(
    tmp_path: Path,
) -> None:
    scene = scenario(tmp_path, "default: [{think: A hunch about marzipan.}, {say: It is so.}]")
    async with host_in(tmp_path, model=scene) as host:
        session_id = await new_session(host, tmp_path)
        await say(host, session_id, "is it?")
        waited = await idle(host, session_id)
        (listed,), _ = await host.reading.sessions()
        (turn,), _ = await host.reading.turns(session_id)
        assert turn.final_text == "It is so."
        assert await host.log.search("hunch", limit=9) == []
        await host.log.index_all()
        assert await host.log.search("marzipan", limit=9) == []
        assert len(await host.log.search("so", limit=9)) == 1
        assert "marzipan" not in f"{listed} {turn} {waited}"


async def test_coordination_12_the_latest_session_is_a_root_and_never_its_child(
    tmp_path: Path,
) -> None:
    async with host_with(tmp_path, Player([])) as host:
        older, newer = [await new_session(host, tmp_path) for _ in range(2)]

        def child(tx: Transaction) -> None:
            tx.begin_session("ses_child", newer)
            tx.append(
                "ses_child",
                SessionCreated(
                    session_id=SessionId("ses_child"),
                    root_id=SessionId(newer),
                    parent_id=SessionId(newer),
                    depth=1,
                    cwd=str(tmp_path),
                    profile="default",
                    mode="work",
                ),
                actor=CLIENT,
            )

        await host.log.transact(child)
        listed, _ = await host.reading.sessions()
        assert [s.session_id for s in listed] == [newer, older]
        below, _ = await host.reading.sessions(parent=newer)
        assert [s.session_id for s in below] == ["ses_child"]


async def test_lists_page_newest_first_and_a_hostile_query_is_only_text(tmp_path: Path) -> None:
    async with host_with(tmp_path, Player([])) as host:
        titles = ["50% off", "under_score", "back\\slash", "quote'\"", "plain"]
        for title in titles:
            await new_session(host, tmp_path, title=title)
        got: list[Any] = []
        before: int | None = None
        while True:
            page, before = await host.reading.sessions(before=before, limit=2)
            got += [s.title for s in page]
            if before is None:
                break
        assert got == titles[::-1]
        for query, found in (("%", 1), ("_s", 1), ("\\", 1), ("'\"", 1), ("a", 2), ("';--", 0)):
            page, _ = await host.reading.sessions(query=query)
            named = [s for s in page if query in (s.title or "")]
            assert len(named) == found, query


async def test_coordination_11_an_unknown_id_is_named_and_cut(tmp_path: Path) -> None:
    async with host_with(tmp_path, Player([])) as host:
        for unknown in ("ses_none", "", "x" * 9_999):
            with pytest.raises(CallboardError) as error:
                await host.reading.session(unknown)
            assert error.value.kind == "sessionNotFound"
            assert len(error.value.message) < 200
