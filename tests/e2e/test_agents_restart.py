"""Agents through the death of their server: a real process, killed, and started again, twice
(coordination 21, 22, 25, 47, 53; interrupts-and-peers 17, 59; session-messaging 5)."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.agent_invariants import check_tree, told_in
from harness.checked import CheckedServer
from harness.invariants import check_session
from harness.process import scenario, types

SCENE = """
rules:
  - when: {last_user: {regex: "go on|finish, then|what is new|and now"}}
    answer: [{say: "Heard."}]
  - when: {last_tool: {name: run_command}}
    answer: [{say: "Ran it."}]
  - when: {last_user: {contains: "stay there"}}
    answer: [{say: "Working on it."}, {hang: true}]
  - when: {last_user: {contains: "run it"}, step: 0}
    answer: [{call: {tool: run_command, arguments: {command: "echo $CALLBOARD_CALL >> ran.txt"}}}]
  - when: {last_user: {contains: "have it done"}, step: 0}
    answer: [{call: {tool: spawn_agent, arguments: {name: helper, message: "stay there", wait: true}}}]
default: [{say: "Heard: {{last_user}}"}]
"""
CONFIG = '[approvals.policy]\nexecute = "ask"\n'
Start = Callable[..., CheckedServer]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (tmp_path / "home" / "config").mkdir(parents=True)
    (tmp_path / "home" / "config" / "config.toml").write_text(CONFIG)
    return folder


@pytest.fixture
def start(tmp_path: Path, work: Path) -> Iterator[Start]:
    """Starts a server on the test's store. Those that are left are ended with the test."""
    model = scenario(tmp_path, SCENE)
    servers: list[CheckedServer] = []

    def start(**environ: str) -> CheckedServer:
        server = CheckedServer(tmp_path, model=model, environ=environ, approvals=False)
        servers.append(server)
        return server

    yield start
    for server in servers:
        if server.process.poll() is None:
            server.kill()
        server.__exit__()


def spawn(server: CheckedServer, root: str, name: str, message: str, **more: Any) -> str:
    made = server.call("agent/spawn", parentId=root, name=name, message=message, **more)
    return made["agent"]["agentId"]


def agents(server: CheckedServer, root: str) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in server.call("agent/list", rootId=root)["data"]}


def until(server: CheckedServer, session_id: str, kind: str) -> dict[str, Any]:
    """The first event of a type in a session's log, as soon as it is there."""
    scope = {"kind": "session", "id": session_id}
    server.call("event/subscribe", scope=scope, **{"from": "start"})
    return server.find_event(lambda e: e["type"] == kind and e["sessionId"] == session_id)


def runs(server: CheckedServer, session_id: str) -> None:
    """Until a turn of the session has begun."""
    until(server, session_id, "ack")


def heard(events: list[dict[str, Any]]) -> list[str]:
    """What the agent read, in order: its brief, directives, and messages that were delivered."""
    texts = {
        e["seq"]: e["data"].get("text") or e["data"]["content"][0]["text"]
        for e in events
        if e["type"] == "directive" or (e["type"] == "message" and e["data"].get("delivered"))
    }
    return [
        texts[s] for e in events if e["type"] == "ack" for s in e["data"]["admits"] if s in texts
    ]


def check(server: CheckedServer, *session_ids: str) -> None:
    """What holds of every tree in which nothing runs; no report waits here."""
    logs = {each: server.events(each) for each in session_ids}
    for each, log in logs.items():
        check_session(each, log)
    check_tree(logs, {})


# --- coordination 21, 22, 25 --------------------------------------------------------------------


def test_coordination_21_22_25_what_a_killed_server_ran_is_interrupted_once_and_reruns_nothing(
    start: Start, work: Path
) -> None:
    first = start(CALLBOARD_AGENTS_MAX_RUNNING="1")
    root = first.create(work, mode="work")
    idle = spawn(first, root, "idle", "say hello")
    first.wait(idle)
    running = spawn(first, root, "running", "stay there")
    runs(first, running)
    waiting = spawn(first, root, "waiting", "wait for your turn")
    assert {n: a["status"] for n, a in agents(first, root).items()} == {
        "idle": "completed",
        "running": "running",
        "waiting": "starting",
    }
    assert agents(first, root)["waiting"]["waitsForSlot"]
    first.kill()
    seen: list[list[int]] = []
    for _ in range(2):
        again = start()
        found = agents(again, root)
        assert {n: a["status"] for n, a in found.items()} == {
            "idle": "completed",
            "running": "interrupted",
            "waiting": "interrupted",
        }
        for each in (running, waiting):
            again.wait(each)
            log = again.events(each)
            assert types(log).count("agent_interrupted") == 1
            assert types(log).count("turn_started") == (1 if each == running else 0)
            assert not [e for e in log if e["type"] == "agent_report_created"]
        seen.append([len(again.events(each)) for each in (root, idle, running, waiting)])
        again.kill()
    assert seen[0] == seen[1], "the second start wrote something"
    last = start()
    for each in (waiting, running):
        last.call("agent/continue", agentId=each, text="go on, then")
        last.wait(each)
        brief = "wait for your turn" if each == waiting else "stay there"
        assert heard(last.events(each)) == [brief, "go on, then"]
        assert types(last.events(each))[-2:] == ["agent_report_created", "turn_finished"]
    # what had streamed before the first death is kept
    partial = [e["data"] for e in last.events(running) if e["type"] == "message"
               and e["data"].get("partial")]  # fmt: skip
    assert [p["content"][0]["text"] for p in partial] in ([], ["Working on it."])
    last.prompt(root, "what is new?")
    last.wait(root)
    check(last, root, idle, running, waiting)
    assert sum(told_in(last.events(root)).values()) == 3


def test_coordination_21_agents_of_a_host_that_died_are_reconciled_by_another_that_lives(
    start: Start, work: Path
) -> None:
    other = start()
    root = other.create(work, mode="work")
    victim = start(CALLBOARD_AGENTS_MAX_RUNNING="1")
    running = spawn(victim, root, "running", "stay there")
    runs(victim, running)
    waiting = spawn(victim, root, "waiting", "wait for your turn")
    victim.kill()
    for each in (running, waiting):
        until(other, each, "agent_interrupted")
        assert other.wait(each)["reason"] == "idle"
    assert {a["status"] for a in agents(other, root).values()} == {"interrupted"}
    for each in (running, waiting):
        other.call("agent/continue", agentId=each, text="go on, then")
        other.wait(each)
        assert types(other.events(each)).count("agent_interrupted") == 1
    other.prompt(root, "what is new?")
    other.wait(root)
    check(other, root, running, waiting)


def test_coordination_25_what_was_left_for_an_agent_outlives_two_deaths_and_is_read_once(
    start: Start, work: Path
) -> None:
    first = start()
    root = first.create(work, mode="work")
    agent = spawn(first, root, "one", "say hello")
    first.wait(agent)
    first.call("agent/send", agentId=agent, text="first of all", idempotencyKey="k")
    first.kill()
    second = start()
    # 30: the client does not know whether it was taken, and sends it again
    second.call("agent/send", agentId=agent, text="first of all", idempotencyKey="k")
    second.kill()
    third = start()
    assert types(third.events(agent)).count("turn_started") == 1
    third.call("agent/continue", agentId=agent, text="and now")
    third.wait(agent)
    assert heard(third.events(agent)) == ["say hello", "first of all", "and now"]
    third.prompt(root, "what is new?")
    third.wait(root)
    check(third, root, agent)


# --- coordination 47, 53 ------------------------------------------------------------------------


def test_coordination_47_an_agent_keeps_its_model_over_a_switch_and_a_death(
    start: Start, work: Path, tmp_path: Path
) -> None:
    other = scenario(tmp_path, SCENE, "other.yaml")
    first = start()
    root = first.create(work, mode="work")
    agent = spawn(first, root, "one", "say hello")
    first.wait(agent)
    old = agents(first, root)["one"]["model"]
    first.call("session/update", sessionId=root, model=other)
    first.kill()
    again = start()
    again.call("agent/continue", agentId=agent, text="go on")
    again.wait(agent)
    new = spawn(again, root, "two", "say hello")
    again.wait(new)
    used = {
        each: [e["data"]["model"] for e in again.events(each) if e["type"] == "turn_started"]
        for each in (agent, new)
    }
    assert used == {agent: [old, old], new: [other]} and old != other


def test_coordination_53_reports_that_were_not_told_before_two_deaths_are_told_once(
    start: Start, work: Path
) -> None:
    first = start()
    root = first.create(work, mode="work")
    told = spawn(first, root, "told", "say hello")
    first.wait(told)
    first.prompt(root, "what is new?")
    first.wait(root)
    first.prompt(root, "stay there")
    runs(first, root)
    first.call("session/cancel", sessionId=root)
    first.wait(root)
    ids = [told]
    for name in ("zeta", "alpha"):
        ids.append(spawn(first, root, name, f"I am {name}"))
        first.wait(ids[-1])
    first.kill()
    start().kill()
    last = start()
    assert sum(told_in(last.events(root)).values()) == 1  # nobody has woken it
    last.prompt(root, "what is new?")
    last.wait(root)
    reports = [e["data"]["author"]["name"] for e in last.events(root)
               if e["type"] == "message" and e["data"].get("delivered")]  # fmt: skip
    assert reports == ["told", "zeta", "alpha"]
    last.kill()
    again = start()
    again.prompt(root, "and now?")
    again.wait(root)
    assert sum(told_in(again.events(root)).values()) == 3
    check(again, root, *ids)


# --- interrupts-and-peers 17, 59 ----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["abort", "cancel"])
def test_peers_17_an_agent_that_was_stopped_is_so_after_two_deaths(
    start: Start, work: Path, kind: str
) -> None:
    grace = {"CALLBOARD_FEATURES": "agents.interrupts", "CALLBOARD_AGENTS_CANCEL_GRACE_S": "1"}
    first = start(**grace)
    root = first.create(work, mode="work")
    agent = spawn(first, root, "one", "stay there")
    runs(first, agent)
    done = first.call("agent/interrupt", agentId=agent, kind=kind, reason="too dear")
    assert done["outcome"] == ("aborted" if kind == "abort" else "delivered")
    first.wait(agent)
    first.kill()
    start(**grace).kill()
    last = start(**grace)
    found = agents(last, root)["one"]
    assert (found["status"], found["interrupted"]["kind"]) == ("interrupted", "abort")
    # a cancel that no boundary came for was ended by the clock, and says so
    assert found["interrupted"]["origin"] == ("user" if kind == "abort" else "clock")
    last.prompt(root, "what is new?")
    last.wait(root)
    (told,) = [e["data"] for e in last.events(root)
               if e["type"] == "message" and e["data"].get("delivered")]  # fmt: skip
    assert 'status="aborted"' in told["content"][0]["text"]
    check(last, root, agent)


def test_peers_17_a_cancel_whose_server_died_in_its_grace_leaves_no_debt(
    start: Start, work: Path
) -> None:
    """The turn it was meant for is over: nothing is ended by the clock afterwards."""
    on = {"CALLBOARD_FEATURES": "agents.interrupts", "CALLBOARD_AGENTS_CANCEL_GRACE_S": "1"}
    first = start(**on)
    root = first.create(work, mode="work")
    agent = spawn(first, root, "one", "stay there")
    runs(first, agent)
    first.call("agent/interrupt", agentId=agent, kind="cancel", reason="too dear")
    first.kill()
    last = start(**on)
    found = agents(last, root)["one"]
    assert found["status"] == "interrupted" and found.get("interrupt") is None
    last.call("agent/continue", agentId=agent, text="go on")
    last.wait(agent)
    assert agents(last, root)["one"]["status"] == "completed"
    last.prompt(root, "what is new?")
    last.wait(root)
    check(last, root, agent)


def test_peers_59_what_an_agent_asked_for_can_be_answered_after_two_deaths(
    start: Start, work: Path
) -> None:
    first = start()
    root = first.create(work, mode="work")
    agent = spawn(first, root, "one", "run it")
    (asked,) = first.wait(agent, "attention")["approvals"]
    assert asked["rootId"] == root and asked["path"][-1]["name"] == "one"
    first.kill()
    for _ in range(2):
        again = start()
        assert agents(again, root)["one"]["status"] == "running"
        (found,) = again.call("approval/list", state="pending")["data"]
        assert found == asked
        assert not (work / "ran.txt").exists()
        again.kill()
    last = start()
    last.call("approval/answer", approvalId=asked["approvalId"], optionId="allow_once")
    last.wait(agent)
    assert len((work / "ran.txt").read_text().split()) == 1
    assert agents(last, root)["one"]["report"]["summary"] == "Ran it."
    last.prompt(root, "what is new?")
    last.wait(root)
    check(last, root, agent)


# --- session-messaging 5 ------------------------------------------------------------------------


def test_messaging_5_a_parent_that_died_waiting_knows_its_agent_afterwards(
    start: Start, work: Path
) -> None:
    first = start()
    root = first.create(work, mode="work")
    first.prompt(root, "have it done")
    spawned = until(first, root, "tool_call")["data"]["callId"]
    while not (found := agents(first, root)):
        first.call("server/ping")
    agent = found["helper"]["agentId"]
    runs(first, agent)
    first.kill()
    start().kill()
    last = start()
    assert agents(last, root)["helper"]["status"] == "interrupted"
    (result,) = [e["data"] for e in last.events(root) if e["type"] == "tool_result"]
    assert (result["callId"], result["status"]) == (spawned, "interrupted")
    assert last.events(agent)[0]["data"]["callId"] == spawned
    last.call("agent/continue", agentId=agent, text="finish, then")
    last.wait(agent)
    last.prompt(root, "what is new?")
    last.wait(root)
    assert sum(told_in(last.events(root)).values()) == 1
    check(last, root, agent)


def test_coordination_37_a_killed_server_leaves_nothing_behind_and_closing_ends_the_rest(
    start: Start, work: Path
) -> None:
    first = start()
    root = first.create(work, mode="work")
    made = [spawn(first, root, name, "stay there") for name in ("one", "two")]
    for each in made:
        runs(first, each)
    first.kill()
    again = start()
    again.call("session/close", sessionId=root)
    assert {a["status"] for a in agents(again, root).values()} == {"closed"}
    for each in made:
        log = again.events(each)
        assert types(log)[-2:] == ["agent_closed", "session_closed"]
    check(again, root, *made)
