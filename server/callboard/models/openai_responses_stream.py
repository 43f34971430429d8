"""The stream of the Responses API: typed events in, model events out. Pure.

Items are what counts: each is given once, when its ``output_item.done`` comes, or from the final
response when a server left that out. Deltas only make text visible earlier; what they did not
bring, the ``done`` events do.
"""

from callboard.models.base import (
    ModelEvent,
    Price,
    Reasoning,
    ReasoningBlock,
    Stop,
    StopReason,
    TextDelta,
    ThoughtDelta,
    ToolRequest,
    UsageReport,
)
from callboard.models.endpoint import count_of, object_of, objects_of, text_of
from callboard.models.sse import SseEvent
from callboard.models.usage import priced, unreported
from callboard_rpc.common import Json, Usage

FORMAT = "openai_responses"
"""The `provider` of this format's reasoning blocks."""

_INCOMPLETE: dict[str, StopReason] = {
    "max_output_tokens": "max_tokens",
    "content_filter": "refusal",
}
_SAYS_NOTHING = frozenset(
    {"response.created", "response.queued", "response.in_progress", "keepalive", "ping"}
)


def says_something(event: SseEvent) -> bool:
    """Whether `event` shows that the model is at work, for the semantic time limits."""
    return event.event not in _SAYS_NOTHING


class ResponsesStream:
    """One response. `feed` each event; `closing` holds the last events once it has ended well.

    `started` says that the answer has begun. Events of failure (``response.failed``, ``error``) are
    the caller's to look for; unknown ones are passed over.
    """

    def __init__(self, *, price: Price | None) -> None:
        self._price = price
        self._texts: dict[tuple[object, ...], str] = {}
        self._arguments: dict[object, str] = {}
        self._done_indexes: set[object] = set()
        self._done_ids: set[str] = set()
        self._done_count = 0
        self._called = False
        self._refused = False
        self.started = False
        self.closing: list[ModelEvent] | None = None

    def feed(self, kind: str, payload: Json) -> list[ModelEvent]:
        """The events that `payload`, an event of type `kind`, stands for."""
        out: list[ModelEvent] = []
        index = payload.get("output_index")
        match kind:
            case "response.output_item.added":
                # A call that has begun must not be begun again elsewhere.
                item = object_of(payload.get("item"))
                self.started = self.started or item.get("type") == "function_call"
            case "response.output_text.delta" | "response.refusal.delta":
                self._refused = self._refused or kind == "response.refusal.delta"
                self._say(_part(payload), text_of(payload.get("delta")), out)
            case "response.output_text.done":
                self._complete(_part(payload), text_of(payload.get("text")), out)
            case "response.refusal.done":
                self._refused = True
                self._complete(_part(payload), text_of(payload.get("refusal")), out)
            case "response.reasoning_summary_part.added":
                if payload.get("summary_index"):
                    out.append(ThoughtDelta(text="\n\n"))
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._think(_thought(payload), text_of(payload.get("delta")), out)
            case "response.reasoning_summary_text.done" | "response.reasoning_text.done":
                key = _thought(payload)
                self._think(key, self._rest(key, text_of(payload.get("text"))), out)
            case "response.function_call_arguments.delta":
                self.started = True
                delta = text_of(payload.get("delta"))
                self._arguments[index] = self._arguments.get(index, "") + delta
            case "response.function_call_arguments.done":
                self.started = True
                self._arguments[index] = text_of(payload.get("arguments"))
            case "response.output_item.done":
                self._finish_item(index, object_of(payload.get("item")), out)
            case "response.completed" | "response.incomplete":
                self._finish(kind, object_of(payload.get("response")), out)
            case _:
                # created, queued, in_progress, content_part.*, reasoning_summary_part.done and
                # annotations carry nothing that is not in another event too; the rest belongs to
                # tools of the provider's own, which are never asked for.
                pass
        self.started = self.started or bool(out)
        return out

    def _say(self, key: tuple[object, ...], text: str, out: list[ModelEvent]) -> None:
        if text:
            self._texts[key] = self._texts.get(key, "") + text
            out.append(TextDelta(text=text))

    def _think(self, key: tuple[object, ...], text: str, out: list[ModelEvent]) -> None:
        if text:
            self._texts[key] = self._texts.get(key, "") + text
            out.append(ThoughtDelta(text=text))

    def _rest(self, key: tuple[object, ...], whole: str) -> str:
        """What of `whole` no delta has brought. What was shown already is not taken back."""
        shown = self._texts.get(key, "")
        return whole[len(shown) :] if whole.startswith(shown) else ""

    def _complete(self, key: tuple[object, ...], whole: str, out: list[ModelEvent]) -> None:
        self._say(key, self._rest(key, whole), out)

    def _finish_item(self, index: object, item: Json, out: list[ModelEvent]) -> None:
        self._done_count += 1
        self._done_indexes.add(index)
        self._done_ids.add(text_of(item.get("id")))
        match item.get("type"):
            case "message":
                for number, part in enumerate(objects_of(item.get("content"))):
                    refusal = text_of(part.get("refusal"))
                    self._refused = self._refused or bool(refusal)
                    whole = text_of(part.get("text")) or refusal
                    self._complete(("text", index, number), whole, out)
            case "reasoning":
                out.append(ReasoningBlock(reasoning=self._reasoning(index, item, out)))
            case "function_call":
                self._called = True
                arguments = item.get("arguments")
                out.append(
                    ToolRequest(
                        call_id=text_of(item.get("call_id")) or text_of(item.get("id")) or None,
                        name=text_of(item.get("name")),
                        arguments=arguments
                        if isinstance(arguments, str) and arguments
                        else self._arguments.get(index, ""),
                    )
                )
            case _:
                pass

    def _reasoning(self, index: object, item: Json, out: list[ModelEvent]) -> Reasoning:
        texts: list[str] = []
        for field in ("summary", "content"):
            for number, part in enumerate(objects_of(item.get(field))):
                whole = text_of(part.get("text"))
                key = (field, index, number)
                self._think(key, self._rest(key, whole), out)
                texts.append(whole)
        # The item as it came: encrypted reasoning is only accepted unchanged.
        return Reasoning(text="\n\n".join(texts), provider=FORMAT, opaque=item)

    def _finish(self, kind: str, response: Json, out: list[ModelEvent]) -> None:
        output = objects_of(response.get("output"))
        if len(output) > self._done_count:
            for index, item in enumerate(output):
                if index not in self._done_indexes and item.get("id") not in self._done_ids:
                    self._finish_item(index, item, out)
        details = object_of(response.get("incomplete_details"))
        raw = text_of(details.get("reason")) or text_of(response.get("status"))
        raw = raw or kind.removeprefix("response.")
        if kind == "response.incomplete":
            reason = _INCOMPLETE.get(raw, "other")
        elif self._called:
            reason = "tool_use"
        else:
            reason = "refusal" if self._refused else "end_turn"
        usage = _usage(object_of(response.get("usage")))
        self.closing = [
            UsageReport(usage=priced(usage, self._price)),
            Stop(reason=reason, raw=raw),
        ]


def _part(payload: Json) -> tuple[object, ...]:
    return ("text", payload.get("output_index"), payload.get("content_index"))


def _thought(payload: Json) -> tuple[object, ...]:
    if "summary_index" in payload:
        return ("summary", payload.get("output_index"), payload.get("summary_index"))
    return ("content", payload.get("output_index"), payload.get("content_index"))


def _usage(found: Json) -> Usage:
    if not found:
        return unreported()
    tokens = count_of(found.get("input_tokens"))
    details = object_of(found.get("input_tokens_details"))
    return Usage(
        requests=1,
        input_tokens=tokens,
        output_tokens=count_of(found.get("output_tokens")),
        cache_read_tokens=count_of(details.get("cached_tokens")),
        cache_write_tokens=count_of(details.get("cache_write_tokens")),
        reasoning_tokens=count_of(
            object_of(found.get("output_tokens_details")).get("reasoning_tokens")
        ),
        context_tokens=tokens,
    )
