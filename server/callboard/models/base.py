"""What every language model looks like to the rest of Callboard.

A model is asked once per step of a turn and answers with a stream of `ModelEvent`. Providers'
wire formats stay inside their own modules; nothing above this floor knows them.
"""

from collections.abc import AsyncIterator
from typing import Any, Literal, Protocol, TypeAlias

from attrs import field, frozen

from callboard_rpc.common import Effort, Failure, Json, Usage

StopReason: TypeAlias = Literal["end_turn", "tool_use", "max_tokens", "refusal", "other"]


# --- what goes in -----------------------------------------------------------------------------


@frozen(kw_only=True)
class Text:
    text: str


@frozen(kw_only=True)
class Image:
    """Base64 in `data`."""

    data: str
    mime_type: str


@frozen(kw_only=True)
class Reasoning:
    """A model's own reasoning, to be sent back exactly as it came to the provider it came from.

    `provider` is the adapter's format name (``anthropic``, ``openai_responses``, ``openai_chat``);
    an adapter leaves out reasoning of another format. `opaque` is that format's own block.
    """

    text: str
    provider: str
    opaque: Json | None = None


@frozen(kw_only=True)
class ToolUse:
    """A tool call that the model made earlier. `arguments` is a JSON object.

    `call_id` is the provider's id where it gave one, unique within a request.
    """

    call_id: str
    name: str
    arguments: Json


@frozen(kw_only=True)
class ToolOutput:
    """The result of the tool call `call_id`."""

    call_id: str
    text: str
    is_error: bool = False


@frozen(kw_only=True)
class UserMessage:
    blocks: tuple[Text | Image, ...]


@frozen(kw_only=True)
class AssistantMessage:
    """One earlier answer, its blocks in the order in which the model gave them."""

    blocks: tuple[Text | Reasoning | ToolUse, ...]


@frozen(kw_only=True)
class ToolMessage:
    """The results of all calls of the assistant message before it, in call order."""

    outputs: tuple[ToolOutput, ...]


ModelMessage: TypeAlias = UserMessage | AssistantMessage | ToolMessage


@frozen(kw_only=True)
class ToolSpec:
    """A tool as the model sees it; `schema` is a JSON Schema object for its arguments."""

    name: str
    description: str
    schema: Json


@frozen(kw_only=True)
class ModelRequest:
    """One request. `messages` start with a user message and alternate as the provider demands.

    `session_key` is stable over a session, for providers that route or cache by it.
    `allow_tools=False` keeps `tools` declared (the prompt cache holds) but forbids their use.
    """

    system: str
    messages: tuple[ModelMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    allow_tools: bool = True
    max_output_tokens: int | None = None
    temperature: float | None = None
    effort: Effort | None = None
    session_key: str | None = None


# --- what comes out ---------------------------------------------------------------------------


@frozen(kw_only=True)
class TextDelta:
    text: str


@frozen(kw_only=True)
class ThoughtDelta:
    text: str


@frozen(kw_only=True)
class ReasoningBlock:
    """A finished reasoning block, to be kept for replay. Its text was streamed as `ThoughtDelta`."""

    reasoning: Reasoning


@frozen(kw_only=True)
class ToolRequest:
    """A finished tool call. `arguments` is the text that the model wrote, JSON or not; the loop judges it.

    `call_id` is the provider's id, or None when it gave none. Adapters pass on what came, also two
    calls with one id.
    """

    call_id: str | None
    name: str
    arguments: str


@frozen(kw_only=True)
class UsageReport:
    """Usage of this request so far; the last report of a stream counts."""

    usage: Usage


@frozen(kw_only=True)
class Stop:
    """The answer is complete; always the last event. A stream without it was cut off."""

    reason: StopReason
    raw: str | None = None


ModelEvent: TypeAlias = TextDelta | ThoughtDelta | ReasoningBlock | ToolRequest | UsageReport | Stop


class ModelError(Exception):
    """A request or a stream failed. `failure.kind` is a kind of PROTOCOL 5; its text is redacted.

    `started` says that semantic output had begun, so that the request must not be repeated.
    """

    def __init__(self, failure: Failure, *, started: bool = False) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.started = started


@frozen(kw_only=True)
class Price:
    """Per million tokens, in `currency`; absent is unknown."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    currency: str = "USD"


@frozen(kw_only=True)
class ModelCard:
    """What is known of a model. `model_id` is ``provider/name``; unknown stays None."""

    model_id: str
    provider: str
    name: str
    context_window: int | None = None
    max_output_tokens: int | None = None
    supports_tools: bool = True
    supports_images: bool = False
    text_tool_calls: bool = False
    price: Price | None = None
    extra: dict[str, Any] = field(factory=dict[str, Any])


class Model(Protocol):
    """A language model that can be asked.

    `stream` yields events until `Stop`, or raises `ModelError`. It does not retry (see `retry.py`).
    Closing the iterator, or cancelling the task that reads it, ends the request at once.
    """

    @property
    def card(self) -> ModelCard: ...

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]: ...
