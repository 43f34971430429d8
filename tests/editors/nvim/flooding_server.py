"""A server that answers what the plugin asks of it, and floods it: each prompt is answered with more pieces of text
than any model sends, as fast as they can be written. Run as a program."""

import json
import sys
from typing import Any

STORE = "store_flooding"
SESSION = "ses_flooding"
AT = "2030-01-01T10:00:00.000Z"
PIECES = 20_000
WORDS = (
    "Some *words* ", "of an answer ", "that has `code`, ", "lists,\n- an item\n", "- another one\n\n", "```lua\n",
    "local a = {}\n", "return a\n", "```\n\n", "## A heading\n\n", "and long lines " * 4, "全角 üöä ", "\n\n",
)  # fmt: skip
STREAMED = """
local chat = require('callboard.ui.chat').of_session('ses_flooding')
local item = chat and chat.view.transcript.by_id[...]
return item and { streaming = item.streaming == true, size = #item.text } or nil
"""
"""For Neovim: how much of a message has come, and whether more does."""

read, write = sys.stdin.buffer, sys.stdout.buffer


def send(message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    write.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))


def receive() -> dict[str, Any] | None:
    length = 0
    while line := read.readline().strip():
        length = int(line.split(b":")[1])
    return json.loads(read.read(length)) if length else None


class Flood:
    def __init__(self) -> None:
        self.seq = 0
        self.events: list[dict[str, Any]] = []
        self.subscription: str | None = None
        self.happened("session_created", {"sessionId": SESSION, "mode": "work", "title": "Flood"})

    def happened(self, kind: str, data: dict[str, Any], turn: str | None = None) -> None:
        self.seq += 1
        event = {
            "pos": self.seq,
            "seq": self.seq,
            "sessionId": SESSION,
            "eventId": f"evt_{self.seq:06d}",
            "type": kind,
            "at": AT,
            "actor": {"kind": "system", "id": "flood"},
            "data": data,
            **({"turnId": turn} if turn else {}),
        }
        self.events.append(event)
        if self.subscription:
            batch = {
                "subscriptionId": self.subscription,
                "events": [event],
                "cursor": self.cursor(),
            }
            self.told("event/batch", {**batch, "replay": False, "caughtUp": True})

    def told(self, method: str, params: dict[str, Any]) -> None:
        send({"method": method, "params": params})

    def cursor(self) -> str:
        return f"{STORE}.{self.seq}"

    def session(self) -> dict[str, Any]:
        return {
            "sessionId": SESSION,
            "rootId": SESSION,
            "cwd": "/",
            "profile": "default",
            "mode": "work",
            "status": "idle",
            "createdAt": AT,
            "updatedAt": AT,
            "headSeq": self.seq,
            "queueLength": 0,
            "pendingApprovals": 0,
            "title": "Flood",
        }

    def answer(self, method: str, params: dict[str, Any]) -> Any:
        match method:
            case "initialize":
                told = {
                    "protocolVersion": "1.0",
                    "storeId": STORE,
                    "serverInfo": {},
                    "features": {},
                }
                return {"capabilities": {"experimental": {"callboard": told}}}
            case "session/create" | "session/get":
                return {"session": self.session(), "cursor": self.cursor()}
            case "event/list":
                wanted = self.events if params["scope"]["kind"] == "session" else []
                return {"data": wanted, "cursor": self.cursor()}
            case "event/subscribe":
                subscription = f"sub_{params['scope']['kind']}"
                if params["scope"]["kind"] == "session":
                    self.subscription = subscription
                return {
                    "subscriptionId": subscription,
                    "cursor": self.cursor(),
                    "head": self.cursor(),
                }
            case "session/prompt":
                return {"eventSeq": self.seq + 1, "outcome": "started", "cursor": self.cursor()}
            case _:
                return {"data": []}

    def flood(self, params: dict[str, Any]) -> None:
        turn, message = f"trn_{self.seq:06d}", f"msg_{self.seq:06d}"
        asked = {
            "messageId": f"{message}p",
            "author": {"kind": "person", "name": "ann"},
            "content": params["content"],
            "clientMessageId": params.get("clientMessageId"),
        }
        self.happened("message", asked)
        self.happened(
            "turn_started", {"turnId": turn, "model": "flood/flood", "mode": "work"}, turn
        )
        self.happened("ack", {"admits": [self.seq - 1]}, turn)
        said: list[str] = []
        for index in range(PIECES):
            text = WORDS[index % len(WORDS)]
            said.append(text)
            piece = {"turnId": turn, "messageId": message, "sessionId": SESSION, "index": index}
            more = {"subscriptionId": self.subscription, "kind": "answer", "count": 1, "text": text}
            self.told("event/delta", {**piece, **more})
        whole = {
            "messageId": message,
            "author": {"kind": "agent", "name": "default"},
            "content": [{"type": "text", "text": "".join(said)}],
            "partial": False,
        }
        self.happened("message", whole, turn)
        ended = {"turnId": turn, "outcome": "completed", "usage": {}, "answeredThrough": self.seq}
        self.happened("turn_finished", ended, turn)


def main() -> None:
    flood = Flood()
    asked: list[dict[str, Any]] = []
    while message := receive():
        method, params = message["method"], message.get("params") or {}
        if method == "exit":
            return
        if "id" in message:
            send({"id": message["id"], "result": flood.answer(method, params)})
            write.flush()
            if method == "session/prompt":
                asked.append(params)
            while asked and flood.subscription:
                flood.flood(asked.pop(0))
                write.flush()


if __name__ == "__main__":
    main()
