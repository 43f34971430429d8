"""The windows of a chat among others that come and go; real keys, a real server."""

from collections.abc import Callable

import pytest
from nvim_harness import Editor


def height(editor: Editor, kind: str) -> int:
    """Of the window that shows that half of the chat."""
    return editor.lua(
        """
        local win = require('callboard.ui.layout').find(...)
        return win and vim.api.nvim_win_get_height(win) or -1
        """,
        kind,
    )


@pytest.fixture
def editor(open_editor: Callable[..., Editor]) -> Editor:
    editor = open_editor()
    editor.command("Callboard new")
    editor.wait_for("Nothing was said yet")
    return editor


def test_the_input_keeps_its_height_when_lists_come_and_go(editor: Editor):
    before = height(editor, "input"), height(editor, "chat")
    for _ in range(3):
        editor.command("Callboard changes")
        editor.wait_for("No file was changed yet")
        editor.keys("q")
        editor.wait_for(
            lambda: (height(editor, "input"), height(editor, "chat")) == before,
            what="the windows as they were",
        )


def test_a_height_that_the_person_chose_is_kept(editor: Editor):
    editor.keys("10<C-w>_")
    editor.wait_for(lambda: height(editor, "input") == 10)
    editor.command("Callboard changes")
    editor.wait_for("No file was changed yet")
    editor.keys("q")
    editor.wait_gone("No file was changed yet")
    editor.wait_for(lambda: height(editor, "input") == 10)


def test_a_screen_that_was_small_meanwhile_changes_nothing(editor: Editor):
    before = height(editor, "input"), height(editor, "chat")
    editor.command("Callboard changes")
    editor.wait_for("No file was changed yet")
    for lines in (18, 40):
        editor.call("nvim_ui_try_resize", 120, lines)
        editor.wait_for(lambda lines=lines: editor.lua("return vim.o.lines") == lines)
    editor.keys("q")
    editor.wait_for(lambda: (height(editor, "input"), height(editor, "chat")) == before)


def test_a_screen_of_five_lines_does_not_end_neovim(editor: Editor):
    """Neovim aborts where windows of a fixed height have no room, so ours have none."""
    editor.command("Callboard changes")
    editor.wait_for("No file was changed yet")
    editor.call("nvim_ui_try_resize", 120, 5)
    editor.wait_for(
        lambda: editor.lua("return vim.o.lines") < 20
    )  # it takes no fewer than it needs
    editor.command("redraw!")
    editor.call("nvim_ui_try_resize", 120, 40)
    editor.wait_for(lambda: editor.lua("return vim.o.lines") == 40)
    editor.keys("q")
    editor.wait_gone("No file was changed yet")


def test_the_bar_of_the_input_names_keys_that_work_in_its_mode(editor: Editor):
    editor.wait_for("<CR> sends, g? helps")
    editor.keys("i")
    editor.wait_for("<C-s> sends")
    editor.keys("<Esc>")
    editor.wait_for("<CR> sends, g? helps")


def test_the_bar_of_the_input_tells_how_to_answer(open_editor: Callable[..., Editor]):
    editor = open_editor(
        scenario="""
rules:
  - when: {last_user: write, step: 0}
    answer:
      - call: {tool: write_file, arguments: {path: one.txt, content: "One.\\n"}}
default: So be it.
"""
    )
    editor.command("Callboard new")
    editor.wait_for("Nothing was said yet")
    editor.command("Callboard send write")
    editor.wait_for(":Callboard next answers, <CR> queues, g? helps")
    editor.command("Callboard next")
    editor.wait_for(
        lambda: "Create one.txt" in editor.lua("return vim.api.nvim_get_current_line()")
    )
    editor.keys("gd")
    editor.wait_for("ga allow once")
    editor.wait_gone(":Callboard next")  # its chat is not in view, but it is


def test_lists_have_no_address_in_their_status_line(editor: Editor):
    editor.command("Callboard changes")
    editor.wait_for("No file was changed yet")
    editor.wait_for("g? helps   All")
    assert "callboard://changes" not in editor.text()


def test_an_input_that_is_left_alone_takes_no_lines_from_the_screen(editor: Editor):
    editor.keys("<C-w>k:q<CR>")
    editor.wait_for(lambda: height(editor, "chat") == -1)
    editor.wait_for(lambda: height(editor, "input") == -1)
    assert editor.lua("return vim.o.cmdheight") == 1
    editor.command("Callboard toggle")
    editor.wait_for("Nothing was said yet")
    assert editor.lua("return vim.o.cmdheight") == 1
    assert height(editor, "chat") > 20
