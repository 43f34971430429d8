"""The ``event/*`` methods: subscriptions, deltas, history."""

from typing import Literal, TypeAlias

from .common import Cursor, Json, MessageId, SessionId, SubscriptionId, TurnId
from .events import Event
from .frozen import frozen

ScopeKind: TypeAlias = Literal["all", "catalog", "session", "tree", "approvals"]


@frozen(kw_only=True)
class Scope:
    """`session` and `tree` (a root and all its children) need `id`.

    `catalog` is what a list of sessions needs: the session events and the ends of turns.
    `approvals` is approval requests and decisions of the whole store.
    """

    kind: ScopeKind
    id: SessionId | None = None


@frozen(kw_only=True)
class SubscribeParams:
    """`from` is ``now``, ``start`` or a cursor; its attribute is `from_`."""

    scope: Scope
    from_: str = "now"
    types: tuple[str, ...] | None = None
    deltas: bool = True
    max_batch: int | None = None
    max_latency_ms: int | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class SubscribeResult:
    subscription_id: SubscriptionId
    cursor: Cursor
    head: Cursor


@frozen(kw_only=True)
class UnsubscribeParams:
    subscription_id: SubscriptionId
    meta: Json | None = None


@frozen(kw_only=True)
class AckParams:
    subscription_id: SubscriptionId
    cursor: Cursor


@frozen(kw_only=True)
class EventListParams:
    """`after` and `before` are cursors and exclude each other; without either, from the start. With
    `before` "now" the newest events are told."""

    scope: Scope
    after: Cursor | None = None
    before: Cursor | None = None
    types: tuple[str, ...] | None = None
    limit: int | None = None
    meta: Json | None = None


@frozen(kw_only=True)
class EventListResult:
    """Events in order of `pos`; `next_cursor` continues in the direction that was asked for. Whoever
    subscribes from `cursor` gets all that was not yet in the log when it was read."""

    data: tuple[Event, ...]
    cursor: Cursor
    next_cursor: Cursor | None = None


@frozen(kw_only=True)
class EventBatch:
    subscription_id: SubscriptionId
    events: tuple[Event, ...]
    cursor: Cursor
    replay: bool
    caught_up: bool


@frozen(kw_only=True)
class EventDelta:
    """Text that is not stored yet.

    Pieces are numbered from 0 per message and kind. `index` is the first piece in `text`, and `count`
    how many it holds, so the next one follows at ``index + count``; where it does not, the draft of
    ``session/get`` has what is missing. For ``tool_output`` the message is the call's id.
    """

    subscription_id: SubscriptionId
    session_id: SessionId
    turn_id: TurnId
    message_id: MessageId
    index: int
    text: str
    kind: Literal["answer", "thought", "tool_output"]
    count: int = 1


@frozen(kw_only=True)
class EventReset:
    """The subscription is over because `reason`; subscribe again from `resume_from`."""

    subscription_id: SubscriptionId
    reason: Literal["slow", "store", "shutdown"]
    resume_from: Cursor
