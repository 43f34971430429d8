"""A message on its way between two sessions, as it lies in the inbox (interrupts-and-peers 4.4).

Who sent it to whom stands in the columns beside it. Of what it says itself, what it is called by and its
body count; fields that are not known are passed over, and nothing in it can make reading it fail.
"""

from typing import Any, cast

import orjson
from attrs import frozen

from ..log.clock import is_ours
from ..log.text import well_formed

VERSION = 1
MAX_CHARS = 16_000
"""Characters of one message, once trimmed."""
_TITLE_CHARS = 200


@frozen(kw_only=True)
class Capsule:
    """`title` is what the sender was called when it sent it."""

    message_id: str
    sender_id: str
    title: str | None
    sent_at: str
    body: str


def write(capsule: Capsule) -> str:
    return orjson.dumps(
        {
            "version": VERSION,
            "id": capsule.message_id,
            "sender": capsule.sender_id,
            "title": capsule.title,
            "sent_at": capsule.sent_at,
            "body": capsule.body,
        }
    ).decode()


def read(text: str, *, message_id: str, sender_id: str, created_at: str) -> Capsule | None:
    """The capsule under the names that its columns give it; None for one that cannot be read. A title or
    a time that is none is left out."""
    try:
        value: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, Any]", value)
    version, body = fields.get("version"), fields.get("body")
    if version is True or version != VERSION or not isinstance(body, str):
        return None
    if not body.strip() or len(body) > MAX_CHARS:
        return None
    title, sent_at = fields.get("title"), fields.get("sent_at")
    return Capsule(
        message_id=message_id,
        sender_id=sender_id,
        title=_title(title) if isinstance(title, str) else None,
        sent_at=sent_at if isinstance(sent_at, str) and is_ours(sent_at) else created_at,
        body=well_formed(body),
    )


def _title(text: str) -> str | None:
    """On one line, of what can be seen."""
    seen = "".join(c if c.isprintable() else " " for c in well_formed(text))
    return " ".join(seen.split())[:_TITLE_CHARS] or None
