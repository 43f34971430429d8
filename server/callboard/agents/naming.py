"""Names of agents: what a parent calls its children by, in tools, messages and lists."""

import unicodedata

from callboard_rpc.errors import CallboardError

MAX_CHARS = 64
RESERVED = frozenset({"parent", "root", "group"})
"""Words that mean somebody else where an agent's name can stand."""

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters, marks and symbols that show nothing."""


def clean_name(name: str) -> str:
    """The name as it is kept: composed, without white space at its ends, and one space where there was
    any inside.

    Raises invalidParams for one that is blank, too long, reserved, or holds what nobody can see.
    """
    # tabs and line ends at the ends are white space like any other, and gone here
    text = unicodedata.normalize("NFC", name.encode("utf-8", "replace").decode()).strip()
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


def _refused(message: str) -> CallboardError:
    return invalid("name", message)


def invalid(field: str, message: str) -> CallboardError:
    """An invalidParams error about one field, by its name on the wire."""
    fault = {"path": f"$.{field}", "message": message}
    return CallboardError("invalidParams", message, data={"errors": [fault]})
