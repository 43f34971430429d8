"""Which stream a notification belongs to, and how a stream finds its way back."""

from typing import Any, Protocol, cast

import anyio
from anyio.abc import TaskGroup

from callboard_rpc.common import Cursor, Json, SubscriptionId
from callboard_rpc.convert import StructureError

from .backoff import Backoff
from .connection import OnReply
from .errors import ClientError, ConnectionLost, ProtocolError, RemoteError
from .stream import EventStream


class Server(Protocol):
    """What is needed of the client: its server, whichever process that is at the moment."""

    async def request(
        self, method: str, params: Json, *, on_reply: OnReply | None = None
    ) -> Any: ...

    def notify(self, method: str, params: Json) -> None: ...

    def post(self, method: str, params: Json) -> None: ...


class Subscriptions:
    """The streams of a client; each one's owner. With `outlives` the streams outlive the server."""

    def __init__(
        self, server: Server, tasks: TaskGroup, *, backoff: Backoff, outlives: bool
    ) -> None:
        self._server = server
        self._tasks = tasks
        self._backoff = backoff
        self._outlives = outlives
        self._streams: set[EventStream] = set()
        self._routes: dict[str, EventStream] = {}
        self._resuming: set[EventStream] = set()

    # --- called by streams --------------------------------------------------------------------

    async def subscribe(self, stream: EventStream, params: Json) -> None:
        def route(result: Any) -> None:
            try:
                key = stream.on_subscribed(result)
            except StructureError as fault:
                raise ProtocolError(
                    f"the answer to event/subscribe is malformed: {fault}"
                ) from None
            if stream.closed:  # while it was being resumed
                self._server.post("event/unsubscribe", {"subscriptionId": key})
                return
            self._routes[key] = stream
            self._streams.add(stream)

        await self._server.request("event/subscribe", params, on_reply=route)

    async def unsubscribe(self, stream: EventStream) -> None:
        self._streams.discard(stream)
        key = stream.subscription_id
        if key is not None and self._routes.pop(key, None) is not None:
            self._server.post("event/unsubscribe", {"subscriptionId": key})

    def acknowledge(self, subscription_id: SubscriptionId, cursor: Cursor) -> None:
        self._server.notify("event/ack", {"subscriptionId": subscription_id, "cursor": cursor})

    # --- called by the client -----------------------------------------------------------------

    def on_notification(self, method: str, params: Any) -> None:
        """Takes what belongs to a stream, in the reader; the rest is not for this client."""
        if not isinstance(params, dict):
            return
        wire = cast("Json", params)
        key = wire.get("subscriptionId")
        stream = self._routes.get(key) if isinstance(key, str) else None
        if stream is None:
            return
        try:
            match method:
                case "event/batch":
                    stream.on_batch(wire)
                case "event/delta":
                    stream.on_delta(wire)
                case "event/reset":
                    self._routes.pop(cast("str", key), None)
                    stream.on_lost()
                    self._tasks.start_soon(self._resume, stream)
                case _:
                    return
        except (KeyError, TypeError, ValueError) as fault:
            self._fail(stream, ProtocolError(f"the server sent a malformed {method}: {fault!r}"))

    def on_up(self) -> None:
        """There is a new server: every stream goes on from its cursor."""
        for stream in self._streams:
            self._tasks.start_soon(self._resume, stream)

    def on_down(self) -> None:
        """The server is gone, and with it all that it knew of subscriptions."""
        self._routes.clear()
        for stream in self._streams:
            stream.on_lost()

    def end(self, fault: ClientError) -> None:
        """There will be no server any more."""
        for stream in list(self._streams):
            self._fail(stream, fault)

    # --- resuming -----------------------------------------------------------------------------

    def _fail(self, stream: EventStream, fault: Exception) -> None:
        self._streams.discard(stream)
        if stream.subscription_id is not None:
            self._routes.pop(stream.subscription_id, None)
        stream.fail(fault)

    async def _resume(self, stream: EventStream) -> None:
        """Subscribes again from the stream's cursor, until it works or can never work."""
        if stream in self._resuming:
            return
        self._resuming.add(stream)
        try:
            fault = await self._resubscribe(stream)
        finally:
            self._resuming.discard(stream)
        if fault is not None:
            self._fail(stream, fault)

    async def _resubscribe(self, stream: EventStream) -> Exception | None:
        """What makes it impossible, or None when it is done (or no longer wanted)."""
        fault: Exception | None = None
        for delay_s in self._backoff.delays():
            if stream not in self._streams:
                return None
            try:
                await stream.subscribe()
                return None
            except RemoteError as refusal:
                if not refusal.retryable:
                    return refusal
                fault = refusal
                await anyio.sleep((refusal.retry_after_ms or 0) / 1000)
            except ConnectionLost as lost:
                if not self._outlives:
                    return lost
                fault = lost
            except ClientError as other:
                return other
            await anyio.sleep(delay_s)
        return fault
