"""A child's approval and a child's name, over the wire: who is asked when several clients look on, and which
names there can be (interrupts-and-peers 56, 57, coordination 6)."""

import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.checked import CheckedServer
from harness.process import RpcError, scenario

SCENE = """
rules:
  - when: {last_tool: {name: run_command}}
    answer: [{say: "Ran it."}]
  - when: {last_user: {contains: "run it"}, step: 0}
    answer: [{call: {tool: run_command, arguments: {command: "echo ran >> ran.txt"}}}]
default:
  - say: "Done."
"""
CONFIG = '[approvals.policy]\nexecute = "ask"\n'


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[CheckedServer]]:
    """Two windows of an editor: two processes on one store."""
    (tmp_path / "work").mkdir()
    (tmp_path / "home" / "config").mkdir(parents=True)
    (tmp_path / "home" / "config" / "config.toml").write_text(CONFIG)
    model = scenario(tmp_path, SCENE)
    made = [CheckedServer(tmp_path, model=model, client_id=each) for each in ("here", "there")]
    yield made
    for server in made:
        server.__exit__()


def _asked(server: CheckedServer) -> tuple[int, dict[str, Any]]:
    found = server.until(lambda m: m.get("method") == "approval/request")
    return found["id"], found["params"]["approval"]


def test_peers_56_57_a_child_s_question_reaches_every_client_and_the_first_answer_wins(
    tmp_path: Path, servers: list[CheckedServer]
) -> None:
    here, there = servers
    root = here.create(tmp_path / "work", mode="work")
    for server in servers:
        scope = {"kind": "tree", "id": root}
        server.call("event/subscribe", scope=scope, **{"from": "now"})
    agent = here.call("agent/spawn", parentId=root, name="one", message="run it")["agent"]
    _, approval = _asked(here)
    request_id, same = _asked(there)
    assert same == approval
    assert (approval["sessionId"], approval["rootId"]) == (agent["agentId"], root)
    assert [(s["sessionId"], s["name"]) for s in approval["path"]] == [
        (root, "default"), (agent["agentId"], "one"),
    ]  # fmt: skip
    for server in servers:
        assert server.call("approval/list", state="pending", sessionId=root)["data"] == [approval]
    there.send({"jsonrpc": "2.0", "id": request_id, "result": {"optionId": "allow_once"}})
    assert here.wait(agent["agentId"])["reason"] == "idle"
    with pytest.raises(RpcError) as late:
        here.call("approval/answer", approvalId=approval["approvalId"], optionId="reject_once")
    assert late.value.kind == "alreadyResolved"
    resolution = late.value.error["data"]["resolution"]
    assert (resolution["outcome"], resolution["by"]["id"]) == ("allowed", "there")
    with pytest.raises(RpcError) as unknown:
        here.call("approval/answer", approvalId="apr_none", optionId="allow_once")
    assert unknown.value.kind == "approvalNotFound"
    assert (tmp_path / "work" / "ran.txt").read_text() == "ran\n"


# --- names --------------------------------------------------------------------------------------

SPACES = [c for c in map(chr, range(0x110000)) if c.isspace()]
CONTROLS = [chr(n) for n in range(0x110000) if unicodedata.category(chr(n)) == "Cc"]
FORMATS = [*"\u00ad\u061c\u200b\u200d\u200e\u202e\u2028\u2029\u2060\u2066\ufeff\U000e0041"]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CheckedServer]:
    running = CheckedServer(tmp_path, model=scenario(tmp_path, SCENE))
    with running:
        yield running


def _refusal(server: CheckedServer, root: str, **params: Any) -> dict[str, Any]:
    with pytest.raises(RpcError) as refused:
        server.call("agent/spawn", parentId=root, message="go", **params)
    return refused.value.error


def test_coordination_6_no_white_space_and_no_control_character_makes_another_name(
    tmp_path: Path, server: CheckedServer
) -> None:
    root = server.create(tmp_path, mode="work")
    taken = server.call("agent/spawn", parentId=root, name="one two", message="go")["agent"]
    server.wait(taken["agentId"])
    head = server.call("server/ping")["head"]
    for space in SPACES:
        # at the ends every white space goes, so that this is the name that is taken
        around = _refusal(server, root, name=f"{space}{space}one two{space}")
        assert around["data"]["kind"] == "nameInUse", f"U+{ord(space):04X}"
        blank = _refusal(server, root, name=space * 2)
        assert [fault["path"] for fault in blank["data"]["errors"]] == ["$.name"]
        inside = _refusal(server, root, name=f"one{space}{space}two")
        plain = unicodedata.category(space) == "Zs"
        assert inside["data"]["kind"] == ("nameInUse" if plain else "invalidParams")
        assert plain or f"U+{ord(space):04X}" in inside["message"]
    for char in (*CONTROLS, *FORMATS):
        for field, value in (("name", f"one{char}two"), ("messageAllow", [f"one{char}two"])):
            refused = _refusal(server, root, **{"name": "new", field: value})
            assert refused["data"]["kind"] == "invalidParams", f"U+{ord(char):04X}"
            assert f"U+{ord(char):04X}" in refused["message"]
            assert char not in refused["message"], "what nobody can see is not shown as it is"
    assert server.call("server/ping")["head"] == head
    assert [a["name"] for a in server.call("agent/list", rootId=root)["data"]] == ["one two"]
