"""What a command starts ends with its turn, also what has left its group, its session and its environment."""

import time
from pathlib import Path

import psutil
import pytest

from harness.process import ANEW, ServerProcess, scenario

MARK = "78.21"
SCENARIO = """
rules:
  - when: {last_user: {regex: "(?s)^go (.*)$"}, step: 0}
    answer: [{call: {tool: run_command, arguments: {command: "{{match.1}}"}}}]
default: [{say: done}]
"""


def _left() -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter(["cmdline", "status"])
        if process.info["cmdline"] == ["sleep", MARK]
        and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


def _eventually(count: int) -> None:
    """Waits for something of the operating system, which sends no event."""
    ends = time.monotonic() + 20
    while len(_left()) != count:
        assert time.monotonic() < ends
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("command", "count"),
    [
        (f"setsid sleep {MARK} & sleep {MARK}", 2),
        (f"env -i setsid sleep {MARK} & sleep {MARK}", 2),
        (f"env -i setsid sh -c 'trap : TERM; sleep {MARK} & sleep {MARK}' & sleep {MARK}", 3),
        (f"(setsid sh -c 'setsid sleep {MARK} & exit' &); sleep {MARK}", 2),
    ],
)
def test_a_cancel_reaches_all_that_a_command_has_started(
    tmp_path: Path, command: str, count: int
) -> None:
    (tmp_path / "work").mkdir()
    allow = {"config": {"approvals": {"policy": {"run_command": "allow"}}}}
    try:
        with ServerProcess(
            tmp_path, model=scenario(tmp_path, SCENARIO), callboard=allow, program=ANEW
        ) as server:
            session = server.create(tmp_path / "work")
            server.prompt(session, f"go {command}")
            _eventually(count)
            server.call("session/cancel", sessionId=session)
            server.wait(session)
            assert _left() == []
    finally:
        for process in _left():
            process.kill()
