"""``callboard editor``: the editors' plugins that this installation carries."""

import os
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from .editor_install import editors_found, find_editor, install_extension
from .exits import CommandError, Exit
from .terminal import line, open_console

app = App(name="editor", help="Find and install the editors' plugins that come with Callboard.")

PLUGINS = {"nvim": "plugin/callboard.lua", "vscode": "package.json"}
"""Editors, each with a file that its plugin has for certain in a checkout."""

PACKAGE = "callboard.vsix"
"""What of the plugin for VS Code is installed, and all that an installed Callboard has of it."""


@app.command
def path(editor: str, /) -> int:
    """Print where an editor's plugin is: a folder for Neovim, a .vsix file for VS Code.

    It is of the same release as this command, so plugin and server always fit. Neovim: have that folder
    on 'runtimepath', or name it to a plugin manager as a local plugin. VS Code: `callboard editor install
    vscode` installs the file.

    Parameters
    ----------
    editor
        `nvim`: Neovim. `vscode`: VS Code, and what is made of it.
    """
    found = plugin_path(editor)
    if sys.stdout.isatty():
        open_console().print(line(str(found)), soft_wrap=True)
    else:
        sys.stdout.buffer.write(os.fsencode(found) + b"\n")
        sys.stdout.buffer.flush()
    return Exit.OK


@app.command
def install(
    editor: str, /, *, command: Annotated[str | None, Parameter(name="--command")] = None
) -> int:
    """Install an editor's plugin into that editor: the extension for VS Code.

    Open windows of VS Code take it in when they are loaded anew.

    Parameters
    ----------
    editor
        `vscode`: VS Code, VSCodium, Cursor or code-server, whichever is found first.
    command
        The editor's own command, by name or path: `codium`, `/opt/code/bin/code`.
    """
    if editor == "nvim":
        raise CommandError(
            "the plugin for nvim needs no installing",
            exit=Exit.USAGE,
            hint="`callboard editor path nvim` prints the folder that Neovim is to be told of.",
        )
    package = plugin_path(editor)
    chosen = find_editor(command)
    install_extension(chosen, package)
    console = open_console()
    console.print(line(f"Installed the Callboard extension with {chosen}"), soft_wrap=True)
    others = [str(other) for other in editors_found() if other != chosen]
    if command is None and others:
        console.print(
            line(f"Not into these, which --command can name: {', '.join(others)}"), soft_wrap=True
        )
    console.print(
        "Windows that are open take it in with `Developer: Reload Window`.", soft_wrap=True
    )
    server = Path(sys.executable).with_name("callboard.exe" if os.name == "nt" else "callboard")
    if server.exists():
        told = f"If it does not find the server, set `callboard.server.path` to {server}"
        console.print(line(told), soft_wrap=True)
    return Exit.OK


def plugin_path(editor: str) -> Path:
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
    packed = here.parents[1] / "editors" / editor
    checkout = here.parents[3] / "editors" / editor
    if editor == "vscode":
        for package in (packed / PACKAGE, checkout / "dist" / PACKAGE):
            if package.is_file():
                return package
        if (checkout / holds).is_file():
            raise CommandError(
                "the extension for VS Code is not packed in this checkout",
                hint=f"`make vsix` packs it; it is run in {checkout.parents[1]}.",
            )
    else:
        for folder in (packed, checkout):
            if (folder / holds).is_file():
                return folder
    raise CommandError(
        f"this installation lacks the plugin for {editor}",
        hint="Install Callboard from a wheel that carries it, or use a whole checkout of it.",
    )
