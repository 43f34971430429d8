"""What a task board is, said once more and otherwise: dicts and the tables of coordination 8.3-8.9, with nothing of
the product in it. It says of each operation what it makes of the board, or which error it gets.

Tasks, members and events have the names of the wire. What only the server knows (ids, times) is told to it.
"""

from typing import Any

Task = dict[str, Any]

BECOMES: dict[str, dict[str, str]] = {
    "claim": {"pending": "claimed"},
    "start": {"claimed": "in_progress"},
    "complete": {"claimed": "completed", "in_progress": "completed"},
    "block": {"claimed": "blocked", "in_progress": "blocked"},
    "release": {"claimed": "pending", "in_progress": "pending"},
    "cancel": dict.fromkeys(("pending", "claimed", "in_progress", "blocked"), "cancelled"),
    "reassign": dict.fromkeys(("pending", "claimed", "in_progress", "blocked"), "claimed"),
}
"""The table of 8.3: what is not in it cannot be done."""
ROOT_ONLY = ("cancel", "reassign")
OVER = ("completed", "cancelled")
ACTIVE = ("claimed", "in_progress")
MAX_MESSAGE_BYTES = 4_000
MAX_TITLE_CHARS = 200


class Refused(Exception):
    """An operation gets an error of this kind, with this in its data; nothing is written."""

    def __init__(self, kind: str, **data: Any) -> None:
        super().__init__(f"{kind} {data}")
        self.kind, self.data = kind, data


def no_group_yet(operation: str) -> bool:
    """Whether a model hears that there is no group, rather than that there is no such task (9)."""
    return operation in ("claim", "release", "cancel", "reassign")


class Board:
    """A root, its agents (id to name), and all that is theirs."""

    def __init__(self, root: str, agents: dict[str, str]) -> None:
        self.root, self.agents = root, agents
        self.status = dict.fromkeys(agents, "completed")
        """Of each agent, as `group/get` tells it."""
        self.exists = False
        self.members: list[str] = []
        self.tasks: dict[str, Task] = {}
        self.messages: list[dict[str, Any]] = []
        self.read: dict[str, list[int]] = {each: [] for each in (root, *agents)}
        """The numbers of the messages that each has been given, in that order."""
        self.log: list[tuple[str, dict[str, Any]]] = []
        """The group's events in the root's log, with what is not empty in them."""

    # --- tasks ---

    def create(
        self, actor: str, title: str, dependencies: list[str], *, required: bool, paths: list[str]
    ) -> Task:
        """What the new task is to be; `created` puts it on the board."""
        title = " ".join(title.split())
        if not 0 < len(title) <= MAX_TITLE_CHARS:
            raise Refused("invalidParams", field="title")
        if actor != self.root:
            raise Refused("rootOnly")
        for number, each in enumerate(dependencies):
            if each not in self.tasks:
                raise Refused("invalidGraph", reason="unknown")
            if each in dependencies[:number]:
                raise Refused("invalidGraph", reason="duplicate")
        return {
            "title": title, "description": "", "status": "pending", "createdBy": actor, "dependencies": dependencies,
            "required": required, "expectedPaths": _filled(paths), "findings": [], "touchedFiles": [],
        }  # fmt: skip

    def created(self, task_id: str, task: Task) -> None:
        self._begin()
        kept = ("title", "createdBy", "dependencies", "required", "expectedPaths")
        self._append("group_task_created", taskId=task_id, **{name: task[name] for name in kept})
        self.tasks[task_id] = {"taskId": task_id, **task}

    def claim(self, actor: str, task_id: str) -> Task:
        task = self._task(task_id)
        if task["status"] != "pending":
            raise Refused("taskNotClaimable", status=task["status"], assignee=task.get("assignee"))
        self._must_be_ready(task)
        self._join(actor)
        task.update(status="claimed", assignee=actor)
        self._append("group_task_claimed", taskId=task_id, agentId=actor)
        return task

    def change(self, actor: str, operation: str, task_id: str, said: dict[str, Any]) -> Task:
        """Start, complete, block, release, cancel. `said`: summary, reason, findings, touchedFiles."""
        said = {
            name: clean
            for name, value in said.items()
            if (clean := value.strip() if isinstance(value, str) else _filled(value))
        }
        for wanted, field in (("complete", "summary"), ("block", "reason")):
            if operation == wanted and field not in said:
                raise Refused("invalidParams", field=field)
        task = self._task(task_id)
        self._may(actor, operation, task)
        if operation == "release":
            del task["assignee"]
            task["status"] = "pending"
            self._append("group_task_released", taskId=task_id, agentId=actor)
        else:
            self._becomes(actor, operation, task, **said)
        return task

    def reassign(self, actor: str, task_id: str, agent_id: str) -> Task:
        task = self._task(task_id)
        self._may(actor, "reassign", task)
        self._must_be_member(agent_id)
        if task["status"] == "pending":
            self._must_be_ready(task)
        self._becomes(actor, "reassign", task, assignee=agent_id, reason="reassigned")
        return task

    def _becomes(self, actor: str, operation: str, task: Task, **said: Any) -> None:
        status = BECOMES[operation][task["status"]]
        task.update(status=status, **said)
        about = {"taskId": task["taskId"], "status": status, "agentId": actor}
        self._append("group_task_status_changed", **about, **said)

    def _may(self, actor: str, operation: str, task: Task) -> None:
        if operation in ROOT_ONLY and actor != self.root:
            raise Refused("rootOnly")
        if task["status"] not in BECOMES[operation]:
            raise Refused("transitionNotAllowed", status=task["status"])
        if operation not in ROOT_ONLY and task["assignee"] != actor:
            raise Refused("notOwner", assignee=task["assignee"])

    def _task(self, task_id: str) -> Task:
        if task_id not in self.tasks:
            raise Refused("taskNotFound")
        return self.tasks[task_id]

    def _must_be_ready(self, task: Task) -> None:
        waits_for = self._waits_for(task)
        if waits_for:
            raise Refused("taskNotReady", dependencies=waits_for)

    def _waits_for(self, task: Task) -> list[str]:
        return [d for d in task["dependencies"] if self.tasks[d]["status"] != "completed"]

    # --- membership ---

    def _begin(self) -> None:
        if not self.exists:
            self.exists = True
            self._append("agent_group_created")

    def _join(self, agent_id: str) -> None:
        if agent_id != self.root and agent_id not in self.members:
            self.members.append(agent_id)
            self._append("agent_group_member_joined", agentId=agent_id)

    def _must_be_member(self, agent_id: str) -> None:
        if agent_id not in (self.root, *self.members):
            raise Refused("notAMember")
        if self.status.get(agent_id) == "closed":
            raise Refused("agentClosed")

    def open_agents(self) -> list[str]:
        return [each for each in self.agents if self.status[each] != "closed"]

    # --- messages ---

    def send(self, actor: str, to: str, agent_id: str | None, text: str) -> list[str]:
        """Who gets it."""
        text = text.strip()
        if not text:
            raise Refused("invalidParams", field="text")
        if (size := len(text.encode())) > MAX_MESSAGE_BYTES:
            raise Refused("messageTooLong", bytes=size, limit=MAX_MESSAGE_BYTES)
        if agent_id == actor or (to == "root" and actor == self.root):
            raise Refused("invalidParams", field="to")
        if agent_id is not None:
            self._must_be_member(agent_id)
        self._begin()
        self._join(actor)
        if agent_id is not None:
            recipients = [agent_id]
        elif to == "root":
            recipients = [self.root]
        else:
            able = [each for each in self.members if self.status[each] != "closed"]
            recipients = [each for each in (self.root, *able) if each != actor]
        message = {"sender": actor, "to": to, "recipients": recipients, "text": text}
        self._append("group_message_queued", **message)
        self.messages.append(message)
        return recipients

    def turn(self, session_id: str) -> None:
        """Somebody's turn begins: they are given what waits for them, in the order in which it was sent."""
        if session_id != self.root:
            self.status[session_id] = "completed"
        self.read[session_id] = self.written_to(session_id)

    def written_to(self, session_id: str) -> list[int]:
        return [n for n, each in enumerate(self.messages) if session_id in each["recipients"]]

    # --- what follows from it (8.7, 8.9) ---

    def seen(self, task: Task) -> Task:
        """A task with what follows from the others."""
        waits_for = [] if task["status"] in OVER else self._waits_for(task)
        return {
            **task,
            "ready": task["status"] == "pending" and not waits_for,
            "blockers": waits_for,
        }

    def keeps_open(self) -> list[Task]:
        """What the root's work is not complete without."""
        return [t for t in self.tasks.values() if t["required"] and t["status"] not in OVER]

    def _append(self, kind: str, **data: Any) -> None:
        self.log.append((kind, not_empty(data)))


def not_empty(data: dict[str, Any]) -> dict[str, Any]:
    """What an event says; what is empty in it says nothing. (False does.)"""
    return {name: value for name, value in data.items() if value not in (None, "", [])}


def _filled(texts: list[str]) -> list[str]:
    return [text.strip() for text in texts if text.strip()]
