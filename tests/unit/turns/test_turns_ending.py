"""specs/execution.md 7, 12-28: every turn has one end, whatever happens in it."""

import logging
from pathlib import Path
from typing import Any

import pytest
from turns_kit import (
    Pause,
    calls,
    fails,
    of,
    owned,
    pauses,
    results,
    returns,
    shape,
    speaks,
    stage,
    texts,
    the_end,
    tool,
)

from callboard.log.sqlite import sqlite3
from callboard.log.transaction import Transaction
from callboard.models.base import TextDelta, UsageReport
from callboard.sessions.projection import SQL as SESSION_SQL
from callboard.sessions.reading import session_of
from callboard.tools.base import ToolContext, ToolOutcome
from callboard.turns.finish import Ending
from callboard.turns.projection import SQL as TURN_SQL
from callboard.turns.projection import turn_of
from callboard.turns.reservation import SYSTEM, Grant
from callboard_rpc.common import UNSET, Limits, Usage
from callboard_rpc.events import Ack, Author, SessionUpdated, Summary
from harness.inside import CLIENT, host_in, idle, log_of, new_session, say

pytestmark = pytest.mark.anyio


async def test_messaging_18_one_prompt_one_run_one_reply_and_quiet(tmp_path: Path) -> None:
    async with stage(tmp_path, speaks("hello")) as on:
        session_id, records = await on.turn()
        assert shape(records) == ["message", "turn_started", "ack", "message", "turn_finished"]
        assert texts(records) == ["hello"]
        assert await on.host.dispatcher.wake(session_id) is None
        assert len(await on.log(session_id)) == len(records)
        assert len(on.puppet.requests) == 1


async def test_execution_12_a_prompt_returns_before_the_first_step_and_the_turn_ends_once(
    tmp_path: Path,
) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause, "hello")) as on:
        session_id = await on.session()
        posted = await on.say(session_id, "go")
        assert (posted.outcome, len(on.puppet.requests)) == ("started", 0)
        pause.open.set()
        await on.idle(session_id)
        end = the_end(await on.log(session_id))
        assert (end.turn_id, end.outcome, end.final_text) == (posted.turn_id, "completed", "hello")


@pytest.mark.parametrize(
    "fault",
    [
        ValueError("it broke"),
        KeyError("gone"),
        RecursionError(),
        StopAsyncIteration(),
        MemoryError(),
    ],
    ids=lambda fault: type(fault).__name__,
)
async def test_execution_13_whatever_a_model_raises_fails_the_turn_and_keeps_its_text(
    tmp_path: Path, fault: Exception
) -> None:
    async def scene(_: Any) -> Any:
        async for event in speaks("half an")(_):
            if hasattr(event, "reason"):
                raise fault
            yield event

    async with stage(tmp_path, scene) as on:
        session_id, records = await on.turn()
        end = the_end(records)
        assert (end.outcome, end.error.kind) == ("failed", "internal")
        assert len(of(records, "error")) == 1
        assert texts(records) == ["half an"]
        assert of(records, "message")[-1].partial
        assert await owned(on.host) == 0
        await on.say(session_id, "again")
        await on.idle(session_id)
        assert texts(await on.log(session_id))[-1] == "done."


async def test_execution_15_an_error_that_speaks_of_cancelling_is_still_a_failure(
    tmp_path: Path,
) -> None:
    async def scene(_: Any) -> Any:
        raise RuntimeError("the request was cancelled")
        yield

    async with stage(tmp_path, scene) as on:
        _, records = await on.turn()
        assert the_end(records).outcome == "failed"


async def test_messaging_18_a_failing_model_is_ack_then_error_and_stays_in_context(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, fails("modelError")) as on:
        session_id, records = await on.turn("the first question")
        assert shape(records) == ["message", "turn_started", "ack", "error", "turn_finished"]
        assert len(on.puppet.requests) == 1
        await on.say(session_id, "the second question")
        await on.idle(session_id)
        assert "the first question" in on.puppet.heard()
        assert "the second question" in on.puppet.heard()


async def test_execution_16_success_has_no_error_event_and_clears_the_last_outcome(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, fails()) as on:
        session_id, _ = await on.turn()
        assert (await on.host.reading.session(session_id)).last_outcome == "failed"
        await on.say(session_id, "again")
        await on.idle(session_id)
        session = await on.host.reading.session(session_id)
        turn = await on.host.reading.last_turn(session_id)
        assert (session.last_outcome, turn.state, turn.error) == ("completed", "completed", None)
        assert len(of(await on.log(session_id), "error")) == 1


class Onlooker:
    """Whoever reads the store over a connection of their own: at each commit, in one snapshot, by the
    queries that the read models are made of."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)
        self.looks: list[tuple[int, str, tuple[str | None, ...]]] = []
        """Position of the commit, status of the session, and how its last turn ended: as the session
        says, as the turn says, as the log says."""

    def close(self) -> None:
        self._connection.close()

    def look(self, session_id: str) -> None:
        one = self._connection.execute
        one("BEGIN")
        session = session_of(one(SESSION_SQL["session"], (session_id,)).fetchone())
        row = one(TURN_SQL["last_turn"], (session_id,)).fetchone()
        ended = one(
            "SELECT json_extract(data, '$.outcome') FROM events "
            "WHERE session_id = ? AND type = 'turn_finished' ORDER BY seq DESC LIMIT 1",
            (session_id,),
        ).fetchone()
        (head,) = one("SELECT max(pos) FROM events").fetchone()
        one("COMMIT")
        turn = None if row is None else turn_of(row)
        assert session.active_turn_id == (turn.turn_id if turn and not turn.ended_at else None)
        ends = (session.last_outcome, turn and turn.state, ended and ended[0])
        self.looks.append((head, session.status, ends))


async def test_execution_18_not_running_and_last_status_appear_together(tmp_path: Path) -> None:
    hang, linger = Pause(), Pause()
    scenes = (speaks("one"), fails(), calls(("look", {})), speaks("two"), pauses(hang))
    tools = [tool("look", returns())]
    async with stage(tmp_path, *scenes, pauses(linger), tools=tools) as on:
        session_id = await on.session()
        onlooker = Onlooker(on.host.log.path)
        commits: list[int] = []

        def heard(records: list[Any]) -> None:
            commits.append(records[-1].pos)
            onlooker.look(session_id)

        stop = on.host.log.listen(heard)
        onlooker.look(session_id)
        for text in ("a", "b", "c"):
            await on.say(session_id, text)
            await on.idle(session_id)
        await on.say(session_id, "is cancelled, and something waits")
        await hang.came()
        await on.say(session_id, "is stopped by its limit", limits=Limits(timeout_ms=100))
        await on.cancel(session_id)
        await on.idle(session_id)
        stop()
        onlooker.close()
        seen = onlooker.looks[1:]
        assert [head for head, _, _ in seen] == commits  # each commit, by itself
        assert {status for _, status, _ in seen} == {"idle", "running"}
        idle_ends = [ends for _, status, ends in onlooker.looks if status == "idle"]
        assert [ends for ends in idle_ends if len(set(ends)) > 1] == []
        assert list(dict.fromkeys(ends[0] for ends in idle_ends)) == [
            None, "completed", "failed", "cancelled", "timed_out",
        ]  # fmt: skip


def _note(tx: Transaction, grant: Grant, text: str) -> None:
    tx.append(
        grant.session_id,
        Summary(
            text=text, covers_through=0, author=Author(kind="system", name="hook"), reason="tool"
        ),
        actor=SYSTEM,
        turn_id=grant.turn_id,
        fence=grant.fence,
    )


async def test_execution_19_a_hook_runs_once_with_the_outcome_and_writes_into_the_last_commit(
    tmp_path: Path,
) -> None:
    ran: list[tuple[str, str]] = []
    commits: list[list[str]] = []

    def hook(tx: Transaction, grant: Grant, ending: Ending) -> None:
        ran.append((grant.turn_id, ending.outcome))
        _note(tx, grant, ending.outcome)

    async with stage(tmp_path, speaks("one"), fails(), hooks=[hook]) as on:
        on.host.log.listen(lambda records: commits.append([r.type for r in records]))
        session_id, _ = await on.turn()
        await on.say(session_id, "again")
        await on.idle(session_id)
        records = await on.log(session_id)
        ends = of(records, "turn_finished")
        assert ran == [(end.turn_id, end.outcome) for end in ends]
        assert [s.text for s in of(records, "summary")] == ["completed", "failed"]
        for commit in commits:
            assert ("summary" in commit) == ("turn_finished" in commit)


async def test_execution_19_a_hook_runs_for_a_turn_that_could_not_be_built(tmp_path: Path) -> None:
    ran: list[str] = []
    async with stage(tmp_path, hooks=[lambda tx, grant, ending: ran.append(ending.outcome)]) as on:
        folder = tmp_path / "gone"
        folder.mkdir()
        session_id = await new_session(on.host, folder)
        folder.rmdir()
        await on.say(session_id, "go")
        await on.idle(session_id)
        end = the_end(await on.log(session_id))
        assert (end.outcome, end.error.kind, ran) == ("failed", "pathNotFound", ["failed"])


@pytest.mark.parametrize("fault", [RuntimeError("hook"), TimeoutError(), OSError(28, "no space")])
async def test_execution_20_a_hook_that_raises_is_logged_and_the_turn_ends_all_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: Exception
) -> None:
    after: list[str] = []

    def broken(tx: Transaction, grant: Grant, ending: Ending) -> None:
        _note(tx, grant, "half done")
        raise fault

    def sound(tx: Transaction, grant: Grant, ending: Ending) -> None:
        after.append(ending.outcome)
        _note(tx, grant, "done")

    with caplog.at_level(logging.ERROR):
        async with stage(tmp_path, speaks("hello"), hooks=[broken, sound]) as on:
            session_id, records = await on.turn()
            assert the_end(records).outcome == "completed"
            assert texts(records) == ["hello"]
            assert [s.text for s in of(records, "summary")] == ["done"]
            assert [r.seq for r in records] == list(range(1, len(records) + 1))
            assert (await on.host.reading.session(session_id)).status == "idle"
    assert after == ["completed"]
    assert "a hook failed at the end of turn" in caplog.text


async def test_execution_20_a_hook_with_wrong_sql_does_not_hold_up_the_end(tmp_path: Path) -> None:
    hooks = [lambda tx, grant, ending: tx.execute("INSERT INTO no_such_table VALUES (1)")]
    async with stage(tmp_path, speaks("hello"), hooks=hooks) as on:
        _, records = await on.turn()
        assert the_end(records).outcome == "completed"


async def test_execution_21_a_title_edited_during_a_turn_survives_its_end(tmp_path: Path) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause, "hello")) as on:
        session_id = await on.session(title="before")
        await on.say(session_id, "go")
        await pause.came()
        await on.host.sessions.update(
            session_id, by=CLIENT, title="after", pinned=True, metadata=UNSET, mode=UNSET,
            model=UNSET,
        )  # fmt: skip
        pause.open.set()
        await on.idle(session_id)
        session = await on.host.reading.session(session_id)
        assert (session.title, session.pinned, session.last_outcome) == ("after", True, "completed")


async def test_execution_22_a_turns_end_comes_before_all_of_its_successor(tmp_path: Path) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause, "one"), speaks("two")) as on:
        session_id = await on.session()
        await on.say(session_id, "a")
        await pause.came()
        await on.say(session_id, "b")
        pause.open.set()
        await on.idle(session_id)
        records = await on.log(session_id)
        first, second = (e.turn_id for e in of(records, "turn_finished"))
        turns = [r.turn_id for r in records if r.turn_id is not None]
        assert turns == [first] * turns.count(first) + [second] * turns.count(second)


async def test_execution_26_a_turn_without_an_answer_exports_no_older_one(tmp_path: Path) -> None:
    async with stage(tmp_path, speaks("the old answer"), speaks("")) as on:
        session_id, _ = await on.turn()
        await on.say(session_id, "again")
        await on.idle(session_id)
        old, new = of(await on.log(session_id), "turn_finished")
        assert (old.final_text, new.final_text) == ("the old answer", None)


async def test_execution_27_a_runs_first_event_is_its_start_and_seq_has_no_gap_over_restarts(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, speaks("one"), fails()) as on:
        session_id, _ = await on.turn()
        await on.say(session_id, "b")
        await on.idle(session_id)
    async with stage(tmp_path, speaks("three")) as on:
        await on.say(session_id, "c")
        await on.idle(session_id)
        records = await on.log(session_id)
    assert [r.seq for r in records] == list(range(1, len(records) + 1))
    firsts: dict[str, str] = {}
    for record in records:
        if record.turn_id is not None:
            firsts.setdefault(record.turn_id, record.type)
    assert list(firsts.values()) == ["turn_started"] * 3


async def test_execution_28_a_late_watcher_sees_the_stream_that_the_turn_publishes_to(
    tmp_path: Path,
) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause, "late", before=["early "])) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await pause.came()
        heard: list[tuple[int, str]] = []
        on.host.deltas.listen(lambda delta: heard.append((delta.index, delta.text)))
        pause.open.set()
        await on.idle(session_id)
        assert heard == [(1, "late")]


async def test_interrupts_62_every_way_to_fail_ends_idle_with_one_terminal_event(
    tmp_path: Path,
) -> None:
    async def raises(_: ToolContext, __: Any) -> ToolOutcome:
        raise RuntimeError("inside")

    ways = [
        fails(),
        fails("contextWindowExceeded"),
        fails(text="half"),
        calls(("broken", {})),
        calls(("nothing", {})),
        calls(("broken", "not json")),
    ]
    async with stage(tmp_path, tools=[tool("broken", raises)]) as on:
        for way in ways:
            on.puppet.scenes = [way]
            session_id, records = await on.turn()
            the_end(records)
            assert records[-1].type == "turn_finished"
            assert (await on.host.reading.session(session_id)).status == "idle"
        assert await owned(on.host) == 0


async def test_an_unknown_model_fails_the_turn_and_not_the_prompt(tmp_path: Path) -> None:
    async with host_in(tmp_path, model="nobody/nothing") as host:
        session_id = await new_session(host, tmp_path)
        assert (await say(host, session_id, "go")).outcome == "started"
        await idle(host, session_id)
        end = the_end(await log_of(host, session_id))
        assert (end.outcome, end.error.kind) == ("failed", "modelUnavailable")


async def test_usage_of_a_turn_that_was_cut_off_is_what_was_reported_until_then(
    tmp_path: Path,
) -> None:
    pause = Pause()

    async def scene(_: Any) -> Any:
        yield UsageReport(usage=Usage(requests=1, input_tokens=70))
        yield TextDelta(text="half")
        await pause.here()

    async with stage(tmp_path, scene) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await pause.came()
        await on.cancel(session_id)
        await on.idle(session_id)
        assert the_end(await on.log(session_id)).usage.input_tokens == 70


async def test_execution_23_a_last_commit_that_fails_shows_nothing_of_itself(
    tmp_path: Path,
) -> None:
    """What the cache, the log and the readers know changes only after the commit."""
    cached: list[Any] = []
    told: list[str] = []

    def hook(tx: Transaction, grant: Grant, ending: Ending) -> None:
        cached.append(on.host.cache.read(grant.session_id))
        if len(cached) == 1:
            half = SessionUpdated(changes={"title": "half an end"})
            for data in (half, Ack(admits=())):
                tx.append(
                    grant.session_id, data, actor=SYSTEM, turn_id=grant.turn_id, fence=grant.fence
                )
            raise sqlite3.OperationalError("database or disk is full")

    async with stage(tmp_path, speaks("hello"), hooks=[hook]) as on:
        on.host.log.listen(lambda records: told.extend(r.type for r in records))
        session_id, records = await on.turn()
        end = the_end(records)
        # the answer that could not be committed is kept as cut off, and the fault is named
        assert (end.outcome, end.error.kind) == ("failed", "storeFull")
        assert texts(records) == ["hello"]
        assert len(of(records, "ack")) == 1
        assert told == [record.type for record in records]
        assert "session_updated" not in told
        before, after_the_failure = cached
        assert before is not None
        assert (before.title, await owned(on.host)) == ("go", 0)
        assert after_the_failure == before == on.host.cache.read(session_id)
        assert (await on.host.reading.session(session_id)).title == "go"


async def test_a_tool_result_is_there_before_the_next_request(tmp_path: Path) -> None:
    async with stage(
        tmp_path, calls(("look", {"text": "a"})), tools=[tool("look", returns("saw"))]
    ) as on:
        _, records = await on.turn()
        assert results(records) == [("look", "ok")]
        assert on.puppet.read() == ["saw a"]
