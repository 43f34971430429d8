"""A disk that is full, or a store that is read-only, in the middle of a turn: a named error for who
asks, one terminal event for the turn, an idle session, a store that opens again."""

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from turns_kit import (
    Anything,
    Pause,
    Stage,
    calls,
    of,
    owned,
    pauses,
    results,
    returns,
    speaks,
    stage,
    texts,
    the_end,
    tool,
)

from callboard.tools.base import ToolContext, ToolOutcome
from callboard_rpc.errors import CallboardError

pytestmark = pytest.mark.anyio

BIG = "x" * 60_000


async def _break(on: Stage, kind: str) -> None:
    def refuse(tx: Any) -> None:
        pages = tx.value("PRAGMA page_count")
        tx.all(
            f"PRAGMA max_page_count = {pages}" if kind == "storeFull" else "PRAGMA query_only = 1"
        )

    await on.host.log.transact(refuse)


def _refusals(on: Stage) -> asyncio.Event:
    """Set once the store has refused something from now on."""
    refused = asyncio.Event()
    transact = on.host.log.transact

    async def watched(function: Any) -> Any:
        try:
            return await transact(function)
        except CallboardError:
            refused.set()
            raise

    on.host.log.transact = watched  # type: ignore[method-assign]
    return refused


def _mend(on: Stage) -> None:
    connection = on.host.log._store.connection
    connection.execute("PRAGMA query_only = 0")
    connection.execute("PRAGMA max_page_count = 1000000").fetchall()


KINDS = pytest.mark.parametrize("kind", ["storeFull", "storeReadOnly"])


@KINDS
async def test_a_store_that_refuses_a_result_fails_the_turn_once_it_can_be_written(
    tmp_path: Path, kind: str
) -> None:
    async def act(_: ToolContext, __: Anything) -> ToolOutcome:
        await _break(on, kind)
        await pause.here()
        return ToolOutcome(text=BIG)

    pause = Pause()

    two = calls(("act", {}), ("look", {}))
    tools = [tool("act", act), tool("look", returns())]
    async with stage(tmp_path, two, tools=tools) as on:
        session_id = await on.session()
        other = await on.session()
        await on.say(session_id, "go")
        await pause.came()
        with pytest.raises(CallboardError) as refused:
            await on.say(other, BIG)
        assert refused.value.kind == kind
        tried = _refusals(on)
        pause.open.set()
        await tried.wait()
        _mend(on)
        await on.idle(session_id)
        records = await on.log(session_id)
        end = the_end(records)
        assert (end.outcome, end.error.kind) == ("failed", kind)
        assert results(records) == [("act", "cancelled"), ("look", "cancelled")]
        assert [e.error.kind for e in of(records, "error")] == [kind]
        assert await owned(on.host) == 0
        await on.say(session_id, "next")
        await on.idle(session_id)
        assert texts(await on.log(session_id)) == ["done."]
    _is_sound(tmp_path)
    async with stage(tmp_path) as on:
        assert len(of(await on.log(session_id), "turn_finished")) == 2


def _is_sound(folder: Path) -> None:
    connection = sqlite3.connect(folder / "store.db")
    try:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    finally:
        connection.close()


@KINDS
async def test_execution_23_a_last_answer_that_cannot_be_written_is_kept_when_it_can(
    tmp_path: Path, kind: str
) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause, BIG)) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await pause.came()
        before = on.host.cache.read(session_id)
        await _break(on, kind)
        seen: list[str] = []
        on.host.log.listen(lambda records: seen.extend(r.type for r in records))
        tried = _refusals(on)
        live = on.host.dispatcher.live(session_id)
        assert live is not None
        pause.open.set()
        await tried.wait()
        assert seen == []
        assert not live.ended.is_set()
        assert on.host.cache.read(session_id) is before
        assert (await on.host.reading.session(session_id)).status == "running"
        _mend(on)
        await on.idle(session_id)
        records = await on.log(session_id)
        end = the_end(records)
        assert (end.outcome, end.error.kind) == ("failed", kind)
        assert texts(records) == [BIG]
        assert of(records, "message")[-1].partial


@KINDS
async def test_a_prompt_that_is_durable_is_answered_though_its_turn_could_not_start_at_once(
    tmp_path: Path, kind: str
) -> None:
    async with stage(tmp_path, speaks("at last")) as on:
        session_id = await on.session()
        reserve = on.host.reservations.reserve
        refused: list[str] = []

        async def refuse(*arguments: Any, **named: Any) -> Any:
            if len(refused) < 3:
                refused.append(kind)
                raise CallboardError(kind, "not now")
            return await reserve(*arguments, **named)

        on.host.reservations.reserve = refuse  # type: ignore[method-assign]
        posted = await on.say(session_id, "go", client_message_id="once")
        assert (posted.outcome, posted.turn_id) == ("queued", None)
        again = await on.say(session_id, "go", client_message_id="once")
        assert again.record.seq == posted.record.seq
        await on.idle(session_id)
        records = await on.log(session_id)
        assert (the_end(records).outcome, texts(records)) == ("completed", ["at last"])
        assert len(refused) == 3


@KINDS
async def test_a_queue_behind_a_turn_is_answered_though_the_store_refused_in_between(
    tmp_path: Path, kind: str
) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause, BIG), speaks("two")) as on:
        session_id = await on.session()
        await on.say(session_id, "a")
        await pause.came()
        await on.say(session_id, "b")
        await _break(on, kind)
        tried = _refusals(on)
        pause.open.set()
        await tried.wait()
        _mend(on)
        await on.idle(session_id)
        records = await on.log(session_id)
        assert len(of(records, "turn_finished")) == 2
        assert texts(records)[-1] == "two"
        assert await owned(on.host) == 0


@KINDS
async def test_a_host_goes_though_the_store_refuses_and_the_next_start_finds_what_was_left(
    tmp_path: Path, kind: str
) -> None:
    loop = asyncio.get_running_loop()
    pause = Pause()
    async with stage(tmp_path, pauses(pause, BIG)) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await pause.came()
        await _break(on, kind)
        if kind == "storeFull":
            # leaves no room in the pages that are there
            with pytest.raises(CallboardError):
                while True:
                    await on.host.log.transact(
                        lambda tx: tx.execute(
                            "INSERT INTO idempotency VALUES (?, '', '', '', '', '')",
                            tx.new_id("fill"),
                        )
                    )
        pause.open.set()
        began = loop.time()
    assert loop.time() - began < 5
    _is_sound(tmp_path)
    connection = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    connection.execute("DELETE FROM hosts")  # the process is this one, which still lives
    connection.close()
    async with stage(tmp_path) as on:
        records = await on.log(session_id)
        assert the_end(records).outcome == "interrupted"
        assert await owned(on.host) == 0
