"""OpenAI's Chat Completions, as OpenAI, OpenRouter, Ollama, llama.cpp, vLLM, LM Studio and others speak it."""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from urllib.parse import urlsplit

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
    Stop,
    Text,
    TextDelta,
    ToolMessage,
    ToolRequest,
    ToolUse,
    UsageReport,
    UserMessage,
)
from callboard.models.endpoint import Endpoint, Refusals, data_url, object_of
from callboard.models.http import DEFAULT_TIMEOUTS, HttpClient, Timeouts
from callboard.models.openai_chat_stream import FORMAT, ChatStream
from callboard.models.text_calls import (
    TextCallFilter,
    describe_tools,
    written_call,
    written_result,
)
from callboard_rpc.common import Json

_OPTIONAL = {
    "tools": re.compile(
        r"^(?!.*\bschema\b)(?:.*?)(?:(?:not|n't) support[^.]{0,40}\b(?:tools?|functions?)\b|support(?:s|ed)? (?:for )?tool use"
        r"|\b(?:tools?|functions?)\b(?: param| call\w*| choice| use)?[^.]{0,40}"
        r"(?:not (?:yet )?support|unsupported|requires? --|not enabled|not allowed|extra inputs))",
        re.I | re.S,
    ),
    "stream_options": re.compile(r"stream_options|include_usage", re.I),
    "max_completion_tokens": re.compile(r"max_completion_tokens", re.I),
    "max_tokens": re.compile(r"\bmax_tokens\b.{0,60}(?:not support|unsupported)", re.I),
    "temperature": re.compile(
        r"\btemperature\b.{0,80}(?:not support|unsupported|only the default)", re.I
    ),
    "reasoning_effort": re.compile(r"reasoning_effort", re.I),
    "prompt_cache_key": re.compile(r"prompt_cache_key", re.I),
    "tool_choice": re.compile(r"\btool_choice\b", re.I),
}


class OpenAIChat:
    """A model behind a Chat Completions endpoint. `base_url` ends where ``/chat/completions`` begins.

    What a server refuses of a request's optional parts is left out from then on, tools included: they
    are then told in the system prompt when the card says that the model writes calls as text.
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
            answer = ChatStream(model_id=self.card.model_id, price=self.card.price)
            try:
                async with aclosing(self._ask(body, answer)) as events:
                    async for event in self._reading(request, events):
                        yield event
                return
            except ModelError as error:
                if not answer.started and self._refusals.learn(error, _optional_parts(body)):
                    continue
                raise ModelError(error.failure, started=answer.started) from error.__cause__

    async def _ask(self, body: Json, answer: ChatStream) -> AsyncGenerator[ModelEvent]:
        endpoint = self._endpoint
        headers = endpoint.sent_headers()
        done = False
        try:
            async with endpoint.http.stream_sse(
                endpoint.url("/chat/completions"),
                headers=headers,
                body=body,
                provider=self.card.provider,
                timeouts=endpoint.timeouts,
            ) as events:
                async for sse in events:
                    if sse.data.strip() == "[DONE]":
                        done = True
                        break
                    if not sse.data.strip():
                        continue
                    chunk = endpoint.payload(sse, headers)
                    if chunk.get("error") or sse.event == "error":
                        raise endpoint.stream_error(chunk, headers)
                    for event in answer.feed(chunk):
                        yield event
        except ModelError:
            # Whatever breaks after the server said why it stopped breaks nothing of the answer.
            if not answer.finished:
                raise
        if answer.finish_reason == "error" or not (answer.finished or (done and answer.saw_choice)):
            raise endpoint.cut_off(empty=not answer.started)
        for event in answer.close():
            yield event

    async def _reading(
        self, request: ModelRequest, events: AsyncIterator[ModelEvent]
    ) -> AsyncGenerator[ModelEvent]:
        """`events`, with the calls in their text found where the card says that there may be some."""
        if not (self.card.text_tool_calls and request.tools and request.allow_tools):
            async for event in events:
                yield event
            return
        calls = TextCallFilter([tool.name for tool in request.tools])
        called = False
        async for event in events:
            found: list[TextDelta | ToolRequest] = []
            match event:
                case TextDelta(text=text):
                    found = calls.feed(text)
                case Stop() | UsageReport() | ToolRequest():
                    found = calls.close()
                case _:
                    pass
            for each in found:
                called = called or isinstance(each, ToolRequest)
                yield each
            if isinstance(event, Stop) and called and event.reason == "end_turn":
                yield Stop(reason="tool_use", raw=event.raw)
            elif not isinstance(event, TextDelta):
                yield event

    def _body(self, request: ModelRequest) -> Json:
        card = self.card
        in_text = not card.supports_tools or "tools" in self._refusals
        body: Json = {
            "model": card.name,
            "messages": _messages(request, card, in_text=in_text),
            "stream": True,
        }
        if "stream_options" not in self._refusals:
            body["stream_options"] = {"include_usage": True}
        forbid = not request.allow_tools
        # Where "none" is not understood, only leaving the tools out forbids them.
        if request.tools and not in_text and not (forbid and "tool_choice" in self._refusals):
            body["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": tool.schema,
                    },
                }
                for tool in request.tools
            ]
            if forbid:
                body["tool_choice"] = "none"
        ours = _is_openai(self._endpoint.base_url)
        options: Json = {
            _limit_name(self._refusals, ours=ours): request.max_output_tokens,
            "temperature": request.temperature,
            "reasoning_effort": request.effort,
            "prompt_cache_key": request.session_key if ours else None,
        }
        body.update(
            (name, value)
            for name, value in options.items()
            if value is not None and name not in self._refusals
        )
        return body


def _optional_parts(body: Json) -> frozenset[str]:
    return frozenset(_OPTIONAL.keys() & body.keys())


def _is_openai(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    return host == "api.openai.com" or host.endswith(".openai.azure.com")


def _limit_name(refusals: Refusals, *, ours: bool) -> str:
    """OpenAI's models refuse the old name, other servers do not know the new one."""
    names = (
        ("max_completion_tokens", "max_tokens") if ours else ("max_tokens", "max_completion_tokens")
    )
    return names[1] if names[0] in refusals else names[0]


def _messages(request: ModelRequest, card: ModelCard, *, in_text: bool) -> list[Json]:
    system = request.system
    if in_text and card.text_tool_calls and request.tools and request.allow_tools:
        system = f"{system}\n\n{describe_tools(request.tools)}".strip()
    messages: list[Json] = [{"role": "system", "content": system}] if system else []
    for message in request.messages:
        for each in _wire(message, card, in_text=in_text):
            _append(messages, each, merge=in_text)
    return messages


def _wire(message: ModelMessage, card: ModelCard, *, in_text: bool) -> list[Json]:
    match message:
        case UserMessage(blocks=blocks):
            return [{"role": "user", "content": _user_content(blocks, card)}]
        case AssistantMessage():
            return [_written(message) if in_text else _assistant(message, card)]
        case ToolMessage(outputs=outputs) if in_text:
            results = "\n".join(written_result(output.text) for output in outputs)
            return [{"role": "user", "content": results}]
        case ToolMessage(outputs=outputs):
            return [
                {"role": "tool", "tool_call_id": output.call_id, "content": output.text}
                for output in outputs
            ]


def _append(messages: list[Json], message: Json, *, merge: bool) -> None:
    """Adds `message`. Templates without tools demand that roles alternate, hence `merge`."""
    last = messages[-1] if messages else {}
    texts = isinstance(last.get("content"), str) and isinstance(message["content"], str)
    if merge and texts and last.get("role") == message["role"]:
        last["content"] = f"{last['content']}\n\n{message['content']}"
    else:
        messages.append(message)


def _user_content(blocks: tuple[Text | Image, ...], card: ModelCard) -> str | list[Json]:
    if not any(isinstance(block, Image) for block in blocks) or not card.supports_images:
        # A plain string is what every server takes.
        return "\n\n".join(
            block.text
            if isinstance(block, Text)
            else f"[an image ({block.mime_type}) was left out: this model reads text only]"
            for block in blocks
        )
    return [
        {"type": "text", "text": block.text}
        if isinstance(block, Text)
        else {"type": "image_url", "image_url": {"url": data_url(block)}}
        for block in blocks
    ]


def _assistant(message: AssistantMessage, card: ModelCard) -> Json:
    calls = [
        {
            "id": block.call_id,
            "type": "function",
            "function": {
                "name": block.name,
                "arguments": orjson.dumps(block.arguments).decode(),
            },
        }
        for block in message.blocks
        if isinstance(block, ToolUse)
    ]
    # An empty text, never null: some servers refuse null in a history.
    wire: Json = {"role": "assistant", "content": _text(message), **_replayed(message, card)}
    if calls:
        wire["tool_calls"] = calls
    else:
        # DeepSeek and its kin want their reasoning back with calls, and refuse it elsewhere.
        wire.pop("reasoning_content", None)
    return wire


def _written(message: AssistantMessage) -> Json:
    calls = (
        written_call(block.name, block.arguments)
        for block in message.blocks
        if isinstance(block, ToolUse)
    )
    return {"role": "assistant", "content": "\n".join(filter(None, (_text(message), *calls)))}


def _text(message: AssistantMessage) -> str:
    return "\n\n".join(block.text for block in message.blocks if isinstance(block, Text))


def _replayed(message: AssistantMessage, card: ModelCard) -> Json:
    """The reasoning of this very model, in the fields in which it came."""
    fields: Json = {}
    for block in message.blocks:
        if not isinstance(block, Reasoning) or block.provider != FORMAT:
            continue
        opaque = object_of(block.opaque)
        if opaque.get("model") != card.model_id:
            continue
        for name, value in object_of(opaque.get("fields")).items():
            fields[name] = fields[name] + value if name in fields else value
    return fields
