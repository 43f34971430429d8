"""One client: what it sends goes to the dispatcher, what is sent to it goes through the queue.

Requests that we send have their own table of ids: nothing a client answers can touch the requests
that it sent itself. An answer that is late, double, foreign or malformed is logged and ignored.
"""

import asyncio
import contextvars
import logging
from collections.abc import Callable, Coroutine, Hashable, Iterator
from typing import Any, cast

import anyio
from anyio import CancelScope
from anyio.abc import TaskGroup
from attrs import frozen

from callboard_rpc import convert
from callboard_rpc.errors import CallboardError
from callboard_rpc.methods import METHODS
from callboard_rpc.server import CallboardOptions, InitializeParams
from callboard_rpc.version import SUPPORTED_VERSIONS

from . import codec
from .asked import PeerError
from .call import Call, Client, LspHooks, Served
from .dispatcher import Dispatcher
from .face import LspFace
from .fault import Faults
from .framing import Desync, Frame, FrameReader, Framing, Item, encode_frame
from .handshake import Handshake, build_answer, choose_version, options_of
from .intake import MAX_IN_FLIGHT
from .lifecycle import EndReason, Phase
from .outbound import Outbound, Outcome, Pressure

logger = logging.getLogger("callboard.rpc")


class ConnectionClosed(Exception):
    """The client is gone, or takes nothing any more; nothing can be asked of it."""


@frozen(kw_only=True)
class Merge:
    """How notifications that wait for a slow client are joined.

    `combine` gets the params of two with one `key`, older first, and gives those of one, or ``None``
    when they cannot be joined. `weight` is about how many bytes of text params hold.
    """

    key: Hashable
    combine: Callable[[Any, Any], Any | None]
    weight: Callable[[Any], int]


_ENVELOPE_BYTES = 256


class _MergeableNote:
    """A notification that waits in the queue, as params; it becomes bytes when it is written."""

    def __init__(
        self, method: str, params: Any, merge: Merge, encode: Callable[[str, Any], bytes]
    ) -> None:
        self._method = method
        self._params = params
        self._merge = merge
        self._encode = encode
        self.key: Hashable = (method, merge.key)
        self.weight = _ENVELOPE_BYTES + merge.weight(params)

    def merged(self, newer: "_MergeableNote") -> "_MergeableNote | None":
        params = self._merge.combine(self._params, newer._params)
        if params is None:
            return None
        return _MergeableNote(self._method, params, self._merge, self._encode)

    def frame(self) -> bytes:
        return self._encode(self._method, self._params)


@frozen(kw_only=True)
class Terms:
    """What a connection is made with. `new_id` makes correlation ids and ids of unnamed clients,
    `frames` knows the framing and the limit of a frame, which both may become known later."""

    handshake: Handshake
    faults: Faults
    new_id: Callable[[], str]
    version: str
    hooks: LspHooks
    frames: FrameReader
    max_in_flight: int = MAX_IN_FLIGHT


class Connection:
    """The conversation with one client, on the loop's thread.

    Args:
        tasks: where handlers run; it belongs to this connection.
        end: called when the client says ``exit`` or its stream is lost.
        on_open: called once, when ``initialize`` was answered.
    """

    def __init__(
        self,
        terms: Terms,
        *,
        outbound: Outbound,
        tasks: TaskGroup,
        end: Callable[[EndReason], None],
        on_open: Callable[["Connection"], None],
    ) -> None:
        self.phase = Phase.NEW
        self.shutdown_seen = False
        self.closed: str | None = None
        """Why nothing is sent any more; ``None`` while the connection works."""
        self._terms = terms
        self._outbound = outbound
        self._tasks = tasks
        self._end = end
        self._on_open = on_open
        self._context = contextvars.copy_context()
        self._client: Client | None = None
        self._lsp: LspFace | None = None
        self._last_id = 0
        self._asked: dict[int, tuple[str, asyncio.Future[Any]]] = {}
        self._dispatcher = Dispatcher(
            self,
            faults=terms.faults,
            new_id=terms.new_id,
            max_in_flight=terms.max_in_flight,
        )

    # -- for handlers, subscriptions and the host

    @property
    def client(self) -> Client:
        """Who is there. Raises `RuntimeError` before ``initialize``."""
        if self._client is None:
            raise RuntimeError("initialize has not been answered yet")
        return self._client

    @property
    def lsp(self) -> LspFace | None:
        """The editor's documents, for a client in LSP framing."""
        return self._lsp

    @property
    def framing(self) -> Framing:
        return self._terms.frames.framing or "ndjson"

    @property
    def pressure(self) -> Pressure:
        """How far the client is behind with reading."""
        return self._outbound.pressure

    @property
    def drained(self) -> asyncio.Event:
        """Set while the client keeps up; wait on it before sending more than replies."""
        return self._outbound.drained

    @property
    def in_flight(self) -> int:
        """Requests of the client that have no answer yet."""
        return len(self._dispatcher.calls)

    @property
    def outbound_frames(self) -> int:
        """Frames that wait to be written."""
        return self._outbound.frames

    def notify(self, method: str, params: Any = None) -> None:
        """Queues a notification; it is never dropped. `params` are attrs or plain values."""
        if self.closed is None:
            self.send(_notification(method, params))

    def notify_mergeable(self, method: str, params: Any, merge: Merge) -> Outcome:
        """Queues a notification that may be joined with its predecessor, or dropped, while the client
        is slow. It never overtakes, and is never joined across, anything else that was sent."""
        if self.closed is not None:
            return "dropped"
        return self._outbound.put_mergeable(
            _MergeableNote(method, params, merge, self._encode_note)
        )

    async def request(self, method: str, params: Any = None, *, timeout: float | None) -> Any:
        """Asks the client and returns its result, of the class that `METHODS` names for `method`.

        `timeout` in seconds, ``None`` for none. When it is over (`TimeoutError`), or the caller is
        cancelled, the client is told by ``$/cancelRequest`` and a later answer is ignored. Raises
        `PeerError` for an error, `ConnectionClosed` when there is or will be nobody to answer.
        """
        if self.closed is not None:
            raise ConnectionClosed(self.closed)
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": self._last_id + 1, "method": method}
        if params is not None:
            body["params"] = params
        encoded = codec.encode(body)
        self._last_id += 1
        request_id = self._last_id
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asked[request_id] = (method, future)
        self.send(encoded)
        try:
            with anyio.fail_after(timeout):
                result = await future
        finally:
            if self._asked.pop(request_id, None) is not None:
                self.notify("$/cancelRequest", {"id": request_id})
        return _structured(method, result)

    async def flush(self) -> None:
        """Returns once everything that was sent so far is written."""
        await self._outbound.flush()

    def close(self, reason: str) -> None:
        """Sends nothing any more, fails what was asked of the client, cancels its requests. Turns and
        sessions go on. What the client sends is still read, so that its end is noticed."""
        if self.closed is not None:
            return
        self.closed = reason
        logger.info("the connection is closed: %s", reason)
        self._outbound.close()
        asked, self._asked = self._asked, {}
        for _, future in asked.values():
            if not future.done():
                future.set_exception(ConnectionClosed(reason))
        self._dispatcher.calls.cancel_all()

    # -- for the server that owns the connection

    def adopt(self, params: dict[str, Any]) -> None:
        """Takes over an ``initialize`` that was answered before this object existed."""
        self._open(params)

    def serve(self, served: Served) -> None:
        """What the client can ask for from now on; before this it is offered nothing."""
        self._dispatcher.serve(served)

    def receive(self, item: Item) -> Iterator[None]:
        """Acts on one thing that was read, on one message of it with each step."""
        match item:
            case Frame():
                yield from self._dispatcher.receive(item.body)
            case Desync():
                logger.error("the client's stream lost its framing: %s", item.reason)
                self._dispatcher.lost(item.reason)
                self._end("desync")
            case _:
                self._dispatcher.oversize(item, self._terms.frames.limit)

    def urge(self, item: Item) -> bool:
        """Looks at what was read and has to wait for its turn: cancels what it cancels. Says whether
        it ends the conversation."""
        return isinstance(item, Frame) and self._dispatcher.urge(item.body)

    def refuse_new(self) -> None:
        """From now on new requests are answered with ``shuttingDown``."""
        self.phase = Phase.ENDING

    async def idle(self) -> None:
        """Returns once no handler runs."""
        await self._dispatcher.calls.idle()

    def cancel_all(self) -> None:
        """Cancels every request that runs; each is answered."""
        self._dispatcher.calls.cancel_all()

    # -- for the dispatcher

    def initialize(self, params: dict[str, Any]) -> Any:
        """The result of ``initialize``. Raises what makes it an error."""
        convert.structure(params, InitializeParams)
        options = _options(params)
        version = choose_version(options.protocol_versions)
        if version is None:
            offered = ", ".join(options.protocol_versions) or "none"
            raise CallboardError(
                "unsupportedVersion",
                f"the client speaks {offered}; this server {', '.join(SUPPORTED_VERSIONS)}",
                data={"supported": list(SUPPORTED_VERSIONS)},
            )
        answer = build_answer(self.framing, version, self._terms.handshake(params))
        self._open(params)
        return answer

    def shut(self) -> None:
        self.shutdown_seen = True
        self.phase = Phase.SHUT

    def exit(self) -> None:
        self._end("exit")

    def make_call(
        self, method: str, request_id: int | str | None, correlation_id: str, key: str | None
    ) -> Call:
        return Call(
            method=method,
            client=self.client,
            connection=self,
            request_id=request_id,
            correlation_id=correlation_id,
            cancelled=CancelScope(),
            idempotency_key=key,
        )

    def send(self, body: bytes) -> None:
        """Queues a whole message."""
        if self.closed is None:
            self._outbound.put(encode_frame(self.framing, body))

    def spawn(self, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Starts a task of this connection, in the context that the connection was made in: nothing
        that one request sets can be seen by another."""
        self._context.copy().run(self._tasks.start_soon, run)

    def other_notification(self, method: str, params: Any) -> bool:
        return self._lsp is not None and self._lsp.notification(method, params)

    def response(self, message: dict[str, Any]) -> None:
        request_id: Any = message["id"]
        asked = self._asked.get(request_id) if type(request_id) is int else None
        if asked is None:
            logger.warning("an answer to a request that is not open was ignored")
            return
        method, future = asked
        error: Any = message.get("error")
        has_result = "result" in message
        if has_result and error is None:
            outcome: Any = message["result"]
        elif not has_result and type(error) is dict and _is_error(cast("dict[str, Any]", error)):
            outcome = PeerError(error["code"], error["message"], error.get("data"))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        else:
            logger.warning("a malformed answer to %s was ignored", method)
            return
        self._settle(request_id, future, outcome)

    def response_too_large(self, request_id: int | str) -> None:
        asked = self._asked.get(request_id) if type(request_id) is int else None
        if asked is not None and type(request_id) is int:
            fault = PeerError(-31006, f"the answer is over {self._terms.frames.limit} bytes")
            self._settle(request_id, asked[1], fault)

    def _settle(self, request_id: int, future: asyncio.Future[Any], outcome: Any) -> None:
        del self._asked[request_id]
        if future.done():
            return
        if isinstance(outcome, PeerError):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)

    def _open(self, params: dict[str, Any]) -> None:
        structured = convert.structure(params, InitializeParams)
        options = _options(params)
        self._client = Client(
            client_id=options.client_id or f"client_{self._terms.new_id()}",
            framing=self.framing,
            info=options.client_info or structured.client_info,
            capabilities=options.capabilities,
            experimental=options.experimental,
            config=options.config or {},
            process_id=structured.process_id,
            root_uri=structured.root_uri,
            raw=params,
        )
        self.phase = Phase.OPEN
        if self.framing == "lsp":
            self._lsp = LspFace(self, params, version=self._terms.version, hooks=self._terms.hooks)
        self._on_open(self)

    def _encode_note(self, method: str, params: Any) -> bytes:
        return encode_frame(self.framing, _notification(method, params))


def _options(params: dict[str, Any]) -> CallboardOptions:
    own = options_of(params)
    return CallboardOptions() if own is None else convert.structure(own, CallboardOptions)


def _notification(method: str, params: Any) -> bytes:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return codec.encode(message)


def _is_error(error: dict[str, Any]) -> bool:
    return type(error.get("code")) is int and type(error.get("message")) is str


def _structured(method: str, result: Any) -> Any:
    entry = METHODS.get(method)
    if entry is None or entry.direction != "serverToClient" or entry.result is None:
        return result
    try:
        return convert.structure(result, entry.result)
    except convert.StructureError as fault:
        raise PeerError(-32602, f"the answer to {method} does not fit: {fault}") from None
