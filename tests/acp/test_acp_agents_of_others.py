"""Agents that nobody here has written the protocol of, made with both SDKs; and Callboard itself on another store."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from acp_tools import SDK, node
from test_acp_agents import said, until

from harness.process import ServerProcess, scenario

AGENTS = Path(__file__).parent / "agents"
SPEAKS = "default: [{say: I am the model.}]"


def _echo(sdk: str) -> list[str]:
    if sdk == "python":
        return [sys.executable, str(AGENTS / "py_echo.py")]
    main = json.loads((SDK / "package.json").read_text("utf-8"))["main"]
    return [str(node()), str(AGENTS / "ts_echo.mjs"), str(SDK / main)]


def _profile(folder: Path, name: str, words: list[str], env: dict[str, str] | None = None) -> None:
    agents = folder / "home" / "config" / "agents"
    agents.mkdir(parents=True, exist_ok=True)
    front = f"kind: acp\ncommand: {json.dumps(words)}\nenv: {json.dumps(env or {})}"
    (agents / f"{name}.md").write_text(f"---\n{front}\n---\n", "utf-8")


@contextmanager
def _session(
    folder: Path, profile: str, answer: str = "allow_once"
) -> Iterator[tuple[ServerProcess, str, list[Any]]]:
    """A server, a session of the agent's in it, and what is asked there."""
    work = folder / "work"
    work.mkdir()
    asked: list[Any] = []

    def decide(approval: dict[str, Any]) -> dict[str, Any]:
        asked.append(approval)
        return {"optionId": answer}

    with ServerProcess(folder, model=scenario(folder, SPEAKS), answer=decide) as server:
        session_id = server.create(work, profile=profile)
        server.call(
            "event/subscribe", scope={"kind": "session", "id": session_id}, **{"from": "start"}
        )
        yield server, session_id, asked


def _results(events: list[dict[str, Any]]) -> list[str]:
    return [e["data"]["status"] for e in events if e["type"] == "tool_result"]


@pytest.mark.parametrize("sdk", ["python", "typescript"])
@pytest.mark.parametrize(
    ("answer", "status", "says"),
    [("allow_once", "ok", "done"), ("reject_once", "denied", "refused")],
)
def test_one_of_an_sdk_talks_and_asks(
    tmp_path: Path, sdk: str, answer: str, status: str, says: str
) -> None:
    _profile(tmp_path, "echo", _echo(sdk))
    with _session(tmp_path, "echo", answer) as (server, session_id, asked):
        for text in ("hello", "run it"):
            server.prompt(session_id, text)
            server.wait(session_id)
        events = server.events(session_id)
    assert [text for who, text in said(events) if who == "echo"] == ["echo: hello", says]
    assert asked[0]["subject"]["command"] == "touch a.txt"
    assert _results(events) == [status]


@pytest.mark.parametrize("sdk", ["python", "typescript"])
def test_one_of_an_sdk_is_called_away(tmp_path: Path, sdk: str) -> None:
    _profile(tmp_path, "echo", _echo(sdk))
    with _session(tmp_path, "echo") as (server, session_id, _):
        draft = {"scope": {"kind": "session", "id": session_id}, "from": "now", "deltas": True}
        server.call("event/subscribe", **draft)
        server.prompt(session_id, "wait")
        server.until(lambda m: m.get("method") == "event/delta")
        server.call("session/cancel", sessionId=session_id)
        server.wait(session_id)
        server.prompt(session_id, "hello")
        server.wait(session_id)
        events = server.events(session_id)
    ends = [e["data"]["outcome"] for e in events if e["type"] == "turn_finished"]
    assert ends == ["cancelled", "completed"]
    assert said(events)[-1] == ("echo", "echo: hello")


WRITES = """
rules:
  - {when: {last_tool: {contains: ""}}, answer: [{say: It is written.}]}
default:
  - say: I write.
  - call: {tool: run_command, arguments: {command: "touch made"}}
"""


def test_callboard_drives_callboard_on_another_store(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    env = {
        "CALLBOARD_STORE": str(other / "store.db"),
        "CALLBOARD_CONFIG_DIR": str(other / "config"),
        "CALLBOARD_MODEL": scenario(other, WRITES),
    }
    words = [sys.executable, "-m", "callboard", "serve", "--acp"]
    _profile(tmp_path, "second", words, env)
    with _session(tmp_path, "second") as (server, root, asked):
        plain = server.create(tmp_path / "work")
        server.call("event/subscribe", scope={"kind": "tree", "id": plain}, **{"from": "start"})
        child = server.call(
            "agent/spawn", parentId=plain, name="far", message="Write.", profile="second"
        )["agent"]["agentId"]
        server.told(lambda e: e["type"] == "agent_report_created" and e["sessionId"] == child)
        server.wait(child)
        events = server.events(child)
    assert root != plain
    assert [step["name"] for step in asked[0]["path"]] == ["default", "far"]
    assert asked[0]["subject"]["command"] == "touch made"
    assert (tmp_path / "work" / "made").exists()
    assert _results(events) == ["ok"]
    assert said(events)[-1] == ("far", "It is written.")
    until(lambda: (other / "store.db").exists())
