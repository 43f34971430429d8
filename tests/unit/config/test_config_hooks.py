"""``[[hooks.*]]``: whose word counts, and what is refused (specs/execution.md 50)."""

from pathlib import Path

import pytest

from callboard.config import load
from callboard.config.hooks import HookCommand


def loaded(folder: Path, text: str, **more: object) -> tuple[object, list[str]]:
    (folder / "config.toml").write_text(text, "utf-8")
    found = load({}, folder, **more)  # type: ignore[arg-type]
    return found.settings.hooks, [str(warning) for warning in found.warnings]


def test_commands_stand_in_their_order(tmp_path: Path) -> None:
    hooks, warnings = loaded(
        tmp_path,
        """
[[hooks.pre_tool_use]]
command = "one"
match = "write_*"
timeout_ms = 1

[[hooks.pre_tool_use]]
command = ["two", "with words"]
match = ["a", "b"]
timeout_ms = 600000

[[hooks.session_end]]
command = "three"
""",
    )
    assert warnings == []
    assert hooks.pre_tool_use == (  # type: ignore[attr-defined]
        HookCommand(command="one", match=("write_*",), timeout_ms=1),
        HookCommand(command=("two", "with words"), match=("a", "b"), timeout_ms=600_000),
    )
    assert hooks.session_end == (HookCommand(command="three"),)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "wrong",
    [
        "command = ''",
        "command = []",
        "command = ['']",
        "command = 7",
        "command = ['a', 7]",
        'command = "a\\u0000b"',
        "timeout_ms = 5",
        "command = 'x'\ntimeout_ms = 0",
        "command = 'x'\ntimeout_ms = 600001",
        "command = 'x'\ntimeout_ms = 1.5",
        "command = 'x'\ntimeout_ms = true",
        "command = 'x'\nmatch = []",
        "command = 'x'\nmatch = ['']",
        "command = 'x'\nmatch = 3",
        "command = 'x'\nmatch = '[run_*'",
        "command = 'x'\ncomand = 'y'",
    ],
)
def test_what_is_no_hook_is_told_by_its_number_and_never_quoted(tmp_path: Path, wrong: str) -> None:
    text = f"[[hooks.pre_tool_use]]\ncommand = 'fine'\n[[hooks.pre_tool_use]]\n{wrong}\n"
    hooks, warnings = loaded(tmp_path, text)
    assert hooks.pre_tool_use == (HookCommand(command="fine"),)  # type: ignore[attr-defined]
    assert len(warnings) == 1
    assert "hooks.pre_tool_use: number 2: " in warnings[0]


@pytest.mark.parametrize("event", ["stop", "session_start", "notification"])
def test_only_tools_can_be_matched(tmp_path: Path, event: str) -> None:
    _, warnings = loaded(tmp_path, f"[[hooks.{event}]]\ncommand = 'x'\nmatch = 'y'\n")
    assert "match is for pre_tool_use and post_tool_use" in warnings[0]


def test_execution_50_nobody_but_the_user_can_name_a_command(tmp_path: Path) -> None:
    evil = '[[hooks.stop]]\ncommand = "evil"\n'
    work = tmp_path / "work"
    (work / ".callboard").mkdir(parents=True)
    (work / ".callboard" / "config.toml").write_text(evil, "utf-8")
    user = tmp_path / "user"
    user.mkdir()
    hook = {"command": "evil"}
    for client in ({"hooks": {"stop": [hook]}}, {"hooks.stop": [hook]}):
        found = load({"CALLBOARD_HOOKS_STOP": '[{"command": "evil"}]'}, user, work, client)
        assert found.settings.hooks.stop == ()
        assert len(found.warnings) == 3


def test_command_lines_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        "[[hooks.stop]]\ncommand = 'notify --token hunter2'\n", "utf-8"
    )
    found = load({}, tmp_path)
    shown = {value.key: value for value in found.values}
    assert shown["hooks.stop"].value == [{"command": "set", "match": [], "timeoutMs": 60_000}]
    assert "hunter2" not in repr(found.values)
