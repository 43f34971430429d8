"""``callboard approvals answer`` when the program that had asked is gone: the turn goes on with the answer."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_harness import Cli, Terminal, read_until


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    harness = Cli(tmp_path)
    yield harness
    harness.close()


def park(cli: Cli, prompt: str) -> str:
    """The id of an approval whose asker was killed, with its server."""
    asker = (
        "import anyio\n"
        "from callboard_client import Client\n"
        "async def main():\n"
        "    async with Client.start() as client:\n"
        f"        async for item in client.run({prompt!r}, cwd='.'):\n"
        "            print(getattr(item, 'type', ''), flush=True)\n"
        "anyio.run(main)\n"
    )
    cli.command, whole = [*cli.command[:1], "-c", asker], cli.command
    process = cli.start(start_new_session=True)
    cli.command = whole
    read_until(process, "approval_request")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=20)
    (approval,) = cli.json("approvals", "list")
    return approval["approvalId"]


def outcomes(cli: Cli) -> list[str]:
    (session,) = cli.json("sessions", "list")
    (whole,) = cli.json("sessions", "show", session["sessionId"])
    return [turn["state"] for turn in whole["turns"]]


def test_an_answer_stays_for_the_turn_that_it_wakes(cli: Cli) -> None:
    """The server that resumes the turn is this command's own: it must not end before the turn."""
    result = cli("approvals", "answer", park(cli, "write a file"), "allow_once")
    assert (result.code, result.err) == (0, "")
    first, *rest = result.out.splitlines()
    assert first == "allowed: Create made.txt"
    assert "✓ Create made.txt" in result.out
    assert "The tool said" in result.out
    assert rest[-1].startswith("completed")
    assert (cli.workspace / "made.txt").exists()
    assert outcomes(cli) == ["completed"]


def test_a_rejection_is_told_to_the_agent_that_waited(cli: Cli) -> None:
    named = park(cli, "write a file")
    result = cli("approvals", "answer", named, "reject_once", "--feedback", "not like this")
    assert (result.code, result.err) == (0, "")
    assert "not like this" in result.out.split("The tool said")[1]
    assert not (cli.workspace / "made.txt").exists()
    assert outcomes(cli) == ["completed"]


def test_the_next_question_is_left_when_nobody_is_there_and_can_be_answered_too(cli: Cli) -> None:
    result = cli("approvals", "answer", park(cli, "write two files"), "allow_once")
    assert result.code == 3
    assert "waits for an approval" in result.out
    assert (cli.workspace / "one.txt").exists()
    (session,) = cli.json("sessions", "list")
    assert session["status"] == "parked"
    (approval,) = cli.json("approvals", "list")
    assert cli("approvals", "answer", approval["approvalId"], "allow_once").code == 0
    assert (cli.workspace / "two.txt").exists()
    assert outcomes(cli) == ["completed"]


def test_a_person_at_a_terminal_is_asked_the_next_question(cli: Cli) -> None:
    terminal = Terminal(cli, "approvals", "answer", park(cli, "write two files"), "allow_once")
    shown = terminal.until("other clients: ")
    assert "its turn goes on here" in shown
    terminal.type("1")
    assert terminal.finish() == 0
    assert (cli.workspace / "two.txt").exists()
    assert outcomes(cli) == ["completed"]
