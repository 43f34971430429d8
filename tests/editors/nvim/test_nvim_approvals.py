"""Approvals: seen wherever one is, answered with keys, by whoever is first, and never by accident."""

import re
from typing import Any

import pytest

SCENARIO = r"""
rules:
  - when: {last_user: {regex: "You are the agent 'docs'"}, step: 0}
    answer:
      - call: {tool: write_file, arguments: {path: docs.md, content: "of docs\n"}}
  - when: {last_user: run it, step: 0}
    answer:
      - call: {tool: run_command, arguments: {command: "echo ran >> ran.txt"}}
  - when: {last_user: run both, step: 0}
    answer:
      - call: {tool: write_file, arguments: {path: one.txt, content: "one\n"}}
      - call: {tool: write_file, arguments: {path: two.txt, content: "two\n"}}
  - when: {last_user: write it, step: 0}
    answer:
      - call: {tool: write_file, arguments: {path: new.txt, content: "first\nsecond\n"}}
  - when: {last_user: nasty, step: 0}
    answer:
      - call: {tool: run_command, arguments: {command: "echo \u202egnp.\u202c \u001b[2J;\n  rm -rf %d"}}
  - when: {last_user: call docs, step: 0}
    answer:
      - call: {tool: spawn_agent, arguments: {name: docs, message: "Write."}}
  - when: {last_tool: {name: spawn_agent}}
    answer: Docs writes.
  - when: {last_tool: {status: ok}}
    answer: It was done.
  - when: {last_tool: {status: error}}
    answer: "I was told: {{last_tool}}"
default: I heard {{last_user}}
"""
NEXT = ":Callboard next"


def begin(editor: Any, prompt: str) -> None:
    """A session of which something waits for an answer, in view."""
    editor.command("Callboard new")
    editor.command(f"Callboard send {prompt}")
    editor.wait_for("1 once")


def elsewhere(editor: Any, prompt: str) -> None:
    """A session that nobody looks at begins to ask."""
    editor.lua(
        "local prompt, app = ..., require('callboard.app').get()"
        " app:request('session/create', { cwd = vim.uv.cwd() }, function(_, got)"
        " app:request('session/prompt', { sessionId = got.session.sessionId,"
        " content = { { type = 'text', text = prompt } } }, function() end) end)",
        prompt,
    )


def to_chat(editor: Any) -> None:
    """The cursor into the chat, where the keys are."""
    assert editor.lua(
        "for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do"
        " if vim.bo[vim.api.nvim_win_get_buf(win)].filetype == 'callboard-chat' then"
        " vim.api.nvim_set_current_win(win) return true end end"
    )


def pending(editor: Any) -> list[str]:
    return editor.lua(
        "return vim.tbl_map(function(a) return a.title end, require('callboard.app').get().approvals.pending)"
    )


def begin_both(editor: Any) -> None:
    """Two approvals wait in one session, and keys are taken for them."""
    editor.command("Callboard new")
    editor.command("Callboard send run both")
    editor.wait_for(lambda: len(pending(editor)) == 2)
    editor.wait_for("Create two.txt")
    to_chat(editor)
    settle(editor)


def settle(editor: Any) -> None:
    """Until keys are taken for what waits: longer than a hand that was on its way."""
    editor.lua(
        "local ends = vim.uv.hrtime() + 350e6"
        " _G.settled = false vim.defer_fn(function() _G.settled = true end, 350)"
    )
    editor.wait_for(lambda: editor.lua("return _G.settled"))


def corner(editor: Any) -> list[str]:
    """The lines of what floats in the corner, as they are drawn."""
    return [row for row in editor.screen() if " to approve" in row and NEXT in row]


def place(editor: Any, row: int) -> None:
    """Waits until the corner is right above the status line and the command line, and in one place alone."""
    editor.wait_for(
        lambda: [n for n, text in enumerate(editor.screen()) if NEXT in text] == [row],
        what=f"the corner in row {row}",
    )


@pytest.fixture
def editor(open_editor):
    return open_editor(scenario=SCENARIO)


def test_a_command_is_shown_whole_and_runs_when_it_is_allowed(editor):
    begin(editor, "run it")
    shown = "\n".join(editor.buffer("callboard://chat"))
    for wanted in (
        "$ echo ran >> ran.txt",
        f"in {editor.workspace}",
        "1 once  2 this session  3 always  4 deny  5 deny and say why  6 never",
    ):
        assert wanted in shown
    assert corner(editor) == []
    to_chat(editor)
    settle(editor)
    editor.keys("<CR>")
    editor.keys("<Space>")
    assert pending(editor) == ["echo ran >> ran.txt"]
    to_chat(editor)
    editor.keys("1")
    editor.wait_for("It was done.")
    assert (editor.workspace / "ran.txt").read_text() == "ran\n"
    assert "1 once" not in editor.text()


def test_a_change_is_shown_as_its_diff(editor):
    begin(editor, "write it")
    shown = "\n".join(editor.buffer("callboard://chat"))
    assert f"create {editor.workspace}/new.txt  +2 -0" in shown
    assert "+first" in shown
    assert "+second" in shown
    assert not (editor.workspace / "new.txt").exists()


def test_a_denial_with_words_reaches_the_agent(editor):
    begin(editor, "run it")
    to_chat(editor)
    settle(editor)
    editor.keys("5")
    editor.wait_for("What should it do instead?")
    assert not editor.mode()["blocking"]
    editor.keys("Ask the build.<CR>")
    editor.wait_for("I was told: Not allowed: Ask the build.")
    assert not (editor.workspace / "ran.txt").exists()


def test_leaving_the_question_for_words_leaves_the_approval(editor):
    begin(editor, "run it")
    to_chat(editor)
    settle(editor)
    editor.keys("5")
    editor.wait_for("What should it do instead?")
    editor.keys("<Esc><Esc>")
    editor.wait_for(lambda: "was not answered; it still waits" in editor.said())
    assert pending(editor) == ["echo ran >> ran.txt"]
    editor.keys("4")
    editor.wait_for("I was told: ")


def test_for_the_session_is_asked_once_and_always_makes_a_rule(editor):
    begin(editor, "run it")
    settle(editor)
    editor.command("Callboard approve session")
    editor.wait_for("It was done.")
    editor.command("Callboard send run it")
    editor.wait_for(lambda: (editor.workspace / "ran.txt").read_text() == "ran\nran\n")
    begin(editor, "write it")
    settle(editor)
    editor.command("Callboard approve always")
    editor.wait_for("It was done.")
    editor.lua(
        "require('callboard.app').get():request('approval/ruleList', {}, function(_, got)"
        " _G.rules = vim.tbl_map(function(rule) return rule.tool .. ' ' .. rule.scope end, got.data) end)"
    )
    rules = editor.wait_for(lambda: editor.lua("return _G.rules"))
    assert "write_file workspace" in rules
    assert "run_command session" in rules


def test_nothing_is_allowed_by_a_key_that_was_on_its_way(editor):
    begin_both(editor)
    assert editor.lua("return vim.fn.search('Create one.txt', 'cw')") > 0
    # Two presses at once: the second must not reach what takes the first one's place.
    editor.keys("11")
    editor.wait_for(lambda: pending(editor) == ["Create two.txt"])
    editor.wait_for(lambda: (editor.workspace / "one.txt").exists())
    settle(editor)
    assert pending(editor) == ["Create two.txt"]
    assert not (editor.workspace / "two.txt").exists()
    editor.keys("1")
    editor.wait_for(lambda: (editor.workspace / "two.txt").exists())


def test_where_several_wait_a_key_wants_the_cursor_on_one(editor):
    begin_both(editor)
    editor.keys("gg1")
    editor.wait_for(lambda: "several wait" in editor.said())
    editor.command("Callboard approve")
    editor.wait_for(lambda: "2 wait, and it is not clear which one is meant" in editor.said())
    assert len(pending(editor)) == 2
    editor.command("Callboard next")
    editor.command("Callboard next")
    editor.keys("4")
    editor.wait_for(lambda: pending(editor) == ["Create one.txt"])


def test_typing_goes_on_undisturbed_while_something_comes_to_be_approved(editor):
    editor.keys("i")
    elsewhere(editor, "run it")
    sent = ""
    while not corner(editor):
        word = f"word{len(sent)} "
        sent += word
        editor.type(word)
        editor.wait_for(lambda text=sent: editor.buffer() == [text])
    editor.type("1\n4 end")
    editor.wait_for(lambda: editor.buffer() == [sent + "1", "4 end"])
    assert editor.mode() == {"mode": "i", "blocking": False}
    assert pending(editor) == ["echo ran >> ran.txt"]


@pytest.mark.parametrize("size", [(80, 24), (200, 50)], ids=["narrow", "wide"])
def test_the_corner_tells_what_waits_where_its_chat_is_not_in_view(open_editor, size):
    editor = open_editor(scenario=SCENARIO, size=size)
    begin(editor, "run it")
    assert corner(editor) == []
    editor.command("Callboard toggle")
    editor.wait_for("1 to approve · echo ran >> ran.txt · :Callboard next")
    place(editor, size[1] - 4)
    editor.keys(":echo 'typed'<CR>")
    editor.wait_for(re.compile(r"^typed", re.MULTILINE))
    editor.command("tabnew")
    editor.wait_for(lambda: corner(editor))
    editor.command("tabprevious")
    editor.wait_for(lambda: corner(editor))
    editor.call("nvim_ui_try_resize", size[0] - 20, size[1] - 6)
    place(editor, size[1] - 6 - 4)
    editor.command("set cmdheight=3")
    place(editor, size[1] - 6 - 6)
    editor.command("set laststatus=0")
    place(editor, size[1] - 6 - 5)
    editor.command("Callboard next")
    editor.wait_for(lambda: corner(editor) == [])
    editor.wait_for("$ echo ran")
    settle(editor)
    editor.keys("4")
    editor.wait_for(lambda: pending(editor) == [])
    editor.wait_gone("$ echo ran")
    assert corner(editor) == []


def test_the_command_line_window_is_left_alone(editor):
    editor.keys("q:")
    editor.wait_for(lambda: editor.lua("return vim.fn.getcmdwintype()") == ":")
    elsewhere(editor, "run it")
    editor.wait_for(lambda: pending(editor))
    editor.lua("require('callboard.notify').warn('one\\ntwo')")
    editor.keys("iecho 'typed'")
    editor.wait_for("echo 'typed'")
    assert corner(editor) == []
    editor.keys("<CR>")
    editor.wait_for(lambda: corner(editor))
    editor.wait_for("Callboard: one")
    assert not re.search(r"E\d+:|traceback", editor.messages())


def test_two_editors_one_answer(open_editor):
    first = open_editor(scenario=SCENARIO)
    begin(first, "run it")
    second = open_editor(scenario=SCENARIO, store=first.store)
    second.command("Callboard next")
    second.wait_for("1 once")
    first.command("Callboard toggle")
    first.wait_for("1 to approve")
    settle(second)
    second.keys("1")
    second.wait_for("It was done.")
    first.wait_gone(NEXT)
    assert pending(first) == []
    assert (first.workspace / "ran.txt").read_text() == "ran\n"


def test_who_is_second_is_told_what_came_of_it(open_editor):
    first = open_editor(scenario=SCENARIO)
    begin(first, "run it")
    second = open_editor(scenario=SCENARIO, store=first.store)
    second.command("Callboard next")
    second.wait_for("1 once")
    settle(first)
    settle(second)
    # Both ask at the same time: each has asked before it can have heard of the other.
    for editor in (first, second):
        editor.lua(
            "local app = require('callboard.app').get() local a = app.approvals.pending[1]"
            " _G.go = function() app:answer(a, a.options[1]) end"
        )
    first.lua("_G.go()")
    first.wait_for("It was done.")
    second.lua("_G.go()")
    second.wait_for(lambda: "was allowed by" in second.said())
    second.wait_gone("1 once")


def test_an_agents_approval_says_who_asks_and_is_answered_in_its_roots_chat(editor):
    editor.command("Callboard new")
    editor.command("Callboard send call docs")
    editor.wait_for("asked by docs")
    editor.command("Callboard toggle")
    editor.wait_for("1 to approve · Create docs.md · docs · :Callboard next")
    editor.command("Callboard agents")
    editor.wait_for("docs  waits for approval")
    editor.wait_for("to approve: Create docs.md")
    assert editor.lua("return vim.fn.search('waits for approval', 'cw')") > 0
    editor.keys("a")
    editor.wait_for("asked by docs")
    settle(editor)
    editor.keys("1")
    editor.wait_for(lambda: (editor.workspace / "docs.md").exists())
    editor.wait_for(re.compile(r"✓ docs  completed"))


def test_what_would_act_on_the_terminal_is_spelled_out(editor):
    begin(editor, "nasty")
    shown = "\n".join(editor.buffer("callboard://chat"))
    assert r"$ echo \u202egnp.\u202c \x1b[2J;" in shown  # as the server spells it
    assert "exactly `echo <U+202E>gnp" in shown  # as the plugin does
    assert "rm -rf %d" in shown
    editor.command("Callboard toggle")
    editor.wait_for("1 to approve")
    for seen in (shown, editor.text()):
        assert re.search("[\u202a-\u202e\x1b]", seen) is None


def test_a_server_that_dies_takes_no_approval_with_it(editor):
    begin(editor, "run it")
    editor.command("Callboard toggle")
    editor.wait_for(lambda: corner(editor))
    editor.kill_server()
    editor.wait_for(
        lambda: editor.lua("return require('callboard.app').get().server.state") == "ready"
    )
    editor.command("Callboard next")
    editor.wait_for("1 once")
    settle(editor)
    to_chat(editor)
    editor.keys("1")
    editor.wait_for("It was done.")
    assert (editor.workspace / "ran.txt").read_text() == "ran\n"


def test_a_turn_that_is_stopped_takes_its_approval_along(editor):
    begin(editor, "run it")
    editor.command("Callboard toggle")
    editor.wait_for(lambda: corner(editor))
    editor.command("Callboard interrupt")
    editor.wait_gone(NEXT)
    assert pending(editor) == []


def test_without_the_corner_a_message_tells_it_once_and_the_bell_rings(open_editor):
    editor = open_editor(scenario=SCENARIO, options={"approvals": {"float": False, "bell": True}})
    elsewhere(editor, "run it")
    wanted = "echo ran >> ran.txt waits for your answer. :Callboard next shows it"
    editor.wait_for(lambda: wanted in editor.said())
    assert corner(editor) == []
    editor.wait_for(
        lambda: "\a" in "".join(path.read_text() for path in editor.folder.glob("nvim-stderr-*"))
    )
    editor.command("Callboard next")
    editor.wait_for("1 once")
    assert editor.said().count(wanted) == 1
