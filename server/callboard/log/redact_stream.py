"""Taking secrets out of text that streams: what may be the beginning of one waits for its end.

A credential that arrives in pieces has its shape in none of them. So the end of the text is held
back while it could still become, or go on as, a secret; everything else passes at once.
"""

import re
from typing import Final

from .redact import NEEDLES, Redactor

_MOST_HELD: Final = 16 * 1024
"""Characters. No credential is longer; a longer stretch passes with what was found in it."""

_WORD: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./+=:~-"
_TELLING: Final = (*NEEDLES, "sk_", "rk_", "secret", "Secret", "SECRET", "eyJ", "-----BEGIN")
_BEGINNINGS: Final = frozenset(n[:size] for n in _TELLING for size in range(1, len(n)))
_LONGEST: Final = max(map(len, _TELLING))
_NAMED = re.compile(
    r"(?i:bearer|secret_?access_?key)[\\\"']{0,4}\s{0,8}[=:]?\s{0,8}[\\\"']{0,4}[\w.~+/=-]*\Z"
)
_NAMED_REACH: Final = 1024
_KEY_BEGINS: Final = "-----BEGIN "
_KEY_ENDS = re.compile(r"-----END [A-Z0-9 ]*-----")


class RedactedStream:
    """One stream of text."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""

    def feed(self, text: str) -> str:
        """Takes `text`; returns what can be shown now, without secrets."""
        text = self._held + text
        cut = len(text)
        start = _unfinished(text)
        exact = self._redactor.exact
        for secret in exact:
            start = min(start, _beginning_of(secret, text))
        # What is all there may look like the beginning of another one, and is not cut for that.
        start = max(start, _complete_through(text, exact))
        if cut - start <= _MOST_HELD:
            cut = start
        self._held = text[cut:]
        return self._redactor.text(text[:cut]) if cut else ""

    def end(self) -> str:
        """What is left when no more comes."""
        text, self._held = self._held, ""
        return self._redactor.text(text) if text else ""


def _unfinished(text: str) -> int:
    """From where on the end of `text` may belong to a credential that is not all there."""
    start = len(text.rstrip(_WORD))
    word = text[start:]
    if not (any(needle in word for needle in _TELLING) or _begins(word)):
        start = len(text)
    named = _NAMED.search(text, max(0, len(text) - _NAMED_REACH))
    if named is not None:
        start = min(start, named.start())
    key = text.rfind(_KEY_BEGINS)
    if key >= 0 and _KEY_ENDS.search(text, key) is None:
        head = text[key : key + 80]
        if "PRIVATE KEY" in head or "\n" not in head:
            start = min(start, key)
    return start


def _begins(word: str) -> bool:
    """Whether `word` ends with what may become the telling part of a credential."""
    for size in range(1, min(len(word), _LONGEST) + 1):
        if word[-size:] in _BEGINNINGS and not word[-size - 1 : -size].isalnum():
            return True
    return False


def _complete_through(text: str, exact: tuple[str, ...]) -> int:
    """Where the last secret ends that no further text could make longer; 0 when there is none."""
    through = max((found.end() for found in _KEY_ENDS.finditer(text)), default=0)
    for secret in exact:
        at = text.rfind(secret)
        if at >= 0 and not any(other.startswith(secret) and other != secret for other in exact):
            through = max(through, at + len(secret))
    return through


def _beginning_of(secret: str, text: str) -> int:
    """From where on the end of `text` is a beginning of `secret`; its length when it is none."""
    at = text.find(secret[0], max(0, len(text) - len(secret) + 1))
    while at >= 0:
        if secret.startswith(text[at:]):
            return at
        at = text.find(secret[0], at + 1)
    return len(text)
