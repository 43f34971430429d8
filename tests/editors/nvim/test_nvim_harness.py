"""The harness itself: that it sees what is drawn, and what was left running."""

import re
import signal
import sys
import time

import psutil
import pytest
from nvim_harness import PATIENCE_S, Gone, ended
from nvim_versions import version_of


def test_keys_are_typed_and_the_screen_is_read(open_editor):
    editor = open_editor(size=(40, 10))
    editor.keys("iA line with a ")
    editor.type("<tag>\nand 全角 text")
    editor.keys("<Esc>")
    editor.wait_for("A line with a <tag>\nand 全角 text")
    editor.wait_for(re.compile(r"^~$", re.MULTILINE))
    assert editor.buffer() == ["A line with a <tag>", "and 全角 text"]
    assert len(editor.screen()) == 10
    editor.command("vsplit | enew")
    editor.wait_for(re.compile(r"│A line"))
    editor.command("only")
    editor.wait_gone("A line")


def test_scrolling_is_followed(open_editor):
    editor = open_editor(size=(30, 8))
    editor.lua("vim.api.nvim_buf_set_lines(0, 0, -1, true, ...)", [f"row {n}" for n in range(60)])
    editor.wait_for("row 0\nrow 1\n")
    editor.keys("3<C-e>")
    editor.wait_for(lambda: editor.screen()[:2] == ["row 3", "row 4"])
    editor.keys("G")
    editor.wait_for(lambda: editor.screen()[:6] == [f"row {n}" for n in range(54, 60)])
    editor.keys("2<C-y>")
    editor.wait_for(lambda: editor.screen()[:6] == [f"row {n}" for n in range(52, 58)])


def test_an_editor_that_waits_for_a_key_still_shows_its_screen(open_editor):
    editor = open_editor(size=(60, 10))
    editor.keys(""":echo "Blocked by\\na prompt"<CR>""")
    editor.wait_for("a prompt")
    editor.wait_for(lambda: editor.mode()["blocking"])
    with pytest.raises(AssertionError, match=r"not in 0\.1 s: 'never'") as failed:
        editor.wait_for("never", deadline=0.1)
    assert "│a prompt" in str(failed.value)
    assert "'blocking': True" in str(failed.value)
    editor.keys("<CR>")
    editor.wait_for(lambda: not editor.mode()["blocking"])


def test_an_environment_of_its_own(open_editor, nvim, nvim_version):
    editor = open_editor(options={"render": {"icons": "text"}})
    seen = editor.lua(
        "return {vim.fn.stdpath('config'), vim.fn.stdpath('state'), vim.fn.expand('~'), vim.fn.getcwd(),"
        " vim.env.CALLBOARD_STORE}"
    )
    assert [path for path in seen if not path.startswith(str(editor.folder))] == []
    plugin, runtime = editor.lua("return vim.opt.rtp:get()[1], vim.env.VIMRUNTIME"), nvim
    assert plugin.endswith("editors/nvim"), runtime
    assert editor.lua("return vim.g.callboard")["render"] == {"icons": "text"}
    assert editor.lua("return vim.g.callboard")["server"]["cmd"][1:] == ["serve"]
    assert nvim_version == "installed" or version_of(nvim).startswith(nvim_version)


def test_an_error_in_the_start_is_no_secret(open_editor):
    with pytest.raises(AssertionError, match="did not start well") as failed:
        open_editor(init="error('broken by the test')")
    assert "broken by the test" in str(failed.value)


SLEEPER = f"vim.system({{ {sys.executable!r}, '-c', 'import time; time.sleep(600)', 'callboard', 'serve' }}"


def test_servers_are_seen_and_killed(open_editor):
    editor = open_editor()
    editor.lua(f"{SLEEPER}, {{}}, function() _G.ended = true end)")
    editor.wait_for(editor.server_pids)
    editor.kill_server()
    editor.wait_for(lambda: editor.lua("return _G.ended"))
    assert editor.server_pids() == []


@pytest.mark.parametrize("ending", ["quit", "kill"])
def test_what_stays_behind_is_found_and_ended(open_editor, ending, monkeypatch):
    monkeypatch.setattr("nvim_harness.PATIENCE_S", 1.0)
    editor = open_editor()
    editor.lua(f"{SLEEPER}, {{ detach = true }})")
    (pid,) = editor.wait_for(editor.server_pids)
    server = psutil.Process(pid)
    if ending == "kill":
        editor.kill()
    with pytest.raises(AssertionError, match=f"left running: .* {pid} "):
        editor.close()
    while not ended(server):
        time.sleep(0.005)  # orphans send no event; the time limit of the test is the deadline


def test_an_editor_that_is_gone_says_so(open_editor):
    editor = open_editor()
    editor.process.send_signal(signal.SIGKILL)
    editor.process.wait(PATIENCE_S)
    with pytest.raises(Gone):
        editor.wait_for("anything")


def test_two_editors_on_one_store(open_editor):
    first = open_editor()
    second = open_editor(store=first.store)
    stores = [editor.lua("return vim.env.CALLBOARD_STORE") for editor in (first, second)]
    assert stores[0] == stores[1]
    assert first.folder != second.folder
