"""Names of agents: what a parent calls its children by, in tools, messages and lists."""

import unicodedata
from itertools import chain, pairwise

from callboard_rpc.errors import CallboardError

MAX_CHARS = 64
RESERVED = frozenset({"parent", "root", "group"})
"""Words that mean somebody else where an agent's name can stand."""

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_SELECTORS = (range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
_BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\U00016fe4\U0001d159") | {
    chr(code) for code in chain(*_SELECTORS)
}
"""Letters, marks and symbols that show nothing, or only choose between the forms of what is before them."""

_AS_EMOJI = "\ufe0f"
_SYMBOLS = frozenset({"So", "Sk", "Sm"})
_KEYCAPS = frozenset("0123456789#*")

_SHOWN_CHARS = 80


def clean_name(name: str) -> str:
    """The name as it is kept: composed, without white space at its ends, and one space where there was
    any inside. An emoji is the same name whether its colours are asked for or not.

    Raises invalidParams for one that is blank, too long, reserved, or holds what nobody can see.
    """
    # tabs and line ends at the ends are white space like any other, and gone here
    composed = unicodedata.normalize("NFC", name.encode("utf-8", "replace").decode())
    # what was between a symbol and its mark is gone, and they may be one character now
    text = unicodedata.normalize("NFC", _without_colours(composed)).strip()
    unseen = sorted({c for c in text if c in _BLANKS or unicodedata.category(c) in _UNSEEN})
    if unseen:
        code = f"U+{ord(unseen[0]):04X}"
        raise _refused(f"an agent's name cannot hold the character {code}; use letters and spaces")
    text = " ".join(text.split())
    if not text:
        raise _refused("an agent needs a name that is not blank; say in a few words what it does")
    if len(text) > MAX_CHARS:
        raise _refused(f"an agent's name has {len(text)} characters; {MAX_CHARS} are allowed")
    if text.casefold() in RESERVED:
        raise _refused(f"{text!r} means somebody else; give the agent another name")
    return text


def _without_colours(text: str) -> str:
    """`text` without what only asks that the symbol or keycap before it is drawn as an emoji: it shows
    nothing itself, so no two names may differ by it. Elsewhere it stays, and is refused."""
    return "".join(
        char
        for before, char in pairwise((" ", *text))
        if char != _AS_EMOJI or not (before in _KEYCAPS or unicodedata.category(before) in _SYMBOLS)
    )


def shown(text: str) -> str:
    """A name or an id as an error repeats it; one that is too long to be either is not repeated at all,
    since a piece of it could be half of a secret, which the log would not know (session-messaging 12)."""
    return repr(text) if len(text) <= _SHOWN_CHARS else f"({len(text)} characters)"


def _refused(message: str) -> CallboardError:
    return invalid("name", message)


def invalid(field: str, message: str) -> CallboardError:
    """An invalidParams error about one field, by its name on the wire."""
    fault = {"path": f"$.{field}", "message": message}
    return CallboardError("invalidParams", message, data={"errors": [fault]})
