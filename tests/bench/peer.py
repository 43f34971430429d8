"""A child process that speaks JSON-RPC, one object a line, measured from outside by one thread.

No thread, no queue and no library of ours stands between the clock and the pipe.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import psutil

HERE = Path(__file__).parent


def start(
    argv: Sequence[str], env: Mapping[str, str] | None = None, stderr: Any = None
) -> "subprocess.Popen[bytes]":
    """A Python child with its ends piped. It finds compiled modules, and may keep what it compiles."""
    environ = {k: v for k, v in (env or os.environ).items() if k != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.Popen(
        [sys.executable, *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env=environ,
        bufsize=0,
    )


class Peer:
    """A server, or the floor in a server's place. `acknowledge`: send ``event/ack`` for each batch."""

    def __init__(self, process: "subprocess.Popen[bytes]", *, acknowledge: bool) -> None:
        assert process.stdin is not None and process.stdout is not None
        self.process = process
        self._acknowledge = acknowledge
        self._in = process.stdin.fileno()
        self._out = process.stdout.fileno()
        self._buffer = b""
        self._ready: list[dict[str, Any]] = []
        self._id = 0

    def send(self, method: str, params: dict[str, Any], *, notify: bool = False) -> int:
        """Writes a request and returns its id; or, with `notify`, a notification."""
        self._id += 1
        message = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        if notify:
            del message["id"]
        data = orjson.dumps(message) + b"\n"
        while data:
            data = data[os.write(self._in, data) :]
        return self._id

    def receive(self) -> dict[str, Any]:
        """The next message. Raises `EOFError` when the child has ended."""
        while not self._ready:
            data = os.read(self._out, 1 << 20)
            if not data:
                raise EOFError(f"the child ended with {self.process.wait(10)}")
            *lines, self._buffer = (self._buffer + data).split(b"\n")
            self._ready = [orjson.loads(line) for line in lines]
            self._ready.reverse()
        message = self._ready.pop()
        if self._acknowledge and message.get("method") == "event/batch":
            params = message["params"]
            if params["events"]:
                ack = {"subscriptionId": params["subscriptionId"], "cursor": params["cursor"]}
                self.send("event/ack", ack, notify=True)
        return message

    def call(self, method: str, **params: Any) -> Any:
        """Asks and reads on until the answer; what comes before it is passed over."""
        request_id = self.send(method, params)
        while True:
            message = self.receive()
            if message.get("id") == request_id and "method" not in message:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]

    def open(self) -> Any:
        own = {"protocolVersions": ["1.0"], "clientId": "bench", "capabilities": {"deltas": True}}
        return self.call("initialize", processId=None, callboard=own)

    def follow(self) -> None:
        """Subscribes to everything from now on, with deltas."""
        self.call("event/subscribe", **{"scope": {"kind": "all"}, "from": "now", "deltas": True})

    def create(self, cwd: Path) -> str:
        return self.call("session/create", cwd=str(cwd), mode="work")["session"]["sessionId"]

    def prompt(self, session_id: str, text: str) -> None:
        """Sends a prompt and does not wait for its answer."""
        content = [{"type": "text", "text": text}]
        self.send("session/prompt", {"sessionId": session_id, "content": content})

    def events(self) -> Iterable[dict[str, Any]]:
        """The events of each batch, and each delta as an event of the type ``delta``, as they come.
        An error for any request ends the bench: nothing may be refused here."""
        while True:
            message = self.receive()
            if "error" in message:
                raise RuntimeError(message["error"])
            match message.get("method"):
                case "event/batch":
                    yield from message["params"]["events"]
                case "event/delta":
                    yield {**message["params"], "type": "delta"}
                case _:
                    pass

    def turn(self, session_id: str, text: str) -> float:
        """Seconds from the prompt to the turn's end, as this side sees both."""
        began = time.perf_counter()
        self.prompt(session_id, text)
        for event in self.events():
            if event["type"] == "turn_finished" and event["sessionId"] == session_id:
                if event["data"]["outcome"] != "completed":
                    raise RuntimeError(f"the turn ended as {event['data']}")
                return time.perf_counter() - began
        raise AssertionError

    def on_core(self) -> float:
        """Seconds that the child has had on a core so far, all its threads together."""
        tasks = Path(f"/proc/{self.process.pid}/task")
        if not tasks.is_dir():
            times = psutil.Process(self.process.pid).cpu_times()
            return times.user + times.system
        return sum(int((t / "schedstat").read_text().split()[0]) for t in tasks.iterdir()) / 1e9

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
