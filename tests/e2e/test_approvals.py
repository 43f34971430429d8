"""Approvals between real servers and their clients: asked everywhere, answered once, never forgotten."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.process import RpcError, ServerProcess, scenario, types

SCENARIO = """
rules:
  - when: {last_user: {regex: "^run (.+)$"}, step: 0}
    answer: [{call: {tool: run_command, arguments: {command: "{{match.1}}"}}}]
  - when: {last_tool: {contains: ""}}
    answer: [{say: "It said: {{last_tool}}"}]
default: [{say: done}]
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def model(tmp_path: Path) -> str:
    return scenario(tmp_path, SCENARIO)


def _subscribe(server: ServerProcess) -> None:
    server.call("event/subscribe", scope={"kind": "all"}, **{"from": "now"})


def _asked(server: ServerProcess) -> tuple[int, dict[str, Any]]:
    """The next question of the server: its request id, and the approval."""
    frame = server.until(lambda m: m.get("method") == "approval/request")
    return frame["id"], frame["params"]["approval"]


def _answer(server: ServerProcess, request_id: int, **result: Any) -> None:
    server.send({"jsonrpc": "2.0", "id": request_id, "result": result})


def _taken_back(server: ServerProcess, request_id: int) -> None:
    wanted = {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": request_id}}
    if wanted not in server.seen:
        server.until(lambda m: m == wanted)


def _of(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event["data"] for event in events if event["type"] == kind]


@pytest.fixture
def server(tmp_path: Path, model: str) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path, model=model) as running:
        _subscribe(running)
        yield running


def test_interrupts_56_57_every_attached_client_is_asked_and_the_first_answer_wins(
    tmp_path: Path, server: ServerProcess, work: Path, model: str
) -> None:
    with ServerProcess(tmp_path, model=model, client_id="second") as second:
        _subscribe(second)
        session_id = server.create(work)
        server.prompt(session_id, "run touch ran")
        here, approval = _asked(server)
        there, same = _asked(second)
        assert same == approval
        assert approval["rootId"] == approval["sessionId"] == session_id
        assert [step["sessionId"] for step in approval["path"]] == [session_id]
        assert approval["subject"] == {"type": "command", "command": "touch ran", "cwd": str(work)}
        for client in (server, second):
            listed = client.call("approval/list", state="pending", sessionId=session_id)["data"]
            assert listed == [approval]
        assert server.call("session/get", sessionId=session_id)["session"]["pendingApprovals"] == 1
        assert not (work / "ran").exists()

        _answer(second, there, optionId="allow_once")
        assert server.wait(session_id)["turn"]["state"] == "completed"
        assert (work / "ran").exists()
        _taken_back(server, here)
        with pytest.raises(RpcError) as error:
            server.call(
                "approval/answer", approvalId=approval["approvalId"], optionId="reject_once"
            )
        assert error.value.kind == "alreadyResolved"
        resolution = error.value.error["data"]["resolution"]
        assert (resolution["outcome"], resolution["optionId"], resolution["via"]) == (
            "allowed", "allow_once", "request",
        )  # fmt: skip
        assert resolution["by"]["id"] == "second"
        # an answer to the question itself that comes too late changes nothing either
        _answer(server, here, optionId="reject_always")
        events = server.events(session_id)
        assert [d["resolution"] for d in _of(events, "approval_decision")] == [resolution]
        assert server.call("approval/ruleList")["data"] == []


def test_interrupts_58_an_unknown_id_is_an_error_and_never_success(server: ServerProcess) -> None:
    for method, more in (
        ("approval/answer", {"optionId": "allow_once"}),
        ("approval/get", {}),
    ):
        with pytest.raises(RpcError) as error:
            server.call(method, approvalId="apr_none", **more)
        assert error.value.kind == "approvalNotFound"


def test_interrupts_59_a_question_over_a_crash_keeps_its_id_and_is_asked_again(
    tmp_path: Path, work: Path, model: str
) -> None:
    first = ServerProcess(tmp_path, model=model)
    with first:
        _subscribe(first)
        session_id = first.create(work)
        first.prompt(session_id, "run touch ran")
        _, approval = _asked(first)
        first.kill()
    with ServerProcess(tmp_path, model=model) as again:
        assert again.call("session/get", sessionId=session_id)["session"]["status"] == "parked"
        _subscribe(again)
        request_id, offered = _asked(again)
        assert offered["approvalId"] == approval["approvalId"]
        assert not (work / "ran").exists()
        _answer(again, request_id, optionId="reject_once", feedback="not now")
        assert again.wait(session_id)["turn"]["state"] == "completed"
        events = again.events(session_id)
        assert [r["status"] for r in _of(events, "tool_result")] == ["denied"]
        assert "not now" in _of(events, "tool_result")[0]["text"]
        assert types(events).count("approval_decision") == 1
        assert not (work / "ran").exists()
        with pytest.raises(RpcError) as error:
            again.call("approval/answer", approvalId=approval["approvalId"], optionId="allow_once")
        assert error.value.kind == "alreadyResolved"


def test_parked_a_prompt_waits_behind_the_question_and_a_cancel_lets_it_through(
    tmp_path: Path, work: Path, model: str
) -> None:
    with ServerProcess(tmp_path, model=model) as first:
        session_id = first.create(work)
        first.prompt(session_id, "run touch ran")
        first.wait(session_id, "attention")
        assert first.close() == 0  # an orderly end parks, too
    with ServerProcess(tmp_path, model=model) as again:
        assert again.prompt(session_id, "hello")["outcome"] == "queued"
        assert again.call("session/get", sessionId=session_id)["session"]["status"] == "parked"
        assert again.call("session/cancel", sessionId=session_id)["state"] == "cancelling"
        assert again.wait(session_id)["turn"]["state"] == "completed"
        events = again.events(session_id)
        finished = [e["outcome"] for e in _of(events, "turn_finished")]
        assert finished == ["cancelled", "completed"]
        assert [r["status"] for r in _of(events, "tool_result")] == ["cancelled"]
        assert not (work / "ran").exists()


def test_interrupts_59_a_client_that_comes_later_is_asked_what_is_still_open(
    tmp_path: Path, server: ServerProcess, work: Path, model: str
) -> None:
    session_id = server.create(work)
    server.prompt(session_id, "run touch ran")
    _, approval = _asked(server)
    with ServerProcess(tmp_path, model=model, client_id="late") as late:
        _subscribe(late)
        request_id, same = _asked(late)
        assert same == approval
        _answer(late, request_id, optionId="reject_once", feedback="not on a Friday")
        assert "not on a Friday" in server.wait(session_id)["turn"]["finalText"]
        assert not (work / "ran").exists()


def test_a_client_that_goes_away_denies_nothing(
    tmp_path: Path, server: ServerProcess, work: Path, model: str
) -> None:
    session_id = server.create(work)
    with ServerProcess(tmp_path, model=model, client_id="second") as second:
        _subscribe(second)
        server.prompt(session_id, "run touch ran")
        _asked(second)
        second.close()
    request_id, approval = _asked(server)
    listed = server.call("approval/list", state="pending")["data"]
    assert [a["approvalId"] for a in listed] == [approval["approvalId"]]
    _answer(server, request_id, optionId="allow_once")
    assert server.wait(session_id)["turn"]["state"] == "completed"
    assert (work / "ran").exists()


@pytest.mark.parametrize(
    "answer",
    [
        {"result": {"optionId": "yes"}},
        {"result": {"defer": True}},
        {"result": {}},
        {"result": None},
        {"result": {"optionId": 7}},
        {"error": {"code": -32603, "message": "the dialog crashed"}},
    ],
    ids=["unknown", "defer", "empty", "null", "wrong", "error"],
)
def test_what_is_no_answer_leaves_the_question_open(
    server: ServerProcess, work: Path, answer: dict[str, Any]
) -> None:
    session_id = server.create(work)
    server.prompt(session_id, "run touch ran")
    request_id, approval = _asked(server)
    server.send({"jsonrpc": "2.0", "id": request_id, **answer})
    server.call("server/ping")
    (listed,) = server.call("approval/list", state="pending")["data"]
    assert listed["approvalId"] == approval["approvalId"]
    assert not (work / "ran").exists()
    done = server.call(
        "approval/answer", approvalId=approval["approvalId"], optionId="reject_once"
    )["approval"]
    assert done["resolution"]["via"] == "method"
    assert server.wait(session_id)["turn"]["state"] == "completed"


def test_interrupts_60_without_a_client_to_ask_policy_decides_and_it_is_recorded(
    tmp_path: Path, work: Path, model: str
) -> None:
    with ServerProcess(
        tmp_path,
        model=model,
        approvals=False,
        callboard={"config": {"approvals": {"unattended": "deny"}}},
    ) as server:
        session_id = server.create(work)
        server.prompt(session_id, "run touch ran")
        assert server.wait(session_id)["turn"]["state"] == "completed"
        events = server.events(session_id)
        (result,) = _of(events, "tool_result")
        assert result["status"] == "denied"
        assert "nobody is connected" in result["text"]
        assert not (work / "ran").exists()
        # the decision and its reason, the setting, are in the log; nothing was asked, nothing waits
        assert result["text"].endswith("this server is set to refuse then")
        recorded = ("tool_call", "tool_result", "approval_request", "approval_decision")
        assert [t for t in types(events) if t in recorded] == ["tool_call", "tool_result"]
        assert server.call("approval/list")["data"] == []
        server.kill()
    with ServerProcess(tmp_path, model=model) as again:
        assert again.events(session_id) == events


def test_interrupts_60_without_a_client_to_ask_a_question_that_is_to_wait_is_recorded_and_waits(
    tmp_path: Path, work: Path, model: str
) -> None:
    with ServerProcess(
        tmp_path,
        model=model,
        approvals=False,
        callboard={"config": {"approvals": {"unattended": "park", "expire_s": 1}}},
    ) as server:
        session_id = server.create(work)
        server.prompt(session_id, "run touch ran")
        (waiting,) = server.wait(session_id, "attention")["approvals"]
        events = server.events(session_id)
        (request,) = _of(events, "approval_request")
        assert (request["approval"], waiting["state"]) == (waiting, "pending")
        assert waiting["reason"] == "running a command needs approval"
        assert "expiresAt" not in waiting
        assert types(events)[-1] == "approval_request"
        server.kill()
    with ServerProcess(tmp_path, model=model, approvals=False) as again:
        (still,) = again.call("approval/list")["data"]
        assert (still["approvalId"], still["state"]) == (waiting["approvalId"], "pending")
        assert _of(again.events(session_id), "approval_decision") == []
        assert not (work / "ran").exists()


def test_interrupts_60_without_a_client_to_ask_a_question_that_is_to_expire_does_and_is_recorded(
    tmp_path: Path, work: Path, model: str
) -> None:
    with ServerProcess(
        tmp_path,
        model=model,
        approvals=False,
        callboard={"config": {"approvals": {"unattended": "expire", "expire_s": 1}}},
    ) as server:
        session_id = server.create(work)
        server.prompt(session_id, "run touch ran")
        assert server.wait(session_id)["turn"]["state"] == "completed"
        events = server.events(session_id)
        assert [r["status"] for r in _of(events, "tool_result")] == ["timed_out"]
        (decision,) = _of(events, "approval_decision")
        resolution = decision["resolution"]
        assert (resolution["outcome"], resolution["via"]) == ("expired", "timeout")
        assert resolution["by"]["kind"] == "system"
        assert not (work / "ran").exists()
        (request,) = _of(events, "approval_request")
        assert resolution["at"] >= request["approval"]["expiresAt"]
        assert decision["callId"] == _of(events, "tool_call")[0]["callId"]
        (result,) = _of(events, "tool_result")
        assert result["text"].startswith("Nobody answered the request for this call in time")
        server.kill()
    with ServerProcess(tmp_path, model=model) as again:
        assert again.events(session_id) == events


def test_the_server_s_clock_ends_a_question_and_the_model_is_told(
    tmp_path: Path, work: Path, model: str
) -> None:
    with ServerProcess(
        tmp_path, model=model, callboard={"config": {"approvals": {"expire_s": 1}}}
    ) as server:
        _subscribe(server)
        session_id = server.create(work)
        server.prompt(session_id, "run touch ran")
        request_id, approval = _asked(server)
        assert approval["expiresAt"] > approval["createdAt"]
        assert server.wait(session_id)["turn"]["state"] == "completed"
        _taken_back(server, request_id)
        events = server.events(session_id)
        assert [r["status"] for r in _of(events, "tool_result")] == ["timed_out"]
        assert [d["resolution"]["outcome"] for d in _of(events, "approval_decision")] == ["expired"]
        with pytest.raises(RpcError) as error:
            server.call("approval/answer", approvalId=approval["approvalId"], optionId="allow_once")
        assert error.value.kind == "approvalExpired"
        assert not (work / "ran").exists()


def test_cancelling_takes_the_question_back_from_every_client(
    server: ServerProcess, work: Path
) -> None:
    session_id = server.create(work)
    server.prompt(session_id, "run touch ran")
    request_id, approval = _asked(server)
    server.call("session/cancel", sessionId=session_id)
    assert server.wait(session_id)["turn"]["state"] == "cancelled"
    _taken_back(server, request_id)
    ended = server.call("approval/get", approvalId=approval["approvalId"])["approval"]
    assert (ended["state"], ended["resolution"]["via"]) == ("cancelled", "cancel")
    assert not (work / "ran").exists()
    (result,) = _of(server.events(session_id), "tool_result")
    assert (result["status"], result["text"].split(":")[0]) == ("cancelled", "Not run")


def test_a_rule_can_be_seen_and_revoked_and_then_one_is_asked_again(
    server: ServerProcess, work: Path
) -> None:
    session_id = server.create(work)
    server.prompt(session_id, "run echo one")
    request_id, _ = _asked(server)
    _answer(server, request_id, optionId="allow_always")
    server.wait(session_id)
    server.prompt(session_id, "run echo two")
    assert "two" in server.wait(session_id)["turn"]["finalText"]
    (rule,) = server.call("approval/ruleList", scope="workspace")["data"]
    assert (rule["tool"], rule["pattern"], rule["effect"], rule["workspace"]) == (
        "run_command", "echo", "allow", str(work),
    )  # fmt: skip
    server.call("approval/ruleRemove", ruleId=rule["ruleId"])
    assert server.call("approval/ruleList")["data"] == []
    server.prompt(session_id, "run echo three")
    request_id, _ = _asked(server)
    _answer(server, request_id, optionId="reject_once")
    server.wait(session_id)


def test_coordination_78_the_client_s_mode_beats_the_session_s_and_that_the_default(
    tmp_path: Path, work: Path, model: str
) -> None:
    with ServerProcess(
        tmp_path, model=model, callboard={"config": {"approvals": {"mode": "plan"}}}
    ) as server:
        by_default = server.create(work)
        chosen = server.create(work, mode="ask")

        def mode(session_id: str) -> str:
            return server.call("session/get", sessionId=session_id)["session"]["mode"]

        assert (mode(by_default), mode(chosen)) == ("plan", "ask")
        server.call("session/update", sessionId=chosen, mode="work")
        assert mode(chosen) == "work"
        assert _of(server.events(chosen), "mode_changed") == [{"mode": "work"}]
    with ServerProcess(tmp_path, model=model) as server:
        session = server.call("session/get", sessionId=by_default)["session"]
        assert session["mode"] == "plan"  # what the session has outlives the default it came from
