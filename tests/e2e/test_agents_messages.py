"""Questions and messages of agents in real processes: what becomes of them when one is killed."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.process import RpcError, ServerProcess, scenario, types

SCENE = """
rules:
  # the agent that asks
  - when: {last_tool: {name: message}}
    answer: [{say: "I was told: {{last_tool}}"}]
  - when: {last_user: {regex: "You are the agent 'asks'"}, step: 0}
    answer: [{call: {tool: message, arguments: {to: parent, text: "left or right?"}}}]

  # the agent that writes to a sibling, and the one that it writes to
  - when: {last_user: {regex: "You are the agent 'writes'"}, step: 0}
    answer: [{call: {tool: message, arguments: {to: reads, text: "the door is open"}}}]
  - when: {last_user: {contains: "<agent-message"}}
    answer: [{say: "I have read it."}]
  - when: {last_user: {regex: "You are the agent 'reads'"}, step: 0}
    answer: [{say: "Hm."}, {hang: true}]

  # the lead
  - when: {last_user: {contains: "have it asked"}, step: 0}
    answer: [{call: {tool: spawn_agent, arguments: {name: asks, message: "go", wait: true}}}]
  - when: {last_tool: {name: spawn_agent}}
    answer: [{say: "I think."}, {hang: true}]
  # before it has said anything a killed turn leaves its prompt to be read with the next one
  - when: {last_user: {contains: "what was it?"}, step: 0}
    answer: [{say: "Done."}]
  - when: {last_user: {contains: hang}, step: 0}
    answer: [{say: "I begin."}, {hang: true}]
default:
  - say: "Done."
"""

Start = Callable[[str], ServerProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    model = scenario(tmp_path, SCENE)
    servers: list[ServerProcess] = []

    def start(client_id: str) -> ServerProcess:
        server = ServerProcess(
            tmp_path,
            model=model,
            client_id=client_id,
            approvals=False,
            environ={"CALLBOARD_FEATURES": "agents.messaging"},
        )
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.__exit__()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def until(
    server: ServerProcess, root: str, kind: str, *, besides: Sequence[str] = ()
) -> dict[str, Any]:
    """The first event of a type in a tree, once it is there, whichever server writes it; `besides` are ids
    of events that are known."""

    def wanted(event: dict[str, Any]) -> bool:
        return event["type"] == kind and event["eventId"] not in besides

    scope = {"kind": "tree", "id": root}
    before = len(server.seen)
    subscribed = server.call("event/subscribe", scope=scope, **{"from": "now"})
    known = server.call("event/list", scope=scope, limit=1000)["data"]
    found = next((event for event in known if wanted(event)), None)
    found = found or server.told(wanted, since=before)
    server.call("event/unsubscribe", subscriptionId=subscribed["subscriptionId"])
    return found


def agents_below(server: ServerProcess, root: str) -> dict[str, dict[str, Any]]:
    return {a["name"]: a for a in server.call("agent/list", rootId=root)["data"]}


def outcomes(events: list[dict[str, Any]]) -> list[str]:
    return [e["data"]["outcome"] for e in events if e["type"] == "agent_replied"]


def test_peers_28_killed_with_an_open_question_it_is_settled_once_and_nothing_hangs(
    start: Start, work: Path
) -> None:
    one = start("one")
    root = one.create(work, mode="work")
    one.prompt(root, "have it asked")
    asked = until(one, root, "agent_asked")
    child, ask_id = asked["sessionId"], asked["data"]["askId"]
    until(one, root, "agent_notification_delivered")  # the parent knows, and does not answer
    one.kill()

    two = start("two")
    assert two.wait(child)["reason"] == "idle"
    assert two.wait(root)["reason"] == "idle"
    events = two.events(child)
    assert outcomes(events) == ["parent_restarted"]
    (result,) = [e["data"] for e in events if e["type"] == "tool_result"]
    assert (result["name"], result["status"]) == ("message", "interrupted")
    assert types(events)[-1] == "turn_finished"
    agent = agents_below(two, root)["asks"]
    assert agent["status"] == "interrupted" and agent.get("question") is None
    with pytest.raises(RpcError) as refused:
        two.call("agent/reply", askId=ask_id, text="left")
    assert refused.value.kind == "askSettled"
    assert refused.value.error["data"]["outcome"] == "parent_restarted"
    two.kill()

    three = start("three")
    assert outcomes(three.events(child)) == ["parent_restarted"]
    # and its slot is free
    three.call("agent/continue", agentId=child, text="You are the agent 'asks', go on")
    again = until(three, root, "agent_asked", besides=[asked["eventId"]])
    three.call("agent/reply", askId=again["data"]["askId"], text="left")
    assert three.wait(child)["reason"] == "idle"
    assert outcomes(three.events(child)) == ["parent_restarted", "replied"]


def test_peers_28_a_child_whose_parent_s_server_alone_is_killed_goes_on_without_an_answer(
    start: Start, work: Path
) -> None:
    parents, childs = start("parents"), start("childs")
    root = parents.create(work, mode="work")
    parents.prompt(root, "hang")
    until(parents, root, "turn_started")
    agent = childs.call("agent/spawn", parentId=root, name="asks", message="go")["agent"]
    child = agent["agentId"]
    until(childs, root, "agent_asked")
    assert agents_below(childs, root)["asks"]["question"]["text"] == "left or right?"
    parents.kill()

    assert childs.wait(child)["reason"] == "idle"
    events = childs.events(child)
    assert outcomes(events) == ["parent_restarted"]
    (result,) = [e["data"] for e in events if e["type"] == "tool_result"]
    assert (result["name"], result["status"]) == ("message", "ok")
    assert "Go on without an answer" in result["text"]
    assert agents_below(childs, root)["asks"]["status"] == "completed"
    # the parent was interrupted, and rests until somebody continues it; then it hears of both
    ends = [e["data"] for e in childs.events(root) if e["type"] == "turn_finished"]
    assert [end["outcome"] for end in ends] == ["interrupted"]
    childs.prompt(root, "what was it?")
    assert childs.wait(root)["reason"] == "idle"
    told = [
        e["data"]["delivered"]["kind"]
        for e in childs.events(root)
        if e["type"] == "message" and e["data"].get("delivered")
    ]
    assert told == ["question", "report"]


def test_peers_20_the_server_of_a_child_wakes_its_parent_which_rests_elsewhere(
    start: Start, work: Path
) -> None:
    parents, childs = start("parents"), start("childs")
    root = parents.create(work, mode="work")
    parents.prompt(root, "hello")
    assert parents.wait(root)["reason"] == "idle"
    agent = childs.call("agent/spawn", parentId=root, name="asks", message="go")["agent"]
    ask_id = until(childs, root, "agent_asked")["data"]["askId"]
    parents.close()
    childs.call("agent/reply", askId=ask_id, text="right")
    assert childs.wait(agent["agentId"])["reason"] == "idle"
    assert childs.wait(root)["reason"] == "idle"
    triggers = [
        e["data"]["trigger"]["kind"] for e in childs.events(root) if e["type"] == "turn_started"
    ]
    assert triggers[:2] == ["prompt", "question"]


def test_peers_32_a_message_between_agents_survives_the_kill_of_their_server(
    start: Start, work: Path
) -> None:
    one = start("one")
    root = one.create(work, mode="work")
    reads = one.call("agent/spawn", parentId=root, name="reads", message="go")["agent"]["agentId"]
    until(one, root, "turn_started")
    writes = one.call(
        "agent/spawn", parentId=root, name="writes", message="go", messageAllow=["reads"]
    )["agent"]["agentId"]
    assert one.wait(writes)["reason"] == "idle"
    assert "agent_message_queued" in types(one.events(reads))
    one.kill()

    two = start("two")
    two.call("agent/continue", agentId=reads, text="go on")
    assert two.wait(reads)["reason"] == "idle"
    events = two.events(reads)
    mail = [
        e["data"]
        for e in events
        if e["type"] == "message" and (e["data"].get("delivered") or {}).get("kind") == "sibling"
    ]
    assert len(mail) == 1 and "the door is open" in mail[0]["content"][0]["text"]
    assert events[-1]["data"]["finalText"] == "I have read it."
