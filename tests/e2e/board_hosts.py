"""Two servers on one store, and the doors by which root and agents come to a board: ``group/*`` for the root, and for an
agent the tool that its model calls in a turn that somebody starts."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from attrs import frozen

from harness.process import RpcError, ServerProcess, scenario

_TOOLS = ("group_task", "group_message", "complete")
_CALLS = "".join(
    f"""
  - when: {{last_user: {{regex: '@{tool} (\\{{.*\\}})'}}, step: 0}}
    answer: [{{call: {{tool: {tool}, raw_arguments: "{{{{match.1}}}}"}}}}]"""
    for tool in _TOOLS
)
SCENE = f"""
rules:
  - when: {{last_tool: {{status: error}}}}
    answer: [{{say: "refused {{{{last_tool}}}}"}}]
  - when: {{last_tool: {{status: ok}}}}
    answer: [{{say: "{{{{last_tool}}}}"}}]{_CALLS}
default: [{{say: "Nothing to do."}}]
"""
"""Whoever is told ``@TOOL JSON`` calls the tool, and says what came of it."""
_REFUSED = "refused "

TABLES = (
    "agent_groups", "group_members", "group_tasks", "group_messages", "group_message_deliveries"
)  # fmt: skip

GROUP_EVENTS = (
    "agent_group_created", "agent_group_member_joined", "group_task_created", "group_task_claimed",
    "group_task_released", "group_task_status_changed", "group_message_queued",
)  # fmt: skip
"""What the root's log says of its group; the markers of what the root has read are told apart."""


@frozen(kw_only=True)
class Outcome:
    """What came of an operation. `refusal` is the kind of the error, of a tool its code; None where it was done."""

    actor: str
    by_tool: bool
    refusal: str | None = None
    data: dict[str, Any] | None = None
    """Of an error of the wire."""
    answer: Any = None
    """The result on the wire, or what the tool said, be it an error."""


Wanted = Callable[[], Outcome]
"""Waits for what was asked for."""


class Hosts:
    """Both servers, each with its client. `foreign` is a task on the board of somebody else."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.work = folder, folder / "work"
        self.work.mkdir()
        self._model = scenario(folder, SCENE)
        self.servers: list[ServerProcess] = []
        for _ in range(2):
            self.servers.append(self._start())
        self._other = self.servers[0].create(self.work, mode="work")
        made = self.servers[0].call("group/taskCreate", rootId=self._other, title="theirs")
        self.foreign: str = made["task"]["taskId"]

    def _start(self) -> ServerProcess:
        waits = {"CALLBOARD_AGENTS_REPORTS": "wait"}  # the root has a turn when it is told so, only
        return ServerProcess(self.folder, model=self._model, approvals=False, environ=waits)

    # --- the doors ---

    def ask(self, at: int, actor: str, method: str, **params: Any) -> Wanted:
        """Has the root do something."""
        server = self.servers[at]
        request_id = server.request(method, **params)

        def wait() -> Outcome:
            try:
                answer = server.result(request_id)
            except RpcError as error:
                data = error.error["data"]
                return Outcome(actor=actor, by_tool=False, refusal=error.kind, data=data)
            return Outcome(actor=actor, by_tool=False, answer=answer)

        return wait

    def tell(self, at: int, actor: str, text: str, *, is_root: bool = False) -> Wanted:
        """Starts a turn of somebody; what they say last is what came of it."""
        server = self.servers[at]
        if is_root:
            content = [{"type": "text", "text": text}]
            request_id = server.request("session/prompt", sessionId=actor, content=content)
        else:
            request_id = server.request("agent/continue", agentId=actor, text=text)

        def wait() -> Outcome:
            server.result(request_id)
            ended = server.wait(actor)
            assert ended["turn"]["state"] == "completed", ended
            said: str = ended["finalText"]
            if not said.startswith(_REFUSED):
                return Outcome(actor=actor, by_tool=True, answer=said)
            said = said.removeprefix(_REFUSED)
            code = said.partition(":")[0]
            return Outcome(actor=actor, by_tool=True, refusal=code, answer=said)

        return wait

    def call_tool(
        self, at: int, actor: str, tool: str, arguments: dict[str, Any], *, is_root: bool = False
    ) -> Wanted:
        """Has somebody's model call a tool."""
        return self.tell(at, actor, f"@{tool} {json.dumps(arguments)}", is_root=is_root)

    # --- looking ---

    def look(self, root: str, agents: list[str]) -> list[dict[str, Any]]:
        """What each server shows: the group, its tasks, messages of the members, and what the root's log says of the
        group. All is asked for before the first answer is waited for."""
        asked = {
            "group": ("group/get", {"rootId": root}),
            "tasks": ("group/taskList", {"rootId": root, "status": "all"}),
            "log": (
                "event/list",
                {"scope": {"kind": "session", "id": root}, "types": GROUP_EVENTS},
            ),
            **{
                each: ("group/messageList", {"rootId": root, "agentId": each})
                for each in (root, *agents)
            },
        }
        begun = [
            {server.request(method, **params): name for name, (method, params) in asked.items()}
            for server in self.servers
        ]
        return [_shown(server, ids) for server, ids in zip(self.servers, begun, strict=True)]

    # --- ends ---

    def kill(self, at: int) -> None:
        self.servers[at].kill()
        self.servers[at].close()

    def close(self, at: int) -> None:
        assert self.servers[at].close() == 0

    def wipe(self, root: str) -> None:
        """Takes everything of a board out of the tables, behind the back of the server that is there."""
        with closing(sqlite3.connect(self.folder / "store.db", isolation_level=None)) as connection:
            for table in TABLES:
                connection.execute(f"DELETE FROM {table} WHERE root_id = ?", (root,))

    def heal(self) -> None:
        """Starts those that are gone anew, and waits until they have made the tables: then they answer."""
        for at, server in enumerate(self.servers):
            if server.process.poll() is not None:
                self.servers[at] = self._start()
                self.servers[at].call("group/get", rootId=self._other)

    def end(self) -> None:
        for server in self.servers:
            if server.process.poll() is None:
                server.kill()
            server.close()


def _shown(server: ServerProcess, names: dict[int, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    while len(found) < len(names):
        message = server.receive()
        if message.get("id") in names and "method" not in message:
            found[names[message["id"]]] = message
    log, group, tasks = found.pop("log"), found.pop("group"), found.pop("tasks")
    assert not log["result"].get("nextCursor"), "the log has more than a page"
    inboxes: dict[str, Any] = {}
    for each, message in found.items():
        if "error" not in message:
            inboxes[each] = message["result"]["data"]
        else:  # who is no member has no messages
            assert message["error"]["data"]["kind"] == "notAMember", message
    return {
        "log": log["result"]["data"],
        "group": group["result"].get("group"),
        "tasks": tasks["result"]["data"],
        "inboxes": inboxes,
    }
