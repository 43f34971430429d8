"""What a program has said at its end: which of it tells something, and what a person is shown of it. Pure."""

import re
from collections.abc import Sequence
from typing import Final

SAID_LAST: Final = "it said last:"
_TELLING: Final = re.compile(
    r"^\W*(?:uncaught\s+)?(?:[\w.]*(?:error|exception)\b[^:]*:|error\b|fatal\b|panic\b|thread '.*' panicked)",
    re.IGNORECASE,
)
_FRAME: Final = re.compile(
    r"^\s*(?:at\s|\^|throw\s|node:internal|file \"|traceback\b|[{}\]]|node\.js v\d|\d+:\s|code:)",
    re.IGNORECASE,
)
_SHORT_CHARS: Final = 600


def kept(lines: Sequence[str], most: int) -> list[str]:
    """The last `most` lines; more where the line that tells what was wrong stands above them, for a stack is often
    longer: that line, then, and what comes behind it, a bounded number of it."""
    told = [line.rstrip() for line in lines if line.strip()][-5 * most :]
    first = next((i for i, line in enumerate(told) if _TELLING.search(line)), len(told))
    return told[min(first, max(len(told) - most, 0)) :][: 2 * most]


def telling(lines: Sequence[str]) -> str:
    """The first line that tells what was wrong; else the last that is no part of a stack."""
    told = [line.strip() for line in lines if line.strip()]
    for line in told:
        if _TELLING.search(line):
            return line
    plain = [line for line in told if _FRAME.search(line) is None]
    return (plain or told or [""])[-1]


def in_short(said: str) -> str:
    """`said` of an agent as one line of bounded length."""
    head, mark, words = said.partition(SAID_LAST)
    line = f"{head}{mark} {telling(words.splitlines())}" if mark else head
    plain = " ".join(line.split())
    return plain if len(plain) <= _SHORT_CHARS else plain[: _SHORT_CHARS - 1] + "…"
