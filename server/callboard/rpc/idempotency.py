"""Keyed requests: the same key and params get the first answer, other params are a conflict.

Answers are kept for seven days (PROTOCOL 2). A request that comes again while the first is under way
waits for it.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeAlias

import orjson

from callboard_rpc.errors import CallboardError

from ..log.clock import parse
from ..log.log import Log
from ..log.transaction import SQL, Transaction
from .call import KeyedRequest

_Place: TypeAlias = tuple[str, str, str]
"""Method, client, key."""


class StoredAnswers:
    """An `IdempotencyHook` over the store; a client's keys are its own."""

    def __init__(self, log: Log, *, days: int) -> None:
        self._log = log
        self._days = days
        self._under_way: dict[_Place, tuple[str, asyncio.Task[bytes]]] = {}

    async def run(self, request: KeyedRequest, start: Callable[[], Awaitable[bytes]]) -> bytes:
        """Cancelling the caller cancels nothing of the work: whoever asks again with the key must
        find its answer, and not have it done twice."""
        place = (request.method, request.client_id, request.key)
        digest = hashlib.sha256(
            orjson.dumps(request.params, option=orjson.OPT_SORT_KEYS)
        ).hexdigest()
        running = self._under_way.get(place)
        if running is not None:
            _must_match(digest, running[0], request)
            request.pass_turn()
            return await asyncio.shield(running[1])
        work = asyncio.get_running_loop().create_task(
            self._first(request, place, digest, start), name=f"{request.method} with a key"
        )
        self._under_way[place] = (digest, work)

        def done(task: "asyncio.Task[bytes]") -> None:
            del self._under_way[place]
            if not task.cancelled():
                task.exception()  # whoever waited has it; nobody need have

        work.add_done_callback(done)
        return await asyncio.shield(work)

    async def _first(
        self,
        request: KeyedRequest,
        place: _Place,
        digest: str,
        start: Callable[[], Awaitable[bytes]],
    ) -> bytes:
        rows = await self._log.query(SQL["read_answer"], *place)
        if rows:
            _must_match(digest, rows[0][0], request)
            return rows[0][1].encode()
        answer = await start()

        def keep(tx: Transaction) -> bytes:
            row = tx.one(SQL["read_answer"], *place)
            if row is not None:  # another process was asked at the same time, and was first
                _must_match(digest, row[0], request)
                return row[1].encode()
            tx.execute(SQL["keep_answer"], *place, digest, answer.decode(), tx.now())
            return answer

        return await self._log.transact(keep)

    async def prune(self) -> None:
        """Forgets answers that are too old."""
        oldest = parse(self._log.now()) - timedelta(days=self._days)
        text = oldest.isoformat(timespec="milliseconds")
        await self._log.transact(lambda tx: tx.execute(SQL["prune_idempotency"], text))


def _must_match(digest: str, known: str, request: KeyedRequest) -> None:
    if digest != known:
        raise CallboardError(
            "idempotencyConflict",
            f"the idempotency key {request.key[:80]!r} was used for another {request.method}; "
            "use a fresh key",
        )
