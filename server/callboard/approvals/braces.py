"""Brace expansion, as far as a guard needs it: ``{rm,-rf,/}`` is a command of three words."""

import itertools
from typing import Final

MOST: Final = 64
"""More words than this are not made of one; no honest command needs them to be judged."""
LONGEST: Final = 4096
"""Characters. A longer word is left as it is."""


def expanded(word: str) -> tuple[str, ...]:
    """The words that bash makes of `word`, whose braces are not quoted: itself, when there is no
    expansion in it. Of a sequence ``{a..c}`` only its ends."""
    waiting, done = [word], list[str]()
    while len(word) <= LONGEST and waiting and len(waiting) + len(done) < MOST:
        now = waiting.pop(0)
        found = _group(now)
        if found is None:
            done.append(now)
            continue
        start, end, parts = found
        waiting[:0] = [now[:start] + part + now[end:] for part in parts]
    return tuple(done + waiting)


def _group(word: str) -> tuple[int, int, list[str]] | None:
    """The first group of braces that expands: where it starts, where it ends, what it offers."""
    found: tuple[int, int, list[str]] | None = None
    opened: list[list[int]] = []
    """Of each group that is open: where it starts, and its commas."""
    for at, char in enumerate(word):
        if char == "{":
            opened.append([at])
        elif char == "," and opened:
            opened[-1].append(at)
        elif char == "}" and opened:
            cuts = opened.pop()
            parts = _parts(word, [*cuts, at])
            if len(parts) > 1 and (found is None or cuts[0] < found[0]):
                found = cuts[0], at + 1, parts
    return found


def _parts(word: str, cuts: list[int]) -> list[str]:
    parts = [word[a + 1 : b] for a, b in itertools.pairwise(cuts)]
    return parts[0].split("..")[:2] if len(parts) == 1 else parts
