"""Rules for one agent, over the wire: they hold for it and for those below it, and it may never do more than
its parent (interrupts-and-peers 77)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.checked import CheckedServer
from harness.process import RpcError, scenario

SCENE = """
rules:
  - when: {last_tool: {name: run_command}}
    answer: [{say: "So be it."}]
  - when: {last_user: {contains: "run it"}, step: 0}
    answer: [{call: {tool: run_command, arguments: {command: "echo ran >> ran.txt"}}}]
default:
  - say: "Done."
"""
CONFIG = '[approvals.policy]\nexecute = "{execute}"\n[agents]\nmax_depth = 2\n'


@pytest.fixture
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[CheckedServer]:
    (tmp_path / "work").mkdir()
    (tmp_path / "home" / "config").mkdir(parents=True)
    config = CONFIG.format(execute=request.param)
    (tmp_path / "home" / "config" / "config.toml").write_text(config)
    made = CheckedServer(tmp_path, model=scenario(tmp_path, SCENE), client_id="c")
    with made:
        yield made


def _spawned(server: CheckedServer, parent: str, name: str) -> str:
    agent = server.call("agent/spawn", parentId=parent, name=name, message="wait")["agent"]
    server.wait(agent["agentId"])
    return agent["agentId"]


def _runs(server: CheckedServer, session_id: str) -> str:
    """How the command of a session ends."""
    before = len(server.events(session_id))
    if server.call("session/get", sessionId=session_id)["session"].get("parentId"):
        server.call("agent/continue", agentId=session_id, text="run it")
    else:
        server.prompt(session_id, "run it")
    server.wait(session_id)
    (result,) = [
        e["data"]["status"]
        for e in server.events(session_id)[before:]
        if e["type"] == "tool_result"
    ]
    return result


@pytest.mark.parametrize("server", ["allow"], indirect=True)
def test_peers_77_a_denial_for_one_agent_holds_for_it_and_those_below_it_alone(
    tmp_path: Path, server: CheckedServer
) -> None:
    root = server.create(tmp_path / "work", mode="work")
    one, two = _spawned(server, root, "one"), _spawned(server, root, "two")
    below = _spawned(server, one, "below")
    rule = server.call(
        "approval/ruleAdd", scope="session", sessionId=one, effect="deny", tool="run_command"
    )["rule"]
    assert [_runs(server, each) for each in (one, below)] == ["denied", "denied"]
    assert not (tmp_path / "work" / "ran.txt").exists()
    assert [_runs(server, each) for each in (two, root)] == ["ok", "ok"]
    server.call("approval/ruleRemove", ruleId=rule["ruleId"])
    assert _runs(server, below) == "ok"


@pytest.mark.parametrize("server", ["ask"], indirect=True)
def test_peers_77_nothing_is_allowed_to_one_agent_that_its_parent_may_not(
    tmp_path: Path, server: CheckedServer
) -> None:
    root = server.create(tmp_path / "work", mode="work")
    one = _spawned(server, root, "one")
    with pytest.raises(RpcError) as refused:
        server.call(
            "approval/ruleAdd", scope="session", sessionId=one, effect="allow", tool="run_command"
        )
    assert refused.value.kind == "invalidParams"
    assert root in refused.value.error["message"] + str(refused.value.error.get("data"))
    server.call(
        "approval/ruleAdd", scope="session", sessionId=root, effect="allow", tool="run_command"
    )
    assert _runs(server, one) == "ok"
