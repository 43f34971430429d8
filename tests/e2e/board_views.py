"""What servers are to show of a board, by its model: with the ids and times that stand in the root's log, each thing as
it is on the wire (coordination 8.7)."""

from itertools import combinations
from typing import Any

from board_model import ACTIVE, OVER, Board, Task, not_empty

Events = list[dict[str, Any]]

STATUSES = ("pending", "claimed", "in_progress", "completed", "blocked", "cancelled")
_MADE_BY_SERVER = ("groupId", "name", "messageId")


def said(event: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """An event as the model has it."""
    data = {name: value for name, value in event["data"].items() if name not in _MADE_BY_SERVER}
    return event["type"], not_empty(data)


def not_stamped(task: Task) -> Task:
    """A task without what only a server knows."""
    return {k: v for k, v in task.items() if k not in ("groupId", "createdAt", "updatedAt")}


def shown(board: Board, name: str, about: Events) -> dict[str, Any]:
    """The group called `name`, its tasks and everybody's messages. `about` is what the log says of it."""
    tasks = _tasks(board, about)
    group = _group(board, name, about[0], tasks) if board.exists else None
    members = (board.root, *board.members)
    return {
        "group": group, "tasks": tasks, "inboxes": {each: _inbox(board, each, about) for each in members}
    }  # fmt: skip


def _tasks(board: Board, about: Events) -> list[Task]:
    times: dict[str, list[str]] = {}
    for event in about:
        if "taskId" in event["data"]:
            times.setdefault(event["data"]["taskId"], []).append(event["at"])
    group_id = about[0]["data"]["groupId"] if about else ""
    stamped = [
        {
            **board.seen(task), "groupId": group_id, "createdAt": times[task_id][0],
            "updatedAt": times[task_id][-1],
        }
        for task_id, task in board.tasks.items()
    ]  # fmt: skip
    return sorted(stamped, key=lambda task: (task["createdAt"], task["taskId"]))


def _group(board: Board, name: str, made: dict[str, Any], tasks: list[Task]) -> dict[str, Any]:
    ready = [task for task in tasks if task["ready"]]
    number = {_wire(s): sum(task["status"] == s for task in tasks) for s in STATUSES}
    agents = [
        {"agentId": each, "name": board.agents[each], "isRoot": False, "status": board.status[each]}
        for each in board.members
    ]
    return {
        "groupId": made["data"]["groupId"],
        "rootId": board.root,
        "name": name,
        "createdAt": made["at"],
        "members": [{"agentId": board.root, "name": "root", "isRoot": True}, *agents],
        "counts": {"total": len(tasks), "ready": len(ready), **number},
        "ready": ready,
        "active": [task for task in tasks if task["status"] in ACTIVE],
        "blocked": [task for task in tasks if task["status"] == "blocked"],
        "dependencyFailures": _failures(board),
        "conflicts": _conflicts(tasks),
        "requiredUnfinished": [
            task["taskId"] for task in tasks if task["required"] and task["status"] not in OVER
        ],
    }


def _wire(status: str) -> str:
    return status.replace("_p", "P")


def _failures(board: Board) -> list[dict[str, str]]:
    return [
        {"taskId": task_id, "dependencyId": each, "status": status}
        for task_id, task in sorted(board.tasks.items())
        if task["status"] not in OVER
        for status in ("blocked", "cancelled")
        for each in task["dependencies"]
        if board.tasks[each]["status"] == status
    ]


def _conflicts(tasks: list[Task]) -> list[dict[str, Any]]:
    active = [task for task in tasks if task["status"] in ACTIVE]
    return [
        {"taskIds": [one["taskId"], other["taskId"]], "path": min(common)}
        for one, other in combinations(active, 2)
        if (common := _files(one) & _files(other))
    ]


def _files(task: Task) -> set[str]:
    return {_path(each) for each in (*task["expectedPaths"], *task["touchedFiles"])} - {""}


def _path(path: str) -> str:
    path = path.strip().replace("\\", "/")
    while path.startswith("./"):
        path = path[2:]
    return "".join(c.lower() if c.isascii() else c for c in path)


def _inbox(board: Board, session_id: str, about: Events) -> list[dict[str, Any]]:
    queued = [event for event in about if event["type"] == "group_message_queued"]
    return [
        {
            "messageId": queued[n]["data"]["messageId"],
            "sender": board.messages[n]["sender"],
            "senderName": board.agents.get(board.messages[n]["sender"], "root"),
            "to": board.messages[n]["to"],
            "text": board.messages[n]["text"],
            "at": queued[n]["at"],
            "seen": n in board.read[session_id],
        }
        for n in reversed(board.written_to(session_id))
    ]
