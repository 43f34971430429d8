"""A change of a session's history goes by all that was committed before it, by whatever process: also by
what this one was not told yet (specs/execution.md 3, Preparation)."""

from pathlib import Path
from typing import Any

import pytest
from sessions_kit import Player, host_with, says

from callboard_rpc.errors import CallboardError
from harness.inside import CLIENT, idle, log_of, new_session, say

pytestmark = pytest.mark.anyio


async def test_execution_29_what_another_process_has_rewound_does_not_come_back_in_a_summary(
    tmp_path: Path,
) -> None:
    player = Player([says("1"), says("2"), says("a platypus"), says("the summary")])
    async with host_with(tmp_path, player) as host, host_with(tmp_path, Player([])) as other:
        session_id = await new_session(host, tmp_path)
        for text in ("one", "two", "the wrong way"):
            await say(host, session_id, text)
            waited = await idle(host, session_id)
        await host.tasks.end()  # nothing looks by itself for what others commit
        await other.rewinding.rewind(session_id, waited.turn.turn_id, by=CLIENT)
        assert host.log.head < other.log.head, "else it was told, and nothing is shown"
        assert await host.compacting.compact(session_id, by=CLIENT, instructions=None)
        told = repr(player.requests[-1].messages)
        assert "one" in told
        assert "the wrong way" not in told
        assert "platypus" not in told


async def test_execution_29_what_could_not_be_heard_of_in_time_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store could not be read in the moment in which other processes' commits were looked for."""
    player = Player([says("1"), says("2"), says("3"), says("the summary")])
    async with host_with(tmp_path, player) as host, host_with(tmp_path, Player([])) as other:
        session_id = await new_session(host, tmp_path)
        for text in ("one", "two", "the wrong way"):
            await say(host, session_id, text)
            waited = await idle(host, session_id)
        await host.tasks.end()  # nothing looks by itself for what others commit
        await other.rewinding.rewind(session_id, waited.turn.turn_id, by=CLIENT)
        monkeypatch.setattr(host.log.feed, "look", lambda: None)
        assert await host.compacting.compact(session_id, by=CLIENT, instructions=None)
        assert "the wrong way" not in repr(player.requests[-1].messages)


async def test_execution_29_a_session_that_was_closed_meanwhile_gets_no_summary(
    tmp_path: Path,
) -> None:
    player = Player([says("1"), says("2")])
    async with host_with(tmp_path, player) as host, host_with(tmp_path, Player([])) as other:
        session_id = await new_session(host, tmp_path)
        for text in ("one", "two"):
            await say(host, session_id, text)
            await idle(host, session_id)

        async def resolve(*_: Any, **__: Any) -> Player:
            """The last that happens before the session is taken."""
            await other.sessions.close(session_id, by=CLIENT)
            return player

        host.catalog.resolve = resolve  # type: ignore[method-assign, assignment]
        requests = len(player.requests)
        with pytest.raises(CallboardError) as refused:
            await host.compacting.compact(session_id, by=CLIENT, instructions=None)
        assert refused.value.kind == "sessionClosed"
        assert len(player.requests) == requests
        assert (await log_of(host, session_id))[-1].type == "session_closed"
        assert await host.log.query("SELECT 1 FROM owners WHERE fence IS NOT NULL") == []
