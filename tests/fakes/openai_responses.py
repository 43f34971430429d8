"""A paper Responses API: judges requests as the documentation has them, and plays streams.

    async with HttpFake(answer=ResponsesApi(stream_one, stream_two)) as fake: ...

It stores nothing, and is strict about what statelessness needs: reasoning comes back as it was given
out (encrypted content, id, summary), at most once, and right before what it led to.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fakes.http_fake import EVENT_STREAM, Reply, Request, json_reply, split_every
from fakes.openai_chat import Refused, error_reply, need

PARAMETERS = frozenset(
    {
        "model",
        "input",
        "instructions",
        "stream",
        "store",
        "include",
        "reasoning",
        "tools",
        "tool_choice",
        "max_output_tokens",
        "temperature",
        "prompt_cache_key",
    }
)


class ResponsesApi:
    """Plays `streams` one after the other, the last one for ever, in pieces of `piece` bytes."""

    def __init__(
        self,
        *streams: bytes,
        key: str | None = None,
        refuses: Mapping[str, str] | None = None,
        piece: int = 4096,
    ) -> None:
        self._streams = list(streams)
        self._key = key
        self._refuses = dict(refuses or {})
        self._piece = piece
        self._given: list[dict[str, Any]] = []

    def __call__(self, request: Request) -> Reply:
        if self._key is not None and request.headers.get("authorization") != f"Bearer {self._key}":
            return error_reply(401, "Incorrect API key provided.", code="invalid_api_key")
        if request.method == "GET" and request.path.endswith("/models"):
            return json_reply({"object": "list", "data": [{"id": "fake", "object": "model"}]})
        body = request.json
        for name, words in self._refuses.items():
            if name in body or name in body.get("reasoning", {}):
                return error_reply(400, words)
        try:
            self._judge(request)
        except Refused as refusal:
            return error_reply(400, str(refusal))
        stream = self._streams.pop(0) if len(self._streams) > 1 else self._streams[0]
        self._given += reasoning_of(stream)
        return Reply(headers=dict(EVENT_STREAM), chunks=split_every(stream, self._piece))

    def _judge(self, request: Request) -> None:
        need(request.method == "POST" and request.path.endswith("/v1/responses"), "no endpoint")
        body: dict[str, Any] = request.json
        unknown = body.keys() - PARAMETERS
        need(not unknown, f"Unknown parameter: {', '.join(sorted(unknown))}")
        need(isinstance(body.get("model"), str) and body["model"], "Missing parameter: model")
        need(body.get("stream") is True and body.get("store") is False, "stateless streams only")
        for tool in body.get("tools", ()):
            need(tool["type"] == "function" and isinstance(tool["name"], str), "tools: function")
            need(tool["parameters"].get("type") == "object", "schema must be an object")
        self._judge_input(body.get("input"))

    def _judge_input(self, items: Any) -> None:
        need(isinstance(items, list) and items, "input must not be empty")
        open_calls: list[str] = []
        replayed: list[str] = []
        for at, item in enumerate(items):
            following = items[at + 1] if at + 1 < len(items) else {}
            match item.get("type"):
                case "message":
                    parts = {"user": ("input_text", "input_image"), "assistant": ("output_text",)}
                    allowed = parts[item["role"]]
                    need(item["content"], f"input[{at}]: empty content")
                    need(all(p["type"] in allowed for p in item["content"]), f"input[{at}]: part")
                case "function_call":
                    need(isinstance(item["arguments"], str), f"input[{at}].arguments: a string")
                    open_calls.append(item["call_id"])
                case "function_call_output":
                    need(item["call_id"] in open_calls, f"No tool call found for {item['call_id']}")
                    open_calls.remove(item["call_id"])
                case "reasoning":
                    need(
                        item in self._given,
                        f"Item '{item.get('id')}' not found: invalid_encrypted_content",
                    )
                    need(item["id"] not in replayed, f"Duplicate item '{item['id']}'")
                    replayed.append(item["id"])
                    led_to = following.get("type") in ("function_call", "reasoning") or (
                        following.get("type") == "message" and following["role"] == "assistant"
                    )
                    need(
                        led_to,
                        f"Item '{item['id']}' of type 'reasoning' was provided without its required following item.",
                    )
                case kind:
                    raise Refused(f"Invalid value: '{kind}'")
        need(not open_calls, f"No tool output found for function call {open_calls}")


def reasoning_of(stream: bytes) -> Iterator[dict[str, Any]]:
    """The reasoning items that a recorded stream gives out."""
    for line in stream.decode().splitlines():
        if not line.startswith("data: {"):
            continue
        event = json.loads(line[len("data: ") :])
        if event["type"] == "response.output_item.done" and event["item"]["type"] == "reasoning":
            yield event["item"]
