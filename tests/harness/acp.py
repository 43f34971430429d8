"""A real ``callboard serve --acp``, whose every frame is held against the protocol before a test may see it.

What a test sends is held against it as well, but for what is wrong on purpose (`send_wrong`, `write`).
"""

import json
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from .acp_order import Order
from .acp_schema import Checker
from .process import PATIENCE_S, RpcError, ServerProcess

CAPABLE: dict[str, Any] = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "auth": {"terminal": True},
    "session": {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}},
    "elicitation": {"form": {}, "url": {}},
}
"""What a client can declare, all of it."""
Answer = Callable[[dict[str, Any]], dict[str, Any] | None]
"""From the params of a request of the agent's to its result, or to None, which leaves it open."""


class AcpProcess(ServerProcess):
    """One agent on one store. Use as a context manager.

    Args:
        answer: answers ``session/request_permission``; without one each stays open.
        serves: answers other requests of the agent's, by method.
        capabilities: what the client declares.
    """

    def __init__(
        self,
        folder: Path,
        *,
        answer: Answer | None = None,
        serves: Mapping[str, Answer] | None = None,
        capabilities: Mapping[str, Any] | None = None,
        initialize: bool = True,
        arguments: tuple[str, ...] = (),
        program: tuple[str, ...] | None = None,
        **more: Any,
    ) -> None:
        self.served: dict[str, Answer] = dict(serves or {})
        if answer is not None:
            self.served["session/request_permission"] = answer
        self.checker = Checker()
        self._order = Order()
        self._killed = False
        self._wire = threading.Lock()
        """Held while a frame is judged, so that both threads agree on the order of frames."""
        super().__init__(
            folder, initialize=False, arguments=("--acp", *arguments), program=program, **more
        )
        if initialize:
            self.hello = self.call(
                "initialize",
                protocolVersion=1,
                clientCapabilities=dict(capabilities or {}),
                clientInfo={"name": "tests", "version": "1"},
            )

    # --- plain traffic ---

    def _heard(self, line: bytes) -> dict[str, Any]:
        """A frame that is wrong reaches the test as one that holds the `fault`."""
        if self._killed and not line.endswith(b"\n"):
            return {}  # what a SIGKILL has left of a frame
        try:
            with self._wire:
                message = self.checker.check_line(line, "agent")
                self._order.agent(message)
        except AssertionError as fault:
            return {"fault": fault}
        answer = self.served.get(message.get("method", ""))
        if answer is not None and "id" in message:
            result = answer(message["params"])
            if result is not None:
                self.answer_with(message["id"], result)
        return message

    def receive(self, timeout: float = PATIENCE_S) -> dict[str, Any]:
        message = super().receive(timeout)
        if "fault" in message:
            raise message["fault"]
        return message

    def send(self, message: Any) -> None:
        """One frame, which has to be right."""
        with self._wire:
            self.checker.check(message, "client")
            self._order.client(message)
        self._put(message)

    def send_wrong(self, message: Any) -> None:
        """One frame that is wrong; what answers it is judged as usual."""
        with self._wire:
            try:
                self.checker.check(message, "client")
            except AssertionError:
                self._order.client(message)
            else:
                raise AssertionError(f"there is nothing wrong with {message}")
        self._put(message)

    def write(self, line: bytes) -> None:
        """Bytes as they are."""
        assert self.process.stdin is not None
        with self._lock:
            self.process.stdin.write(line)
            self.process.stdin.flush()

    def _put(self, message: Any) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def answer_with(self, request_id: int | str, result: dict[str, Any]) -> None:
        """Answers a request of the agent's."""
        self.send({"jsonrpc": "2.0", "id": request_id, "result": result})

    def result(self, request_id: int) -> Any:
        """The answer to a request, whether it was read already or is still to come. Raises `RpcError`."""
        answer = next(
            (m for m in self.seen if m.get("id") == request_id and "method" not in m), None
        ) or self.until(lambda m: m.get("id") == request_id and "method" not in m)
        if "error" in answer:
            raise RpcError(answer["error"])
        return answer["result"]

    def refused(self, method: str, **params: Any) -> dict[str, Any]:
        """Sends a request that is an error, right or wrong as a frame; the error."""
        self._id += 1
        message = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        with self._wire:
            with suppress(AssertionError):
                self.checker.check(message, "client")
            self._order.client(message)
        self._put(message)
        try:
            result = self.result(self._id)
        except RpcError as refusal:
            return refusal.error
        raise AssertionError(f"{method} was not refused: {result}")

    def kill(self) -> None:
        self._killed = True
        super().kill()

    def close(self) -> int:
        """Also judges what no test has read."""
        code = super().close()
        while (message := self._inbox.get(timeout=PATIENCE_S)) is not None:
            self.seen.append(message)
            if "fault" in message:
                raise message["fault"]
        self._inbox.put(None)
        return code

    # --- what most tests do ---

    def new(self, cwd: Path, **params: Any) -> str:
        """A session; its id."""
        return self.call("session/new", cwd=str(cwd), **{"mcpServers": [], **params})["sessionId"]

    def start(self, session_id: str, text: str, **params: Any) -> int:
        """Prompts without waiting; the id of the request."""
        prompt = [{"type": "text", "text": text}]
        return self.request("session/prompt", sessionId=session_id, prompt=prompt, **params)

    def prompted(self, session_id: str, text: str) -> str:
        """Prompts and waits; why it stopped."""
        return self.result(self.start(session_id, text))["stopReason"]

    def updates(
        self, session_id: str | None = None, kind: str | None = None, *, since: int = 0
    ) -> list[dict[str, Any]]:
        """The updates that were read, all or those of a session or a kind, after so many frames."""
        return [
            message["params"]["update"]
            for message in self.seen[since:]
            if message.get("method") == "session/update"
            and session_id in (None, message["params"]["sessionId"])
            and kind in (None, message["params"]["update"]["sessionUpdate"])
        ]

    def until_update(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Reads on until an update is wanted, and returns it."""
        message = self.until(
            lambda m: m.get("method") == "session/update" and wanted(m["params"]["update"])
        )
        return message["params"]["update"]

    def until_asked(self, method: str = "session/request_permission") -> dict[str, Any]:
        """Reads on until the agent asks this, and returns the frame."""
        return self.until(lambda m: m.get("method") == method)

    def text(self, session_id: str, *, since: int = 0) -> str:
        """What the agent said in the frames that were read."""
        chunks = self.updates(session_id, "agent_message_chunk", since=since)
        return "".join(chunk["content"].get("text", "") for chunk in chunks)

    def tools(self, session_id: str, *, since: int = 0) -> dict[str, dict[str, Any]]:
        """The tool calls of the frames that were read, each as its updates have made it."""
        calls: dict[str, dict[str, Any]] = {}
        for update in self.updates(session_id, since=since):
            if update["sessionUpdate"] in ("tool_call", "tool_call_update"):
                told = {k: v for k, v in update.items() if k != "sessionUpdate" and v is not None}
                calls.setdefault(update["toolCallId"], {}).update(told)
        return calls


def choosing(*kinds: str) -> Answer:
    """An answer to a permission request: the first option of the first kind that is offered."""

    def answer(params: dict[str, Any]) -> dict[str, Any]:
        for kind in kinds:
            for option in params["options"]:
                if option["kind"] == kind:
                    return {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}
        raise AssertionError(f"none of {kinds} is among {params['options']}")

    return answer


allow = choosing("allow_once")
deny = choosing("reject_once")
