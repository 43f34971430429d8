"""A paper Messages API: judges requests as the real one documents it, and plays recorded streams.

    async with HttpFake(answer=MessagesApi(stream_one, stream_two)) as fake: ...

A request that breaks a documented rule is answered 400 `invalid_request_error` with the rule's text.
Reasoning blocks must be ones that this API gave out, unchanged.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from fakes.http_fake import EVENT_STREAM, Reply, Request, json_reply, split_every

_ID = re.compile(r"^[a-zA-Z0-9_-]+$")
_REASONING = ("thinking", "redacted_thinking")


class Refused(Exception):
    pass


class MessagesApi:
    """Plays `streams` one after the other, the last one for ever, in pieces of `piece` bytes."""

    def __init__(self, *streams: bytes, key: str | None = None, piece: int = 4096) -> None:
        self._streams = list(streams)
        self._key = key
        self._piece = piece
        self._given: list[dict[str, Any]] = []

    def __call__(self, request: Request) -> Reply:
        if self._key is not None and request.headers.get("x-api-key") != self._key:
            return error_reply(401, "authentication_error", "invalid x-api-key")
        try:
            self._judge(request)
        except Refused as refusal:
            return error_reply(400, "invalid_request_error", str(refusal))
        stream = self._streams.pop(0) if len(self._streams) > 1 else self._streams[0]
        self._given += list(_reasoning_of(stream))
        return Reply(headers=dict(EVENT_STREAM), chunks=split_every(stream, self._piece))

    def _judge(self, request: Request) -> None:
        need(request.method == "POST" and request.path == "/v1/messages", "no such endpoint")
        need("anthropic-version" in request.headers, "anthropic-version: header is required")
        body = request.json
        for name in ("model", "max_tokens", "messages"):
            need(name in body, f"{name}: Field required")
        need(body.get("stream") is True, "this API only streams")
        thinking = body.get("thinking", {"type": "disabled"})
        if thinking["type"] == "enabled":
            need(thinking["budget_tokens"] >= 1024, "thinking.budget_tokens: at least 1024")
            need(thinking["budget_tokens"] < body["max_tokens"], "max_tokens must be greater")
            need("temperature" not in body, "temperature may only be 1 when thinking is enabled")
        need(json.dumps(body).count('"cache_control"') <= 4, "at most 4 blocks with cache_control")
        self._judge_messages(body["messages"], needs_thinking=thinking["type"] == "enabled")

    def _judge_messages(self, messages: list[dict[str, Any]], *, needs_thinking: bool) -> None:
        need(bool(messages) and messages[0]["role"] == "user", "first message must be user")
        used: set[str] = set()
        open_calls: list[str] = []
        for number, message in enumerate(messages):
            at = f"messages.{number}"
            blocks = message["content"]
            need(bool(blocks), f"{at}: must have non-empty content")
            need(number % 2 == (message["role"] == "assistant"), f"{at}: roles must alternate")
            results = [block for block in blocks if block["type"] == "tool_result"]
            need(blocks[: len(results)] == results, f"{at}: tool_result blocks must come first")
            need(
                [result["tool_use_id"] for result in results] == open_calls,
                f"{at}: tool_use ids need tool_result blocks immediately after",
            )
            open_calls = []
            for block in blocks:
                match block["type"]:
                    case "text":
                        need(bool(block["text"].strip()), f"{at}: text must contain non-whitespace")
                    case "tool_use":
                        need(message["role"] == "assistant", f"{at}: tool_use in a user message")
                        need(
                            _ID.match(block["id"]) is not None, f"{at}: id must match {_ID.pattern}"
                        )
                        need(block["id"] not in used, f"{at}: tool_use ids must be unique")
                        need(isinstance(block["input"], dict), f"{at}: input must be a dictionary")
                        used.add(block["id"])
                        open_calls.append(block["id"])
                    case "thinking" | "redacted_thinking":
                        need(block in self._given, f"{at}: blocks cannot be modified")
                    case "tool_result" | "image":
                        need(message["role"] == "user", f"{at}: {block['type']} is the user's")
                    case other:
                        raise Refused(f"{at}: unknown block {other}")
            if needs_thinking and open_calls and number == len(messages) - 2:
                need(blocks[0]["type"] in _REASONING, f"{at}: must start with a thinking block")


def need(holds: bool, rule: str) -> None:
    if not holds:
        raise Refused(rule)


def error_reply(
    status: int, kind: str, message: str, headers: dict[str, str] | None = None
) -> Reply:
    payload = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_01"}
    return json_reply(payload, status=status, headers=headers)


def _reasoning_of(stream: bytes) -> Iterator[dict[str, Any]]:
    blocks: dict[int, dict[str, Any]] = {}
    for line in stream.decode().splitlines():
        if not line.startswith("data: "):
            continue
        data = json.loads(line.removeprefix("data: "))
        match data["type"]:
            case "content_block_start" if data["content_block"]["type"] in _REASONING:
                blocks[data["index"]] = data["content_block"]
            case "content_block_delta" if data["index"] in blocks:
                block, delta = blocks[data["index"]], data["delta"]
                name = "signature" if delta["type"] == "signature_delta" else "thinking"
                block[name] = block.get(name, "") + delta[name]
            case _:
                continue
    yield from blocks.values()
