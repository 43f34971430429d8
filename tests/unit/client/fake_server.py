"""A server that only knows the wire, written from the contract: for tests of the client.

Its log is a file, so that it survives a crash. Requests ``fake/*`` make it misbehave.
Run as ``fake_server.py STATE_FOLDER [MODE]``.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

AT = "2026-01-01T00:00:00Z"


class FakeServer:
    def __init__(self, state: Path) -> None:
        self.log_path = state / "log.jsonl"
        self.keys_path = state / "keys.json"
        self.crash_path = state / "crash-before-reply-to"
        self.subscriptions: dict[str, dict[str, Any]] = {}
        self.acks: list[Any] = []
        self.replies: dict[str, Any] = {}
        self.cancelled: list[Any] = []
        self.received: list[str] = []
        self.held: list[Any] = []
        self.refuse_subscribe: list[dict[str, Any]] = []
        self.counter = 0

    # --- log ---

    def log(self) -> list[dict[str, Any]]:
        if not self.log_path.exists():
            return []
        return [json.loads(line) for line in self.log_path.read_text().splitlines()]

    def append(
        self, session: str, type_: str, data: Any, turn: str | None = None
    ) -> dict[str, Any]:
        log = self.log()
        event: dict[str, Any] = {
            "pos": len(log) + 1,
            "sessionId": session,
            "seq": sum(e["sessionId"] == session for e in log) + 1,
            "eventId": f"evt_{len(log) + 1}",
            "type": type_,
            "at": AT,
            "actor": {"kind": "system", "id": "fake"},
            "data": data,
        }
        if turn is not None:
            event["turnId"] = turn
        with self.log_path.open("a") as file:
            file.write(json.dumps(event) + "\n")
        for key in self.subscriptions:
            self.push(key, [event], False)
        return event

    def push(self, key: str, events: list[Any], replay: bool) -> None:
        sub = self.subscriptions[key]
        wanted = [e for e in events if sub["id"] in (None, e["sessionId"])]
        cursor = f"c{events[-1]['pos'] if events else sub['at']}"
        self.notify(
            "event/batch",
            {
                "subscriptionId": key,
                "events": wanted,
                "cursor": cursor,
                "replay": replay,
                "caughtUp": True,
            },
        )

    # --- wire ---

    def send(self, message: Any) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    def notify(self, method: str, params: Any) -> None:
        self.send({"method": method, "params": params})

    def error(self, key: Any, code: int, kind: str, message: str, **data: Any) -> None:
        wire = {"kind": kind, "retryable": False, "correlationId": "cor_1", **data}
        self.send({"id": key, "error": {"code": code, "message": message, "data": wire}})

    def serve(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "method" not in message:
                self.replies[str(message["id"])] = message
            elif "id" in message:
                self.received.append(message["method"])
                self.request(message["id"], message["method"], message.get("params"))
            else:
                self.notified(message["method"], message.get("params"))

    def notified(self, method: str, params: Any) -> None:
        match method:
            case "exit":
                raise SystemExit(0)
            case "event/ack":
                self.acks.append(params)
            case "$/cancelRequest":
                self.cancelled.append(params["id"])
            case _:
                pass

    def request(self, key: Any, method: str, params: Any) -> None:
        if self.crash_path.exists() and self.crash_path.read_text() == method:
            self.answer(key, method, params, lambda _: None)
            self.crash_path.unlink()
            os._exit(9)
        self.answer(key, method, params, lambda result: self.send({"id": key, "result": result}))

    def answer(self, key: Any, method: str, params: Any, reply: Any) -> None:
        match method:
            case "initialize":
                ours = {
                    "protocolVersion": "1.0",
                    "storeId": "sto_1",
                    "hostId": f"host_{os.getpid()}",
                    "serverInfo": {"name": "fake"},
                    "features": {},
                    "limits": {
                        "maxFrameBytes": 1 << 25,
                        "pageItems": 200,
                        "pageBytes": 1 << 20,
                        "window": 1000,
                    },
                    "head": f"c{len(self.log())}",
                }
                reply(
                    {
                        "capabilities": {"experimental": {"callboard": ours}},
                        "serverInfo": {"name": "fake"},
                    }
                )
            case "shutdown":
                reply({})
            case "server/ping":
                reply({"at": AT, "head": "c0", "echo": params.get("echo")})
            case "session/create":
                reply(self.once(params, lambda: self.create(params)))
            case "session/get":
                reply({"session": self.session(params["sessionId"], "/"), "cursor": "c0"})
            case "session/prompt":
                result = self.once(params, lambda: self.prompt(params))
                reply(result)
            case "session/cancel":
                self.finish(params["sessionId"], "cancelled")
                reply({"state": "cancelling"})
            case "session/list":
                page = int(params.get("cursor") or 0)
                sessions = [self.session(f"ses_{n}", "/") for n in range(page, page + 2)]
                reply({"data": sessions, "nextCursor": None if page >= 4 else str(page + 2)})
            case "event/subscribe":
                self.subscribe(key, params, reply)
            case "event/unsubscribe":
                self.subscriptions.pop(params["subscriptionId"], None)
                reply({})
            case "session/delete":
                self.error(key, -31004, "overloaded", "too many", retryable=True, retryAfterMs=7)
            case _ if method.startswith("fake/"):
                self.misbehave(method.removeprefix("fake/"), params, reply, key)
            case _:
                self.error(key, -32601, "methodNotFound", f"no method {method}")

    def subscribe(self, key: Any, params: Any, reply: Any) -> None:
        if self.refuse_subscribe:
            refusal = self.refuse_subscribe.pop(0)
            self.error(key, -31004, message="not now", **refusal)
            return
        self.counter += 1
        name = f"sub_{os.getpid()}_{self.counter}"
        log = self.log()
        from_ = params.get("from", "now")
        at = {"now": len(log), "start": 0}.get(from_)
        at = int(from_[1:]) if at is None else at
        self.subscriptions[name] = {"id": params["scope"].get("id"), "at": at, "params": params}
        reply({"subscriptionId": name, "cursor": f"c{at}", "head": f"c{len(log)}"})
        self.push(name, log[at:], True)

    # --- sessions ---

    def once(self, params: Any, act: Any) -> Any:
        keys: dict[str, Any] = (
            json.loads(self.keys_path.read_text()) if self.keys_path.exists() else {}
        )
        key = params["idempotencyKey"]
        if key not in keys:
            keys[key] = act()
            self.keys_path.write_text(json.dumps(keys))
        return keys[key]

    def session(self, session_id: str, cwd: str) -> dict[str, Any]:
        return {
            "sessionId": session_id,
            "rootId": session_id,
            "cwd": cwd,
            "profile": "default",
            "mode": "a mode of the future",
            "status": "idle",
            "createdAt": AT,
            "updatedAt": AT,
            "headSeq": 1,
            "queueLength": 0,
            "pendingApprovals": 0,
            "surprise": [1, 2],
        }

    def create(self, params: Any) -> Any:
        number = sum(e["type"] == "session_created" for e in self.log()) + 1
        session_id = f"ses_{number}"
        data = {
            "sessionId": session_id,
            "cwd": params["cwd"],
            "rootId": session_id,
            "profile": "default",
            "mode": "ask",
        }
        event = self.append(session_id, "session_created", data)
        return {"session": self.session(session_id, params["cwd"]), "cursor": f"c{event['pos']}"}

    def prompt(self, params: Any) -> Any:
        session, text = params["sessionId"], params["content"][0]["text"]
        said = {
            "messageId": "msg_1",
            "author": {"kind": "person", "name": "me"},
            "content": params["content"],
        }
        event = self.append(session, "message", said)
        seq = event["seq"]
        if text == "drop":
            self.append(session, "triggers_dropped", {"seqs": [seq], "reason": "asked"})
        elif text != "record":
            self.append(session, "ack", {"admits": [seq]}, turn="trn_1")
            if text == "park":
                parked = {"turnId": "trn_1", "approvalIds": ["apr_1"]}
                self.append(session, "turn_parked", parked, turn="trn_1")
            elif text != "wait":
                self.finish(session, "completed")
        outcome = "recorded" if text == "record" else "queued"
        return {"eventSeq": seq, "outcome": outcome, "cursor": f"c{event['pos']}"}

    def finish(self, session: str, outcome: str) -> None:
        end = {
            "turnId": "trn_1",
            "outcome": outcome,
            "answeredThrough": 1,
            "usage": {"requests": 1},
            "finalText": "done",
        }
        self.append(session, "turn_finished", end, turn="trn_1")

    # --- on request ---

    def misbehave(self, what: str, params: Any, reply: Any, key: Any) -> None:
        match what:
            case "append":
                for number in range(params["count"]):
                    self.append(
                        params["sessionId"],
                        "a_new_type",
                        {"n": number, "pad": params.get("pad", "")},
                    )
                reply({})
            case "delta":
                for name in self.subscriptions:
                    self.notify("event/delta", {"subscriptionId": name, **params})
                reply({})
            case "crash":
                os._exit(9)
            case "crashBeforeReplyTo":
                self.crash_path.write_text(params["method"])
                reply({})
            case "reset":
                for name, sub in list(self.subscriptions.items()):
                    del self.subscriptions[name]
                    note = {"subscriptionId": name, "reason": "slow", "resumeFrom": f"c{sub['at']}"}
                    self.notify("event/reset", note)
                reply({})
            case "refuseSubscribe":
                self.refuse_subscribe = params["errors"]
                reply({})
            case "ask":
                self.send(
                    {
                        "id": params["id"],
                        "method": "approval/request",
                        "params": {"approval": params["approval"]},
                    }
                )
                reply({})
            case "withdraw":
                self.notify("$/cancelRequest", {"id": params["id"]})
                reply({})
            case "seen":
                reply(
                    {
                        "acks": self.acks,
                        "replies": self.replies,
                        "cancelled": self.cancelled,
                        "methods": self.received,
                        "subscriptions": len(self.subscriptions),
                    }
                )
            case "hang":
                self.held.append(key)
            case "junk":
                sys.stdout.write("this is no JSON\n[1,2]\n")
                reply({})
            case "unknownRequest":
                self.send({"id": "u1", "method": "client/surprise", "params": {}})
                reply({})
            case "echo":
                reply(params)
            case "malformed":
                self.notify("event/batch", {"subscriptionId": next(iter(self.subscriptions))})
                reply({})
            case _:
                raise ValueError(what)


def main() -> None:
    state, mode = Path(sys.argv[1]), (sys.argv[2:] or ["well"])[0]
    (state / "pid").write_text(str(os.getpid()))
    if mode == "banner":
        sys.stdout.write("Welcome to something else\n")
        sys.stderr.write("cannot read the configuration\n")
        raise SystemExit(3)
    if mode == "silent":
        sys.stdin.read()
        return
    if mode == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    server = FakeServer(state)
    if mode == "once" and (state / "begun").exists():
        raise SystemExit(4)
    (state / "begun").touch()
    try:
        server.serve()
    finally:
        if mode == "deaf":
            while True:
                signal.pause()


if __name__ == "__main__":
    main()
