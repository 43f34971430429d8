"""specs/execution.md 50: the person's own commands at the turning points of a turn."""

import asyncio
import contextlib
import logging
import os
import shlex
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest
from turns_kit import (
    PATIENCE_S,
    Pause,
    calls,
    fails,
    of,
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

from callboard.turns.live import Cause
from callboard.turns.reservation import SYSTEM
from callboard_rpc.common import TextContent
from callboard_rpc.errors import CallboardError
from harness.inside import CLIENT, PERSON

pytestmark = pytest.mark.anyio


def hooks(folder: Path, **events: str | list[Any]) -> None:
    """Writes a configuration with hooks: by event, a command line, several, or whole tables."""
    config = folder / "config"
    config.mkdir(exist_ok=True)
    lines = ['[approvals.policy]\nexecute = "allow"\nwrite = "ask"\n']
    for event, given in events.items():
        for each in [given] if isinstance(given, str) else given:
            table = each if isinstance(each, dict) else {"command": each}
            lines.append(f"[[hooks.{event}]]")
            lines += [f"{key} = {orjson.dumps(value).decode()}" for key, value in table.items()]
    (config / "config.toml").write_text("\n".join(lines) + "\n", "utf-8")


def script(folder: Path, name: str, text: str) -> str:
    """A script beside the configuration; how it is called from there."""
    config = folder / "config"
    config.mkdir(exist_ok=True)
    (config / name).write_text(f"#!/bin/sh\n{text}\n", "utf-8")
    (config / name).chmod(0o700)
    return f"./{name}"


class Told:
    """What hooks were told, by way of a pipe: a test waits for them and for nothing else."""

    def __init__(self, folder: Path, name: str = "told") -> None:
        self.path = folder / name
        os.mkfifo(self.path)
        self.command = f"cat > {shlex.quote(str(self.path))}"

    async def next(self) -> Any:
        async with asyncio.timeout(PATIENCE_S):
            return orjson.loads(await asyncio.to_thread(self.path.read_bytes))


WRITES = calls(("note", {"text": "x"}))


def _running_in(folder: Path) -> list[int]:
    """Processes that were started by hooks of this test."""
    found: list[int] = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("CALLBOARD_CWD") == str(folder):
                found.append(process.pid)
    return found


def noting(ran: list[str]) -> Any:
    async def act(_: Any, arguments: Any) -> Any:
        ran.append(arguments.text)
        return await returns("noted")(_, arguments)

    return tool("note", act, effect="kernel")


# --- before and after a call ----------------------------------------------------------------------


async def test_execution_50_exit_two_before_a_call_blocks_it_with_stderr(tmp_path: Path) -> None:
    ran: list[str] = []
    hooks(tmp_path, pre_tool_use="echo not on a Friday >&2; exit 2")
    async with stage(tmp_path, WRITES, tools=[noting(ran)]) as on:
        _, records = await on.turn()
        assert ran == []
        assert results(records) == [("note", "denied")]
        assert "not on a Friday" in on.puppet.read(1)[0]
        assert the_end(records).outcome == "completed"


@pytest.mark.parametrize(
    "command",
    [
        "echo broken >&2; exit 1",
        {"command": "sleep 60", "timeout_ms": 50},
        "echo this is no JSON",
        "echo '[1]'",
        "head -c 100000 /dev/zero",
        ["./is-not-there", "word"],
        {"command": "echo block >&2; exit 2", "match": "run_*"},
        "kill -9 $$",
    ],
)
async def test_execution_50_a_hook_that_fails_lets_the_call_proceed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, command: Any
) -> None:
    ran: list[str] = []
    table = command if isinstance(command, dict) else {"command": command}
    hooks(tmp_path, pre_tool_use=[table])
    with caplog.at_level(logging.WARNING):
        async with stage(tmp_path, WRITES, tools=[noting(ran)]) as on:
            _, records = await on.turn()
            assert (ran, results(records)) == (["x"], [("note", "ok")])
    assert ("PreToolUse hook of session" in caplog.text) == ("match" not in table)


async def test_execution_50_a_call_that_a_hook_blocks_takes_its_question_back(
    tmp_path: Path,
) -> None:
    told = Told(tmp_path)
    hooks(
        tmp_path,
        pre_tool_use=[{"command": "exit 2", "match": "write_file"}],
        notification=told.command,
    )
    asks = calls(("write_file", {"path": "a.txt", "content": "x"}))
    async with stage(tmp_path, asks) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        heard = await told.next()
        await on.idle(session_id)
        records = await on.log(session_id)
        approval = of(records, "approval_request")[0].approval
        assert (heard["kind"], heard["approvalId"]) == ("approval", approval.approval_id)
        assert [d.resolution.outcome for d in of(records, "approval_decision")] == ["cancelled"]
        assert results(records) == [("write_file", "denied")]
        assert not (tmp_path / "a.txt").exists()


async def test_execution_50_a_read_waits_for_its_hook_too(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("the secret", "utf-8")
    hooks(tmp_path, pre_tool_use="echo no >&2; exit 2")
    async with stage(tmp_path, calls(("read_file", {"path": "secret.txt"}))) as on:
        _, records = await on.turn()
        assert results(records) == [("read_file", "denied")]
        assert "the secret" not in on.puppet.read(1)[0]


async def test_execution_50_what_hooks_say_of_a_call_that_ran_reaches_the_model(
    tmp_path: Path,
) -> None:
    ran: list[str] = []
    hooks(
        tmp_path,
        post_tool_use=[
            """echo '{"context": "the linter is happy"}'""",
            "echo two tests fail >&2; exit 2",
            "echo never asked >&2; exit 2",
        ],
    )
    async with stage(tmp_path, WRITES, tools=[noting(ran)]) as on:
        _, records = await on.turn()
        text = on.puppet.read(1)[0]
        assert text.startswith("noted x")
        assert "the linter is happy" in text
        assert "two tests fail" in text
        assert "never asked" not in text
        assert results(records) == [("note", "ok")]


async def test_a_cancel_during_a_hook_after_a_call_keeps_its_result(tmp_path: Path) -> None:
    ran: list[str] = []
    told = Told(tmp_path)
    hooks(tmp_path, post_tool_use=f"{told.command}; sleep 60")
    async with stage(tmp_path, WRITES, tools=[noting(ran)]) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        heard = await told.next()
        assert (heard["status"], heard["output"]) == ("ok", "noted x")
        await on.cancel(session_id)
        await on.idle(session_id)
        records = await on.log(session_id)
        assert (the_end(records).outcome, results(records)) == ("cancelled", [("note", "ok")])


# --- how they are run -----------------------------------------------------------------------------


async def test_execution_50_a_hook_is_told_what_happens_and_sees_no_secret(tmp_path: Path) -> None:
    ran: list[str] = []
    told = Told(tmp_path)
    seen = tmp_path / "seen"
    look = script(
        tmp_path, "look", f"env > {shlex.quote(str(seen))}; pwd >> {seen}; {told.command}"
    )
    hooks(tmp_path, pre_tool_use=[[look]])
    environ = {"MY_API_KEY": "sk-very-secret-0123456789", "LANG": "C"}
    call = calls(("note", {"text": "with sk-very-secret-0123456789 in it"}))
    async with stage(tmp_path, call, tools=[noting(ran)], environ=environ) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        heard = await told.next()
        await on.idle(session_id)
        call_id = of(await on.log(session_id), "tool_call")[0].call_id
        end = the_end(await on.log(session_id))
    assert heard["event"] == "PreToolUse"
    assert (heard["sessionId"], heard["turnId"]) == (session_id, end.turn_id)
    assert (heard["tool"], heard["callId"], heard["cwd"]) == ("note", call_id, str(tmp_path))
    assert heard["arguments"]["text"].startswith("with ")
    assert "very-secret" not in orjson.dumps(heard).decode()
    environment = seen.read_text("utf-8")
    assert "very-secret" not in environment
    assert f"CALLBOARD_CWD={tmp_path}" in environment
    # beside the configuration, not in the workspace: a relative path never names what lies there
    assert environment.splitlines()[-1] == str(tmp_path / "config")


async def test_execution_50_hooks_run_in_order_up_to_the_first_objection(tmp_path: Path) -> None:
    ran: list[str] = []
    order = tmp_path / "order"
    lines = [f"echo {n} >> {shlex.quote(str(order))}" for n in range(4)]
    lines[2] += "; exit 2"
    hooks(tmp_path, pre_tool_use=lines)
    async with stage(tmp_path, WRITES, tools=[noting(ran)]) as on:
        await on.turn()
    assert order.read_text("utf-8").split() == ["0", "1", "2"]


async def test_execution_50_a_hook_that_takes_too_long_is_ended_as_a_tree(tmp_path: Path) -> None:
    ran: list[str] = []
    numbers = tmp_path / "numbers"
    line = f"echo $$ > {numbers}; sleep 600 & echo $! >> {numbers}; setsid sleep 600 & wait"
    hooks(tmp_path, pre_tool_use=[{"command": line, "timeout_ms": 300}])
    async with stage(tmp_path, WRITES, tools=[noting(ran)]) as on:
        _, records = await on.turn()
        assert results(records) == [("note", "ok")]
    assert len(numbers.read_text("utf-8").split()) == 2
    assert _running_in(tmp_path) == []


async def test_execution_50_a_cancel_ends_a_hook_with_its_turn(tmp_path: Path) -> None:
    ran: list[str] = []
    told = Told(tmp_path)
    hooks(tmp_path, pre_tool_use=f"{told.command}; sleep 600")
    async with stage(tmp_path, WRITES, tools=[noting(ran)]) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await told.next()
        await on.cancel(session_id)
        await on.idle(session_id)
        assert the_end(await on.log(session_id)).outcome == "cancelled"
        assert ran == []
    assert _running_in(tmp_path) == []


async def test_execution_50_an_edit_of_the_hooks_applies_to_the_next_turn(tmp_path: Path) -> None:
    ran: list[str] = []
    pause = Pause()

    async def waits(request: Any) -> Any:
        await pause.here()
        async for event in calls(("note", {"text": "old"}))(request):
            yield event

    hooks(tmp_path)
    later = calls(("note", {"text": "new"}))
    async with stage(tmp_path, waits, speaks("one"), later, tools=[noting(ran)]) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await pause.came()
        hooks(tmp_path, pre_tool_use="exit 2")
        pause.open.set()
        await on.idle(session_id)
        await on.say(session_id, "again")
        await on.idle(session_id)
        assert ran == ["old"]
        assert results(await on.log(session_id)) == [("note", "ok"), ("note", "denied")]


async def test_execution_50_a_workspace_can_name_no_command(tmp_path: Path) -> None:
    ran: list[str] = []
    work = tmp_path / "work"
    (work / ".callboard").mkdir(parents=True)
    (work / ".callboard" / "config.toml").write_text(
        f'[[hooks.pre_tool_use]]\ncommand = "touch {tmp_path}/evil"\n', "utf-8"
    )
    script(tmp_path, "check", "exit 0")
    (work / "check").write_text(f"#!/bin/sh\ntouch {tmp_path}/evil\n", "utf-8")
    (work / "check").chmod(0o700)
    hooks(tmp_path, pre_tool_use=["./check", ["./check"]])
    async with stage(tmp_path, WRITES, tools=[noting(ran)]) as on:
        session_id = (
            await on.host.sessions.create(cwd=str(work), profile="default", mode="work", by=CLIENT)
        ).session_id
        await on.say(session_id, "go")
        await on.idle(session_id)
        warned = [str(w) for w in on.host.environment.load(str(work)).warnings]
        assert any("hooks.pre_tool_use: a workspace may not set this" in each for each in warned)
    assert ran == ["x"]
    assert not (tmp_path / "evil").exists()


# --- a turn's start and end -----------------------------------------------------------------------


async def test_execution_50_a_hook_can_keep_a_turn_from_beginning(tmp_path: Path) -> None:
    hooks(tmp_path, session_start="echo come back tomorrow >&2; exit 2")
    async with stage(tmp_path) as on:
        session_id, records = await on.turn()
        end = the_end(records)
        assert (end.outcome, end.error.kind) == ("failed", "hookBlocked")
        assert "come back tomorrow" in end.error.message
        assert on.puppet.requests == []
        assert (await on.host.reading.session(session_id)).status == "idle"


async def test_a_hook_at_the_start_can_tell_the_agent_something(tmp_path: Path) -> None:
    hooks(tmp_path, session_start="""echo '{"context": "the build is red"}'""")
    async with stage(tmp_path) as on:
        _, records = await on.turn()
        assert "the build is red" in on.puppet.heard()
        assert [d.author.name for d in of(records, "directive")] == ["hooks"]
        assert the_end(records).outcome == "completed"
        assert len(of(records, "turn_started")) == 1


async def test_execution_50_hooks_can_keep_a_turn_from_ending_but_not_for_ever(
    tmp_path: Path,
) -> None:
    told = tmp_path / "told"
    hooks(tmp_path, stop=f"cat >> {told}; echo run the tests first >&2; exit 2")
    async with stage(tmp_path, *[speaks(f"answer {n}") for n in range(9)]) as on:
        _, records = await on.turn()
        end = the_end(records)
        assert (end.outcome, end.final_text) == ("completed", "answer 3")
        assert texts(records) == [f"answer {n}" for n in range(4)]
        assert [d.text for d in of(records, "directive")] == ["run the tests first"] * 3
        assert "run the tests first" in on.puppet.heard(1)
        assert [m.final for m in of(records, "message")][1:] == [False, False, False, True]
    asked = [
        orjson.loads(each) for each in told.read_text("utf-8").replace("}{", "}\n{").split("\n")
    ]
    assert [each["continuations"] for each in asked] == [0, 1, 2]


@pytest.mark.parametrize("answer", [speaks("hello"), fails("authRequired")])
async def test_execution_50_a_hook_at_the_end_sees_the_outcome_and_cannot_change_it(
    tmp_path: Path, answer: Any
) -> None:
    first, second = Told(tmp_path, "first"), Told(tmp_path, "second")
    hooks(tmp_path, session_end=[f"{first.command}; exit 2", second.command])
    async with stage(tmp_path, answer) as on:
        session_id, records = await on.turn()
        end = the_end(records)
        for told in (first, second):  # observers all run, whatever one of them says
            heard = await told.next()
            assert (heard["event"], heard["outcome"]) == ("SessionEnd", end.outcome)
            assert heard["finalText"] == end.final_text
            assert heard["errorKind"] == (None if end.error is None else end.error.kind)
        assert shape(await on.log(session_id))[-1] == "turn_finished"
        assert (await on.host.reading.turn(end.turn_id)).state == end.outcome


# --- prompts and summaries ------------------------------------------------------------------------


async def test_execution_50_a_hook_can_refuse_a_prompt_or_add_to_it(tmp_path: Path) -> None:
    hooks(
        tmp_path, user_prompt_submit="grep -q password && { echo no secrets >&2; exit 2; }; exit 0"
    )
    async with stage(tmp_path) as on:
        session_id = await on.session()

        async def submit(text: str, **more: Any) -> Any:
            return await on.host.submitting.asked(
                session_id, [TextContent(text=text)], author=PERSON, **more
            )

        with pytest.raises(CallboardError) as refused:
            await submit("my password is x")
        assert (refused.value.kind, refused.value.data) == (
            "hookBlocked",
            {"event": "UserPromptSubmit"},
        )
        assert "no secrets" in refused.value.message
        assert [block.text for block in await submit("hello")] == ["hello"]
        hooks(tmp_path, user_prompt_submit="""echo '{"context": "it is late"}'""")
        assert [block.text for block in await submit("hello")] == ["hello", "it is late"]
        # what was taken already is not asked about again
        await on.say(session_id, "hello", client_message_id="m1")
        hooks(tmp_path, user_prompt_submit="exit 2")
        assert len(await submit("hello", client_message_id="m1")) == 1
        await on.idle(session_id)


async def test_execution_50_a_hook_can_keep_a_session_from_being_summarised(tmp_path: Path) -> None:
    hooks(tmp_path, pre_compact="echo keep it all >&2; exit 2")
    async with stage(tmp_path, speaks("one"), speaks("two")) as on:
        session_id, _ = await on.turn()
        await on.say(session_id, "again")
        await on.idle(session_id)
        before = len(on.puppet.requests)
        with pytest.raises(CallboardError) as refused:
            await on.host.compacting.compact(session_id, by=CLIENT, instructions=None)
        assert (refused.value.kind, len(on.puppet.requests)) == ("hookBlocked", before)
        assert of(await on.log(session_id), "summary") == []


async def test_a_turn_without_hooks_asks_nobody(tmp_path: Path) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause, "hi")) as on:
        session_id = await on.session()
        before = psutil.Process().children()
        await on.say(session_id, "go")
        await pause.came()
        assert set(psutil.Process().children()) <= set(before)
        pause.open.set()
        await on.idle(session_id)


async def test_execution_50_what_a_hook_objects_to_is_said_once_though_the_turn_is_cancelled_just_then(
    tmp_path: Path,
) -> None:
    """The commit of the objection, with what was said, is under way when the turn is told to stop."""
    hooks(tmp_path, stop="echo not yet >&2; exit 2")
    async with stage(tmp_path, speaks("I am done.")) as on:
        session_id = await on.session()
        transact = on.host.log.transact

        async def overtaken(function: Any) -> Any:
            if not function.__qualname__.startswith("kept_from_ending."):
                return await transact(function)
            commit = on.host.log.submit(function)
            live = on.host.dispatcher.live(session_id)
            assert live is not None
            live.stop(Cause(outcome="cancelled", by=SYSTEM, reason="enough"))
            return await commit

        on.host.log.transact = overtaken  # type: ignore[method-assign]
        await on.say(session_id, "go")
        await on.idle(session_id)
        records = await on.log(session_id)
        assert the_end(records).outcome == "cancelled"
        assert [each.text for each in of(records, "directive")] == ["not yet"]
        assert texts(records) == ["I am done."]
