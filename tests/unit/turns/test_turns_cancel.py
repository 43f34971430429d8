"""Cancelling, at every place in which a turn can be."""

import asyncio
import contextlib
import os
from pathlib import Path
from typing import Any

import psutil
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
from callboard.turns.live import Cause
from callboard_rpc.errors import CallboardError
from harness.inside import CLIENT

pytestmark = pytest.mark.anyio


async def _event(on: Stage, session_id: str, kind: str) -> Any:
    with on.host.log.watching(session_id) as changed:
        async with asyncio.timeout(20):
            while True:
                found = of(await on.log(session_id), kind)
                if found:
                    return found[-1]
                await changed.wait()
                changed.clear()


async def _is_usable(on: Stage, session_id: str) -> None:
    """The next prompt is answered as if nothing had been."""
    on.puppet.scenes = [speaks("and on we go")]
    await on.say(session_id, "next")
    await on.idle(session_id)
    assert texts(await on.log(session_id))[-1] == "and on we go"
    assert await owned(on.host) == 0


async def test_execution_14_a_cancel_in_mid_stream_ends_cancelled_and_keeps_the_text(
    tmp_path: Path,
) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause, before=["what I have ", "so far"])) as on:
        session_id = await on.session()
        posted = await on.say(session_id, "go")
        await pause.came()
        assert (await on.cancel(session_id)).turn_id == posted.turn_id
        await on.idle(session_id)
        records = await on.log(session_id)
        end = the_end(records)
        assert (end.outcome, end.error) == ("cancelled", None)
        assert of(records, "error") == []
        assert texts(records) == ["what I have so far"]
        assert of(records, "message")[-1].partial
        assert (await on.host.log.query("SELECT count(*) FROM drafts"))[0][0] == 0
        await _is_usable(on, session_id)


async def test_a_cancel_before_the_first_token_says_nothing(tmp_path: Path) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause)) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await pause.came()
        await on.cancel(session_id)
        await on.idle(session_id)
        records = await on.log(session_id)
        assert (the_end(records).outcome, texts(records)) == ("cancelled", [])
        await _is_usable(on, session_id)


async def test_a_cancel_as_soon_as_the_turn_is_in_the_log_is_never_missed(tmp_path: Path) -> None:
    """Whoever sees the turn can stop it, before its task has even begun."""
    for yields in range(8):
        pause = Pause()
        folder = tmp_path / str(yields)
        folder.mkdir()
        async with stage(folder, pauses(pause)) as on:
            session_id = await on.session()
            prompt = asyncio.ensure_future(on.say(session_id, "go"))
            while not of(await on.log(session_id), "turn_started"):
                pass
            for _ in range(yields):
                await asyncio.sleep(0)
            assert (await on.cancel(session_id)).turn_id is not None
            await prompt
            async with asyncio.timeout(5):
                await on.idle(session_id)
            assert the_end(await on.log(session_id)).outcome == "cancelled"


async def test_a_cancel_in_the_same_commit_as_the_start_is_not_missed(tmp_path: Path) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause)) as on:
        session_id = await on.session()
        cancelled: list[asyncio.Task[Any]] = []

        def heard(records: list[Any]) -> None:
            if any(record.type == "turn_started" for record in records):
                live = on.host.dispatcher.live(session_id)
                assert live is not None
                cancelled.append(asyncio.ensure_future(on.cancel(session_id)))

        on.host.log.listen(heard)
        await on.say(session_id, "go")
        async with asyncio.timeout(5):
            await on.idle(session_id)
        assert the_end(await on.log(session_id)).outcome == "cancelled"
        await asyncio.gather(*cancelled)


async def test_messaging_18_a_cancel_during_a_command_ends_its_whole_process_group(
    tmp_path: Path,
) -> None:
    mark = f"61.{os.getpid()}"
    command = f"sleep {mark} & sleep {mark}; wait"
    async with stage(tmp_path, calls(("run_command", {"command": command})), allow=True) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await _event(on, session_id, "tool_call")
        while len(_running(mark)) < 2:
            await asyncio.sleep(0.01)
        loop = asyncio.get_running_loop()
        began = loop.time()
        await on.cancel(session_id)
        await on.idle(session_id)
        assert loop.time() - began < 3
        records = await on.log(session_id)
        assert (the_end(records).outcome, results(records)) == (
            "cancelled",
            [("run_command", "cancelled")],
        )
        assert _running(mark) == []
        await _is_usable(on, session_id)


def _running(mark: str) -> list[int]:
    return [
        process.pid
        for process in psutil.process_iter(["cmdline", "status"])
        if process.info["cmdline"] == ["sleep", mark]
        and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


async def test_a_cancel_while_an_approval_waits_resolves_it_and_runs_nothing(
    tmp_path: Path,
) -> None:
    two = calls(
        ("write_file", {"path": "a.txt", "content": "x"}),
        ("write_file", {"path": "b.txt", "content": "x"}),
    )
    async with stage(tmp_path, two) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        request = await _event(on, session_id, "approval_request")
        await on.cancel(session_id, reason="changed my mind")
        await on.idle(session_id)
        records = await on.log(session_id)
        assert the_end(records).outcome == "cancelled"
        assert results(records) == [("write_file", "cancelled")] * 2
        decisions = of(records, "approval_decision")
        assert [d.resolution.outcome for d in decisions] == ["cancelled"] * 2
        assert decisions[0].resolution.by == CLIENT
        assert not list(tmp_path.glob("*.txt"))
        with pytest.raises(CallboardError) as late:
            await on.host.approvals.answer(
                request.approval.approval_id,
                request.approval.options[0].option_id,
                by=CLIENT,
                via="client",
            )
        assert late.value.kind == "alreadyResolved"
        assert on.host.approvals._waiting == {}
        await _is_usable(on, session_id)


async def test_a_second_cancel_changes_nothing(tmp_path: Path) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause)) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await pause.came()
        await asyncio.gather(*(on.cancel(session_id) for _ in range(3)))
        await on.idle(session_id)
        assert (await on.cancel(session_id)).turn_id is None
        assert the_end(await on.log(session_id)).outcome == "cancelled"


async def test_a_cancel_stops_the_turn_that_it_names_and_not_the_one_after_it(
    tmp_path: Path,
) -> None:
    first, second = Pause(), Pause()
    async with stage(tmp_path, pauses(first), pauses(second, "undisturbed")) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await first.came()
        await on.say(session_id, "and then")
        transact = on.host.log.transact

        async def late(function: Any) -> Any:
            result = await transact(function)
            if "_cancel" in function.__qualname__:
                await second.came()
            return result

        on.host.log.transact = late  # type: ignore[method-assign]
        await on.cancel(session_id)
        second.open.set()
        await on.idle(session_id)
        ends = of(await on.log(session_id), "turn_finished")
        assert [end.outcome for end in ends] == ["cancelled", "completed"]


async def test_a_tool_that_ignores_the_cancel_is_left_behind_after_the_grace(
    tmp_path: Path,
) -> None:
    pause = Pause()
    left = asyncio.Event()

    async def stubborn(context: ToolContext, __: Anything) -> ToolOutcome:
        pause.reached.set()
        while not pause.open.is_set():
            try:
                await pause.open.wait()
            except asyncio.CancelledError:
                continue
        left.set()
        return ToolOutcome(text="too late")

    grace = {"CALLBOARD_LIMITS_CANCEL_GRACE_S": "0.2"}
    two = calls(("stubborn", {}), ("look", {}))
    tools = [tool("stubborn", stubborn), tool("look", returns())]
    async with stage(tmp_path, two, tools=tools, environ=grace) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await pause.came()
        async with asyncio.timeout(3):
            await on.cancel(session_id)
            await on.idle(session_id)
        ended = await on.log(session_id)
        assert the_end(ended).outcome == "cancelled"
        assert results(ended) == [("stubborn", "cancelled"), ("look", "cancelled")]
        # what it does later reaches neither the log nor the next turn (execution 8)
        pause.open.set()
        await left.wait()
        await on.host.log.transact(lambda tx: None)
        assert len(await on.log(session_id)) == len(ended)
        await _is_usable(on, session_id)


async def test_a_tool_that_swallows_the_cancel_keeps_its_result_and_nothing_follows(
    tmp_path: Path,
) -> None:
    pause = Pause()

    async def swallows(context: ToolContext, __: Anything) -> ToolOutcome:
        try:
            await pause.here()
        except asyncio.CancelledError:
            return ToolOutcome(text="I was done anyway")
        raise AssertionError("not cancelled")

    two = calls(("swallows", {}), ("look", {}))
    tools = [tool("swallows", swallows), tool("look", returns())]
    async with stage(tmp_path, two, tools=tools) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await pause.came()
        await on.cancel(session_id)
        await on.idle(session_id)
        records = await on.log(session_id)
        assert the_end(records).outcome == "cancelled"
        assert results(records) == [("swallows", "ok"), ("look", "cancelled")]
        assert len(on.puppet.requests) == 1


async def test_a_model_that_swallows_the_cancel_does_not_complete_the_turn(
    tmp_path: Path,
) -> None:
    pause = Pause()

    async def scene(_: Any) -> Any:
        with contextlib.suppress(asyncio.CancelledError):
            await pause.here()
        async for event in speaks("as if nothing was")(_):
            yield event

    async with stage(tmp_path, scene) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await pause.came()
        await on.cancel(session_id)
        await on.idle(session_id)
        records = await on.log(session_id)
        assert the_end(records).outcome == "cancelled"
        assert [m.partial for m in of(records, "message")][1:] == [True]


@pytest.mark.parametrize("said", ["before its calls", "before a steer"])
async def test_a_cancel_at_the_commit_of_an_answer_says_nothing_twice(
    tmp_path: Path, said: str
) -> None:
    """A commit cannot be called back: what it said is not said again as cut off."""
    pause = Pause()
    scenes = {
        "before its calls": calls(("look", {"text": "a"}), text="my answer"),
        "before a steer": pauses(pause, "my answer"),
    }
    async with stage(tmp_path, scenes[said], tools=[tool("look", returns())]) as on:
        session_id = await on.session()

        def heard(records: list[Any]) -> None:
            for record in records:
                if record.type == "message" and record.value.author.kind == "agent":
                    live = on.host.dispatcher.live(session_id)
                    if live is not None:
                        live.stop(Cause(outcome="cancelled", by=CLIENT, reason="now"))

        on.host.log.listen(heard)
        await on.say(session_id, "go")
        if said == "before a steer":
            await pause.came()
            await on.say(session_id, "one more", delivery="steer")
            pause.open.set()
        await on.idle(session_id)
        records = await on.log(session_id)
        results(records)
        assert of(records, "turn_finished")[0].outcome == "cancelled"
        assert texts(records)[:1] == ["my answer"]
        assert texts(records).count("my answer") == 1


async def test_interrupts_76_deleting_a_session_stops_its_turn_first(tmp_path: Path) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause)) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await pause.came()
        seen: list[str] = []
        on.host.log.listen(lambda records: seen.extend(r.type for r in records))
        assert await on.host.sessions.delete(session_id, by=CLIENT)
        assert seen == ["cancel_requested", "turn_finished", "session_deleted"]
        assert (on.host.dispatcher.running, await owned(on.host)) == (0, 0)
        assert (await on.host.log.query("PRAGMA foreign_key_check")) == []
        with pytest.raises(CallboardError) as gone:
            await on.say(session_id, "still there?")
        assert gone.value.kind == "sessionNotFound"


async def test_stopping_the_host_interrupts_its_turns_and_a_restart_runs_nothing_again(
    tmp_path: Path,
) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause, before=["half"])) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await pause.came()
        await on.say(session_id, "queued meanwhile")
    async with stage(tmp_path, speaks("the queue")) as on:
        await on.idle(session_id)
        records = await on.log(session_id)
        assert [e.outcome for e in of(records, "turn_finished")] == ["interrupted", "completed"]
        assert texts(records) == ["half", "the queue"]
        assert len(on.puppet.requests) == 1


async def test_stopping_the_host_does_not_wait_for_a_tool_that_ignores_it(tmp_path: Path) -> None:
    pause = Pause()

    async def stubborn(context: ToolContext, __: Anything) -> ToolOutcome:
        pause.reached.set()
        while not pause.open.is_set():
            try:
                await pause.open.wait()
            except asyncio.CancelledError:
                continue
        return ToolOutcome(text="too late")

    loop = asyncio.get_running_loop()
    async with stage(tmp_path, calls(("stubborn", {})), tools=[tool("stubborn", stubborn)]) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await pause.came()
        began = loop.time()
    assert loop.time() - began < 3
    pause.open.set()
    async with stage(tmp_path) as on:
        records = await on.log(session_id)
        assert the_end(records).outcome == "interrupted"
        assert results(records) == [("stubborn", "interrupted")]
