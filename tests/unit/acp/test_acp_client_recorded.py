"""What real agents have said, replayed: how they differ from the protocol and from each other makes no difference to
what is in the log."""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from acp_client_kit import CLIENT, Stage

from callboard.acp.client.feature import feature
from harness.inside import host_in

pytestmark = pytest.mark.anyio

TESTS = Path(__file__).parents[2]
RECORDED = TESTS / "fixtures" / "acp"
REPLAY = TESTS / "harness" / "acp_replay.py"
NAMES = sorted(path.stem for path in RECORDED.glob("*.json"))


def having(*prompts: str) -> Any:
    """Each recording with each of these prompts that it has."""
    found = [
        (name, prompt)
        for name in NAMES
        for prompt in json.loads((RECORDED / f"{name}.json").read_text("utf-8"))["prompts"]
        if prompt in prompts
    ]
    assert found
    return pytest.mark.parametrize(("name", "prompt"), found)


@asynccontextmanager
async def replayed(folder: Path, name: str) -> AsyncGenerator[Stage]:
    agents = folder / "config" / "agents"
    agents.mkdir(parents=True)
    words = json.dumps([sys.executable, str(REPLAY), str(RECORDED / f"{name}.json")])
    (agents / "puppet.md").write_text(f"---\nkind: acp\ncommand: {words}\n---\n", "utf-8")
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(folder)}
    async with host_in(folder, features=[feature(environ)]) as host:
        yield Stage(host, folder)


def of(records: list[Any], kind: str) -> list[Any]:
    return [record.value for record in records if record.type == kind]


def said(records: list[Any]) -> str:
    return "".join(
        getattr(block, "text", "")
        for message in of(records, "message")
        if message.author.kind == "agent"
        for block in message.content
    )


def shown(approval: Any) -> str:
    return f"{approval.title} {approval.subject}"


def the_call(records: list[Any]) -> tuple[Any, Any]:
    """The one call, with its one result."""
    (call,), (result,) = of(records, "tool_call"), of(records, "tool_result")
    assert result.call_id == call.call_id
    return call, result


def the_end(records: list[Any]) -> Any:
    (finished,) = of(records, "turn_finished")
    return finished


async def asked(play: Stage, prompt: str, option: str) -> tuple[Any, list[Any]]:
    """A turn that asks once and is answered; what was asked, and the log."""
    session_id = await play.session()
    await play.say(session_id, prompt)
    approval = (await play.seen(session_id, "approval_request")).value.approval
    await play.answer(option)
    records = await play.idle(session_id)
    assert len(of(records, "approval_request")) == 1
    return approval, records


@having("say")
async def test_what_they_say_is_their_answer(tmp_path: Path, name: str, prompt: str) -> None:
    async with replayed(tmp_path, name) as play:
        records = await play.turn(prompt)
    assert said(records).endswith("fake.")
    assert the_end(records).outcome == "completed"
    assert [m.author.kind for m in of(records, "message")].count("person") == 1


@having("run", "run_announced")
async def test_a_command_is_asked_about_once_and_shown(
    tmp_path: Path, name: str, prompt: str
) -> None:
    """However little of it the question tells, and whether or not the call was told of before."""
    line = "echo hi from bash" if name == "opencode" else "touch fromshell.txt"
    async with replayed(tmp_path, name) as play:
        approval, records = await asked(play, prompt, "allow_once")
    assert approval.subject.command == line
    assert approval.tool == "run_command"
    call, result = the_call(records)
    assert (call.kind, result.status) == ("execute", "ok")
    assert "Amendment" not in result.text
    assert "Tool " in said(records)
    assert the_end(records).outcome == "completed"


@having("write")
async def test_a_change_of_a_file_is_asked_about_once_and_shown(
    tmp_path: Path, name: str, prompt: str
) -> None:
    async with replayed(tmp_path, name) as play:
        approval, records = await asked(play, prompt, "allow_once")
    assert "a.txt" in shown(approval)
    call, result = the_call(records)
    assert (call.kind, result.status) == ("edit", "ok")
    assert "Tool " in said(records)


@having("refused", "refused_announced")
async def test_what_is_refused_is_denied_and_ends_the_turn_as_ever(
    tmp_path: Path, name: str, prompt: str
) -> None:
    """Also where the agent never says what became of the call, or takes it for a cancel."""
    async with replayed(tmp_path, name) as play:
        _, records = await asked(play, prompt, "reject_once")
    _, result = the_call(records)
    assert result.status == "denied"
    assert the_end(records).outcome == "completed"


@having("cancelled")
async def test_a_cancel_while_it_asks_ends_both(tmp_path: Path, name: str, prompt: str) -> None:
    async with replayed(tmp_path, name) as play:
        session_id = await play.session()
        await play.say(session_id, prompt)
        await play.seen(session_id, "approval_request")
        await play.host.sessions.cancel(session_id, by=CLIENT)
        records = await play.idle(session_id)
    _, result = the_call(records)
    assert result.status == "cancelled"
    assert the_end(records).outcome == "cancelled"
    (decision,) = of(records, "approval_decision")
    assert decision.resolution.outcome == "cancelled"


@having("fails")
async def test_a_failure_of_their_model_is_told(tmp_path: Path, name: str, prompt: str) -> None:
    async with replayed(tmp_path, name) as play:
        records = await play.turn(prompt)
    end = the_end(records)
    if name == "kimi":  # its turn is over, as if nothing were the matter
        (notice,) = of(records, "notice")
        assert "without a word" in notice.description
    elif name == "codex":  # says it
        assert "the fake fails" in said(records)
    else:
        assert end.outcome == "failed"
        assert "the fake fails" in end.error.message


async def test_what_is_told_after_the_answer_still_belongs_to_it(tmp_path: Path) -> None:
    async with replayed(tmp_path, "kimi") as play:
        records = await play.turn("say")
    assert the_end(records).usage.context_tokens == 15


async def test_the_input_of_a_call_is_not_shown_as_its_output(tmp_path: Path) -> None:
    """Where it is told as a text of the call."""
    told: list[str] = []
    async with replayed(tmp_path, "kimi") as play:
        play.host.deltas.listen(lambda d: told.append(d.text) if d.kind == "tool_output" else None)
        _, records = await asked(play, "write", "allow_once")
    call, result = the_call(records)
    assert call.arguments["path"].endswith("/a.txt")
    assert "content" not in "".join(told)
    assert result.text.startswith("Wrote 6 bytes")
