"""``callboard sessions``, ``tail``, ``doctor``, ``version`` and ``demo`` against the real server."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_harness import Cli, Terminal, interrupt, read_until


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    harness = Cli(tmp_path)
    yield harness
    harness.close()


def test_list_shows_sessions_newest_first_and_whole_ids(cli: Cli) -> None:
    first = cli.session("one", "--title", "The \x1b[31mfirst")
    second = cli.session("two")
    ids = [session["sessionId"] for session in cli.json("sessions", "list")]
    assert ids == [second, first]
    shown = cli("sessions", "list").out
    assert first in shown
    assert second in shown
    assert "The first" in shown
    assert "\x1b" not in shown


def test_list_can_be_limited_to_a_folder_and_a_number(cli: Cli, tmp_path: Path) -> None:
    cli.session()
    other = tmp_path / "other"
    other.mkdir()
    session = cli.session("x", "--cwd", str(other))
    found = cli.json("sessions", "list", "--cwd", str(other))
    assert [each["sessionId"] for each in found] == [session]
    assert len(cli.json("sessions", "list", "--limit", "1")) == 1
    assert "there are more" in cli("sessions", "list", "--limit", "1").out


def test_show_tells_all_that_was_said_and_done(cli: Cli) -> None:
    session = cli.session("hello", "--title", "Greeting")
    cli("run", "write a file", "--session", session, "--approve", "allow")
    shown = cli("sessions", "show", session)
    assert shown.code == 0
    for part in (
        session,
        "Greeting",
        "› hello",
        "You said: hello.",
        "+made by a test",
        "allowed by",
    ):
        assert part in shown.out
    (whole,) = cli.json("sessions", "show", session)
    assert whole["session"]["sessionId"] == session
    assert [turn["state"] for turn in whole["turns"]] == ["completed", "completed"]


def test_search_finds_what_was_said(cli: Cli) -> None:
    session = cli.session("the quick brown platypus")
    cli.session("something else")
    hits = cli.json("sessions", "search", "platypus")
    assert {hit["sessionId"] for hit in hits} == {session}
    shown = cli("sessions", "search", "platypus")
    assert session in shown.out
    assert "platypus" in shown.out
    nothing = cli("sessions", "search", "wombat")
    assert (nothing.code, nothing.out) == (0, "Nothing was found.\n")
    assert cli("sessions", "list", "--query", "nowhere").out.startswith("No session fits")
    assert cli("sessions", "search", " ").code == 2


def test_export_writes_every_event_to_stdout_or_a_new_file(cli: Cli, tmp_path: Path) -> None:
    session = cli.session("hello")
    exported = cli("sessions", "export", session)
    _, *events, _ = [json.loads(line) for line in exported.out.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert "turn_finished" in {event["type"] for event in events}
    target = tmp_path / "session.md"
    arguments = ["sessions", "export", session, "--format", "markdown", "--output", str(target)]
    assert cli(*arguments).code == 0
    assert "You said: hello." in target.read_text()
    again = cli(*arguments)
    assert again.code == 2
    assert str(target) in again.err


def test_the_name_of_the_file_says_the_format_unless_told_otherwise(
    cli: Cli, tmp_path: Path
) -> None:
    session = cli.session()
    for name, arguments, start in (
        ("a.md", [], "# hello\n"),
        ("b.jsonl", [], "{"),
        ("c", [], "{"),
        ("d.md", ["--format", "jsonl"], "{"),
        ("e.jsonl", ["--format", "markdown"], "# hello\n"),
    ):
        target = tmp_path / name
        assert cli("sessions", "export", session, "-o", str(target), *arguments).code == 0
        assert target.read_text().startswith(start)


def test_markdown_tells_what_it_is_who_spoke_what_was_allowed_and_what_each_call_found(
    cli: Cli,
) -> None:
    for name in ("one", "two"):
        (cli.workspace / f"{name}.txt").write_text(f"the text of {name}\n")
    session = cli.session("two at once", "--title", "A *title*")
    cli("run", "write a file", "-c", "--approve", "allow")
    text = cli("sessions", "export", session, "--format", "markdown").out
    head, *parts = text.split("\n## ")
    assert head.startswith("# A \\*title\\*\n")
    assert f"- Folder: {cli.workspace}" in head
    assert "- Begun: 20" in head
    assert "- Model: scripted/" in head
    assert [part.partition("\n")[0] for part in parts] == [
        "Person", "Agent", "Agent", "Person", "Agent", "Agent",
    ]  # fmt: skip
    for name in ("one", "two"):
        label, _, rest = parts[1].partition(f"{name}.txt** (read_file)\n")
        assert rest, label
        assert f"the text of {name}" in rest[:80]
    assert "> Approval: Create made.txt: allowed (allow_once) by callboard run." in parts[4]
    assert "```diff\n--- /dev/null" in parts[4]
    assert "+made by a test\n```" in parts[4]
    assert text.count("*The turn ended: completed · ") == 2
    assert "1,200 tokens in, 34 tokens out" in text


@pytest.mark.parametrize(
    "arguments",
    [
        ["sessions", "list"],
        ["sessions", "show", "x"],
        ["sessions", "search", "x"],
        ["sessions", "export", "x"],
        ["sessions", "delete", "x", "--yes"],
        ["tail", "x"],
        ["rules", "list"],
        ["rules", "remove", "x"],
        ["approvals", "list"],
        ["approvals", "show", "x"],
        ["approvals", "answer", "x", "1"],
    ],
)
def test_a_look_at_a_store_that_is_not_there_says_so_and_makes_none(
    cli: Cli, arguments: list[str]
) -> None:
    result = cli(*arguments)
    assert (result.code, result.out) == (2, "")
    assert f"there is no store at {cli.environment['CALLBOARD_STORE']}\n" in result.err
    assert not Path(cli.environment["CALLBOARD_STORE"]).parent.exists()


def test_the_store_that_is_not_there_is_the_one_that_was_chosen(cli: Cli, tmp_path: Path) -> None:
    other = tmp_path / "other" / "log.db"
    for arguments in (
        ["sessions", "list", "--store", str(other)],
        ["--store", str(other), "rules", "list"],
    ):
        assert f"there is no store at {other}\n" in cli(*arguments).err
    folder = tmp_path / "folder"
    folder.mkdir()
    assert f"there is no store at {folder}/callboard.db\n" in (
        cli("approvals", "list", "--store", str(folder)).err
    )
    assert list(folder.iterdir()) == []
    assert not other.parent.exists()


def test_delete_asks_unless_told_and_deletes_for_good(cli: Cli) -> None:
    session = cli.session()
    refused = cli("sessions", "delete", session)
    assert refused.code == 2
    assert "--yes" in refused.err
    assert cli("sessions", "delete", session, "--yes").code == 0
    assert cli.json("sessions", "list") == []
    assert "There are no sessions here" in cli("sessions", "list").out
    assert cli("sessions", "show", session).code == 2


def test_delete_resolves_every_name_before_it_deletes_any(cli: Cli) -> None:
    session = cli.session()
    assert cli("sessions", "delete", session, "zzzz", "--yes").code == 2
    assert [each["sessionId"] for each in cli.json("sessions", "list")] == [session]


def test_tail_shows_the_end_and_follows_another_process_until_ctrl_c(cli: Cli) -> None:
    session = cli.session("hello")
    process = cli.start("tail", session, "--json", "--lines", "2")
    assert process.stdout is not None
    last = [json.loads(process.stdout.readline()) for _ in range(2)]
    assert last[1]["type"] == "turn_finished"
    assert last[0]["seq"] + 1 == last[1]["seq"]
    live = cli.json("run", "more", "--session", session)
    followed = [json.loads(process.stdout.readline()) for _ in live]
    assert followed == live
    interrupt(process)
    _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, "")


def test_tail_of_a_session_that_is_deleted_ends(cli: Cli) -> None:
    session = cli.session("hello")
    process = cli.start("tail", session)
    shown = read_until(process, "Ctrl-C ends this\n")
    assert shown.endswith(
        "\nwaiting for what happens next (the session is idle); Ctrl-C ends this\n"
    )
    cli("sessions", "delete", session, "--yes")
    out, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, "")
    assert "deleted" in out


def test_doctor_says_what_is_found_and_fails_only_for_what_is_needed(
    cli: Cli, tmp_path: Path
) -> None:
    checks = {check["name"]: check for check in cli.json("doctor")}
    assert checks["Python"]["status"] == "ok"
    assert "scripted" in checks["Model"]["found"]
    broken = tmp_path / "broken.db"
    broken.write_text("this is no database " * 100)
    result = cli("doctor", "--store", str(broken))
    assert result.code == 1
    assert "✗ Store" in result.out


def test_version_needs_no_server(cli: Cli) -> None:
    result = cli("version")
    assert result.code == 0
    assert result.out.startswith("callboard ")
    assert not (cli.home.parent / "store").exists()


def test_the_demo_repairs_the_sample_and_says_what_next(cli: Cli) -> None:
    cli.environment["CALLBOARD_MODEL"] = "scripted/demo"
    result = cli("demo")
    assert (result.code, result.err) == (0, "")
    for part in (
        "The test in this folder fails.",
        "approved by the demo",
        "✓ the test passes",
        "scripted/demo",
        "OPENAI_API_KEY",
        cli.environment["CALLBOARD_STORE"],
    ):
        assert part in result.out
    command = next(line for line in result.out.splitlines() if "callboard sessions show" in line)
    session = command.split()[-1]
    assert cli("sessions", "show", session).code == 0
    folder = cli.json("sessions", "show", session)[0]["session"]["cwd"]
    assert not Path(folder).exists()


def test_sessions_are_put_away_and_brought_back(cli: Cli) -> None:
    kept, away = cli.session("one"), cli.session("two")
    assert cli("sessions", "archive", away).out == f"archived {away}\n"
    assert [each["sessionId"] for each in cli.json("sessions", "list")] == [kept]
    assert [each["sessionId"] for each in cli.json("sessions", "list", "--archived")] == [away]
    refused = cli("run", "three", "--session", away)
    assert refused.code == 2
    assert "callboard sessions unarchive" in refused.err
    assert cli("sessions", "unarchive", away).out == f"unarchived {away}\n"
    assert cli("run", "three", "--session", away).code == 0


def test_a_narrow_terminal_cuts_titles_and_folders_but_no_id_status_or_time(cli: Cli) -> None:
    session = cli.session("a prompt of many words " * 5)
    terminal = Terminal(cli, "sessions", "list", columns=80)
    assert terminal.finish() == 0
    row = next(each for each in terminal.shown.splitlines() if session in each)
    assert re.search(r"  idle  +\d{4}-\d\d-\d\d \d\d:\d\d  a p.*…  /", row)
    assert len(row) <= 80


@pytest.mark.parametrize(
    ("arguments", "said", "way_out"),
    [
        (["nonsense"], "there is no command 'nonsense'", "`callboard --help`"),
        (
            ["sessions", "nope"],
            "there is no command 'sessions nope'",
            "`callboard sessions --help`",
        ),
        (["sessions", "fork"], "sessions fork needs SESSION", "`callboard sessions fork --help`"),
        (["run", "hi", "--session"], "--session needs a value", "`callboard run --help`"),
        (["run", "--nope", "hi"], "unknown option: --nope", "`callboard run --help`"),
        (["run", "hi", "--approve", "x"], "--approve", "`callboard run --help`"),
    ],
)
def test_a_command_that_is_wrong_is_told_so_and_where_help_is(
    cli: Cli, arguments: list[str], said: str, way_out: str
) -> None:
    result = cli(*arguments)
    assert (result.code, result.out) == (2, "")
    assert said in result.err
    assert way_out in result.err


def test_the_help_of_serve_tells_its_options(cli: Cli) -> None:
    shown = cli("serve", "--help").out
    assert "--framing" in shown
    assert "--store" in shown
