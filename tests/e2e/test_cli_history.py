"""``callboard sessions fork`` and ``rewind`` against the real server."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_harness import Cli


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    harness = Cli(tmp_path)
    yield harness
    harness.close()


def test_the_last_turn_is_rewound_its_files_are_named_and_a_fork_goes_back_to_it(cli: Cli) -> None:
    session = cli.session("hello")
    cli("run", "write a file", "--session", session, "--approve", "allow")
    result = cli("sessions", "rewind", session)
    assert (result.code, result.err) == (0, "")
    assert f"rewound {session} by 1 turn" in result.out
    assert "left as they are" in result.out
    assert "made.txt" in result.out
    back = next(line for line in result.out.splitlines() if "callboard sessions fork" in line)
    shown = cli("sessions", "show", session).out
    assert "rewound: the last turn counts no longer" in shown
    fork = cli(*back.split("callboard ")[1].split(), "--json").lines[0]
    assert fork["forkedFrom"]["sessionId"] == session
    shown = cli("sessions", "show", fork["sessionId"]).out
    assert "› write a file" in shown
    assert f"taken over from {session}" in shown


def test_turns_that_are_not_there_are_refused_by_name(cli: Cli) -> None:
    session = cli.session("hello")
    for arguments, said in (
        (("rewind", session, "--turns", "5"), "has only 1 turn of its own"),
        (("rewind", session, "--before", "trn_" + "0" * 26), "never had a turn"),
        (("fork", session, "--at", "nothing"), "no turn begins with 'nothing'"),
    ):
        result = cli("sessions", *arguments)
        assert (result.code, said in result.err) == (2, True)
