"""specs/execution.md 14-16, 19, 20: what is done between a run's outcome and its last commit."""

import asyncio
import logging
from collections.abc import Sequence
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
    shape,
    speaks,
    stage,
    texts,
    the_end,
)

from callboard.host import Feature
from callboard.turns.completion import (
    CANCELLED_TEXT,
    CompletionHook,
    RunOutcome,
    terminal_error,
)
from callboard.turns.reservation import Grant
from callboard_rpc.common import Failure
from callboard_rpc.events import Author, Summary

pytestmark = pytest.mark.anyio


def _note(text: str) -> Summary:
    return Summary(
        text=text, covers_through=0, author=Author(kind="system", name="hook"), reason="tool"
    )


def _feature(run: Any, *, name: str = "noting", limit_s: float = 10.0) -> Feature:
    return Feature(name=name, completion=(CompletionHook(name=name, run=run, limit_s=limit_s),))


def _notes(records: Sequence[Any]) -> list[str]:
    return [s.text for s in of(records, "summary")]


async def test_execution_19_a_completion_hook_is_told_once_before_the_last_commit_and_is_part_of_it(
    tmp_path: Path,
) -> None:
    told: list[tuple[str, RunOutcome, list[str]]] = []
    commits: list[list[str]] = []

    async def run(grant: Grant, outcome: RunOutcome) -> Sequence[Any]:
        told.append((grant.turn_id, outcome, shape(await on.log(grant.session_id))))
        return [_note("one"), _note("two")]

    async with stage(tmp_path, speaks("hello"), fails(), features=[_feature(run)]) as on:
        on.host.log.listen(lambda records: commits.append([r.type for r in records]))
        session_id, _ = await on.turn()
        await on.say(session_id, "again")
        await on.idle(session_id)
        records = await on.log(session_id)
        ends = of(records, "turn_finished")
        assert [(turn, outcome.success) for turn, outcome, _ in told] == [
            (ends[0].turn_id, True),
            (ends[1].turn_id, False),
        ]
        assert told[1][1] == RunOutcome(success=False, error="the model broke")
        # nothing of the end was in the log when the hook ran, and all of it is in one commit
        assert [seen[-1] for _, _, seen in told] == ["ack", "ack"]
        last = ["message", "summary", "summary", "turn_finished"]
        assert last in commits
        assert _notes(records) == ["one", "two"] * 2


async def test_execution_14_a_cancelled_run_is_told_as_such_with_one_fixed_text(
    tmp_path: Path,
) -> None:
    told: list[RunOutcome] = []

    async def run(_: Grant, outcome: RunOutcome) -> Sequence[Any]:
        told.append(outcome)
        return []

    pause = Pause()
    async with stage(tmp_path, pauses(pause, before=["half"]), features=[_feature(run)]) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await pause.came()
        await on.cancel(session_id, reason="the model broke")
        await on.idle(session_id)
        assert told == [RunOutcome(success=False, cancelled=True, error=CANCELLED_TEXT)]
        assert the_end(await on.log(session_id)).outcome == "cancelled"


@pytest.mark.parametrize("text", ["boom", "cancelled by the user", CANCELLED_TEXT])
def test_execution_14_15_the_terminal_error_goes_by_the_outcome_and_never_by_a_text(
    text: str,
) -> None:
    failure = Failure(kind="modelError", message=text)
    assert terminal_error("completed", failure) is None
    cancelled = terminal_error("cancelled", failure)
    assert cancelled is not None and cancelled.message == CANCELLED_TEXT
    for outcome in ("failed", "timed_out", "interrupted"):
        assert terminal_error(outcome, failure) is failure


async def test_execution_15_16_who_waits_is_told_of_a_failure_that_speaks_of_cancelling(
    tmp_path: Path,
) -> None:
    told: list[RunOutcome] = []

    async def run(_: Grant, outcome: RunOutcome) -> Sequence[Any]:
        told.append(outcome)
        return []

    async def breaks(_: Any) -> Any:
        raise RuntimeError("cancelled by the user")
        yield

    async with stage(tmp_path, breaks, speaks("fine"), features=[_feature(run)]) as on:
        session_id, _ = await on.turn()
        await on.say(session_id, "again")
        await on.idle(session_id)
        assert told == [
            RunOutcome(success=False, error="RuntimeError: cancelled by the user"),
            RunOutcome(success=True),
        ]
        assert len(of(await on.log(session_id), "error")) == 1


@pytest.mark.parametrize("how", ["raises", "garbage", "cancels itself"])
async def test_execution_20_a_completion_hook_that_fails_says_nothing_and_the_run_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    async def broken(_: Grant, __: RunOutcome) -> Any:
        if how == "raises":
            raise OSError(28, "no space")
        if how == "cancels itself":
            raise asyncio.CancelledError
        return [_note("half"), object()]

    async def sound(_: Grant, __: RunOutcome) -> Sequence[Any]:
        return [_note("done")]

    both = [_feature(broken, name="broken"), _feature(sound)]
    with caplog.at_level(logging.ERROR):
        async with stage(tmp_path, speaks("hello"), features=both) as on:
            session_id, records = await on.turn()
            assert (the_end(records).outcome, texts(records)) == ("completed", ["hello"])
            assert _notes(records) == ["done"]
            assert [r.seq for r in records] == list(range(1, len(records) + 1))
            assert (await on.host.reading.session(session_id)).status == "idle"
            assert await owned(on.host) == 0
    assert "hook" in caplog.text


@pytest.mark.parametrize("stubborn", [False, True])
async def test_execution_20_a_completion_hook_that_hangs_is_cancelled_at_its_limit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, stubborn: bool
) -> None:
    cancelled = asyncio.Event()
    leave = asyncio.Event()

    async def hangs(_: Grant, __: RunOutcome) -> Sequence[Any]:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            if not stubborn:
                raise
        await leave.wait()
        return [_note("too late")]

    with caplog.at_level(logging.ERROR):
        async with stage(tmp_path, speaks("hello"), features=[_feature(hangs, limit_s=0.05)]) as on:
            _, records = await on.turn()
            assert cancelled.is_set()
            assert (the_end(records).outcome, _notes(records)) == ("completed", [])
            leave.set()
    assert "took longer than 0.05 s" in caplog.text


async def test_execution_19_what_is_said_while_a_hook_runs_starts_the_next_turn(
    tmp_path: Path,
) -> None:
    pause = Pause()
    told: list[bool] = []

    async def run(_: Grant, outcome: RunOutcome) -> Sequence[Any]:
        told.append(outcome.success)
        if len(told) == 1:
            await pause.here()
        return [_note(f"{len(told)}")]

    async with stage(
        tmp_path, speaks("first"), speaks("second"), features=[_feature(run, limit_s=30)]
    ) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await pause.came()
        steered = await on.say(session_id, "and this", delivery="steer")
        cancelled = await on.cancel(session_id)
        pause.open.set()
        await on.idle(session_id)
        records = await on.log(session_id)
        # the outcome was known: the cancel came too late, the steer starts the next turn
        assert (steered.outcome, cancelled.turn_id is not None) == ("queued", True)
        assert [end.outcome for end in of(records, "turn_finished")] == ["completed"] * 2
        assert told == [True, True]
        assert texts(records) == ["first", "second"]
        assert "and this" in on.puppet.heard()


async def test_execution_19_a_hook_waits_for_the_turn_that_takes_a_steer_in_at_its_end(
    tmp_path: Path,
) -> None:
    pause = Pause()
    told: list[bool] = []

    async def run(_: Grant, outcome: RunOutcome) -> Sequence[Any]:
        told.append(outcome.success)
        return []

    async with stage(
        tmp_path, pauses(pause, "first"), speaks("second"), features=[_feature(run)]
    ) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await pause.came()
        await on.say(session_id, "and this", delivery="steer")
        pause.open.set()
        await on.idle(session_id)
        records = await on.log(session_id)
        the_end(records)
        assert (told, texts(records)) == ([True], ["first", "second"])
        said = [m for m in of(records, "message") if m.author.kind == "agent"]
        assert [m.final for m in said] == [False, True]


async def test_execution_19_a_hook_runs_once_when_the_server_stops_meanwhile(
    tmp_path: Path,
) -> None:
    pause = Pause()
    told: list[bool] = []

    async def run(_: Grant, outcome: RunOutcome) -> Sequence[Any]:
        told.append(outcome.success)
        await pause.here()
        return [_note("said")]

    async with stage(tmp_path, speaks("hello"), features=[_feature(run, limit_s=30)]) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await pause.came()
        stopping = asyncio.create_task(on.host.stop("the server stopped"))
        pause.open.set()
        await stopping
        records = await on.log(session_id)
        assert (the_end(records).outcome, _notes(records), told) == ("completed", ["said"], [True])


async def test_execution_17_19_a_turn_that_is_parked_has_no_outcome_to_tell_of(
    tmp_path: Path,
) -> None:
    told: list[RunOutcome] = []

    async def run(_: Grant, outcome: RunOutcome) -> Sequence[Any]:
        told.append(outcome)
        return []

    asks = calls(("write_file", {"path": "a.txt", "content": "x"}))
    async with stage(tmp_path, asks, features=[_feature(run)]) as on:
        session_id = await on.session()
        with on.host.log.watching(session_id) as changed:
            await on.say(session_id, "go")
            while not of(await on.log(session_id), "approval_request"):
                await changed.wait()
                changed.clear()
    assert told == []
    async with stage(tmp_path, features=[_feature(run)]) as on:
        assert "turn_parked" in shape(await on.log(session_id))
        await on.cancel(session_id)
        await on.idle(session_id)
        await on.turn()
        # the parked turn was ended by a cancel, in one transaction and by no run: nobody ran it
        assert told == [RunOutcome(success=True)]
