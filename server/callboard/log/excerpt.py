"""The words around what a search has found.

FTS5 has functions for it, ``snippet`` and ``highlight``, but they take time with the square of the matches
in a row, and nothing can interrupt them: of a tool's output that repeats a word 10,000 times they make
a search that never ends. This takes time with the length of the text, and looks at no more than some
matches.
"""

import itertools
import re
import unicodedata
from collections import Counter, deque
from collections.abc import Sequence
from functools import cached_property
from typing import Final

_WORDS: Final = 24
"""How many words are shown, a few of them before the match."""
_BEFORE: Final = 4
_REACH: Final = 160
"""Characters that about so many words take: words that are looked for stand together within them."""
_MOST_CHARS: Final = 240
"""That are looked at on each side of a match, where what stands there is no word that ends."""
_MATCHES: Final = 1_000

_MARKS: Final = "[\\u0300-\\u036f]*"
_WORD: Final = re.compile(r"\S+")
_PIECE: Final = re.compile(r"[^\W_]+")
_BEGINS: Final = r"(?<![^\W_])"
_ENDS: Final = r"(?![^\W_])"
_BETWEEN: Final = r"[\W_]{1,64}"


class _Plain(dict[int, str]):
    """Characters as they are compared: without case and accents, each still one character."""

    def __missing__(self, code: int) -> str:
        base = unicodedata.normalize("NFD", chr(code))[0].lower()
        self[code] = base if len(base) == 1 else chr(code)
        return self[code]


_PLAIN = _Plain()


def _plain(text: str) -> str:
    return text.lower() if text.isascii() else text.translate(_PLAIN)


class Excerpts:
    """Makes excerpts for one query, of whose words each may be only a beginning."""

    def __init__(self, terms: Sequence[tuple[str, bool]]) -> None:
        self._terms = tuple(dict.fromkeys(terms))

    @cached_property
    def _in_ascii(self) -> re.Pattern[str]:
        return _pattern(self._terms, marks="")

    @cached_property
    def _in_any(self) -> re.Pattern[str]:
        return _pattern(self._terms, marks=_MARKS)

    def of(self, text: str) -> str:
        """About `_WORDS` words of `text`, where most of the query's words stand together; its beginning,
        where none is found."""
        return _cut(text, self._place(_plain(text)))

    def _place(self, plain: str) -> int:
        pattern = self._in_ascii if plain.isascii() else self._in_any
        near: deque[tuple[int, int | None]] = deque()
        seen: Counter[int | None] = Counter()
        best, most = 0, 0
        for found in itertools.islice(pattern.finditer(plain), _MATCHES):
            near.append((found.start(), found.lastindex))
            seen[found.lastindex] += 1
            while found.end() - near[0][0] > _REACH and len(near) > 1:
                _, gone = near.popleft()
                seen[gone] -= 1
            together = sum(count > 0 for count in seen.values())
            if together > most:
                best, most = near[0][0], together
                if most == len(self._terms):
                    break
        return best


def _pattern(terms: Sequence[tuple[str, bool]], *, marks: str) -> re.Pattern[str]:
    """Each term a group of its own, as the index splits words: at all that is no letter or digit."""
    parts: list[str] = []
    for word, begins in terms:
        pieces = _PIECE.findall(_plain(unicodedata.normalize("NFC", word)))
        spelled = ("".join(re.escape(c) + marks for c in piece) for piece in pieces)
        parts.append(f"({_BETWEEN.join(spelled)}){'' if begins else _ENDS}")
    return re.compile(f"{_BEGINS}(?:{'|'.join(parts)})")


def _cut(text: str, place: int) -> str:
    """The words from a few before `place` on; an ellipsis where something is left out."""
    begin = max(0, place - _MOST_CHARS)
    before = [m.start() + begin for m in _WORD.finditer(text[begin:place])][-_BEFORE:]
    start = before[0] if before else place
    rest = _WORD.finditer(text[start : place + _MOST_CHARS])
    words = [m.end() + start for m in itertools.islice(rest, _WORDS)]
    end = words[-1] if words else start
    left = "…" if text[:start].strip() else ""
    right = "…" if text[end:].strip() else ""
    return f"{left}{text[start:end]}{right}"
