"""Messages to handlers: the envelope's rules and the method table (PROTOCOL 1).

A message is looked at when its turn has come; what may run is given to `calls`, in that order.
"""

import logging
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol, cast

from callboard_rpc import convert
from callboard_rpc.common import Empty
from callboard_rpc.errors import CallboardError
from callboard_rpc.methods import METHODS

from . import codec
from .call import Call, Handlers, Heed, Served
from .calls import Caller, Calls, Done, error_message, result_message, run_all
from .fault import Faults
from .framing import Oversize, read_head
from .intake import MAX_IN_FLIGHT
from .lifecycle import hears_notification, judge_request

logger = logging.getLogger("callboard.rpc")

MAX_BATCH = 1000
_RETRY_AFTER_MS = 500
_LIFECYCLE = frozenset({"initialize", "shutdown"})
_TOO_DEEP: Final = object()
"""Stands in the place of params that nest more deeply than can be dealt with."""

_URGENT_BYTES = 4096
"""How large a frame may be to be looked at before its turn: what is urgent is short."""


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
        new_id: makes correlation ids.
    """

    def __init__(
        self,
        conversation: Conversation,
        *,
        faults: Faults,
        new_id: Callable[[], str],
        max_in_flight: int = MAX_IN_FLIGHT,
    ) -> None:
        self._conversation = conversation
        self._handlers: Handlers = {}
        self._faults = faults
        self._new_id = new_id
        self._max_in_flight = max_in_flight
        self.calls = Calls(conversation, faults=faults, new_id=new_id)

    def serve(self, served: Served) -> None:
        """What can be asked for from now on. A name that is not in `METHODS`, or is none of a client's,
        raises `ValueError`: no undocumented method can exist."""
        for name in served.handlers:
            method = METHODS.get(name)
            if method is None or method.direction != "clientToServer":
                raise ValueError(f"a handler for {name}, which is not in the table of methods")
        self._handlers = served.handlers
        self.calls.replay = served.replay

    # -- what comes in

    def receive(self, body: bytes) -> Iterator[None]:
        """Acts on one frame, on one of its messages with each step: a large batch is taken a little
        at a time. Never raises for what a client can send."""
        try:
            message = codec.decode(body)
        except codec.NotJson as fault:
            self._complain("parseError", f"not a JSON text in UTF-8: {fault}")
            return
        except codec.TooDeep as fault:
            message = _without_depths(fault.value)
        if type(message) is list:
            yield from self._batch(cast("list[Any]", message))
        else:
            self._message(message, self._reply)

    def urge(self, body: bytes) -> bool:
        """Looks at a frame whose turn has not come yet: what it cancels is cancelled now. Says whether
        it ends the conversation. It is received in its turn all the same."""
        if len(body) > _URGENT_BYTES or not (b"$/cancelRequest" in body or b'"exit"' in body):
            return False
        try:
            message = codec.decode(body)
        except (codec.NotJson, codec.TooDeep):
            return False
        ends = False
        for one in cast("list[Any]", message if type(message) is list else [message]):
            match one:
                case {"method": "$/cancelRequest"} if "id" not in one:
                    self._cancel(cast("dict[str, Any]", one).get("params"))
                case {"method": "exit"} if "id" not in one:
                    ends = True
                case _:
                    pass
        return ends

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

    def _batch(self, messages: list[Any]) -> Iterator[None]:
        if self._conversation.framing == "lsp":
            self._complain("invalidRequest", "LSP has no batches; send one message a frame")
        elif not messages:
            self._complain("invalidRequest", "the batch is empty")
        elif len(messages) > MAX_BATCH:
            self._complain(
                "invalidRequest",
                f"a batch of {len(messages)} messages; send {MAX_BATCH} at the most in one",
            )
        else:
            batch = _Batch(len(messages), self._conversation.send)
            for message in messages:
                self._message(message, batch.done)
                yield

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
        elif params is _TOO_DEEP:
            raise _too_deep()
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


def _without_depths(message: Any) -> Any:
    """What nests too deeply, so that each message in it is refused by its own id."""
    if type(message) is list:
        return [_marked(one) for one in cast("list[Any]", message)]
    return _marked(message)


def _marked(message: Any) -> Any:
    if type(message) is not dict:
        return None
    fields = cast("dict[str, Any]", message)
    return fields if codec.is_shallow(fields.get("params")) else {**fields, "params": _TOO_DEEP}


def _members(params: Any) -> dict[str, Any]:
    if params is None:
        return {}
    if params is _TOO_DEEP:
        raise _too_deep()
    if type(params) is not dict:
        message = "must be an object; positional params are not supported"
        raise convert.StructureError([{"path": "$", "message": message}])
    return cast("dict[str, Any]", params)


def _too_deep() -> convert.StructureError:
    message = f"must not nest more than {codec.MAX_DEPTH} levels deep"
    return convert.StructureError([{"path": "$", "message": message}])


async def _nothing(_call: Call, _params: Any) -> Empty:
    return Empty()
