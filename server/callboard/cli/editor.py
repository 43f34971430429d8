"""``callboard editor``: the editors' plugins that this installation carries."""

import os
import sys
from pathlib import Path

from cyclopts import App

from .exits import CommandError, Exit
from .terminal import line, open_console

app = App(name="editor", help="Find the editors' plugins that come with Callboard.")

PLUGINS = {"nvim": "plugin/callboard.lua"}
"""Editors, each with a file that its plugin has for certain."""


@app.command
def path(editor: str, /) -> int:
    """Print the folder of an editor's plugin, for the configuration of that editor.

    It is of the same release as this command, so plugin and server always fit. Neovim: have that folder
    on 'runtimepath', or name it to a plugin manager as a local plugin.

    Parameters
    ----------
    editor
        `nvim`: Neovim.
    """
    found = plugin_folder(editor)
    if sys.stdout.isatty():
        open_console().print(line(str(found)), soft_wrap=True)
    else:
        sys.stdout.buffer.write(os.fsencode(found) + b"\n")
        sys.stdout.buffer.flush()
    return Exit.OK


def plugin_folder(editor: str) -> Path:
    """Inside of an installed package, or in a checkout. Raises `CommandError`."""
    holds = PLUGINS.get(editor)
    if holds is None:
        there = ", ".join(PLUGINS)
        raise CommandError(
            f"there is no plugin for the editor {editor!r}",
            exit=Exit.USAGE,
            hint=f"Plugins come for: {there}.",
        )
    here = Path(__file__).resolve()
    for folder in (here.parents[1] / "editors", here.parents[3] / "editors"):
        if (folder / editor / holds).is_file():
            return folder / editor
    raise CommandError(
        f"this installation lacks the plugin for {editor}",
        hint="Install Callboard from a wheel, or use a whole checkout of it.",
    )
