"""What an agent of another maker can be set to, through the two faces of a real server."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from acp_scenes import workspace

from harness.acp import AcpProcess
from harness.process import RpcError, ServerProcess

AGENT = Path(__file__).parents[1] / "harness" / "acp_agent.py"
VALUES = [{"value": each, "name": each.title()} for each in ("small", "large")]
OPTION = {"id": "llm", "name": "Model", "type": "select", "category": "model", "options": VALUES}
SCENE = {"prompts": [["", [{"say": "ok"}]]], "opened": {"configOptions": [{**OPTION, "currentValue": "small"}]}}  # fmt: skip


@pytest.fixture
def heard(tmp_path: Path) -> Path:
    """Where the agent ``puppet`` writes what it is sent; its profile is there."""
    place = tmp_path / "home" / "config"
    (place / "agents").mkdir(parents=True)
    (place / "config.toml").write_text('profile = "puppet"\n', "utf-8")
    scene, heard = tmp_path / "scene.json", tmp_path / "heard"
    scene.write_text(json.dumps({**SCENE, "heard": str(heard)}), "utf-8")
    command = json.dumps([sys.executable, str(AGENT), str(scene)])
    (place / "agents" / "puppet.md").write_text(f"---\nkind: acp\ncommand: {command}\n---\n")
    return heard


def set_to(heard: Path) -> list[Any]:
    sent = map(json.loads, heard.read_text("utf-8").splitlines())
    return [m["params"]["value"] for m in sent if m.get("method") == "session/set_config_option"]


def test_a_client_reads_and_sets_them(tmp_path: Path, heard: Path) -> None:
    with ServerProcess(tmp_path) as server:
        folder = str(workspace(tmp_path))
        session = server.call("session/create", cwd=folder, mode="work")["session"]["sessionId"]
        server.prompt(session, "hello")
        server.wait(session)
        told = server.call("session/get", sessionId=session)["session"]["options"]
        assert [(o["optionId"], o["value"]) for o in told] == [("llm", "small")]
        with pytest.raises(RpcError, match="it can be small, large") as refused:
            server.call("session/update", sessionId=session, options={"llm": "huge"})
        assert refused.value.error["code"] == -32602
        after = server.call("session/update", sessionId=session, options={"llm": "large"})
        assert after["session"]["options"][0]["value"] == "large"
        server.prompt(session, "again")
        server.wait(session)
    assert set_to(heard) == ["large"]


def test_the_command_line_sets_and_shows_them(tmp_path: Path, heard: Path) -> None:
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path / "home"),
        "CALLBOARD_STORE": str(tmp_path / "store.db"),
        "CALLBOARD_CONFIG_DIR": str(tmp_path / "home" / "config"),
    }

    def callboard(*words: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-P", "-m", "callboard", *words]
        return subprocess.run(
            command,
            cwd=workspace(tmp_path),
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    ran = callboard("run", "hello", "--json", "--option", "llm=large")
    assert ran.returncode == 0, ran.stderr
    session = json.loads(ran.stdout.splitlines()[0])["sessionId"]
    assert "llm=large  of small, large" in callboard("sessions", "show", session).stdout
    refused = callboard("run", "again", "--session", session, "--option", "llm=huge")
    assert refused.returncode != 0
    assert "it can be small, large" in refused.stderr
    assert callboard("run", "again", "--option", "llm").returncode == 2
    assert set_to(heard) == ["large"]


def test_an_editor_has_them_among_its_own(tmp_path: Path, heard: Path) -> None:
    with AcpProcess(tmp_path) as editor:
        session = editor.new(workspace(tmp_path))
        assert editor.prompt(session, "hello") == "end_turn"
        told = [u for u in editor.updates() if u["sessionUpdate"] == "config_option_update"]
        assert [o["id"] for o in told[-1]["configOptions"]] == ["mode", "puppet/llm"]
        answer = editor.call(
            "session/set_config_option", sessionId=session, configId="puppet/llm", value="large"
        )
        assert answer["configOptions"][1]["currentValue"] == "large"
        assert editor.prompt(session, "again") == "end_turn"
        editor.close()
        editor.drain()
    assert set_to(heard) == ["large"]
