"""Programs that run other programs: what a simple command may start by way of its arguments."""

import functools
import re
from collections.abc import Iterator
from typing import Final

ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[[^\]]*\])?\+?=")
SHELLS: Final = frozenset(["sh", "bash", "zsh", "dash", "ksh", "ash", "fish", "busybox"])

MOST: Final = 32
"""More readings of one command than this are not looked at; no honest command has as many."""
_WRAPPERS: Final[dict[str, int]] = {
    "env": 0, "nohup": 0, "nice": 0, "ionice": 0, "time": 0, "timeout": 1, "gtimeout": 1,
    "stdbuf": 0, "setsid": 0, "xargs": 0, "exec": 0, "command": 0, "builtin": 0, "watch": 0,
    "strace": 0, "ltrace": 0, "caffeinate": 0, "busybox": 0, "toybox": 0, "flock": 1, "chrt": 1,
    "taskset": 1, "unshare": 0, "parallel": 0, "entr": 0,
}  # fmt: skip
"""How many plain words come before the program that these run."""

_SPLIT_STRING: Final = re.compile(r"-[A-Za-z0]*?S|--split-string=?")
_FIND_ACTIONS: Final = ("-exec", "-execdir", "-ok", "-okdir")


def program_name(word: str) -> str:
    """The name of a program, whatever path it is called by."""
    return word.replace("\\", "/").rpartition("/")[2].lower().removesuffix(".exe")


@functools.lru_cache(maxsize=64)
def wrapped(words: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """`words`, and the commands that it may run by way of ``env``, ``xargs``, ``find -exec``, …

    An option's value cannot be told from a program, so every reading is given, up to `MOST`.
    """
    starts = [0]
    for start in starts:
        for further in _inner_starts(words, start):
            if further not in starts and len(starts) < MOST:
                starts.append(further)
    return tuple(words[start:] for start in starts)


def _inner_starts(words: tuple[str, ...], start: int) -> Iterator[int]:
    """Where in `words` a program may stand that the one at `start` runs."""
    program = program_name(words[start]) if start < len(words) else ""
    if program == "find":
        for index in range(start + 1, len(words) - 1):
            if words[index] in _FIND_ACTIONS:
                yield index + 1
        return
    least = _WRAPPERS.get(program)
    if least is None:
        return
    options = passed = 0
    for index in range(start + 1, len(words)):
        word = words[index]
        if word.startswith("-"):
            options += 1
        elif not ASSIGNMENT.match(word):
            if passed >= least:
                yield index
            if passed == least + options:
                return  # even if every option took a value, this is the program
            passed += 1


def scripts_of(words: tuple[str, ...]) -> list[str]:
    """Text that this command hands to a shell, or splits as one would: of ``sh -c``, ``eval``, ``env -S``."""
    scripts: list[str] = []
    for candidate in wrapped(words):
        program = program_name(candidate[0]) if candidate else ""
        if program == "eval":
            scripts.append(" ".join(candidate[1:]))
        elif program in SHELLS:
            scripts += _after_c(candidate[1:])
        elif program == "env":
            scripts += _split_by_env(candidate[1:])
    return scripts


def _after_c(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """What may be the string of ``sh -c``: options may stand between them, some with a value."""
    for index, word in enumerate(arguments):
        if re.fullmatch(r"-[A-Za-z]*c[A-Za-z]*", word):
            return tuple(w for w in arguments[index + 1 :] if w[:1] not in ("-", "+"))[:2]
    return ()


def _split_by_env(arguments: tuple[str, ...]) -> Iterator[str]:
    """The strings of ``env -S``, with the words that follow them."""
    for index, word in enumerate(arguments):
        given = _SPLIT_STRING.match(word)
        if given is not None:
            yield " ".join((word[given.end() :], *arguments[index + 1 :]))
