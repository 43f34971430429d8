"""Agents made with the SDKs of the protocol, behind profiles in a real server: all that the protocol has an agent say
and ask is in the log, and is done as a person decides."""

import json
import sys
from pathlib import Path

import pytest
from acp_tools import SDK, has_packages, has_python_sdk, node
from agent_play import blocks, calls, end, of, play, shown
from known_agents import KnownAgent

pytestmark = pytest.mark.skipif(
    not (has_packages() and has_python_sdk()), reason="the SDKs of the protocol: make tools"
)

HERE = Path(__file__).parent / "sdk_agents"
PYTHON = KnownAgent(
    name="python",
    command=lambda _: [sys.executable, str(HERE / "python_agent.py")],
    environ=lambda _, __: {},
    write=lambda _: "writes",
)


def _typescript(_: str) -> list[str]:
    main = json.loads((SDK / "package.json").read_text("utf-8"))["main"]
    return [str(node()), str(HERE / "typescript_agent.mjs"), str(SDK / main)]


TYPESCRIPT = KnownAgent(
    name="typescript",
    command=_typescript,
    environ=lambda _, __: {},
    write=lambda _: "writes",
)
EACH = pytest.mark.parametrize("agent", (PYTHON, TYPESCRIPT), ids=lambda agent: agent.name)


@EACH
def test_all_that_it_says_is_in_the_log(tmp_path: Path, agent: KnownAgent) -> None:
    with play(tmp_path, agent) as stage, stage.serve():
        events = stage.turn(stage.session(), "See that it works")
    assert blocks(events, "thinking") == "First think."
    assert blocks(events, "text") == "Worked."
    (plan,) = of(events, "plan_updated")
    assert plan["entries"] == [{"content": "Look", "status": "completed", "priority": "high"}]
    ((call, result),) = calls(events)
    assert (call["title"], call["kind"], call["effect"]) == ("Look at a.txt", "read", "read")
    assert call["locations"] == [{"path": str(tmp_path / "work" / "a.txt"), "line": 3}]
    assert (result["status"], result["text"]) == ("ok", "It is empty.")
    assert end(events)["usage"]["contextTokens"] == 321
    assert stage.asked == []


@EACH
def test_it_writes_and_runs_by_us_what_a_person_allows(tmp_path: Path, agent: KnownAgent) -> None:
    with play(tmp_path, agent) as stage, stage.serve():
        session = stage.session()
        wrote = stage.turn(session, "It writes")
        ran = stage.turn(session, "It runs")
        stage.answer = "reject_once"
        refused = stage.turn(session, "It runs")
    assert (tmp_path / "work" / "made.txt").read_text() == "made\n"
    assert (tmp_path / "work" / "ran.txt").read_text() == "ran\n"
    write, run, again = stage.asked
    assert write["subject"]["type"] == "fileChange"
    assert "+made" in shown(write)
    assert run["subject"]["command"] == again["subject"]["command"]
    ((call, result),) = calls(wrote)
    assert (call["kind"], result["status"]) == ("edit", "ok")
    assert [each["operation"] for each in result["changes"]] == ["create"]
    assert blocks(wrote, "text") == r"It has 'made\n'."
    ((_, result),) = calls(ran)
    assert (result["status"], result["text"], result["exitCode"]) == ("ok", "ran\n", 0)
    assert blocks(ran, "text") == r"It printed 'ran\n'."
    ((_, result),) = calls(refused)
    assert result["status"] == "denied"
    assert blocks(refused, "text") == "Then not."


@EACH
def test_it_heeds_a_cancel_and_goes_on_in_a_new_server(tmp_path: Path, agent: KnownAgent) -> None:
    with play(tmp_path, agent) as stage:
        with stage.serve():
            session = stage.session()
            assert blocks(stage.turn(session, "One"), "text") == "One"
            stage.server.prompt(session, "It waits")
            stage.until_said("tick")
            stage.server.call("session/cancel", sessionId=session)
            stage.server.wait(session)
            finished = of(stage.server.events(session), "turn_finished")
            assert [each["outcome"] for each in finished] == ["completed", "cancelled"]
        stage.leaves_nothing()
        with stage.serve():
            said = stage.turn(session, "Two")
    assert blocks(said, "text") == "One / It waits / Two"
    assert of(said, "notice") == []


@EACH
def test_a_cancel_while_it_asks_ends_the_question(tmp_path: Path, agent: KnownAgent) -> None:
    with play(tmp_path, agent) as stage, stage.serve():
        stage.answer = None
        session = stage.session()
        stage.server.prompt(session, "It writes")
        stage.server.wait(session, until="attention")
        stage.server.call("session/cancel", sessionId=session)
        stage.server.wait(session)
        events = stage.server.events(session)
    assert end(events)["outcome"] == "cancelled"
    ((_, result),) = calls(events)
    assert result["status"] == "cancelled"
    (decision,) = of(events, "approval_decision")
    assert decision["resolution"]["outcome"] == "cancelled"
    assert not (tmp_path / "work" / "made.txt").exists()
