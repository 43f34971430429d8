"""Agents of other makers in real servers: as root, as child and in a room; and what becomes of their processes."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.process import ServerProcess, scenario

AGENT = Path(__file__).parents[1] / "harness" / "acp_agent.py"
OPTIONS = [
    {"optionId": "allow", "name": "Yes", "kind": "allow_once"},
    {"optionId": "reject", "name": "No", "kind": "reject_once"},
]
RUNS = {
    "toolCallId": "t1",
    "title": "touch made",
    "kind": "execute",
    "rawInput": {"command": "touch made"},
}
ASKS = {"permission": {"toolCall": RUNS, "options": OPTIONS}}
ENDS = {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed"}}
SPEAKS = "default: [{say: I am the model.}]"


def agent(folder: Path, name: str, *actions: dict[str, Any], **scene: Any) -> None:
    """An agent of the person's, which plays a scene."""
    agents = folder / "home" / "config" / "agents"
    agents.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    prompts = [*scene.pop("prompts", []), ["", list(actions)]]
    heard = str(folder / f"{name}.heard")
    path.write_text(json.dumps({**scene, "heard": heard, "prompts": prompts}), "utf-8")
    words = json.dumps([sys.executable, str(AGENT), str(path)])
    (agents / f"{name}.md").write_text(f"---\nkind: acp\ncommand: {words}\n---\n", "utf-8")


def until(look: Callable[[], Any]) -> Any:
    """What a look tells once there is something; for what no event of the log tells."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.02)
    raise AssertionError("it did not happen")


def running(folder: Path) -> list[psutil.Process]:
    """The agents that run for this test, whoever has started them."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = process.info["cmdline"] or []
        if str(AGENT) in words and any(str(folder) in word for word in words):
            found.append(process)
    return found


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def said(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [
        (
            e["data"]["author"]["name"],
            "".join(b.get("text", "") for b in e["data"]["content"]),
        )
        for e in events
        if e["type"] == "message"
    ]


def test_a_root_is_asked_over_the_wire_and_ends_with_its_server(tmp_path: Path, work: Path) -> None:
    agent(tmp_path, "puppet", ASKS, ENDS, {"say": "Done."})
    asked: list[dict[str, Any]] = []

    def answer(approval: dict[str, Any]) -> dict[str, Any]:
        asked.append(approval)
        return {"optionId": "allow_once"}

    with ServerProcess(tmp_path, model=scenario(tmp_path, SPEAKS), answer=answer) as server:
        listed = server.call("profile/list")["data"]
        assert [p["kind"] for p in listed if p["name"] == "puppet"] == ["acp"]
        session_id = server.create(work, profile="puppet")
        server.call(
            "event/subscribe", scope={"kind": "session", "id": session_id}, **{"from": "start"}
        )
        server.prompt(session_id, "go")
        server.wait(session_id)
        events = server.events(session_id)
        assert len(running(tmp_path)) == 1
    assert asked[0]["subject"]["command"] == "touch made"
    assert said(events)[-1] == ("puppet", "[allow]Done.")
    assert running(tmp_path) == []


def test_what_a_killed_server_has_left_running_is_ended_by_the_next_one(
    tmp_path: Path, work: Path
) -> None:
    begun = tmp_path / "begun"
    agent(
        tmp_path, "puppet", {"touch": str(begun)}, {"sleeps_for_ever": True},
        outlives_its_input=True,
    )  # fmt: skip
    model = scenario(tmp_path, SPEAKS)
    with ServerProcess(tmp_path, model=model) as server:
        session_id = server.create(work, profile="puppet")
        server.prompt(session_id, "go")
        until(lambda: begun.exists() and begun.read_text())
        server.kill()
    assert len(running(tmp_path)) == 1
    with ServerProcess(tmp_path, model=model) as server:
        server.wait(session_id)
        ends = [e for e in server.events(session_id) if e["type"] == "turn_finished"]
        assert [e["data"]["outcome"] for e in ends] == ["interrupted"]
        until(lambda: not running(tmp_path))


def test_a_question_is_answered_after_the_server_was_killed(tmp_path: Path, work: Path) -> None:
    agent(tmp_path, "puppet", ASKS, ENDS, {"say": "Done."})
    model = scenario(tmp_path, SPEAKS)
    with ServerProcess(tmp_path, model=model) as server:
        session_id = server.create(work, profile="puppet")
        server.prompt(session_id, "go")
        server.wait(session_id, until="attention")
        server.kill()
    with ServerProcess(tmp_path, model=model) as server:
        (approval,) = server.call("approval/list", state="pending")["data"]
        server.call("approval/answer", approvalId=approval["approvalId"], optionId="allow_once")
        server.wait(session_id)
        events = server.events(session_id)
    assert [e["data"]["outcome"] for e in events if e["type"] == "turn_finished"] == ["completed"]
    results = [e["data"]["status"] for e in events if e["type"] == "tool_result"]
    assert results == ["interrupted", "ok"]
    assert running(tmp_path) == []


def test_a_child_asks_those_who_follow_its_root_and_reports_to_it(
    tmp_path: Path, work: Path
) -> None:
    agent(tmp_path, "puppet", ASKS, ENDS, {"say": "The child is done."})
    asked: list[dict[str, Any]] = []

    def answer(approval: dict[str, Any]) -> dict[str, Any]:
        asked.append(approval)
        return {"optionId": "allow_once"}

    with ServerProcess(tmp_path, model=scenario(tmp_path, SPEAKS), answer=answer) as server:
        root = server.create(work)
        server.call("event/subscribe", scope={"kind": "tree", "id": root}, **{"from": "start"})
        spawned = server.call(
            "agent/spawn", parentId=root, name="helper", message="Do it.", profile="puppet"
        )
        child = spawned["agent"]["agentId"]
        server.told(lambda e: e["type"] == "agent_report_created" and e["sessionId"] == child)
        server.prompt(root, "What came of it?")
        server.wait(root)
        report = next(e for e in server.events(child) if e["type"] == "agent_report_created")
        parent = server.events(root)
    assert [step["name"] for step in asked[0]["path"]] == ["default", "helper"]
    assert report["data"]["report"]["status"] == "completed"
    assert "The child is done." in report["data"]["report"]["summary"]
    assert any("The child is done." in json.dumps(e["data"]) for e in parent)


def test_a_child_is_aborted_with_its_agent(tmp_path: Path, work: Path) -> None:
    begun = tmp_path / "begun"
    agent(tmp_path, "puppet", {"touch": str(begun)}, {"until_cancelled": True})
    model = scenario(tmp_path, SPEAKS)
    with ServerProcess(
        tmp_path, model=model, environ={"CALLBOARD_FEATURES": "interrupts"}
    ) as server:
        root = server.create(work)
        spawned = server.call(
            "agent/spawn", parentId=root, name="helper", message="Do it.", profile="puppet"
        )
        child = spawned["agent"]["agentId"]
        until(lambda: begun.exists() and begun.read_text())
        server.call("agent/interrupt", agentId=child, kind="abort", reason="enough")
        server.wait(child)
        ends = [e["data"] for e in server.events(child) if e["type"] == "turn_finished"]
    assert [end["outcome"] for end in ends] == ["cancelled"]
    heard = (tmp_path / "puppet.heard").read_text("utf-8")
    assert '"session/cancel"' in heard


def test_two_take_part_in_a_room_and_hear_each_other(tmp_path: Path, work: Path) -> None:
    agent(
        tmp_path, "red", {"say": "@blue what do you think?"}, prompts=[["fine", [{"say": "Good."}]]]
    )
    agent(tmp_path, "blue", {"say": "@red that is fine"})
    with ServerProcess(tmp_path, model=scenario(tmp_path, SPEAKS)) as server:
        session_id = server.create(work, members=["red", "blue"])
        server.prompt(session_id, "@red begin")
        server.wait(session_id)
        events = server.events(session_id)
        assert len(running(tmp_path)) == 2
    assert said(events) == [
        ("tests", "@red begin"),
        ("red", "@blue what do you think?"),
        ("blue", "@red that is fine"),
        ("red", "Good."),
    ]
    told = (tmp_path / "blue.heard").read_text("utf-8")
    assert '<member name=\\"red\\">' in told
    assert "<person>" in told
    assert "Others take part in this conversation: red" in told
