"""The loop: models and tools that misbehave, steps and budgets, steers, queues."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from turns_kit import (
    Anything,
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
from turns_parent_kit import nothing_left

from callboard.host import Feature
from callboard.models.base import ModelError, Stop, ToolMessage, UsageReport, UserMessage
from callboard.sessions.telling import RunListener
from callboard.tools.base import ToolContext, ToolFailure, ToolOutcome
from callboard.turns.completion import CompletionHook
from callboard_rpc.common import Failure, Limits, Usage

pytestmark = pytest.mark.anyio


# --- models that misbehave ---------------------------------------------------------------------


async def test_a_stream_that_ends_early_fails_and_its_text_is_kept_as_partial(
    tmp_path: Path,
) -> None:
    async def scene(_: Any) -> Any:
        async for event in speaks("the beginning")(_):
            if not isinstance(event, Stop):
                yield event

    async with stage(tmp_path, scene) as on:
        _, records = await on.turn()
        end = the_end(records)
        assert (end.outcome, end.error.kind, end.error.retryable) == ("failed", "modelError", True)
        assert texts(records) == ["the beginning"]
        assert of(records, "message")[-1].partial


async def test_calls_of_an_answer_that_broke_off_are_not_run(tmp_path: Path) -> None:
    ran: list[str] = []

    async def act(_: ToolContext, arguments: Anything) -> ToolOutcome:
        ran.append(arguments.text)
        return ToolOutcome(text="ran")

    async def scene(_: Any) -> Any:
        async for event in calls(("act", {"text": "x"}), text="I will")(_):
            if not isinstance(event, Stop):
                yield event

    async with stage(tmp_path, scene, tools=[tool("act", act)]) as on:
        _, records = await on.turn()
        assert (the_end(records).outcome, ran, results(records)) == ("failed", [], [])
        assert texts(records) == ["I will"]


async def test_two_calls_with_one_id_are_two_calls(tmp_path: Path) -> None:
    twice = calls(("look", {"text": "a"}), ("look", {"text": "b"}), ids=("same", "same"))
    async with stage(tmp_path, twice, tools=[tool("look", returns())]) as on:
        _, records = await on.turn()
        assert results(records) == [("look", "ok")] * 2
        assert len({call.call_id for call in of(records, "tool_call")}) == 2
        last = on.puppet.requests[-1].messages[-1]
        assert isinstance(last, ToolMessage)
        assert len({output.call_id for output in last.outputs}) == 2
        assert on.puppet.read() == ["ok a", "ok b"]


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("no_such_tool", {}, "There is no tool"),
        ("look", {"text": 7}, "text"),
        ("look", {"other": "x"}, "other"),
        ("look", "this is not JSON", "JSON"),
        ("look", "[1, 2]", "object"),
        ("look", '{"text": "cut', "JSON"),
        ("", {}, "There is no tool"),
        ("look\ud800\x00", {}, "There is no tool"),
    ],
)
async def test_a_call_that_cannot_be_run_is_a_result_that_says_why(
    tmp_path: Path, name: str, arguments: Any, says: str
) -> None:
    async with stage(tmp_path, calls((name, arguments)), tools=[tool("look", returns())]) as on:
        _, records = await on.turn()
        assert [status for _, status in results(records)] == ["error"]
        assert says in on.puppet.read()[0]
        assert the_end(records).outcome == "completed"


@pytest.mark.parametrize(
    ("fault", "status", "says"),
    [
        (ToolFailure("there is no such ticket"), "error", "there is no such ticket"),
        (RuntimeError("a secret place"), "error", "failed inside of Callboard"),
        (TimeoutError("of its own"), "error", "failed inside of Callboard"),
        (SystemExit(3), "error", "failed inside of Callboard"),
        (asyncio.CancelledError(), "error", "failed inside of Callboard"),
        (ExceptionGroup("several", [ValueError("a")]), "error", "failed inside of Callboard"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
async def test_a_tool_that_raises_is_a_result_and_the_turn_goes_on(
    tmp_path: Path, fault: BaseException, status: str, says: str
) -> None:
    async def act(_: ToolContext, __: Anything) -> ToolOutcome:
        raise fault

    async with stage(
        tmp_path,
        calls(("act", {}), ("look", {})),
        tools=[tool("act", act), tool("look", returns())],
    ) as on:
        _, records = await on.turn()
        assert results(records) == [("act", status), ("look", "ok")]
        assert says in on.puppet.read()[0]
        assert "a secret place" not in on.puppet.read()[0]
        assert the_end(records).outcome == "completed"


async def test_every_call_is_committed_before_it_takes_effect(tmp_path: Path) -> None:
    seen: list[int] = []

    async def act(context: ToolContext, __: Anything) -> ToolOutcome:
        rows = await on.host.log.query(
            "SELECT count(*) FROM open_calls WHERE session_id = ?", context.session
        )
        seen.append(rows[0][0])
        return ToolOutcome(text="done")

    async with stage(
        tmp_path, calls(("act", {"text": "1"}), ("act", {"text": "2"})), tools=[tool("act", act)]
    ) as on:
        _, records = await on.turn()
        assert seen == [2, 1]
        assert shape(records)[3:7] == ["tool_call", "tool_call", "tool_result", "tool_result"]


# --- retries -----------------------------------------------------------------------------------


async def test_execution_42_a_turn_logs_each_retry_and_then_succeeds(tmp_path: Path) -> None:
    broken = fails(retryable=True)
    async with stage(tmp_path, broken, speaks("at last")) as on:
        _, records = await on.turn()
        retried = of(records, "model_retried")
        assert [(each.attempt, each.error.kind) for each in retried] == [(1, "modelError")]
        assert 250 <= retried[0].delay_ms <= 500
        assert len(on.puppet.requests) == 2
        assert (the_end(records).outcome, texts(records)) == ("completed", ["at last"])


async def test_execution_42_a_failure_in_mid_stream_is_not_asked_again(tmp_path: Path) -> None:
    async with stage(tmp_path, fails(text="half", retryable=True)) as on:
        _, records = await on.turn()
        assert (len(on.puppet.requests), the_end(records).outcome) == (1, "failed")
        assert of(records, "model_retried") == []


async def test_execution_43_a_cancel_during_the_backoff_ends_at_once_as_cancelled(
    tmp_path: Path,
) -> None:
    async def overloaded(_: Any) -> Any:
        raise ModelError(
            Failure(kind="modelError", message="later", retryable=True, retry_after_ms=60_000)
        )
        yield

    async with stage(tmp_path, overloaded) as on:
        session_id = await on.session()
        with on.host.log.watching(session_id) as changed:
            await on.say(session_id, "go")
            while not of(await on.log(session_id), "model_retried"):
                await changed.wait()
                changed.clear()
        async with asyncio.timeout(2):
            await on.cancel(session_id)
            await on.idle(session_id)
        assert the_end(await on.log(session_id)).outcome == "cancelled"
        assert len(on.puppet.requests) == 1


# --- steps and budgets -------------------------------------------------------------------------


async def test_messaging_18_a_limit_of_three_is_three_tool_rounds_and_one_call_without_tools(
    tmp_path: Path,
) -> None:
    rounds = [calls(("look", {"text": str(n)})) for n in range(9)]
    rounds[3] = speaks("this is how far I came")
    async with stage(tmp_path, *rounds, tools=[tool("look", returns())]) as on:
        _, records = await on.turn(limits=Limits(turns=3))
        assert len(of(records, "tool_call")) == 3
        assert [request.allow_tools for request in on.puppet.requests] == [True, True, True, False]
        assert "all the steps" in on.puppet.heard()
        assert "all the steps" not in str([r.data for r in records])
        end = the_end(records)
        assert (end.outcome, end.final_text) == ("completed", "this is how far I came")


@pytest.mark.parametrize("last", ["empty", "fails", "calls"])
async def test_messaging_18_a_last_word_that_is_empty_or_fails_leaves_the_last_result(
    tmp_path: Path, last: str
) -> None:
    ending = {"empty": speaks(""), "fails": fails(), "calls": calls(("look", {"text": "more"}))}
    rounds = [calls(("look", {"text": "a"})), ending[last]]
    async with stage(tmp_path, *rounds, tools=[tool("look", returns("saw"))]) as on:
        _, records = await on.turn(limits=Limits(turns=1))
        end = the_end(records)
        assert (end.outcome, end.final_text) == ("completed", "saw a")
        assert len(of(records, "tool_call")) == 1


async def test_messaging_18_the_third_identical_set_of_calls_is_not_executed(
    tmp_path: Path,
) -> None:
    ran: list[str] = []

    async def act(_: ToolContext, arguments: Anything) -> ToolOutcome:
        ran.append(arguments.text)
        return ToolOutcome(text="same")

    one, two = ("act", {"text": "a"}), ("act", {"text": "b"})
    rounds = [calls(one, two), calls(("act", {"text": "c"})), calls(two, one), calls(one, two)]
    async with stage(tmp_path, *rounds, tools=[tool("act", act)]) as on:
        _, records = await on.turn()
        assert ran == ["a", "b", "c", "b", "a"]
        assert [status for _, status in results(records)] == ["ok"] * 5 + ["error"] * 2
        assert "same calls three times" in on.puppet.heard().splitlines()[-1]
        assert on.puppet.requests[-1].allow_tools is False
        assert the_end(records).final_text == "done."


async def test_the_same_calls_after_a_changed_file_are_no_loop(tmp_path: Path) -> None:
    check = ("check", {})
    rounds = [
        part
        for n in range(4)
        for part in (calls(check), calls(("write_file", {"path": "a.txt", "content": str(n)})))
    ]
    async with stage(tmp_path, *rounds, tools=[tool("check", returns())], allow=True) as on:
        _, records = await on.turn()
        assert results(records) == [("check", "ok"), ("write_file", "ok")] * 4


async def test_a_turn_that_has_spent_its_tokens_fails_with_the_budgets_error(
    tmp_path: Path,
) -> None:
    spent = Usage(requests=1, input_tokens=900, output_tokens=200)

    async def scene(_: Any) -> Any:
        yield UsageReport(usage=spent)
        async for event in calls(("look", {}))(_):
            yield event

    async with stage(tmp_path, scene, tools=[tool("look", returns())]) as on:
        _, records = await on.turn(limits=Limits(tokens=1000))
        end = the_end(records)
        assert (end.outcome, end.error.kind) == ("failed", "budgetExceeded")
        assert results(records) == [("look", "ok")]
        assert len(on.puppet.requests) == 1


# --- what arrives while it is busy -------------------------------------------------------------


async def test_messaging_18_a_message_while_busy_is_answered_in_a_second_run(
    tmp_path: Path,
) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause, "the first answer"), speaks("the second")) as on:
        session_id = await on.session()
        await on.say(session_id, "the first question")
        await pause.came()
        assert (await on.say(session_id, "the second question")).outcome == "queued"
        pause.open.set()
        await on.idle(session_id)
        records = await on.log(session_id)
        assert texts(records) == ["the first answer", "the second"]
        assert "the second question" not in on.puppet.heard(0)
        assert "the first question" in on.puppet.heard(1)
        assert "the second question" in on.puppet.heard(1)


async def test_messaging_18_twenty_posts_during_one_slow_run_make_exactly_one_more(
    tmp_path: Path,
) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause, "slow"), speaks("all of them")) as on:
        session_id = await on.session()
        await on.say(session_id, "first")
        await pause.came()
        posted = await asyncio.gather(*(on.say(session_id, f"number {n}") for n in range(20)))
        assert {each.outcome for each in posted} == {"queued"}
        pause.open.set()
        await on.idle(session_id)
        records = await on.log(session_id)
        assert len(of(records, "turn_started")) == 2
        admitted = [seq for ack in of(records, "ack") for seq in ack.admits]
        assert sorted(admitted) == [r.seq for r in records if r.type == "message"][:1] + sorted(
            each.record.seq for each in posted
        )
        assert of(records, "turn_finished")[-1].answered_through == max(admitted)
        assert all(f"number {n}" in on.puppet.heard() for n in range(20))


async def test_interrupts_61_posts_at_every_moment_are_all_answered_exactly_once(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as on:
        session_id = await on.session()
        for n in range(60):
            await on.say(session_id, f"number {n}", delivery="steer" if n % 3 == 0 else "queue")
            for _ in range(n % 7):
                await asyncio.sleep(0)
        await on.idle(session_id)
        records = await on.log(session_id)
        admitted = [seq for ack in of(records, "ack") for seq in ack.admits]
        said = [r.seq for r in records if r.type == "message" and r.value.author.kind == "person"]
        assert sorted(admitted) == said
        assert all(f"number {n}" in on.puppet.heard() for n in range(60))
        assert await owned(on.host) == 0


async def test_messaging_18_a_steer_reaches_the_running_turn_and_gives_way_to_it(
    tmp_path: Path,
) -> None:
    pause = Pause()
    ran: list[str] = []

    async def act(_: ToolContext, arguments: Anything) -> ToolOutcome:
        ran.append(arguments.text)
        if arguments.text == "1":
            await pause.here()
        return ToolOutcome(text=f"ran {arguments.text}")

    three = calls(*(("act", {"text": str(n)}) for n in (1, 2, 3)))
    async with stage(tmp_path, three, tools=[tool("act", act)]) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await pause.came()
        assert (await on.say(session_id, "stop that", delivery="steer")).outcome == "steered"
        pause.open.set()
        await on.idle(session_id)
        records = await on.log(session_id)
        assert ran == ["1"]
        assert results(records) == [("act", "ok"), ("act", "superseded"), ("act", "superseded")]
        assert "stop that" in on.puppet.heard()
        assert len(of(records, "turn_started")) == 1


async def test_a_steer_that_was_taken_in_supersedes_nothing_later(tmp_path: Path) -> None:
    """Between the boundary's commit and its news a steer must not count as new once more."""
    rounds = [calls(("act", {"text": str(n)})) for n in range(30)]
    async with stage(tmp_path, *rounds, tools=[tool("act", returns())]) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        for n in range(10):
            await on.say(session_id, f"steer {n}", delivery="steer")
        await on.idle(session_id)
        records = await on.log(session_id)
        taken: set[int] = set()
        fresh: set[int] = set()
        for record in records:
            if record.type == "message" and record.value.delivery == "steer":
                fresh.add(record.seq)
            elif record.type == "ack":
                taken |= set(record.value.admits)
            elif record.type == "tool_result" and record.value.status == "superseded":
                assert fresh - taken, record.seq
        assert fresh <= taken


async def test_coordination_59_a_steer_into_the_last_answer_extends_the_turn(
    tmp_path: Path,
) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause, "my last word"), speaks("one more thing")) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await pause.came()
        assert (await on.say(session_id, "wait", delivery="steer")).outcome == "steered"
        pause.open.set()
        await on.idle(session_id)
        records = await on.log(session_id)
        assert texts(records) == ["my last word", "one more thing"]
        said = [m for m in of(records, "message") if m.author.kind == "agent"]
        assert [m.final for m in said] == [False, True]
        assert len(of(records, "turn_started")) == 1
        assert the_end(records).final_text == "one more thing"


# --- leaks -------------------------------------------------------------------------------------


async def test_execution_52_a_thousand_turns_leave_nothing_behind(tmp_path: Path) -> None:
    told: list[str] = []

    async def hears(turn: Any) -> None:
        told.append(turn.turn_id)

    async def says(_: Any, __: Any) -> list[Any]:
        return []

    feature = Feature(
        name="waiting",
        completion=(CompletionHook(name="says", run=says),),
        listeners=lambda _: (RunListener(name="hears", told=hears),),
    )

    async def scene(request: Any) -> Any:
        last = request.messages[-1]
        if isinstance(last, UserMessage):
            play = [calls(("act", {})), fails(), speaks("x")][len(request.messages) % 3]
        else:
            play = speaks("done.")
        async for event in play(request):
            yield event

    async def hundred(on: Any, session_id: str) -> None:
        for _ in range(100):
            await on.say(session_id, "again")
            await on.idle(session_id)

    async with stage(tmp_path, tools=[tool("act", returns())], features=[feature]) as on:
        sessions = [(await on.turn())[0] for _ in range(10)]
        on.puppet.scenes = [scene] * 3_000
        tasks = len(asyncio.all_tasks())
        await asyncio.gather(*(hundred(on, session_id) for session_id in sessions))
        dispatcher = on.host.dispatcher
        assert dispatcher.running == 0
        assert [dispatcher.live(session_id) for session_id in sessions] == [None] * 10
        assert await owned(on.host) == 0
        async with asyncio.timeout(20):
            while len(told) < 1_010 or len(asyncio.all_tasks()) > tasks:
                await asyncio.sleep(0)
        assert len(set(told)) == len(told) == 1_010
        await nothing_left(on.host)  # that the last one was told is noted after it was
        for table, left in {"owners": 10, "drafts": 0, "open_calls": 0, "runs_to_tell": 0}.items():
            assert (await on.host.log.query(f"SELECT count(*) FROM {table}"))[0][0] == left
