"""``callboard serve --acp`` as an editor sees it: a real process, plain JSON lines, every frame judged.

What the agent sends is held against the protocol. A frame that does not fit fails the test that reads it, and
those that nobody has read fail it at the end. What a test sends may be wrong on purpose.
"""

import json
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

from .acp_order import Order
from .acp_schema import Checker
from .process import ANEW, PATIENCE_S, Gone, JsonProcess, RpcError

__all__ = ["ANEW", "AcpProcess", "Gone", "RpcError", "allow", "kinds", "texts"]

EVERYTHING: dict[str, Any] = {
    "fs": {"readTextFile": False, "writeTextFile": False},
    "terminal": False,
    "session": {"configOptions": {"boolean": {}}, "compaction": {}, "notices": {}},
    "elicitation": {"form": {}, "url": {}},
}
"""What most tests declare; files are a matter of their own tests."""

FRAME_BYTES = 60 * 1024
"""What an old client reads as one line."""

BEYOND = ("session/set_model",)
"""What Callboard answers for clients that are older than the schema."""

Answer = Callable[[dict[str, Any]], Any]
"""Params of what the agent asks, to the result; None leaves it without an answer, an `Exception` makes an
error, and a `Future` answers when it is done."""


class Judge:
    """Holds every frame of one connection against the protocol, in the order of the wire."""

    def __init__(self) -> None:
        self._checker = Checker(beyond=BEYOND)
        self._order = Order()

    def sent(self, message: Any) -> None:
        """A frame of the client's; what it asks for is remembered, right or wrong."""
        with suppress(AssertionError):
            self._checker.check(message, "client")
        self._order.client(message)

    def sent_bytes(self, data: bytes) -> None:
        """What may be no frame."""
        for line in data.splitlines():
            with suppress(ValueError):
                self._checker.remember(json.loads(line), "client")

    def received(self, line: bytes) -> dict[str, Any]:
        """A frame of the agent's. Raises `AssertionError` for what the protocol does not allow."""
        message = self._checker.check_line(line, "agent")
        assert len(line) <= FRAME_BYTES, f"a frame of {len(line)} bytes"
        self._order.agent(message)
        return message


class AcpProcess(JsonProcess):
    """One agent on one store. Use as a context manager.

    `permit` answers each ``session/request_permission``; `answers` are for other methods that the agent may
    call; `config` is the person's configuration.
    """

    def __init__(
        self,
        folder: Path,
        *,
        permit: Answer | None = None,
        answers: Mapping[str, Answer] | None = None,
        capabilities: Mapping[str, Any] = EVERYTHING,
        name: str | None = "tests",
        config: str | None = None,
        initialize: bool = True,
        arguments: tuple[str, ...] = (),
        **more: Any,
    ) -> None:
        if config is not None:
            place = folder / "home" / "config"
            place.mkdir(parents=True, exist_ok=True)
            (place / "config.toml").write_text(config)
        super().__init__(folder, arguments=("--acp", *arguments), **more)
        self.answers: dict[str, Answer] = dict(answers or {})
        if permit is not None:
            self.answers["session/request_permission"] = permit
        self.faults: list[AssertionError] = []
        self._judge = Judge()
        self._killed = False
        self._reader.start()
        self.hello: dict[str, Any] = {}
        if initialize:
            self.hello = self.initialize(capabilities, name)

    def initialize(
        self, capabilities: Mapping[str, Any] = EVERYTHING, name: str | None = "tests"
    ) -> dict[str, Any]:
        info = {} if name is None else {"clientInfo": {"name": name, "version": "1"}}
        return self.call(
            "initialize", protocolVersion=1, clientCapabilities=dict(capabilities), **info
        )

    # --- plain traffic ---

    def _heard(self, line: bytes) -> dict[str, Any]:
        if self._killed and not line.endswith(b"\n"):
            return {}  # what a SIGKILL has left of a frame
        try:
            with self._lock:
                message = self._judge.received(line)
        except AssertionError as fault:
            self.faults.append(fault)
            return {}
        if "method" in message and "id" in message:
            self._answer(message)
        return message

    def _answer(self, message: dict[str, Any]) -> None:
        answer = self.answers.get(message["method"])
        result = None if answer is None else answer(message["params"])
        if isinstance(result, Future):
            result.add_done_callback(lambda done: self._reply(message["id"], done.result()))
        else:
            self._reply(message["id"], result)

    def _reply(self, request_id: int, result: Any) -> None:
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id}
        if isinstance(result, Exception):
            code = getattr(result, "code", -32603)
            data = getattr(result, "data", None)
            told = {} if data is None else {"data": data}
            self.send({**reply, "error": {"code": code, "message": str(result), **told}})
        elif result is not None:
            with suppress(BrokenPipeError, ValueError):  # the agent may be gone by then
                self.send({**reply, "result": result})

    def receive(self, timeout: float = PATIENCE_S) -> dict[str, Any]:
        message = super().receive(timeout)
        if self.faults:
            raise self.faults[0]
        return message

    def send(self, message: Any) -> None:
        self.send_together([message])

    def send_together(self, messages: list[Any]) -> None:
        """Writes several frames at once: all are on the wire before the first is looked at."""
        data = b"".join(json.dumps(message).encode() + b"\n" for message in messages)
        self.write(data, *messages)

    def write(self, data: bytes, *messages: Any) -> None:
        """Writes bytes as they are; `messages` are the frames in them, if they are frames."""
        assert self.process.stdin is not None
        with self._lock:
            for message in messages:
                self._judge.sent(message)
            if not messages:
                self._judge.sent_bytes(data)
            self.process.stdin.write(data)
            self.process.stdin.flush()

    def request_with(self, method: str, params: Any) -> int:
        """Sends a request with whatever for its params, and returns its id."""
        self._id += 1
        self.send({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        return self._id

    def answer_to(self, request_id: int) -> dict[str, Any]:
        """The answer to a request, whatever it is and whether it was read already or is still to come."""

        def wanted(message: dict[str, Any]) -> bool:
            return message.get("id") == request_id and "method" not in message

        return next(filter(wanted, self.seen), None) or self.until(wanted)

    def result(self, request_id: int) -> Any:
        answer = self.answer_to(request_id)
        if "error" in answer:
            raise RpcError(answer["error"])
        return answer["result"]

    def drain(self) -> None:
        """Reads what is left, once its input has ended."""
        try:
            while True:
                self.receive()
        except Gone:
            return

    # --- what most tests do ---

    def new(self, cwd: Path, **params: Any) -> str:
        return self.call("session/new", cwd=str(cwd), mcpServers=[], **params)["sessionId"]

    def ask(self, session_id: str, text: str, **params: Any) -> int:
        """Sends a prompt and returns its id."""
        prompt = [{"type": "text", "text": text}]
        return self.request("session/prompt", sessionId=session_id, prompt=prompt, **params)

    def prompt(self, session_id: str, text: str, **params: Any) -> str:
        """A prompt and its end; the reason for which it stopped."""
        return self.result(self.ask(session_id, text, **params))["stopReason"]

    def updates(self, session_id: str | None = None, *, since: int = 0) -> list[dict[str, Any]]:
        """All updates that were read so far."""
        return [
            message["params"]["update"]
            for message in self.seen[since:]
            if message.get("method") == "session/update"
            and session_id in (None, message["params"]["sessionId"])
        ]

    def until_update(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Reads on until an update of a kind, with these fields."""

        def wanted(message: dict[str, Any]) -> bool:
            if message.get("method") != "session/update":
                return False
            update = message["params"]["update"]
            return update["sessionUpdate"] == kind and all(
                update.get(key) == value for key, value in fields.items()
            )

        return self.until(wanted)["params"]["update"]

    def told(self, kind: str, **fields: Any) -> dict[str, Any]:
        """An update of a kind, with these fields: one that was read already, or else the next."""
        for update in self.updates():
            if update["sessionUpdate"] == kind and fields.items() <= update.items():
                return update
        return self.until_update(kind, **fields)

    def asked(self, method: str = "session/request_permission") -> list[dict[str, Any]]:
        """The requests of the agent that were read so far."""
        return [m for m in self.seen if m.get("method") == method and "id" in m]

    def until_asked(self, method: str = "session/request_permission") -> dict[str, Any]:
        return self.until(lambda m: m.get("method") == method)

    # --- its end ---

    def kill(self) -> None:
        self._killed = True
        super().kill()

    def __exit__(self, kind: object, *rest: object) -> None:
        super().__exit__(kind, *rest)
        self._reader.join(PATIENCE_S)
        if kind is None and self.faults:
            raise self.faults[0]


def allow(_: dict[str, Any]) -> dict[str, Any]:
    """A person who allows everything once."""
    return {"outcome": {"outcome": "selected", "optionId": "allow_once"}}


def texts(updates: list[dict[str, Any]], kind: str = "agent_message_chunk") -> str:
    """What chunks of a kind say together."""
    return "".join(
        update["content"].get("text", "") for update in updates if update["sessionUpdate"] == kind
    )


def kinds(updates: list[dict[str, Any]]) -> list[str]:
    return [update["sessionUpdate"] for update in updates]
