"""Messages to handlers: the envelope's rules and the method table (PROTOCOL 1).

A message is looked at when it arrives; what may run is given to `calls`, in that order.
"""

import logging
from collections.abc import Callable
from typing import Any, Protocol, cast

from callboard_rpc import convert
from callboard_rpc.common import Empty
from callboard_rpc.errors import CallboardError
from callboard_rpc.methods import METHODS

from . import codec
from .call import Call, Handlers, Heed, IdempotencyHook
from .calls import Caller, Calls, Done, error_message, result_message, run_all
from .fault import Faults
from .framing import Oversize, read_head
from .lifecycle import hears_notification, judge_request

logger = logging.getLogger("callboard.rpc")

MAX_IN_FLIGHT = 256
_RETRY_AFTER_MS = 500
_LIFECYCLE = frozenset({"initialize", "shutdown"})


class Conversation(Caller, Protocol):
    """What the dispatcher needs of its connection."""

    def initialize(self, params: dict[str, Any]) -> Any: ...
    def shut(self) -> None: ...
    def exit(self) -> None: ...
    def send(self, body: bytes) -> None: ...
    def response(self, message: dict[str, Any]) -> None: ...
    def response_too_large(self, request_id: int | str) -> None: ...
    def other_notification(self, method: str, params: Any) -> bool: ...


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
            run_all(self._after)


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
        self._max_in_flight = max_in_flight
        self.calls = Calls(conversation, faults=faults, new_id=new_id, replay=replay)

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
        if request_id in self.calls:
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
            raise CallboardError("methodNotFound", f"there is no method {method[:200]}")
        if entry.kind == "notification":
            raise CallboardError(
                "invalidRequest", f"{method} is a notification, send it without id"
            )
        raw = _members(params)
        if method == "initialize":
            answer = self._conversation.initialize(raw)
            done(result_message(request_id, codec.encode(answer)), [])
            return
        handler = self._handlers.get(method)
        if method == "shutdown":
            self._conversation.shut()
            handler = handler or _nothing
        if handler is None or isinstance(handler, Heed):
            raise CallboardError("methodNotFound", f"this server does not offer {method}")
        if len(self.calls) >= self._max_in_flight and method not in _LIFECYCLE:
            raise CallboardError(
                "overloaded",
                f"{self._max_in_flight} requests are running; wait for answers",
                retry_after_ms=_RETRY_AFTER_MS,
            )
        self.calls.start(entry, request_id, raw, handler, done)

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
            if isinstance(handler, Heed):
                self.calls.heed(entry, _members(params), handler)
                done(None, [])
            else:
                self.calls.start(entry, None, _members(params), handler, done)

    def _cancel(self, params: Any) -> None:
        request_id: Any = cast("dict[str, Any]", params).get("id") if type(params) is dict else None
        if type(request_id) not in (int, str) or not self.calls.cancel(request_id):
            logger.debug("$/cancelRequest names no request that is running")

    # -- answers

    def _reply(self, answer: bytes | None, after: list[Callable[[], None]]) -> None:
        if answer is not None:
            self._conversation.send(answer)
        run_all(after)

    def _complain(self, kind: str, message: str) -> None:
        self._conversation.send(self._failure(None, CallboardError(kind, message)))

    def _invalid(self, request_id: Any, message: str) -> bytes:
        return self._failure(request_id, CallboardError("invalidRequest", message))

    def _failure(
        self, request_id: int | str | None, fault: BaseException, method: str = "the message"
    ) -> bytes:
        error = self._faults.error(fault, correlation_id=self._new_id(), method=method)
        return error_message(request_id, error)


def _members(params: Any) -> dict[str, Any]:
    if params is None:
        return {}
    if type(params) is not dict:
        message = "must be an object; positional params are not supported"
        raise convert.StructureError([{"path": "$", "message": message}])
    return cast("dict[str, Any]", params)


async def _nothing(_call: Call, _params: Any) -> Empty:
    return Empty()
