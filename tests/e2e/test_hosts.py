"""Several server processes on one store: each can do everything, one at a time runs a session."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.process import RpcError, ServerProcess, scenario, types

SCENE = """
rules:
  - when: {system: {contains: "You write the summary"}}
    answer: [{wait_ms: 1500}, {say: "A summary."}]
  - when: {last_tool: {name: run_command}}
    answer: [{say: "Ran it."}]
  - when: {last_user: {contains: "and then"}}
    answer: [{say: "Heard."}]
  - when: {last_user: {contains: run}}
    answer: [{call: {tool: run_command, arguments: {command: "echo x >> ran.txt"}}}]
  - when: {last_user: {contains: hang}}
    answer: [{say: "Working"}, {hang: true}]
default: [{say: "Heard."}]
"""


@pytest.fixture
def model(tmp_path: Path) -> str:
    return scenario(tmp_path, SCENE)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def pair(tmp_path: Path, model: str) -> Iterator[tuple[ServerProcess, ServerProcess]]:
    """Two servers on one store, each with a client of its own."""
    with (
        ServerProcess(tmp_path, model=model, client_id="one") as one,
        ServerProcess(tmp_path, model=model, client_id="two") as two,
    ):
        yield one, two


def _turns(events: list[dict]) -> list[str]:
    return [e["type"] for e in events if e["type"].startswith("turn_")]


def _subscribe(server: ServerProcess, session_id: str) -> None:
    scope = {"kind": "session", "id": session_id}
    server.call("event/subscribe", scope=scope, **{"from": "start"})


def test_a_session_that_another_host_runs_is_cancelled_from_here(
    pair: tuple[ServerProcess, ServerProcess], work: Path
) -> None:
    one, two = pair
    session_id = one.create(work)
    one.prompt(session_id, "hang")
    _subscribe(two, session_id)
    two.until_event(lambda e: e["type"] == "ack")
    assert two.call("session/cancel", sessionId=session_id)["state"] == "cancelling"
    assert two.wait(session_id)["turn"]["state"] == "cancelled"


def test_an_approval_of_another_host_s_turn_is_answered_from_here_and_runs_once(
    pair: tuple[ServerProcess, ServerProcess], work: Path
) -> None:
    one, two = pair
    session_id = one.create(work)
    one.prompt(session_id, "run")
    approval = two.wait(session_id, "attention")["approvals"][0]["approvalId"]
    two.call("approval/answer", approvalId=approval, optionId="allow_once")
    assert two.wait(session_id)["finalText"] == "Ran it."
    assert (work / "ran.txt").read_text() == "x\n"


def test_a_mode_that_is_narrowed_from_here_stops_another_host_s_next_write(
    pair: tuple[ServerProcess, ServerProcess], work: Path
) -> None:
    one, two = pair
    session_id = one.create(work)
    one.prompt(session_id, "run")
    approval = two.wait(session_id, "attention")["approvals"][0]["approvalId"]
    two.call("session/update", sessionId=session_id, mode="ask")
    two.call("approval/answer", approvalId=approval, optionId="allow_once")
    two.wait(session_id)
    results = [e["data"] for e in two.events(session_id) if e["type"] == "tool_result"]
    assert [r["status"] for r in results] == ["denied"]
    assert not (work / "ran.txt").exists()


def test_a_prompt_is_run_by_the_host_that_accepted_it_and_not_cut_off_with_another(
    pair: tuple[ServerProcess, ServerProcess], work: Path
) -> None:
    one, two = pair
    session_id = one.create(work)
    one.prompt(session_id, "run")
    approval = two.wait(session_id, "attention")["approvals"][0]["approvalId"]
    assert two.prompt(session_id, "and then?")["outcome"] == "queued"
    two.call("approval/answer", approvalId=approval, optionId="allow_once")
    one.wait(session_id, "turnEnd")
    assert one.close() == 0  # gone as soon as its own turn has ended
    assert two.wait(session_id)["finalText"] == "Heard."
    events = two.events(session_id)
    started = [e["data"] for e in events if e["type"] == "turn_started"]
    assert [s["hostId"] for s in started] == [
        one.hello["capabilities"]["experimental"]["callboard"]["hostId"],
        two.hello["capabilities"]["experimental"]["callboard"]["hostId"],
    ]
    assert [e["data"]["outcome"] for e in events if e["type"] == "turn_finished"] == [
        "completed",
        "completed",
    ]


def test_what_a_host_had_accepted_is_run_by_another_when_it_is_killed(
    pair: tuple[ServerProcess, ServerProcess], work: Path
) -> None:
    one, two = pair
    session_id = one.create(work)
    one.prompt(session_id, "hang")
    one.prompt(session_id, "and then?")
    _subscribe(two, session_id)
    one.kill()
    two.until_event(lambda e: e["type"] == "turn_finished" and e["data"]["outcome"] == "completed")
    events = two.events(session_id)
    assert _turns(events) == ["turn_started", "turn_finished"] * 2
    assert [e["data"]["outcome"] for e in events if e["type"] == "turn_finished"] == [
        "interrupted",
        "completed",
    ]


def test_a_session_that_another_host_runs_is_closed_and_deleted_from_here(
    pair: tuple[ServerProcess, ServerProcess], work: Path
) -> None:
    one, two = pair
    closing, deleting = one.create(work), one.create(work)
    for session_id in (closing, deleting):
        one.prompt(session_id, "hang")
        _subscribe(two, session_id)
        two.until_event(lambda e, s=session_id: e["type"] == "ack" and e["sessionId"] == s)
    assert two.call("session/close", sessionId=closing)["session"]["status"] == "closed"
    assert types(two.events(closing))[-2:] == ["turn_finished", "session_closed"]
    two.call("session/delete", sessionId=deleting)
    with pytest.raises(RpcError) as error:
        one.events(deleting)
    assert error.value.kind == "sessionNotFound"
    assert one.call("server/diagnostics")["queues"]["turns"] == 0


def test_a_prompt_that_came_during_another_host_s_compaction_is_answered_by_its_own(
    pair: tuple[ServerProcess, ServerProcess], work: Path
) -> None:
    one, two = pair
    session_id = one.create(work)
    for text in ("one", "two"):
        one.prompt(session_id, text)
        one.wait(session_id)
    compacting = one.request("session/compact", sessionId=session_id)
    while two.call("session/get", sessionId=session_id)["session"].get("owner") is None:
        pass
    assert two.prompt(session_id, "and then?")["outcome"] == "queued"
    assert one.result(compacting)["compacted"]
    assert two.wait(session_id)["finalText"] == "Heard."
    started = [e["data"] for e in two.events(session_id) if e["type"] == "turn_started"]
    assert (
        started[-1]["hostId"] == (two.hello["capabilities"]["experimental"]["callboard"]["hostId"])
    )
