"""The conversation with an editor: frames in, frames out, and ``initialize`` before everything else."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, cast

from callboard_rpc.errors import CallboardError

from ...rpc import codec
from ...rpc.conversing import Means
from ...rpc.framing import Desync, Frame, FrameReader, Item, encode_frame, read_head
from ..contract import convert
from ..contract.methods import METHODS
from ..contract.server import ClientCapabilities, InitializeRequest
from ..peer import Incoming, Peer, Served

_log = logging.getLogger(__name__)


class EditorConversation:
    """One editor, on the loop's thread.

    Args:
        greet: makes the result of ``initialize``; what it raises is the answer.
        fault: makes an ``error`` object.
        frames: knows the limit of a frame.
    """

    def __init__(
        self,
        means: Means,
        *,
        greet: Callable[[dict[str, Any]], dict[str, Any]],
        fault: Callable[[BaseException, str], dict[str, Any]],
        frames: FrameReader,
        max_in_flight: int,
    ) -> None:
        self.shutdown_seen = False
        self.request: InitializeRequest | None = None
        """What the client has said of itself, once it was answered."""
        self.params: dict[str, Any] = {}
        self._means = means
        self._greet = greet
        self._fault = fault
        self._frames = frames
        self._tasks: set[asyncio.Task[None]] = set()
        self.peer = Peer("agent", send=self._send, spawn=self.spawn, max_in_flight=max_in_flight)
        self.peer.serve(refusing(_early, fault))

    @property
    def closed(self) -> str | None:
        return self.peer.closed

    @property
    def capabilities(self) -> ClientCapabilities:
        return ClientCapabilities() if self.request is None else self.request.client_capabilities

    @property
    def drained(self) -> asyncio.Event:
        """Set while the client keeps up."""
        return self._means.outbound.drained

    async def room(self) -> None:
        """Waits until the client has read enough of what it was sent."""
        if self._means.outbound.pressure != "none":
            await self._means.outbound.drained.wait()

    def spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """A task that ends with the conversation. Tasks begin in the order in which they were made."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("a task of the conversation failed", exc_info=task.exception())

    def _send(self, body: bytes) -> None:
        self._means.outbound.put(encode_frame("ndjson", body))

    # --- for the server that owns the conversation ---

    def adopt(self, params: dict[str, Any]) -> None:
        """Takes over an ``initialize`` that was answered before this object existed."""
        self._open(params, _understood(params))

    def serve(self, served: Served) -> None:
        """What the client can call from now on."""
        self.peer.serve(served)

    def receive(self, item: Item) -> Iterator[None]:
        match item:
            case Frame(body):
                if self.request is not None or not self._greeted(body):
                    self.peer.receive(body)
            case Desync():
                self._means.end("desync")
            case _:
                self.peer.refuse_large(read_head(item.head), self._frames.limit)
        yield

    def urge(self, item: Item) -> bool:
        """What cancels a request need not wait behind what is held up."""
        if isinstance(item, Frame) and b'"$/cancel_request"' in item.body:
            self.peer.receive(item.body)
        return False

    def refuse_new(self) -> None:
        self.peer.serve(refusing(_late, self._fault))

    async def idle(self) -> None:
        await self.peer.idle()

    def cancel_all(self) -> None:
        self.peer.cancel_all()

    async def flush(self) -> None:
        await self._means.outbound.flush()

    def close(self, reason: str) -> None:
        if self.peer.closed is None:
            self.peer.close(reason)
            self._means.outbound.close()
            for task in self._tasks:
                task.cancel()

    # --- the beginning ---

    def _greeted(self, body: bytes) -> bool:
        """Whether it was an ``initialize``, which is answered at once then: nothing comes before it."""
        try:
            message = codec.decode(body)
        except (codec.NotJson, codec.TooDeep):
            return False
        if not isinstance(message, dict):
            return False
        fields = cast("dict[str, Any]", message)
        request_id: Any = fields.get("id")
        if fields.get("method") != "initialize" or type(request_id) not in (int, str):
            return False
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id}
        params: Any = fields.get("params", {})
        try:
            request = convert.structure_lenient(params, InitializeRequest)
            answer["result"] = self._greet(params)
        except Exception as fault:
            answer["error"] = self._fault(fault, "initialize")
            self._send(codec.encode(answer))
            return True
        self._send(codec.encode(answer))
        self._open(params, request)
        return True

    def _open(self, params: dict[str, Any], request: InitializeRequest) -> None:
        self.params, self.request = params, request
        self._means.opened()


def _understood(params: dict[str, Any]) -> InitializeRequest:
    """What was answered stands: of what cannot be understood nothing is made use of."""
    try:
        return convert.structure_lenient(params, InitializeRequest)
    except convert.StructureError as fault:
        _log.warning("what the client says of itself is not understood: %s", fault)
        return InitializeRequest(protocol_version=params["protocolVersion"])


def refusing(
    error: Callable[[str], CallboardError],
    fault: Callable[[BaseException, str], dict[str, Any]],
    before: Callable[[], Awaitable[None]] | None = None,
) -> Served:
    """Answers every method with the `error` that is made of its name, when `before` is done."""

    async def refused(incoming: Incoming, _: Any) -> Any:
        if before is not None:
            await before()
        raise error(incoming.method)

    return Served(
        handlers={
            name: refused
            for name, method in METHODS.items()
            if method.side == "agent" and method.result is not None
        },
        heeds={},
        fault=fault,
    )


def _early(method: str) -> CallboardError:
    return CallboardError("notInitialized", f"{method} came before initialize; send that first")


def _late(method: str) -> CallboardError:
    return CallboardError("shuttingDown", f"the server is ending; {method} was not begun")
