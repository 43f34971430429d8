"""OpenAI's Responses API, used without state: every request carries the whole history as items.

Nothing is kept at the provider (``store: false``). A reasoning model's thoughts therefore travel with
the history, encrypted: each item goes back as it came, once, right before what it led to.
"""

import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing

import orjson

from callboard.models.base import (
    AssistantMessage,
    Image,
    ModelCard,
    ModelError,
    ModelEvent,
    ModelMessage,
    ModelRequest,
    Reasoning,
    Text,
    ToolMessage,
    ToolUse,
    UserMessage,
)
from callboard.models.endpoint import Endpoint, Refusals, data_url, object_of, text_of
from callboard.models.http import DEFAULT_TIMEOUTS, HttpClient, Timeouts
from callboard.models.openai_responses_stream import FORMAT, ResponsesStream, says_something
from callboard_rpc.common import Json

_HISTORY = "history"
_SUMMARY = "summary"
_OPTIONAL = {
    # Thoughts of another account, or of a model since changed, cannot be decrypted any more.
    _HISTORY: re.compile(
        r"invalid_encrypted_content|encrypted content .{0,80}(?:could not|cannot|invalid)"
        r"|(?:reasoning|rs_\w+).{0,80}(?:not found|required following item)",
        re.I,
    ),
    "include": re.compile(
        r"encrypted content is not supported|parameter:? .?include\b|\bbody\.include\b", re.I
    ),
    _SUMMARY: re.compile(
        r"reasoning\.summary|reasoning summar|\breasoning\b.{0,60}not support", re.I
    ),
    "reasoning": re.compile(r"reasoning\.effort|\breasoning\b", re.I),
    "temperature": re.compile(r"\btemperature\b", re.I),
    "prompt_cache_key": re.compile(r"prompt_cache_key", re.I),
}


class OpenAIResponses:
    """A model behind a Responses endpoint. `base_url` ends where ``/responses`` begins.

    What a server refuses of a request's optional parts is left out from then on.
    """

    def __init__(
        self,
        card: ModelCard,
        http: HttpClient,
        base_url: str,
        api_key: Callable[[], str | None],
        headers: Mapping[str, str] | None = None,
        *,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
    ) -> None:
        self._endpoint = Endpoint(
            card=card,
            http=http,
            base_url=base_url,
            api_key=api_key,
            headers=headers or {},
            timeouts=timeouts,
        )
        self._refusals = Refusals(_OPTIONAL)

    @property
    def card(self) -> ModelCard:
        return self._endpoint.card

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """See `callboard.models.base.Model`."""
        while True:
            body = self._body(request)
            answer = ResponsesStream(price=self.card.price)
            try:
                async with aclosing(self._ask(body, answer)) as events:
                    async for event in events:
                        yield event
                return
            except ModelError as error:
                if not answer.started and self._refusals.learn(error, _optional_parts(body)):
                    continue
                raise ModelError(error.failure, started=answer.started) from error.__cause__

    async def _ask(self, body: Json, answer: ResponsesStream) -> AsyncGenerator[ModelEvent]:
        endpoint = self._endpoint
        headers = endpoint.sent_headers()
        async with endpoint.http.stream_sse(
            endpoint.url("/responses"),
            headers=headers,
            body=body,
            provider=self.card.provider,
            timeouts=endpoint.timeouts,
            semantic=says_something,
        ) as events:
            async for sse in events:
                if sse.data.strip() in ("", "[DONE]"):
                    continue
                payload = endpoint.payload(sse, headers)
                kind = text_of(payload.get("type")) or sse.event or ""
                if kind in ("error", "response.failed") or (not kind and payload.get("error")):
                    raise endpoint.stream_error(payload, headers)
                for event in answer.feed(kind, payload):
                    yield event
                if answer.closing is not None:
                    break
        if answer.closing is None:
            raise endpoint.cut_off(empty=not answer.started)
        for event in answer.closing:
            yield event

    def _body(self, request: ModelRequest) -> Json:
        body: Json = {
            "model": self.card.name,
            "input": _items(
                request.messages, self.card, with_reasoning=_HISTORY not in self._refusals
            ),
            "stream": True,
            "store": False,
        }
        reasoning: Json = {"effort": request.effort} if request.effort else {}
        if _SUMMARY not in self._refusals:
            reasoning["summary"] = "auto"
        options: Json = {
            "instructions": request.system or None,
            "include": ["reasoning.encrypted_content"],
            "reasoning": reasoning or None,
            "max_output_tokens": request.max_output_tokens,
            "temperature": request.temperature,
            "prompt_cache_key": request.session_key,
        }
        if request.tools and self.card.supports_tools:
            options["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.schema,
                    "strict": False,
                }
                for tool in request.tools
            ]
            options["tool_choice"] = "auto" if request.allow_tools else "none"
        body.update(
            (name, value)
            for name, value in options.items()
            if value is not None and name not in self._refusals
        )
        return body


def _optional_parts(body: Json) -> frozenset[str]:
    parts = set(_OPTIONAL.keys() & body.keys())
    if "summary" in object_of(body.get("reasoning")):
        parts.add(_SUMMARY)
    if any(item.get("type") == "reasoning" for item in body["input"]):
        parts.add(_HISTORY)
    return frozenset(parts)


def _items(
    messages: tuple[ModelMessage, ...], card: ModelCard, *, with_reasoning: bool
) -> list[Json]:
    items: list[Json] = []
    replayed: set[str] = set()
    for message in messages:
        match message:
            case UserMessage(blocks=blocks):
                items.append({"type": "message", "role": "user", "content": _content(blocks, card)})
            case ToolMessage(outputs=outputs):
                items += (
                    {
                        "type": "function_call_output",
                        "call_id": output.call_id,
                        "output": output.text,
                    }
                    for output in outputs
                )
            case AssistantMessage():
                items += _assistant_items(message, replayed, with_reasoning=with_reasoning)
    return items


def _assistant_items(
    message: AssistantMessage, replayed: set[str], *, with_reasoning: bool
) -> list[Json]:
    """The items of one answer. `replayed` are the encrypted thoughts that went out already."""
    items: list[Json] = []
    waiting: list[Json] = []
    for block in message.blocks:
        if isinstance(block, Reasoning):
            # Without its encrypted content an item is a reference to what nobody stored.
            sealed = text_of(object_of(block.opaque).get("encrypted_content"))
            ours = block.provider == FORMAT and block.opaque is not None
            if with_reasoning and ours and sealed and sealed not in replayed:
                replayed.add(sealed)
                waiting.append(object_of(block.opaque))
            continue
        if isinstance(block, Text) and not block.text:
            continue
        items += waiting
        waiting = []
        items.append(_text_item(block) if isinstance(block, Text) else _call_item(block))
    # Thoughts that led to nothing, since the answer was cut off, are refused by the provider.
    return items


def _text_item(block: Text) -> Json:
    return {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": block.text, "annotations": []}],
    }


def _call_item(block: ToolUse) -> Json:
    return {
        "type": "function_call",
        "call_id": block.call_id,
        "name": block.name,
        "arguments": orjson.dumps(block.arguments).decode(),
    }


def _content(blocks: tuple[Text | Image, ...], card: ModelCard) -> list[Json]:
    content: list[Json] = []
    for block in blocks:
        if isinstance(block, Text):
            content.append({"type": "input_text", "text": block.text})
        elif card.supports_images:
            content.append({"type": "input_image", "image_url": data_url(block)})
        else:
            left_out = f"[an image ({block.mime_type}) was left out: this model reads text only]"
            content.append({"type": "input_text", "text": left_out})
    return content
