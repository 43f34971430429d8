"""A `ModelRequest` in the form of Anthropic's Messages API. Pure.

Invariants: reasoning goes back exactly as it came and where it stood; the results of a message's calls
come first in the user message after it; at most four cache markers, so placed that a request extends
the cached prefix of the one before it.
"""

import re
from collections.abc import Iterable
from typing import Any

from callboard.models.base import (
    AssistantMessage,
    Image,
    ModelCard,
    ModelMessage,
    ModelRequest,
    Reasoning,
    Text,
    ToolMessage,
    ToolOutput,
    ToolSpec,
    ToolUse,
    UserMessage,
)
from callboard_rpc.common import Json

FORMAT = "anthropic"
"""The `Reasoning.provider` of blocks that came from this format."""

DEFAULT_MAX_TOKENS = 8192
"""The API demands a limit; this one is within what every model of the format allows."""

INTERLEAVED = "interleaved-thinking-2025-05-14"
"""The beta that lets a model with a thinking budget think between tool calls."""

_BUDGETS = {"low": 2048, "medium": 8192, "high": 24576}
_LEAST_BUDGET = 1024
_ANSWER_ROOM = 1024
_CACHED_TURNS = 2
_MARK = {"type": "ephemeral"}
_ID = re.compile(r"[^a-zA-Z0-9_-]")
_NOTHING = "(nothing)"


def request_body(card: ModelCard, request: ModelRequest) -> Json:
    """The JSON body of ``POST /v1/messages`` for `request`, streamed."""
    limit = max_tokens(card, request)
    body: Json = {
        "model": card.name,
        "max_tokens": limit,
        "messages": _messages(card, request),
        "stream": True,
    }
    if request.system.strip():
        body["system"] = [{"type": "text", "text": request.system, "cache_control": _MARK}]
    if request.tools:
        tools = [_tool(tool) for tool in request.tools]
        tools[-1]["cache_control"] = _MARK
        body["tools"] = tools
        if not request.allow_tools:
            body["tool_choice"] = {"type": "none"}
    thinking = _thinking(card, request, limit)
    body.update(thinking)
    if request.temperature is not None and "thinking" not in thinking:
        # Thinking goes with the default temperature only; the format ends at 1.
        body["temperature"] = min(request.temperature, 1.0)
    return body


def max_tokens(card: ModelCard, request: ModelRequest) -> int:
    """How many tokens the answer may have: what is asked for, within what the model can do."""
    most = card.max_output_tokens
    if request.max_output_tokens is None:
        return most or DEFAULT_MAX_TOKENS
    return min(request.max_output_tokens, most or request.max_output_tokens)


def _thinking(card: ModelCard, request: ModelRequest, limit: int) -> Json:
    """What `effort` means for the model: `card.extra` ``thinking`` is ``budget``, ``adaptive`` or absent."""
    mode = card.extra.get("thinking")
    if request.effort is None or mode not in ("budget", "adaptive"):
        return {}
    if mode == "adaptive":
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": request.effort}}
    budget = min(_BUDGETS[request.effort], limit - _ANSWER_ROOM)
    if budget < _LEAST_BUDGET or _loop_lacks_thinking(request.messages):
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _loop_lacks_thinking(messages: tuple[ModelMessage, ...]) -> bool:
    """Whether the open tool loop began without our reasoning: with a budget, the API refuses that."""
    for message in reversed(messages):
        match message:
            case UserMessage():
                return False
            case AssistantMessage():
                blocks = [block for block in message.blocks if _counts(block)]
                if any(isinstance(block, ToolUse) for block in blocks):
                    return not isinstance(blocks[0], Reasoning)
            case ToolMessage():
                continue
    return False


def _counts(block: Text | Reasoning | ToolUse) -> bool:
    match block:
        case Text():
            return bool(block.text.strip())
        case Reasoning():
            return block.provider == FORMAT and block.opaque is not None
        case ToolUse():
            return True


def _tool(tool: ToolSpec) -> Json:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.schema}


# --- messages ---------------------------------------------------------------------------------


def _messages(card: ModelCard, request: ModelRequest) -> list[Json]:
    ids = _Ids()
    merged: list[tuple[str, list[Json]]] = []
    for message in request.messages:
        role = "assistant" if isinstance(message, AssistantMessage) else "user"
        blocks = _blocks(card, message, ids)
        if not blocks:
            continue
        if merged and merged[-1][0] == role:
            merged[-1][1].extend(blocks)
        else:
            merged.append((role, blocks))
    for role, blocks in merged:
        if role == "user":
            # Stable: results keep their order, and so does what a person said beside them.
            blocks.sort(key=lambda block: block["type"] != "tool_result")
    if merged and merged[-1][0] == "assistant" and merged[-1][1][-1]["type"] == "text":
        # A last assistant message is a start to be continued; it may not end in blanks.
        merged[-1][1][-1]["text"] = merged[-1][1][-1]["text"].rstrip()
    users = [blocks for role, blocks in merged if role == "user"]
    for blocks in users[-_CACHED_TURNS:]:
        blocks[-1]["cache_control"] = _MARK
    return [{"role": role, "content": blocks} for role, blocks in merged]


def _blocks(card: ModelCard, message: ModelMessage, ids: "_Ids") -> list[Json]:
    match message:
        case UserMessage():
            # The API refuses blank texts and empty messages.
            found = [_user_block(card, block) for block in message.blocks]
            blocks = [block for block in found if block is not None]
            return blocks or [{"type": "text", "text": _NOTHING}]
        case ToolMessage():
            return [_result(output, ids) for output in message.outputs]
        case AssistantMessage():
            return list(_assistant_blocks(message, ids))


def _user_block(card: ModelCard, block: Text | Image) -> Json | None:
    if isinstance(block, Text):
        return {"type": "text", "text": block.text} if block.text.strip() else None
    if not card.supports_images:
        text = f"[an image ({block.mime_type}) is left out: this model cannot see images]"
        return {"type": "text", "text": text}
    source = {"type": "base64", "media_type": block.mime_type, "data": block.data}
    return {"type": "image", "source": source}


def _result(output: ToolOutput, ids: "_Ids") -> Json:
    block: Json = {
        "type": "tool_result",
        "tool_use_id": ids.safe(output.call_id),
        "content": output.text if output.text.strip() else _NOTHING,
    }
    if output.is_error:
        block["is_error"] = True
    return block


def _assistant_blocks(message: AssistantMessage, ids: "_Ids") -> Iterable[Json]:
    for block in message.blocks:
        if not _counts(block):
            continue
        match block:
            case Text():
                yield {"type": "text", "text": block.text}
            case Reasoning():
                yield dict(block.opaque or {})
            case ToolUse():
                yield {
                    "type": "tool_use",
                    "id": ids.safe(block.call_id),
                    "name": block.name,
                    "input": block.arguments,
                }


class _Ids:
    """Ids as the API allows them (letters, digits, ``_`` and ``-``), one for each of ours."""

    def __init__(self) -> None:
        self._safe: dict[str, str] = {}
        self._taken: set[str] = set()

    def safe(self, call_id: str) -> str:
        known = self._safe.get(call_id)
        if known is not None:
            return known
        base = _ID.sub("_", call_id)[:64] or "call"
        name, number = base, 2
        while name in self._taken:
            name, number = f"{base}_{number}", number + 1
        self._safe[call_id] = name
        self._taken.add(name)
        return name


def beta_headers(body: Json) -> dict[str, str]:
    """The headers that switch on what `body` needs."""
    thinking: Any = body.get("thinking")
    if thinking is not None and thinking["type"] == "enabled" and "tools" in body:
        return {"anthropic-beta": INTERLEAVED}
    return {}
