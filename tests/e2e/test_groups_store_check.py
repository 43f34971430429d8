"""`callboard store check` on a board that a server has made: nothing to find, until somebody has been at its
tables (coordination 86)."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from cli_harness import Cli, Result

from harness.process import ServerProcess, scenario

_TAMPERED = {
    "agent_groups": "UPDATE agent_groups SET name = 'another'",
    "group_members": "DELETE FROM group_members",
    "group_tasks": "UPDATE group_tasks SET assignee = 'ses_nobody'",
    "group_messages": "UPDATE group_messages SET text = 'something else'",
    "group_message_deliveries": "UPDATE group_message_deliveries SET delivered_seq = 7",
}


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """The command on a store with a board of which every table has a row."""
    work = tmp_path / "work"
    work.mkdir()
    model = scenario(
        tmp_path,
        "rules:\n"
        "  - when: {last_user: {regex: '^assign (\\S+)'}, step: 0}\n"
        "    answer: [{call: {tool: spawn_agent,"
        " arguments: {name: one, message: go, task_id: '{{match.1}}'}}}]\n"
        "default: [{say: Yes.}]\n",
    )
    with ServerProcess(tmp_path, model=model) as server:
        root = server.create(work, mode="work")
        task = server.call("group/taskCreate", rootId=root, title="first")["task"]
        server.prompt(root, f"assign {task['taskId']}")
        server.wait(root)
        server.call("group/messageSend", rootId=root, to="group", text="Hear, hear.")
        (agent,) = server.call("agent/list", rootId=root)["data"]
        server.wait(agent["agentId"])
        server.close()
    (tmp_path / "cli").mkdir()
    return Cli(tmp_path / "cli")


def _check(cli: Cli, folder: Path, *arguments: str) -> Result:
    return cli("store", "check", "--store", str(folder / "store.db"), *arguments)


def _alter(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / "store.db", isolation_level=None)) as connection:
        assert connection.execute(statement).rowcount == 1


def test_coordination_86_a_board_is_as_the_log_says(cli: Cli, tmp_path: Path) -> None:
    checked = _check(cli, tmp_path, "--json")
    assert (checked.code, json.loads(checked.out)["findings"]) == (0, [])


@pytest.mark.parametrize("table", _TAMPERED)
def test_coordination_86_a_row_that_somebody_has_changed_is_named_and_mended(
    cli: Cli, tmp_path: Path, table: str
) -> None:
    _alter(tmp_path, _TAMPERED[table])
    checked = _check(cli, tmp_path, "--json")
    (found,) = json.loads(checked.out)["findings"]
    assert checked.code != 0
    assert (found["part"], found["repairable"]) == ("projections", True)
    assert table in found["message"]
    assert _check(cli, tmp_path, "--repair").code == 0
    assert _check(cli, tmp_path).code == 0
