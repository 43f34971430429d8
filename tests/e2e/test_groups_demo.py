"""`make demo-group`, as a person sees it, and what is in the log afterwards, event for event
(coordination 89, 90, 94, 106, 108)."""

import json
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[1] / "golden" / "demo_group.txt"
_IDS = re.compile(
    r"\b(?:ses|trn|msg|call|apr|rep|ask|int|evt|host|grp|tsk)_(?:[0-9a-z]{26}|[0-9a-z]{8})\b"
)
_LEFT_OUT = frozenset({"session_created", "ack", "agent_status_changed"})
_TOOLS = frozenset({"group_task", "group_message", "group_status", "complete"})


def _transcript(store: Path, folder: str) -> str:
    """What happened at the board, and in each session, without what differs from run to run."""
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as connection:
        rows = connection.execute(
            "SELECT e.session_id, coalesce(s.agent_name, 'lead'), e.type, e.data FROM events e "
            "JOIN sessions s ON s.session_id = e.session_id ORDER BY e.session_id, e.seq"
        ).fetchall()
    named = {session_id: name for session_id, name, _, _ in rows}
    named |= {
        value["taskId"]: value["title"]
        for _, _, kind, data in rows
        if kind == "group_task_created" and (value := json.loads(data))
    }

    def clean(text: str) -> str:
        for an_id, name in named.items():
            text = text.replace(an_id, f"<{name}>")
        return _IDS.sub("ID", " ".join(text.replace(folder, "FOLDER").split()))

    lines: dict[str, list[str]] = {}
    for _, name, kind, data in rows:
        if kind not in _LEFT_OUT:
            place = (
                "board" if name == "lead" and "group" in kind and "delivered" not in kind else name
            )
            lines.setdefault(place, []).append(clean(f"{kind} {_shown(kind, json.loads(data))}"))
    return "".join(
        f"== {name}\n" + "".join(f"{line}\n" for line in lines[name])
        for name in ("board", "lead", "ann", "ben", "cleo")
    )


def _shown(kind: str, data: dict[str, Any]) -> str:
    match kind:
        case "directive":
            return f"{data['author']['name']}: {data['text']}"
        case "message":
            how = f" [{data['delivered']['kind']}]" if data.get("delivered") else ""
            texts = " ".join(b["text"] for b in data["content"] if b["type"] == "text")
            return f"{data['author']['name']}{how}: {texts}"
        case "tool_call":
            return f"{data['name']}: {data['title']}"
        case "tool_result":
            said = f": {data['text']}" if data["name"] in _TOOLS else ""
            return f"{data['name']} {data['status']}{said}"
        case "turn_started":
            return data["trigger"]["kind"]
        case "turn_finished":
            return data["outcome"]
        case "agent_report_created":
            return f"{data['report']['status']}: {data['report']['summary']}"
        case "agent_interrupted":
            return data["reason"]
        case "completion_changed":
            return f"{data['completion']}: {data['summary']}"
        case "group_task_created":
            behind = ", ".join(data["dependencies"])
            return data["title"] + (f" behind {behind}" if behind else "")
        case "group_task_claimed":
            return f"{data['taskId']} by {data['agentId']}"
        case "group_task_status_changed":
            said = data.get("summary") or data.get("reason") or ""
            to = f" to {data['assignee']}" if data.get("assignee") else ""
            return f"{data['taskId']} {data['status']}{to} by {data['agentId']}: {said}"
        case "agent_group_created":
            return data["name"]
        case "agent_group_member_joined":
            return data["agentId"]
        case "group_message_queued":
            to = ", ".join(data["recipients"])
            return f"from {data['sender']} to {to}: {data['text']}"
        case "group_message_delivered":
            return f"from {data['sender']}"
        case _:
            return ""


def test_coordination_108_a_lead_and_three_workers_come_through_a_killed_server(
    tmp_path: Path,
) -> None:
    """The transcript is compared with the one that is checked in; UPDATE_GOLDEN=1 writes it anew."""
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith("CALLBOARD")},
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
    }
    store = tmp_path / "store.db"
    shown = subprocess.run(
        [sys.executable, "-m", "callboard", "demo-group", "--keep", "--store", str(store)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "Traceback" not in shown.stderr
    folder = re.search(r"^folder\s+(\S+)", shown.stdout, re.MULTILINE)
    assert folder is not None
    assert "conflict: code and docs both mean to change readme.md" in shown.stdout
    words = " ".join(shown.stdout.split())  # however wide it was shown
    assert "3 required tasks that are not done" in words
    assert "all that is required is done" in shown.stdout
    assert (Path(folder.group(1)) / "README.md").read_text("utf-8").startswith("# Warehouse")
    transcript = _transcript(store, folder.group(1))
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(transcript, "utf-8")
    assert transcript == GOLDEN.read_text("utf-8")
