"""The conversation with one other side in JSON-RPC 2.0, whichever of the two Callboard is.

Whoever owns a `Peer` brings the frames and takes what is to be sent; a peer knows nothing of pipes. Each
request runs in a task of its own, begun in the order of arrival; notifications are dealt with where they are
read. What we ask has a table of its own, so that nothing the other side answers can touch what it asked.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final, TypeAlias, TypeVar, cast

from attrs import define, field, frozen

from ..rpc import codec
from ..rpc.asked import PeerError
from ..rpc.framing import Head
from ..rpc.intake import MAX_IN_FLIGHT
from .contract import convert
from .contract.methods import CANCEL_REQUEST, METHODS, Side

T = TypeVar("T")

_log = logging.getLogger(__name__)

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
REQUEST_CANCELLED: Final = -32800
OVERLOADED: Final = -31004


class PeerClosed(Exception):
    """The other side is gone; nothing can be asked of it."""


@define(eq=False)
class Incoming:
    """A request of the other side, for its handler. `on_cancel`, once set, is called in place of the
    cancellation of the handler's task; the handler then answers as it sees fit."""

    request_id: int | str
    method: str
    on_cancel: Callable[[], None] | None = None
    _after: list[Callable[[], None]] = field(factory=list[Callable[[], None]])
    _endings: list[Callable[[], None]] = field(factory=list[Callable[[], None]])

    def after_reply(self, callback: Callable[[], None]) -> None:
        """Runs `callback` once the result is sent, and not at all after an error."""
        self._after.append(callback)

    def after_end(self, callback: Callable[[], None]) -> None:
        """Runs `callback` once the answer is sent, whatever answer it is."""
        self._endings.append(callback)

    def replied(self) -> None:
        for callback in self._after:
            callback()

    def ended(self) -> None:
        endings, self._endings = self._endings, []
        for callback in endings:
            callback()


Handler: TypeAlias = Callable[[Incoming, Any], Awaitable[Any]]
"""``async (incoming, params) -> result``: params of the class that `METHODS` names, or as they came for a
method that is no part of the protocol; the result is attrs or plain values."""

Heed: TypeAlias = Callable[[Any], None]
"""``(params)`` of a notification. It waits for nothing."""


@frozen(kw_only=True)
class Served:
    """What the other side can call. `fault` makes the ``error`` object of what a handler raised."""

    handlers: Mapping[str, Handler]
    heeds: Mapping[str, Heed]
    fault: Callable[[BaseException, str], dict[str, Any]]


class Peer:
    """One conversation, on the loop's thread.

    Args:
        side: which of the protocol's two we are.
        send: takes the bytes of one message, without an end of line.
        spawn: starts a task that ends with the conversation.
        structure: makes typed params and results of what came; lenient towards agents.
    """

    def __init__(
        self,
        side: Side,
        *,
        send: Callable[[bytes], None],
        spawn: Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"],
        structure: Callable[[Any, type[Any]], Any] = convert.structure,
        max_in_flight: int = MAX_IN_FLIGHT,
    ) -> None:
        self.closed: str | None = None
        """Why nothing is sent any more; None while it works."""
        self._side = side
        self._send = send
        self._spawn = spawn
        self._structure = structure
        self._max_in_flight = max_in_flight
        self._served: Served | None = None
        self._last_id = 0
        self._asked: dict[int, tuple[str, asyncio.Future[Any]]] = {}
        self._running: dict[int | str, tuple[Incoming, asyncio.Task[None]]] = {}
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def in_flight(self) -> int:
        """Requests of the other side that have no answer yet."""
        return len(self._running)

    def serve(self, served: Served) -> None:
        """What can be called from now on."""
        self._served = served

    # --- to the other side ---

    def notify(self, method: str, params: Any) -> None:
        if self.closed is None:
            self._put({"jsonrpc": "2.0", "method": method, "params": _plain(params)})

    async def request(
        self, method: str, params: Any, *, timeout_s: float | None = None, plain: bool = False
    ) -> Any:
        """Asks, and returns the result, of the class that `METHODS` names, or `plain` as it came.

        When the time is over (`TimeoutError`) or the caller is cancelled, the other side is told, and an
        answer that comes later is ignored. Raises `PeerError`, `PeerClosed`.
        """
        if self.closed is not None:
            raise PeerClosed(self.closed)
        self._last_id += 1
        request_id = self._last_id
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asked[request_id] = (method, future)
        try:
            self._put(
                {"jsonrpc": "2.0", "id": request_id, "method": method, "params": _plain(params)}
            )
            async with asyncio.timeout(timeout_s):
                result = await future
        finally:
            if self._asked.pop(request_id, None) is not None:
                self.notify(CANCEL_REQUEST, {"requestId": request_id})
        return result if plain else self.result_of(method, result)

    def close(self, reason: str) -> None:
        """Sends nothing any more, fails what was asked, cancels what runs."""
        if self.closed is not None:
            return
        self.closed = reason
        asked, self._asked = self._asked, {}
        for _, future in asked.values():
            if not future.done():
                future.set_exception(PeerClosed(reason))
                future.exception()  # whoever asked may be gone
        self.cancel_all()

    def cancel_all(self) -> None:
        """Cancels every request that runs; while the conversation works each is still answered."""
        for _, task in list(self._running.values()):
            task.cancel()

    async def idle(self) -> None:
        """Returns once no request runs."""
        await self._idle.wait()

    # --- from the other side ---

    def receive(self, body: bytes) -> None:
        """Acts on one frame. Never raises for what the other side can send."""
        try:
            message = codec.decode(body)
        except codec.NotJson as fault:
            self._refuse(None, PARSE_ERROR, f"not a JSON text in UTF-8: {fault}")
            return
        except codec.TooDeep as fault:
            self._refuse(_id_of(fault.value), INVALID_PARAMS, str(fault))
            return
        if not isinstance(message, dict):
            self._refuse(None, INVALID_REQUEST, "a message is one object; there are no batches")
            return
        self.take(cast("dict[str, Any]", message))

    def refuse_large(self, head: Head, limit: int) -> None:
        """Deals with a frame that was too large to be read, by what its start tells: a request is answered, and
        of an answer we hear that it could not be read."""
        skipped = f"a message is over {limit} bytes; it was skipped"
        if head.kind == "response":
            error = {"code": INVALID_REQUEST, "message": skipped}
            self._answered({"id": head.id, "error": error})
        else:
            self._refuse(head.id, INVALID_REQUEST, skipped)

    def take(self, message: dict[str, Any]) -> None:
        """Acts on one message that was read. Never raises for what the other side can send."""
        method, request_id = message.get("method"), message.get("id")
        if method is None and ("result" in message or "error" in message):
            self._answered(message)
        elif not isinstance(method, str):
            self._refuse(_id_of(message), INVALID_REQUEST, "'method' must be a string")
        elif message.get("jsonrpc") != "2.0":
            self._refuse(_id_of(message), INVALID_REQUEST, "'jsonrpc' must be \"2.0\"")
        elif "id" not in message:
            self._heed(method, message.get("params"))
        elif type(request_id) not in (int, str):
            self._refuse(None, INVALID_REQUEST, "an id is a string or an integer")
        else:
            self._start(cast("int | str", request_id), method, message.get("params"))

    def _start(self, request_id: int | str, method: str, params: Any) -> None:
        handler = self._served.handlers.get(method) if self._served is not None else None
        if request_id in self._running:
            self._refuse(request_id, INVALID_REQUEST, f"the id {request_id!r} is in use")
        elif handler is None:
            self._refuse(request_id, METHOD_NOT_FOUND, f"there is no method {method[:200]}")
        elif len(self._running) >= self._max_in_flight:
            self._refuse(
                request_id,
                OVERLOADED,
                f"{self._max_in_flight} requests are running; wait for answers",
            )
        else:
            incoming = Incoming(request_id, method)
            self._idle.clear()
            task = self._spawn(self._run(incoming, handler, params))
            self._running[request_id] = incoming, task
            task.add_done_callback(lambda done: self._over(incoming, done))

    def _over(self, incoming: Incoming, task: "asyncio.Task[None]") -> None:
        if task.cancelled():  # before it had begun
            self._put_cancelled(incoming)
        incoming.ended()
        self._running.pop(incoming.request_id, None)
        if not self._running:
            self._idle.set()

    async def _run(self, incoming: Incoming, handler: Handler, params: Any) -> None:
        assert self._served is not None
        try:
            result = await handler(incoming, self._params(incoming.method, params))
        except asyncio.CancelledError:
            self._put_cancelled(incoming)
            return
        except BaseException as fault:
            error = self._served.fault(fault, incoming.method)
            self._put({"jsonrpc": "2.0", "id": incoming.request_id, "error": error})
            if not isinstance(fault, Exception):
                raise
            return
        self._put({"jsonrpc": "2.0", "id": incoming.request_id, "result": _plain(result)})
        incoming.replied()

    def _put_cancelled(self, incoming: Incoming) -> None:
        self._refuse(incoming.request_id, REQUEST_CANCELLED, f"{incoming.method} was cancelled")

    def _heed(self, method: str, params: Any) -> None:
        if method == CANCEL_REQUEST:
            self._cancel(params)
            return
        heed = self._served.heeds.get(method) if self._served is not None else None
        if heed is None:
            _log.debug("the notification %s means nothing here", method[:200])
            return
        try:
            heed(self._params(method, params))
        except convert.StructureError as fault:
            _log.warning("the notification %s was dropped: %s", method, fault)
        except Exception:
            _log.exception("the notification %s could not be dealt with", method)

    def _cancel(self, params: Any) -> None:
        named: Any = (
            cast("dict[str, Any]", params).get("requestId") if isinstance(params, dict) else None
        )
        running = self._running.get(named) if type(named) in (int, str) else None
        if running is None:
            return
        incoming, task = running
        if incoming.on_cancel is not None:
            incoming.on_cancel()
        else:
            task.cancel()

    def _answered(self, message: dict[str, Any]) -> None:
        request_id = message.get("id")
        asked = self._asked.pop(request_id, None) if type(request_id) is int else None
        if asked is None:
            _log.info("an answer to a request that is not open was ignored")
            return
        _, future = asked
        if future.done():
            return
        if message.get("error") is not None:
            future.set_exception(_peer_error(message["error"]))
        else:
            future.set_result(message.get("result"))

    # --- shapes ---

    def _params(self, method: str, params: Any) -> Any:
        entry = METHODS.get(method)
        if params is None:
            params = {}
        if entry is None or entry.side != self._side:
            return params
        return self._structure(params, entry.params)

    def result_of(self, method: str, result: Any) -> Any:
        """A result as it came, of the class that `METHODS` names. Raises `PeerError`."""
        entry = METHODS.get(method)
        if entry is None or entry.result is None:
            return result
        try:
            return self._structure({} if result is None else result, entry.result)
        except convert.StructureError as fault:
            raise PeerError(
                INVALID_PARAMS, f"the answer to {method} does not fit: {fault}"
            ) from None

    def _refuse(self, request_id: int | str | None, code: int, message: str) -> None:
        self._put({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}})

    def _put(self, message: dict[str, Any]) -> None:
        if self.closed is None:
            self._send(codec.encode(message))


def _plain(value: Any) -> Any:
    return {} if value is None else convert.unstructure(value)


def _id_of(message: Any) -> int | str | None:
    request_id = cast("dict[str, Any]", message).get("id") if isinstance(message, dict) else None
    return cast("int | str", request_id) if type(request_id) in (int, str) else None


def _peer_error(error: Any) -> PeerError:
    """Some agents answer with a text where an object belongs."""
    if isinstance(error, dict):
        fields = cast("dict[str, Any]", error)
        code, message = fields.get("code"), fields.get("message")
        return PeerError(
            code if type(code) is int else INTERNAL_ERROR,
            message if isinstance(message, str) and message else "an error without a message",
            fields.get("data"),
        )
    return PeerError(INTERNAL_ERROR, str(error))
