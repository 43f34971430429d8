"""``callboard group``: the board, as it is and as it changes, and what a person does at it from any terminal."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from cli_harness import Cli, Terminal, interrupt, read_until
from rich.cells import cell_len

from harness.process import ServerProcess

SCENE = """
rules:
  - when: {last_tool: group_task}
    answer: [{say: "{{last_tool}}"}]
  - when: {last_user: {regex: "^hang$"}, step: 0}
    answer: [{say: "I begin."}, {hang: true}]
  - when: {last_user: {regex: "claim (tsk_[a-z0-9]+)"}, step: 0}
    answer: [{call: {tool: group_task, arguments: {op: claim, task_id: "{{match.1}}"}}}]
  - when: {last_user: {regex: "make a task"}, step: 0}
    answer: [{call: {tool: group_task, arguments: {op: create, title: "weigh it"}}}]
  - when: {last_user: {regex: "what is there"}, step: 0}
    answer: [{call: {tool: group_task, arguments: {op: list}}}]
  - when: {last_user: {regex: "to the root"}, step: 0}
    answer: [{call: {tool: group_message, arguments: {op: send, to: root, text: "\\e[2JI have\\nfound it."}}}]
default:
  - say: "Done."
"""
HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202eevil\r\x9b1m"
Serve = Callable[..., ServerProcess]


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    cli = Cli(tmp_path)
    (tmp_path / "scenario.yaml").write_text(SCENE)
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


@pytest.fixture
def root(cli: Cli, server: ServerProcess) -> str:
    return server.create(cli.workspace, mode="work")


def made(server: ServerProcess, root: str, title: str, *after: str, **more: Any) -> str:
    params = {"rootId": root, "title": title, "dependencies": list(after), **more}
    return server.call("group/taskCreate", **params)["task"]["taskId"]


def do(server: ServerProcess, verb: str, root: str, task_id: str, **more: Any) -> None:
    server.call(f"group/task{verb}", rootId=root, taskId=task_id, **more)


def agent(server: ServerProcess, root: str, name: str, message: str = "go") -> str:
    params = {"parentId": root, "name": name, "message": message}
    agent_id = server.call("agent/spawn", **params)["agent"]["agentId"]
    server.wait(agent_id)
    return agent_id


def tasks(server: ServerProcess, root: str) -> dict[str, dict[str, Any]]:
    listed = server.call("group/taskList", rootId=root, status="all")["data"]
    return {task["title"]: task for task in listed}


def test_the_board_shows_tasks_by_state_with_owners_and_what_is_in_the_way(
    cli: Cli, server: ServerProcess, root: str
) -> None:
    result = cli("group", root)
    assert (result.code, result.err) == (0, "")
    assert "no task board yet" in result.out
    one = made(server, root, "parse", expectedPaths=["src/a.py"])
    two = made(server, root, "lex", expectedPaths=["./SRC/a.py"])
    three = made(server, root, "join", one, two)
    four = made(server, root, "sing", required=False)
    for title in ("burn", "rest"):
        made(server, root, title)
    known = tasks(server, root)
    worker = agent(server, root, "worker", f"claim {one}")
    do(server, "Claim", root, two)
    do(server, "Start", root, two)
    do(server, "Claim", root, known["burn"]["taskId"])
    do(server, "Block", root, known["burn"]["taskId"], reason="no\nmatches")
    do(server, "Claim", root, known["rest"]["taskId"])
    do(server, "Complete", root, known["rest"]["taskId"], summary="slept well")
    five = made(server, root, "watch it", known["burn"]["taskId"])
    result = cli("group", root.removeprefix("ses_"))
    assert (result.code, result.err) == (0, "")
    lines = [line.strip() for line in result.out.splitlines()]
    assert lines[0].startswith(root)
    assert "workspace" in lines[1]
    assert "7 tasks: 1 ready, 2 waiting, 2 active, 1 blocked, 1 completed" in lines[1]
    assert "5 required tasks not done" in lines[1]
    assert lines[2] == "members  root, worker (completed)"
    heads = [line for line in lines if line.endswith(")") and line.split(" (")[0].isalpha()]
    assert heads == ["ready (1)", "waiting (2)", "active (2)", "blocked (1)", "completed (1)"]
    short = {title: line.split()[0] for line in lines for title in known if f"  {title}" in line}

    def below(title: str) -> tuple[str, list[str]]:
        """The line of a task without its id, and those below it."""
        at = next(n for n, line in enumerate(lines) if line.startswith(f"{short[title]}  {title}"))
        rest: list[str] = []
        for line in result.out.splitlines()[at + 1 :]:
            if not line.startswith("    "):
                break
            rest.append(line.strip())
        return lines[at].removeprefix(short[title]).strip(), rest

    short["watch it"] = next(line.split()[0] for line in lines if line.endswith("watch it"))
    assert below("parse") == ("parse · worker", [
        "! worker is not at work (completed): continue worker, or assign it to another",
        f"! {short['lex']} \"lex\" changes src/a.py, too",
    ])  # fmt: skip
    assert below("lex") == (
        "lex  in progress · root", [f"! {short['parse']} \"parse\" changes src/a.py, too"]
    )  # fmt: skip
    assert below("join") == (
        "join", [f"waits for {short['parse']} \"parse\", {short['lex']} \"lex\""]
    )  # fmt: skip
    assert below("sing") == ("sing  optional", [])
    assert below("burn") == ("burn · root", ["no matches"])
    assert below("rest") == ("rest · root", ["slept well"])
    assert below("watch it") == (
        "watch it", [f"! {short['burn']} \"burn\" is blocked: this never becomes ready by itself"]
    )  # fmt: skip
    for title, task_id in (("parse", one), ("join", three), ("sing", four), ("watch it", five)):
        assert task_id.removeprefix("tsk_").startswith(short[title])
    assert cli.json("group", worker) == [server.call("group/get", rootId=root)]


def test_a_person_drives_a_task_from_the_command_line(
    cli: Cli, server: ServerProcess, root: str
) -> None:
    def run(*arguments: str) -> list[str]:
        result = cli("group", root, *arguments)
        assert (result.code, result.err) == (0, ""), (arguments, result)
        return result.out.split()

    one = run("create", "first thing")[0]
    assert run("create", "second", "--after", one, "--path", "a.py", "--path", "b.py",
               "--optional", "--description", "Know this.")[1:] == ["waiting", "second"]  # fmt: skip
    second = tasks(server, root)["second"]
    assert (second["dependencies"], second["expectedPaths"]) == ([one], ["a.py", "b.py"])
    assert (second["required"], second["description"]) == (False, "Know this.")
    assert run("create", "third", "--after", one, "--after", second["taskId"])
    assert tasks(server, root)["third"]["dependencies"] == [one, second["taskId"]]
    assert run("claim", one) == [one, "claimed", "first", "thing", "·", "root"]
    assert run("release", one) == [one, "ready", "first", "thing"]
    assert run("claim", one)[1] == "claimed"
    assert run("start", one)[1:3] == ["in", "progress"]
    assert run("complete", one, "It works.", "--finding", "f", "--file", "x.py")[1] == "completed"
    done = tasks(server, root)["first thing"]
    assert (done["summary"], done["findings"], done["touchedFiles"]) == (
        "It works.", ["f"], ["x.py"],
    )  # fmt: skip
    two = second["taskId"]
    assert run("claim", two)[1] == "claimed"
    assert run("block", two, "no key")[1] == "blocked"
    agent(server, root, "worker", f"claim {made(server, root, 'other')}")
    assert run("assign", two, "Worker") == [two, "claimed", "second", "·", "worker"]
    assert run("assign", two, "root")[-1] == "root"
    assert run("cancel", two, "--reason", "not needed")[1] == "cancelled"
    assert tasks(server, root)["second"]["reason"] == "not needed"
    assert "cancelled (1)" in cli("group", root).out


def test_all_that_is_known_of_a_task_is_shown(cli: Cli, server: ServerProcess, root: str) -> None:
    one = made(server, root, "one")
    two = made(server, root, "two", one, description="Know\nthis.", required=False,
               expectedPaths=["a.py", "b.py"])  # fmt: skip
    shown = cli("group", root, "show", two)
    assert (shown.code, shown.err) == (0, "")
    lines = [line for line in shown.out.splitlines() if not line.startswith("  c")]
    assert lines == [
        f"{two}  waiting  two",
        " optional  the work is complete without it, too",
        "    about  Know",
        "           this.",
        f"    after  {one}  pending  one",
        "     path  a.py",
        "           b.py",
    ]
    do(server, "Claim", root, one)
    do(server, "Complete", root, one, summary="It works.", findings=["f", "g"], touchedFiles=["x"])
    shown = cli("group", root, "show", one)
    assert [line for line in shown.out.splitlines() if not line.startswith("  c")] == [
        f"{one}  completed  one · root",
        "  summary  It works.",
        "  finding  f",
        "           g",
        "     file  x",
    ]
    assert cli.json("group", root, "show", one) == [tasks(server, root)["one"]]
    assert "no task begins with" in cli("group", root, "show", "zzz").err


def test_the_help_of_a_command_says_how_it_is_written(cli: Cli) -> None:
    for verb, usage in (
        ("create", "group SESSION create [OPTIONS] TITLE"),
        ("assign", "group SESSION assign [OPTIONS] TASK MEMBER"),
        ("messages", "group SESSION messages [OPTIONS]"),
    ):
        assert f"Usage: callboard {usage}\n" in cli("group", "x", verb, "--help").out


def test_a_session_that_is_shown_names_who_did_what_at_its_board(
    cli: Cli, server: ServerProcess, root: str
) -> None:
    agent(server, root, "worker", f"claim {made(server, root, 'parse')}")
    assert cli("group", root, "say", "hello").code == 0
    shown = cli("sessions", "show", root).out
    assert "☐ worker claims: parse\n" in shown
    assert "✉ a person to the group: hello\n" in shown


def test_a_task_is_named_by_the_beginning_of_its_id_where_that_is_one(
    cli: Cli, server: ServerProcess, root: str
) -> None:
    ids = [made(server, root, title) for title in ("one", "two")]
    bare = [task_id.removeprefix("tsk_") for task_id in ids]
    common = next(n for n in range(26) if bare[0][n] != bare[1][n])
    result = cli("group", root, "claim", bare[0][: common + 1].upper())
    assert (result.code, result.out.split()[0]) == (0, ids[0])
    assert cli("group", "claim", root, f"tsk_{bare[1][: common + 1]}").code == 0
    both = cli("group", root, "start", bare[0][:common])
    assert both.code == 2
    assert "2 tasks begin with" in both.err
    none = cli("group", root, "start", "zzzz")
    assert none.code == 2
    assert "no task begins with 'zzzz'" in none.err


def test_messages_are_left_and_read_in_the_place_of_the_root(
    cli: Cli, server: ServerProcess, root: str
) -> None:
    result = cli("group", root, "say", "anybody?")
    assert (result.code, result.out) == (0, "nobody else is in the group, so nobody will read it\n")
    assert cli("group", root, "messages").out == "Nothing was written yet.\n"
    one = agent(server, root, "one", f"claim {made(server, root, 'a')}")
    agent(server, root, "two", f"claim {made(server, root, 'b')}")
    assert cli("group", root, "say", "to all").out == "left for 2 members\n"
    assert cli("group", root, "say", "to one", "--to", "ONE").out == "left for 1 member\n"
    found = cli.json("group", root, "messages", "--of", one)
    assert [(m["text"], m["to"], m["seen"]) for m in found] == [
        ("to all", "group", False), ("to one", "agent", False),
    ]  # fmt: skip
    assert [m["text"] for m in cli.json("group", root, "messages", "--of", one, "-n", "1")] == [
        "to one"
    ]
    server.call("agent/continue", agentId=one, text="to the root")
    server.wait(one)
    result = cli("group", root, "messages")
    head, *text = result.out.splitlines()
    assert head.startswith("one  ") and head.endswith("not read yet")
    assert text == ["  I have", "  found it."], "nothing of it commands the terminal"
    assert "not read yet" not in cli("group", root, "messages", "--of", "one").out


def test_a_run_tells_each_change_of_the_board_once(cli: Cli) -> None:
    result = cli("run", "make a task")
    assert result.code == 0, result.err
    said = [line for line in result.out.splitlines() if "weigh it" in line]
    assert said[0] == "☐ task: weigh it" and "Task board" not in result.out, said
    assert said[1].startswith("pending [tsk_") and len(said) == 2, (
        "the second is what the model says"
    )
    looked = cli("run", "--continue", "what is there")
    assert "✓ Task board: list" in looked.out


def test_what_others_have_written_commands_no_terminal(
    cli: Cli, server: ServerProcess, root: str
) -> None:
    made(server, root, HOSTILE)
    task_id = made(server, root, "two", expectedPaths=[HOSTILE])
    do(server, "Claim", root, task_id)
    do(server, "Block", root, task_id, reason=HOSTILE)
    for arguments in ((), ("show", task_id), ("assign", task_id, "root"), ("create", HOSTILE)):
        result = cli("group", root, *arguments)
        assert result.code == 0
        assert not set(result.out) & set("\x1b\x07\r\x9b\u202e"), arguments


def test_bad_input_is_exit_code_2_and_names_the_way_out(
    cli: Cli, server: ServerProcess, root: str
) -> None:
    one = made(server, root, "one")
    two = made(server, root, "two", one)
    whole = "tsk_" + "0" * 26
    for arguments, words in (
        (("ses_none",), "no session begins with"),
        ((root, "frobnicate"), "no command 'group SESSION frobnicate'"),
        (("--json", root, "claim", one), "right behind the session"),
        ((root, "claim"), "needs TASK"),
        ((root, "claim", ""), "no task was named"),
        ((root, "claim", whole), "`callboard group SESSION` shows the tasks"),
        ((root, "claim", two), f"waits for {one}"),
        ((root, "start", one), "only one that is claimed can be started"),
        ((root, "complete", one, " "), "needs a summary"),
        ((root, "block", one, " "), "needs a reason"),
        ((root, "create", " "), "title that is not blank"),
        ((root, "create", "x", "--after", "tsk_zzz"), "no task begins with"),
        ((root, "create", "x", "--after", one, "--after", one), "named twice"),
        ((root, "assign", one, "nobody"), "no agent begins with"),
        ((root, "say", " "), "blank"),
        ((root, "say", "x" * 4_001), "4001 bytes"),
        ((root, "say", "x", "--to", "root"), "in the place of the root"),
        ((root, "messages", "-n", "0"), "-n"),
    ):
        result = cli("group", *arguments)
        assert (result.code, result.out) == (2, ""), (arguments, result)
        assert words in result.err, (arguments, result.err)
        assert "Traceback" not in result.err
    agent(server, root, "stranger")
    result = cli("group", root, "assign", one, "stranger")
    assert result.code == 2
    assert "who shares the board" in result.err
    assert [t["status"] for t in tasks(server, root).values()] == ["pending", "pending"]
    absent = cli("group", root, "--store", str(cli.home / "none.db"))
    assert absent.code == 2
    assert "there is no store" in absent.err


def test_a_board_that_is_followed_on_a_terminal_is_drawn_anew_as_others_change_it(
    cli: Cli, server: ServerProcess, root: str
) -> None:
    terminal = Terminal(cli, "group", root, "--follow")
    terminal.until("no task board yet")
    one = made(server, root, "parse it")
    terminal.until("ready (1)")
    agent(server, root, "worker", f"claim {one}")
    terminal.until("parse it · worker")
    terminal.until("worker (completed)")
    server.call("agent/spawn", parentId=root, name="other", message="hang")
    assert cli("group", root, "assign", one, "root").code == 0
    terminal.until("parse it · root")
    do(server, "Complete", root, one, summary="all parsed")
    terminal.until("all parsed")
    # each change by itself, with no agent whose status would be a reason to look again
    two = made(server, root, "lex it")
    terminal.until("lex it")
    do(server, "Claim", root, two)
    terminal.until("lex it · root")
    do(server, "Start", root, two)
    terminal.until("lex it  in progress · root")
    made(server, root, "mix it")
    terminal.until("mix it")
    do(server, "Release", root, two)
    terminal.until("2 ready, 1 completed")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.finish() == 0


def test_a_board_on_a_narrow_terminal_is_a_line_for_each_task(
    cli: Cli, server: ServerProcess, root: str
) -> None:
    made(server, root, f"a title of many words {HOSTILE} that goes on and on, to the very end")
    made(server, root, "短い" * 40)
    terminal = Terminal(cli, "group", root, "-f", columns=30)
    terminal.until("ready (2)")
    made(server, root, "last")
    shown = terminal.until("ready (3)")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.finish() == 0
    lines = [line.rstrip() for line in shown.splitlines() if line.strip()]
    assert all(cell_len(line) <= 30 for line in lines), lines
    assert any(line.endswith("…") for line in lines) and "the very end" not in shown
    assert not {"\x07", "\u202e", "\x9b"} & set(shown)


def test_a_board_that_is_followed_into_a_pipe_is_written_again_after_each_change(
    cli: Cli, server: ServerProcess, root: str
) -> None:
    plain = cli.start("group", root, "-f")
    read_until(plain, "no task board yet")
    lines = cli.start("group", root, "--follow", "--json")
    read_until(lines, "}\n")
    made(server, root, "one")
    read_until(plain, "ready (1)")
    assert '"title":"one"' in read_until(lines, "}\n")
    interrupt(lines)
    assert lines.wait(timeout=20) == 0
    server.call("session/delete", sessionId=root)
    out, err = plain.communicate(timeout=30)
    assert (plain.returncode, err) == (0, ""), "the session is gone: nothing more can happen"
    assert out.count("ready (1)") <= 1


def test_following_ends_with_its_server(cli: Cli, server: ServerProcess, root: str) -> None:
    made(server, root, "one")
    process = cli.start("group", root, "--follow")
    read_until(process, "one\n")
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for child in children:
        os.kill(int(child), signal.SIGKILL)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "the server was ended by signal 9" in err and "Traceback" not in err
