"""How large a request is, in tokens, before a provider has counted it."""

from typing import Final

import attrs
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


class _Sizes:
    """The sizes of messages that were seen before, by their identity: most of a request is the past."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[ModelMessage, int]] = {}

    def characters(self, request: ModelRequest) -> int:
        known: dict[int, tuple[ModelMessage, int]] = {}
        size = characters(attrs.evolve(request, messages=()))
        for message in request.messages:
            seen = self._known.get(id(message)) or (message, message_characters(message))
            known[id(message)] = seen
            size += seen[1]
        self._known = known  # holds the messages, so that no other can have their ids
        return size


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
        self._sizes = _Sizes()

    def tokens(self, request: ModelRequest) -> int:
        """How many tokens a request has. The one that is asked about last is the one that is sent."""
        self._last_characters = self._sizes.characters(request)
        return round(self._last_characters / self._per_token)

    def characters(self, tokens: int) -> int:
        """How many characters so many tokens are."""
        return round(tokens * self._per_token)

    def measured(self, context_tokens: int | None) -> None:
        """What the provider counted for the request that was estimated last."""
        if context_tokens and self._last_characters > 4_000:
            self._per_token = min(8.0, max(1.0, self._last_characters / context_tokens))


def fit(
    messages: tuple[ModelMessage, ...], budget_characters: int, *, summary: Text | None = None
) -> tuple[ModelMessage, ...]:
    """The newest messages that fit, whole exchanges only; the newest exchange always stays.

    Cut before a user message, so that no call loses its result. When the newest exchange alone is too
    much, its oldest steps go, but neither what the person said nor the last step. `summary` stays
    in front, whatever is left out behind it: its size comes off first (session-messaging 4).
    """
    left_after = _sizes_from(messages)
    starts = [n for n, message in enumerate(messages) if isinstance(message, UserMessage)]
    if not starts or left_after[starts[0]] <= budget_characters:
        return messages[starts[0] :] if starts else messages
    kept = 0 if summary is None else len(summary.text)
    for start in starts[1:]:
        if left_after[start] + kept <= budget_characters:
            return _behind(summary, messages[start:])
    last = starts[-1]
    asked = messages[last]
    if last == starts[0]:
        summary, kept = None, 0  # it is a part of what was said last
    room = budget_characters - kept - message_characters(asked)
    steps = [n for n in range(last + 1, len(messages)) if isinstance(messages[n], AssistantMessage)]
    step = next((n for n in steps if left_after[n] <= room), steps[-1] if steps else len(messages))
    return _behind(summary, (asked, *messages[step:]))


def _sizes_from(messages: tuple[ModelMessage, ...]) -> list[int]:
    """The size of all messages from each one on."""
    sizes = [0] * (len(messages) + 1)
    for n in range(len(messages) - 1, -1, -1):
        sizes[n] = sizes[n + 1] + message_characters(messages[n])
    return sizes


def _behind(summary: Text | None, messages: tuple[ModelMessage, ...]) -> tuple[ModelMessage, ...]:
    first = messages[0]
    if summary is None or not isinstance(first, UserMessage):
        return messages
    return (UserMessage(blocks=(summary, *first.blocks)), *messages[1:])
