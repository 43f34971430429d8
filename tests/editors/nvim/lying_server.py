"""A server that greets as Callboard does, replays a recording, and puts other values in place of some: nulls,
numbers for texts, texts for lists, fields that are missing.

    python lying_server.py serve RECORDING SEED RATE

The same seed lies in the same places; `RATE` of what it says is not as it should be.
"""

import json
import random
import sys
from pathlib import Path
from typing import Any

MISSING = object()
LIES: list[Any] = [
    None,
    "text",
    42,
    -1,
    1e300,
    [],
    {},
    True,
    ["x"],
    {"a": 1},
    "\x1b[31m\n%{1}\u202e",
    MISSING,
]


class Liar:
    def __init__(self, recording: str, seed: int, rate: float) -> None:
        self.random = random.Random(seed)
        self.rate = rate
        self.events = [
            json.loads(line) for line in Path(f"{recording}.jsonl").read_text("utf-8").splitlines()
        ]
        self.said = json.loads(Path(f"{recording}.said.json").read_text("utf-8"))
        self.middle = len(self.events) // 2
        self.subscriptions = 0

    def lie(self, message: Any) -> Any:
        """The message with something else in one place, or as it is."""
        if self.random.random() >= self.rate:
            return message
        message = json.loads(json.dumps(message))
        places = list(_places(message))
        if places:
            holder, key = self.random.choice(places)
            value = self.random.choice(LIES)
            if value is MISSING:
                del holder[key]
            else:
                holder[key] = value
        return message

    def send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        sys.stdout.buffer.flush()

    def notify(self, method: str, params: Any) -> None:
        self.send({"method": method, "params": params})

    def answer(self, method: str, params: dict[str, Any]) -> Any:
        sessions = self.said["sessions"]
        if method == "session/list":
            return {"data": [each["session"] for each in sessions]}
        if method == "session/get":
            wanted = [
                each for each in sessions if each["session"]["sessionId"] == params["sessionId"]
            ]
            return {key: (wanted or sessions)[0].get(key) for key in ("session", "draft", "queue")}
        if method == "event/list":
            events = [event for event in self.events[: self.middle] if self._is_of(event, params)]
            return {"data": events, "cursor": "middle"}
        if method == "event/subscribe":
            self.subscriptions += 1
            return {"subscriptionId": f"sub{self.subscriptions}", "cursor": "middle"}
        if method == "approval/list":
            asked = [event for event in self.events if event["type"] == "approval_request"]
            return {"data": [event["data"]["approval"] for event in asked[:2]]}
        if method == "agent/list":
            return {"data": sessions[0].get("agents") or []}
        if method == "group/listTasks":
            return {"data": sessions[0].get("tasks") or []}
        return {"data": []}

    def _is_of(self, event: dict[str, Any], params: dict[str, Any]) -> bool:
        scope, types = params["scope"], params.get("types")
        ours = scope["kind"] != "session" or event["sessionId"] == scope["id"]
        return ours and (not types or event["type"] in types)

    def follow(self, params: dict[str, Any]) -> None:
        name = f"sub{self.subscriptions}"
        first = 0 if params["from"] == "start" else self.middle
        events = [event for event in self.events[first:] if self._is_of(event, params)]
        if params["scope"]["kind"] == "approvals":
            events = [event for event in events if event["type"].startswith("approval")]
        for at in range(0, len(events), 3):
            batch = {
                "events": events[at : at + 3],
                "cursor": f"at{at}",
                "caughtUp": at + 3 >= len(events),
            }
            self.notify("event/batch", {**self.lie(batch), "subscriptionId": name})
            delta = {
                "messageId": f"msg_{at}",
                "turnId": "trn",
                "kind": "answer",
                "index": 0,
                "text": "piece",
            }
            self.notify("event/delta", {**self.lie(delta), "subscriptionId": name})
        self.send(
            self.lie(
                {"id": "file", "method": "client/readFile", "params": {"uri": "file:///nowhere"}}
            )
        )
        self.notify(*self.lie(["window/logMessage", {"type": 3, "message": "hello"}]))

    def serve(self) -> None:
        while (message := _read()) is not None:
            method, params = message.get("method"), message.get("params") or {}
            if method == "exit":
                return
            if method is None or "id" not in message:
                continue
            if method == "initialize":
                told = {"protocolVersion": 1, "serverInfo": {"version": "1"}, "storeId": "s"}
                told["features"] = dict.fromkeys(("agents", "groups", "tasks"), True)
                self.send(
                    {
                        "id": message["id"],
                        "result": {"capabilities": {"experimental": {"callboard": told}}},
                    }
                )
                continue
            said = self.lie({"result": self.answer(method, params)})
            if self.random.random() < self.rate / 10:
                said = {
                    "error": self.random.choice(
                        ["no", 7, [], {"code": "x", "message": {}, "data": "y"}]
                    )
                }
            self.send({"result": None, **said, "id": message["id"]})
            if method == "event/subscribe":
                self.follow(params)


def _places(value: Any) -> Any:
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


def _read() -> dict[str, Any] | None:
    length = 0
    while (line := sys.stdin.buffer.readline()) != b"\r\n":
        if not line:
            return None
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return json.loads(sys.stdin.buffer.read(length))


if __name__ == "__main__":
    Liar(sys.argv[2], int(sys.argv[3]), float(sys.argv[4])).serve()
