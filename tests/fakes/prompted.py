"""Models that do what the prompt says, for agents of other makers, which bring prompts, tools and loops of their own.

    with PromptedModels() as models:
        ...  # have an agent use models.url, and prompt it "[[tool Write {"path": "/a", "content": "x"}]]"

What decides is the newest item of a request that holds a result of a tool or one of these; agents add texts of their
own behind the person's, and those are passed over:

    [[say WORDS]]         the words, each in a piece of its own
    [[think WORDS]]       the words as a thought, and then "Thought."
    [[tool NAME {json}]]  one call of that tool, and when its result is there: "Tool said: RESULT"
    [[slow]]              "tick 1 tick 2 tick 3 ", and then nothing until the client leaves
    [[error STATUS]]      that status

A request that offers no tools is the agent's own (for titles and the like) and gets a plain text.
"""

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any, Literal

from attrs import frozen

from fakes.aside import Aside
from fakes.http_fake import Reply, Request, json_reply

_TAG = re.compile(r"\[\[(say|think|tool|slow|error) ?(.*?)\]\]", re.DOTALL)
_ASIDE = "A fake talk"


@frozen
class Play:
    """What is answered."""

    kind: Literal["say", "think", "tool", "slow", "error"]
    text: str = ""
    tool: str = ""
    arguments: str = "{}"

    @property
    def pieces(self) -> list[str]:
        text = "tick 1 tick 2 tick 3 " if self.kind == "slow" else self.text
        return re.findall(r"\S+\s*", "Thought." if self.kind == "think" else text)


class PromptedModels(Aside):
    """Chat Completions, Responses and Gemini's API at once. `plays` is what was answered to the agents' own loops."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = itertools.count(1)
        self.plays: list[Play] = []
        self.asked: list[Any] = []
        """The bodies of those requests."""

    def reply(self, request: Request) -> Reply:
        path = request.path.partition("?")[0]
        if request.method == "GET":
            model = {"id": "fake", "object": "model", "context_length": 100_000}
            return json_reply({"object": "list", "data": [model], "models": []})
        body = request.json
        if path.endswith(":countTokens"):
            return json_reply({"totalTokens": 10})
        own = not body.get("tools")
        play = Play("say", _ASIDE) if own else play_of(body)
        if not own:
            self.plays.append(play)
            self.asked.append(body)
        if play.kind == "error":
            error = {"message": "the fake fails", "type": "invalid_request_error"}
            return json_reply({"error": error}, status=int(play.text))
        call_id = f"call_{next(self._numbers)}"
        match path.rpartition("/")[2]:
            case "completions" if body.get("stream"):
                events = chat(play, call_id)
            case "completions":
                message = {"role": "assistant", "content": play.text}
                choice = {"index": 0, "message": message, "finish_reason": "stop"}
                return json_reply(
                    {"id": "chat", "model": "fake", "choices": [choice], "usage": _USED}
                )
            case "responses":
                events = responses(play, call_id)
            case str(last) if last.endswith(":streamGenerateContent"):
                events = gemini(play)
            case str(last) if last.endswith(":generateContent"):
                return json_reply(_candidate({"text": "{}"}, "STOP"))
            case _:
                return json_reply({"error": {"message": "no such endpoint"}}, status=404)
        chunks = tuple(events)
        if play.kind == "slow":
            return Reply(
                chunks=chunks[: -_TAILS[path.rpartition("/")[2].rpartition(":")[2]]], end="hang"
            )
        return Reply(chunks=chunks)


# --- what a request asks for ---


def play_of(body: dict[str, Any]) -> Play:
    for kind, text in _newest_first(body):
        if kind == "result":
            return Play("say", f"Tool said: {text[:200]}")
        tags = _TAG.findall(text)
        if not tags:
            continue
        name, rest = tags[-1]
        if name == "tool":
            tool, _, arguments = rest.partition(" ")
            return Play("tool", tool=tool, arguments=arguments or "{}")
        return Play(name, rest)
    return Play("say", "Nothing was asked.")


def _newest_first(body: dict[str, Any]) -> Iterator[tuple[Literal["said", "result"], str]]:
    items: Any = body.get("messages") or body.get("input") or body.get("contents") or []
    for item in reversed(items):
        if item.get("role") == "tool":
            yield "result", _flat(item["content"])
        elif str(item.get("type", "")).endswith("_output"):
            yield "result", _flat(item.get("output"))
        elif item.get("role") == "user":
            parts = item.get("content", item.get("parts"))
            for part in reversed([parts] if isinstance(parts, str) else parts):
                if isinstance(part, dict) and "functionResponse" in part:
                    yield "result", json.dumps(part["functionResponse"].get("response"))
                else:
                    yield "said", _flat(part)


def _flat(content: Any) -> str:
    match content:
        case str():
            return content
        case {"text": str() as text}:
            return text
        case list():
            return "\n".join(_flat(each) for each in content)
        case _:
            return ""


# --- the three wires ---

_USED = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
_TAILS = {"completions": 2, "responses": 3, "streamGenerateContent": 1}
"""How many of a stream's events are its end."""


def _event(data: Any, name: str | None = None) -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()


def chat(play: Play, call_id: str) -> Iterator[bytes]:
    def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        base = {"id": "chat", "object": "chat.completion.chunk", "created": 1, "model": "fake"}
        return _event({**base, "choices": [choice], **more})

    if play.kind == "tool":
        function = {"name": play.tool, "arguments": play.arguments}
        call = {"index": 0, "id": call_id, "type": "function", "function": function}
        yield chunk({"role": "assistant", "content": "", "tool_calls": [call]})
    else:
        yield chunk({"role": "assistant", "content": ""})
        if play.kind == "think":
            yield chunk({"reasoning_content": play.text})
        for piece in play.pieces:
            yield chunk({"content": piece})
    yield chunk({}, "tool_calls" if play.kind == "tool" else "stop", usage=_USED)
    yield _event("[DONE]")


def responses(play: Play, call_id: str) -> Iterator[bytes]:
    numbers = itertools.count()

    def event(kind: str, **more: Any) -> bytes:
        return _event({"type": kind, "sequence_number": next(numbers), **more}, kind)

    base = {"id": "resp_1", "object": "response", "created_at": 1, "model": "fake"}
    yield event("response.created", response={**base, "status": "in_progress", "output": []})
    output: list[dict[str, Any]] = []
    if play.kind == "tool":
        call = {
            "type": "function_call",
            "id": f"fc_{call_id}",
            "call_id": call_id,
            "name": play.tool,
        }
        item = {**call, "arguments": play.arguments, "status": "completed"}
        yield event("response.output_item.added", output_index=0, item={**item, "arguments": ""})
        yield event("response.output_item.done", output_index=0, item=item)
        output.append(item)
    else:
        if play.kind == "think":
            at = {"output_index": 0, "item_id": "rs_1", "summary_index": 0}
            part = {"type": "summary_text", "text": play.text}
            thought = {"type": "reasoning", "id": "rs_1", "summary": []}
            yield event("response.output_item.added", output_index=0, item=thought)
            yield event("response.reasoning_summary_part.added", **at, part={**part, "text": ""})
            yield event("response.reasoning_summary_text.delta", **at, delta=play.text)
            yield event("response.reasoning_summary_text.done", **at, text=play.text)
            thought = {**thought, "summary": [part]}
            yield event("response.output_item.done", output_index=0, item=thought)
            output.append(thought)
        index = len(output)
        item = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
        place = {"output_index": index, "content_index": 0, "item_id": "msg_1"}
        part = {"type": "output_text", "text": "", "annotations": []}
        yield event("response.output_item.added", output_index=index, item=item)
        yield event("response.content_part.added", **place, part=part)
        for piece in play.pieces:
            yield event("response.output_text.delta", **place, delta=piece)
        text = "".join(play.pieces)
        yield event("response.output_text.done", **place, text=text)
        item = {**item, "status": "completed", "content": [{**part, "text": text}]}
        yield event("response.output_item.done", output_index=index, item=item)
        output.append(item)
    used = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 15,
    }
    done = {**base, "status": "completed", "output": output, "usage": used}
    yield event("response.completed", response=done)


def _candidate(part: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": [part]}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    used = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    return {"candidates": [candidate], "usageMetadata": used, "modelVersion": "fake"}


def gemini(play: Play) -> Iterator[bytes]:
    if play.kind == "tool":
        call = {"name": play.tool, "args": json.loads(play.arguments)}
        yield _event(_candidate({"functionCall": call}))
    elif play.kind == "think":
        yield _event(_candidate({"text": play.text, "thought": True}))
    for piece in play.pieces:
        yield _event(_candidate({"text": piece}))
    yield _event(_candidate({"text": ""}, "STOP"))
