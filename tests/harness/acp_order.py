"""The order of frames in the Agent Client Protocol, as far as it holds for every conversation.

A session is named only once the client knows it, and a tool call is told before anything is told about it.
"""

import json
from typing import Any

_OPENING = {"session/load", "session/resume"}


class Order:
    """Watches one conversation. Raises AssertionError."""

    def __init__(self) -> None:
        self._asked: dict[str, tuple[str, dict[str, Any]]] = {}
        self._known: set[str] = set()
        self._calls: set[tuple[str, str]] = set()

    def client(self, frame: Any) -> None:
        if not isinstance(frame, dict) or "id" not in frame or "method" not in frame:
            return
        params = frame.get("params")
        if not isinstance(params, dict):
            params = {}
        self._asked[json.dumps(frame["id"])] = frame["method"], params
        if frame["method"] in _OPENING:
            self._known.add(str(params.get("sessionId")))

    def agent(self, frame: dict[str, Any]) -> None:
        if "method" not in frame:
            self._answered(frame)
        elif (session := frame.get("params", {}).get("sessionId")) is not None:
            assert session in self._known, f"the client does not know the session of {frame}"
            self._told(session, frame)

    def _answered(self, frame: dict[str, Any]) -> None:
        method, _ = self._asked.pop(json.dumps(frame["id"]), ("", {}))
        if method == "session/new" and "result" in frame:
            self._known.add(frame["result"]["sessionId"])

    def _told(self, session: str, frame: dict[str, Any]) -> None:
        params = frame["params"]
        update = params.get("update", {})
        if update.get("sessionUpdate") == "tool_call":
            self._calls.add((session, update["toolCallId"]))
            return
        about = (
            update if update.get("sessionUpdate") == "tool_call_update" else params.get("toolCall")
        )
        if about is not None:
            named = session, about["toolCallId"]
            assert named in self._calls, f"nothing was told of the tool call of {frame}"
