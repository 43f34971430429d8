"""Agents of other makers behind profiles, in a real server: what they say and do is in the log, a person decides what
they may do, and nothing of them is left."""

import json
from pathlib import Path

import pytest
from acp_tools import has_agents
from agent_play import Play, blocks, calls, end, of, play, shown
from known_agents import KNOWN, KnownAgent

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
