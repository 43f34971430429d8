"""Anthropic's Messages API, streamed. The request is made in `anthropic_request`, the answer read here.

Invariants: a block is reported when it is whole, in the order of the answer; unknown events, blocks and
deltas are passed over, as the API's versioning policy asks; a stream that ends before its message did
is an error and gives no `Stop`.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping

import orjson
from attrs import define, evolve, field

from callboard.models import usage as usages
from callboard.models.anthropic_request import FORMAT, beta_headers, request_body
from callboard.models.base import (
    ModelCard,
    ModelError,
    ModelEvent,
    ModelRequest,
    Reasoning,
    ReasoningBlock,
    Stop,
    StopReason,
    TextDelta,
    ThoughtDelta,
    ToolRequest,
    UsageReport,
)
from callboard.models.endpoint import Endpoint, count_of, object_of, text_of
from callboard.models.http import DEFAULT_TIMEOUTS, HttpClient, Timeouts
from callboard.models.sse import SseEvent
from callboard_rpc.common import Failure, Json, Usage

API_VERSION = "2023-06-01"
_PROOFS = frozenset({"x-api-key", "authorization"})

_STOPS: dict[str, StopReason] = {
    "end_turn": "end_turn",
    "stop_sequence": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    # What was said is whole as far as it goes; there was no room for more.
    "model_context_window_exceeded": "max_tokens",
    "refusal": "refusal",
    "pause_turn": "other",
}
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The HTTP status that each documented error type has when it comes before the stream."""


class Anthropic:
    """A model behind the Messages API at `base_url` (with or without ``/v1``).

    `api_key` is asked at each request; without a key none is sent. `headers` are added, and win.
    """

    def __init__(
        self,
        card: ModelCard,
        http: HttpClient,
        base_url: str,
        api_key: Callable[[], str | None],
        headers: Mapping[str, str] | None = None,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
    ) -> None:
        self._endpoint = Endpoint(
            card=card,
            http=http,
            base_url=base_url.rstrip("/").removesuffix("/messages").removesuffix("/v1"),
            api_key=api_key,
            headers=dict(headers or {}),
            timeouts=timeouts,
        )

    @property
    def card(self) -> ModelCard:
        return self._endpoint.card

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask the model. Raises `ModelError`; see `callboard.models.base.Model`."""
        endpoint = self._endpoint
        body = request_body(endpoint.card, request)
        headers = self._sent_headers(body)
        answer = _Answer(card=endpoint.card)
        try:
            async with endpoint.http.stream_sse(
                endpoint.url("/v1/messages"),
                headers=headers,
                body=body,
                provider=endpoint.card.provider,
                timeouts=endpoint.timeouts,
                semantic=_is_semantic,
            ) as events:
                async for event in events:
                    data = endpoint.payload(event, headers)
                    data.setdefault("type", event.event)
                    if data["type"] == "error":
                        raise ModelError(self._failure(data, headers))
                    for each in answer.take(data):
                        yield each
                    if answer.stopped:
                        return
                for each in answer.end():
                    yield each
                if not answer.stopped:
                    raise endpoint.cut_off(empty=not answer.started)
        except ModelError as error:
            if answer.started and not error.started:
                raise ModelError(error.failure, started=True) from None
            raise

    def _sent_headers(self, body: Json) -> dict[str, str]:
        """The key goes where the configured headers hold no other proof of who asks."""
        endpoint = self._endpoint
        headers = {"anthropic-version": API_VERSION, **beta_headers(body)}
        key = endpoint.api_key()
        if key and not any(name.lower() in _PROOFS for name in endpoint.headers):
            headers["x-api-key"] = key
        given = {name.lower() for name in endpoint.headers}
        return {**{k: v for k, v in headers.items() if k not in given}, **endpoint.headers}

    def _failure(self, data: Json, headers: Mapping[str, str]) -> Failure:
        """The failure of an ``error`` event, with the status that its type stands for."""
        endpoint = self._endpoint
        failure = endpoint.http.stream_failure(
            endpoint.card.provider, data, headers, url=endpoint.base_url
        )
        status = _STATUS.get(text_of(object_of(data.get("error")).get("type")))
        if status is None or failure.http_status is not None:
            return failure
        return evolve(failure, http_status=status)


def _is_semantic(event: SseEvent) -> bool:
    return event.event != "ping"


@define
class _Block:
    """A content block that is still being written. `start` is as it came, `parts` what was added."""

    start: Json
    parts: list[str] = field(factory=list[str])
    signature: str = ""

    @property
    def kind(self) -> str:
        return str(self.start.get("type"))


@define
class _Answer:
    """What is known of the answer so far; `take` gives what each event adds to it."""

    card: ModelCard
    started: bool = False
    stopped: bool = False
    _open: dict[int, _Block] = field(factory=dict[int, _Block])
    _counts: dict[str, int] = field(factory=dict[str, int])
    _reason: str | None = None

    def take(self, data: Json) -> Iterator[ModelEvent]:
        match data.get("type"):
            case "message_start":
                yield from self._count(object_of(object_of(data.get("message")).get("usage")))
            case "content_block_start":
                yield from self._begin(_index(data), object_of(data.get("content_block")))
            case "content_block_delta":
                yield from self._add(_index(data), object_of(data.get("delta")))
            case "content_block_stop":
                block = self._open.pop(_index(data), None)
                if block is not None:
                    yield from self._finish(block)
            case "message_delta":
                reason = object_of(data.get("delta")).get("stop_reason")
                if isinstance(reason, str):
                    self._reason = reason
                yield from self._count(object_of(data.get("usage")))
            case "message_stop":
                yield from self._stop()
            case _:
                return

    def end(self) -> Iterator[ModelEvent]:
        """The stream is over. Some servers leave ``message_stop`` out after everything was said."""
        if self._reason is not None and not self.stopped:
            yield from self._stop()

    def _begin(self, index: int, start: Json) -> Iterator[ModelEvent]:
        block = _Block(start=start)
        self._open[index] = block
        match block.kind:
            case "text":
                yield from self._text(block, text_of(start.get("text")))
            case "thinking":
                block.signature = text_of(start.get("signature"))
                yield from self._thought(block, text_of(start.get("thinking")))
            case "tool_use":
                self.started = True
            case _:
                return

    def _add(self, index: int, delta: Json) -> Iterator[ModelEvent]:
        block = self._open.get(index)
        if block is None:
            return
        match block.kind, delta.get("type"):
            case "text", "text_delta":
                yield from self._text(block, text_of(delta.get("text")))
            case "thinking", "thinking_delta":
                yield from self._thought(block, text_of(delta.get("thinking")))
            case "thinking", "signature_delta":
                block.signature += text_of(delta.get("signature"))
            case "tool_use", "input_json_delta":
                block.parts.append(text_of(delta.get("partial_json")))
            case _:
                return

    def _text(self, block: _Block, text: str) -> Iterator[ModelEvent]:
        if text:
            self.started = True
            block.parts.append(text)
            yield TextDelta(text=text)

    def _thought(self, block: _Block, text: str) -> Iterator[ModelEvent]:
        if text:
            self.started = True
            block.parts.append(text)
            yield ThoughtDelta(text=text)

    def _finish(self, block: _Block) -> Iterator[ModelEvent]:
        match block.kind:
            case "thinking":
                self.started = True
                yield _thinking_block(block)
            case "redacted_thinking":
                self.started = True
                opaque = block.start
                yield ReasoningBlock(reasoning=Reasoning(text="", provider=FORMAT, opaque=opaque))
            case "tool_use":
                yield _tool_request(block, "".join(block.parts) or _whole_input(block.start))
            case _:
                return

    def _stop(self) -> Iterator[ModelEvent]:
        self.stopped = True
        for block in self._open.values():
            # The limit of tokens cuts a call off without closing it. What there is of its text goes
            # to the loop, which will find it broken; a call without any text was never made.
            if block.kind == "tool_use" and (text := "".join(block.parts)):
                yield _tool_request(block, text)
        self._open.clear()
        yield Stop(reason=_STOPS.get(self._reason or "", "other"), raw=self._reason)

    def _count(self, counts: Json) -> Iterator[ModelEvent]:
        """Counts are cumulative; what a later event leaves out stays as it was."""
        details = object_of(counts.get("output_tokens_details"))
        found: Json = {**counts, "thinking_tokens": details.get("thinking_tokens")}
        pairs = ((name, count_of(found.get(name))) for name in _COUNTS)
        known = {name: count for name, count in pairs if count is not None}
        if not known:
            return
        self._counts.update(known)
        yield UsageReport(usage=usages.priced(_usage(self._counts), self.card.price))


_COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "thinking_tokens",
)


def _usage(counts: Mapping[str, int]) -> Usage:
    """The API counts what it read from and wrote to its cache apart; for us both are input as well."""
    fresh = counts.get("input_tokens")
    read = counts.get("cache_read_input_tokens")
    written = counts.get("cache_creation_input_tokens")
    prompt = None if fresh is None else fresh + (read or 0) + (written or 0)
    return Usage(
        requests=1,
        input_tokens=prompt,
        output_tokens=counts.get("output_tokens"),
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=counts.get("thinking_tokens"),
        context_tokens=prompt,
    )


def _thinking_block(block: _Block) -> ReasoningBlock:
    text = "".join(block.parts)
    opaque: Json | None = None
    if block.signature:
        # Without a signature the API would refuse the block, so there is nothing to send back.
        opaque = {**block.start, "thinking": text, "signature": block.signature}
    return ReasoningBlock(reasoning=Reasoning(text=text, provider=FORMAT, opaque=opaque))


def _tool_request(block: _Block, arguments: str) -> ToolRequest:
    return ToolRequest(
        call_id=text_of(block.start.get("id")) or None,
        name=text_of(block.start.get("name")),
        arguments=arguments,
    )


def _whole_input(start: Json) -> str:
    """The arguments of a call that came without deltas: none, or all at once from some servers."""
    return orjson.dumps(object_of(start.get("input"))).decode()


def _index(data: Json) -> int:
    return count_of(data.get("index")) or 0
