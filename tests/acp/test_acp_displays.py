"""Commands of our own runner, in a terminal of the client's that only displays."""

from pathlib import Path
from typing import Any

import pytest
from acp_commands import COMMANDS, agent, results
from acp_scenes import workspace

from harness.acp import AcpProcess, allow
from harness.acp_terminals import ABLE, Terminals

SHOWS: dict[str, Any] = {**ABLE, "terminal": False, "_meta": {"terminal_output": True}}
BOTH: dict[str, Any] = {**ABLE, "_meta": {"terminal_output": True}}


def metas(editor: AcpProcess, what: str) -> list[dict[str, Any]]:
    found = [(update.get("_meta") or {}).get(what) for update in editor.updates()]
    return [each for each in found if each is not None]


def printed(editor: AcpProcess) -> str:
    return "".join(each["data"] for each in metas(editor, "terminal_output"))


@pytest.mark.parametrize("able", [SHOWS, BOTH], ids=["shows", "both"])
def test_what_it_prints_is_shown_there_while_it_runs(tmp_path: Path, able: dict[str, Any]) -> None:
    folder = workspace(tmp_path)
    with Terminals() as terminals, agent(tmp_path, terminals, capabilities=able) as editor:
        session = editor.new(folder)
        asked = editor.ask(session, "wait")
        editor.until(lambda m: "first" in printed(editor))
        (folder / "go").touch()
        assert editor.result(asked) == {"stopReason": "end_turn"}
        assert not terminals.requests, "it runs in our own runner"
        (call,) = [u for u in editor.updates() if u["sessionUpdate"] == "tool_call"]
        terminal = call["toolCallId"]
        assert call["_meta"]["terminal_info"] == {"terminal_id": terminal, "cwd": str(folder)}
        assert call["status"] == "pending" and "content" not in call
        assert printed(editor) == "first\nsecond\n"
        assert metas(editor, "terminal_exit") == [
            {"terminal_id": terminal, "exit_code": 0, "signal": None}
        ]
        contents = [u["content"] for u in editor.updates() if "toolCallId" in u and "content" in u]
        shown = [{"type": "terminal", "terminalId": terminal}]
        assert contents[0][0]["type"] == "content" and contents[1:] == [shown, shown]
    (result,) = results(tmp_path, session)
    assert result["text"] == "first\nsecond"


def test_how_it_ended_is_shown_behind_it(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    with Terminals() as none, agent(tmp_path, none, capabilities=SHOWS) as editor:
        session = editor.new(folder)
        assert editor.prompt(session, "fail") == "end_turn"
        assert printed(editor) == "before\n\n[exit code 3]\n"
        assert metas(editor, "terminal_exit")[0]["exit_code"] == 3
        assert editor.prompt(session, "limited") == "end_turn"
        assert "[timed out after 0.4 s;" in printed(editor)
        assert metas(editor, "terminal_exit")[1]["exit_code"] is None


def test_what_was_refused_has_a_text_and_no_terminal(tmp_path: Path) -> None:
    folder = workspace(tmp_path)

    def deny(_: dict[str, Any]) -> dict[str, Any]:
        return {"outcome": {"outcome": "selected", "optionId": "reject_once"}}

    with Terminals() as none, agent(tmp_path, none, capabilities=SHOWS, permit=deny) as editor:
        session = editor.new(folder)
        assert editor.prompt(session, "print") == "end_turn"
        assert not metas(editor, "terminal_output")
        last = [u for u in editor.updates() if u.get("status") == "failed"][-1]
        assert last["content"][0]["type"] == "content"


def test_a_replay_has_texts(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    with Terminals() as none, agent(tmp_path, none, capabilities=SHOWS) as editor:
        session = editor.new(folder)
        assert editor.prompt(session, "print") == "end_turn"
    with Terminals() as none, agent(tmp_path, none, capabilities=SHOWS) as again:
        again.call("session/load", sessionId=session, cwd=str(folder), mcpServers=[])
        (call,) = [u for u in again.updates() if u["sessionUpdate"] == "tool_call"]
        assert "to stdout" in call["content"][0]["content"]["text"] and "_meta" not in call


def test_a_turn_of_another_server_is_shown_when_it_is_over(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    with (
        Terminals() as none,
        agent(tmp_path, none, capabilities=SHOWS) as editor,
        agent(tmp_path, none, capabilities={}) as other,
    ):
        session = editor.new(folder)
        other.call("session/resume", sessionId=session, cwd=str(folder), mcpServers=[])
        assert other.prompt(session, "print") == "end_turn"
        editor.until(lambda m: bool(metas(editor, "terminal_exit")))
        assert printed(editor) == "to stdout\nto stderr\n"


@pytest.mark.parametrize(
    ("wanted", "able", "there", "shown"),
    [
        ("client", BOTH, True, False),
        ("own", BOTH, False, True),
        ("own", ABLE, False, False),
        ("auto", ABLE, True, False),
    ],
)
def test_the_person_says_where_commands_run(
    tmp_path: Path, wanted: str, able: dict[str, Any], there: bool, shown: bool
) -> None:
    folder = workspace(tmp_path)
    config = f'[acp]\nterminals = "{wanted}"\n'
    with (
        Terminals() as terminals,
        agent(tmp_path, terminals, capabilities=able, config=config, permit=allow) as editor,
    ):
        session = editor.new(folder)
        assert editor.prompt(session, "where") == "end_turn"
        assert bool(terminals.asked("create")) is there
        assert bool(metas(editor, "terminal_exit")) is shown
    assert COMMANDS["where"].endswith("count") and (folder / "count").read_text() == "x\n"


def test_a_workspace_does_not_say_where_they_run(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    (folder / ".callboard").mkdir()
    (folder / ".callboard" / "config.toml").write_text('[acp]\nterminals = "client"\n')
    with Terminals() as terminals, agent(tmp_path, terminals, capabilities=BOTH) as editor:
        session = editor.new(folder)
        assert editor.prompt(session, "print") == "end_turn"
        assert not terminals.requests
