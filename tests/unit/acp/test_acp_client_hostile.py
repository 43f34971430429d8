"""Agents that do not do as they should: missing, logged out, dying, flooding, deaf, and out of order."""

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from acp_client_kit import (
    CLIENT,
    Stage,
    command,
    permission,
    printed,
    stage,
    tool_call,
    tool_update,
    write_agent,
)  # fmt: skip
from test_acp_client_turns import of, said

from callboard.acp.client import connection as connections
from callboard.acp.client import failures

pytestmark = pytest.mark.anyio


async def _failure(play: Stage, session_id: str) -> Any:
    """Why the last turn of a session has failed."""
    records = await play.idle(session_id)
    end = of(records, "turn_finished")[-1]
    assert end.outcome == "failed"
    return end.error


async def test_one_that_is_not_there_says_how_to_get_it(tmp_path: Path) -> None:
    async with stage(tmp_path, {"say": "never"}) as play:
        write_agent(tmp_path, {"prompts": []}, name="missing", command=["no-such-agent", "--acp"])
        session_id = await play.session(profile="missing")
        await play.say(session_id)
        error = await _failure(play, session_id)
    assert error.kind == "modelUnavailable"
    assert "no-such-agent" in error.message
    assert "install it" in error.message


@pytest.mark.parametrize("method", ["session/new", "session/prompt"])
async def test_one_that_wants_a_login_says_where(tmp_path: Path, method: str) -> None:
    scene = {
        "faults": {method: {"code": -32000, "message": "Authentication required"}},
        "auth_methods": [{"id": "web", "name": "Log in on the web"}],
    }
    async with stage(tmp_path, {"say": "I see: {said}"}, scene=scene) as play:
        session_id = await play.session()
        await play.say(session_id, "the first")
        error = await _failure(play, session_id)
        assert error.kind == "authRequired"
        assert "Log in on the web" in error.message
        assert sys.executable in error.message
        # once that is done it hears what it has not heard
        write_agent(tmp_path, {"prompts": [["", [{"say": "I see: {said}"}]]]})
        await play.say(session_id, "the second")
        records = await play.idle(session_id)
    (answer,) = said(records)
    assert "the first" in answer
    assert "the second" in answer


async def test_one_that_dies_in_mid_turn_fails_it_and_is_started_again(tmp_path: Path) -> None:
    dies = [
        {"say": "I begin"},
        tool_call(status="in_progress", **command()),
        {"stderr": "out of cheese"},
        {"exit": 3},
    ]
    scene = {"prompts": [["die", dies]], "capabilities": {"sessionCapabilities": {"resume": {}}}}
    async with stage(tmp_path, {"say": "here again"}, scene=scene) as play:
        session_id = await play.session()
        await play.say(session_id, "die")
        error = await _failure(play, session_id)
        assert "exit code 3" in error.message
        assert "out of cheese" in error.message
        records = await play.idle(session_id)
        assert [r.status for r in of(records, "tool_result")] == ["error"]
        await play.say(session_id, "live")
        records = await play.idle(session_id)
        assert len(play.heard("session/resume")) == 1
    assert said(records)[-1] == "here again"


async def test_noise_on_its_output_is_passed_over(tmp_path: Path) -> None:
    actions = [
        {"raw": "npm WARN deprecated something"},
        {"raw": "{not json"},
        {"raw": "[1, 2]"},
        {"raw": '{"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": 7}}'},
        {"foreign": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "no"}}},
        {"update": {"sessionUpdate": "something_new", "colour": "red"}},
        {"say": "still here"},
    ]  # fmt: skip
    async with stage(tmp_path, *actions) as play:
        records = await play.turn()
    assert said(records) == ["still here"]


async def test_a_line_without_an_end_takes_no_memory(tmp_path: Path) -> None:
    before = {"initialize": [{"raw": "x" * (17 * 1024 * 1024)}]}
    async with stage(tmp_path, {"say": "ok"}, scene={"before": before}) as play:
        records = await play.turn()
    assert said(records) == ["ok"]


async def test_who_waits_for_a_line_that_is_too_long_hears_of_it(tmp_path: Path) -> None:
    """Its own request first, which is refused; then the answer to the prompt, whose turn fails."""
    padding = {"_meta": {"x": "x" * (17 * 1024 * 1024)}}
    answer = {"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "end_turn", **padding}}
    async with stage(
        tmp_path,
        {"ask": {"method": "fs/read_text_file", "params": {"path": "/a", **padding}}},
        {"raw": json.dumps(answer)},
        {"sleeps_for_ever": True},
    ) as play:
        records = await play.turn()
        (prompt,) = play.heard("session/prompt")
    assert prompt["id"] == answer["id"], "the test answers this one"
    assert "was skipped" in "".join(said(records))
    (finished,) = of(records, "turn_finished")
    assert finished.outcome == "failed" and "over 16777216 bytes" in finished.error.message


async def test_a_flood_is_read_at_our_pace(tmp_path: Path) -> None:
    before = psutil.Process().memory_info().rss
    async with stage(tmp_path, {"flood": 8_000}) as play:
        records = await play.turn()
        assert psutil.Process().memory_info().rss - before < 200 * 1024 * 1024
        lengths = [
            sum(len(block["text"]) for block in (await play.host.log.whole(r))["content"])
            for r in records
            if r.type == "message" and r.value.author.kind == "agent"
        ]
    assert of(records, "turn_finished")[0].outcome == "completed"
    assert sum(lengths) == 8_000_000
    assert max(lengths) < 300_000


async def test_what_is_told_before_the_session_has_a_name_is_kept(tmp_path: Path) -> None:
    commands = [{"name": "init", "description": "Begin"}]
    update = {"sessionUpdate": "available_commands_update", "availableCommands": commands}
    async with stage(
        tmp_path, {"say": "ok"}, scene={"before": {"session/new": [{"update": update}]}}
    ) as play:
        session_id = await play.session()
        await play.say(session_id)
        await play.idle(session_id)
        (held,) = play.host.services["acp"].connections()
        assert [c.name for c in held.choices.commands] == ["init"]


@pytest.mark.parametrize("grace_s", [0, 0.5])
async def test_one_that_ignores_a_cancel_is_ended_and_started_again(
    tmp_path: Path, grace_s: float
) -> None:
    """Its turn ends with the grace, whether the last of its processes is gone by then or not."""
    pid_file = tmp_path / "pid"
    deaf = [{"touch": str(pid_file)}, {"say": "deaf"}, {"sleeps_for_ever": True}]
    config = f"[limits]\ncancel_grace_s = {grace_s}\n"
    async with stage(
        tmp_path,
        {"say": "back"},
        scene={"prompts": [["again", [{"say": "back"}]], ["deaf", deaf]]},
        config=config,
    ) as play:
        session_id = await play.session()
        await play.say(session_id, "deaf")
        await play.until_file(pid_file)
        await play.host.sessions.cancel(session_id, by=CLIENT)
        records = await play.idle(session_id)
        assert of(records, "turn_finished")[0].outcome == "cancelled"
        await play.until_gone(int(pid_file.read_text()))
        await play.say(session_id, "again")
        records = await play.idle(session_id)
    assert said(records)[-1] == "back"


async def test_what_it_answers_after_a_cancel_is_of_no_account(tmp_path: Path) -> None:
    late = [{"say": "too late"}]
    begun = tmp_path / "begun"
    waits = [{"touch": str(begun)}, {"until_cancelled": True}]
    scene = {"prompts": [["wait", waits]], "late": late}
    async with stage(tmp_path, {"say": "fresh"}, scene=scene) as play:
        session_id = await play.session()
        await play.say(session_id, "wait")
        await play.until_file(begun)
        await play.host.sessions.cancel(session_id, by=CLIENT)
        records = await play.idle(session_id)
        assert of(records, "turn_finished")[0].outcome == "cancelled"
        (answer,) = play.heard("session/cancel")
        assert answer["params"] == {"sessionId": "agent-session-1"}
        await play.say(session_id, "go on")
        records = await play.idle(session_id)
    assert of(records, "turn_finished")[1].outcome == "completed"


async def test_one_that_does_what_was_refused_has_one_result_all_the_same(tmp_path: Path) -> None:
    disobeys = [
        permission(**command()),
        tool_update(status="completed", content=printed("did it anyway")),
    ]
    async with stage(tmp_path, *disobeys) as play:
        records = await play.turn(mode="plan")
    assert [r.status for r in of(records, "tool_result")] == ["denied"]


async def test_one_that_never_answers_the_handshake_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (connections, failures):
        monkeypatch.setattr(module, "HANDSHAKE_S", 0.2)
    async with stage(tmp_path, {"say": "x"}, scene={"silent": ["initialize"]}) as play:
        session_id = await play.session()
        await play.say(session_id)
        error = await _failure(play, session_id)
        assert error.kind == "modelUnavailable"
        assert "initialize" in error.message
    assert not [
        p for p in psutil.process_iter(["cmdline"]) if str(tmp_path) in str(p.info["cmdline"])
    ]


async def test_one_that_speaks_another_version_is_refused(tmp_path: Path) -> None:
    async with stage(tmp_path, {"say": "x"}, scene={"version": 2}) as play:
        session_id = await play.session()
        await play.say(session_id)
        assert (await _failure(play, session_id)).kind == "unsupportedVersion"


async def test_an_error_that_is_a_text_is_told(tmp_path: Path) -> None:
    async with stage(tmp_path, {"fail": "the model is on strike"}) as play:
        session_id = await play.session()
        await play.say(session_id)
        error = await _failure(play, session_id)
    assert error.kind == "modelError"
    assert "on strike" in error.message


async def test_a_secret_in_its_last_words_is_not_told(tmp_path: Path) -> None:
    secret = "sk-" + "a1B2" * 10
    async with stage(tmp_path, {"stderr": f"key {secret}"}, {"exit": 1}) as play:
        session_id = await play.session()
        await play.say(session_id)
        error = await _failure(play, session_id)
        records = await play.idle(session_id)
    assert "key" in error.message
    assert secret not in json.dumps([r.data for r in records])


async def test_what_it_has_sent_away_ends_with_it(tmp_path: Path) -> None:
    """A process in a session of its own does not outlive an agent that has left by itself."""
    away = tmp_path / "away"
    leaves = {"spawn_away": str(away)}
    async with stage(tmp_path, leaves, {"exit": 0}) as play:
        session_id = await play.session()
        await play.say(session_id)
        await play.idle(session_id)
        number = int(away.read_text("utf-8"))
    with contextlib.suppress(psutil.NoSuchProcess):
        assert psutil.Process(number).status() == psutil.STATUS_ZOMBIE
