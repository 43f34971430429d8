"""Commands of agents as people write them, so that what was allowed is known again when it is run. Pure."""

import shlex
from collections.abc import Sequence
from typing import Final

_SHELLS: Final = frozenset(
    folder + name
    for name in ("sh", "bash", "zsh", "dash", "fish")
    for folder in ("", "/bin/", "/usr/bin/", "/usr/local/bin/")
)
"""Those of the system; a program of that name that lies elsewhere is whatever it is."""


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
