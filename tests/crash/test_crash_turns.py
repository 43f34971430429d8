"""kill -9 in the middle of a turn: it is interrupted once, nothing reruns, what waited is answered."""

import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.process import ServerProcess, scenario, types

MARK = f"71.{os.getpid()}"

SCENARIO = """
rules:
  - when: {last_user: stream}
    answer:
      - say: {text: "what I had to say until then ", chunk: 4, repeat: 3}
      - hang: true
  - when: {last_user: {regex: "^think$"}}
    answer:
      - think: {text: "let me see", repeat: 2}
      - hang: true
  - when: {last_user: command, step: 0}
    answer:
      - say: I run it.
      - call: {tool: run_command, arguments: {command: "echo once >> ran.txt; sleep MARK"}}
      - call: {tool: run_command, arguments: {command: "echo twice >> ran.txt"}}
  - when: {last_user: ask, step: 0}
    answer:
      - call: {tool: write_file, arguments: {path: asked.txt, content: x}}
default:
  - say: "You said: {{last_user}}."
"""

CONFIG = '[approvals.policy]\nexecute = "allow"\n[draft]\ninterval_ms = 10\n'


@pytest.fixture
def model(tmp_path: Path) -> str:
    config = tmp_path / "home" / "config"
    config.mkdir(parents=True)
    (config / "config.toml").write_text(CONFIG, "utf-8")
    return scenario(tmp_path, SCENARIO.replace("MARK", MARK))


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def _begin(server: ServerProcess, cwd: Path, text: str, kind: str) -> str:
    """A session whose turn has come to an event of `kind`, or to a delta."""
    session_id = server.create(cwd)
    server.call("event/subscribe", scope={"kind": "session", "id": session_id}, **{"from": "now"},
                deltas=True)  # fmt: skip
    server.prompt(session_id, text)
    if kind == "delta":
        server.until(lambda m: m.get("method") == "event/delta")
    else:
        server.until_event(lambda e: e["type"] == kind)
    return session_id


def _eventually(holds: Callable[[], bool]) -> None:
    """Waits for something of the operating system, which sends no event."""
    ends = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.01)


def _one(events: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    found = [event for event in events if event["type"] == kind]
    assert len(found) == 1, types(events)
    return found[0]["data"]


def _draft_is_kept(folder: Path) -> bool:
    connection = sqlite3.connect(folder / "store.db")
    try:
        return connection.execute("SELECT count(*) FROM drafts").fetchone()[0] == 1
    finally:
        connection.close()


def _orphans() -> list[int]:
    return [
        process.pid
        for process in psutil.process_iter(["cmdline", "status"])
        if process.info["cmdline"] == ["sleep", MARK]
        and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


@pytest.mark.parametrize(("say", "block"), [("stream", "text"), ("think", "thinking")])
def test_execution_51_killed_in_mid_stream_the_draft_becomes_a_partial_message(
    tmp_path: Path, cwd: Path, model: str, say: str, block: str
) -> None:
    with ServerProcess(tmp_path, model=model) as server:
        session_id = _begin(server, cwd, say, "delta")
        server.prompt(session_id, "queued while busy")
        _eventually(lambda: _draft_is_kept(tmp_path))
        server.kill()
    with ServerProcess(tmp_path, model=model) as server:
        server.wait(session_id)
        events = server.events(session_id)
        ends = [e["data"] for e in events if e["type"] == "turn_finished"]
        assert [end["outcome"] for end in ends] == ["interrupted", "completed"]
        partial = [e["data"] for e in events if e["type"] == "message" and e["data"].get("partial")]
        assert len(partial) == 1
        assert [b["type"] for b in partial[0]["content"]] == [block]
        assert partial[0]["content"][0]["text"].startswith(
            "what I had to say" if block == "text" else "let me see"
        )
        # the queue was answered; the turn that was killed was not begun again
        assert ends[1]["finalText"].endswith("queued while busy.")
        assert types(events).count("turn_started") == 2
        assert [e["seq"] for e in events] == list(range(1, len(events) + 1))
        assert not _draft_is_kept(tmp_path)
    with ServerProcess(tmp_path, model=model) as server:
        server.wait(session_id)
        assert server.events(session_id) == events


def test_interrupts_67_coordination_13_killed_during_a_tool_each_call_has_one_interrupted_result(
    tmp_path: Path, cwd: Path, model: str
) -> None:
    with ServerProcess(tmp_path, model=model) as server:
        session_id = _begin(server, cwd, "command", "tool_call")
        _eventually(lambda: (cwd / "ran.txt").exists() and _orphans() != [])
        server.kill()
    with ServerProcess(tmp_path, model=model) as server:
        server.wait(session_id)
        events = server.events(session_id)
        assert _one(events, "turn_finished")["outcome"] == "interrupted"
        results = [e["data"] for e in events if e["type"] == "tool_result"]
        called = [e["data"]["callId"] for e in events if e["type"] == "tool_call"]
        assert [r["callId"] for r in results] == called
        assert [r["status"] for r in results] == ["interrupted", "interrupted"]
        assert types(events)[-1] == "turn_finished"
        assert (cwd / "ran.txt").read_text() == "once\n"
        assert _orphans() == []  # what outlived its server was ended before its result was written
        # the next prompt works, and the model sees its calls answered
        server.prompt(session_id, "what now")
        server.wait(session_id)
        assert server.events(session_id)[-1]["data"]["finalText"] == "You said: what now."
        assert (cwd / "ran.txt").read_text() == "once\n"
        events = server.events(session_id)
    with ServerProcess(tmp_path, model=model) as server:  # it was reported once (coordination 13)
        server.wait(session_id)
        assert server.events(session_id) == events


def test_messaging_18_killed_while_an_approval_waits_the_turn_is_parked_and_the_answer_resumes_it(
    tmp_path: Path, cwd: Path, model: str
) -> None:
    with ServerProcess(tmp_path, model=model) as server:
        session_id = _begin(server, cwd, "ask", "approval_request")
        approval = server.call("approval/list", sessionId=session_id)["data"][0]
        server.kill()
    with ServerProcess(tmp_path, model=model) as server:
        assert server.call("session/get", sessionId=session_id)["session"]["status"] == "parked"
        listed = server.call("approval/get", approvalId=approval["approvalId"])["approval"]
        assert listed == approval
        assert not (cwd / "asked.txt").exists()
        server.call("approval/answer", approvalId=approval["approvalId"], optionId="allow_once")
        assert server.wait(session_id)["turn"]["state"] == "completed"
        events = server.events(session_id)
        turn_ids = {e["turnId"] for e in events if e.get("turnId")}
        assert len(turn_ids) == 1
        assert [e["type"] for e in events if e["type"].startswith("turn_")] == [
            "turn_started",
            "turn_parked",
            "turn_resumed",
            "turn_finished",
        ]
        assert _one(events, "tool_result")["status"] == "ok"
        assert _one(events, "approval_decision")["resolution"]["outcome"] == "allowed"
        assert (cwd / "asked.txt").read_text() == "x"


def test_execution_51_killed_over_and_over_every_turn_has_exactly_one_end(
    tmp_path: Path, cwd: Path, model: str
) -> None:
    session_id = ""
    for n in range(3):
        with ServerProcess(tmp_path, model=model) as server:
            session_id = session_id or server.create(cwd)
            server.wait(session_id)
            server.prompt(session_id, f"stream {n}")
            server.kill()
    with ServerProcess(tmp_path, model=model) as server:
        server.wait(session_id)
        events = server.events(session_id)
        begun = [e["turnId"] for e in events if e["type"] == "turn_started"]
        ended = [e["turnId"] for e in events if e["type"] == "turn_finished"]
        assert begun == ended
        assert len(begun) == 3
        assert server.call("session/get", sessionId=session_id)["session"]["status"] == "idle"
