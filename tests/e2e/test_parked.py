"""Turns that wait for an approval when their server dies: what is answered, by whom, and what comes of it."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from harness.process import RpcError, ServerProcess, scenario, types
from harness.stopping import stop

SCENARIO = """
rules:
  - when: {last_user: {regex: "^run (.+) and (.+)$"}, step: 0}
    answer:
      - call: {tool: run_command, arguments: {command: "{{match.1}}"}}
      - call: {tool: run_command, arguments: {command: "{{match.2}}"}}
  - when: {last_user: {regex: "^run (.+)$"}, step: 0}
    answer:
      - say: I will.
      - call: {tool: run_command, arguments: {command: "{{match.1}}"}}
  - when: {last_tool: {contains: ""}}
    answer: [{say: "It said: {{last_tool}}"}]
default: [{say: "You said: {{last_user}}."}]
"""
ONCE = "echo x >> ran.txt"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def model(tmp_path: Path) -> str:
    return scenario(tmp_path, SCENARIO)


def _of(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event["data"] for event in events if event["type"] == kind]


def _turns(events: list[dict[str, Any]]) -> list[str]:
    return [kind for kind in types(events) if kind.startswith("turn_")]


def _whole(events: list[dict[str, Any]]) -> None:
    """What holds for every log: no hole, one result for each call, one end for each approval."""
    assert [e["seq"] for e in events] == list(range(1, len(events) + 1))
    called = sorted(c["callId"] for c in _of(events, "tool_call"))
    assert sorted(r["callId"] for r in _of(events, "tool_result")) == called
    asked = sorted(r["approval"]["approvalId"] for r in _of(events, "approval_request"))
    assert sorted(d["approvalId"] for d in _of(events, "approval_decision")) == asked


def _park(
    folder: Path, work: Path, model: str, text: str = f"run {ONCE}", **more: Any
) -> tuple[str, list[str]]:
    """A session whose server was killed while it waited; its approvals."""
    with ServerProcess(folder, model=model, **more) as server:
        session_id = server.create(work)
        server.prompt(session_id, text)
        waited = server.wait(session_id, "attention")
        server.kill()
    return session_id, [each["approvalId"] for each in waited["approvals"]]


def _answer(server: ServerProcess, approval_id: str, option: str, **more: Any) -> dict[str, Any]:
    return server.call("approval/answer", approvalId=approval_id, optionId=option, **more)


def _kind(server: ServerProcess, method: str, **params: Any) -> str:
    with pytest.raises(RpcError) as error:
        server.call(method, **params)
    return error.value.kind


@pytest.fixture
def pair(tmp_path: Path, model: str) -> Iterator[tuple[ServerProcess, ServerProcess]]:
    with (
        ServerProcess(tmp_path, model=model, client_id="one") as one,
        ServerProcess(tmp_path, model=model, client_id="two") as two,
    ):
        yield one, two


# --- answers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["allow_once", "reject_once"])
def test_interrupts_59_an_answer_in_the_moment_in_which_the_owner_died_resumes_the_turn(
    pair: tuple[ServerProcess, ServerProcess], work: Path, option: str
) -> None:
    """Nobody has noticed the death when the answer comes: it must not make an interrupted turn of one
    that has begun nothing."""
    one, two = pair
    session_id = one.create(work)
    one.prompt(session_id, f"run {ONCE}")
    (approval,) = two.wait(session_id, "attention")["approvals"]
    one.kill()
    _answer(two, approval["approvalId"], option, feedback="so be it")
    assert two.wait(session_id)["turn"]["state"] == "completed"
    events = two.events(session_id)
    _whole(events)
    assert _turns(events) == ["turn_started", "turn_parked", "turn_resumed", "turn_finished"]
    (result,) = _of(events, "tool_result")
    allowed = option == "allow_once"
    assert result["status"] == ("ok" if allowed else "denied")
    assert (work / "ran.txt").exists() is allowed
    assert allowed or "so be it" in result["text"]
    # the same turn went on: the model was told of what it had asked for, and was asked nothing anew
    assert types(events).count("tool_call") == 1
    assert {e["turnId"] for e in events if e.get("turnId")} == {events[2]["turnId"]}


def test_interrupts_57_a_parked_question_answered_twice_from_two_processes_is_answered_once(
    tmp_path: Path, work: Path, model: str
) -> None:
    session_id, (approval_id,) = _park(tmp_path, work, model)
    with (
        ServerProcess(tmp_path, model=model, client_id="one") as one,
        ServerProcess(tmp_path, model=model, client_id="two") as two,
    ):
        asked = [
            (server, server.request("approval/answer", approvalId=approval_id, optionId=option))
            for server, option in ((one, "allow_once"), (two, "reject_once"))
        ]
        outcomes: list[Any] = []
        for server, request in asked:
            try:
                outcomes.append(server.result(request)["approval"]["resolution"])
            except RpcError as error:
                assert error.kind == "alreadyResolved"
                outcomes.append(error.error["data"]["resolution"])
        assert outcomes[0] == outcomes[1]
        one.wait(session_id)
        events = two.events(session_id)
        _whole(events)
        assert [d["resolution"] for d in _of(events, "approval_decision")] == outcomes[:1]
        assert _turns(events) == ["turn_started", "turn_parked", "turn_resumed", "turn_finished"]
        ran = (work / "ran.txt").exists()
        assert ran is (outcomes[0]["outcome"] == "allowed")
        assert not ran or (work / "ran.txt").read_text() == "x\n"


def test_parked_of_two_questions_each_is_answered_over_a_crash_of_its_own(
    tmp_path: Path, work: Path, model: str
) -> None:
    """The second is answered first; the turn then waits on for the first, over another crash."""
    session_id, (first, second) = _park(
        tmp_path, work, model, "run echo one >> ran.txt and echo two >> ran.txt"
    )
    with ServerProcess(tmp_path, model=model) as server:
        _answer(server, second, "allow_once")
        session = server.call("session/get", sessionId=session_id)["session"]
        assert session["pendingApprovals"] == 1
        server.kill()
    assert not (work / "ran.txt").exists()
    with ServerProcess(tmp_path, model=model) as server:
        _answer(server, first, "allow_once")
        assert server.wait(session_id)["turn"]["state"] == "completed"
        events = server.events(session_id)
        _whole(events)
        assert [r["status"] for r in _of(events, "tool_result")] == ["ok", "ok"]
    assert (work / "ran.txt").read_text() == "one\ntwo\n"


def test_parked_what_was_queued_behind_the_question_is_answered_after_it(
    tmp_path: Path, work: Path, model: str
) -> None:
    with ServerProcess(tmp_path, model=model) as server:
        session_id = server.create(work)
        server.prompt(session_id, f"run {ONCE}")
        (approval,) = server.wait(session_id, "attention")["approvals"]
        assert server.prompt(session_id, "hello")["outcome"] == "queued"
        server.kill()
    with ServerProcess(tmp_path, model=model) as server:
        assert server.call("session/get", sessionId=session_id)["session"]["queueLength"] == 1
        _answer(server, approval["approvalId"], "allow_once")
        assert server.wait(session_id)["finalText"] == "You said: hello."
        events = server.events(session_id)
        _whole(events)
        assert [e["outcome"] for e in _of(events, "turn_finished")] == ["completed", "completed"]
    assert (work / "ran.txt").read_text() == "x\n"


# --- the clock --------------------------------------------------------------------------------


def test_coordination_73_a_question_whose_time_runs_out_while_no_server_runs_expires_at_the_next_start(
    tmp_path: Path, work: Path, model: str
) -> None:
    """It ends by the clock, never as somebody's refusal; the turn goes on and its model is told so."""
    expiring = {"config": {"approvals": {"expire_s": 1}}}
    session_id, (approval_id,) = _park(tmp_path, work, model, callboard=expiring)
    with ServerProcess(tmp_path, model=model) as server:
        approval = server.call("approval/get", approvalId=approval_id)["approval"]
        server.kill()
    while datetime.now(UTC) <= datetime.fromisoformat(approval["expiresAt"]):
        time.sleep(0.02)  # the clock itself is what is waited for
    with ServerProcess(tmp_path, model=model) as server:
        assert server.wait(session_id)["turn"]["state"] == "completed"
        with pytest.raises(RpcError) as error:
            _answer(server, approval_id, "allow_once")
        assert error.value.kind == "approvalExpired"
        events = server.events(session_id)
        _whole(events)
        (decision,) = _of(events, "approval_decision")
        assert (decision["resolution"]["outcome"], decision["resolution"]["via"]) == (
            "expired", "timeout",
        )  # fmt: skip
        assert [r["status"] for r in _of(events, "tool_result")] == ["timed_out"]
        assert "Nobody answered" in _of(events, "turn_finished")[0]["finalText"]
    assert not (work / "ran.txt").exists()


def test_coordination_73_a_question_without_a_limit_waits_over_any_number_of_starts(
    tmp_path: Path, work: Path, model: str
) -> None:
    session_id, (approval_id,) = _park(tmp_path, work, model)
    before: list[dict[str, Any]] | None = None
    for _ in range(2):
        with ServerProcess(tmp_path, model=model) as server:
            approval = server.call("approval/get", approvalId=approval_id)["approval"]
            assert (approval["state"], approval.get("resolution")) == ("pending", None)
            events = server.events(session_id)
            assert before is None or events == before  # opening again writes nothing
            before = events
            assert server.close() == 0


# --- what has changed meanwhile ---------------------------------------------------------------


def test_coordination_50_a_mode_that_was_narrowed_while_parked_holds_against_the_answer(
    tmp_path: Path, work: Path, model: str
) -> None:
    session_id, (approval_id,) = _park(tmp_path, work, model)
    with ServerProcess(tmp_path, model=model) as server:
        server.call("session/update", sessionId=session_id, mode="plan")
        _answer(server, approval_id, "allow_once")
        assert server.wait(session_id)["turn"]["state"] == "completed"
        events = server.events(session_id)
        _whole(events)
        assert [r["status"] for r in _of(events, "tool_result")] == ["denied"]
    assert not (work / "ran.txt").exists()


def test_parked_a_rule_that_forbids_and_was_made_meanwhile_holds_against_the_answer(
    tmp_path: Path, work: Path, model: str
) -> None:
    session_id, (approval_id,) = _park(tmp_path, work, model)
    with ServerProcess(tmp_path, model=model) as server:
        server.call(
            "approval/ruleAdd", scope="session", sessionId=session_id, tool="run_command",
            pattern="echo", effect="deny",
        )  # fmt: skip
        _answer(server, approval_id, "allow_once")
        server.wait(session_id)
        events = server.events(session_id)
        _whole(events)
        assert [r["status"] for r in _of(events, "tool_result")] == ["denied"]
    assert not (work / "ran.txt").exists()


def test_coordination_76_a_rule_revoked_while_parked_allows_nothing_that_waits_behind_the_question(
    tmp_path: Path, work: Path, model: str
) -> None:
    """The second call needed no question when it was made. By now it would, so it does not just run."""
    with ServerProcess(tmp_path, model=model) as server:
        session_id = server.create(work)
        rule = server.call(
            "approval/ruleAdd", scope="session", sessionId=session_id, tool="run_command",
            pattern="touch", effect="allow",
        )["rule"]  # fmt: skip
        server.prompt(session_id, f"run {ONCE} and touch second")
        (approval,) = server.wait(session_id, "attention")["approvals"]
        server.kill()
    with ServerProcess(tmp_path, model=model) as server:
        server.call("approval/ruleRemove", ruleId=rule["ruleId"])
        _answer(server, approval["approvalId"], "allow_once")
        assert server.wait(session_id)["turn"]["state"] == "completed"
        events = server.events(session_id)
        _whole(events)
        assert [r["status"] for r in _of(events, "tool_result")] == ["ok", "denied"]
        assert "by itself" in _of(events, "tool_result")[1]["text"]
    assert (work / "ran.txt").read_text() == "x\n"
    assert not (work / "second").exists()


def test_parked_a_turn_whose_profile_is_gone_fails_once_and_runs_nothing(
    tmp_path: Path, work: Path, model: str
) -> None:
    agents = tmp_path / "home" / "config" / "agents"
    agents.mkdir(parents=True)
    profile = agents / "helper.md"
    profile.write_text("---\nname: helper\ndescription: Helps.\n---\nYou help.\n", "utf-8")
    with ServerProcess(tmp_path, model=model) as server:
        session_id = server.create(work, profile="helper")
        server.prompt(session_id, f"run {ONCE}")
        (approval,) = server.wait(session_id, "attention")["approvals"]
        server.kill()
    profile.unlink()
    with ServerProcess(tmp_path, model=model) as server:
        _answer(server, approval["approvalId"], "allow_once")
        turn = server.wait(session_id)["turn"]
        assert (turn["state"], turn["error"]["kind"]) == ("failed", "profileNotFound")
        events = server.events(session_id)
        _whole(events)
        assert types(events).count("turn_finished") == 1
        assert [r["status"] for r in _of(events, "tool_result")] == ["cancelled"]
    assert not (work / "ran.txt").exists()


def test_parked_a_profile_that_has_lost_the_tool_runs_it_no_more(
    tmp_path: Path, work: Path, model: str
) -> None:
    agents = tmp_path / "home" / "config" / "agents"
    agents.mkdir(parents=True)
    profile = agents / "helper.md"
    text = "---\nname: helper\ndescription: Helps.\ntools: [{}]\n---\nYou help.\n"
    profile.write_text(text.format("run_command, read_file"), "utf-8")
    with ServerProcess(tmp_path, model=model) as server:
        session_id = server.create(work, profile="helper")
        server.prompt(session_id, f"run {ONCE}")
        (approval,) = server.wait(session_id, "attention")["approvals"]
        server.kill()
    profile.write_text(text.format("read_file"), "utf-8")
    with ServerProcess(tmp_path, model=model) as server:
        _answer(server, approval["approvalId"], "allow_once")
        assert server.wait(session_id)["turn"]["state"] == "completed"
        events = server.events(session_id)
        _whole(events)
        (result,) = _of(events, "tool_result")
        assert result["status"] == "error"
        assert "no tool 'run_command' any more" in result["text"]
    assert not (work / "ran.txt").exists()


# --- its other ends ---------------------------------------------------------------------------


def test_interrupts_76_a_deletion_of_a_parked_session_takes_its_question_back_everywhere(
    tmp_path: Path, work: Path, model: str
) -> None:
    session_id, (approval_id,) = _park(tmp_path, work, model)
    with (
        ServerProcess(tmp_path, model=model, client_id="one") as one,
        ServerProcess(tmp_path, model=model, client_id="two") as two,
    ):
        questions: list[int] = []
        for server in (one, two):
            server.call("event/subscribe", scope={"kind": "all"}, **{"from": "now"})
            questions.append(server.until(lambda m: m.get("method") == "approval/request")["id"])
        one.request("session/delete", sessionId=session_id)
        for server, question in zip((one, two), questions, strict=True):
            taken_back = {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": question}}
            server.until(lambda m, wanted=taken_back: m == wanted)
            # an answer that comes all the same, by either road, finds nothing
            late = {"jsonrpc": "2.0", "id": question, "result": {"optionId": "allow_once"}}
            server.send(late)
            known = {"approvalId": approval_id}
            assert _kind(server, "approval/answer", optionId="allow_once", **known) == (
                "approvalNotFound"
            )
            assert _kind(server, "approval/get", **known) == "approvalNotFound"
            assert server.call("approval/list")["data"] == []
            assert _kind(server, "session/get", sessionId=session_id) == "sessionNotFound"
            assert server.call("server/diagnostics")["leases"] == []
        assert one.close() == 0
        assert "Traceback" not in one.stderr()
    assert not (work / "ran.txt").exists()


def test_messaging_18_a_cancel_that_its_owner_s_death_overtook_holds_and_nothing_is_parked(
    pair: tuple[ServerProcess, ServerProcess], work: Path
) -> None:
    """The wish is in the log; the server that was to hear of it stands still, and then it is killed."""
    one, two = pair
    session_id = one.create(work)
    one.prompt(session_id, f"run {ONCE}")
    (approval,) = two.wait(session_id, "attention")["approvals"]
    stop(one)
    assert two.call("session/cancel", sessionId=session_id)["state"] == "cancelling"
    one.kill()
    assert two.wait(session_id)["turn"]["state"] == "cancelled"
    events = two.events(session_id)
    _whole(events)
    assert _turns(events) == ["turn_started", "turn_finished"]
    known = two.call("approval/get", approvalId=approval["approvalId"])["approval"]
    assert (known["state"], known["resolution"]["by"]["id"]) == ("cancelled", "two")
    assert not (work / "ran.txt").exists()
