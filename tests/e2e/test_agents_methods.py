"""``agent/*`` over the wire: what a person does in the place of a parent, and what is refused, and how."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.checked import CheckedServer, events_of
from harness.process import RpcError, ServerProcess, scenario, types

SCENE = """
rules:
  - when: {last_tool: run_command}
    answer: [{say: "Ran it."}]
  - when: {last_user: {regex: "run it"}, step: 0}
    answer: [{call: {tool: run_command, arguments: {command: "true"}}}]
  - when: {last_tool: message}
    answer: [{say: "I was told: {{last_tool}}"}]
  - when: {last_user: {regex: "ask me"}, step: 0}
    answer: [{call: {tool: message, arguments: {to: parent, text: "left or right?"}}}]
  - when: {last_user: {contains: hang}}
    answer: [{say: "I begin."}, {hang: true}]
  - when: {last_user: {regex: "<agent-report"}}
    answer: [{say: "I know."}]
default:
  - say: "Done."
  - usage: {input_tokens: 10, output_tokens: 5}
"""
Start = Callable[..., CheckedServer]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CheckedServer]:
    folder = tmp_path_factory.mktemp("agents")
    running = CheckedServer(folder, model=scenario(folder, SCENE), approvals=False)
    with running:
        yield running


@pytest.fixture
def root(server: CheckedServer) -> str:
    folder = server.folder / f"work-{uuid.uuid4().hex}"
    folder.mkdir()
    return server.create(folder, mode="work")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts servers on a store of the test's own."""
    model = scenario(tmp_path, SCENE)
    (tmp_path / "work").mkdir()
    servers: list[CheckedServer] = []

    def start(**more: Any) -> CheckedServer:
        servers.append(CheckedServer(tmp_path, model=model, **{"approvals": False, **more}))
        return servers[-1]

    yield start
    for server in servers:
        server.__exit__()


def spawn(server: CheckedServer, parent: str, name: str = "one", message: str = "go", **more: Any):
    return server.call("agent/spawn", parentId=parent, name=name, message=message, **more)["agent"]


def ended(server: CheckedServer, parent: str, *agents: dict[str, Any]) -> list[dict[str, Any]]:
    """All agents of the tree, once each of these has ended its turn."""
    for agent in agents:
        assert server.wait(agent["agentId"])["reason"] == "idle"
    return server.call("agent/list", rootId=parent)["data"]


def refusal(server: ServerProcess, method: str, **params: Any) -> dict[str, Any]:
    with pytest.raises(RpcError) as refused:
        server.call(method, **params)
    assert len(refused.value.error["message"]) < 500
    return refused.value.error


def kind(server: CheckedServer, method: str, **params: Any) -> str:
    return refusal(server, method, **params)["data"]["kind"]


def begun(server: CheckedServer, agent: dict[str, Any]) -> None:
    """Returns once the agent's model has begun to answer."""
    server.until(
        lambda m: m.get("method") == "event/delta" and m["params"]["sessionId"] == agent["agentId"]
    )


def follow(server: CheckedServer, session_id: str, kind: str = "tree") -> str:
    """A subscription to all that happens in a tree or a session."""
    made = server.call(
        "event/subscribe", scope={"kind": kind, "id": session_id}, deltas=True, **{"from": "start"}
    )
    return made["subscriptionId"]


# --- what is done ---------------------------------------------------------------------------------


def test_coordination_14_16_a_person_spawns_in_the_place_of_the_parent(
    server: CheckedServer, root: str
) -> None:
    agent = spawn(server, root, "look around", "read it all", agentType="reviewer")
    assert agent["status"] in ("starting", "running", "completed")
    assert (agent["name"], agent["agentType"], agent["depth"]) == ("look around", "reviewer", 1)
    assert agent["parentId"] == agent["rootId"] == root
    assert agent["path"] == [{"sessionId": agent["agentId"], "name": "look around"}]
    (listed,) = ended(server, root, agent)
    assert (listed["status"], listed["report"]["status"]) == ("completed", "completed")
    assert listed["report"]["summary"] == "Done."
    assert listed["usage"]["inputTokens"] == 10
    assert listed["elapsedMs"] >= 0 and "turnId" not in listed
    events = server.events(agent["agentId"])
    assert types(events)[:3] == ["agent_spawned", "directive", "turn_started"]
    assert [e["actor"]["kind"] for e in events[:2]] == ["client", "client"]
    assert events[1]["data"]["author"]["kind"] == "person"
    assert events[1]["data"]["text"] == "read it all"


def test_an_agent_is_told_by_its_answer_before_any_event_names_it(
    server: CheckedServer, root: str
) -> None:
    follow(server, root)
    for number in range(5):
        begin = len(server.seen)
        asked = server.request("agent/spawn", parentId=root, name=f"a{number}", message="go")
        agent = server.result(asked)["agent"]["agentId"]
        before = [e for m in server.seen[begin:] for e in events_of(m)]
        assert agent not in str(before)
        server.find_event(lambda e, a=agent: e["sessionId"] == a and e["type"] == "turn_finished")


def test_a_tree_subscription_sees_everything_of_every_agent_in_order(
    server: CheckedServer, root: str
) -> None:
    subscription = follow(server, root)
    one = spawn(server, root, "one", "go")
    two = spawn(server, root, "two", "go")
    for agent in (one, two):
        server.find_event(
            lambda e, a=agent: e["sessionId"] == a["agentId"] and e["type"] == "turn_finished"
        )
    seen = [e for m in server.seen for e in events_of(m, subscription)]
    for agent in (one, two):
        own = [e for e in seen if e["sessionId"] == agent["agentId"]]
        assert own == server.events(agent["agentId"])[: len(own)]
        assert types(own) == [
            "agent_spawned", "directive", "turn_started", "agent_status_changed", "ack", "message",
            "agent_report_created", "turn_finished",
        ]  # fmt: skip
    assert [e["pos"] for e in seen] == sorted(e["pos"] for e in seen)


def test_coordination_26_27_a_message_waits_and_a_continue_takes_it_along(
    server: CheckedServer, root: str
) -> None:
    agent = spawn(server, root)
    ended(server, root, agent)
    agent_id = agent["agentId"]
    sent = server.call("agent/send", agentId=agent_id, text="by the way")
    assert "turnId" not in sent
    (listed,) = server.call("agent/list", rootId=agent_id)["data"]
    assert (listed["queued"], listed["status"]) == (1, "completed")
    went = server.call("agent/continue", agentId=agent_id, text="go on")
    ended(server, root, agent)
    events = server.events(agent_id)
    (turn,) = {e["turnId"] for e in events if e["type"] == "message" and "delivered" in e["data"]}
    assert turn == went["turnId"]
    told = [e["data"] for e in events if e["type"] == "message" and "delivered" in e["data"]]
    assert [m["delivered"]["deliveryId"] for m in told] == [sent["messageId"], went["messageId"]]
    assert [m["author"]["kind"] for m in told] == ["person", "person"]
    assert [m["content"][0]["text"] for m in told] == ["by the way", "go on"]


def test_coordination_39_41_a_wait_only_looks_or_says_that_the_time_was_up(
    server: CheckedServer, root: str
) -> None:
    assert server.call("agent/wait", parentId=root, timeoutMs=0)["reason"] == "nothing"
    agent = spawn(server, root, "one", "hang")
    ids = [agent["agentId"]]
    for given in ({"timeoutMs": 0}, {"timeoutMs": -5}, {"timeoutMs": 30, "agentIds": ids}):
        waited = server.call("agent/wait", parentId=root, **given)
        assert waited["reason"] == "timeout"
        assert [a["agentId"] for a in waited["agents"]] == ids
        assert waited["reportsPending"] == 0
    server.call("agent/interrupt", agentId=agent["agentId"], kind="abort")
    waited = server.call("agent/wait", parentId=root, agentIds=ids, timeoutMs=60_000)
    assert (waited["reason"], waited["reportsPending"]) == ("finished", 1)
    assert waited["agents"][0]["status"] == "interrupted"


def test_coordination_40_what_its_parent_has_yet_to_hear_ends_no_wait_of_a_client(
    start: Start, tmp_path: Path
) -> None:
    server = start(environ={"CALLBOARD_FEATURES": "agents.messaging"})
    root = server.create(
        tmp_path / "work", mode="work"
    )  # it is never prompted, and hears of nothing
    quick = spawn(server, root, "quick")
    ended(server, root, quick)
    asks = spawn(server, root, "asks", "ask me")
    assert server.call("agent/wait", parentId=root, timeoutMs=60_000)["reason"] == "question"
    slow = spawn(server, root, "slow", "hang")["agentId"]
    waited = server.call("agent/wait", parentId=root, agentIds=[slow], timeoutMs=20)
    assert (waited["reason"], waited["reportsPending"]) == ("timeout", 1)
    server.call("agent/close", agentId=asks["agentId"])
    waited = server.call("agent/wait", parentId=root, timeoutMs=20)
    assert (waited["reason"], [a["name"] for a in waited["agents"]]) == ("timeout", ["slow"])
    server.call("agent/interrupt", agentId=slow, kind="abort")
    assert server.call("agent/wait", parentId=root, agentIds=[slow])["reason"] == "finished"
    assert server.call("agent/wait", parentId=root)["reason"] == "nothing"


def test_peers_7_an_abort_is_always_there_and_hits_only_its_target(
    server: CheckedServer, root: str
) -> None:
    follow(server, root)
    one, two = spawn(server, root, "one", "hang"), spawn(server, root, "two", "hang")
    begun(server, two)
    done = server.call("agent/interrupt", agentId=one["agentId"], kind="abort", reason="enough")
    assert (done["outcome"], done.get("pending")) == ("aborted", None)
    listed = ended(server, root, one)
    assert [a["status"] for a in listed] == ["interrupted", "running"]
    stopped = listed[0]["interrupted"]
    assert stopped == {"reason": "enough", "kind": "abort", "origin": "user"}
    assert listed[0]["report"]["status"] == "aborted"
    again = server.call("agent/interrupt", agentId=one["agentId"], kind="abort")
    assert again["outcome"] == "already_finished"
    server.call("agent/close", agentId=two["agentId"])


def test_interrupts_that_are_off_name_their_setting(server: CheckedServer, root: str) -> None:
    agent = spawn(server, root, "one", "hang")
    for verb in ("steer", "cancel"):
        error = refusal(
            server, "agent/interrupt", agentId=agent["agentId"], kind=verb, reason="why"
        )
        assert error["data"]["kind"] == "featureDisabled"
        assert "CALLBOARD_FEATURES=agents.interrupts" in error["message"]
    error = refusal(server, "agent/reply", askId="ask_none", text="yes")
    assert error["data"]["kind"] == "featureDisabled"
    assert "CALLBOARD_FEATURES=agents.messaging" in error["message"]
    server.call("agent/close", agentId=agent["agentId"])


def test_peers_1_2_3_a_person_steers_and_cancels_where_it_is_switched_on(
    start: Start, tmp_path: Path
) -> None:
    server = start(environ={"CALLBOARD_FEATURES": "agents.interrupts"})
    hello = server.hello["capabilities"]["experimental"]["callboard"]
    assert (hello["features"]["agents.interrupts"], hello["features"]["agents.messaging"]) == (
        True,
        False,
    )
    assert hello["features"]["agents"] is True
    root = server.create(tmp_path / "work", mode="work")
    agent = spawn(server, root, "one", "run it")["agentId"]
    server.wait(agent, "attention")

    def interrupt(verb: str, **more: Any) -> tuple[str, str | None]:
        done = server.call("agent/interrupt", agentId=agent, kind=verb, **more)
        return done["outcome"], done.get("pending")

    assert interrupt("steer", reason="left") == ("delivered", "steer")
    assert server.call("agent/list", rootId=root)["data"][0]["interrupt"] == "steer"
    assert interrupt("cancel", reason="stop it") == ("delivered", "cancel")
    assert interrupt("steer", reason="right") == ("ignored", "cancel")
    assert kind(server, "agent/interrupt", agentId=agent, kind="steer") == "invalidParams"
    assert kind(server, "agent/interrupt", agentId=agent, kind="cancel", reason=" ") == (
        "invalidParams"
    )
    requested = [e for e in server.events(agent) if e["type"] == "agent_interrupt_requested"]
    assert [(e["data"]["kind"], e["data"]["origin"]) for e in requested] == [
        ("steer", "user"), ("cancel", "user"),
    ]  # fmt: skip
    assert interrupt("abort") == ("aborted", None)
    assert ended(server, root, {"agentId": agent})[0]["status"] == "interrupted"
    assert interrupt("steer", reason="late") == ("already_finished", None)


@pytest.mark.parametrize("verb", ["abort", "cancel"])
def test_peers_7_a_person_takes_back_a_turn_that_waits_for_a_slot(
    start: Start, tmp_path: Path, verb: str
) -> None:
    server = start(
        environ={"CALLBOARD_FEATURES": "agents.interrupts", "CALLBOARD_AGENTS_MAX_RUNNING": "1"}
    )
    root = server.create(tmp_path / "work", mode="work")
    follow(server, root)
    one = spawn(server, root, "one")
    ended(server, root, one)
    two = spawn(server, root, "two", "hang")
    begun(server, two)
    waits = {"agentId": one["agentId"]}
    assert "turnId" not in server.call("agent/continue", **waits, text="go on")
    done = server.call("agent/interrupt", **waits, kind=verb, reason="enough")
    assert (done["outcome"], done.get("pending")) == ("aborted", None)
    again = server.call("agent/interrupt", **waits, kind=verb, reason="enough")
    assert again["outcome"] == "already_finished"
    server.call("agent/interrupt", agentId=two["agentId"], kind="abort")
    listed = ended(server, root, one, two)[0]
    assert (listed["status"], listed["queued"]) == ("interrupted", 1)
    assert listed["interrupted"] == {"reason": "enough"}
    assert types(server.events(one["agentId"])).count("turn_started") == 1
    server.call("agent/continue", **waits, text="and on")
    ended(server, root, one)
    events = server.events(one["agentId"])
    told = [e["data"] for e in events if e["type"] == "message" and "delivered" in e["data"]]
    assert [m["content"][0]["text"] for m in told] == ["go on", "and on"]
    assert types(events).count("turn_started") == types(events).count("agent_report_created") == 2


def test_peers_1_a_steer_of_a_person_waits_for_a_turn_that_waits_for_a_slot(
    start: Start, tmp_path: Path
) -> None:
    server = start(
        environ={"CALLBOARD_FEATURES": "agents.interrupts", "CALLBOARD_AGENTS_MAX_RUNNING": "1"}
    )
    root = server.create(tmp_path / "work", mode="work")
    follow(server, root)
    one = spawn(server, root, "one")
    ended(server, root, one)
    two = spawn(server, root, "two", "hang")
    begun(server, two)
    server.call("agent/continue", agentId=one["agentId"], text="go on")
    done = server.call("agent/interrupt", agentId=one["agentId"], kind="steer", reason="left")
    assert (done["outcome"], done["pending"]) == ("delivered", "steer")
    server.call("agent/interrupt", agentId=two["agentId"], kind="abort")
    ended(server, root, one, two)
    # the slot is taken up when two is at rest, and whoever looks then may be faster
    server.find_event(
        lambda e: e["sessionId"] == one["agentId"] and e["type"] == "agent_interrupt_consumed"
    )
    listed = ended(server, root, one)[0]
    assert listed["status"] == "completed" and "interrupt" not in listed


def test_peers_18_24_a_person_answers_for_the_parent_once(start: Start, tmp_path: Path) -> None:
    server = start(environ={"CALLBOARD_FEATURES": "agents.messaging"})
    root = server.create(tmp_path / "work", mode="work")
    agent = spawn(server, root, "one", "ask me")["agentId"]
    waited = server.call("agent/wait", parentId=root, timeoutMs=60_000)
    assert waited["reason"] == "question"
    (question,) = waited["questions"]
    assert (question["agentId"], question["name"]) == (agent, "one")
    assert question["text"] == "left or right?"
    (listed,) = server.call("agent/list", rootId=root)["data"]
    assert listed["question"] == question
    assert [tool["name"] for tool in listed["tools"]] == ["message"]

    given = {"askId": question["askId"]}
    assert kind(server, "agent/reply", askId="ask_none", text="left") == "askNotFound"
    error = refusal(server, "agent/reply", **given, text=" ")
    assert [fault["path"] for fault in error["data"]["errors"]] == ["$.text"]
    assert kind(server, "agent/reply", **given, text="x" * 16_001) == "messageTooLarge"
    answer = server.call("agent/reply", **given, text="left, of course")
    assert (answer["agentId"], answer["askId"]) == (agent, question["askId"])
    assert kind(server, "agent/reply", **given, text="right") == "askSettled"
    (listed,) = ended(server, root, {"agentId": agent})
    assert "question" not in listed
    assert "left, of course" in listed["report"]["summary"]
    (replied,) = [e for e in server.events(agent) if e["type"] == "agent_replied"]
    # what somebody else has answered is not asked of the parent any more
    server.prompt(root, "what is new?")
    server.wait(root)
    heard = [e["data"] for e in server.events(root) if e["type"] == "message"]
    assert [m["delivered"]["kind"] for m in heard if "delivered" in m] == ["report"]
    assert (replied["actor"]["kind"], replied["data"]["author"]["kind"]) == ("client", "person")


def test_coordination_34_35_a_closed_agent_stays_listed_and_takes_nothing(
    server: CheckedServer, root: str
) -> None:
    agent = spawn(server, root, "one", "hang")["agentId"]
    closed = server.call("agent/close", agentId=agent)["agent"]
    assert (closed["status"], closed["agentId"]) == ("closed", agent)
    events = server.events(agent)
    assert types(events)[-2:] == ["agent_closed", "session_closed"]
    assert server.call("agent/close", agentId=agent)["agent"]["status"] == "closed"
    assert server.events(agent) == events
    for method, more in (
        ("agent/send", {"text": "x"}),
        ("agent/continue", {"text": "x"}),
        ("agent/interrupt", {"kind": "abort"}),
    ):
        assert kind(server, method, agentId=agent, **more) == "agentClosed"
    assert server.call("agent/list", rootId=root)["data"] == [closed]
    assert spawn(server, root, "one")["agentId"] != agent, "its name is free"


def test_the_list_is_paged_by_places_that_new_agents_do_not_move(
    server: CheckedServer, root: str
) -> None:
    names = ["b", "d", "f", "h"]
    ended(server, root, *(spawn(server, root, name) for name in names))
    first = server.call("agent/list", rootId=root, limit=2)
    assert [a["name"] for a in first["data"]] == ["b", "d"]
    ended(server, root, spawn(server, root, "a"), spawn(server, root, "e"))
    rest = server.call("agent/list", rootId=root, cursor=first["nextCursor"])
    assert [a["name"] for a in rest["data"]] == ["e", "f", "h"]
    assert "nextCursor" not in rest


def test_session_wait_does_not_call_a_root_idle_that_a_report_is_about_to_wake(
    server: CheckedServer, root: str
) -> None:
    server.prompt(root, "hello")
    server.wait(root)
    follow(server, root)
    for number in range(8):
        agent = spawn(server, root, f"agent {number}", "go")["agentId"]
        # in one order with the end of the agent's turn, whatever comes of the race
        server.find_event(lambda e, a=agent: e["sessionId"] == a and e["type"] == "turn_finished")
        assert server.wait(root)["reason"] == "idle"
        told = [
            e["data"]["author"]["id"]
            for e in server.events(root)
            if e["type"] == "message" and "delivered" in e["data"]
        ]
        assert told[-1] == agent, "the root had taken the report in when it was said to be idle"


# --- two processes ----------------------------------------------------------------------------------


def test_another_server_lists_corrects_stops_and_closes_agents_that_it_does_not_run(
    start: Start, tmp_path: Path
) -> None:
    here, there = start(client_id="here"), start(client_id="there")
    root = here.create(tmp_path / "work", mode="work")
    follow(here, root)
    agent = spawn(here, root, "one", "hang")
    begun(here, agent)
    agent_id = agent["agentId"]
    (listed,) = there.call("agent/list", rootId=root)["data"]
    assert (listed["agentId"], listed["status"]) == (agent_id, "running")
    sent = there.call("agent/continue", agentId=agent_id, text="and then this")
    assert "turnId" not in sent, "the turn that runs elsewhere takes it in"
    assert there.call("agent/interrupt", agentId=agent_id, kind="abort")["outcome"] == "aborted"
    ended(there, root, agent)
    here.find_event(lambda e: e["sessionId"] == agent_id and e["type"] == "turn_finished")
    assert there.call("agent/close", agentId=agent_id)["agent"]["status"] == "closed"
    assert here.call("agent/list", rootId=root)["data"][0]["status"] == "closed"


# --- what is refused --------------------------------------------------------------------------------

UNKNOWN = ["ses_none", "", "\u0000", "ses_" + "x" * 5_000, "' OR 1=1 --"]


@pytest.mark.parametrize("unknown", UNKNOWN)
def test_coordination_38_an_unknown_agent_or_session_is_one_error(
    server: CheckedServer, root: str, unknown: str
) -> None:
    for method, more in (
        ("agent/send", {"text": "x"}),
        ("agent/continue", {"text": "x"}),
        ("agent/interrupt", {"kind": "abort"}),
        ("agent/close", {}),
    ):
        assert kind(server, method, agentId=unknown, **more) == "agentNotFound"
        assert kind(server, method, agentId=root, **more) == "agentNotFound", "a root is no agent"
    waits = {"parentId": root, "agentIds": [unknown], "timeoutMs": 0}
    assert kind(server, "agent/wait", **waits) == "agentNotFound"
    assert kind(server, "agent/wait", parentId=unknown) == "sessionNotFound"
    assert kind(server, "agent/list", rootId=unknown) == "sessionNotFound"
    assert kind(server, "agent/spawn", parentId=unknown, name="a", message="b") == (
        "sessionNotFound"
    )


def test_a_wait_is_for_children_of_the_parent_alone(start: Start, tmp_path: Path) -> None:
    server = start(environ={"CALLBOARD_AGENTS_MAX_DEPTH": "2"})
    root = server.create(tmp_path / "work")
    other = server.create(tmp_path / "work")
    one = spawn(server, root)
    ended(server, root, one)
    two = spawn(server, one["agentId"], "two")
    for parent in (root, other):
        waits = {"parentId": parent, "agentIds": [two["agentId"]], "timeoutMs": 0}
        assert kind(server, "agent/wait", **waits) == "agentNotFound"


SPAWNS: list[tuple[dict[str, Any], str, str | None]] = [
    ({"name": "  \t\n "}, "invalidParams", "$.name"),
    ({"name": "a\u202eb"}, "invalidParams", "$.name"),
    ({"name": "a\u0000b"}, "invalidParams", "$.name"),
    ({"name": "x" * 65}, "invalidParams", "$.name"),
    ({"name": "Root"}, "invalidParams", "$.name"),
    ({"message": " \n"}, "invalidParams", "$.message"),
    ({"message": "x" * (1024 * 1024)}, "messageTooLarge", None),
    ({"tools": ["read_file", "no_such_tool"]}, "invalidParams", "$.tools"),
    ({"tools": "read_file"}, "invalidParams", "$.tools"),
    ({"agentType": "x" * 65}, "invalidParams", "$.agentType"),
    ({"messageAllow": ["new"]}, "invalidParams", "$.messageAllow"),
    ({"messageAllow": [" "]}, "invalidParams", "$.name"),
    ({"messageAllow": [f"a{n}" for n in range(65)]}, "invalidParams", "$.messageAllow"),
    ({"profile": "none"}, "profileNotFound", None),
    ({"model": "none/none"}, "modelUnavailable", None),
    ({"model": "openai/any"}, "authRequired", None),
    ({"name": "taken"}, "nameInUse", None),
    ({"name": " taken\t"}, "nameInUse", None),
]


def test_each_thing_that_a_spawn_cannot_be_has_its_error_and_makes_nothing(
    server: CheckedServer, root: str
) -> None:
    ended(server, root, spawn(server, root, "taken"))
    before = server.call("server/ping")["head"]
    for changes, wanted, path in SPAWNS:
        params = {"parentId": root, "name": "new", "message": "go", **changes}
        error = refusal(server, "agent/spawn", **params)
        assert error["data"]["kind"] == wanted, (changes, error)
        if path is not None:
            assert [fault["path"] for fault in error["data"]["errors"]] == [path]
    assert server.call("server/ping")["head"] == before
    assert [a["name"] for a in server.call("agent/list", rootId=root)["data"]] == ["taken"]


def test_coordination_45_18_depth_and_number_of_agents_are_bounded(
    start: Start, tmp_path: Path
) -> None:
    server = start(environ={"CALLBOARD_AGENTS_MAX_OPEN": "2"})
    root = server.create(tmp_path / "work")
    one, two = spawn(server, root, "one"), spawn(server, root, "two")
    new = {"name": "new", "message": "go"}
    assert kind(server, "agent/spawn", parentId=one["agentId"], **new) == "depthExceeded"
    assert kind(server, "agent/spawn", parentId=root, **new) == "limitReached"
    server.call("agent/close", agentId=two["agentId"])
    spawn(server, root, "new")
    server.call("session/archive", sessionId=root)
    assert kind(server, "agent/spawn", parentId=root, **new) == "sessionArchived"
    server.call("session/close", sessionId=root)
    assert kind(server, "agent/spawn", parentId=root, **new) == "sessionClosed"
    assert {a["status"] for a in server.call("agent/list", rootId=root)["data"]} == {"closed"}


def test_messages_are_held_to_their_limits(server: CheckedServer, root: str) -> None:
    agent = spawn(server, root)
    ended(server, root, agent)
    for method in ("agent/send", "agent/continue"):
        given = {"agentId": agent["agentId"]}
        error = refusal(server, method, **given, text=" \n")
        assert [fault["path"] for fault in error["data"]["errors"]] == ["$.text"]
        assert kind(server, method, **given, text="x" * (2 * 1024 * 1024)) == "messageTooLarge"
    server.call("session/archive", sessionId=agent["agentId"])
    assert kind(server, "agent/send", agentId=agent["agentId"], text="x") == "sessionArchived"


def test_wrong_cursors_limits_and_kinds_are_named(server: CheckedServer, root: str) -> None:
    for cursor in ("", "7", "/", "/name"):
        assert kind(server, "agent/list", rootId=root, cursor=cursor) == "invalidCursor"
    assert kind(server, "agent/list", rootId=root, limit=0) == "invalidParams"
    error = refusal(server, "agent/interrupt", agentId=root, kind="stop")
    assert [fault["path"] for fault in error["data"]["errors"]] == ["$.kind"]
