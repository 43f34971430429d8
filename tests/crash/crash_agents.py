"""Scenes with child agents, and what must hold of trees after a crash."""

from collections.abc import Callable
from typing import Any

from crash_ledger import Snapshot, held
from crash_scenes import Play, until
from crash_stage import Stage, die

from harness.agent_invariants import check_agent, check_tree, is_agent
from harness.process import ServerProcess

# --- what clients do ----------------------------------------------------------------------------


def _root(stage: Stage, server: ServerProcess) -> str:
    stage.greet(server)
    return stage.create(server, mode="work")


def _agent(server: ServerProcess, root: str, name: str = "one") -> dict[str, Any]:
    """An agent of the tree as soon as it is there."""
    while True:
        for each in server.call("agent/list", rootId=root)["data"]:
            if each["name"] == name:
                return each


def _until_status(server: ServerProcess, root: str, *statuses: str, name: str = "one") -> str:
    while (agent := _agent(server, root, name))["status"] not in statuses:
        pass
    return agent["agentId"]


def _rest(server: ServerProcess, root: str) -> None:
    for each in server.call("agent/list", rootId=root)["data"]:
        server.wait(each["agentId"])
    server.wait(root)


def delegate(stage: Stage, server: ServerProcess) -> None:
    """A model that has two agents work for it, and waits for them."""
    root = _root(stage, server)
    stage.prompt(server, root, "delegate")
    server.wait(root)
    _rest(server, root)


def hand_over(stage: Stage, server: ServerProcess) -> None:
    """A model that waits for its agent's last answer in the call that starts it."""
    root = _root(stage, server)
    stage.prompt(server, root, "hand over")
    server.wait(root)
    _rest(server, root)


def hire(stage: Stage, server: ServerProcess) -> None:
    """A person who starts an agent, and says something to the root once it has ended."""
    root = _root(stage, server)
    stage.prompt(server, root, "short")
    server.wait(root)
    stage.spawn(server, root, "one", "run")
    _rest(server, root)


def tell(stage: Stage, server: ServerProcess) -> None:
    """Something is left for an agent that rests, and then it is to go on."""
    root = _root(stage, server)
    agent_id = stage.spawn(server, root, "one", "short")
    server.wait(agent_id)
    stage.send(server, "agent/send", agent_id, "by the way")
    stage.send(server, "agent/continue", agent_id, "run")
    _rest(server, root)


def tell_running(stage: Stage, server: ServerProcess) -> None:
    """An agent that works is to go on with something else behind it."""
    root = _root(stage, server)
    agent_id = stage.spawn(server, root, "one", "long")
    until(server, stage.cwd / "began")
    stage.send(server, "agent/continue", agent_id, "and another thing")
    stage.let_go()
    _rest(server, root)


def halt(stage: Stage, server: ServerProcess) -> None:
    root = _root(stage, server)
    agent_id = stage.spawn(server, root, "one", "long")
    until(server, stage.cwd / "began")
    server.call("agent/interrupt", agentId=agent_id, kind="abort", reason="too dear")
    _rest(server, root)


def correct(stage: Stage, server: ServerProcess) -> None:
    """An agent is told to go another way, and then to come to an end."""
    root = _root(stage, server)
    agent_id = stage.spawn(server, root, "one", "long")
    until(server, stage.cwd / "began")
    server.call("agent/interrupt", agentId=agent_id, kind="steer", reason="to the left")
    server.call("agent/interrupt", agentId=agent_id, kind="cancel", reason="enough")
    stage.let_go()
    _rest(server, root)


def outlast(stage: Stage, server: ServerProcess) -> None:
    """An agent does not obey: its grace goes by."""
    root = _root(stage, server)
    agent_id = stage.spawn(server, root, "one", "long")
    until(server, stage.cwd / "began")
    server.call("agent/interrupt", agentId=agent_id, kind="cancel", reason="enough")
    _rest(server, root)


def dismiss(stage: Stage, server: ServerProcess) -> None:
    root = _root(stage, server)
    agent_id = stage.spawn(server, root, "one", "long")
    until(server, stage.cwd / "began")
    server.call("agent/close", agentId=agent_id)


def wonder(stage: Stage, server: ServerProcess) -> None:
    """An agent asks its parent, and a person answers."""
    root = _root(stage, server)
    stage.spawn(server, root, "one", "wonder")
    while (asked := _agent(server, root).get("question")) is None:
        pass
    server.call("agent/reply", askId=asked["askId"], text="left")
    _rest(server, root)


def call_away(stage: Stage, server: ServerProcess) -> None:
    """An agent asks its parent, and is told something else before anybody answers."""
    root = _root(stage, server)
    agent_id = stage.spawn(server, root, "one", "wonder")
    while _agent(server, root).get("question") is None:
        pass
    stage.send(server, "agent/continue", agent_id, "never mind")
    _rest(server, root)


def whisper(stage: Stage, server: ServerProcess) -> None:
    """An agent writes to one beside it."""
    root = _root(stage, server)
    stage.spawn(server, root, "two", "long")
    until(server, stage.cwd / "began")
    writer = stage.spawn(server, root, "one", "whisper", messageAllow=["two"])
    server.wait(writer)
    stage.let_go()
    _rest(server, root)


# --- scenes that begin with the death of another server -----------------------------------------


def _dies_with_two(stage: Stage) -> None:
    """One agent runs and another one waits for its turn."""
    with ServerProcess(stage.folder, model=stage.model, approvals=False) as first:
        root = stage.create(first, mode="work")
        stage.spawn(first, root, "one", "long")
        until(first, stage.cwd / "began")
        stage.spawn(first, root, "two", "run")
        first.kill()


def reconcile(stage: Stage, server: ServerProcess) -> None:
    """A server that finds agents of a dead one, and has one of them go on."""
    stage.greet(server)
    root = stage.created[0]
    for name in ("one", "two"):
        agent_id = _until_status(server, root, "interrupted", name=name)
        stage.send(server, "agent/continue", agent_id, "go on")
    _rest(server, root)


def _dies_closing(stage: Stage) -> None:
    die(stage, "agents.close.committed", dismiss)


def finish_closing(stage: Stage, server: ServerProcess) -> None:
    """A server that finds an agent which was to be closed."""
    stage.greet(server)
    _until_status(server, stage.created[0], "closed")


PRELUDES: dict[Play, Callable[[Stage], object]] = {
    reconcile: _dies_with_two,
    finish_closing: _dies_closing,
}


def hire_elsewhere(stage: Stage, server: ServerProcess) -> None:
    """The server dies over an agent whose parent another one runs, which lives on."""
    other = stage.other()
    root = stage.create(other, mode="work")
    stage.prompt(other, root, "short")
    other.wait(root)
    stage.greet(server)
    agent_id = stage.spawn(server, root, "one", "run")
    server.wait(agent_id)
    other.wait(root)


SHARED = frozenset({hire_elsewhere})

ONE_AT_A_TIME = frozenset({reconcile})
"""Only one agent of a parent runs at once."""


# --- what must hold -----------------------------------------------------------------------------


def check_agents(stage: Stage, end: Snapshot) -> None:
    """Every agent that a client was told of is there, with what was sent to it, each thing once; and of
    every tree holds what `check_tree` says."""
    for agent_id in stage.agents:
        held(agent_id in end.sessions, "an agent is gone:", agent_id)
    queued = [e["data"]["messageId"] for e in end.events if e["type"] == "agent_message_queued"]
    held(len(set(queued)) == len(queued), "queued twice:", queued)
    held(set(stage.queued) <= set(queued), "a message is gone:", set(stage.queued) - set(queued))
    for session_id, log in end.sessions.items():
        if is_agent(log):
            check_agent(session_id, log)
    check_tree(end.sessions, end.inbox)
    _check_messages(end)


def _check_messages(end: Snapshot) -> None:
    """What was sent to an agent was read once, waits for it, or was dropped, and an event says so."""
    for session_id, log in end.sessions.items():
        for event in log:
            if event["type"] != "agent_message_queued":
                continue
            message_id = event["data"]["messageId"]
            read = sum(
                part["deliveryId"] == message_id
                for e in log
                if e["type"] == "message"
                for part in (e["data"].get("delivered"), *e["data"].get("joined", ()))
                if part
            )
            dropped = sum(
                each["deliveryId"] == message_id
                for e in log
                if e["type"] == "deliveries_dropped"
                for each in e["data"]["deliveries"]
            )
            waits = message_id in end.inbox.get(session_id, ())
            held(read + dropped + waits == 1, message_id, "was read", read, "dropped", dropped)
