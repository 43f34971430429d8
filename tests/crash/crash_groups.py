"""Scenes at a task board, and what must hold of groups after a crash."""

import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from typing import Any

from crash_ledger import Event, Snapshot, held
from crash_scenes import Play
from crash_stage import Stage, die

from callboard.groups.projection import PROJECTION
from harness.process import ServerProcess

# --- what clients do ----------------------------------------------------------------------------


def _root(stage: Stage, server: ServerProcess) -> str:
    stage.greet(server)
    return stage.create(server, mode="work")


def _change(stage: Stage, server: ServerProcess, method: str, root: str, **params: Any) -> str:
    """A change of a task, and what a client was told of it; the task's id."""
    task = server.call(f"group/{method}", rootId=root, **params)["task"]
    stage.told_tasks[task["taskId"]].append(task["status"])
    return task["taskId"]


def _send(stage: Stage, server: ServerProcess, root: str, text: str, **params: Any) -> None:
    told = server.call("group/messageSend", rootId=root, text=text, **params)
    stage.told_messages.append(told["messageId"])


def _rest(server: ServerProcess, root: str) -> None:
    server.wait(root)  # it may not have started its agent yet
    for each in server.call("agent/list", rootId=root)["data"]:
        server.wait(each["agentId"])
    server.wait(root)


def _agent_id(server: ServerProcess, root: str) -> str:
    (agent,) = server.call("agent/list", rootId=root)["data"]
    return agent["agentId"]


def tend(stage: Stage, server: ServerProcess) -> None:
    """A person at the board: of two tasks one is done, and one is dropped."""
    root = _root(stage, server)
    first = _change(stage, server, "taskCreate", root, title="first")
    second = _change(stage, server, "taskCreate", root, title="second", dependencies=[first])
    _change(stage, server, "taskClaim", root, taskId=first)
    _change(stage, server, "taskStart", root, taskId=first)
    _change(stage, server, "taskComplete", root, taskId=first, summary="done")
    _change(stage, server, "taskClaim", root, taskId=second)
    _change(stage, server, "taskRelease", root, taskId=second)
    _change(stage, server, "taskCancel", root, taskId=second)


def assign(stage: Stage, server: ServerProcess) -> None:
    """A model starts an agent with a task, which the agent completes before it claims another one."""
    root = _root(stage, server)
    task_id = _change(stage, server, "taskCreate", root, title="first")
    another = _change(stage, server, "taskCreate", root, title="second")
    stage.prompt(server, root, f"assign {task_id} {another}")
    _rest(server, root)


def finish(stage: Stage, server: ServerProcess) -> None:
    """A model declares its work complete: first with a task open, then with none."""
    root = _root(stage, server)
    task_id = _change(stage, server, "taskCreate", root, title="first")
    stage.prompt(server, root, "finish")
    server.wait(root)
    _change(stage, server, "taskCancel", root, taskId=task_id)
    stage.prompt(server, root, "finish it")
    server.wait(root)


def announce(stage: Stage, server: ServerProcess) -> None:
    """Three messages lie there for an agent that rests, until it is to go on."""
    root = _root(stage, server)
    task_id = _change(stage, server, "taskCreate", root, title="first")
    stage.prompt(server, root, f"assign {task_id} {task_id}")
    _rest(server, root)
    agent_id = _agent_id(server, root)
    _send(stage, server, root, "To all.", to="group")
    _send(stage, server, root, "To you.", to="agent", agentId=agent_id)
    _send(stage, server, root, "To all again.", to="group")
    stage.send(server, "agent/continue", agent_id, "run")
    _rest(server, root)


# --- scenes that begin with the death of another server -----------------------------------------


def _dies_at_the_board(stage: Stage) -> None:
    with ServerProcess(stage.folder, model=stage.model, approvals=False) as first:
        root = stage.create(first, mode="work")
        task_id = _change(stage, first, "taskCreate", root, title="first")
        _change(stage, first, "taskClaim", root, taskId=task_id)
        first.kill()
    _lose_tables(stage)


def take_over(stage: Stage, server: ServerProcess) -> None:
    """A server that makes the tables of a group anew as it begins."""
    stage.greet(server)
    root = stage.created[0]
    (task_id,) = stage.told_tasks
    _change(stage, server, "taskComplete", root, taskId=task_id, summary="done")


def _dies_spawning(stage: Stage) -> None:
    die(stage, "agents.spawn.committed", assign)
    _lose_tables(stage)


def _lose_tables(stage: Stage) -> None:
    """What the next server makes anew from the log: it writes nothing where nothing is missing."""
    with closing(sqlite3.connect(stage.store)) as store, store:
        for table in PROJECTION.tables:
            store.execute(f"DELETE FROM {table}")


def take_over_agent(stage: Stage, server: ServerProcess) -> None:
    """The agent of a dead server has its task still, and goes on with it."""
    stage.greet(server)
    root = stage.created[0]
    agent_id = _agent_id(server, root)
    _send(stage, server, root, "To you.", to="agent", agentId=agent_id)
    stage.send(server, "agent/continue", agent_id, "run")
    _rest(server, root)


PRELUDES: dict[Play, Callable[[Stage], object]] = {
    take_over: _dies_at_the_board,
    take_over_agent: _dies_spawning,
}


# --- what must hold -----------------------------------------------------------------------------

_BECOMES = {"group_task_claimed": "claimed", "group_task_released": "pending"}
_MARKER = "group_message_delivered"


def check_groups(stage: Stage, shot: Snapshot) -> None:
    """What a client was told of its tasks and messages is there; a child has a task if, and only if, it was
    made with it; and every message was read once, or waits."""
    for log in shot.sessions.values():
        _check_board(log)
    _check_told(stage, shot)
    _check_spawned(shot)
    _check_messages(shot)


def _check_board(log: list[Event]) -> None:
    """Every claim of one task follows its creation, its release, or nothing at all (coordination 8.3), and no
    work is complete with a task open (8.9)."""
    made = [e for e in log if e["type"] == "agent_group_created"]
    held(len(made) <= 1, "several groups:", made)
    status: dict[str, str] = {}
    for event in log:
        data = event["data"]
        match event["type"]:
            case "group_task_created":
                held(data["taskId"] not in status, "created twice:", event)
                status[data["taskId"]] = "pending"
            case "group_task_claimed":
                held(status[data["taskId"]] == "pending", "claimed twice:", event)
                status[data["taskId"]] = "claimed"
            case "group_task_released":
                status[data["taskId"]] = "pending"
            case "group_task_status_changed":
                held(status[data["taskId"]] != data["status"], "changed twice:", event)
                status[data["taskId"]] = data["status"]
            case "completion_changed":
                held(set(status.values()) <= {"completed", "cancelled"}, "not complete:", status)
            case _:
                pass


def _check_told(stage: Stage, shot: Snapshot) -> None:
    went_through: dict[str, list[str]] = {}
    for event in shot.events:
        data, kind = event["data"], event["type"]
        if kind == "group_task_created":
            went_through[data["taskId"]] = ["pending"]
        elif kind in _BECOMES or kind == "group_task_status_changed":
            went_through[data["taskId"]].append(_BECOMES.get(kind) or data["status"])
    for task_id, told in stage.told_tasks.items():
        there = went_through.get(task_id, [])
        held(_is_in(told, there), task_id, "was", told, "and is", there)
    queued = [
        e["data"]["messageId"] for e in shot.events if e["type"] == "group_message_queued"
    ]  # fmt: skip
    held(len(set(queued)) == len(queued), "queued twice:", queued)
    held(set(stage.told_messages) <= set(queued), "a message is gone:", stage.told_messages)


def _is_in(told: list[str], there: list[str]) -> bool:
    """Whether all of `told` is `there`, in that order; between them an agent may have done more."""
    rest = iter(there)
    return all(each in rest for each in told)


def _check_spawned(shot: Snapshot) -> None:
    """Child, membership and ownership are there together, or none of them (coordination 97)."""
    calls = {
        e["data"]["callId"]: e["data"]["arguments"]
        for e in shot.events
        if e["type"] == "tool_call" and e["data"]["name"] == "spawn_agent"
    }
    claims = [e for e in shot.events if e["type"] == "group_task_claimed"]
    joined = Counter(
        e["data"]["agentId"] for e in shot.events if e["type"] == "agent_group_member_joined"
    )
    held(set(joined.values()) <= {1}, "joined twice:", joined)
    for claim in claims:
        owner = claim["data"]["agentId"]
        held(owner in shot.sessions, "owned by nobody:", claim)
        held(owner == claim["sessionId"] or joined[owner] == 1, "owned by no member:", claim)
    for child_id, log in shot.sessions.items():
        if log[0]["type"] != "agent_spawned":
            continue
        wanted = calls.get(log[0]["data"].get("callId") or "", {}).get("task_id")
        owned = [c for c in claims if c["data"]["taskId"] == wanted]
        held(
            wanted is None or [c["data"]["agentId"] for c in owned] == [child_id],
            child_id, "was made for", wanted, "which has", owned,
        )  # fmt: skip


def _check_messages(shot: Snapshot) -> None:
    """Each marker stands behind what was read, in the recipient's session, once and in order (98-103)."""
    queued = [e["data"] for e in shot.events if e["type"] == "group_message_queued"]
    for session_id, log in shot.sessions.items():
        markers = [e for e in log if e["type"] == _MARKER]
        mine = [m["messageId"] for m in queued if session_id in m["recipients"]]
        read = [e["data"]["messageId"] for e in markers]
        held(read == mine[: len(read)], session_id, "read", read, "of", mine)
        texts = {m["messageId"]: m["text"] for m in queued}
        for marker in markers:
            before: Event = log[int(marker["seq"]) - 2]
            held(before["type"] == "directive", "a marker of nothing:", marker)
            held(texts[marker["data"]["messageId"]] in before["data"]["text"], "not it:", before)
        told = [
            e for e in log
            if e["type"] == "directive" and e["data"]["text"].startswith("<group-message")
        ]  # fmt: skip
        held(len(told) == len(markers), session_id, "was told", told, "and marked", markers)


def check_all_read(end: Snapshot) -> None:
    """Whoever was to go on behind a message, and did, has read it."""
    for session_id, log in end.sessions.items():
        went_on = [e["seq"] for e in log if e["type"] == "turn_finished"
                   and e["data"]["outcome"] == "completed"]  # fmt: skip
        began = {e["turnId"]: e["pos"] for e in log if e["type"] == "turn_started"}
        last = max((began[log[seq - 1]["turnId"]] for seq in went_on), default=0)
        due = [
            e["data"]["messageId"]
            for e in end.events
            if e["type"] == "group_message_queued"
            and session_id in e["data"]["recipients"]
            and e["pos"] < last
        ]
        read = [e["data"]["messageId"] for e in log if e["type"] == _MARKER]
        held(set(due) <= set(read), session_id, "went on without", set(due) - set(read))
