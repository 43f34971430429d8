"""A server whose environment has sniffio, as that of many other packages has: anyio then knows of no
event loop outside of a task."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import fakes
from harness.process import ANEW, RpcError, ServerProcess, scenario, types

SCENARIO = """
rules:
  - when: {last_user: {contains: "run"}, step: 0}
    answer: [{call: {tool: run_command, arguments: {command: "echo hello"}}}]
default: [{say: done}]
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    beside = str(Path(next(iter(fakes.__path__))) / "beside")
    path = os.pathsep.join(filter(None, [beside, os.environ.get("PYTHONPATH")]))
    with ServerProcess(
        tmp_path, model=scenario(tmp_path, SCENARIO), environ={"PYTHONPATH": path}, program=ANEW
    ) as running:
        yield running


def test_a_turn_with_an_approval_runs(tmp_path: Path, server: ServerProcess) -> None:
    session_id = server.create(tmp_path)
    server.call("event/subscribe", scope={"kind": "all"}, **{"from": "now"})
    server.prompt(session_id, "run it")
    frame = server.until(lambda m: m.get("method") == "approval/request")
    server.send({"jsonrpc": "2.0", "id": frame["id"], "result": {"optionId": "allow_once"}})
    assert server.wait(session_id)["turn"]["state"] == "completed"
    assert types(server.events(session_id))[-1] == "turn_finished"


def test_a_request_can_be_cancelled_before_and_while_it_runs(
    tmp_path: Path, server: ServerProcess
) -> None:
    session_id = server.create(tmp_path)
    server.prompt(session_id, "run it")
    asked = server.request("session/wait", sessionId=session_id, until="idle")
    server.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": asked}})
    with pytest.raises(RpcError) as refused:
        server.result(asked)
    assert refused.value.error["data"]["kind"] == "requestCancelled"
