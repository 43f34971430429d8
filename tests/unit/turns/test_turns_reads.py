"""Reads begin before they are committed: what is over at once is committed with its call."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from turns_kit import (
    PATIENCE_S,
    Anything,
    Pause,
    Stage,
    calls,
    of,
    results,
    returns,
    shape,
    stage,
    the_end,
    tool,
)

from callboard.log.record import Record
from callboard.tools.base import ToolContext, ToolOutcome

pytestmark = pytest.mark.anyio


def commits(on: Stage) -> list[list[str]]:
    """The types of the events of each commit from now on."""
    seen: list[list[str]] = []

    def heard(records: list[Record]) -> None:
        seen.append([record.type for record in records])

    on.host.log.feed.listen(heard)
    return seen


def waits(pause: Pause) -> Any:
    async def act(_: ToolContext, arguments: Anything) -> ToolOutcome:
        await pause.here()
        return ToolOutcome(text=f"slow {arguments.text}")

    return act


async def until(on: Stage, session_id: str, kind: str) -> list[Any]:
    """The log, as soon as it holds an event of this type."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            head = on.host.log.head
            records = await on.log(session_id)
            if of(records, kind):
                return records
            await on.host.log.feed.moved(head)


async def test_a_read_that_is_over_at_once_is_committed_with_its_call(tmp_path: Path) -> None:
    look = tool("look", returns(), "read")
    asked = calls(("look", {"text": "a"}), ("look", {"text": "b"}))
    async with stage(tmp_path, asked, tools=[look]) as on:
        seen = commits(on)
        _, records = await on.turn()
        assert ["tool_call", "tool_call", "tool_result", "tool_result"] in seen
        assert results(records) == [("look", "ok")] * 2
        assert on.puppet.read() == ["ok a", "ok b"]


async def test_a_read_that_takes_its_time_is_shown_while_it_runs(tmp_path: Path) -> None:
    pause = Pause()
    tools = [tool("look", returns(), "read"), tool("search", waits(pause), "read")]
    asked = calls(("search", {"text": "a"}), ("look", {"text": "b"}))
    async with stage(tmp_path, asked, tools=tools) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await pause.came()
        records = await until(on, session_id, "tool_call")
        assert [call.name for call in of(records, "tool_call")] == ["search", "look"]
        assert [result.name for result in of(records, "tool_result")] == ["look"]
        pause.open.set()
        await on.idle(session_id)
        assert results(await on.log(session_id)) == [("look", "ok"), ("search", "ok")]
        assert on.puppet.read() == ["slow a", "ok b"]


async def test_a_cancel_ends_a_read_that_runs_and_gives_it_its_one_result(tmp_path: Path) -> None:
    pause = Pause()
    async with stage(
        tmp_path, calls(("search", {"text": "a"})), tools=[tool("search", waits(pause), "read")]
    ) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await pause.came()
        await until(on, session_id, "tool_call")
        await on.cancel(session_id)
        await on.idle(session_id)
        records = await on.log(session_id)
        assert results(records) == [("search", "cancelled")]
        assert the_end(records).outcome == "cancelled"


async def test_a_batch_with_anything_but_reads_begins_when_it_is_committed(tmp_path: Path) -> None:
    """`tool_call` is committed before its side effect."""
    there: list[list[str]] = []

    async def act(_: ToolContext, __: Anything) -> ToolOutcome:
        there.append([kind for commit in seen for kind in commit])
        return ToolOutcome(text="ran")

    tools = [tool("look", act, "read"), tool("act", act)]
    async with stage(tmp_path, calls(("look", {}), ("act", {})), tools=tools) as on:
        seen = commits(on)
        _, records = await on.turn()
        assert [kinds.count("tool_call") for kinds in there] == [2, 2]
        assert shape(records).count("tool_result") == 2
