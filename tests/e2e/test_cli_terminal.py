"""``callboard run`` with a person at a terminal, played by a pseudo-terminal."""

import os
import re
import signal
import termios
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from cli_harness import Cli, Terminal

from callboard_client import Client


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    harness = Cli(tmp_path)
    yield harness
    harness.close()


def test_an_approval_is_asked_in_line_and_one_key_answers_it(cli: Cli) -> None:
    terminal = Terminal(cli, "run", "write a file")
    shown = terminal.until("other clients: ")
    assert "+made by a test" in shown
    assert "1 Allow" in shown
    terminal.type("1")
    assert terminal.finish() == 0
    assert (cli.workspace / "made.txt").exists()
    assert b"\x1b[32m" in terminal.raw  # in colour


def test_a_rejection_takes_feedback_to_the_model(cli: Cli) -> None:
    terminal = Terminal(cli, "run", "write a file")
    shown = terminal.until("other clients: ")
    reject = re.search(r"(\d) Reject", shown)
    assert reject is not None
    terminal.type(reject[1])
    terminal.until("instead")
    terminal.type("call it other.txt\n")
    terminal.until("The tool said")
    assert terminal.finish() == 0
    assert "call it other.txt" in terminal.shown.split("The tool said")[1]
    assert not (cli.workspace / "made.txt").exists()


def test_ctrl_c_at_a_question_cancels_the_turn(cli: Cli) -> None:
    terminal = Terminal(cli, "run", "write a file")
    terminal.until("other clients: ")
    os.kill(terminal.process.pid, 2)
    assert terminal.finish() == 130
    assert "cancelled" in terminal.shown


def answer_elsewhere(cli: Cli, option_id: str, feedback: str | None = None) -> None:
    """Answers the one pending approval of the store, from this process."""

    async def answer() -> None:
        async with Client.start(env=cli.environment) as client:
            (approval,) = [each async for each in client.approvals.list(state="pending")]
            await client.approvals.answer(approval.approval_id, option_id, feedback)

    anyio.run(answer)


def test_a_question_left_to_others_can_be_answered_by_another_process(cli: Cli) -> None:
    terminal = Terminal(cli, "run", "write a file")
    terminal.until("other clients: ")
    terminal.type("d")
    terminal.until("left to other clients")
    answer_elsewhere(cli, "allow_once")
    terminal.until("allowed by")
    terminal.abandon()


def test_an_answer_of_another_process_takes_the_question_back(cli: Cli) -> None:
    terminal = Terminal(cli, "run", "write a file")
    terminal.until("other clients: ")
    answer_elsewhere(cli, "reject_once", "not like this")
    terminal.until("no longer asked")
    terminal.until("not like this")
    terminal.abandon()


def test_delete_asks_the_person(cli: Cli) -> None:
    session = cli.session()
    for key, code, left in (("n", 130, 1), ("y", 0, 0)):
        terminal = Terminal(cli, "sessions", "delete", session)
        terminal.until("[y/N]")
        terminal.type(key)
        assert terminal.finish() == code
        assert len(cli.json("sessions", "list")) == left


def test_the_terminal_is_left_as_it_was(cli: Cli) -> None:
    terminal = Terminal(cli, "run", "write a file")
    terminal.until("other clients: ")
    terminal.type("1")
    terminal.until("completed")
    flags = termios.tcgetattr(terminal.master)[3]
    assert flags & termios.ICANON
    assert flags & termios.ECHO
    assert terminal.finish() == 0


def test_a_question_that_was_left_is_answered_from_another_terminal(cli: Cli) -> None:
    terminal = Terminal(cli, "run", "write a file")
    terminal.until("other clients: ")
    terminal.type("d")
    shown = terminal.until("OPTION); Ctrl-C")
    named = re.search(r"approvals answer (apr_\w+) OPTION", shown)
    assert named is not None
    answered = cli("approvals", "answer", named[1], "allow_always")
    assert (answered.code, answered.err) == (0, "")
    assert answered.out.startswith("allowed: Create made.txt")
    terminal.until("allowed by callboard approvals")
    made = re.search(r"callboard rules remove (rule_\w+)", terminal.until("rules remove rule_"))
    assert made is not None
    assert terminal.finish() == 0
    (rule,) = cli.json("rules", "list")
    assert rule["ruleId"] in answered.out
    assert (cli.workspace / "made.txt").exists()


def test_keys_that_answer_nothing_do_not_show_amid_what_is_streamed(cli: Cli) -> None:
    terminal = Terminal(cli, "run", "hang")
    terminal.until("I begin")
    terminal.type("zzz")
    os.kill(terminal.process.pid, signal.SIGINT)
    terminal.until("cancelled")
    assert "zzz" not in terminal.shown
    assert termios.tcgetattr(terminal.master)[3] & termios.ECHO
    assert terminal.finish() == 130


def test_what_is_typed_as_feedback_shows(cli: Cli) -> None:
    terminal = Terminal(cli, "run", "write a file")
    shown = terminal.until("other clients: ")
    reject = re.search(r"(\d) Reject", shown)
    assert reject is not None
    terminal.type(reject[1])
    terminal.until("(Enter for nothing): ")
    terminal.type("not so")
    terminal.until("(Enter for nothing): not so")
    terminal.type("\n")
    terminal.until("The tool said: Not allowed: not so")
    assert terminal.finish() == 0
    assert terminal.shown.count("not so") == 2
