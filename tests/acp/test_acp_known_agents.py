"""Agents of other makers behind profiles, in a real server: what they say and do is in the log, a person decides what
they may do, and nothing of them is left."""

import json
from pathlib import Path

import pytest
from acp_tools import has_agents
from agent_play import Play, blocks, calls, end, of, play, shown
from known_agents import CODEX, KIMI, KNOWN, KnownAgent

from harness.process import PATIENCE_S, scenario

pytestmark = pytest.mark.skipif(not has_agents(), reason="agents of other makers: make tools")

EACH = pytest.mark.parametrize("agent", KNOWN, ids=lambda agent: agent.name)


@EACH
def test_an_agent_answers_asks_heeds_a_cancel_and_goes_on(
    tmp_path: Path, agent: KnownAgent
) -> None:
    with play(tmp_path, agent) as stage:
        with stage.serve():
            session = stage.session()
            said = stage.turn(session, "[[say The word is heron.]]")
            assert end(said)["outcome"] == "completed"
            assert blocks(said, "text").endswith("The word is heron.")
            thought = stage.turn(session, "[[think A quiet thought]]")
            assert "A quiet thought" in blocks(thought, "thinking")
            assert blocks(thought, "text").endswith("Thought.")
            if agent.tells_size:
                assert end(thought)["usage"]["contextTokens"] > 0
            if agent.plan is not None:
                plans = of(stage.turn(session, agent.plan), "plan_updated")
                assert [each["content"] for each in plans[-1]["entries"]] == ["Look", "Leap"]
            _asks(stage, session, agent)
            _heeds_a_cancel(stage, session)
            failed = stage.turn(session, "[[error 400]]")
            assert end(failed)["outcome"] == "failed" or of(failed, "notice")
        stage.leaves_nothing()
        with stage.serve():
            said = stage.turn(session, "[[say Still here.]]")
            assert blocks(said, "text").endswith("Still here.")
            assert "The word is heron." in json.dumps(stage.models.asked[-1])
            lost = [each for each in of(said, "notice") if "begun anew" in each["title"]]
            assert bool(lost) != agent.goes_on


def _asks(stage: Play, session: str, agent: KnownAgent) -> None:
    """It may write what it is allowed to, and nothing else; a person is asked once, and sees what about."""
    path = stage.work / "allowed.txt"
    done = stage.turn(session, agent.write(path))
    (approval,) = stage.asked
    assert "allowed.txt" in shown(approval)
    assert path.read_text() == "hello"
    ((call, result),) = calls(done)
    assert (result["status"], call["kind"]) == ("ok", agent.write_kind)
    assert approval["callId"] == call["callId"]
    if agent.write_kind == "edit":
        assert str(path) in [each["path"] for each in [*call["locations"], *result["locations"]]]
    assert "Tool said:" in blocks(done, "text")
    assert end(done)["outcome"] == "completed"

    stage.answer = "reject_once"
    denied = stage.turn(session, agent.write(stage.work / "refused.txt"))
    (_, approval) = stage.asked
    assert "refused.txt" in shown(approval)
    assert not (stage.work / "refused.txt").exists()
    ((_, result),) = calls(denied)
    assert result["status"] == "denied"


def _heeds_a_cancel(stage: Play, session: str) -> None:
    before = len(stage.server.events(session))
    stage.server.prompt(session, "[[slow]]")
    stage.until_said("tick 3")
    stage.server.call("session/cancel", sessionId=session)
    assert stage.server.wait(session)["reason"] == "idle"
    events = stage.server.events(session)[before:]
    assert end(events)["outcome"] == "cancelled"
    assert "tick 3" in blocks(events, "text")


@EACH
def test_a_session_that_plans_lets_it_write_nothing(tmp_path: Path, agent: KnownAgent) -> None:
    with play(tmp_path, agent) as stage, stage.serve():
        events = stage.turn(stage.session(mode="plan"), agent.write(stage.work / "made.txt"))
        assert not (stage.work / "made.txt").exists()
        assert stage.asked == []
        assert end(events)["outcome"] == "completed"
        assert "ok" not in [result["status"] for _, result in calls(events)]


@EACH
def test_a_correction_calls_it_away_in_the_same_turn(tmp_path: Path, agent: KnownAgent) -> None:
    with play(tmp_path, agent) as stage, stage.serve() as server:
        session = stage.session()
        server.prompt(session, "[[slow]]")
        stage.until_said("tick 3")
        server.prompt(session, "[[say Corrected.]]", delivery="steer")
        server.wait(session)
        events = server.events(session)
        assert end(events)["outcome"] == "completed"
        assert "tick 3" in blocks(events, "text")
        assert blocks(events, "text").endswith("Corrected.")


def test_one_that_outlives_its_input_is_ended_by_the_next_server(tmp_path: Path) -> None:
    with play(tmp_path, CODEX) as stage:
        with stage.serve() as server:
            session = stage.session()
            server.prompt(session, "[[slow]]")
            stage.until_said("tick 3")
            server.kill()
        (left,) = stage.left()
        with stage.serve() as server:
            left.wait(PATIENCE_S)
            server.wait(session)
            assert end(server.events(session))["outcome"] == "interrupted"
            said = stage.turn(session, "[[say Still here.]]")
            assert blocks(said, "text").endswith("Still here.")


@EACH
def test_a_child_that_is_one_asks_as_one_of_its_root_and_reports(
    tmp_path: Path, agent: KnownAgent
) -> None:
    """Spawned by a model, with the tool."""
    path = tmp_path / "work" / "allowed.txt"
    task = {"name": "helper", "profile": agent.name, "message": agent.write(path), "wait": True}
    call = json.dumps([{"call": {"tool": "spawn_agent", "arguments": task}}])
    rules = (
        '[{when: {last_tool: {name: spawn_agent}}, answer: [{say: "It reports: {{last_tool}}"}]}]'
    )
    parent = scenario(tmp_path, f"rules: {rules}\ndefault: {call}")
    with play(tmp_path, agent) as stage, stage.serve(model=parent):
        root = stage.session("default")
        events = stage.turn(root, "Have it written.")
        (approval,) = stage.asked
        assert [each["name"] for each in approval["path"]] == ["default", "helper"]
        assert path.read_text() == "hello"
        assert "Tool said:" in blocks(events, "text")
        assert end(events)["outcome"] == "completed"


def test_two_of_them_and_a_model_hear_each_other_in_a_room(tmp_path: Path) -> None:
    model = scenario(tmp_path, 'default: [{say: "The model was here."}]')
    with play(tmp_path, CODEX, KIMI) as stage, stage.serve(model=model):
        room = stage.session(None, members=["codex", "kimi", "default"])
        stage.turn(room, "@codex [[say Codex was here.]]")
        stage.turn(room, "@default and you?")
        said = stage.turn(room, "@kimi [[say Kimi was here.]]")
        assert blocks(said, "text").endswith("Kimi was here.")
        heard = json.dumps(stage.models.asked[-1])
        assert "Codex was here." in heard
        assert "The model was here." in heard
