"""Rooms on the terminal: ``callboard run --member``, ``callboard members``, and who speaks."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_harness import Cli
from test_rooms_methods import CONFIG, NAMES, SCENE


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    cli = Cli(tmp_path)
    (tmp_path / "scenario.yaml").write_text(SCENE)
    place = tmp_path / "config"
    (place / "agents").mkdir(parents=True)
    (place / "config.toml").write_text(CONFIG)
    for name in NAMES:
        (place / "agents" / f"{name}.md").write_text(
            f"---\nname: {name}\ndescription: The {name} agent\n---\nYou are {name}.\n"
        )
    cli.environment["CALLBOARD_CONFIG_DIR"] = str(place)
    yield cli
    cli.close()


def test_rooms_run_shows_who_speaks_and_ends_when_all_have(cli: Cli) -> None:
    result = cli("run", "ask beta", "--member", "alpha", "--member", "beta")
    assert result.code == 0, result.err
    said = result.out.splitlines()
    assert said[1:5] == ["alpha:", "What do you think, @beta?", "beta:", "I am beta."]


def test_rooms_one_agent_is_shown_as_ever(cli: Cli) -> None:
    result = cli("run", "hello", "--member", "beta")
    assert result.code == 0
    assert result.out.splitlines()[1] == "I am beta."


def test_rooms_a_budget_that_is_spent_is_told(cli: Cli) -> None:
    result = cli("run", "argue", "--roster", "pair", "--host", "alpha")
    assert result.code == 0, result.err
    assert result.out.count("We argue, @") == 4
    assert (
        "alpha was not woken: 4 messages of agents in a row; write something, and they go on"
        in (result.out)
    )


def test_rooms_a_prompt_goes_to_whom_it_names_and_a_stranger_is_told(cli: Cli) -> None:
    session = cli.session("hello", "--member", "alpha", "--member", "beta", "--host", "beta")
    assert "alpha:\nI am alpha." in cli("run", "hello", "-s", session, "--to", "alpha").out
    assert "beta:\nI am beta." in cli("run", "hello", "-s", session).out
    assert "! @nobody takes no part" in cli("run", "@nobody hello", "-s", session).out
    refused = cli("run", "hello", "-s", session, "--to", "nobody")
    assert refused.code != 0 and "'nobody' takes no part" in refused.err


def test_rooms_members_shows_adds_and_removes(cli: Cli) -> None:
    session = cli.session()
    assert cli("members", session).out == "default answers alone\n"
    added = cli("members", session, "add", "beta", "--host")
    assert added.code == 0, added.err
    lines = added.out.splitlines()
    assert lines[0].startswith("default  ")
    assert lines[1] == "beta     The beta agent (answers when nobody is addressed)"
    assert lines[2] == "0 of 4 messages of agents since the last one of a person"
    (room,) = cli.json("members", session)
    assert [m["name"] for m in room["members"]] == ["default", "beta"] and room["host"] == "beta"
    removed = cli("members", session, "remove", "default")
    assert removed.out.splitlines()[0].startswith("beta") and removed.err == ""
    again = cli("members", session, "remove", "defualt")
    assert again.code == 0 and "defualt took no part" in again.err
    shown = cli("sessions", "show", session).out
    assert "beta takes part" in shown and "default takes no part any more" in shown


def test_rooms_what_makes_no_sense_is_bad_usage(cli: Cli) -> None:
    session = cli.session()
    for arguments, says in (
        (("run", "x", "-s", session, "--member", "beta"), "for a new session"),
        (("run", "x", "--member", "beta", "--roster", "pair"), "exclude each other"),
        (("members", session, "add"), "say whom to add"),
        (("members", session, "--host"), "--host goes with add"),
        (("run", "x", "--member", "nobody"), "there is no profile 'nobody'"),
        (("run", "x", "--roster", "nope"), "there is no roster 'nope'; there are: pair"),
        (("members", session, "add", "nobody"), "there is no profile 'nobody'"),
    ):
        result = cli(*arguments)
        assert result.code == 2, (arguments, result)
        assert says in result.err, (arguments, result.err)
        assert "Traceback" not in result.err
