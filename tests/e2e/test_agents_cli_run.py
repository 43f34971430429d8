"""``callboard run`` with agents: it waits for them, shows them, answers for them, and ends them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_harness import Cli, Terminal, interrupt, read_until

from harness.process import ServerProcess

SCENE = """
rules:
  # the agents
  - when: {last_user: {regex: "You are the agent 'slow'"}, step: 0}
    answer: [{call: {tool: run_command, arguments: {command: "until [ -e go ]; do sleep 0.02; done"}}}]
  - when: {last_user: {regex: "You are the agent 'slow'"}, last_tool: run_command}
    answer: [{say: "It is done."}]
  - when: {last_user: {regex: "You are the agent 'stuck'"}, step: 0}
    answer: [{say: "I begin."}, {hang: true}]
  - when: {last_user: {regex: "You are the agent 'runner'"}, step: 0}
    answer: [{call: {tool: run_command, arguments: {command: "echo ran > ran.txt"}}}]
  - when: {last_tool: run_command}
    answer: [{say: "The command said: {{last_tool}}"}]
  # the lead
  - when: {last_user: {regex: "start (\\\\w+)"}, step: 0}
    answer:
      - call: {tool: spawn_agent, arguments: {name: "{{match.1}}", message: "Do your part."}}
  - when: {last_user: {regex: "<agent-report agent=.stuck"}}
    answer: [{say: "It was stopped, as I hear."}]
  - when: {last_user: {regex: "<agent-report[^>]*>\\\\s*(.*)"}}
    answer: [{say: "I was told: {{match.1}}"}]
  - when: {last_tool: spawn_agent}
    answer: [{say: "Begun."}]
default: [{say: "Nothing to do."}]
"""


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    cli = Cli(tmp_path)
    (tmp_path / "scenario.yaml").write_text(SCENE)
    yield cli
    cli.close()


def rests(cli: Cli, root: str) -> None:
    """Returns when the session's turn has ended, whatever its agents do."""
    store = {"CALLBOARD_STORE": cli.environment["CALLBOARD_STORE"]}
    with ServerProcess(cli.home.parent, environ=store) as beside:
        assert beside.wait(root)["reason"] == "idle"


def run_slow(cli: Cli, *options: str) -> tuple[int, str]:
    """A run whose agent ends after its lead has ended its turn."""
    process = cli.start("run", "start slow", "--approve", "allow", *options)
    shown = read_until(process, "Begun.")
    found = re.search(r"ses_[0-9a-z]+", shown)
    assert found is not None
    rests(cli, found[0])
    (cli.workspace / "go").touch()
    assert process.stdout is not None
    rest = process.stdout.read()  # what was read ahead, too
    return process.wait(timeout=60), shown + rest


def test_it_waits_for_an_agent_and_for_what_its_report_makes_the_lead_say(cli: Cli) -> None:
    code, out = run_slow(cli)
    assert code == 0
    lines = [line.strip() for line in out.splitlines()]
    begun, told = lines.index("Begun."), lines.index("I was told: It is done.")
    assert lines.index("⤷ slow: Do your part.") < told
    assert lines.index("slow: It is done.") < told
    (ended,) = [n for n, line in enumerate(lines) if line.startswith("✓ slow completed")]
    assert begun < ended < told
    assert "← the report of slow" in lines
    assert lines[-1].startswith("completed")


def test_json_has_the_events_of_agents_and_of_all_turns(cli: Cli) -> None:
    code, out = run_slow(cli, "--json")
    assert code == 0
    events = [json.loads(line) for line in out.splitlines()]
    root = events[0]["sessionId"]
    ends = [(e["sessionId"] == root, e["data"]["outcome"]) for e in events
            if e["type"] == "turn_finished"]  # fmt: skip
    assert ends == [(True, "completed"), (False, "completed"), (True, "completed")]
    assert events[-1]["data"]["finalText"] == "I was told: It is done."
    assert [e["data"]["name"] for e in events if e["type"] == "agent_spawned"] == ["slow"]


def test_what_an_agent_asks_is_answered_by_the_runs_rule_and_names_it(cli: Cli) -> None:
    allowed = cli("run", "start runner", "--approve", "allow")
    assert allowed.code == 0
    assert "? runner: " in allowed.out
    assert "approved by --approve allow" in allowed.out
    assert (cli.workspace / "ran.txt").read_text() == "ran\n"
    (cli.workspace / "ran.txt").unlink()
    denied = cli("run", "start runner", "--approve", "deny")
    assert denied.code == 3, "something was refused, be it by an agent's call"
    assert not (cli.workspace / "ran.txt").exists()
    assert "runner ⊘" in denied.out


def test_a_person_at_the_terminal_answers_an_agent_whose_lead_has_ended_its_turn(cli: Cli) -> None:
    terminal = Terminal(cli, "run", "start runner")
    shown = terminal.until("or d to leave it")
    assert "? runner: " in shown
    terminal.type("1")
    assert terminal.finish() == 0
    assert (cli.workspace / "ran.txt").exists()
    assert "I was told" in terminal.shown


def test_ctrl_c_cancels_the_whole_tree_and_wakes_nobody(cli: Cli) -> None:
    process = cli.start("run", "start stuck")
    shown = read_until(process, "Begun.")
    rests(cli, shown.split()[1])
    interrupt(process)
    rest, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "")
    assert "stuck cancelled" in rest
    assert "It was stopped" not in rest
    assert rest.splitlines()[-1].startswith("cancelled")
    root = shown.split()[1]
    (agent,) = cli.json("agents", "list", root)
    assert (agent["status"], agent["report"]["status"]) == ("interrupted", "aborted")
    turns = cli.json("sessions", "show", root)[0]["turns"]
    assert [turn["state"] for turn in turns] == ["completed"]


def test_a_time_limit_is_one_for_the_whole_tree(cli: Cli) -> None:
    result = cli("run", "start stuck", "--timeout", "5")
    assert result.code == 124
    assert "stuck cancelled" in result.out


def test_the_exit_code_is_that_of_the_last_turn(cli: Cli) -> None:
    scene = SCENE.replace(
        'answer: [{say: "I was told: {{match.1}}"}]',
        "answer: [{fail: {kind: modelError, message: broken}}]",
    )
    (cli.home.parent / "scenario.yaml").write_text(scene)
    code, out = run_slow(cli)
    assert code == 1
    assert "broken" in out
