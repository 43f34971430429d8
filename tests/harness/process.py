"""A real ``callboard serve`` process, spoken to in plain JSON, so that nothing of ours hides a fault.

Most are forked off a process that has imported the server (`forked`), since the imports are the most of
a start. What a start is, and what only a new interpreter has, is shown by those that are started `ANEW`.
"""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from .forked import ForkedProcess

ANEW = ("-m", "callboard", "serve")
"""The program of a server that gets an interpreter of its own."""
PATIENCE_S = 60.0
"""How long anything may take before a test fails; nothing waits for it to pass."""


class RpcError(Exception):
    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']} {error['message']}")
        self.error = error

    @property
    def kind(self) -> str:
        return self.error["data"]["kind"]


class Gone(Exception):
    """The server's output ended."""


class JsonProcess:
    """One server on one store, a JSON object a line, whatever it speaks. Use as a context manager.

    All that the server sends is kept in `seen`, in order. `program` is what Python is started with; without
    one the server is forked.
    """

    def __init__(
        self,
        folder: Path,
        *,
        model: str | None = None,
        environ: Mapping[str, str] | None = None,
        arguments: tuple[str, ...] = (),
        program: tuple[str, ...] | None = None,
    ) -> None:
        self.folder = folder
        home = folder / "home"
        home.mkdir(exist_ok=True)
        env = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("CALLBOARD", "OPENAI", "ANTHROPIC"))
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
        self.process = self._started(program, arguments, env)
        self.seen: list[dict[str, Any]] = []
        self._inbox: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._lock = threading.Lock()
        self._id = 0
        self._reader = threading.Thread(target=self._read, daemon=True)

    def _started(
        self, program: tuple[str, ...] | None, arguments: tuple[str, ...], environ: dict[str, str]
    ) -> Any:
        """The process, with pipes for its input and output."""
        if program is None:
            return ForkedProcess(environ, list(arguments), self._stderr.fileno())
        return subprocess.Popen(
            [sys.executable, *program, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=environ,
        )

    # --- plain traffic ---

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._inbox.put(self._heard(line))
        self._inbox.put(None)

    def _heard(self, line: bytes) -> dict[str, Any]:
        """The frame of one line. In a thread of its own."""
        return json.loads(line)

    def send(self, message: Any) -> None:
        """Writes one frame."""
        assert self.process.stdin is not None
        with self._lock:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
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
        return message

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Reads on until a frame is wanted, and returns it."""
        while True:
            message = self.receive()
            if wanted(message):
                return message

    def result(self, request_id: int) -> Any:
        """Reads on until the answer to a request. Raises `RpcError`."""
        answer = self.until(lambda m: m.get("id") == request_id and "method" not in m)
        if "error" in answer:
            raise RpcError(answer["error"])
        return answer["result"]

    def call(self, method: str, **params: Any) -> Any:
        """Asks and waits for the result. Raises `RpcError`."""
        return self.result(self.request(method, **params))

    def stderr(self) -> str:
        return self.stderr_path.read_text(errors="replace")

    # --- its end ---

    def kill(self) -> None:
        """SIGKILL, and the end of the process."""
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def close(self) -> int:
        """Ends the input, as an editor that goes away does; the exit code."""
        assert self.process.stdin is not None
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.close()
        else:
            self._stderr.close()


class ServerProcess(JsonProcess):
    """One that speaks Callboard's own protocol.

    `answer` is called with the params of each ``approval/request`` and returns its result, or None to
    leave it unanswered.
    """

    def __init__(
        self,
        folder: Path,
        *,
        approvals: bool = True,
        answer: Callable[[dict[str, Any]], dict[str, Any] | None] | None = None,
        client_id: str = "tests",
        initialize: bool = True,
        callboard: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(folder, **more)
        self.answer = answer
        self._reader.start()
        self.hello: dict[str, Any] = {}
        if initialize:
            params = {
                "protocolVersions": ["1.0"],
                "clientId": client_id,
                "clientInfo": {"name": client_id},
                "capabilities": {"approvals": approvals, "deltas": True},
                **(callboard or {}),
            }
            self.hello = self.call("initialize", processId=None, callboard=params)

    def _heard(self, line: bytes) -> dict[str, Any]:
        message = super()._heard(line)
        if message.get("method") == "approval/request" and self.answer is not None:
            result = self.answer(message["params"]["approval"])
            if result is not None:
                self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})
        return message

    def create(self, cwd: Path, **params: Any) -> str:
        return self.call("session/create", cwd=str(cwd), **params)["session"]["sessionId"]

    def prompt(self, session_id: str, text: str, **params: Any) -> dict[str, Any]:
        return self.call(
            "session/prompt",
            sessionId=session_id,
            content=[{"type": "text", "text": text}],
            **params,
        )

    def wait(self, session_id: str, until: str = "idle", **params: Any) -> dict[str, Any]:
        return self.call("session/wait", sessionId=session_id, until=until, **params)

    def events(self, session_id: str) -> list[dict[str, Any]]:
        """The whole log of a session."""
        out: list[dict[str, Any]] = []
        after: dict[str, Any] = {}
        while True:
            page = self.call("event/list", scope={"kind": "session", "id": session_id}, **after)
            out += page["data"]
            if not page.get("nextCursor"):
                return out
            after = {"after": page["nextCursor"]}

    def until_event(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Reads on until a subscribed event is wanted (in frames that were not read before)."""
        found: list[dict[str, Any]] = []

        def holds(message: dict[str, Any]) -> bool:
            if message.get("method") != "event/batch":
                return False
            found.extend(e for e in message["params"]["events"] if wanted(e))
            return bool(found)

        self.until(holds)
        return found[0]

    def told(self, wanted: Callable[[dict[str, Any]], bool], *, since: int = 0) -> dict[str, Any]:
        """A subscribed event, also one that came while an answer was waited for; `since` so many frames."""
        for message in self.seen[since:]:
            if message.get("method") == "event/batch":
                for event in message["params"]["events"]:
                    if wanted(event):
                        return event
        return self.until_event(wanted)


def types(events: list[dict[str, Any]]) -> list[str]:
    """The types of events, in order."""
    return [event["type"] for event in events]


def scenario(folder: Path, text: str, name: str = "scenario.yaml") -> str:
    """Writes a scenario and returns the model id that plays it."""
    path = folder / name
    path.write_text(text, "utf-8")
    return f"scripted/{path}"
