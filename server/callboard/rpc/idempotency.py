"""Keyed requests: the same key and params get the first answer, other params are a conflict.

Answers are kept for seven days (PROTOCOL 2). A request that comes again while the first is under way
waits for it.

The transaction that does what a keyed request asks also writes that this key has done it, and what
came of it (`Transaction.decided`). So a server that is killed before it could keep its answer still
knows, and makes the answer from that; and of two servers that are asked at once one does it. A request
that decided nothing can be done again without harm.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, TypeAlias

import orjson

from callboard_rpc.common import Json
from callboard_rpc.errors import CallboardError

from ..log.alongside import ALONGSIDE
from ..log.clock import parse
from ..log.log import Log
from ..log.text import quoted
from ..log.transaction import SQL, Transaction
from . import codec
from .call import KeyedRequest

_Place: TypeAlias = tuple[str, str, str]
"""Method, client, key."""

Remake: TypeAlias = Callable[[Json], Awaitable[Any]]
"""Makes a method's answer from what its transaction decided; raises as the method does."""

_CLAIM = "claim "
"""How what stands in an answer's place begins until the answer is there; JSON never does."""


class _TakenError(CallboardError):
    """Another process was asked at the same time, and was first: nothing of this was written."""

    def __init__(self, method: str) -> None:
        super().__init__(
            "idempotencyConflict", f"another server does this {method} already; ask again"
        )


class _Claim:
    """Writes what one keyed request came to, together with it. Its `mark` is in what it writes: whether
    that was committed is known by finding it, and a claim of somebody else looks like none of ours."""

    def __init__(self, place: _Place, digest: str, mark: str) -> None:
        self._place = place
        self._digest = digest
        self._begin = f"{_CLAIM}{mark} "
        self._open = True

    def before(self, tx: Transaction) -> None:
        if not self._open:  # what the work has started inherits its context, and lives on
            return
        row = tx.one(SQL["read_answer"], *self._place)
        if row is not None and not row[1].startswith(self._begin):
            raise _TakenError(self._place[0])

    def decided(self, tx: Transaction, outcome: Json) -> None:
        if self._open:
            text = self._begin + orjson.dumps(outcome).decode()
            tx.execute(SQL["keep_answer"], *self._place, self._digest, text, tx.now())

    def close(self) -> None:
        self._open = False


def _claimed(text: str) -> Json:
    """What a claim says; those of older servers have no mark."""
    return orjson.loads(text[text.index("{") :])


class StoredAnswers:
    """An `IdempotencyHook` over the store; a client's keys are its own.

    `remakes` has the methods that change something.
    """

    def __init__(
        self, log: Log, *, days: int, remakes: Mapping[str, Remake] = MappingProxyType({})
    ) -> None:
        self._log = log
        self._days = days
        self._remakes = remakes
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
        known = await self._known(request, place, digest)
        if known is not None:
            return known
        with contextlib.suppress(_TakenError):
            return await self._keep(request, place, digest, await self._do(place, digest, start))
        known = await self._known(request, place, digest)
        assert known is not None  # what was taken is kept for days
        return known

    async def _do(self, place: _Place, digest: str, start: Callable[[], Awaitable[bytes]]) -> bytes:
        if place[0] not in self._remakes:
            return await start()
        claim = _Claim(place, digest, self._log.ids.new("claim"))
        before = ALONGSIDE.set(claim)
        try:
            return await start()
        finally:
            claim.close()
            ALONGSIDE.reset(before)

    async def _known(self, request: KeyedRequest, place: _Place, digest: str) -> bytes | None:
        """The answer that is stored, or that of work which was done and had no time for an answer."""
        rows = await self._log.query(SQL["read_answer"], *place)
        if not rows:
            return None
        _must_match(digest, rows[0][0], request)
        text: str = rows[0][1]
        if not text.startswith(_CLAIM):
            return text.encode()
        request.pass_turn()
        answer = codec.encode(await self._remakes[place[0]](_claimed(text)))
        return await self._keep(request, place, digest, answer)

    async def _keep(
        self, request: KeyedRequest, place: _Place, digest: str, answer: bytes
    ) -> bytes:
        def keep(tx: Transaction) -> bytes:
            row = tx.one(SQL["read_answer"], *place)
            if row is not None:
                _must_match(digest, row[0], request)
                if not row[1].startswith(_CLAIM):  # another process was first
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
            f"the idempotency key {quoted(request.key)} was used for another {request.method}; "
            "use a fresh key",
        )
