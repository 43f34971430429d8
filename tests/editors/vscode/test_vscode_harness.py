"""The harness itself, so that a fault of it is not taken for one of the extension."""

import subprocess

import psutil
import pytest

SCENARIO = """
rules:
  - when: {last_user: write, step: 0}
    answer:
      - say: I write it.
      - call: {tool: write_file, arguments: {path: made.txt, content: "made by a test\\n"}}
default: "You said: {{last_user}}."
"""


def test_a_window_is_driven_and_read(open_code):
    code = open_code(scenario=SCENARIO)
    window = code.open()
    window.view("Callboard")
    window.command("Callboard: New Session")
    window.wait_for(lambda: len(window.rows("Sessions")) == 2, "the new session in the tree")
    window.chat().get_by_role("textbox").fill("write")
    window.page.keyboard.press("Enter")
    window.wait_for(lambda: "Allow" in window.chat_text(), "an approval in the chat")
    window.wait_for(lambda: "1 approval" in window.status_bar(), "an approval in the status bar")
    window.wait_for(lambda: any("Needs you" in row for row in window.rows("Sessions")), "a group")
    before = window.chat()
    window.command("View: Show Explorer")  # with the focus in the chat
    window.wait_for(before.is_detached, "the end of the hidden page")
    assert window.chat_text() == ""
    window.view("Callboard")
    window.wait_for(lambda: "Allow" in window.chat_text(), "the approval in another page")
    (server,) = code.servers()
    assert "started" in code.log()
    code.close()
    assert not psutil.pid_exists(server.pid)
    assert code.processes() == []


def test_what_a_vs_code_leaves_running_fails_its_test(open_code, monkeypatch):
    monkeypatch.setattr("vscode_harness.PATIENCE_S", 3)
    code = open_code()
    orphan = subprocess.Popen(["sleep", "300"], env=code.environ)
    with pytest.raises(AssertionError, match=r"left running:.*sleep 300"):
        code.close()
    assert orphan.wait() < 0, "it was not ended"


def test_what_does_not_come_is_told_with_all_that_may_explain_it(open_code):
    code = open_code()
    window = code.open()
    with pytest.raises(AssertionError) as told:
        window.wait_for(lambda: False, "what never comes", deadline=0.1)
    said = str(told.value)
    for part in ("not in 0.1 s: what never comes", "failed-", "console:", "server-main.js", "--- "):
        assert part in said
