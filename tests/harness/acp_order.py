"""The order of frames in the Agent Client Protocol, as far as it holds for every conversation.

A session is named only once the client knows it, and a tool call is told before anything is told about it. A
terminal is shown only while it is there; it is released once, and not used any more then. One that only displays
is told of with its call, prints nothing behind its end, and ends once.
"""

import json
from typing import Any

_OPENING = {"session/load", "session/resume"}
_TERMINAL = "terminal/"


class Order:
    """Watches one conversation. Raises AssertionError."""

    def __init__(self) -> None:
        self._asked: dict[str, tuple[str, dict[str, Any]]] = {}
        self._creating: dict[str, str] = {}
        """What the agent has asked for terminals: request and session."""
        self._known: set[str] = set()
        self._calls: set[tuple[str, str]] = set()
        self._terminals: set[tuple[str, str]] = set()
        """Those of the client's that are there."""
        self._shown: set[tuple[str, str]] = set()
        """Those of whatever kind that were shown while they were there."""
        self._displays: dict[tuple[str, str], bool] = {}
        """Those that only display, and whether they go on."""

    def client(self, frame: Any) -> None:
        if not isinstance(frame, dict) or "id" not in frame:
            return
        if "method" not in frame:
            self._created(frame)
            return
        params = frame.get("params")
        if not isinstance(params, dict):
            params = {}
        self._asked[json.dumps(frame["id"])] = frame["method"], params
        if frame["method"] in _OPENING:
            self._known.add(str(params.get("sessionId")))

    def _created(self, frame: dict[str, Any]) -> None:
        session = self._creating.pop(json.dumps(frame["id"]), None)
        result = frame.get("result")
        made = result.get("terminalId") if isinstance(result, dict) else None
        if session is not None and isinstance(made, str):
            self._terminals.add((session, made))

    def agent(self, frame: dict[str, Any]) -> None:
        if "method" not in frame:
            self._answered(frame)
        elif (session := frame.get("params", {}).get("sessionId")) is not None:
            assert session in self._known, f"the client does not know the session of {frame}"
            if frame["method"].startswith(_TERMINAL):
                self._uses(session, frame)
            self._told(session, frame)

    def _uses(self, session: str, frame: dict[str, Any]) -> None:
        if frame["method"] == "terminal/create":
            self._creating[json.dumps(frame["id"])] = session
            return
        terminal = session, frame["params"]["terminalId"]
        assert terminal in self._terminals, f"there is no such terminal: {frame}"
        if frame["method"] == "terminal/release":
            self._terminals.remove(terminal)

    def _answered(self, frame: dict[str, Any]) -> None:
        method, _ = self._asked.pop(json.dumps(frame["id"]), ("", {}))
        if method == "session/new" and "result" in frame:
            self._known.add(frame["result"]["sessionId"])

    def _told(self, session: str, frame: dict[str, Any]) -> None:
        params = frame["params"]
        update = params.get("update", {})
        about = (
            update
            if update.get("sessionUpdate", "").startswith("tool_call")
            else params.get("toolCall")
        )
        if about is None:
            return
        named = session, about["toolCallId"]
        if update.get("sessionUpdate") == "tool_call":
            self._calls.add(named)
        assert named in self._calls, f"nothing was told of the tool call of {frame}"
        self._displayed(session, update)
        for content in about.get("content") or ():
            if content["type"] == "terminal":
                terminal = session, content["terminalId"]
                there = terminal in self._terminals or terminal in self._displays
                assert there or terminal in self._shown, f"there is no such terminal: {frame}"
                self._shown.add(terminal)

    def _displayed(self, session: str, update: dict[str, Any]) -> None:
        meta = update.get("_meta") or {}
        if "terminal_info" in meta:
            assert update["sessionUpdate"] == "tool_call", f"no client looks for it here: {update}"
            self._displays[session, meta["terminal_info"]["terminal_id"]] = True
        for what in ("terminal_output", "terminal_exit"):
            if what in meta:
                terminal = session, meta[what]["terminal_id"]
                assert self._displays.get(terminal), f"that terminal does not go on: {update}"
                self._displays[terminal] = what == "terminal_output"
