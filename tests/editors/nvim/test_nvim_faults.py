"""What nobody does on purpose: servers that lie, buffers that are taken away. Nothing of it stops the editor, or
shows a traceback."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from nvim_harness import Editor
from nvim_versions import PLUGIN

RECORDINGS = PLUGIN / "tests" / "fixtures"
LIAR = Path(__file__).parent / "lying_server.py"
STREAM = """
chars_per_second: 2000
rules:
  - when: {last_user: long, step: 0}
    answer:
      - say: "word after word, "
        repeat: 4000
default: "I heard: {{last_user}}"
"""
PAGES = (
    "chat",
    "agents",
    "tasks",
    "changes",
    "sessions",
    "next",
    "queue",
    "model",
    "usage",
    "interrupt",
    "chat",
)


def tracebacks(editor: Editor) -> list[str]:
    """What of all messages is Lua's, and not for people."""
    said = editor.messages().splitlines()
    return [line for line in said if re.search(r"traceback|E5108|Error executing|Error in", line)]


def answered(editor: Editor) -> None:
    """Until all that was sent so far was heard: the server answers in order."""
    editor.lua(
        "_G.heard = false require('callboard.app').get():request('test/nothing', nil,"
        " function() vim.schedule(function() _G.heard = true end) end)"
    )
    editor.wait_for(lambda: editor.lua("return _G.heard"), what="the answer of the server")


def calm(editor: Editor) -> None:
    assert tracebacks(editor) == []
    assert not editor.mode()["blocking"]


@pytest.mark.parametrize("recording", ["approvals", "changed", "demo-group"])
def test_a_server_that_lies_shows_no_traceback_and_stops_nobody(open_editor, recording):
    path = RECORDINGS / recording
    root = json.loads(path.with_suffix(".said.json").read_text("utf-8"))["sessions"][0]["session"][
        "sessionId"
    ]
    for seed in range(3):
        server = [sys.executable, str(LIAR), "serve", str(path), str(seed), "0.4"]
        editor = open_editor(server=server)
        editor.lua("require('callboard.ui.chat').open(...)", root)
        answered(editor)
        for page in PAGES:
            editor.command(f"Callboard {page}")
            answered(editor)
            editor.keys("<Esc>j<CR>k<Esc>")
            calm(editor)
        editor.command("tabnew")
        editor.keys("istill here<Esc>")
        editor.wait_for("still here")
        calm(editor)
        editor.close()


def buffers(editor: Editor) -> dict[str, dict[str, Any]]:
    """What is behind the names of ours."""
    return editor.lua(
        "local all = vim.empty_dict() for _, buf in ipairs(vim.api.nvim_list_bufs()) do"
        " local kind = vim.api.nvim_buf_get_name(buf):match('^callboard://(%a+)')"
        " if kind then all[kind] = { buftype = vim.bo[buf].buftype, modifiable = vim.bo[buf].modifiable,"
        " keys = #vim.api.nvim_buf_get_keymap(buf, 'n') } end end return all"
    )


@pytest.fixture
def streaming(open_editor) -> Editor:
    editor = open_editor(scenario=STREAM)
    editor.command("Callboard new")
    editor.command("Callboard send long")
    editor.wait_for("word after word")
    return editor


@pytest.mark.parametrize("command", ["windo bdelete!", "%bdelete!", "windo bwipeout!"])
def test_a_chat_that_was_deleted_while_it_streams_comes_back_whole(streaming, command):
    whole = buffers(streaming)
    streaming.command(command)
    streaming.wait_for(lambda: buffers(streaming) == {}, what="the end of both buffers")
    streaming.command("Callboard chat")
    streaming.wait_for("word after word")
    assert buffers(streaming) == whole
    streaming.command("wall")
    calm(streaming)


@pytest.mark.parametrize("command", ["bdelete!", "bwipeout!"])
def test_an_input_that_was_deleted_alone_comes_back(streaming, command):
    whole = buffers(streaming)
    streaming.command("Callboard chat")
    streaming.command(command)
    streaming.wait_for(lambda: list(buffers(streaming)) == ["chat"], what="the end of the input")
    streaming.command("Callboard chat")
    assert buffers(streaming) == whole
    streaming.keys("iand more<Esc><CR>")
    streaming.wait_for("Waits for the end of the turn")
    streaming.wait_for("- and more")
    calm(streaming)


def test_a_chat_that_was_edited_anew_is_filled_again(streaming):
    streaming.command("wincmd k")
    streaming.lua(
        "for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do"
        " if vim.b[vim.api.nvim_win_get_buf(win)].callboard_kind == 'chat' then"
        " vim.api.nvim_set_current_win(win) end end vim.cmd('edit!')"
    )
    streaming.wait_for(lambda: "long" in streaming.buffer("callboard://chat"))
    streaming.wait_for("word after word")
    calm(streaming)


PARAGRAPH = """
chars_per_second: 4000
rules:
  - when: {last_user: long, step: 0}
    answer:
      - say: "word and word, "
        repeat: 200
      - say: "so it ends"
      - hang: true
default: "I heard: {{last_user}}"
"""


def test_a_paragraph_that_is_higher_than_the_window_is_followed_to_its_end(open_editor):
    editor = open_editor(scenario=PARAGRAPH)
    editor.command("Callboard new")
    editor.command("Callboard send long")
    editor.wait_for("so it ends")
    editor.command("Callboard interrupt")
    editor.wait_for("── stopped")
    editor.wait_for("so it ends")
