"""The same storm with agents: children of all sessions, in all processes, spoken to, stopped and closed by
any of them."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from mixed import Shared, Storm, Worker

from harness.agent_invariants import check_tree, hold, is_agent
from harness.process import RpcError

NAMES = ("one", "two", "three")
KINDS = ("talk", "talk", "write", "ask", "slow")


class AgentWorker(Worker):
    """Takes children for sessions like all others: they are prompted, archived and deleted, too."""

    def __init__(self, number: int, folder: Path, cwd: Path, shared: Shared, seed: int) -> None:
        super().__init__(number, folder, cwd, shared, seed)
        self.queued: dict[str, str] = {}
        """Message ids, and to whom."""
        self._ops |= {
            self.spawn: 14,
            self.tell: 14,
            self.interrupt: 8,
            self.dismiss: 3,
            self.tree: 5,
        }

    def _text(self) -> str:
        return f"p{self.number}.{self._next()} {self.chance.choice(KINDS)}"

    def spawn(self) -> None:
        told = self._change(
            "agent/spawn", parentId=self._pick(), name=self.chance.choice(NAMES),
            message=self._text(),
        )  # fmt: skip
        self.shared.add(told["agent"]["agentId"])

    def tell(self) -> None:
        method = self.chance.choice(("agent/send", "agent/continue"))
        agent_id = self._pick()
        told = self._change(method, agentId=agent_id, text=self._text())
        self.queued[told["messageId"]] = agent_id

    def interrupt(self) -> None:
        kind = self.chance.choice(("steer", "cancel", "abort"))
        self._change("agent/interrupt", agentId=self._pick(), kind=kind, reason=self._text())

    def dismiss(self) -> None:
        self._change("agent/close", agentId=self._pick())

    def tree(self) -> None:
        page = self.server.call("agent/list", rootId=self._pick(), limit=20)
        names = [(agent["name"], agent["agentId"]) for agent in page["data"]]
        hold(names == sorted(names), "not in order:", names)


class AgentStorm(Storm):
    worker = AgentWorker

    def _settle(self) -> None:
        """Until nothing happens any more: what an agent says as it ends may wake the one above it."""
        server = self.workers[0].server
        for session_id in self.shared.all():
            try:
                server.call("session/get", sessionId=session_id)
            except RpcError as error:
                hold(error.kind == "sessionNotFound", session_id, error)
                self.shared.remove(session_id)  # it went with the one above it
        head = None
        while head != (head := self._head()):
            super()._settle()

    def _head(self) -> str:
        page = self.workers[0].server.call(
            "event/list", scope={"kind": "all"}, before=None, limit=1
        )
        return page["cursor"]

    def check(self, logs: dict[str, list[dict[str, Any]]]) -> None:
        super().check(logs)
        waiting: dict[str, list[str]] = {}
        with closing(sqlite3.connect(self.folder / "store.db")) as connection:
            for session, delivery in connection.execute(
                "SELECT session_id, delivery_id FROM inbox"
            ):
                waiting.setdefault(session, []).append(delivery)
        check_tree(logs, waiting)
        hold(sum(map(is_agent, logs.values())) >= 3, "too few agents to speak of")
        for worker in self.workers:
            for message_id, agent_id in worker.queued.items():
                self._check_message(message_id, agent_id, logs, waiting)

    def _check_message(
        self,
        message_id: str,
        agent_id: str,
        logs: dict[str, list[dict[str, Any]]],
        waiting: dict[str, list[str]],
    ) -> None:
        """What a client was told is queued was read once, waits, or was dropped; none of it is lost."""
        if agent_id not in logs:
            hold(agent_id in self.shared.deleted, agent_id, "is lost")
            return
        read = dropped = 0
        for event in logs[agent_id]:
            data = event["data"]
            if event["type"] == "message" and data.get("delivered"):
                read += data["delivered"]["deliveryId"] == message_id
            if event["type"] == "deliveries_dropped":
                dropped += sum(d["deliveryId"] == message_id for d in data["deliveries"])
        waits = message_id in waiting.get(agent_id, ())
        hold(read + dropped + waits == 1, message_id, "read", read, "dropped", dropped, waits)
