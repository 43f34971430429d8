"""Commands of agents as people write them, so that what was allowed is known again when it is run. Pure."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Final

from ...tools.ending import MARK
from ...tools.environment import CALM

_SHELLS: Final = frozenset(
    folder + name
    for name in ("sh", "bash", "zsh", "dash", "fish")
    for folder in ("", "/bin/", "/usr/bin/", "/usr/local/bin/")
)
"""Those of the system; a program of that name that lies elsewhere is whatever it is."""


_HARMLESS: Final = frozenset(
    [
        *(
            "CI",
            "CLAUDECODE",
            "CLICOLOR",
            "COLORTERM",
            "COLUMNS",
            "FORCE_COLOR",
            "GIT_TERMINAL_PROMPT",
        ),
        *("LANG", "LC_ALL", "LINES", "NO_COLOR", "PWD", "TERM"),
    ]
)
"""Variables that change how a command looks, and not what it does."""


def _is_harmless(name: str, value: str) -> bool:
    if name == MARK:
        return True  # ours takes its place
    if name == "SHELL":
        return value.startswith("/") and value in _SHELLS
    return name in _HARMLESS or CALM.get(name) == value


def with_variables(line: str, variables: Mapping[str, str]) -> str:
    """A command line with what is set for it, as a shell has it: a variable can have a harmless command do
    anything, so that it is part of what is judged and shown."""
    told = [
        f"{name}={shlex.quote(value)}"
        for name, value in variables.items()
        if not _is_harmless(name, value)
    ]
    return f"export {' '.join(told)}; {line}" if told else line


def command_line(words: Sequence[str]) -> str:
    """A command as people write it: what a shell is given, without the shell."""
    if len(words) == 3 and words[0] in _SHELLS and words[1] in ("-c", "-lc"):
        return words[2]
    return shlex.join(words)


def without_place(line: str, cwd: str) -> str:
    """A command line without its going to the folder where it runs anyway."""
    for quoted in (shlex.quote(cwd), f"'{cwd}'", f'"{cwd}"', cwd):
        line = line.removeprefix(f"cd {quoted} && ")
    return line
