"""`make demo-agents`, as a person sees it, and what is in the log afterwards, event for event."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[1] / "golden" / "demo_agents.txt"
_IDS = re.compile(r"\b(?:ses|trn|msg|call|apr|rep|ask|int|evt|host)_[0-9a-z]{26}\b")


def _transcript(store: Path, folder: str) -> str:
    """What happened in each session, by its agent's name, without what differs from run to run."""
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as connection:
        rows = connection.execute(
            "SELECT e.session_id, coalesce(s.agent_name, 'lead'), e.type, e.data FROM events e "
            "JOIN sessions s ON s.session_id = e.session_id ORDER BY e.session_id, e.seq"
        ).fetchall()
    lines: dict[str, list[str]] = {}
    for _, name, kind, data in rows:
        shown = _shown(kind, json.loads(data))
        text = f"{kind} {shown}".strip() if shown is not None else kind
        lines.setdefault(name, []).append(_IDS.sub("ID", text.replace(folder, "FOLDER")))
    return "".join(
        f"== {name}\n" + "".join(f"{line}\n" for line in lines[name])
        for name in ("lead", "stock", "docs", "numbers")
    )


def _texts(blocks: list[dict[str, Any]]) -> str:
    return " ".join(" ".join(b["text"].split()) for b in blocks if b["type"] == "text")


def _shown(kind: str, data: dict[str, Any]) -> str | None:
    match kind:
        case "agent_spawned":
            return f"{data['name']} depth {data['session']['depth']}"
        case "directive":
            return f"{data['author']['name']}: {' '.join(data['text'].split())}"
        case "message":
            who = data["author"]["name"]
            how = f" [{data['delivered']['kind']}]" if data.get("delivered") else ""
            return f"{who}{how}: {_texts(data['content'])}"
        case "tool_call":
            return f"{data['name']}: {data['title']}"
        case "tool_result":
            return f"{data['name']} {data['status']}"
        case "approval_request":
            return (
                data["approval"]["tool"]
                + " "
                + "/".join(step["name"] for step in data["approval"]["path"])
            )
        case "approval_decision":
            return data["resolution"]["outcome"]
        case "turn_started":
            return data["trigger"]["kind"]
        case "turn_finished":
            return data["outcome"]
        case "agent_status_changed":
            return data["status"]
        case "agent_report_created":
            return f"{data['report']['status']}: {data['report']['summary']}"
        case "agent_interrupt_requested":
            return f"{data['kind']} by {data['origin']}: {data['reason']}"
        case "agent_interrupt_consumed":
            return data["kind"]
        case "agent_interrupted":
            return data["reason"]
        case "agent_asked":
            return data["text"]
        case "agent_replied":
            return f"{data['outcome']}: {data['text']}"
        case _:
            return None


# Whatever a person has configured, the demo plays.
CONFIGURED = """
profile = "reader"
[agents]
max_depth = 0
max_open = 1
max_running = 1
[approvals]
mode = "plan"
[approvals.policy]
run_command = "deny"
"""


def _environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text(CONFIGURED)
    (tmp_path / "tmp").mkdir()
    return {
        **{k: v for k, v in os.environ.items() if not k.startswith("CALLBOARD")},
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path / "tmp"),
        "CALLBOARD_CONFIG_DIR": str(tmp_path / "config"),
        "CALLBOARD_AGENTS_MAX_DEPTH": "0",
    }


def test_a_lead_and_three_agents_come_through_a_killed_server(tmp_path: Path) -> None:
    """The transcript is compared with the one that is checked in; UPDATE_GOLDEN=1 writes it anew."""
    environment = _environment(tmp_path)
    store = tmp_path / "store.db"
    shown = subprocess.run(
        [sys.executable, "-m", "callboard", "demo-agents", "--keep", "--store", str(store)],
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
    assert "in one paragraph" in shown.stdout
    for proof in ("✓ the test passes", "✓ README.md is there", "One paragraph is enough"):
        assert proof in shown.stdout
    assert "told by default" not in shown.stdout
    assert (Path(folder.group(1)) / "README.md").read_text("utf-8").startswith("# Warehouse")
    # what the lead reports is so: before, the code and its test did not agree
    test = [sys.executable, "-B", "-m", "unittest", "-q"]
    ran = subprocess.run(test, cwd=folder.group(1), capture_output=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr
    as_given = Path(__file__).parents[2] / "demo" / "team"
    before = subprocess.run(test, cwd=as_given, capture_output=True, check=False, timeout=60)
    assert before.returncode == 1, before.stderr
    transcript = _transcript(store, folder.group(1))
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(transcript, "utf-8")
    assert transcript == GOLDEN.read_text("utf-8")


def test_a_demo_that_is_stopped_leaves_no_question_no_turn_and_no_folder(tmp_path: Path) -> None:
    environment = _environment(tmp_path)
    store = tmp_path / "store.db"
    command = [sys.executable, "-m", "callboard", "demo-agents", "--store", str(store)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        try:
            for line in demo.stdout:  # a command of an agent is about to run
                if "build.py compile" in line and "Start the agent" not in line:
                    break
            demo.send_signal(signal.SIGTERM)
            rest = demo.stdout.read()
            assert demo.wait(timeout=60) == 130, rest
        finally:
            demo.kill()
    assert list((tmp_path / "tmp").glob("callboard-*")) == []
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as connection:
        open_turns = connection.execute(
            "SELECT count(*) FILTER (WHERE type = 'turn_started') - count(*) FILTER (WHERE type = 'turn_finished'), "
            "count(*) FILTER (WHERE type = 'approval_request') - count(*) FILTER (WHERE type = 'approval_decision'), "
            "count(*) FILTER (WHERE type = 'agent_asked') - count(*) FILTER (WHERE type = 'agent_replied') "
            "FROM events"
        ).fetchone()
    assert open_turns == (0, 0, 0)
