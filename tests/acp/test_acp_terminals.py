"""Commands in the terminals of the client: they run there, and the log has what it would have of our own runner."""

import signal
from pathlib import Path
from typing import Any

import pytest
from acp_commands import COMMANDS, agent, results, shows, until_released, until_shown
from acp_scenes import workspace

from harness.acp import kinds, texts
from harness.acp_terminals import ABLE, Terminals
from harness.process import PATIENCE_S, ServerProcess


def test_a_command_runs_in_the_terminal_of_the_client(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    with Terminals() as terminals, agent(tmp_path, terminals) as editor:
        session = editor.new(folder)
        assert editor.prompt(session, "where") == "end_turn"
        until_released(editor, terminals)
        (made,) = terminals.asked("create")
        assert made["args"] == ["-c", COMMANDS["where"]] and made["cwd"] == str(folder)
        assert Path(made["command"]).is_absolute() and made["outputByteLimit"] > 0
        variables = {each["name"] for each in made["env"]}
        assert {"TERM", "PAGER", "CALLBOARD_CALL"} <= variables
        assert not {"PATH", "HOME"} & variables, "the client's own environment stays as it is"
        assert terminals.names == ["create", "wait_for_exit", "release"]
        last = editor.updates()[-1 - kinds(editor.updates()[::-1]).index("tool_call_update")]
        assert last["status"] == "completed" and shows(last, "term-1")
        assert [each["type"] for each in last["content"]] == ["terminal"]
        assert last["rawOutput"]["exitCode"] == 0
    (result,) = results(tmp_path, session)
    assert result["status"] == "ok" and result["exitCode"] == 0
    assert result["text"] == f"{folder}\n{result['callId']}"
    assert (folder / "count").read_text() == "x\n"


def test_the_person_is_asked_first(tmp_path: Path) -> None:
    folder = workspace(tmp_path)

    def deny(_: dict[str, Any]) -> dict[str, Any]:
        assert not terminals.requests
        return {"outcome": {"outcome": "selected", "optionId": "reject_once"}}

    with Terminals() as terminals, agent(tmp_path, terminals, permit=deny) as editor:
        session = editor.new(folder)
        assert editor.prompt(session, "where") == "end_turn"
        assert len(editor.asked()) == 1 and not terminals.requests
        editor.call("session/set_mode", sessionId=session, modeId="ask")
        assert editor.prompt(session, "print") == "end_turn"
        assert not terminals.requests
    assert {each["status"] for each in results(tmp_path, session)} == {"denied"}
    assert not (folder / "count").exists()


@pytest.mark.parametrize("name", ["print", "fail", "much", "secret"])
def test_the_log_has_the_same_of_it_as_of_our_own_runner(tmp_path: Path, name: str) -> None:
    """But for how long it took."""
    secret = {"TEST_API_KEY": "sk-test-0123456789abcdefghij"}
    told: list[dict[str, Any]] = []
    for place, terminal in (("own", False), ("client", True)):
        at = tmp_path / place
        at.mkdir()
        folder = workspace(at)
        with (
            Terminals() as terminals,
            agent(
                at, terminals, capabilities={**ABLE, "terminal": terminal}, environ=secret
            ) as editor,
        ):
            session = editor.new(folder)
            assert editor.prompt(session, name) == "end_turn"
            assert len(terminals.asked("create")) == terminal
        (result,) = results(at, session)
        assert result["durationMs"] >= 0
        assert "sk-test" not in result["text"]
        assert (result.get("blob") is not None) == (name == "much")
        away = {"callId": "", "durationMs": 0, "blob": None, "_blobs": None}
        told.append({**result, **away})
    assert told[0] == told[1]


def test_of_what_a_terminal_did_not_keep_the_end_is_told(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    with Terminals() as terminals, agent(tmp_path, terminals) as editor:
        session = editor.new(folder)
        assert editor.prompt(session, "more") == "end_turn"
        assert terminals.made["term-1"].output["truncated"]
    (result,) = results(tmp_path, session)
    assert result["status"] == "ok" and result["truncated"] and result["blob"]
    *rest, note = result["text"].splitlines()
    assert rest[-1] == "400000" and "what was seen of it in the editor's terminal is kept" in note


def test_other_windows_see_the_call_and_its_result(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    with (
        Terminals() as terminals,
        agent(tmp_path, terminals) as editor,
        ServerProcess(tmp_path, approvals=False) as window,
    ):
        session = editor.new(folder)
        scope = {"kind": "session", "id": session}
        window.call("event/subscribe", scope=scope, **{"from": "start"})
        asked = editor.ask(session, "wait")
        until_shown(editor)
        window.told(lambda e: e["type"] == "tool_call" and e["data"]["name"] == "run_command")
        (folder / "go").touch()
        over = window.told(lambda e: e["type"] == "tool_result")["data"]
        assert over["text"] == "first\nsecond" and over["status"] == "ok"
        assert editor.result(asked) == {"stopReason": "end_turn"}


def test_no_text_takes_the_place_of_the_terminal(tmp_path: Path) -> None:
    """What it prints streams as with our own runner, and the client is not shown that besides."""
    folder = workspace(tmp_path)
    with Terminals() as terminals, agent(tmp_path, terminals) as editor:
        session = editor.new(folder)
        asked = editor.ask(session, "wait")
        until_shown(editor)
        while not any("first" in t.output["output"] for t in terminals.made.values()):
            editor.until_asked("terminal/output")
        editor.until_asked("terminal/output")
        (folder / "go").touch()
        assert editor.result(asked) == {"stopReason": "end_turn"}
        until_released(editor, terminals)
        told = [u for u in editor.updates() if u["sessionUpdate"] == "tool_call_update"]
        contents = [u["content"] for u in told if u.get("content")]
        assert contents[0][0]["type"] == "content", "what is asked about"
        terminal = [{"type": "terminal", "terminalId": "term-1"}]
        assert contents[1:] == [terminal, terminal]


def test_cancelling_ends_it_there(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    with Terminals() as terminals, agent(tmp_path, terminals) as editor:
        session = editor.new(folder)
        asked = editor.ask(session, "wait")
        until_shown(editor)
        editor.notify("session/cancel", sessionId=session)
        assert editor.result(asked) == {"stopReason": "cancelled"}
        until_released(editor, terminals)
        assert terminals.names[-2:] == ["kill", "release"] and terminals.names.count("kill") == 1
        assert terminals.made["term-1"].process.poll() is not None
    (result,) = results(tmp_path, session)
    assert result["status"] == "cancelled"


def test_its_time_is_limited(tmp_path: Path) -> None:
    folder = workspace(tmp_path)

    def create(params: dict[str, Any]) -> dict[str, Any]:
        made = terminals.create(params)
        assert terminals.made[made["terminalId"]].printed.wait(PATIENCE_S)
        return made

    with Terminals(create=create) as terminals, agent(tmp_path, terminals) as editor:
        session = editor.new(folder)
        assert editor.prompt(session, "limited") == "end_turn"
        until_released(editor, terminals)
        assert terminals.names == ["create", "wait_for_exit", "kill", "release"]
        assert terminals.requests[-2][0] == "output", "what it printed last is read"
    (result,) = results(tmp_path, session)
    assert result["status"] == "timed_out" and result.get("exitCode") is None
    assert result["text"].startswith("first\n[timed out after 0.4 s;")


def test_a_session_that_is_loaded_anew_meanwhile_has_the_result_as_text(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    with Terminals() as terminals, agent(tmp_path, terminals) as editor:
        session = editor.new(folder)
        asked = editor.ask(session, "wait")
        until_shown(editor)
        editor.call("session/load", sessionId=session, cwd=str(folder), mcpServers=[])
        assert editor.result(asked) == {"stopReason": "cancelled"}, "the prompt was let go"
        (folder / "go").touch()
        over = editor.until_update("tool_call_update", status="completed")
        assert "first\nsecond" in over["content"][0]["content"]["text"]
        until_released(editor, terminals)
        assert len(terminals.asked("create")) == 1 and "kill" not in terminals.names


def test_the_person_can_end_it_in_the_terminal(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    with Terminals() as terminals, agent(tmp_path, terminals) as editor:
        session = editor.new(folder)
        asked = editor.ask(session, "wait")
        until_shown(editor)
        terminals.made["term-1"].kill(signal.SIGTERM)
        assert editor.result(asked) == {"stopReason": "end_turn"}
        until_released(editor, terminals)
        assert "kill" not in terminals.names
        said = [u for u in editor.updates() if u.get("status") == "failed"][-1]["content"]
        assert said[1]["content"]["text"] == "[ended by signal SIGTERM]"
    (result,) = results(tmp_path, session)
    assert result["status"] == "error" and result["exitCode"] == 128 + signal.SIGTERM
    assert result["text"].endswith("[ended by signal SIGTERM]")


def test_a_replay_has_texts_where_terminals_were(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    with Terminals() as terminals, agent(tmp_path, terminals) as editor:
        session = editor.new(folder)
        assert editor.prompt(session, "print") == "end_turn"
    with Terminals() as terminals, agent(tmp_path, terminals) as again:
        again.call("session/load", sessionId=session, cwd=str(folder), mcpServers=[])
        (call,) = [u for u in again.updates() if u["sessionUpdate"] == "tool_call"]
        assert "to stdout\nto stderr" in call["content"][0]["content"]["text"]
        assert not terminals.requests


def test_agents_below_run_their_commands_in_our_own_runner(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    with Terminals() as terminals, agent(tmp_path, terminals) as editor:
        session = editor.new(folder)
        assert editor.prompt(session, "delegate") == "end_turn"
        assert not terminals.requests
        assert "Done." in texts(editor.updates())
    with ServerProcess(tmp_path, approvals=False) as other:
        (below,) = other.call("agent/list", rootId=session)["data"]
        ran = [e["data"] for e in other.events(below["agentId"]) if e["type"] == "tool_result"]
        assert [each["text"] for each in ran] == ["to stdout\nto stderr"]


def test_a_client_without_terminals_is_asked_for_none(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    with Terminals() as terminals, agent(tmp_path, terminals, capabilities={}) as editor:
        session = editor.new(folder)
        assert editor.prompt(session, "print") == "end_turn"
        assert not terminals.requests
