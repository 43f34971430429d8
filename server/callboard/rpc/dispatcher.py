"""Messages to handlers: the envelope's rules, the method table, and one answer for each request.

Order: a message is looked at when it arrives, and its handler's task is made at once. Tasks begin in
the order in which they were made and run up to their first ``await``, so the handlers of one client
*start* in the order of arrival. A request with an idempotency key has to look that up first; those
behind it wait until it has started (`_Gate`).
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, cast

import orjson
from attrs import frozen

from callboard_rpc import convert
from callboard_rpc.common import Empty
from callboard_rpc.errors import CallboardError
from callboard_rpc.methods import METHODS, Method

from . import codec
from .call import Call, Handler, Handlers, IdempotencyHook, KeyedRequest
from .fault import Faults
from .framing import Framing, Oversize, read_head
from .lifecycle import Phase, hears_notification, judge_request

logger = logging.getLogger("callboard.rpc")

MAX_IN_FLIGHT = 256
_RETRY_AFTER_MS = 500
_LIFECYCLE = frozenset({"initialize", "shutdown"})


class Conversation(Protocol):
    """What the dispatcher needs of its connection."""

    @property
    def phase(self) -> Phase: ...
    @property
    def framing(self) -> Framing: ...
    def initialize(self, params: dict[str, Any]) -> Any: ...
    def shut(self) -> None: ...
    def exit(self) -> None: ...
    def make_call(
        self, method: str, request_id: int | str | None, correlation_id: str, key: str | None
    ) -> Call: ...
    def send(self, body: bytes) -> None: ...
    def spawn(self, run: Callable[[], Coroutine[Any, Any, None]]) -> None: ...
    def response(self, message: dict[str, Any]) -> None: ...
    def response_too_large(self, request_id: int | str) -> None: ...
    def other_notification(self, method: str, params: Any) -> bool: ...


Done = Callable[[bytes | None, list[Callable[[], None]]], None]
"""Takes the answer of one request (``None``: there is none), and what is to run once it is queued."""


class _Batch:
    """Collects the answers of a batch and sends them as one array."""

    def __init__(self, size: int, send: Callable[[bytes], None]) -> None:
        self._left = size
        self._send = send
        self._answers: list[bytes] = []
        self._after: list[Callable[[], None]] = []

    def done(self, answer: bytes | None, after: list[Callable[[], None]]) -> None:
        self._left -= 1
        if answer is not None:
            self._answers.append(answer)
        self._after += after
        if self._left == 0:
            if self._answers:
                self._send(b"[" + b",".join(self._answers) + b"]")
            _run_all(self._after)


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


class Dispatcher:
    """Everything that comes in on one connection goes through `receive`.

    Args:
        handlers: by method name. A name that is not in `METHODS`, or is none of a client's, raises
            `ValueError`: no undocumented method can exist.
        new_id: makes correlation ids.
        replay: answers keyed requests a second time; ``None`` runs them again.
    """

    def __init__(
        self,
        conversation: Conversation,
        *,
        handlers: Handlers,
        faults: Faults,
        new_id: Callable[[], str],
        replay: IdempotencyHook | None = None,
        max_in_flight: int = MAX_IN_FLIGHT,
    ) -> None:
        for name in handlers:
            method = METHODS.get(name)
            if method is None or method.direction != "clientToServer":
                raise ValueError(f"a handler for {name}, which is not in the table of methods")
        self._conversation = conversation
        self._handlers = handlers
        self._faults = faults
        self._new_id = new_id
        self._replay = replay
        self._max_in_flight = max_in_flight
        self._in_flight: dict[int | str, Call] = {}
        self._gate = _Gate()
        self._idle = asyncio.Event()
        self._idle.set()
        self._running = 0

    @property
    def in_flight(self) -> int:
        """Requests that have no answer yet."""
        return len(self._in_flight)

    async def idle(self) -> None:
        """Returns once no handler runs."""
        await self._idle.wait()

    def cancel_all(self) -> None:
        """Cancels every call that runs; each is still answered."""
        for call in list(self._in_flight.values()):
            call.cancelled.cancel()

    # -- what comes in

    def receive(self, body: bytes) -> None:
        """Acts on one frame. Never raises for what a client can send."""
        try:
            message = codec.decode(body)
        except codec.NotJson as fault:
            self._complain("parseError", f"not a JSON text in UTF-8: {fault}")
            return
        if type(message) is list:
            self._batch(cast("list[Any]", message))
        else:
            self._message(message, self._reply)

    def oversize(self, item: Oversize, limit: int) -> None:
        """Answers for a frame that was skipped, to its id when that could be read."""
        head = read_head(item.head)
        if head.kind == "response":
            if head.id is not None:
                self._conversation.response_too_large(head.id)
            return
        size = "" if item.length is None else f" of {item.length} bytes"
        error = CallboardError(
            "messageTooLarge",
            f"a message{size} is over the limit of {limit} bytes and was skipped",
            data={"limit": limit},
        )
        self._conversation.send(self._failure(head.id, error))

    def lost(self, reason: str) -> None:
        """Says why nothing more can be read from this client."""
        self._complain("parseError", f"the stream lost its framing ({reason}); it ends here")

    def _batch(self, messages: list[Any]) -> None:
        if self._conversation.framing == "lsp":
            self._complain("invalidRequest", "LSP has no batches; send one message a frame")
        elif not messages:
            self._complain("invalidRequest", "the batch is empty")
        else:
            batch = _Batch(len(messages), self._conversation.send)
            for message in messages:
                self._message(message, batch.done)

    def _message(self, message: Any, done: Done) -> None:
        if type(message) is not dict:
            done(self._invalid(None, "a message is an object"), [])
            return
        fields = cast("dict[str, Any]", message)
        has_id = "id" in fields
        request_id = fields.get("id")
        if has_id and type(request_id) not in (int, str):
            if "method" in fields:
                done(self._invalid(None, "an id is a string or an integer"), [])
            elif request_id is None and "error" in fields:
                logger.warning("the client reports an error without an id")
                done(None, [])
            else:
                done(self._invalid(None, "an id is a string or an integer"), [])
            return
        if fields.get("jsonrpc") != "2.0":
            done(self._invalid(request_id, '"jsonrpc" must be "2.0"'), [])
            return
        method = fields.get("method")
        if "method" not in fields and has_id and ("result" in fields or "error" in fields):
            self._conversation.response(fields)
            done(None, [])
        elif type(method) is not str:
            done(self._invalid(request_id, '"method" must be a string'), [])
        elif has_id:
            self._request(cast("int | str", request_id), method, fields.get("params"), done)
        else:
            self._notification(method, fields.get("params"), done)

    # -- requests

    def _request(self, request_id: int | str, method: str, params: Any, done: Done) -> None:
        if request_id in self._in_flight:
            done(self._invalid(request_id, f"a request with the id {request_id!r} is running"), [])
            return
        try:
            self._admit(request_id, method, params, done)
        except Exception as fault:
            done(self._failure(request_id, fault, method), [])

    def _admit(self, request_id: int | str, method: str, params: Any, done: Done) -> None:
        refusal = judge_request(self._conversation.phase, method)
        if refusal is not None:
            raise CallboardError(refusal.kind, refusal.message)
        entry = METHODS.get(method)
        if entry is None or entry.direction != "clientToServer":
            raise CallboardError("methodNotFound", f"there is no method {method}")
        if entry.kind == "notification":
            raise CallboardError(
                "invalidRequest", f"{method} is a notification, send it without id"
            )
        raw = _members(params)
        if method == "initialize":
            answer = self._conversation.initialize(raw)
            done(_result(request_id, codec.encode(answer)), [])
            return
        handler = self._handlers.get(method)
        if method == "shutdown":
            self._conversation.shut()
            handler = handler or _nothing
        elif handler is None:
            raise CallboardError("methodNotFound", f"this server does not offer {method}")
        if len(self._in_flight) >= self._max_in_flight and method not in _LIFECYCLE:
            raise CallboardError(
                "overloaded",
                f"{self._max_in_flight} requests are running; wait for answers",
                retry_after_ms=_RETRY_AFTER_MS,
            )
        job = self._job(entry, request_id, raw, handler, done)
        self._in_flight[request_id] = job.call
        self._spawn(job)

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
        call = self._conversation.make_call(entry.name, request_id, self._new_id(), key)
        behind = self._gate.behind()
        ticket: asyncio.Event | None = None
        keyed: KeyedRequest | None = None
        if key is not None and self._replay is not None:
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

    def _spawn(self, job: _Job) -> None:
        self._running += 1
        self._idle.clear()
        self._conversation.spawn(lambda: self._run(job))

    async def _run(self, job: _Job) -> None:
        try:
            await self._run_scoped(job)
        finally:
            self._running -= 1
            if self._running == 0:
                self._idle.set()

    async def _run_scoped(self, job: _Job) -> None:
        call = job.call
        answer: bytes | None = None
        fault: BaseException | None = None
        try:
            with call.cancelled:
                if job.behind is not None:
                    await job.behind.wait()
                if not call.cancelled.cancel_called:
                    answer = await self._answer(job)
        except (Exception, SystemExit) as raised:
            fault = raised
        except asyncio.CancelledError as stray:
            # Cancelled from outside: our own scope keeps its cancellation to itself. Either the
            # connection ends, or the handler awaited something that somebody else cancelled.
            task = asyncio.current_task()
            if self._conversation.phase is Phase.ENDING or (task is not None and task.cancelling()):
                self._finish(job, None, self._stopped(call))
                raise
            fault = RuntimeError("what the handler waited for was cancelled")
            fault.__cause__ = stray
        finally:
            if job.ticket is not None:
                job.ticket.set()
        if answer is None and fault is None:
            fault = self._stopped(call)
        self._finish(job, answer, fault)

    async def _answer(self, job: _Job) -> bytes:
        async def start() -> bytes:
            if job.ticket is not None:
                job.ticket.set()
            return codec.encode(await job.handler(job.call, job.params))

        if job.keyed is None or self._replay is None:
            return await start()
        return await self._replay.run(job.keyed, start)

    def _stopped(self, call: Call) -> CallboardError:
        if self._conversation.phase is Phase.ENDING:
            return CallboardError("shuttingDown", f"the server ended before {call.method} was done")
        return CallboardError("requestCancelled", f"{call.method} was cancelled by the client")

    def _finish(self, job: _Job, answer: bytes | None, fault: BaseException | None) -> None:
        call = job.call
        request_id = call.request_id
        if request_id is None:
            if fault is not None:
                error = self._faults.error(
                    fault, correlation_id=call.correlation_id, method=call.method
                )
                logger.warning("the notification %s failed: %s", call.method, error["message"])
            job.done(None, [] if fault is not None else call.callbacks)
            return
        self._in_flight.pop(request_id, None)
        if answer is not None and fault is None:
            if call.method == "shutdown" and self._conversation.framing == "lsp":
                answer = b"null"
            job.done(_result(request_id, answer), call.callbacks)
            return
        fault = fault or self._stopped(call)
        job.done(self._failure(request_id, fault, call.method, call.correlation_id), [])

    # -- notifications

    def _notification(self, method: str, params: Any, done: Done) -> None:
        try:
            self._heed(method, params, done)
        except Exception as fault:
            error = self._faults.error(fault, correlation_id=self._new_id(), method=method)
            logger.warning("the notification %s was dropped: %s", method, error["message"])
            done(None, [])

    def _heed(self, method: str, params: Any, done: Done) -> None:
        if not hears_notification(self._conversation.phase, method):
            logger.info(
                "%s dropped: the conversation is %s", method, self._conversation.phase.value
            )
            done(None, [])
        elif method == "exit":
            done(None, [])
            self._conversation.exit()
        elif method == "$/cancelRequest":
            self._cancel(params)
            done(None, [])
        elif self._conversation.other_notification(method, params):
            done(None, [])
        else:
            entry = METHODS.get(method)
            handler = self._handlers.get(method)
            if entry is None or handler is None or entry.kind != "notification":
                if not method.startswith("$/") and method != "initialized":
                    logger.info("the notification %s means nothing here", method)
                done(None, [])
                return
            self._spawn(self._job(entry, None, _members(params), handler, done))

    def _cancel(self, params: Any) -> None:
        request_id: Any = cast("dict[str, Any]", params).get("id") if type(params) is dict else None
        call = self._in_flight.get(request_id) if type(request_id) in (int, str) else None
        if call is None:
            logger.debug("$/cancelRequest names no request that is running")
        else:
            call.cancelled.cancel()

    # -- answers

    def _reply(self, answer: bytes | None, after: list[Callable[[], None]]) -> None:
        if answer is not None:
            self._conversation.send(answer)
        _run_all(after)

    def _complain(self, kind: str, message: str) -> None:
        self._conversation.send(self._failure(None, CallboardError(kind, message)))

    def _invalid(self, request_id: Any, message: str) -> bytes:
        return self._failure(request_id, CallboardError("invalidRequest", message))

    def _failure(
        self,
        request_id: int | str | None,
        fault: BaseException,
        method: str = "the message",
        correlation_id: str | None = None,
    ) -> bytes:
        error = self._faults.error(
            fault, correlation_id=correlation_id or self._new_id(), method=method
        )
        return codec.encode({"jsonrpc": "2.0", "id": request_id, "error": error})


def _members(params: Any) -> dict[str, Any]:
    if params is None:
        return {}
    if type(params) is not dict:
        message = "must be an object; positional params are not supported"
        raise convert.StructureError([{"path": "$", "message": message}])
    return cast("dict[str, Any]", params)


def _result(request_id: int | str, result: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (orjson.dumps(request_id), result)


async def _nothing(_call: Call, _params: Any) -> Empty:
    return Empty()


def _run_all(callbacks: list[Callable[[], None]]) -> None:
    for callback in callbacks:
        try:
            callback()
        except Exception:
            logger.exception("what was to follow an answer failed")
