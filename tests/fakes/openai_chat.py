"""A paper Chat Completions API: judges requests as the documentation has them, and plays streams.

    async with HttpFake(answer=ChatApi(stream_one, stream_two)) as fake: ...

A request that breaks a documented rule is answered 400 in OpenAI's error shape. `refuses` makes it one
of the servers that are compatible save for some parameters: each is refused in the words given.
"""

from collections.abc import Mapping
from typing import Any

from fakes.http_fake import EVENT_STREAM, Reply, Request, json_reply, split_every

PARAMETERS = frozenset(
    {
        "model",
        "messages",
        "stream",
        "stream_options",
        "tools",
        "tool_choice",
        "temperature",
        "max_tokens",
        "max_completion_tokens",
        "reasoning_effort",
        "prompt_cache_key",
    }
)


class Refused(Exception):
    """What the API would say to a request that breaks a rule."""


class ChatApi:
    """Plays `streams` one after the other, the last one for ever, in pieces of `piece` bytes."""

    def __init__(
        self,
        *streams: bytes,
        key: str | None = None,
        refuses: Mapping[str, str] | None = None,
        refusal_status: int = 400,
        piece: int = 4096,
    ) -> None:
        self._streams = list(streams)
        self._key = key
        self._refuses = dict(refuses or {})
        self._refusal_status = refusal_status
        self._piece = piece

    def __call__(self, request: Request) -> Reply:
        if self._key is not None and request.headers.get("authorization") != f"Bearer {self._key}":
            return error_reply(401, "Incorrect API key provided.", code="invalid_api_key")
        if request.method == "GET" and request.path.endswith("/models"):
            return json_reply({"object": "list", "data": [{"id": "fake", "object": "model"}]})
        for name, words in self._refuses.items():
            if name in request.json:
                return error_reply(self._refusal_status, words)
        try:
            judge(request)
        except Refused as refusal:
            return error_reply(400, str(refusal), kind="invalid_request_error")
        stream = self._streams.pop(0) if len(self._streams) > 1 else self._streams[0]
        return Reply(headers=dict(EVENT_STREAM), chunks=split_every(stream, self._piece))


def error_reply(
    status: int, message: str, *, kind: str = "invalid_request_error", code: str | None = None
) -> Reply:
    error = {"message": message, "type": kind, "param": None, "code": code}
    return json_reply({"error": error}, status=status)


def judge(request: Request) -> None:
    """Raises `Refused` when `request` breaks a rule of the documentation."""
    need(request.method == "POST", "no such endpoint")
    need(request.path.endswith("/v1/chat/completions"), "no such endpoint")
    need(request.headers.get("content-type") == "application/json", "send JSON")
    body: dict[str, Any] = request.json
    unknown = body.keys() - PARAMETERS
    need(not unknown, f"Unrecognized request arguments supplied: {', '.join(sorted(unknown))}")
    need(isinstance(body.get("model"), str) and body["model"], "you must provide a model")
    need(body.get("stream") is True, "this API only streams")
    need(not {"max_tokens", "max_completion_tokens"} <= body.keys(), "only one limit may be set")
    need("tool_choice" not in body or "tools" in body, "tool_choice is only allowed with tools")
    names = [tool["function"]["name"] for tool in body.get("tools", ())]
    need(len(set(names)) == len(names), "tool names must be unique")
    for tool in body.get("tools", ()):
        need(tool["type"] == "function", "unknown type of tool")
        need(tool["function"]["parameters"].get("type") == "object", "schema must be an object")
    judge_messages(body.get("messages"))


def judge_messages(messages: Any) -> None:
    need(isinstance(messages, list) and messages, "messages must not be empty")
    unanswered: list[str] = []
    for at, message in enumerate(messages):
        role = message.get("role")
        where = f"messages[{at}]"
        if role == "tool":
            need(message["tool_call_id"] in unanswered, f"{where}: no such call is open")
            unanswered.remove(message["tool_call_id"])
            need(isinstance(message["content"], str), f"{where}: content must be a string")
            continue
        need(
            not unanswered,
            f"{where}: an assistant message with tool_calls must be followed by tool messages",
        )
        match role:
            case "system":
                need(
                    at == 0 and isinstance(message["content"], str), f"{where}: system comes first"
                )
            case "user":
                judge_content(message["content"], where)
            case "assistant":
                need(isinstance(message["content"], str), f"{where}: content must be a string")
                for call in message.get("tool_calls", ()):
                    need(call["type"] == "function", f"{where}: unknown type of call")
                    need(isinstance(call["function"]["arguments"], str), f"{where}: arguments")
                    unanswered.append(call["id"])
                need(len(set(unanswered)) == len(unanswered), f"{where}: call ids must be unique")
            case _:
                raise Refused(f"{where}: unknown role {role}")
    need(not unanswered, "tool calls without a result")


def judge_content(content: Any, where: str) -> None:
    if isinstance(content, str):
        return
    need(isinstance(content, list) and content, f"{where}: content must not be empty")
    for part in content:
        match part["type"]:
            case "text":
                need(isinstance(part["text"], str), f"{where}: text")
            case "image_url":
                need(part["image_url"]["url"].startswith("data:image/"), f"{where}: image")
            case _:
                raise Refused(f"{where}: unknown part {part['type']}")


def need(holds: object, rule: str) -> None:
    if not holds:
        raise Refused(rule)
