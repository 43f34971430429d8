"""Scenes with an agent of another maker, a program of its own that dies with its server."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from crash_scenes import Play
from crash_stage import Stage, die

from harness.process import ServerProcess

_PROGRAM = Path(__file__).parents[1] / "harness" / "acp_agent.py"
_NAME = "outside"
_READ: dict[str, Any] = {"toolCallId": "look", "title": "Look around", "kind": "read"}
_DEED: dict[str, Any] = {
    "toolCallId": "deed",
    "title": "Deploy it",
    "kind": "other",
    "rawInput": {"where": "here"},
}
_OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
_DOES: list[dict[str, Any]] = [
    {"think": "Let me see."},
    {"say": "I look."},
    {"update": {"sessionUpdate": "tool_call", "status": "in_progress", **_READ}},
    {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "look", "status": "completed"}},
    {"update": {"sessionUpdate": "tool_call", "status": "in_progress", **_DEED}},
    {"permission": {"toolCall": _DEED, "options": _OPTIONS}},
    {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "deed", "status": "completed"}},
    {"ask": {"method": "terminal/create", "params": {"command": "true"}}},
    {"ask": {"method": "terminal/wait_for_exit", "params": {"terminalId": "{terminal}"}}},
    {"ask": {"method": "terminal/release", "params": {"terminalId": "{terminal}"}}},
    {"say": "Done."},
]


_FORM: dict[str, Any] = {
    "sessionId": "agent-session-1",
    "mode": "form",
    "message": "Which one?",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
}
_WONDERS: list[dict[str, Any]] = [
    {
        "raw": json.dumps(
            {"jsonrpc": "2.0", "id": "form", "method": "elicitation/create", "params": _FORM}
        )
    },
    {"say": "Never mind."},
]


def _session(
    stage: Stage, server: ServerProcess, does: Sequence[dict[str, Any]] = tuple(_DOES)
) -> str:
    scene = stage.folder / "outside.json"
    scene.write_text(json.dumps({"prompts": [["", does]], "capabilities": {"loadSession": True}}))
    agents = stage.user_dir / "agents"
    agents.mkdir(exist_ok=True)
    command = json.dumps([sys.executable, str(_PROGRAM), str(scene)])
    (agents / f"{_NAME}.md").write_text(f"---\nkind: acp\ncommand: {command}\n---\n")
    stage.greet(server)
    return stage.create(server, mode="work", profile=_NAME)


def consult(stage: Stage, server: ServerProcess) -> None:
    """It thinks, speaks, makes a call, does what a rule or a person allows, and runs a command."""
    session_id = _session(stage, server)
    stage.prompt(server, session_id, "talk to it")
    _see_through(stage, server, session_id)


def change_its_mind(stage: Stage, server: ServerProcess) -> None:
    """It asks a person something, and ends its answer without waiting."""
    session_id = _session(stage, server, _WONDERS)
    stage.prompt(server, session_id, "talk to it")
    server.wait(session_id)


def _see_through(stage: Stage, server: ServerProcess, session_id: str) -> None:
    while server.wait(session_id, "attention")["reason"] == "attention":
        for approval_id in stage.approvals(server, session_id):
            server.call("approval/answer", approvalId=approval_id, optionId="allow_once")
    server.wait(session_id)


def _dies_while_it_asks(stage: Stage) -> None:
    die(stage, "client.ask.told", consult)


def come_back(stage: Stage, server: ServerProcess) -> None:
    """Its question outlives its server; the next one begins it anew, and tells it what was decided."""
    stage.greet(server)
    _see_through(stage, server, stage.created[0])


PRELUDES: dict[Play, Callable[[Stage], object]] = {come_back: _dies_while_it_asks}
