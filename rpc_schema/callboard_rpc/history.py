"""``session/fork``, ``session/rewind`` and ``session/queue*``: changes of what was, or waits to be, said."""

from typing import Literal

from .common import Content, Cursor, Json, MessageId, SessionId, TurnId
from .events import Author, Delivery
from .frozen import frozen
from .sessions import Session


@frozen(kw_only=True)
class SessionForkParams:
    """Without `at_turn_id`, all that was finished by now is taken over. A turn that was rewound can be
    named, too: its fork is the way back to it."""

    session_id: SessionId
    at_turn_id: TurnId | None = None
    title: str | None = None
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class SessionRewindParams:
    """`before_turn_id` is the first turn that will not have been."""

    session_id: SessionId
    before_turn_id: TurnId
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class SessionRewindResult:
    """What went, by `event_seq` (a ``session_rewound`` event). No file was changed back: `files_restored`
    says so, `changed_paths` are those that the turns' tools had changed, without `more_paths` further
    ones, and `commands` ran in them whose effects are not known."""

    session: Session
    cursor: Cursor
    event_seq: int
    before_seq: int
    turns: int
    files_restored: bool = False
    changed_paths: tuple[str, ...] = ()
    more_paths: int = 0
    commands: int = 0


@frozen(kw_only=True)
class QueuedPrompt:
    """A prompt that no turn has taken in yet, with its content as it would be read now.

    `event_seq` names it. A steer waits for the running turn's next step, the others for its end.
    `updated_at` is when its content was changed last. Of what wakes the agent without words of a person or
    of another agent (a ``mention`` in a room, a ``schedule``) `message_id` is the event's own.
    """

    event_seq: int
    message_id: MessageId
    author: Author
    content: tuple[Content, ...]
    delivery: Delivery
    at: str
    kind: Literal["prompt", "directive", "mention", "schedule"] = "prompt"
    client_message_id: str | None = None
    updated_at: str | None = None


@frozen(kw_only=True)
class SessionQueueParams:
    """In the order in which they will be taken in."""

    session_id: SessionId
    cursor: str | None = None
    limit: int | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class SessionQueueUpdateParams:
    """`content` replaces the whole content of the prompt at `event_seq`."""

    session_id: SessionId
    event_seq: int
    content: tuple[Content, ...]
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class SessionQueueRemoveParams:
    session_id: SessionId
    event_seq: int
    reason: str | None = None
    idempotency_key: str | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class SessionQueueResult:
    """`event_seq` is that of the change. What the change was about had not been read by anybody."""

    event_seq: int
    cursor: Cursor
