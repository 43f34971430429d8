"""How large a request is, in tokens, before a provider has counted it."""

from typing import Final

import orjson

from ..models.base import (
    AssistantMessage,
    Image,
    ModelMessage,
    ModelRequest,
    Reasoning,
    Text,
    ToolMessage,
    ToolUse,
    UserMessage,
)

CHARS_PER_TOKEN: Final = 4.0
PER_MESSAGE: Final = 8
"""Tokens of a message beyond its text (session-messaging 0)."""
_PER_IMAGE_CHARS = 1_500 * 4


def characters(request: ModelRequest) -> int:
    """Characters of all that is sent."""
    tools = sum(
        len(t.name) + len(t.description) + len(orjson.dumps(t.schema)) for t in request.tools
    )
    return len(request.system) + tools + sum(map(message_characters, request.messages))


def message_characters(message: ModelMessage) -> int:
    overhead = int(PER_MESSAGE * CHARS_PER_TOKEN)
    match message:
        case UserMessage(blocks=blocks):
            return overhead + sum(
                len(b.text) if isinstance(b, Text) else _PER_IMAGE_CHARS for b in blocks
            )
        case AssistantMessage(blocks=blocks):
            return overhead + sum(_block_characters(b) for b in blocks)
        case ToolMessage(outputs=outputs):
            return overhead + sum(len(o.text) for o in outputs)


def _block_characters(block: Text | Reasoning | ToolUse | Image) -> int:
    match block:
        case Text(text=text):
            return len(text)
        case Reasoning(text=text, opaque=opaque):
            return len(text) if opaque is None else len(orjson.dumps(opaque))
        case ToolUse(name=name, arguments=arguments):
            return len(name) + len(orjson.dumps(arguments))
        case Image():
            return _PER_IMAGE_CHARS


class Estimate:
    """Tokens by characters, corrected by what the provider counted last."""

    def __init__(self) -> None:
        self._per_token = CHARS_PER_TOKEN
        self._last_characters = 0

    def tokens(self, request: ModelRequest) -> int:
        self._last_characters = characters(request)
        return round(self._last_characters / self._per_token)

    def measured(self, context_tokens: int | None) -> None:
        """What the provider counted for the request that was estimated last."""
        if context_tokens and self._last_characters > 4_000:
            self._per_token = min(8.0, max(1.0, self._last_characters / context_tokens))


def fit(messages: tuple[ModelMessage, ...], budget_characters: int) -> tuple[ModelMessage, ...]:
    """The newest messages that fit, whole exchanges only; the newest exchange always stays.

    Cut before a user message, so that no call loses its result.
    """
    starts = [n for n, message in enumerate(messages) if isinstance(message, UserMessage)]
    for start in starts:
        if sum(map(message_characters, messages[start:])) <= budget_characters:
            return messages[start:]
    return messages[starts[-1] :] if starts else messages
