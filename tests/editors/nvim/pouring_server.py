"""A server that speaks just enough to pour a stream out as fast as the pipe takes it: no real one does, since
it joins what comes within a moment."""

import json
import sys
from typing import Any

PIECES = int(sys.argv[1])
LINE = int(sys.argv[2])
"""After so many pieces a line ends; 0 for one line without an end."""

SESSION = "ses_pouring"
TURN = "trn_pouring"
AT = "2030-01-01T10:00:00.000Z"
SESSION_RECORD: dict[str, Any] = {
    "sessionId": SESSION, "rootId": SESSION, "cwd": "/", "profile": "default", "mode": "work",
    "status": "idle", "createdAt": AT, "updatedAt": AT, "headSeq": 1, "queueLength": 0,
    "pendingApprovals": 0,
}  # fmt: skip
_seq = 0
_subscriptions: dict[str, str] = {}


def send(message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))


def tell(kind: str, data: dict[str, Any]) -> None:
    global _seq
    _seq += 1
    event = {
        "pos": _seq, "sessionId": SESSION, "seq": _seq, "eventId": f"evt_{_seq}", "type": kind, "at": AT,
        "actor": {"kind": "system", "id": "x"}, "turnId": TURN, "data": data,
    }  # fmt: skip
    for subscription, scope in _subscriptions.items():
        if scope == "session":
            params = {
                "subscriptionId": subscription, "events": [event], "cursor": f"c{_seq}",
                "replay": False, "caughtUp": True,
            }  # fmt: skip
            send({"method": "event/batch", "params": params})


def pieces() -> list[str]:
    words = ("lorem ", "ipsum **dolor** ", "sit `amet` ", "consectetur ", "a [link](x) ", "élan ")
    return [
        words[n % len(words)] + ("\n" if LINE and n % LINE == LINE - 1 else "")
        for n in range(PIECES)
    ]


def message(who: str, id: str, text: str) -> dict[str, Any]:
    author = {"kind": who, "name": "x", "id": SESSION}
    return {"messageId": id, "author": author, "content": [{"type": "text", "text": text}]}


def pour() -> None:
    tell("message", message("person", "msg_1", "pour"))
    tell("turn_started", {"turnId": TURN, "model": "pouring", "mode": "work", "profile": "default"})
    tell("ack", {"admits": [_seq - 1]})
    poured = pieces()
    subscription = next(id for id, scope in _subscriptions.items() if scope == "session")
    for index, text in enumerate(poured):
        params = {
            "subscriptionId": subscription, "sessionId": SESSION, "turnId": TURN, "messageId": "msg_2",
            "index": index, "text": text, "kind": "answer",
        }  # fmt: skip
        send({"method": "event/delta", "params": params})
    tell("message", message("agent", "msg_2", "".join(poured)))
    tell("turn_finished", {"turnId": TURN, "outcome": "completed", "usage": {}})


def answer(method: str, params: dict[str, Any]) -> Any:
    match method:
        case "initialize":
            handshake = {
                "protocolVersion": "1.0", "storeId": "x", "hostId": "x", "head": "c0", "features": {},
                "limits": {}, "serverInfo": {"name": "pouring", "version": "1"},
            }  # fmt: skip
            return {"capabilities": {"experimental": {"callboard": handshake}}, "serverInfo": {}}
        case "session/create" | "session/get":
            return {"session": SESSION_RECORD, "cursor": "c0"}
        case "event/list" | "session/list" | "approval/list":
            return {"data": [], "cursor": "c0"}
        case "event/subscribe":
            id = f"sub_{len(_subscriptions)}"
            _subscriptions[id] = params["scope"]["kind"]
            return {"subscriptionId": id, "cursor": "c0", "head": "c0"}
        case "session/prompt":
            return {"eventSeq": 1, "outcome": "started", "cursor": "c1"}
        case _:
            return {}


def main() -> None:
    prompted = poured = False
    while header := sys.stdin.buffer.readline():
        length = int(header.split(b":")[1])
        sys.stdin.buffer.readline()
        request = json.loads(sys.stdin.buffer.read(length))
        if request.get("method") == "exit":
            return
        if "id" in request and "method" in request:
            result = answer(request["method"], request.get("params") or {})
            send({"id": request["id"], "result": result})
            prompted = prompted or request["method"] == "session/prompt"
            if prompted and not poured and "session" in _subscriptions.values():
                poured = True
                pour()
        sys.stdout.buffer.flush()


main()
