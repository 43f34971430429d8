"""What goes wrong in terminals of the client is told as what it is, and no command runs twice."""

from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from acp_commands import agent, results, shows, until_released, until_shown
from acp_scenes import workspace

from harness.acp_terminals import Refused, Terminals
from harness.process import PATIENCE_S
from harness.processes import bearing


def test_what_the_client_refuses_runs_in_our_own_runner(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    no = Refused(-32603, "no terminal to be had")
    with Terminals(create=no) as terminals, agent(tmp_path, terminals) as editor:
        session = editor.new(folder)
        assert editor.prompt(session, "where") == "end_turn"
        assert terminals.names == ["create"]
        assert not any(shows(u, "term-1") for u in editor.updates())
    (result,) = results(tmp_path, session)
    assert result["status"] == "ok" and result["text"].startswith(str(folder))
    assert (folder / "count").read_text() == "x\n"


@pytest.mark.parametrize(
    "denial",
    [
        Refused(-32603, "Internal error", {"details": "Permission denied for terminal/create"}),
        Refused(-32000, "The command was rejected by the user"),
        Refused(-32603, "Internal error", "Commands are not allowed here"),
    ],
    ids=repr,
)
def test_what_a_person_denies_in_the_client_does_not_run_anywhere(
    tmp_path: Path, denial: Refused
) -> None:
    folder = workspace(tmp_path)
    with Terminals(create=denial) as terminals, agent(tmp_path, terminals) as editor:
        session = editor.new(folder)
        assert editor.prompt(session, "where") == "end_turn"
        assert terminals.names == ["create"]
    (result,) = results(tmp_path, session)
    assert result["status"] == "error" and "nothing was run" in result["text"]
    assert not (folder / "count").exists()


def test_what_the_client_calls_off_does_not_run(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    off = Refused(-32800, "cancelled")
    with Terminals(create=off) as terminals, agent(tmp_path, terminals) as editor:
        session = editor.new(folder)
        assert editor.prompt(session, "where") == "end_turn"
    (result,) = results(tmp_path, session)
    assert result["status"] == "error" and "Nothing was run" in result["text"]
    assert not (folder / "count").exists()


def test_what_the_client_says_is_told_whole_or_not_at_all(tmp_path: Path) -> None:
    secret = "sk-test-0123456789abcdefghij"
    folder = workspace(tmp_path)
    short, long = Refused(-32603, f"no\n{secret} here"), Refused(-32603, f"{'x' * 390}{secret}")
    answers = iter([short, long])
    with (
        Terminals(wait_for_exit=lambda _: next(answers)) as terminals,
        agent(tmp_path, terminals, environ={"TEST_API_KEY": secret}) as editor,
    ):
        session = editor.new(folder)
        assert editor.prompt(session, "print") == "end_turn"
        assert editor.prompt(session, "print") == "end_turn"
        until_released(editor, terminals)
    first, second = (each["text"] for each in results(tmp_path, session))
    assert "not known: no " in first and " here (-32603)" in first and "sk-" not in first
    assert "not known: it is too long to be told." in second


GARBAGE: list[Any] = [
    {"exitCode": "three"},
    {"exitCode": -1},
    {"exitCode": 2**40},
    {"exitCode": 2**70},
    [],
    Refused(-32603, "what terminal?"),
]


@pytest.mark.parametrize("answer", GARBAGE, ids=repr)
def test_an_end_that_is_none_is_told_as_unknown(tmp_path: Path, answer: Any) -> None:
    folder = workspace(tmp_path)
    with Terminals(wait_for_exit=answer) as terminals, agent(tmp_path, terminals) as editor:
        session = editor.new(folder)
        assert editor.prompt(session, "wait") == "end_turn"
        until_released(editor, terminals)
        assert terminals.names == ["create", "wait_for_exit", "kill", "release"]
    (result,) = results(tmp_path, session)
    assert result["status"] == "error" and result.get("exitCode") is None
    assert "how the command ended is not known" in result["text"]
    assert not bearing(f"CALLBOARD_CALL={result['callId']}")


@pytest.mark.parametrize("answer", [{}, {"terminalId": 7}, {"terminalId": ""}, []], ids=repr)
def test_a_terminal_without_a_name_may_have_run_the_command(tmp_path: Path, answer: Any) -> None:
    folder = workspace(tmp_path)
    with Terminals(create=answer) as terminals, agent(tmp_path, terminals) as editor:
        session = editor.new(folder)
        assert editor.prompt(session, "where") == "end_turn"
        assert terminals.names == ["create"]
    (result,) = results(tmp_path, session)
    assert result["status"] == "error" and "is not known" in result["text"]
    assert not (folder / "count").exists(), "it is not run here"


def test_output_that_is_none_does_not_hide_the_end(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    with Terminals(output={"text": 1}) as terminals, agent(tmp_path, terminals) as editor:
        session = editor.new(folder)
        assert editor.prompt(session, "fail") == "end_turn"
        until_released(editor, terminals)
    (result,) = results(tmp_path, session)
    assert result["status"] == "error" and result["exitCode"] == 3
    assert "some of the output may be missing" in result["text"]


def test_an_end_may_be_told_with_the_output_alone(tmp_path: Path) -> None:
    folder = workspace(tmp_path)

    def output(params: dict[str, Any]) -> dict[str, Any]:
        terminal = terminals.made[params["terminalId"]]
        return {**terminal.output, "exitStatus": terminal.exit.result(PATIENCE_S)}

    with (
        Terminals(wait_for_exit=None, output=output) as terminals,
        agent(tmp_path, terminals) as editor,
    ):
        session = editor.new(folder)
        assert editor.prompt(session, "fail") == "end_turn"
        until_released(editor, terminals)
    (result,) = results(tmp_path, session)
    assert result["exitCode"] == 3 and result["text"] == "before\n[exit code 3]"


def test_a_client_that_never_answers_holds_nothing_up(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    with (
        Terminals(wait_for_exit=None, output=None, kill=None, release=None) as terminals,
        agent(tmp_path, terminals) as editor,
    ):
        session = editor.new(folder)
        assert editor.prompt(session, "limited") == "end_turn"
        editor.until_asked("terminal/release")
        assert len(terminals.asked("create")) == 1
    (result,) = results(tmp_path, session)
    assert result["status"] == "timed_out" and "whether it has is not known" in result["text"]
    assert not bearing(f"CALLBOARD_CALL={result['callId']}"), "what is on this machine is ended"


def test_a_cancel_needs_no_answer(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    with (
        Terminals(wait_for_exit=None, output=None, kill=None, release=None) as terminals,
        agent(tmp_path, terminals) as editor,
    ):
        session = editor.new(folder)
        asked = editor.ask(session, "wait")
        until_shown(editor)
        editor.notify("session/cancel", sessionId=session)
        assert editor.result(asked) == {"stopReason": "cancelled"}
    (result,) = results(tmp_path, session)
    assert result["status"] == "cancelled"
    assert not bearing(f"CALLBOARD_CALL={result['callId']}"), "what is on this machine is ended"


def test_an_end_without_a_code_or_a_signal_is_no_success(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    with Terminals(wait_for_exit={}) as terminals, agent(tmp_path, terminals) as editor:
        session = editor.new(folder)
        assert editor.prompt(session, "print") == "end_turn"
        until_released(editor, terminals)
    (result,) = results(tmp_path, session)
    assert result["status"] == "error" and result.get("exitCode") is None
    assert result["text"].endswith("[ended in the editor, without an exit code]")


def test_a_terminal_that_comes_when_nobody_waits_any_more_is_put_away(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    late: Future[dict[str, Any]] = Future()
    with Terminals(create=late) as terminals, agent(tmp_path, terminals) as editor:
        session = editor.new(folder)
        asked = editor.ask(session, "where")
        editor.until_asked("terminal/create")
        editor.notify("session/cancel", sessionId=session)
        assert editor.result(asked) == {"stopReason": "cancelled"}
        late.set_result(terminals.create(terminals.asked("create")[0]))
        editor.until_asked("terminal/kill")
        editor.until_asked("terminal/release")


def test_a_client_that_goes_takes_its_command_along(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    with Terminals() as terminals:
        with agent(tmp_path, terminals) as editor:
            session = editor.new(folder)
            editor.ask(session, "wait")
            until_shown(editor)
        (result,) = results(tmp_path, session)
        assert result["status"] in ("error", "interrupted") and "not known" in result["text"]
        assert not bearing(f"CALLBOARD_CALL={result['callId']}")
        assert len(terminals.asked("create")) == 1


def test_after_a_kill_the_call_is_interrupted_and_not_run_again(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    with Terminals() as terminals:
        with agent(tmp_path, terminals) as editor:
            session = editor.new(folder)
            editor.ask(session, "wait")
            until_shown(editor)
            editor.kill()
        with agent(tmp_path, terminals) as again:
            again.call("session/load", sessionId=session, cwd=str(folder), mcpServers=[])
            (call,) = [u for u in again.updates() if u["sessionUpdate"] == "tool_call"]
            assert call["status"] in ("failed", "in_progress")
            if call["status"] == "in_progress":  # it is ended when the dead server is found
                again.until_update("tool_call_update", status="failed")
            assert again.prompt(session, "hi") == "end_turn"
        assert len(terminals.asked("create")) == 1
    (result,) = results(tmp_path, session)
    assert result["status"] == "interrupted"
    assert not bearing(f"CALLBOARD_CALL={result['callId']}")
