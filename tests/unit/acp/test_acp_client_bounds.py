"""What an agent may cost: bytes that wait and are kept, events, and the loop's time."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from acp_client_kit import Stage, stage, tool_call
from test_acp_client_turns import of, said

from callboard.acp.client import exchange
from callboard.acp.client.backlog import Backlog
from callboard.acp.client.bounds import bounded
from callboard.acp.contract import updates
from callboard.acp.contract.convert import structure_lenient

pytestmark = pytest.mark.anyio

MIB = 1024 * 1024


class Watch:
    """The most memory that this process has, above what it has now, and the longest that its loop stood still."""

    def __init__(self) -> None:
        self.before = psutil.Process().memory_info().rss
        self.grown = 0
        self.longest_s = 0.0

    async def __aenter__(self) -> "Watch":
        self._task = asyncio.get_running_loop().create_task(self._look())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()

    async def _look(self) -> None:
        process = psutil.Process()
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.02)
            self.longest_s = max(self.longest_s, time.monotonic() - began)
            self.grown = max(self.grown, process.memory_info().rss - self.before)


async def turn(play: Stage, within_s: int = 240) -> list[Any]:
    session_id = await play.session()
    await play.say(session_id)
    done = await play.host.waiting.wait(session_id, until="idle", turn_id=None, timeout_s=within_s)
    assert done.reason == "idle"
    return await play.host.log.outline(session_id, {"turn_finished", "message"})


async def test_hundreds_of_mebibytes_in_thousands_of_calls_are_not_kept(tmp_path: Path) -> None:
    many = {"calls": {"count": 5_000, "bytes": 40_000}}
    async with stage(tmp_path, many, {"say": "done"}) as play, Watch() as watch:
        records = await turn(play)
    assert sum(r.type == "tool_result" for r in records) == 5_000
    assert of(records, "turn_finished")[0].outcome == "completed"
    assert watch.grown < 150 * MIB


async def test_what_is_told_of_calls_that_are_not_over_is_bounded(tmp_path: Path) -> None:
    many = {"calls": {"count": 4_000, "bytes": 20_000, "status": "in_progress"}}
    async with stage(tmp_path, many, {"say": "done"}) as play, Watch() as watch:
        records = await turn(play)
        end = of(records, "turn_finished")[0]
    assert end.error is not None
    assert "calls that are not over" in end.error.message
    assert watch.grown < 400 * MIB


async def test_large_updates_wait_at_the_agents_side(tmp_path: Path) -> None:
    block = {"type": "image", "data": "A" * 4 * MIB, "mimeType": "image/png"}
    think = {"sessionUpdate": "agent_thought_chunk", "content": block}
    lines = [{"update": think}] * 100
    async with stage(tmp_path, *lines, {"say": "done"}) as play, Watch() as watch:
        records = await turn(play)
    assert said(records) == ["done"]
    assert watch.grown < 150 * MIB


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("agent_message_chunk", 100_000),
        ("usage_update", 20_000),
        ("plan", 20_000),
        pytest.param("agent_message_chunk", 1_000_000, marks=pytest.mark.soak),
    ],
)
async def test_a_flood_of_tiny_updates_does_not_stop_the_loop(
    tmp_path: Path, kind: str, count: int
) -> None:
    told: dict[str, Any] = {"sessionUpdate": kind}
    match kind:
        case "plan":
            told["entries"] = []
        case "usage_update":
            told |= {"used": 1, "size": 2}
        case _:
            told["content"] = {"type": "text", "text": "x"}
    many = {"many": {"count": count, "update": told}}
    async with stage(tmp_path, many, {"say": "done"}) as play, Watch() as watch:
        records = await turn(play)
    assert of(records, "turn_finished")[0].outcome == "completed"
    assert watch.longest_s < 5.0  # it stands for as long as the flood comes, if it does
    assert watch.grown < 150 * MIB
    assert len(records) < exchange._MOST_BESIDES + 100  # pyright: ignore[reportPrivateUsage]


def test_the_newest_of_what_nobody_hears_is_kept_within_bytes() -> None:
    backlog = Backlog(3, 100)
    for number, size in enumerate([10, 10, 10, 10, 85]):
        backlog.add(number, size)
    assert [update for update, _ in backlog.take()] == [3, 4]
    backlog.add("large", 101)
    assert backlog.take() == []
    assert backlog.bytes == 0


LONG = "n" * 100_000
TOO_LONG: list[dict[str, Any]] = [
    {"sessionUpdate": "notice", "severity": LONG, "title": LONG, "description": LONG},
    {"sessionUpdate": "plan", "entries": [{"content": LONG, "priority": "high", "status": "pending"}]},
    {"sessionUpdate": "current_mode_update", "currentModeId": LONG},
    {"sessionUpdate": "available_commands_update", "availableCommands": [{"name": LONG, "description": LONG}]},
    {"sessionUpdate": "agent_message_chunk", "messageId": LONG, "content": {"type": "image", "data": "", "mimeType": LONG}},
    {"sessionUpdate": "agent_message_chunk", "content": {"type": "resource_link", "name": LONG, "uri": LONG}},
    {"sessionUpdate": "tool_call", "toolCallId": "t", "title": LONG, "name": LONG, "kind": LONG, "status": LONG,
     "locations": [{"path": "/" + LONG}]},
    {"sessionUpdate": "tool_call", "toolCallId": LONG, "title": "t"},
    {"sessionUpdate": "tool_call_update", "toolCallId": "t", "content": [
        {"type": "content", "content": {"type": "audio", "data": "", "mimeType": LONG}}]},
]  # fmt: skip


@pytest.mark.parametrize("told", TOO_LONG)
def test_fields_are_bounded_where_they_come_in(told: dict[str, Any]) -> None:
    params = {"sessionId": "s", "update": told}
    update = structure_lenient(params, updates.SessionNotification).update
    kept = bounded(update)
    assert len(repr(kept)) < 40_000
    assert len(repr(update)) > 90_000


async def test_one_that_is_told_with_long_fields_is_a_turn_like_others(tmp_path: Path) -> None:
    lines = [{"update": each} for each in TOO_LONG]
    async with stage(tmp_path, *lines, tool_call(status="completed"), {"say": "ok"}) as play:
        session_id = await play.session()
        await play.say(session_id)
        records = await play.idle(session_id)
        notice = of(records, "notice")[0]
        assert (notice.severity, len(notice.title)) == ("info", 200)
        assert max(len(json.dumps(r.data)) for r in records) < 60_000
