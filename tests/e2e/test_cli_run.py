"""``callboard run`` against the real server."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import anyio
import psutil
import pytest
from cli_harness import Cli, interrupt, read_until

from callboard_client import Client
from callboard_rpc.convert import structure
from callboard_rpc.events import Event, TurnFinished


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    harness = Cli(tmp_path)
    yield harness
    harness.close()


def test_an_answer_is_shown_with_its_end_and_exit_code_0(cli: Cli) -> None:
    result = cli("run", "hello")
    assert (result.code, result.err) == (0, "")
    assert "A thought." in result.out
    assert result.out.count("You said: hello.") == 1
    assert "completed" in result.out.splitlines()[-1]
    assert "1,200 tokens in, 34 out" in result.out


def test_json_is_the_events_of_the_wire_and_nothing_else(cli: Cli) -> None:
    events = [structure(line, Event) for line in cli.json("run", "hello")]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert events[0].type == "session_created"
    assert isinstance(events[-1].data, TurnFinished)
    assert events[-1].data.final_text == "You said: hello."


def test_the_prompt_can_come_from_stdin(cli: Cli) -> None:
    result = cli("run", "-", stdin="from a pipe\nin two lines")
    assert "You said: from a pipe\nin two lines." in result.out


def test_bytes_that_are_no_text_are_replaced(cli: Cli) -> None:
    process = cli.start("run", "-", stdin=subprocess.PIPE, text=False)
    out, err = process.communicate(b"caf\xe9 \x00 \xed\xa0\x80", timeout=60)
    assert (process.returncode, err) == (0, b"")
    assert "You said: caf\ufffd" in out.decode()


def test_a_prompt_of_megabytes_arrives_whole(cli: Cli) -> None:
    events = cli("run", "-", "--json", stdin="x" * 3_000_000 + " only read this").lines
    prompt = next(event for event in events if event["type"] == "message")
    assert prompt["data"]["content"][0]["text"].endswith(" only read this")


def test_a_prompt_that_begins_with_a_dash_goes_behind_two(cli: Cli) -> None:
    assert "You said: -v." in cli("run", "--", "-v").out


def test_a_failed_turn_is_exit_code_1_and_says_why(cli: Cli) -> None:
    result = cli("run", "break")
    assert result.code == 1
    assert result.out.count("the model broke here") == 1
    assert "failed" in result.out.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "  "], "the prompt is empty"),
        (["run"], "run needs PROMPT"),
        (["run", "x", "--no-such-option"], "no-such-option"),
        (["run", "x", "--approve", "maybe"], "maybe"),
        (["run", "x", "--cwd", "/no/such/folder"], "/no/such/folder"),
        (["run", "x", "--timeout", "0"], "--timeout"),
        (["run", "x", "--max-turns", "-1"], "--max-turns"),
        (["run", "x", "--timeout", "inf"], "--timeout"),
        (["run", "x", "--max-cost", "nan"], "--max-cost"),
        (["sessions", "list", "--limit", "0"], "--limit"),
        (["tail", "x", "--lines", "1000"], "--lines"),
        (["run", "x", "--model", "nobody/nothing"], "nobody"),
        (["run", "x", "--profile", "nobody"], "nobody"),
        (["run", "x", "--session", ""], "no session was named"),
        (["run", "x", "--session", "zzzz"], "no session begins with 'zzzz'"),
        (["run", "x", "--session", "ses_" + "0" * 26], "no session begins with"),
        (["run", "x", "--session", "a", "--cwd", "."], "exclude each other"),
        (["run", "x", "--session", "a", "--continue"], "exclude each other"),
        (["run", "x", "--continue", "--profile", "p"], "--profile is for a new session"),
        (["rules", "list", "--all", "--cwd", "."], "exclude each other"),
        (["rules", "remove", ""], "no rule was named"),
        (["approvals", "answer", " ", "1"], "no pending approval was named"),
        (["no-such-command"], "no-such-command"),
    ],
)
def test_bad_input_is_exit_code_2_names_it_and_shows_no_traceback(
    cli: Cli, arguments: list[str], said: str
) -> None:
    result = cli(*arguments)
    assert result.code == 2
    assert said in result.err
    assert "Traceback" not in result.err + result.out
    assert result.out == ""
    assert result.err.startswith("callboard: ")
    assert "╭" not in result.err


def test_what_does_not_count_in_the_configuration_is_told_on_stderr(cli: Cli) -> None:
    folder = cli.home / ".config" / "callboard"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('modle = "x/y"\n')
    (cli.workspace / ".callboard").mkdir()
    (cli.workspace / ".callboard" / "config.toml").write_text("approvals = \n")
    result = cli("run", "hello", "--json")
    assert result.code == 0
    assert "config.toml:1: modle: is no setting; did you mean model?" in result.err
    assert f"{cli.workspace}/.callboard/config.toml:1: is not valid TOML" in result.err
    assert result.lines


def test_why_the_built_in_script_answers_is_told(cli: Cli) -> None:
    cli.environment |= {"CALLBOARD_MODEL": "", "OPENAI_BASE_URL": "localhost:1/v1"}
    result = cli("run", "hello")
    assert result.code == 0
    assert "! scripted/demo answers: " in result.err
    assert "OPENAI_BASE_URL must start with http://" in result.err


def test_an_agent_that_is_a_program_of_its_own_needs_no_model(cli: Cli) -> None:
    cli.environment |= {"CALLBOARD_MODEL": ""}
    agents = cli.home / ".config" / "callboard" / "agents"
    agents.mkdir(parents=True)
    (agents / "gone.md").write_text("---\nkind: acp\ncommand: [no-such-agent]\n---\n")
    result = cli("run", "hello", "--profile", "gone")
    assert result.code == 1
    assert "no-such-agent" in result.out + result.err
    assert "scripted/demo answers" not in result.err
    cli.environment |= {"PATH": str(cli.home)}
    result = cli("run", "hello", "--profile", "gemini")
    assert result.code == 2
    assert "its program gemini, which is not on the PATH" in result.err
    assert "scripted/demo answers" not in result.err


def test_a_model_of_ours_is_refused_for_an_agent_that_has_its_own(cli: Cli) -> None:
    agents = cli.home / ".config" / "callboard" / "agents"
    agents.mkdir(parents=True)
    (agents / "gone.md").write_text("---\nkind: acp\ncommand: [no-such-agent]\n---\n")
    refused = cli("run", "hello", "--profile", "gone", "--model", "scripted/demo")
    assert refused.code == 2
    assert "models of its own" in refused.err and "--option model=NAME" in refused.err
    assert cli("sessions", "list").out.startswith("There are no sessions here")
    assert "--empty" not in cli("run", "--help").out


def test_words_without_quotes_are_told_to_go_in_quotes(cli: Cli) -> None:
    result = cli("run", "mend", "it")
    assert result.code == 2
    assert "goes in quotes" in result.err


def test_without_a_terminal_ask_denies_says_so_and_exits_with_3(cli: Cli) -> None:
    result = cli("run", "write a file")
    assert result.code == 3
    assert result.out.count("no terminal to ask on") == 1
    told = result.out.split("The tool said: ")[1]
    assert told.startswith("Not allowed: nobody could be asked, because this run has no terminal.")
    assert "person" not in result.out
    assert (
        result.out.count("nobody could be asked") == 2
    )  # to the person, and what the model repeats
    assert not (cli.workspace / "made.txt").exists()


def test_deny_refuses_and_the_model_is_told(cli: Cli) -> None:
    result = cli("run", "write a file", "--approve", "deny")
    assert result.code == 3
    assert "The tool said: " in result.out
    assert not (cli.workspace / "made.txt").exists()


def test_allow_approves_once_and_shows_what(cli: Cli) -> None:
    result = cli("run", "write a file", "--approve", "allow")
    assert result.code == 0
    assert (cli.workspace / "made.txt").read_text() == "made by a test\n"
    assert result.out.count("+made by a test") == 1
    (cli.workspace / "made.txt").unlink()
    assert cli("run", "write a file").code == 3  # it was allowed once


def test_rule_allows_what_a_standing_rule_allows_and_denies_the_rest(cli: Cli) -> None:
    assert cli("run", "write a file", "--approve", "rule").code == 3

    async def add_rule() -> None:
        async with Client.start(env=cli.environment) as client:
            await client.approvals.add_rule("global", "allow", "write_file")

    anyio.run(add_rule)
    result = cli("run", "write a file", "--approve", "rule")
    assert result.code == 0
    assert (cli.workspace / "made.txt").exists()
    assert "?" not in result.out


def test_json_stays_clean_while_approvals_are_decided(cli: Cli) -> None:
    result = cli("run", "write a file", "--json")
    assert result.code == 3
    assert "no terminal to ask on" in result.err
    types = [structure(line, Event).type for line in result.lines]
    assert types.count("approval_decision") == 1


def test_a_session_goes_on_by_the_beginning_of_its_id(cli: Cli) -> None:
    session = cli.session()
    events = cli.json("run", "more", "--session", session[:20])
    assert {event["sessionId"] for event in events} == {session}
    assert "session_created" not in {event["type"] for event in events}


def test_continue_goes_on_with_the_session_of_the_folder_in_which_something_happened_last(
    cli: Cli, tmp_path: Path
) -> None:
    first, second = cli.session(), cli.session()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    cli.session("x", "--cwd", str(elsewhere))
    assert cli.session("more", "-c") == second
    assert cli.session("x", "--session", first) == first
    assert cli.session("more", "--continue", "--cwd", str(cli.workspace)) == first
    assert len(cli.json("sessions", "list")) == 3


def test_continue_in_a_folder_without_a_session_says_so_and_begins_none(cli: Cli) -> None:
    result = cli("run", "x", "--continue")
    assert (result.code, result.out) == (2, "")
    assert f"there is no session in {cli.workspace} to go on with" in result.err
    assert cli.json("sessions", "list") == []


@pytest.mark.parametrize("model", ["nope/x", "gpt", "openai/x", "scripted/no-such-file"])
def test_a_model_of_the_environment_that_cannot_be_used_is_named_before_a_session_is_made(
    cli: Cli, model: str
) -> None:
    session = cli.session()
    cli.environment["CALLBOARD_MODEL"] = model
    for arguments in (["run", "x"], ["run", "x", "--continue"]):
        result = cli(*arguments)
        assert (result.code, result.out) == (2, "")
        assert f"{model} (from the environment variable CALLBOARD_MODEL)" in result.err
    assert [each["sessionId"] for each in cli.json("sessions", "list")] == [session]
    assert len(cli.json("sessions", "show", session)[0]["turns"]) == 1


def test_an_agent_that_brings_its_own_model_needs_none_of_the_environment(cli: Cli) -> None:
    agents = cli.home / ".config" / "callboard" / "agents"
    agents.mkdir(parents=True)
    model = cli.environment["CALLBOARD_MODEL"]
    (agents / "own.md").write_text(f"---\nmodel: {model}\n---\nBe brief.\n")
    cli.environment["CALLBOARD_MODEL"] = "nope/x"
    assert cli("run", "hello", "--profile", "own").code == 0


def test_a_turn_that_failed_after_every_attempt_ends_with_the_way_out(cli: Cli) -> None:
    result = cli("run", "overloaded")
    assert result.code == 1
    assert "asked 4 times. Try again later, or choose another model." in result.out


def test_a_beginning_that_fits_several_sessions_lists_them(cli: Cli) -> None:
    first, second = cli.session(), cli.session()
    result = cli("run", "x", "--session", first[:5])
    assert result.code == 2
    assert "2 sessions begin with" in result.err
    for session in (first, second):
        assert session.removeprefix("ses_")[:8] in result.err


def test_a_time_limit_is_exit_code_124(cli: Cli) -> None:
    result = cli("run", "hang", "--timeout", "0.5")
    assert result.code == 124
    assert "timed out" in result.out


def test_ctrl_c_cancels_the_turn_and_waits_for_its_end(cli: Cli) -> None:
    process = cli.start("run", "hang")
    shown = read_until(process, "I begin")
    interrupt(process)
    rest, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "")
    assert "cancelled" in rest.splitlines()[-1]
    session = shown.split()[1]
    assert cli.json("sessions", "show", session)[0]["turns"][0]["state"] == "cancelled"


def test_a_second_ctrl_c_ends_everything_at_once(cli: Cli) -> None:
    process = cli.start("run", "hang")
    read_until(process, "I begin")
    children = psutil.Process(process.pid).children(recursive=True)
    assert children
    interrupt(process)
    interrupt(process)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert psutil.wait_procs(children, timeout=10)[1] == []


def test_a_server_that_is_killed_leaves_the_session_named_and_how_it_goes_on(cli: Cli) -> None:
    process = cli.start("run", "hang")
    shown = read_until(process, "I begin")
    session = re.search(r"ses_[0-9a-z]+", shown)
    assert session is not None
    (server,) = psutil.Process(process.pid).children()
    server.kill()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert f"session {session[0]}: " in err
    assert "signal 9" in err
    assert f'`callboard run --session {session[0]} "..."` goes on' in err
    assert f"`callboard agents list {session[0]}`" in err
    assert "callboard agents continue" in err
    assert "doctor" not in err


def test_a_killed_command_leaves_no_server(cli: Cli) -> None:
    process = cli.start("run", "hang")
    read_until(process, "I begin")
    children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.communicate(timeout=20)
    assert psutil.wait_procs(children, timeout=20)[1] == []


def test_what_a_model_writes_cannot_command_the_terminal(cli: Cli) -> None:
    result = cli("run", "hostile")
    assert result.code == 0
    assert "clean text end" in result.out
    for char in "\x1b\x07\x9b\u202e":
        assert char not in result.out
    broken = cli("run", "break")
    assert "\x1b" not in broken.out + broken.err


def test_modules_of_the_workspace_are_not_imported(cli: Cli) -> None:
    for name in ("callboard", "json", "orjson", "anyio", "sitecustomize"):
        (cli.workspace / f"{name}.py").write_text("raise SystemExit('hijacked')\n")
    assert cli("run", "hello").code == 0


def test_a_reader_that_goes_away_is_no_fault(cli: Cli) -> None:
    process = cli.start("run", "long")
    read_until(process, "many words")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert (process.wait(timeout=30), process.stderr.read()) == (141, "")


def test_a_locale_without_unicode_still_gets_an_answer(cli: Cli) -> None:
    cli.environment["PYTHONIOENCODING"] = "ascii"
    result = cli("run", "naïve ✓ 漢")
    assert result.code == 0
    assert "You said: na?ve" in result.out


def test_the_store_can_be_chosen(cli: Cli, tmp_path: Path) -> None:
    other = tmp_path / "other" / "log.db"
    assert cli("run", "hello", "--store", str(other)).code == 0
    assert other.exists()
    assert cli("--store", str(other), "sessions", "list", "--json").lines
    assert "there is no store at" in cli("sessions", "list").err


def test_a_store_that_is_none_is_a_line_and_stays_as_it_is(cli: Cli, tmp_path: Path) -> None:
    store = tmp_path / "notes.txt"
    store.write_text("these are my notes, not a database\n" * 100)
    result = cli("run", "hello", "--store", str(store))
    assert result.code == 1
    assert result.out == ""
    assert "Traceback" not in result.err
    assert str(store) in result.err
    assert store.read_text() == "these are my notes, not a database\n" * 100


def test_serve_takes_the_flags_of_editors_and_loads_nothing_of_the_terminal(cli: Cli) -> None:
    cli.command = [*cli.command[:1], "-X", "importtime", *cli.command[1:]]
    process = cli.start(
        "serve", "--stdio", "--clientProcessId=1", "--framing", "ndjson", stdin=subprocess.PIPE
    )
    hello = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n'
    out, err = process.communicate(hello, timeout=30)
    assert '"protocolVersion"' in out
    loaded = {line.rpartition("|")[2].strip() for line in err.splitlines() if "import time" in line}
    assert "callboard.rpc.serve" in loaded
    for module in ("cyclopts", "rich", "callboard_client", "pygls"):
        assert module not in loaded
