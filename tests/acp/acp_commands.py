"""Commands that the tests of terminals have run, and the agent that runs them."""

from pathlib import Path
from typing import Any

from harness.acp import AcpProcess, allow
from harness.acp_terminals import ABLE, Terminals
from harness.process import ServerProcess, scenario

LIMIT_MS = 400
COMMANDS = {
    "print": "echo to stdout; echo to stderr >&2",
    "fail": "echo before; exit 3",
    "wait": "echo first; echo $$ > pid; until [ -e go ]; do sleep 0.05; done; echo second",
    "where": "pwd; echo $CALLBOARD_CALL; echo x >> count",
    "much": "seq 1 100000",
    "more": "seq 1 400000",
    "secret": "echo sk-test-0123456789abcdefghij",
}
SCENES = (
    "rules:\n"
    + "".join(
        f"""
  - when: {{last_user: "{name}", step: 0}}
    answer: [{{say: "{name}:"}}, {{call: {{tool: run_command, arguments: {{command: "{line}"}}}}}}]
"""
        for name, line in COMMANDS.items()
    )
    + f"""
  - when: {{last_user: "limited", step: 0}}
    answer:
      - call:
          tool: run_command
          arguments: {{command: "{COMMANDS["wait"]}", timeout_ms: {LIMIT_MS}}}
  - when: {{last_user: "delegate", step: 0}}
    answer: [{{call: {{tool: spawn_agent, arguments: {{name: below, message: print, wait: true}}}}}}]
default: [{{say: "Done."}}]
"""
)


def agent(folder: Path, terminals: Terminals, **more: Any) -> AcpProcess:
    more.setdefault("capabilities", ABLE)
    more.setdefault("permit", allow)
    return AcpProcess(folder, model=scenario(folder, SCENES), answers=terminals.answers, **more)


def results(folder: Path, session: str) -> list[dict[str, Any]]:
    """The results of a session's calls, as another window reads them."""
    with ServerProcess(folder, approvals=False) as other:
        return [e["data"] for e in other.events(session) if e["type"] == "tool_result"]


def shows(update: dict[str, Any], terminal_id: str) -> bool:
    wanted = {"type": "terminal", "terminalId": terminal_id}
    return update.get("toolCallId") is not None and wanted in (update.get("content") or [])


def until_shown(editor: AcpProcess, terminal_id: str = "term-1") -> None:
    editor.until(lambda m: shows(m.get("params", {}).get("update", {}), terminal_id))


def until_released(editor: AcpProcess, terminals: Terminals) -> None:
    while terminals.open:
        editor.until_asked("terminal/release")
