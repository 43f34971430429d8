"""One JSON-RPC conversation over two pipes, an object a line.

The reader never waits for the writer, for a consumer or for a handler: what is sent goes into a
queue that a task of its own empties. So neither side can block the other for ever.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias, cast

import anyio
import orjson
from anyio.abc import ByteReceiveStream, ByteSendStream, TaskGroup
from attrs import define, field

from callboard_rpc.common import Json

from .errors import ClientError, ConnectionLost, RemoteError, remote_error
from .lines import LineSplitter

Handler: TypeAlias = Callable[[Any], Awaitable[Any]]
"""Answers a request of the server: raw params in, raw result out. Raising becomes an error."""

OnNotification: TypeAlias = Callable[[str, Any], None]
OnReply: TypeAlias = Callable[[Any], None]

_CHUNK_BYTES = 256 * 1024
_BROKEN = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, OSError)

log = logging.getLogger("callboard_client")


@define
class _Pending:
    """A request that waits for its reply."""

    method: str
    on_reply: OnReply | None
    done: anyio.Event = field(factory=anyio.Event)
    result: Any = None
    error: Exception | None = None


class Connection:
    """Call `serve` in a task, then `request` and `notify` from any other.

    Notifications are given to `on_notification` in the reader itself, in the order of the wire;
    it must not block. Each request of the server runs its handler in a task of its own, which
    ``$/cancelRequest`` cancels.
    """

    def __init__(
        self,
        send: ByteSendStream,
        receive: ByteReceiveStream,
        *,
        on_notification: OnNotification,
        handlers: Mapping[str, Handler],
    ) -> None:
        self._send = send
        self._receive = receive
        self._on_notification = on_notification
        self._handlers = handlers
        self._pending: dict[int, _Pending] = {}
        self._incoming: dict[str | int, anyio.CancelScope] = {}
        self._outbox: list[bytes] = []
        self._outbox_filled = anyio.Event()
        self._lines = LineSplitter()
        self._next_id = 0
        self.lost = anyio.Event()
        self.stray = ""
        """The last line that was not a JSON-RPC message, for error texts."""

    async def serve(self) -> None:
        """Reads and writes until either pipe ends. Then every open request is `ConnectionLost`."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._write)
                await self._read(tasks)
                tasks.cancel_scope.cancel()
        finally:
            self._lose()

    async def request(self, method: str, params: Any, *, on_reply: OnReply | None = None) -> Any:
        """The raw ``result``. `on_reply` sees it first, in the reader, before any later message.

        Raises `RemoteError` or `ConnectionLost`. When the caller is cancelled, so is the request.
        """
        if self.lost.is_set():
            raise ConnectionLost(f"{method}: the server has ended")
        key = self.post(method, params)
        pending = self._pending[key] = _Pending(method, on_reply)
        try:
            await pending.done.wait()
        except anyio.get_cancelled_exc_class():
            if self._pending.pop(key, None) is not None:
                self.notify("$/cancelRequest", {"id": key})
            raise
        if pending.error is not None:
            raise pending.error
        return pending.result

    def post(self, method: str, params: Any) -> int:
        """Sends a request whose answer nobody waits for; returns its id."""
        self._next_id += 1
        self._enqueue({"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params})
        return self._next_id

    def notify(self, method: str, params: Any) -> None:
        """Sends a notification, or nothing at all when the server has ended."""
        if not self.lost.is_set():
            self._enqueue({"jsonrpc": "2.0", "method": method, "params": params})

    # --- writing ------------------------------------------------------------------------------

    def _enqueue(self, message: Json) -> None:
        try:
            frame = orjson.dumps(message)
        except orjson.JSONEncodeError as fault:  # lone surrogates, integers of over 64 bits
            raise ClientError(
                f"{message.get('method', 'a reply')} cannot be sent: {fault}"
            ) from None
        self._outbox.append(frame + b"\n")
        self._outbox_filled.set()

    async def _write(self) -> None:
        try:
            while True:
                await self._outbox_filled.wait()
                self._outbox_filled = anyio.Event()
                while self._outbox:
                    frames = b"".join(self._outbox)
                    self._outbox.clear()
                    await self._send.send(frames)
        except _BROKEN:
            # The reader sees the end too, after what the server still had to say.
            return

    # --- reading ------------------------------------------------------------------------------

    async def _read(self, tasks: TaskGroup) -> None:
        while True:
            try:
                chunk = await self._receive.receive(_CHUNK_BYTES)
            except _BROKEN:
                return
            for line in self._lines.feed(chunk):
                self._take(line, tasks)

    def _take(self, line: bytes, tasks: TaskGroup) -> None:
        try:
            message: Any = orjson.loads(line)
        except orjson.JSONDecodeError:
            message = None
        match message:
            case {"method": str(method), "id": str() | int() as key}:
                self._answer_later(method, key, message.get("params"), tasks)
            case {"method": "$/cancelRequest", "params": {"id": str() | int() as key}}:
                if (scope := self._incoming.get(key)) is not None:
                    scope.cancel()
            case {"method": str(method)}:
                self._on_notification(method, message.get("params"))
            case {"id": int(key)}:
                self._settle(key, cast("Json", message))
            case _:
                self.stray = line[:400].decode(errors="replace")
                log.warning("the server wrote a line that is no JSON-RPC message")

    def _settle(self, key: int, message: Json) -> None:
        pending = self._pending.pop(key, None)
        if pending is None:  # its caller was cancelled
            return
        if (error := message.get("error")) is not None:
            pending.error = remote_error(pending.method, error)
        else:
            pending.result = message.get("result")
            if pending.on_reply is not None:
                try:
                    pending.on_reply(pending.result)
                except Exception as fault:
                    pending.error = fault
        pending.done.set()

    def _lose(self) -> None:
        self.lost.set()
        for pending in self._pending.values():
            pending.error = ConnectionLost(f"{pending.method}: the server ended before it answered")
            pending.done.set()
        self._pending.clear()

    # --- requests of the server -----------------------------------------------------------------

    def _answer_later(self, method: str, key: str | int, params: Any, tasks: TaskGroup) -> None:
        handler = self._handlers.get(method)
        if handler is None:
            self._refuse(key, -32601, f"this client does not serve {method}")
            return
        scope = self._incoming[key] = anyio.CancelScope()
        tasks.start_soon(self._answer, handler, method, key, params, scope)

    async def _answer(
        self, handler: Handler, method: str, key: str | int, params: Any, scope: anyio.CancelScope
    ) -> None:
        try:
            with scope:
                result = await handler(params)
                self._enqueue({"jsonrpc": "2.0", "id": key, "result": result})
        except RemoteError as refusal:
            self._refuse(key, refusal.code, refusal.message)
        except Exception:
            log.exception("the handler of %s failed", method)
            self._refuse(key, -32603, f"the client could not serve {method}")
        finally:
            del self._incoming[key]
        if scope.cancelled_caught:
            self._refuse(key, -32800, f"{method} was cancelled")

    def _refuse(self, key: str | int, code: int, message: str) -> None:
        error: Json = {"code": code, "message": message}
        self._enqueue({"jsonrpc": "2.0", "id": key, "error": error})
