"""Keyed requests: the same key and params get the first answer, other params are a conflict.

Answers are kept for seven days (PROTOCOL 2). A request that comes again while the first is under way
waits for it.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from datetime import timedelta

import orjson

from callboard_rpc.errors import CallboardError

from ..log.clock import parse
from ..log.log import Log
from ..log.transaction import SQL, Transaction
from .call import KeyedRequest


class StoredAnswers:
    """An `IdempotencyHook` over the store; a client's keys are its own."""

    def __init__(self, log: Log, *, days: int) -> None:
        self._log = log
        self._days = days
        self._under_way: dict[tuple[str, str, str], tuple[str, asyncio.Future[bytes]]] = {}

    async def run(self, request: KeyedRequest, start: Callable[[], Awaitable[bytes]]) -> bytes:
        place = (request.method, request.client_id, request.key)
        digest = hashlib.sha256(
            orjson.dumps(request.params, option=orjson.OPT_SORT_KEYS)
        ).hexdigest()
        running = self._under_way.get(place)
        if running is not None:
            _must_match(digest, running[0], request)
            request.pass_turn()
            return await asyncio.shield(running[1])
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._under_way[place] = (digest, future)
        try:
            answer = await self._first(request, place, digest, start)
        except BaseException as fault:
            if isinstance(fault, Exception):
                future.set_exception(fault)
                future.exception()  # whoever waited has it; nobody need have
            else:
                future.cancel()
            raise
        else:
            future.set_result(answer)
            return answer
        finally:
            del self._under_way[place]

    async def _first(
        self,
        request: KeyedRequest,
        place: tuple[str, str, str],
        digest: str,
        start: Callable[[], Awaitable[bytes]],
    ) -> bytes:
        rows = await self._log.query(SQL["read_answer"], *place)
        if rows:
            _must_match(digest, rows[0][0], request)
            return rows[0][1].encode()
        answer = await start()

        def keep(tx: Transaction) -> None:
            tx.execute(SQL["keep_answer"], *place, digest, answer.decode(), tx.now())

        await self._log.transact(keep)
        return answer

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
