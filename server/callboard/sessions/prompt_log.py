"""A note of the system prompt that a turn begins with, for whoever looks for what an agent was told.

It goes to the server's own log and nowhere else: its length and what is in it as information, the text
only for debugging, and without secrets. It changes nothing.
"""

import logging
from collections.abc import Mapping, Sequence

from ..log.redact import Redactor
from ..models.base import ToolSpec

_log = logging.getLogger(__name__)


def note(
    session_id: str,
    turn_id: str,
    sections: Mapping[str, str],
    tools: Sequence[ToolSpec],
    redactor: Redactor,
) -> None:
    """Writes the note. `sections` are the parts of the prompt by name, blank where there is none."""
    if not _log.isEnabledFor(logging.INFO):
        return
    _log.info(
        "turn %s of session %s begins with a system prompt of %d characters (%s) and %d tools",
        turn_id,
        session_id,
        len(joined(sections)),
        ", ".join(f"{name}: {'yes' if text.strip() else 'no'}" for name, text in sections.items()),
        len(tools),
    )
    if _log.isEnabledFor(logging.DEBUG):
        _log.debug("system prompt of turn %s:\n%s", turn_id, redactor.text(joined(sections)))


def joined(sections: Mapping[str, str]) -> str:
    """The prompt: the sections that say something, in order."""
    return "\n\n".join(text.strip() for text in sections.values() if text.strip())
