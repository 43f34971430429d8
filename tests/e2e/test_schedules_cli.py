"""``callboard schedule``: made, listed, looked at, fired, paused and removed from any terminal."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from sqlite3 import connect
from typing import Any

import pytest
from cli_harness import Cli

from harness.process import ServerProcess, types

HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202eevil\r\x9b1m"


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    cli = Cli(tmp_path)
    yield cli
    cli.close()


@pytest.fixture
def server(cli: Cli, tmp_path: Path) -> Iterator[ServerProcess]:
    """A server on the store of the commands, as an editor starts it."""
    environ = {"CALLBOARD_STORE": cli.environment["CALLBOARD_STORE"]}
    with ExitStack() as stack:
        yield stack.enter_context(
            ServerProcess(tmp_path, model=cli.environment["CALLBOARD_MODEL"], environ=environ)
        )


def added(cli: Cli, prompt: str, *more: str) -> dict[str, Any]:
    result = cli("schedule", "add", prompt, *more, "--json")
    assert result.code == 0, result.err
    (schedule,) = result.lines
    return schedule


def test_schedules_add_list_show_and_remove(cli: Cli) -> None:
    made = cli(
        "schedule", "add", "look at the inbox", "--cron", "0 9 * * 1-5", "--zone", "Europe/Berlin",
        "--name", "mornings", "--max-fires", "9", "--missed", "run-once", "--busy", "queue",
    )  # fmt: skip
    assert made.code == 0 and "mornings" in made.out and "next " in made.out
    (schedule,) = cli("schedule", "list", "--json").lines
    assert schedule["target"] == {"fresh": {"cwd": str(cli.workspace)}}
    assert (schedule["misfire"], schedule["overlap"]) == ("run_once", "queue")
    listed = cli("schedule", "list").out
    assert "mornings" in listed and "0 9 * * 1-5 (Europe/Berlin)" in listed
    for which in ("mornings", schedule["scheduleId"], schedule["scheduleId"][:30]):
        shown = cli("schedule", "show", which)
        assert shown.code == 0, shown.err
        for words in ("look at the inbox", "0 times of 9", "missed times are one run", "waits"):
            assert words in shown.out
    assert cli("schedule", "remove", "mornings").code == 0
    assert "There are no schedules" in cli("schedule", "list").out


def test_schedules_run_shows_what_the_agent_does_and_ends_as_it_ends(cli: Cli) -> None:
    schedule = added(cli, "hello", "--name", "greet", "--every", "1h30m")
    assert schedule["trigger"] == {"everySeconds": 5400}
    done = cli("schedule", "run", "greet")
    assert done.code == 0 and "You said: hello." in done.out
    (fire,) = cli("schedule", "runs", "greet", "--json").lines
    assert fire["outcome"] == "completed"
    assert "completed" in cli("schedule", "runs", "greet").out
    assert "1 time" in cli("schedule", "show", "greet").out
    added(cli, "break", "--name", "bad", "--every", "1h")
    broken = cli("schedule", "run", "bad")
    assert broken.code == 1 and "the model" in broken.err + broken.out
    assert "failed 1 time in a row" in cli("schedule", "show", "bad").out
    shown = cli("sessions", "show", fire["sessionId"])
    assert "greet: hello" in shown.out


def test_schedules_pause_and_resume(cli: Cli) -> None:
    schedule = added(cli, "look", "--name", "a", "--every", "1h")
    assert "paused" in cli("schedule", "pause", "a").out
    assert "paused" in cli("schedule", "list").out
    (after,) = cli("schedule", "list", "--json").lines
    assert after["enabled"] is False
    assert "next at" in cli("schedule", "resume", schedule["scheduleId"]).out


def test_schedules_one_in_a_session_takes_its_agent(cli: Cli, server: ServerProcess) -> None:
    session = server.create(cli.workspace, mode="work")
    schedule = added(cli, "look", "--name", "here", "--in", "10m", "--session", session)
    assert schedule["target"] == {"sessionId": session} and schedule["profile"] == "default"
    listed = cli("schedule", "list", "--session", session, "--json").lines
    assert [each["name"] for each in listed] == ["here"]


def test_schedules_run_of_a_busy_session_waits_there_for_the_server_that_stays(
    cli: Cli, server: ServerProcess
) -> None:
    session = server.create(cli.workspace, mode="work")
    added(cli, "look", "--name", "here", "--in", "10m", "--session", session)
    server.call("event/subscribe", scope={"kind": "session", "id": session})
    server.prompt(session, "hang")
    server.told(lambda e: e["type"] == "turn_started")
    waits = cli("schedule", "run", "here")
    assert waits.code == 0 and "waits in session" in waits.out
    server.call("session/cancel", sessionId=session)
    # the command's server is gone: the one that stays takes up what it had accepted
    server.told(
        lambda e: e["type"] == "turn_started" and e["data"]["trigger"]["kind"] == "schedule"
    )
    server.wait(session)
    assert types(server.events(session)).count("schedule_fired") == 1
    again = cli("schedule", "run", "here")
    assert again.code == 0


def test_schedules_preview_before_there_is_one_or_a_store(cli: Cli) -> None:
    previewed = ("schedule", "preview", "--cron", "0 12 29 2 *", "-n", "2", "--json")
    times = cli(*previewed).lines
    assert len(times) == 2 and times[0].endswith("-02-29T12:00:00.000Z")
    never = cli("schedule", "preview", "--cron", "0 0 30 2 *")
    assert never.code == 2 and "never comes" in never.err
    shown = cli("schedule", "preview", "--cron", "0 2 * * *", "--zone", "Asia/Kolkata", "-n", "1")
    assert shown.out.endswith(" 02:00:00 IST\n")


def test_schedules_list_says_why_each_fires_no_more(cli: Cli) -> None:
    added(cli, "hello", "--name", "once", "--every", "1h", "--max-fires", "1")
    added(cli, "break", "--name", "bad", "--every", "1h", "--max-failures", "1")
    added(cli, "look", "--name", "still", "--every", "1h", "--paused")
    assert (cli("schedule", "run", "once").code, cli("schedule", "run", "bad").code) == (0, 1)
    listed = cli("schedule", "list").out.splitlines()
    for name, state in (("once", "ended"), ("bad", "failed"), ("still", "paused")):
        (row,) = [each for each in listed if each.rstrip().endswith(name)]
        assert f" {state} " in row
    assert "late if missed" not in cli("schedule", "show", "still").out


def test_schedules_a_time_that_no_server_was_there_for_is_told_as_passed(cli: Cli) -> None:
    added(cli, "look", "--name", "late", "--in", "1h")
    assert "no server was there" not in cli("schedule", "show", "late").out
    with closing(connect(cli.environment["CALLBOARD_STORE"])) as store, store:
        store.execute("UPDATE schedules SET next_at = '2001-01-02T00:00:00.000Z'")
    assert " due 2001-01-0" in cli("schedule", "list").out
    shown = cli("schedule", "show", "late").out
    assert "no server was there" in shown and "late if missed" in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "x"), "exactly one of"),
        (("add", "x", "--in", "1h", "--every", "1h"), "exactly one of"),
        (("add", "x", "--in", "soon"), "no span of time"),
        (("add", "x", "--at", "noon"), "no time"),
        (("add", "x", "--every", "1h", "--zone", "UTC"), "--zone goes with --cron"),
        (("add", "x", "--every", "1h", "--session", "a", "--cwd", "."), "exclude each other"),
        (("show", "nothing"), "no schedule begins with"),
        (("remove", ""), "no schedule was named"),
    ],
)
def test_schedules_what_a_command_cannot_do_is_said_with_the_way_out(
    cli: Cli, server: ServerProcess, arguments: tuple[str, ...], said: str
) -> None:
    result = cli("schedule", *arguments)
    assert result.code == 2 and said in result.err and "Traceback" not in result.err


def test_schedules_what_the_server_refuses_is_said_with_the_way_out(cli: Cli) -> None:
    for wrong, said in (
        (("--cron", "nonsense"), "five or six"),
        (("--cron", "0 9 * * *", "--zone", "Mars/Olympus"), "no time zone"),
        (("--at", "2001-01-01T00:00Z"), "past"),
        (("--every", "1h", "--profile", "nobody"), "there is no profile"),
    ):
        result = cli("schedule", "add", "x", *wrong)
        assert result.code in (1, 2) and said in result.err


def test_schedules_nothing_of_a_prompt_reaches_the_terminal_as_a_command(cli: Cli) -> None:
    added(cli, f"look {HOSTILE}", "--name", "a", "--every", "1h")
    shown = cli("schedule", "show", "a").out
    assert "look" in shown
    assert not any(each in shown for each in ("\x1b", "\x07", "\u202e", "\x9b", "\r"))
