"""Subscriptions of one client: history from a cursor, then live, on one path, in one order.

A subscription pulls: it reads the log from its position, sends a batch, and goes on when the client
has room. So a slow client costs nothing but its own delay; when it is hopelessly behind it is told to
subscribe again (`event/reset`) and loses nothing. Deltas are pushed, joined and, at worst, dropped.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Generator
from typing import Any, Literal, TypeAlias

from attrs import define, field

from callboard_rpc.common import Cursor, SubscriptionId
from callboard_rpc.streams import SubscribeParams, SubscribeResult

from ..host import Host
from ..log.onward import onward
from ..log.record import Record
from ..log.scope import Filter
from ..turns.deltas import Delta
from .call import Call
from .connection import Connection, Merge
from .holds import Holds
from .pages import invalid
from .scopes import filter_of

_log = logging.getLogger(__name__)

Reason: TypeAlias = Literal["slow", "store"]
"""Why a subscription ends by itself."""

_DELTA_S = 0.025
_DELTA_BYTES = 4 * 1024
_MERGED_CHARS = 64 * 1024
_MAX_BATCH = 500
_BATCH_BYTES = 256 * 1024
_HOPELESS_WINDOWS = 10


def _combine(older: dict[str, Any], newer: dict[str, Any]) -> dict[str, Any] | None:
    """Two deltas as one, if no piece lies between. A long one is left alone: joining to it again and
    again would copy it as often, and what waits is bounded by the queue, not by this."""
    if older["index"] + older["count"] != newer["index"] or len(older["text"]) > _MERGED_CHARS:
        return None
    return {
        **older,
        "text": older["text"] + newer["text"],
        "count": older["count"] + newer["count"],
    }


_Key: TypeAlias = tuple[str, str, int]
"""Message, kind and segment: what may be joined."""


@define
class _Piece:
    """Deltas of one message, kind and segment that wait to be sent together."""

    first: Delta
    texts: list[str] = field(factory=list[str])
    size: int = 0


class Subscription:
    """One subscription. Its pump runs as a task of the connection's client."""

    def __init__(
        self,
        subscription_id: SubscriptionId,
        host: Host,
        connection: Connection,
        filter: Filter,
        params: SubscribeParams,
        position: int,
        window: int,
        holds: Holds,
    ) -> None:
        self.subscription_id = subscription_id
        self.filter = filter
        self.position = position
        self.deltas = (
            params.deltas
            and connection.client.capabilities.deltas
            and params.scope.kind in ("all", "session", "tree")
        )
        self._host = host
        self._holds = holds
        self._connection = connection
        self._replay_until = host.log.head
        self._max_batch = max(1, min(params.max_batch or _MAX_BATCH, window, _MAX_BATCH))
        self._latency_s = max(0, min(params.max_latency_ms or 0, 1_000)) / 1000
        self._window = window
        self._sent: list[tuple[int, int]] = []
        self._unacknowledged = 0
        self._acknowledged = asyncio.Event()
        self._pieces: dict[_Key, _Piece] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._last_flush = 0.0

    def covers(self, session_id: str, root_id: str | None) -> bool:
        """Whether the subscription is about this session at all, whatever types it wants."""
        if self.filter.session_id is not None:
            return self.filter.session_id == session_id
        return self.filter.root_id is None or self.filter.root_id == root_id

    def offers(self, session_id: str, root_id: str) -> bool:
        """Whether the client is asked what this session asks: a child's question reaches whoever follows
        its root, be it for the root's own events only (DESIGN 5, interrupts-and-peers 56)."""
        return self.filter.session_id == root_id or self.covers(session_id, root_id)

    # --- events ---

    def acknowledge(self, position: int) -> None:
        """Opens the window up to a cursor's position."""
        while self._sent and self._sent[0][0] <= position:
            self._unacknowledged -= self._sent.pop(0)[1]
        self._acknowledged.set()

    async def pump(self) -> Reason:
        """Sends events for as long as the client keeps up; returns why it stopped."""
        log = self._host.log
        caught_up = False
        while True:
            records, position = await self._next()
            if not records and caught_up:
                self.position = position
                await log.moved(position)
                if self._latency_s:
                    await asyncio.sleep(self._latency_s)
                continue
            if records and not await self._room():
                return "slow"
            if self._connection.pressure != "none":
                await self._connection.drained.wait()
            wanted = self._permitted(records)
            if records and not wanted:
                await self._holds.released()
                continue
            self._flush_deltas()
            self.position = position if len(wanted) == len(records) else wanted[-1].pos
            caught_up = self.position >= log.head
            self._send(wanted, caught_up=caught_up)

    def _permitted(self, records: list[Record]) -> list[Record]:
        """The first of `records`: as many as the window has room for, none that is held back, and
        none that is live behind one that is replayed."""
        limit = self._holds.limit
        first = records[: self._window - self._unacknowledged]
        if limit is not None:
            first = [record for record in first if record.pos <= limit]
        if first and first[0].pos <= self._replay_until:
            first = [record for record in first if record.pos <= self._replay_until]
        return first

    async def _next(self) -> tuple[list[Record], int]:
        """What comes next, at most a batch, and the position that it reaches."""
        return await onward(
            self._host.log,
            self.filter,
            self.position,
            limit=self._max_batch,
            max_bytes=_BATCH_BYTES,
        )

    async def _room(self) -> bool:
        """Waits for the window; False when the client is hopelessly behind in what it asked for: what
        happens elsewhere, however much, is nothing that waits for it."""
        log = self._host.log
        most = _HOPELESS_WINDOWS * self._window
        behind, counted = 0, self.position
        while self._unacknowledged >= self._window:
            head = log.head
            if head - counted > most - behind:  # before that it cannot be more than `most`
                behind += await log.count(
                    self.filter, after=counted, through=head, limit=most - behind + 1
                )
                counted = head
                if behind > most:
                    return False
                continue  # the window may have opened meanwhile
            self._acknowledged.clear()
            waits = [
                asyncio.ensure_future(self._acknowledged.wait()),
                asyncio.ensure_future(log.moved(counted + most - behind)),
            ]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
        return True

    def _send(self, records: list[Record], *, caught_up: bool) -> None:
        if records:
            self._sent.append((self.position, len(records)))
            self._unacknowledged += len(records)
        self._connection.notify(
            "event/batch",
            {
                "subscriptionId": self.subscription_id,
                "events": [record.wire() for record in records],
                "cursor": self._host.log.cursor(self.position),
                "replay": bool(records) and records[-1].pos <= self._replay_until,
                "caughtUp": caught_up,
            },
        )

    # --- deltas ---

    def take(self, delta: Delta) -> None:
        """A piece of streaming text. Sent at once when nothing was sent just now, else joined."""
        key = (delta.message_id, delta.kind, delta.segment)
        piece = self._pieces.get(key)
        if piece is None:
            piece = self._pieces[key] = _Piece(delta)
        piece.texts.append(delta.text)
        piece.size += len(delta.text)
        if piece.size >= _DELTA_BYTES:
            self._flush_deltas()
        elif self._timer is None:
            loop = asyncio.get_running_loop()
            wait = self._last_flush + _DELTA_S - loop.time()
            if wait <= 0:
                self._flush_deltas()
            else:
                self._timer = loop.call_later(wait, self._flush_deltas)

    def released(self) -> None:
        """Some hold has ended: deltas that waited for it may go."""
        if self._pieces:
            self._flush_deltas()

    def _flush_deltas(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        pieces: dict[_Key, _Piece] = {}
        held: dict[_Key, _Piece] = {}
        for key, piece in self._pieces.items():
            (held if self._holds.covers(piece.first.turn_id) else pieces)[key] = piece
        self._pieces = held
        if not pieces:
            return
        self._last_flush = asyncio.get_running_loop().time()
        for (message_id, kind, segment), piece in pieces.items():
            first = piece.first
            self._connection.notify_mergeable(
                "event/delta",
                {
                    "subscriptionId": self.subscription_id,
                    "sessionId": first.session_id,
                    "turnId": first.turn_id,
                    "messageId": message_id,
                    "index": first.index,
                    "count": len(piece.texts),
                    # a secret in one piece is hidden here; the event hides it however it came
                    "text": self._host.redactor.text("".join(piece.texts)),
                    "kind": kind,
                },
                Merge(
                    key=(self.subscription_id, message_id, kind, segment),
                    combine=_combine,
                    weight=lambda params: len(params["text"]),
                ),
            )

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Subscriptions:
    """The subscriptions of one connection."""

    def __init__(self, host: Host, connection: Connection, *, window: int) -> None:
        self._host = host
        self._connection = connection
        self._window = window
        self._open: dict[str, tuple[Subscription, asyncio.Task[None]]] = {}
        self.holds = Holds()
        self.holds.on_release = self._released
        self.on_live: Callable[[Subscription], None] = lambda _: None
        self._stop_deltas = host.deltas.listen(self._take)

    @contextlib.contextmanager
    def held(self, call: Call) -> Generator[None]:
        """Holds events back until the answer of `call` is queued, so that no event names an id that
        the client has not been told yet."""
        log = self._host.log
        release = self.holds.take(log.head, log.ids.new("trn"))
        try:
            yield
        finally:
            call.after_end(release)

    def _released(self) -> None:
        for subscription, _ in self._open.values():
            subscription.released()

    async def subscribe(self, call: Call, params: SubscribeParams) -> SubscribeResult:
        """Raises invalidCursor, sessionNotFound, invalidParams."""
        log = self._host.log
        if params.max_batch is not None and params.max_batch < 1:
            raise invalid("$.maxBatch", "must be at least 1")
        log.refresh()
        now = log.head  # when it is asked: what the same client does next is behind it
        filter = await filter_of(log, params.scope, params.types)
        match params.from_:
            case "now":
                position = now
            case "start":
                position = 0
            case cursor:
                position = log.position(cursor)
        subscription_id = SubscriptionId(log.ids.new("sub"))
        subscription = Subscription(
            subscription_id,
            self._host,
            self._connection,
            filter,
            params,
            position,
            self._window,
            self.holds,
        )
        call.after_reply(lambda: self._start(subscription))
        return SubscribeResult(
            subscription_id=subscription_id, cursor=log.cursor(position), head=log.cursor()
        )

    def _start(self, subscription: Subscription) -> None:
        task = asyncio.get_running_loop().create_task(
            self._run(subscription), name=f"subscription {subscription.subscription_id}"
        )
        self._open[subscription.subscription_id] = (subscription, task)
        self.on_live(subscription)

    async def _run(self, subscription: Subscription) -> None:
        reason: Reason = "store"
        try:
            reason = await subscription.pump()
        except Exception:
            _log.exception("subscription %s ends", subscription.subscription_id)
        subscription.stop()
        self._open.pop(subscription.subscription_id, None)
        self._connection.notify(
            "event/reset",
            {
                "subscriptionId": subscription.subscription_id,
                "reason": reason,
                "resumeFrom": self._host.log.cursor(subscription.position),
            },
        )

    def unsubscribe(self, subscription_id: str) -> None:
        """Ends a subscription; nothing for one that is not there."""
        found = self._open.pop(subscription_id, None)
        if found is not None:
            subscription, task = found
            subscription.stop()
            task.cancel()

    def acknowledge(self, subscription_id: str, cursor: Cursor) -> None:
        found = self._open.get(subscription_id)
        if found is not None:
            found[0].acknowledge(self._host.log.position(cursor))

    def offers(self, session_id: str, root_id: str) -> bool:
        """Whether by any of its subscriptions the client is asked what this session asks."""
        return any(s.offers(session_id, root_id) for s, _ in self._open.values())

    @property
    def count(self) -> int:
        return len(self._open)

    def _take(self, delta: Delta) -> None:
        if not self._open:
            return
        state = self._host.cache.read(delta.session_id)
        root_id = None if state is None else state.root_id
        for subscription, _ in self._open.values():
            if subscription.deltas and subscription.covers(delta.session_id, root_id):
                subscription.take(delta)

    async def close(self) -> None:
        """Ends them all; the client is gone."""
        self._stop_deltas()
        tasks = [task for _, task in self._open.values()]
        for subscription, task in self._open.values():
            subscription.stop()
            task.cancel()
        self._open.clear()
        await asyncio.gather(*tasks, return_exceptions=True)
