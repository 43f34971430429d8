"""A subscription to events that outlives resets and servers."""

from collections import deque
from typing import Any, Literal, Protocol, TypeAlias, cast

import anyio
from attrs import evolve, frozen

from callboard_rpc.common import Cursor, Json, MessageId, SessionId, SubscriptionId, TurnId
from callboard_rpc.convert import structure_lenient, unstructure
from callboard_rpc.events import Event
from callboard_rpc.streams import Scope, SubscribeParams, SubscribeResult

from .errors import ClientError

_MERGE_FROM = 64
"""Items waiting for the consumer from which on neighbouring deltas are joined."""
_MERGE_CHARS = 16 * 1024
"""Characters from which on a joined delta grows no further."""
_DELTA_CHARS = 8 * 1024 * 1024
"""Characters of deltas that wait for the consumer at the most; more are left out as a hole."""


@frozen(kw_only=True)
class Delta:
    """Text as it streams. The event that follows holds the whole of it, and is what counts.

    `index` is the first piece in `text` and `count` how many it holds, per message and kind. `hole`
    says that pieces before it are missing: the subscription began in the middle of the message, or
    this client or the connection was too slow. The draft of ``sessions.get`` has what is missing.
    """

    session_id: SessionId
    turn_id: TurnId
    message_id: MessageId
    kind: Literal["answer", "thought", "tool_output"]
    index: int
    text: str
    count: int = 1
    hole: bool = False


@frozen(kw_only=True)
class CaughtUp:
    """Everything that had happened when the subscription began has been delivered.

    It comes once for each subscription, so again after a reset or a restart of the server.
    """

    cursor: Cursor


StreamItem: TypeAlias = Event | Delta | CaughtUp


@frozen
class _Ack:
    subscription_id: SubscriptionId
    cursor: Cursor


@frozen
class _Waiting:
    """An event of the wire that the consumer has not seen yet."""

    wire: Json


_Buffered: TypeAlias = _Waiting | Delta | CaughtUp | _Ack


class StreamOwner(Protocol):
    """What a stream needs of its client."""

    async def subscribe(self, stream: "EventStream", params: Json) -> None:
        """Sends the request; calls ``stream.on_subscribed`` in the reader, and routes to it."""
        ...

    async def unsubscribe(self, stream: "EventStream") -> None: ...

    def acknowledge(self, subscription_id: SubscriptionId, cursor: Cursor) -> None: ...


@frozen(kw_only=True)
class _Key:
    turn_id: str
    message_id: str
    kind: str


class EventStream:
    """An async iterator of `StreamItem`, one for each event from where it begins: none is left
    out and none comes twice, whatever happens to the connection (with ``restart=True``).

    ``async with`` subscribes at once; ``async for`` alone subscribes at its first step. Iterating
    acknowledges: when the consumer stops, the server stops sending after its window.
    """

    def __init__(
        self,
        owner: StreamOwner,
        scope: Scope,
        *,
        from_: str = "now",
        types: tuple[str, ...] | None = None,
        deltas: bool = True,
        max_batch: int | None = None,
        max_latency_ms: int | None = None,
    ) -> None:
        self._owner = owner
        self._params = SubscribeParams(
            scope=scope,
            from_=from_,
            types=types,
            deltas=deltas,
            max_batch=max_batch,
            max_latency_ms=max_latency_ms,
        )
        self._buffer: deque[_Buffered] = deque()
        self._filled = anyio.Event()
        self._fault: Exception | None = None
        self._closed = False
        self._awaits_catching_up = True
        self._last_pos = -1
        self._delta_chars = 0
        self._next_index: dict[_Key, int] = {}
        self._received: Cursor | None = None
        self.subscription_id: SubscriptionId | None = None

    @property
    def cursor(self) -> Cursor | None:
        """Where a new subscription would go on: everything up to here has reached this client."""
        return self._received

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def waiting(self) -> bool:
        """Whether something has reached this client that was not given out yet."""
        return any(not isinstance(each, _Ack) for each in self._buffer)

    async def __aenter__(self) -> "EventStream":
        await self.subscribe()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __aiter__(self) -> "EventStream":
        return self

    async def __anext__(self) -> StreamItem:
        item, _ = await self.receive()
        return item

    async def receive(self) -> tuple[StreamItem, Json]:
        """The next item and, for an event, the JSON that it came as.

        Raises `StopAsyncIteration` after `aclose`, and what ended the stream otherwise.
        """
        if self.subscription_id is None and self._received is None and self._fault is None:
            await self.subscribe()
        while True:
            while not self._buffer:
                if self._closed:
                    raise StopAsyncIteration
                if self._fault is not None:
                    raise self._fault
                self._filled = anyio.Event()
                await self._filled.wait()
            match self._buffer.popleft():
                case _Ack(subscription_id, cursor):
                    if subscription_id == self.subscription_id:
                        self._owner.acknowledge(subscription_id, cursor)
                case _Waiting(wire):
                    return structure_lenient(wire, Event), wire
                case Delta() as delta:
                    self._delta_chars -= len(delta.text)
                    return delta, unstructure(delta)
                case CaughtUp() as caught_up:
                    return caught_up, unstructure(caught_up)

    async def aclose(self) -> None:
        """Ends the subscription. What was not consumed is dropped."""
        if not self._closed:
            self._closed = True
            self._buffer.clear()
            self._filled.set()
            await self._owner.unsubscribe(self)

    async def subscribe(self) -> None:
        """Subscribes, from where the stream is. Raises `RemoteError` for a scope or a cursor that
        the server refuses."""
        if self._closed:
            raise ClientError("this stream is closed: ask the client for a new one")
        wire = cast("Json", unstructure(self._params))
        if self._received is not None:
            wire["from"] = self._received
        await self._owner.subscribe(self, wire)

    # --- called by the client, in its reader ------------------------------------------------------

    def on_subscribed(self, wire: Any) -> SubscriptionId:
        result = structure_lenient(wire, SubscribeResult)
        self.subscription_id = result.subscription_id
        self._awaits_catching_up = True
        if self._received is None:
            self._received = result.cursor
        return result.subscription_id

    def on_batch(self, wire: Json) -> None:
        for event in cast("list[Json]", wire["events"]):
            pos = event.get("pos")
            if type(pos) is int:
                if pos <= self._last_pos:
                    continue
                self._last_pos = pos
            if event.get("type") == "turn_finished":
                self._forget_turn(event.get("turnId"))
            self._put(_Waiting(event))
        cursor = Cursor(wire["cursor"])
        self._received = cursor
        if self.subscription_id is not None:
            self._put(_Ack(self.subscription_id, cursor))
        if wire.get("caughtUp") is True and self._awaits_catching_up:
            self._awaits_catching_up = False
            self._put(CaughtUp(cursor=cursor))

    def on_delta(self, wire: Json) -> None:
        raw = structure_lenient(wire, Delta)
        key = _Key(turn_id=raw.turn_id, message_id=raw.message_id, kind=raw.kind)
        expected = self._next_index.get(key, 0)
        if self._delta_chars + len(raw.text) > _DELTA_CHARS:
            return  # the index stays behind, so the next piece that fits tells of the hole
        self._next_index[key] = raw.index + raw.count
        if raw.index == expected and len(self._buffer) >= _MERGE_FROM and self._merge(raw):
            return
        self._delta_chars += len(raw.text)
        self._put(evolve(raw, hole=raw.index > expected))

    def on_lost(self) -> None:
        """The subscription is gone: by a reset, or with its server."""
        self.subscription_id = None

    def fail(self, fault: Exception) -> None:
        """Ends the stream with `fault`, after what it has already received."""
        self.subscription_id = None
        self._fault = fault
        self._filled.set()

    def _merge(self, raw: Delta) -> bool:
        last = self._buffer[-1]
        if not isinstance(last, Delta) or len(last.text) > _MERGE_CHARS:
            return False
        if (last.message_id, last.kind) != (raw.message_id, raw.kind):
            return False
        self._delta_chars += len(raw.text)
        self._buffer[-1] = evolve(last, text=last.text + raw.text, count=last.count + raw.count)
        return True

    def _put(self, item: _Buffered) -> None:
        if not self._closed:
            self._buffer.append(item)
            self._filled.set()

    def _forget_turn(self, turn_id: Any) -> None:
        for key in [key for key in self._next_index if key.turn_id == turn_id]:
            del self._next_index[key]
