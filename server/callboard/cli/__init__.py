"""The command ``callboard``.

Importing this package costs nothing, and ``callboard serve`` loads nothing of the other commands:
an editor waits for it.
"""

import os
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line (default: this process's) and returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    given = _take_store(given)
    try:
        given = _login_behind_serve(given)
        if given[:1] == ["serve"] and not {"--help", "-h"} & set(given):
            from callboard.rpc.serve import main as serve

            return serve(_without_launcher_flags(given[1:]))
        from .app import execute

        return execute(given)
    except KeyboardInterrupt:  # while the rest was still being loaded, or nobody had spoken yet
        return 130


def _take_store(arguments: list[str]) -> list[str]:
    """``--store PATH`` before the command; every server that is started inherits it."""
    match arguments:
        case ["--store", path, *rest]:
            os.environ["CALLBOARD_STORE"] = os.path.abspath(path)  # noqa: PTH100 (pathlib is slow to load)
            return rest
        case [first, *rest] if first.startswith("--store="):
            return _take_store(["--store", first.removeprefix("--store="), *rest])
        case _:
            return arguments


def _login_behind_serve(arguments: list[str]) -> list[str]:
    """An editor that has a person log in runs the command by which it starts the agent, with ``login`` behind it."""
    match arguments:
        case ["serve", *_, "login"]:
            return ["login"]
        case _:
            return arguments


def _without_launcher_flags(arguments: list[str]) -> list[str]:
    """Editors add these on their own; stdio is the only transport, and the process id that matters
    comes with ``initialize``."""
    return [
        argument
        for argument in arguments
        if argument != "--stdio" and not argument.startswith("--clientProcessId")
    ]
