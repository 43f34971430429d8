"""The wire of the Agent Client Protocol: one JSON object a line, exactly one answer, and nothing else."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from acp_scenes import scenes, workspace

from harness.acp import ANEW, AcpProcess, RpcError, allow
from harness.waiting import wait_until


@pytest.fixture
def agent(tmp_path: Path):
    with AcpProcess(tmp_path, model=scenes(tmp_path), permit=allow) as agent:
        yield agent


def error_of(agent: AcpProcess, line: bytes) -> dict[str, Any]:
    agent.write(line + b"\n")
    return agent.until(lambda m: "error" in m)


def test_initialize_tells_what_there_is_in_objects_and_echoes_the_version(tmp_path: Path) -> None:
    """A start with an interpreter of its own: nothing of the full server is there for the first answer."""
    with AcpProcess(tmp_path, model="scripted/demo", program=ANEW) as agent:
        hello = agent.hello
        assert hello["protocolVersion"] == 1
        assert hello["agentInfo"]["name"] == "callboard" and hello["agentInfo"]["version"]
        able = hello["agentCapabilities"]
        assert able["loadSession"] is True
        assert able["promptCapabilities"] == {
            "image": True, "audio": False, "embeddedContext": True
        }  # fmt: skip
        assert able["sessionCapabilities"] == {
            name: {} for name in ("list", "resume", "close", "delete", "additionalDirectories")
        }
        assert able["auth"] == {"logout": {}}
        assert "type" not in hello["authMethods"][0], "the first is the agent's own, and instant"
        assert agent.call("authenticate", methodId=hello["authMethods"][0]["id"]) == {}


@pytest.mark.parametrize("offered", [0, 1, 2, 65535])
def test_whatever_version_is_offered_version_1_is_answered(tmp_path: Path, offered: int) -> None:
    with AcpProcess(tmp_path, model="scripted/demo", initialize=False) as agent:
        assert agent.call("initialize", protocolVersion=offered)["protocolVersion"] == 1


@pytest.mark.parametrize(
    "params", [{}, {"protocolVersion": "1"}, {"protocolVersion": 1, "clientInfo": {"name": 5}}]
)
def test_a_wrong_initialize_is_refused_and_a_right_one_may_follow(
    tmp_path: Path, params: dict[str, Any]
) -> None:
    with AcpProcess(tmp_path, model="scripted/demo", initialize=False) as agent:
        with pytest.raises(RpcError) as wrong:
            agent.call("initialize", **params)
        assert wrong.value.error["code"] == -32602
        assert agent.initialize()["protocolVersion"] == 1
        assert agent.new(workspace(tmp_path)).startswith("ses_")


def test_nothing_comes_before_initialize_and_it_comes_once(tmp_path: Path) -> None:
    with AcpProcess(tmp_path, model="scripted/demo", initialize=False) as agent:
        with pytest.raises(RpcError) as early:
            agent.call("session/new", cwd=str(tmp_path), mcpServers=[])
        assert early.value.error["code"] == -32600
        agent.notify("session/cancel", sessionId="ses_x")
        agent.initialize()
        with pytest.raises(RpcError) as twice:
            agent.initialize()
        assert twice.value.error["code"] == -32600


def test_what_is_no_request_is_answered_as_such_and_the_stream_goes_on(agent: AcpProcess) -> None:
    assert error_of(agent, b"{nonsense")["error"]["code"] == -32700
    assert error_of(agent, b'{"jsonrpc":"2.0","id":7}') == {
        "jsonrpc": "2.0",
        "id": 7,
        "error": {"code": -32600, "message": "'method' must be a string"},
    }
    batch = json.dumps([{"jsonrpc": "2.0", "id": 8, "method": "session/list", "params": {}}])
    assert error_of(agent, batch.encode())["error"]["code"] == -32600
    assert error_of(agent, b'{"jsonrpc":"2.0","id":9,"method":"_unheard/of"}')["id"] == 9
    with pytest.raises(RpcError) as unknown:
        agent.call("session/dance")
    assert unknown.value.error["code"] == -32601
    agent.notify("session/unheard_of", sessionId="x")
    agent.notify("$/unheard_of")
    assert agent.call("session/list") == {"sessions": []}


def test_lines_may_come_in_any_pieces_with_blanks_and_a_carriage_return(agent: AcpProcess) -> None:
    frame = {"jsonrpc": "2.0", "id": "a", "method": "session/list", "params": {"_meta": {"x": 1}}}
    line = b"  " + json.dumps(frame).encode() + b" \r\n\n"
    for at in range(0, len(line), 7):
        agent.write(line[at : at + 7], frame if at == 0 else None)
    assert agent.until(lambda m: m.get("id") == "a")["result"] == {"sessions": []}


def test_params_that_do_not_fit_name_what_is_wrong(agent: AcpProcess, tmp_path: Path) -> None:
    for params, path in (
        ({}, "$.cwd"),
        ({"cwd": 5}, "$.cwd"),
        ({"cwd": "relative"}, "$.cwd"),
        ({"cwd": str(tmp_path / "nowhere")}, "$.cwd"),
        ({"cwd": str(tmp_path), "mcpServers": [{"name": "x"}]}, "$.mcpServers[0].command"),
    ):
        with pytest.raises(RpcError) as wrong:
            agent.call("session/new", **params)
        error = wrong.value.error
        assert error["code"] == -32602 and error["message"]
        assert error["data"]["errors"][0]["path"] == path
        assert "correlationId" in error["data"]


def test_unknown_fields_are_nothing_to_fail_for(agent: AcpProcess, tmp_path: Path) -> None:
    assert agent.call("session/new", cwd=str(workspace(tmp_path)), later={"a": [1]})["sessionId"]


def test_a_frame_that_is_too_large_is_skipped_and_told(tmp_path: Path) -> None:
    with AcpProcess(
        tmp_path, model="scripted/demo", environ={"CALLBOARD_LIMITS_FRAME_BYTES": "65536"}
    ) as agent:
        huge = {"jsonrpc": "2.0", "id": 77, "method": "session/list", "params": {"x": "y" * 70_000}}
        agent.send(huge)
        refused = agent.answer_to(77)
        assert refused["error"]["code"] == -32600 and "65536" in refused["error"]["message"]
        assert agent.call("session/list") == {"sessions": []}


def test_an_answer_that_is_too_large_is_not_answered_in_its_turn(tmp_path: Path) -> None:
    """The editor's own requests have ids of their own, and this is none of them."""
    folder = workspace(tmp_path)
    with AcpProcess(
        tmp_path,
        model=scenes(tmp_path),
        environ={"CALLBOARD_LIMITS_FRAME_BYTES": "65536"},
        capabilities={"fs": {"readTextFile": True, "writeTextFile": False}},
        answers={"fs/read_text_file": lambda _: {"content": "x" * 70_000}},
    ) as agent:
        assert agent.prompt(agent.new(folder), "look") == "end_turn"
        assert len(agent.asked("fs/read_text_file")) == 1
        (over,) = [u for u in agent.updates() if u.get("status") == "completed"]
        assert "two" in str(over["content"]), "the file is read where it lies"


def test_what_a_tool_prints_is_no_frame(agent: AcpProcess, tmp_path: Path) -> None:
    session = agent.new(workspace(tmp_path))
    assert agent.prompt(session, "print it") == "end_turn"
    (update,) = [u for u in agent.updates() if u.get("rawOutput")]
    assert "to stdout" in update["content"][0]["content"]["text"]
    assert update["status"] == "completed" and update["rawOutput"]["exitCode"] == 0


def test_it_ends_at_the_end_of_input_also_in_the_middle_of_a_turn(tmp_path: Path) -> None:
    agent = AcpProcess(tmp_path, model=scenes(tmp_path), program=ANEW)
    session = agent.new(workspace(tmp_path))
    asked = agent.ask(session, "stall")
    agent.until_update("agent_message_chunk")
    assert agent.close() == 0
    answer = agent.answer_to(asked)
    assert answer["result"] == {"stopReason": "cancelled"}, "what is asked is answered to the last"
    assert not agent.faults


def test_neither_pygls_nor_the_other_sdks_are_loaded(tmp_path: Path) -> None:
    probe = tmp_path / "probe"
    probe.mkdir()
    (probe / "sitecustomize.py").write_text(
        "import atexit, sys\n"
        "def tell():\n"
        "    heavy = {'pygls', 'lsprotocol', 'pydantic', 'acp'} & {m.partition('.')[0] for m in sys.modules}\n"
        "    print('loaded:', sorted(heavy), file=sys.stderr, flush=True)\n"
        "atexit.register(tell)\n"
    )
    agent = AcpProcess(
        tmp_path,
        model=scenes(tmp_path),
        permit=allow,
        program=ANEW,
        environ={"PYTHONPATH": os.pathsep.join([str(probe), os.environ.get("PYTHONPATH", "")])},
    )
    session = agent.new(workspace(tmp_path))
    assert agent.prompt(session, "write it") == "end_turn"
    assert agent.close() == 0
    assert "loaded: []" in agent.stderr()


def test_a_store_that_cannot_be_opened_is_the_answer_to_initialize(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_text("this is no database, and never was one\n" * 100)
    with AcpProcess(tmp_path, model="scripted/demo", initialize=False) as agent:
        with pytest.raises(RpcError) as broken:
            agent.initialize()
        assert broken.value.kind in ("storeCorrupt", "storeUnsupported")
        assert str(tmp_path / "store.db") in broken.value.error["message"]


def test_an_agent_that_came_on_a_full_disk_serves_once_there_is_room(tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.touch()
    program = (str(Path(__file__).parents[1] / "e2e" / "full_server.py"), "serve")
    with AcpProcess(
        tmp_path, model=scenes(tmp_path), program=program, environ={"FULL": str(full)}
    ) as agent:
        with pytest.raises(RpcError, match="is full"):
            agent.new(tmp_path)
        full.unlink()

        def session() -> str | None:
            try:
                return agent.new(tmp_path)
            except RpcError as error:
                assert "is full" in str(error)
                return None

        made = wait_until(
            session, "an agent that serves", deadline_s=60, pause=lambda: agent.process.poll()
        )
        assert agent.prompt(made, "hi") == "end_turn"
        assert len(agent.call("session/list")["sessions"]) == 1
