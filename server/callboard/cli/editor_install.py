"""Installing the extension with VS Code's own command, or that of an editor made of it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from .exits import CommandError, Exit

COMMANDS = ("code", "code-insiders", "codium", "cursor", "code-server")
"""By how likely a person means it."""

PATIENCE_S = 180
"""How long an editor may take; an installation takes a few seconds."""

_FOR_CMD = re.compile(r'[&|<>^%!"]')
"""What cmd.exe, which Windows runs batch files with, would not take as a part of a name."""


def editors_found() -> list[Path]:
    """The commands of this machine that can install an extension, the likeliest first."""
    found: list[Path] = []
    for name in COMMANDS:
        program = shutil.which(name)
        if program is not None:
            found.append(Path(program))
    for place in _usual_places():
        if place.is_file() and place not in found:
            found.append(place)
    return found


def find_editor(command: str | None) -> Path:
    """The command that is asked for, or the likeliest one. Raises `CommandError`."""
    if command is not None:
        program = shutil.which(command)
        if program is None:
            raise CommandError(
                f"there is no command {command!r}",
                exit=Exit.USAGE,
                hint="Name one that is on PATH, or the whole path of a program.",
            )
        return Path(program)
    found = editors_found()
    if not found:
        raise CommandError(
            f"found no VS Code: none of {', '.join(COMMANDS)} is on PATH",
            hint="Name its command with --command, or install the file by hand: in VS Code, the command\n"
            "`Extensions: Install from VSIX...` takes what `callboard editor path vscode` prints.",
        )
    return found[0]


def install_extension(command: Path, package: Path) -> None:
    """Has an editor install a .vsix in place of any other version. Raises `CommandError`."""
    try:
        done = subprocess.run(
            [command, "--install-extension", _named(command, package), "--force"],
            cwd=package.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE_S,
            check=False,
        )
    except OSError as fault:
        raise CommandError(f"cannot run {command}: {fault.strerror or fault}") from fault
    except subprocess.TimeoutExpired as fault:
        raise CommandError(
            f"{command} does not end within {PATIENCE_S} s",
            hint=f"Try it by hand: {command} --install-extension {package} --force",
        ) from fault
    if done.returncode != 0:
        said = done.stdout.decode(errors="replace").strip().splitlines()[-10:]
        raise CommandError(
            f"{command} could not install {package}: it ended with {done.returncode}",
            hint="\n".join(["It said:", *said]) if said else "It said nothing.",
        )


def _named(command: Path, package: Path) -> str:
    """The package as an argument. A batch file gets it by a name that no shell can read in another way."""
    if sys.platform != "win32" or command.suffix.lower() not in (".cmd", ".bat"):
        return str(package)
    if _FOR_CMD.search(str(command)):
        raise CommandError(
            f"{command} cannot be run: Windows would not take its name as it is",
            hint=f"Install the file by hand: {package}",
        )
    return package.name


def _usual_places() -> list[Path]:
    """Where VS Code's command is when nobody has put it on PATH."""
    if sys.platform == "darwin":
        inside = "Contents/Resources/app/bin/code"
        roots = (Path("/Applications"), Path.home() / "Applications")
        return [root / "Visual Studio Code.app" / inside for root in roots]
    if sys.platform == "win32":
        roots = [os.environ.get("LOCALAPPDATA", ""), os.environ.get("PROGRAMFILES", "")]
        inside = ("Programs/Microsoft VS Code/bin/code.cmd", "Microsoft VS Code/bin/code.cmd")
        return [Path(root, place) for root, place in zip(roots, inside, strict=True) if root]
    return []
