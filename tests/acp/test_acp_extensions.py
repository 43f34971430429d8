"""Callboard's own methods over the Agent Client Protocol."""

from pathlib import Path

import pytest
from acp_scenes import scenes, workspace

from harness.acp import AcpProcess, RpcError
from harness.process import scenario

CHILD = """
rules:
  - when: {last_user: {contains: stall}}
    answer: [{hang: true}]
default: [{say: Done.}]
"""


def test_agents_groups_and_approvals_can_be_reached(tmp_path: Path) -> None:
    with AcpProcess(tmp_path, model=scenario(tmp_path, CHILD)) as agent:
        offered = agent.hello["agentCapabilities"]["_meta"]["callboard"]["extensions"]
        assert offered == [f"_callboard/{family}/*" for family in ("agent", "approval", "group")]
        session = agent.new(workspace(tmp_path))
        child = agent.call(
            "_callboard/agent/spawn", parentId=session, name="kid", message="do a thing"
        )["agent"]
        assert child["name"] == "kid"
        listed = agent.call("_callboard/agent/list", rootId=session)["data"]
        assert [each["agentId"] for each in listed] == [child["agentId"]]
        task = agent.call("_callboard/group/taskCreate", rootId=session, title="Write it")["task"]
        tasks = agent.call("_callboard/group/taskList", rootId=session)["data"]
        assert [each["taskId"] for each in tasks] == [task["taskId"]]
        assert agent.call("_callboard/approval/list")["data"] == []
        assert agent.call("_callboard/agent/probe", profile="default")["status"] == "ready"
        children = [s["sessionId"] for s in agent.call("session/list")["sessions"]]
        assert children == [session], "children are no sessions of the list"


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("_callboard/agent/list", {}, -32602),
        ("_callboard/agent/fly", {}, -32601),
        ("_callboard/session/create", {"cwd": "/"}, -32601),
        ("_callboard/agent/list", {"rootId": "ses_unheard_of"}, -32002),
        ("_somebody/else", {}, -32601),
    ],
)
def test_what_is_wrong_is_told_as_everywhere(
    tmp_path: Path, method: str, params: dict[str, str], code: int
) -> None:
    with AcpProcess(tmp_path, model=scenes(tmp_path)) as agent:
        with pytest.raises(RpcError) as wrong:
            agent.call(method, **params)
        assert wrong.value.error["code"] == code and wrong.value.error["message"]
