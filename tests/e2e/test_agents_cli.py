"""``callboard agents``: the tree, and what a person does with an agent from any terminal."""

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from cli_harness import Cli, Terminal

from harness.process import ServerProcess

SCENE = """
rules:
  - when: {last_user: {regex: "hang"}, step: 0}
    answer: [{say: "I begin."}, {hang: true}]
  - when: {last_user: {regex: "break"}, step: 0}
    answer: [{fail: {kind: modelError, message: "it broke"}}]
  - when: {last_user: {regex: "ask me"}, step: 0}
    answer: [{call: {tool: message, arguments: {to: parent, text: "left or right?"}}}]
  - when: {last_user: {regex: "run it"}, step: 0}
    answer: [{call: {tool: run_command, arguments: {command: "echo ran > ran.txt"}}}]
  - when: {last_tool: run_command}
    answer: [{say: "The command said: {{last_tool}}"}]
  - when: {last_user: {regex: "<agent-report[^>]*>\\\\s*(.*)"}, step: 0}
    answer: [{say: "I was told: {{match.1}}"}]
  - when: {last_user: {regex: "Message|go on"}}
    answer: [{say: "I went on."}]
default:
  - say: "Done."
  - usage: {input_tokens: 1200, output_tokens: 34}
"""
Serve = Callable[..., ServerProcess]


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    cli = Cli(tmp_path)
    (tmp_path / "scenario.yaml").write_text(SCENE)
    yield cli
    cli.close()


@pytest.fixture
def serve(cli: Cli, tmp_path: Path) -> Iterator[Serve]:
    """Starts servers on the store of the commands, as editors do."""
    with ExitStack() as stack:

        def serve(**more: Any) -> ServerProcess:
            environ = {
                "CALLBOARD_STORE": cli.environment["CALLBOARD_STORE"],
                "CALLBOARD_FEATURES": "agents.messaging",
            }
            server = ServerProcess(
                tmp_path, model=cli.environment["CALLBOARD_MODEL"], environ=environ, **more
            )
            return stack.enter_context(server)

        yield serve


def spawned(server: ServerProcess, root: str, name: str, message: str = "go") -> str:
    params = {"parentId": root, "name": name, "message": message}
    agent_id = server.call("agent/spawn", **params)["agent"]["agentId"]
    if message == "go":
        server.wait(agent_id)
    return agent_id


def rooted(server: ServerProcess, cli: Cli) -> str:
    """A root session whose last turn has completed, so that reports wake it."""
    root = server.create(cli.workspace, mode="work")
    server.prompt(root, "hello")
    server.wait(root)
    return root


def test_the_tree_tells_who_does_what_at_what_cost_and_waits_for_what(
    cli: Cli, serve: Serve
) -> None:
    server = serve()
    root = rooted(server, cli)
    assert "It has no agents." in cli("agents", "list", root).out
    one = spawned(server, root, "one")
    two = spawned(server, root, "two", "run it")
    (asked,) = server.wait(two, "attention")["approvals"]
    three = spawned(server, root, "three", "ask me")
    server.call("agent/wait", parentId=root, agentIds=[three])
    server.call("agent/send", agentId=three, text="by the way")
    server.wait(root)
    (question,) = (
        agent["question"]
        for agent in server.call("agent/list", rootId=root)["data"]
        if agent["name"] == "three"
    )
    result = cli("agents", "list", one.removeprefix("ses_"))
    assert (result.code, result.err) == (0, "")
    lines = [line.strip("│├└─ ") for line in result.out.splitlines()]
    assert lines[0].startswith(root)
    (line,) = [line for line in lines if line.startswith("one")]
    assert line == f"one  completed  {one}"
    spent, said = lines[lines.index(line) + 1 :][:2]
    assert "1,200 tokens in, 34 out" in spent and cli.environment["CALLBOARD_MODEL"] in spent
    assert said == "Done."
    assert [line for line in lines if line.startswith("two  running")]
    assert f"? waits for approval {asked['approvalId']}: {asked['title']}" in lines
    assert f"? waits for reply to {question['askId']}: left or right?" in lines
    assert "1 message for its next step" in lines
    found = cli.json("agents", "list", root)
    assert [agent["agentId"] for agent in found] == [one, three, two], "by name"
    server.call("session/close", sessionId=root)


def test_a_message_waits_and_a_continue_works_here_until_the_session_has_heard_of_it(
    cli: Cli, serve: Serve
) -> None:
    server = serve()
    root = rooted(server, cli)
    one = spawned(server, root, "one")
    server.wait(root)
    server.close()
    result = cli("agents", "send", "One", "Message", "--root", root)
    assert (result.code, result.out, result.err) == (0, "left for one\n", "")
    (agent,) = cli.json("agents", "list", root)
    assert agent["queued"] == 1
    result = cli("agents", "continue", "one", "go on", "--root", root.removeprefix("ses_")[:12])
    assert (result.code, result.err) == (0, "")
    lines = [line.strip() for line in result.out.splitlines()]
    assert "one: I went on." in lines
    assert lines.index("I was told: I went on.") > lines.index("one: I went on.")
    (agent,) = cli.json("agents", "list", root)
    assert (agent["agentId"], agent["queued"], agent["status"]) == (one, 0, "completed")
    turns = cli.json("sessions", "show", root)[0]["turns"]
    assert [turn["state"] for turn in turns] == ["completed"] * 3
    failed = cli("agents", "continue", one, "break")
    assert failed.code == 1
    assert "it broke" in failed.out


def test_an_agent_that_another_program_runs_is_told_and_stopped_from_here(
    cli: Cli, serve: Serve
) -> None:
    server = serve()
    root = rooted(server, cli)
    one, two = spawned(server, root, "one", "hang"), spawned(server, root, "two", "hang")
    result = cli("agents", "continue", two, "go on")
    assert (result.code, result.out) == (0, "told to two, which takes it in at its next step\n")
    result = cli("agents", "interrupt", one, "--reason", "enough")
    assert (result.code, result.out) == (0, "one is being stopped\n")
    server.wait(one)
    listed = cli("agents", "list", root)
    assert "stopped: enough" in listed.out
    again = cli("agents", "interrupt", "one", "--root", root)
    assert again.code == 0 and "has ended its turn already" in again.out


def test_who_hears_of_an_agent_that_is_stopped_here_is_seen_through_here(
    cli: Cli, serve: Serve
) -> None:
    server = serve(approvals=False)
    root = rooted(server, cli)
    one = spawned(server, root, "one", "run it")
    server.wait(one, "attention")
    server.close()
    assert cli.json("agents", "list", root)[0]["status"] == "running", "it is parked"
    result = cli("agents", "interrupt", one, "--reason", "enough")
    assert result.code == 0
    assert "I was told: It was stopped: enough" in result.out
    turns = cli.json("sessions", "show", root)[0]["turns"]
    assert [turn["state"] for turn in turns] == ["completed", "completed"]


def test_an_approval_of_a_parked_agent_is_seen_through_to_what_its_session_says(
    cli: Cli, serve: Serve
) -> None:
    server = serve(approvals=False)
    root = rooted(server, cli)
    one = spawned(server, root, "one", "run it")
    (asked,) = server.wait(one, "attention")["approvals"]
    server.close()
    listed = cli("approvals", "list")
    assert "asked by one" in listed.out
    result = cli("approvals", "answer", asked["approvalId"], "allow_once")
    assert (result.code, result.err) == (0, "")
    assert (cli.workspace / "ran.txt").exists()
    assert "I was told: The command said" in result.out
    turns = cli.json("sessions", "show", root)[0]["turns"]
    assert [turn["state"] for turn in turns] == ["completed", "completed"]


def test_an_agent_is_closed_and_takes_nothing_more(cli: Cli, serve: Serve) -> None:
    server = serve()
    root = rooted(server, cli)
    one = spawned(server, root, "one", "hang")
    result = cli("agents", "close", "one", "-r", root)
    assert (result.code, result.out) == (0, "one is closed\n")
    refused = cli("agents", "send", one, "hello")
    assert refused.code == 2
    assert "is closed" in refused.err
    again = spawned(server, root, "one")
    assert cli("agents", "send", "one", "hello", "-r", root).code == 0, "the open one is meant"
    agents = cli.json("agents", "list", root)
    assert {a["agentId"]: a["queued"] for a in agents} == {one: 0, again: 1}


def test_a_person_replies_from_the_command_line(cli: Cli, serve: Serve) -> None:
    server = serve()
    root = rooted(server, cli)
    one = spawned(server, root, "one", "ask me")
    waited = server.call("agent/wait", parentId=root, agentIds=[one])
    (ask,) = [each["askId"] for each in waited["questions"]]
    off = cli("agents", "reply", ask, "left")
    assert off.code == 2
    assert "CALLBOARD_FEATURES=agents.messaging" in off.err
    cli.environment["CALLBOARD_FEATURES"] = "agents.messaging"
    result = cli("agents", "reply", ask, "left, of course")
    assert (result.code, result.out) == (0, f"answered one ({one})\n")
    server.wait(one)
    late = cli("agents", "reply", ask, "right")
    assert late.code == 2
    assert "has its end already" in late.err


def test_bad_input_is_exit_code_2_and_names_the_way_out(cli: Cli, serve: Serve) -> None:
    server = serve()
    root = rooted(server, cli)
    one = spawned(server, root, "one")
    steer = cli("agents", "interrupt", one, "--kind", "steer", "--reason", "left")
    assert steer.code == 2
    assert "CALLBOARD_FEATURES=agents.interrupts" in steer.err
    for arguments, words in (
        (("list", "ses_none"), "no session begins with"),
        (("send", "one", "hello"), "needs --root"),
        (("send", "two", "hello", "--root", root), "no agent begins with"),
        (("send", root, "hello"), "no agent begins with"),
        (("send", "ses_" + "0" * 26, "hello"), "no agent begins with"),
        (("send", one, " "), "blank"),
        (("interrupt", one, "--kind", "stop"), "stop"),
        (("list", root, "--watch"), "--watch needs a terminal"),
        (("reply", "ask_none", "yes"), "CALLBOARD_FEATURES=agents.messaging"),
    ):
        result = cli("agents", *arguments)
        assert (result.code, result.out) == (2, ""), (arguments, result)
        assert words in result.err, result.err
        assert "Traceback" not in result.err


def test_a_tree_that_is_watched_follows_what_happens_until_ctrl_c(cli: Cli, serve: Serve) -> None:
    server = serve()
    root = rooted(server, cli)
    spawned(server, root, "one")
    terminal = Terminal(cli, "agents", "list", root, "--watch")
    terminal.until("one  completed")
    two = spawned(server, root, "two", "hang")
    terminal.until("two  running")
    server.call("agent/interrupt", agentId=two, kind="abort", reason="enough")
    terminal.until("stopped: enough")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.finish() == 0
