"""Whom a text addresses: pure (session-messaging 9).

A mention is ``@name`` at the start of a word or after punctuation: ``@beta``, ``(@beta)``, ``**@beta**``,
``hi,@beta``. The name is all that follows of letters, digits, ``_``, ``-`` and ``.``, and is compared as a whole, in
whatever case; marks that end a sentence, or an emphasis, are no part of it. Not meant are: addresses
(``me@beta``, ``@beta@example.org``), places (``https://example.org/@beta``, ``@beta/package``), what a backslash
stands before, code (fenced and inline), and quoted lines.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence

_TOKEN = re.compile(r"@(\w[\w.-]*)")
_QUOTED = re.compile(r" {0,3}>")
_FENCE = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(`{3,}(?=[^`]*$)|~{3,})")
_TICKS = re.compile(r"`+")


def mentions(text: str) -> Iterator[str]:
    """What the text addresses, in its order, as it is written: it may end in marks that are no part of a
    name; `named` knows."""
    if "@" not in text:
        return
    for paragraph in _paragraphs(text):
        if "@" not in paragraph:
            continue
        for word in _without_code(paragraph).split():
            if "@" not in word:
                continue
            place = word.find("://")
            for token in _TOKEN.finditer(word):
                if 0 <= place < token.start():
                    break
                if _begins(word, token.start()) and not _goes_on(word, token.end()):
                    yield token[1]


def named(token: str, members: Sequence[str]) -> str | None:
    """The member that a mention means: the longest name that it can be."""
    for name in dict.fromkeys((token, token.rstrip("."), token.rstrip("._-"))):
        wanted = name.casefold()
        for member in members:
            if member.casefold() == wanted:
                return member
    return None


def mentioned(text: str, members: Sequence[str], *, by: str | None = None) -> str | None:
    """The member that the text addresses first; never `by`, who has written it."""
    own = None if by is None else by.casefold()
    for token in mentions(text):
        member = named(token, members)
        if member is not None and member.casefold() != own:
            return member
    return None


def shown(token: str) -> str:
    """A mention of nobody, for people."""
    return token.rstrip("._-")[:64]


# --- where one may stand ------------------------------------------------------------------------------


def _begins(word: str, at: int) -> bool:
    """Whether what stands before it leaves it a mention: no letter or digit, as in an address, whatever
    underscores of an emphasis are between them, and no backslash."""
    while at > 0 and word[at - 1] == "_":
        at -= 1
    return at == 0 or not (word[at - 1].isalnum() or word[at - 1] == "\\")


def _goes_on(word: str, at: int) -> bool:
    """Whether what stands behind it makes it something else: an address, or a place."""
    behind = word[at : at + 2]
    return behind[:1] == "@" or (behind[:1] == "/" and (behind[1:].isalnum() or behind[1:] == "_"))


def _paragraphs(text: str) -> Iterator[str]:
    """The text without fenced code and quoted lines, which end a paragraph as blank lines do."""
    has_fences = "```" in text or "~~~" in text
    paragraph: list[str] = []
    fence = ""
    for line in (*text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), ""):
        if fence:
            bare = line.strip(" \t")
            if len(bare) >= len(fence) and bare == fence[0] * len(bare):
                fence = ""
            continue
        opened = _FENCE.match(line) if has_fences else None
        if opened is not None:
            fence = opened[1]
        elif line.strip() and not _QUOTED.match(line):
            paragraph.append(line)
            continue
        if paragraph:
            yield "\n".join(paragraph)
            paragraph.clear()


def _without_code(text: str) -> str:
    """A paragraph without inline code: a run of backticks opens a span if there is another one of the same length,
    which ends it."""
    if "`" not in text:
        return text
    runs = [(run.start(), run.end()) for run in _TICKS.finditer(text)]
    of_length: defaultdict[int, list[int]] = defaultdict(list)
    for start, end in runs:
        of_length[end - start].append(start)
    parts: list[str] = []
    at = 0
    for start, end in runs:
        if start < at:
            continue  # it is within a span
        same = of_length[end - start]
        next_one = bisect_right(same, start)
        if next_one < len(same):
            parts.append(text[at:start])
            at = same[next_one] + end - start
    parts.append(text[at:])
    return " ".join(parts)
