"""Exported sessions as tests make, change and compare them."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

Lines = list[dict[str, Any]]


def lines_of(text: str) -> Lines:
    return [json.loads(line) for line in text.splitlines()]


def sealed(lines: Lines) -> str:
    """The text of an export's lines, with a closing line that fits them: what is wrong with it is what
    the test has changed. The header's number of events is left as it is."""
    digest = b""
    out: list[str] = []
    events = 0
    for value in lines:
        if "end" in value:
            value = {"end": {"events": events, "digest": digest.hex()}}
        line = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        digest = hashlib.sha256(digest + line.encode()).digest()
        events += "seq" in value
        out.append(line + "\n")
    return "".join(out)


def recounted(lines: Lines) -> Lines:
    """With seqs and the header's number as they must be after events were added or taken out."""
    seq = 0
    for value in lines:
        if "seq" in value:
            seq += 1
            value["seq"] = seq
    lines[0]["callboard"]["events"] = seq
    return lines


def event_of(lines: Lines, kind: str) -> dict[str, Any]:
    """The first event of a type."""
    return next(value for value in lines if value.get("type") == kind)


def exported(call: Callable[..., Any], session_id: str, **more: Any) -> str:
    """The whole of ``session/export`` over the wire."""
    text, cursor = "", {}
    while True:
        piece = call("session/export", sessionId=session_id, **more, **cursor)
        text += piece["text"]
        if piece.get("nextCursor") is None:
            return text
        cursor = {"cursor": piece["nextCursor"]}


def long_session(session_id: str, cwd: str, events: int, *, words: str = "word " * 40) -> str:
    """An export with so many events: a session of many short messages of an agent."""
    actor = {"kind": "system", "id": "tests"}
    lines: Lines = [{"callboard": {"export": 1, "sessionId": session_id, "events": events}}]
    for seq in range(1, events + 1):
        data: dict[str, Any] = {
            "messageId": f"msg_{seq:026d}",
            "author": {"kind": "agent", "name": "tests", "id": session_id},
            "content": [{"text": f"{words} {seq}", "type": "text"}],
        }
        if seq == 1:
            data = {
                "sessionId": session_id, "cwd": cwd, "rootId": session_id, "profile": "default",
                "mode": "work",
            }  # fmt: skip
        lines.append(
            {
                "sessionId": session_id,
                "seq": seq,
                "eventId": f"evt_{seq:026d}",
                "type": "session_created" if seq == 1 else "message",
                "at": "2031-05-17T09:30:00.123Z",
                "actor": actor,
                "data": data,
            }
        )
    lines.append({"end": {}})
    return sealed(lines)
