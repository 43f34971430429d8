"""What somebody does who lives in VS Code: a real one, the packed extension, the real server, a scripted model.

Each test keeps pictures of what it saw; they are the ones of the README, too.
"""

from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser
from vscode_build import installed
from vscode_harness import CodeServer
from vscode_place import Place

Made = Callable[..., Place]


@pytest.fixture(scope="module")
def code(
    browser: Browser, shared: Path, tmp_path_factory: pytest.TempPathFactory
) -> Generator[CodeServer]:
    """The VS Code of these tests; each has a place of its own in it."""
    code = CodeServer(browser, installed(shared), tmp_path_factory.mktemp("code"))
    yield code
    code.close()


@pytest.fixture
def place(code: CodeServer, tmp_path: Path) -> Generator[Made]:
    """Makes places (see `Place` for what it takes)."""
    with ExitStack() as made:
        count = 0

        def make(scenario: str, **settings: Any) -> Place:
            nonlocal count
            count += 1
            return made.enter_context(Place(code, tmp_path / f"place{count}", scenario, **settings))

        yield make


MEND = r"""
rules:
  - when: {last_user: {regex: "^mend"}, step: 0}
    answer:
      - think: The test says what is wrong. I look at the code first.
      - say: "I look at **app.py** first."
      - call: {tool: read_file, arguments: {path: "app.py"}}
  - when: {last_tool: {name: read_file, contains: ""}}
    answer:
      - say: "It takes away where it should add:\n\n```python\nreturn a - b\n```\n\nOne line is to change."
        chars_per_second: 600
      - call: {tool: write_file, arguments: {path: "app.py", content: "def add(a, b):\n    return a + b\n"}}
  - when: {last_tool: {name: write_file, status: error}}
    answer: [{say: "Then I leave it: {{last_tool}}"}]
  - when: {last_tool: {name: write_file, status: ok}}
    answer:
      - call: {tool: run_command, arguments: {command: "python3 -c 'import app; print(app.add(1, 2))'"}}
  - when: {last_tool: {contains: ""}}
    answer: [{say: "Done: `add` adds now."}, {usage: {input_tokens: 900, output_tokens: 12}}]
default:
  - say: "You said: {{last_user}}"
"""
WRONG = "def add(a, b):\n    return a - b\n"
RIGHT = "def add(a, b):\n    return a + b\n"


def test_a_prompt_is_answered_asked_about_allowed_and_its_change_accepted(place: Made):
    here = place(MEND, theme="light")
    app = here.write("app.py", WRONG)
    me = here.window(1440, 900).begin()
    me.say("mend the failing test, please")
    me.shows("It takes away", "One line is to change.")
    card = me.approval()
    assert "app.py" in card.inner_text()
    assert app.read_text() == WRONG
    me.screenshot("e2e-approval-light-wide")
    me.choose("Allow once")
    me.wait_for(lambda: "python3 -c" in me.approval().inner_text(), "the second approval")
    assert app.read_text() == RIGHT
    me.choose("Allow once")
    me.shows("Done: add adds now.")
    me.calm()
    me.command("Callboard: Show the Changes of the Session")
    row = me.window.row("Changes", "app.py")
    row.click()
    me.page.locator(".monaco-diff-editor .modified-in-monaco-diff-editor").wait_for()
    me.screenshot("e2e-diff-light-wide")
    me.command("Callboard: Accept the Change of This File")
    me.wait_for(lambda: "accepted" in " ".join(me.window.rows("Changes")), "the file as accepted")
    me.screenshot("e2e-accepted-light-wide")
    assert app.read_text() == RIGHT


def test_a_denial_reaches_the_agent_with_the_words_that_go_along(place: Made):
    here = place(MEND)
    app = here.write("app.py", WRONG)
    me = here.window(1100, 760).begin()
    me.say("mend it")
    card = me.approval()
    card.get_by_role("button", name="Deny").last.click()
    note = card.get_by_role("textbox")
    note.fill("Not before the release.")
    me.screenshot("e2e-deny-dark")
    note.press("Enter")
    me.shows("Then I leave it:", "Not before the release.")
    me.calm()
    assert app.read_text() == WRONG


def test_an_approval_outlives_a_hidden_view_and_a_reload_and_is_answered_once(place: Made):
    here = place(MEND)
    here.write("app.py", WRONG)
    me = here.window().begin()
    me.say("mend it")
    asked = me.approval().get_attribute("data-approval")
    me.window.view("Explorer")
    me.wait_for(lambda: me.window.frame('[role="log"]') is None, "the end of the hidden page")
    assert any("1 approval" in text for text in me.window.status_bar())
    me.screenshot("e2e-hidden-dark")
    me.window.view("Callboard")
    assert me.approval().get_attribute("data-approval") == asked
    me.window.reload()
    me.shows("I look at app.py first.")
    assert me.approval().get_attribute("data-approval") == asked
    me.screenshot("e2e-reloaded-dark")
    me.choose("Allow once")
    me.wait_for(lambda: "python3 -c" in me.approval().inner_text(), "the second approval")
    me.choose("Allow once")
    me.shows("Done: add adds now.")
    me.calm()
    other = here.other()
    (session,) = other.call("session/list")["data"]
    ends = [e for e in other.events(session["sessionId"]) if e["type"] == "approval_resolved"]
    assert [e["data"]["optionId"] for e in ends] == ["allow_once", "allow_once"]
