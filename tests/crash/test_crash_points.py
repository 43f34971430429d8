"""A point kills its process when the environment says so, and by nothing else."""

import signal
from pathlib import Path

import pytest

from callboard.log import faultpoints
from callboard.sessions.service import Sessions
from harness.process import ANEW, Gone, ServerProcess, scenario

SCENE = """
rules:
  - when: {last_user: env, step: 0}
    answer: [{call: {tool: run_command, arguments: {command: "echo [$CALLBOARD_FAULT]; env"}}}]
default: [{say: "Heard."}]
"""


def _world(folder: Path, config: str = "") -> str:
    user = folder / "home" / "config"
    user.mkdir(parents=True)
    (user / "config.toml").write_text(config)
    (folder / "work").mkdir()
    return scenario(folder, SCENE)


def test_a_server_that_was_started_with_a_fault_dies_at_its_nth_passing(tmp_path: Path) -> None:
    fault = {faultpoints.VARIABLE: "sessions.create.committed:2"}
    with ServerProcess(tmp_path, model=_world(tmp_path), environ=fault, program=ANEW) as server:
        first = server.create(tmp_path / "work")
        with pytest.raises(Gone):
            server.create(tmp_path / "work")
        assert server.process.wait(30) == -signal.SIGKILL
        assert "killed at sessions.create.committed\n" in server.stderr()
    with ServerProcess(tmp_path, model="scripted/demo") as server:
        found = server.call("session/list")["data"]
        assert len(found) == 2
        assert first in [session["sessionId"] for session in found]


def test_commands_do_not_inherit_a_fault_even_where_the_configuration_lets_all_through(
    tmp_path: Path,
) -> None:
    config = f"""
[approvals.policy]
execute = "allow"
[tools]
environment_allow = ["{faultpoints.VARIABLE}"]
"""
    fault = {faultpoints.VARIABLE: "no point at all"}
    with ServerProcess(
        tmp_path, model=_world(tmp_path, config), environ=fault, program=ANEW
    ) as server:
        session_id = server.create(tmp_path / "work")
        server.prompt(session_id, "env")
        server.wait(session_id)
        results = [e for e in server.events(session_id) if e["type"] == "tool_result"]
        text = results[0]["data"]["text"]
        assert text.startswith("[]\n")
        assert faultpoints.VARIABLE not in text
        assert "PATH=" in text


def test_no_configuration_arms_a_point(tmp_path: Path) -> None:
    lines = '{0} = "{1}"\nfault = "{1}"\n[env]\n{0} = "{1}"\n[environment]\n{0} = "{1}"\n'.format(
        faultpoints.VARIABLE, "sessions.create.deciding"
    )
    model = _world(tmp_path, lines)
    workspace = tmp_path / "work" / ".callboard"
    workspace.mkdir()
    (workspace / "config.toml").write_text(lines)
    given = {faultpoints.VARIABLE: "sessions.create.deciding", "fault": "sessions.create.deciding"}
    with ServerProcess(tmp_path, model=model, callboard={"config": given}) as server:
        session_id = server.create(tmp_path / "work")
        server.prompt(session_id, "hello")
        assert server.wait(session_id)["finalText"] == "Heard."
        assert server.close() == 0


def test_without_the_variable_a_point_is_nothing() -> None:
    assert not faultpoints.ARMED
    assert faultpoints.point("turns.call_ran") is None


def test_a_commit_is_named_after_its_folder_and_the_method_that_wrote_its_transaction() -> None:
    def decide(tx: object) -> None: ...

    assert faultpoints.commit_name(Sessions._prompt) == "sessions.prompt"
    name = faultpoints.commit_name(decide)
    assert name.endswith(
        "test_a_commit_is_named_after_its_folder_and_the_method_that_wrote_its_transaction"
    )
