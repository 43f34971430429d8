"""Calls of handlers: each in a task of its own, in order, with exactly one answer.

Tasks begin in the order in which they were made and run up to their first ``await``, so the handlers
of one client *start* in the order of arrival. A request with an idempotency key has to look that up
first; those behind it wait until it has started (`_Gate`).
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

import orjson
from attrs import frozen

from callboard_rpc import convert
from callboard_rpc.errors import CallboardError
from callboard_rpc.methods import Method

from . import codec
from .call import Call, Handler, Heed, IdempotencyHook, KeyedRequest
from .fault import Faults
from .framing import Framing
from .lifecycle import Phase

logger = logging.getLogger("callboard.rpc")

Done = Callable[[bytes | None, list[Callable[[], None]]], None]
"""Takes the answer of one request (``None``: there is none), and what is to run once it is queued."""


class Caller(Protocol):
    """What calls need of their connection."""

    @property
    def phase(self) -> Phase: ...
    @property
    def framing(self) -> Framing: ...
    def make_call(
        self, method: str, request_id: int | str | None, correlation_id: str, key: str | None
    ) -> Call: ...
    def spawn(self, run: Callable[[], Coroutine[Any, Any, None]]) -> None: ...


class _Gate:
    """Lets calls start in order when some of them have to look something up before."""

    def __init__(self) -> None:
        self._last: asyncio.Event | None = None

    def behind(self) -> asyncio.Event | None:
        """What a call that arrives now has to wait for."""
        if self._last is not None and self._last.is_set():
            self._last = None
        return self._last

    def ticket(self) -> asyncio.Event:
        self._last = asyncio.Event()
        return self._last


@frozen(kw_only=True)
class _Job:
    call: Call
    handler: Handler
    params: Any
    keyed: KeyedRequest | None
    behind: asyncio.Event | None
    ticket: asyncio.Event | None
    done: Done


class Calls:
    """The calls of one connection that run.

    Args:
        new_id: makes correlation ids.
    """

    def __init__(self, caller: Caller, *, faults: Faults, new_id: Callable[[], str]) -> None:
        self.replay: IdempotencyHook | None = None
        self._caller = caller
        self._faults = faults
        self._new_id = new_id
        self._requests: dict[int | str, Call] = {}
        self._gate = _Gate()
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def __contains__(self, request_id: int | str) -> bool:
        return request_id in self._requests

    def __len__(self) -> int:
        """Requests that have no answer yet."""
        return len(self._requests)

    async def idle(self) -> None:
        """Returns once no handler runs."""
        await self._idle.wait()

    def cancel(self, request_id: int | str) -> bool:
        """Cancels one request, which is still answered. Says whether there was one."""
        call = self._requests.get(request_id)
        if call is not None:
            call.cancelled.cancel()
        return call is not None

    def cancel_all(self) -> None:
        """Cancels every request that runs; each is still answered."""
        for call in list(self._requests.values()):
            call.cancelled.cancel()

    def start(
        self,
        entry: Method,
        request_id: int | str | None,
        raw: dict[str, Any],
        handler: Handler,
        done: Done,
    ) -> None:
        """Runs `handler`; `done` gets its answer. Raises `StructureError` when `raw` does not fit."""
        job = self._job(entry, request_id, raw, handler, done)
        if request_id is not None:
            self._requests[request_id] = job.call
        self._running += 1
        self._idle.clear()
        self._caller.spawn(lambda: self._run(job))

    def heed(self, entry: Method, raw: dict[str, Any], handler: Heed) -> None:
        """Runs a handler that waits for nothing. Raises `StructureError` when `raw` does not fit, and
        what the handler raises."""
        params = convert.structure(raw, entry.params)
        handler.run(self._caller.make_call(entry.name, None, self._new_id(), None), params)

    def _job(
        self,
        entry: Method,
        request_id: int | str | None,
        raw: dict[str, Any],
        handler: Handler,
        done: Done,
    ) -> _Job:
        params = convert.structure(raw, entry.params)
        key = getattr(params, "idempotency_key", None) if entry.mutates else None
        call = self._caller.make_call(entry.name, request_id, self._new_id(), key)
        behind = self._gate.behind()
        ticket: asyncio.Event | None = None
        keyed: KeyedRequest | None = None
        if key is not None and self.replay is not None:
            ticket = self._gate.ticket()
            keyed = KeyedRequest(
                client_id=call.client_id,
                method=entry.name,
                key=key,
                params={name: value for name, value in raw.items() if name != "idempotencyKey"},
                pass_turn=ticket.set,
            )
        return _Job(
            call=call,
            handler=handler,
            params=params,
            keyed=keyed,
            behind=behind,
            ticket=ticket,
            done=done,
        )

    async def _run(self, job: _Job) -> None:
        try:
            await self._run_scoped(job)
        finally:
            self._running -= 1
            if self._running == 0:
                self._idle.set()

    async def _run_scoped(self, job: _Job) -> None:
        call = job.call
        outcome: bytes | BaseException | None = None
        try:
            with call.cancelled:
                if job.behind is not None:
                    await job.behind.wait()
                if not call.cancelled.cancel_called:
                    outcome = await self._answer(job)
        except (Exception, SystemExit) as raised:
            outcome = raised
        except asyncio.CancelledError as stray:
            # Cancelled from outside: our own scope keeps its cancellation to itself. Either the
            # connection ends, or the handler awaited something that somebody else cancelled.
            task = asyncio.current_task()
            if self._caller.phase is Phase.ENDING or (task is not None and task.cancelling()):
                self._finish(job, self._stopped(call))
                raise
            outcome = RuntimeError("what the handler waited for was cancelled")
            outcome.__cause__ = stray
        finally:
            if job.ticket is not None:
                job.ticket.set()
        self._finish(job, self._stopped(call) if outcome is None else outcome)

    async def _answer(self, job: _Job) -> bytes:
        async def start() -> bytes:
            if job.ticket is not None:
                job.ticket.set()
            return codec.encode(await job.handler(job.call, job.params))

        if job.keyed is None or self.replay is None:
            return await start()
        return await self.replay.run(job.keyed, start)

    def _stopped(self, call: Call) -> CallboardError:
        if self._caller.phase is Phase.ENDING:
            return CallboardError("shuttingDown", f"the server ended before {call.method} was done")
        return CallboardError("requestCancelled", f"{call.method} was cancelled by the client")

    def _finish(self, job: _Job, outcome: bytes | BaseException) -> None:
        """Answers a call that is over. Nothing is raised: this ends a task, and one task that falls
        takes all others of the connection with it."""
        call = job.call
        over = call.over()
        if call.request_id is not None:
            self._requests.pop(call.request_id, None)
        try:
            message = self._message(call, outcome)
        except Exception as broken:
            outcome = broken
            logger.exception("%s %s could not be answered", call.correlation_id, call.method)
            message = _unanswered(call)
        try:
            job.done(message, [*call.callbacks, *over] if isinstance(outcome, bytes) else over)
        except Exception:
            logger.exception("%s %s has lost its answer", call.correlation_id, call.method)

    def _message(self, call: Call, outcome: bytes | BaseException) -> bytes | None:
        """What tells how a call went; ``None`` for a notification."""
        if isinstance(outcome, BaseException):
            error = self._faults.error(
                outcome, correlation_id=call.correlation_id, method=call.method
            )
            if call.request_id is None:
                logger.warning("the notification %s failed: %s", call.method, error["message"])
                return None
            return error_message(call.request_id, error)
        if call.request_id is None:
            return None
        if call.method == "shutdown" and self._caller.framing == "lsp":
            outcome = b"null"
        return result_message(call.request_id, outcome)


def result_message(request_id: int | str, result: bytes) -> bytes:
    """The answer with a result, which is JSON text already."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (orjson.dumps(request_id), result)


def error_message(request_id: int | str | None, error: dict[str, Any]) -> bytes:
    """The answer with an ``error`` object. One that JSON has no form for becomes ``internal``, and an
    id that it has none for ``null``."""
    try:
        return _error_message(request_id, error)
    except Exception:
        logger.exception("an error could not be told")
    lost = _unanswerable(str(error["data"]["correlationId"]))
    try:
        return _error_message(request_id, lost)
    except Exception:
        return _error_message(None, lost)


def _error_message(request_id: int | str | None, error: dict[str, Any]) -> bytes:
    return codec.encode({"jsonrpc": "2.0", "id": request_id, "error": error})


def _unanswered(call: Call) -> bytes | None:
    if call.request_id is None:
        return None
    return error_message(call.request_id, _unanswerable(call.correlation_id))


def _unanswerable(correlation_id: str) -> dict[str, Any]:
    return CallboardError(
        "internal",
        f"the answer could not be told; the server's log says why under {correlation_id}",
    ).wire(correlation_id)


def run_all(callbacks: list[Callable[[], None]]) -> None:
    """Runs what was to follow an answer; one that fails stops no other."""
    for callback in callbacks:
        try:
            callback()
        except Exception:
            logger.exception("what was to follow an answer failed")
