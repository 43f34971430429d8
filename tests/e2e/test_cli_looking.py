"""Commands that only look: each starts a server, which must not begin what waits for one that stays."""

import os
import subprocess
import sys
from pathlib import Path

from harness.process import ServerProcess, scenario, types

SCENARIO = """
rules:
  - when: {last_user: {contains: "run"}, step: 0}
    answer: [{call: {tool: run_command, arguments: {command: "sleep 600"}}}]
default: [{say: "answered"}]
"""


def test_what_is_queued_behind_a_server_that_died_waits_for_one_that_stays(tmp_path: Path) -> None:
    model = scenario(tmp_path, SCENARIO)
    config = tmp_path / "home" / "config"
    config.mkdir(parents=True)
    (config / "config.toml").write_text('[approvals.policy]\nrun_command = "allow"\n', "utf-8")
    with ServerProcess(tmp_path, model=model) as first:
        session_id = first.create(tmp_path)
        first.call("event/subscribe", scope={"kind": "all"}, **{"from": "now"})
        first.prompt(session_id, "run")
        first.until(
            lambda m: (
                m.get("method") == "event/batch"
                and any(event["type"] == "tool_call" for event in m["params"]["events"])
            )
        )
        first.prompt(session_id, "and then?", delivery="queue")
        first.kill()
    home = {"HOME": str(tmp_path / "home"), "CALLBOARD_CONFIG_DIR": str(config)}
    looked = subprocess.run(
        [sys.executable, "-P", "-m", "callboard", "sessions", "list", "--json"],
        env={**os.environ, **home, "CALLBOARD_STORE": str(tmp_path / "store.db")},
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert session_id.encode() in looked.stdout
    with ServerProcess(tmp_path, model=model) as second:
        assert second.wait(session_id, until="idle")["finalText"] == "answered"
        events = second.events(session_id)
    assert types(events).count("turn_started") == 2
    outcomes = [e["data"]["outcome"] for e in events if e["type"] == "turn_finished"]
    assert outcomes == ["interrupted", "completed"]
