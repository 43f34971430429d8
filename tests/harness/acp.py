"""``callboard serve --acp`` as an editor sees it: a real process, plain JSON lines, every frame judged.

What the server sends is checked against the published schema where that is installed, else against Callboard's
own contract; a frame that does not fit fails the test that reads it, and those that nobody has read fail it at
the end.
"""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from callboard.acp.contract import convert
from callboard.acp.contract.methods import METHODS

from .acp_frames import AGENT_TO_CLIENT, CLIENT_TO_AGENT, Checker
from .acp_tools import SCHEMA, has_schema
from .forked import ForkedProcess
from .process import ANEW, PATIENCE_S, Gone, RpcError

EVERYTHING: dict[str, Any] = {
    "fs": {"readTextFile": False, "writeTextFile": False},
    "terminal": False,
    "session": {"configOptions": {"boolean": {}}, "compaction": {}, "notices": {}},
    "elicitation": {"form": {}, "url": {}},
}
"""What most tests declare; files are a matter of their own tests."""

FRAME_BYTES = 60 * 1024
"""What an old client reads as one line."""

Answer = Callable[[dict[str, Any]], Any]
"""Params of what the agent asks, to the result; None leaves it without an answer, an `Exception` makes an
error."""


class Judge:
    """Checks every frame of one connection, in the order of the wire."""

    def __init__(self) -> None:
        self._checker = Checker(SCHEMA) if has_schema() else None
        self._asked: dict[int | str, str] = {}

    def sent(self, message: Any) -> None:
        """A frame of the client's. It may be wrong on purpose; what it asks for is remembered."""
        if isinstance(message, dict) and "method" in message:
            request_id = message.get("id")
            if isinstance(request_id, int | str):
                self._asked[request_id] = message["method"]
        if self._checker is not None:
            try:
                self._checker.check(message, CLIENT_TO_AGENT)
            except AssertionError:
                return

    def received(self, line: bytes) -> dict[str, Any]:
        """A frame of the agent's. Raises `AssertionError` for what the protocol does not allow."""
        message = json.loads(line)
        assert line.endswith(b"\n") and line.count(b"\n") == 1
        assert len(line) <= FRAME_BYTES, f"a frame of {len(line)} bytes"
        if self._checker is not None:
            answered = self._asked.get(message.get("id")) if "method" not in message else None
            if "error" in message:  # what it answers may have been no request at all
                assert not message.keys() - {"jsonrpc", "id", "error"}
                self._checker.validate("Error", message["error"])
            elif answered is None or answered in METHODS:
                self._checker.check(message, AGENT_TO_CLIENT, method=answered)
        else:
            self._by_contract(message)
        return message

    def _by_contract(self, message: dict[str, Any]) -> None:
        method = message.get("method")
        if method is not None:
            assert method in METHODS or method.startswith(("_", "$/"))
            if method in METHODS:
                convert.structure(message["params"], METHODS[method].params)
        elif "result" in message:
            entry = METHODS.get(self._asked.get(message["id"], ""))
            if entry is not None:
                convert.structure(message["result"], entry.result)
        else:
            assert isinstance(message["error"]["code"], int) and message["error"]["message"]


class AcpProcess:
    """One agent on one store. Use as a context manager.

    `permit` answers each ``session/request_permission``; `answers` are for other methods that the agent may
    call; `config` is the person's configuration. All that it sends is kept in `seen`, in order. `program` is what Python is started with; without one
    the server is forked.
    """

    def __init__(
        self,
        folder: Path,
        *,
        model: str | None = None,
        environ: Mapping[str, str] | None = None,
        permit: Answer | None = None,
        answers: Mapping[str, Answer] | None = None,
        capabilities: Mapping[str, Any] = EVERYTHING,
        name: str = "tests",
        config: str | None = None,
        initialize: bool = True,
        program: tuple[str, ...] | None = None,
    ) -> None:
        self.folder = folder
        home = folder / "home"
        (home / "config").mkdir(parents=True, exist_ok=True)
        if config is not None:
            (home / "config" / "config.toml").write_text(config)
        env = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("CALLBOARD", "OPENAI", "ANTHROPIC"))
        }
        env.update(
            {
                "HOME": str(home),
                "CALLBOARD_STORE": str(folder / "store.db"),
                "CALLBOARD_CONFIG_DIR": str(home / "config"),
                **({"CALLBOARD_MODEL": model} if model else {}),
                **(environ or {}),
            }
        )
        self.stderr_path = folder / f"stderr-{os.getpid()}-{id(self)}.txt"
        self._stderr = self.stderr_path.open("wb")
        self.process = self._started(program, env)
        self.answers: dict[str, Answer] = dict(answers or {})
        if permit is not None:
            self.answers["session/request_permission"] = permit
        self.seen: list[dict[str, Any]] = []
        self.faults: list[BaseException] = []
        self._judge = Judge()
        self._inbox: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._lock = threading.Lock()
        self._id = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.hello: dict[str, Any] = {}
        if initialize:
            self.hello = self.initialize(capabilities, name)

    def initialize(
        self, capabilities: Mapping[str, Any] = EVERYTHING, name: str = "tests"
    ) -> dict[str, Any]:
        return self.call(
            "initialize",
            protocolVersion=1,
            clientCapabilities=dict(capabilities),
            clientInfo={"name": name, "version": "1"},
        )

    def _started(self, program: tuple[str, ...] | None, environ: dict[str, str]) -> Any:
        if program is None:
            return ForkedProcess(environ, ["--acp"], self._stderr.fileno())
        return subprocess.Popen(
            [sys.executable, *program, "--acp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=environ,
        )

    # --- plain traffic ---

    def _read(self) -> None:
        for line in self.process.stdout:
            try:
                message = self._judge.received(line)
            except BaseException as fault:
                self.faults.append(fault)
                message = json.loads(line)
            if "method" in message and "id" in message:
                self._answer(message)
            self._inbox.put(message)
        self._inbox.put(None)

    def _answer(self, message: dict[str, Any]) -> None:
        answer = self.answers.get(message["method"])
        result = None if answer is None else answer(message["params"])
        if isinstance(result, Exception):
            error = {"code": -32603, "message": str(result)}
            self.send({"jsonrpc": "2.0", "id": message["id"], "error": error})
        elif result is not None:
            self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def send(self, message: Any) -> None:
        """Writes one frame."""
        self.write(json.dumps(message).encode() + b"\n", message)

    def write(self, data: bytes, message: Any = None) -> None:
        """Writes bytes as they are."""
        with self._lock:
            self._judge.sent(message)
            self.process.stdin.write(data)
            self.process.stdin.flush()

    def send_together(self, messages: list[dict[str, Any]]) -> None:
        """Writes several frames at once: all are on the wire before the first is looked at."""
        with self._lock:
            for message in messages:
                self._judge.sent(message)
            self.process.stdin.write(b"".join(json.dumps(m).encode() + b"\n" for m in messages))
            self.process.stdin.flush()

    def request(self, method: str, **params: Any) -> int:
        """Sends a request and returns its id without waiting."""
        self._id += 1
        self.send({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        return self._id

    def notify(self, method: str, **params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def receive(self, timeout: float = PATIENCE_S) -> dict[str, Any]:
        """The next frame. Raises `Gone` at the end of the output."""
        message = self._inbox.get(timeout=timeout)
        if message is None:
            self._inbox.put(None)
            raise Gone(self.stderr())
        self.seen.append(message)
        if self.faults:
            raise self.faults[0]
        return message

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Reads on until a frame is wanted, and returns it."""
        while True:
            message = self.receive()
            if wanted(message):
                return message

    def answer_to(self, request_id: int) -> dict[str, Any]:
        """Reads on until the answer to a request, whatever it is."""
        return self.until(lambda m: m.get("id") == request_id and "method" not in m)

    def result(self, request_id: int) -> Any:
        """Reads on until the answer to a request. Raises `RpcError`."""
        answer = self.answer_to(request_id)
        if "error" in answer:
            raise RpcError(answer["error"])
        return answer["result"]

    def call(self, method: str, **params: Any) -> Any:
        """Asks and waits for the result. Raises `RpcError`."""
        return self.result(self.request(method, **params))

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

    def stderr(self) -> str:
        return self.stderr_path.read_text(errors="replace")

    # --- its end ---

    def kill(self) -> None:
        """SIGKILL, and the end of the process."""
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def close(self) -> int:
        """Ends the input, as an editor that goes away does; the exit code."""
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
        self._reader.join(PATIENCE_S)
        self._stderr.close()
        return self.process.returncode

    def __enter__(self) -> "AcpProcess":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self.process.poll() is None:
            self.close()
        else:
            self._reader.join(PATIENCE_S)
            self._stderr.close()
        if kind is None and self.faults:
            raise self.faults[0]


def allow(params: dict[str, Any]) -> dict[str, Any]:
    """A person who allows everything once."""
    return {"outcome": {"outcome": "selected", "optionId": "allow_once"}}


def texts(updates: list[dict[str, Any]], kind: str = "agent_message_chunk") -> str:
    """What chunks of a kind say together."""
    return "".join(
        update["content"].get("text", "") for update in updates if update["sessionUpdate"] == kind
    )


def kinds(updates: list[dict[str, Any]]) -> list[str]:
    return [update["sessionUpdate"] for update in updates]


__all__ = ["ANEW", "AcpProcess", "Gone", "Judge", "RpcError", "allow", "kinds", "texts"]
