"""The help page, found as users find it."""

import shutil

from nvim_versions import PLUGIN


def test_help_is_there_with_its_tags(open_editor, tmp_path):
    installed = tmp_path / "installed"
    shutil.copytree(PLUGIN, installed, ignore=shutil.ignore_patterns("tests", "tags"))
    editor = open_editor(init=f"vim.opt.runtimepath:prepend({str(installed)!r})\n")
    editor.command(f"helptags {installed / 'doc'}")
    editor.command("Callboard help")
    editor.wait_for("Agents in Neovim: chat, approvals, changes, teams")
    assert editor.lua("return vim.bo.buftype") == "help"
    for tag in ("callboard-options", ":Callboard-undo", "CallboardTurnEnded", "callboard.status()"):
        editor.command(f"help {tag}")
        assert tag in editor.lua("return vim.api.nvim_get_current_line()")
    assert "E154" not in editor.messages()


def test_help_is_there_where_nobody_has_made_tags(open_editor):
    editor = open_editor()
    editor.command("Callboard help")
    editor.wait_for("Agents in Neovim: chat, approvals, changes, teams")
    assert editor.lua("return vim.bo.modifiable") is False
    assert editor.lua("return vim.bo.filetype") == "help"
