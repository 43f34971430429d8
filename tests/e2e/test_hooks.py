"""Hooks and retries, seen from outside: a real server on its wire (specs/execution.md 42-44, 50)."""

import json
import os
import shlex
from pathlib import Path

import pytest

from harness.process import RpcError, ServerProcess, scenario

SCENARIO = """
rules:
  - when: {last_user: write, step: 0}
    answer:
      - call: {tool: write_file, arguments: {path: a.txt, content: x}}
  - when: {last_user: {regex: "overload$"}}
    answer:
      - fail: {kind: modelError, message: Overloaded, retryable: true, http_status: 529, retry_after_ms: 1, times: 6}
      - say: At last.
default:
  - say: "You said: {{last_user}}."
"""


def _serve(folder: Path, config: str, **more: object) -> ServerProcess:
    place = folder / "home" / "config"
    place.mkdir(parents=True, exist_ok=True)
    (place / "config.toml").write_text(config, "utf-8")
    return ServerProcess(folder, model=scenario(folder, SCENARIO), **more)  # type: ignore[arg-type]


def test_execution_50_hooks_of_the_users_configuration_reach_the_wire(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    ended = tmp_path / "ended"
    os.mkfifo(ended)
    config = f"""
[approvals.policy]
write = "allow"

[[hooks.user_prompt_submit]]
command = "grep -q password && {{ echo keep your secrets >&2; exit 2; }}; exit 0"

[[hooks.pre_tool_use]]
command = ["sh", "-c", "echo read only today >&2; exit 2"]
match = "write_*"

[[hooks.session_end]]
command = "cat > {shlex.quote(str(ended))}"
"""
    evil = {"config": {"hooks": {"stop": [{"command": f"touch {tmp_path}/evil"}]}}}
    with _serve(tmp_path, config, callboard=evil) as server:
        session_id = server.create(work)
        with pytest.raises(RpcError) as refused:
            server.prompt(session_id, "the password is x")
        assert refused.value.kind == "hookBlocked"
        assert refused.value.error["data"]["event"] == "UserPromptSubmit"
        assert "keep your secrets" in refused.value.error["message"]
        assert [e["type"] for e in server.events(session_id)] == ["session_created"]

        server.prompt(session_id, "write")
        told = json.loads(ended.read_text("utf-8"))
        turn = server.wait(session_id)["turn"]
        assert (told["event"], told["turnId"], told["outcome"]) == (
            "SessionEnd",
            turn["turnId"],
            "completed",
        )
        results = [e["data"] for e in server.events(session_id) if e["type"] == "tool_result"]
        assert [each["status"] for each in results] == ["denied"]
        assert "read only today" in results[0]["text"]
        assert not (work / "a.txt").exists()
        known = {v["key"]: v for v in server.call("config/get")["values"] if "hooks" in v["key"]}
        assert known["hooks.pre_tool_use"]["value"] == [
            {"command": "set", "match": ["write_*"], "timeoutMs": 60_000}
        ]
        assert known["hooks.stop"]["value"] == []
    assert not (tmp_path / "evil").exists()


def test_execution_44_a_prompt_says_how_long_its_turn_goes_on_trying(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    with _serve(tmp_path, "") as server:
        session_id = server.create(work)
        server.prompt(session_id, "overload", limits={"retry": "until_cancelled"})
        assert server.wait(session_id)["turn"]["finalText"] == "At last."
        retried = [e for e in server.events(session_id) if e["type"] == "model_retried"]
        assert len(retried) == 6
        with pytest.raises(RpcError) as refused:
            server.prompt(session_id, "overload", limits={"retry": "for ever"})
        assert refused.value.kind == "invalidParams"
