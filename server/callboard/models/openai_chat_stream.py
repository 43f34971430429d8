"""The stream of Chat Completions, read as servers write it rather than as it is specified.

Pure: one JSON object in, model events out. What differs between servers and is taken as it comes:
where reasoning is, how a tool call is cut up, where usage is, and whether the last chunk says why.
"""

from typing import Any, cast

import orjson
from attrs import define, evolve

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
from callboard.models.usage import priced, unreported
from callboard_rpc.common import Json, Usage

FORMAT = "openai_chat"
"""The `provider` of this format's reasoning blocks."""

_REASONS: dict[str, StopReason] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}


@define
class _Call:
    """A tool call as far as its fragments have come."""

    call_id: str = ""
    name: str = ""
    arguments: str = ""

    def is_whole(self) -> bool:
        """Whether nothing can follow: the arguments are a complete JSON object."""
        if not self.arguments.rstrip().endswith("}"):
            return False
        try:
            return isinstance(orjson.loads(self.arguments), dict)
        except orjson.JSONDecodeError:
            return False


class ChatStream:
    """One answer. `feed` each chunk, then `close` for what only the end makes certain.

    `started` says that the answer has begun, fragments of calls included; `finished` that the
    server said why it stopped. An error object is the caller's to look for.
    """

    def __init__(self, *, model_id: str, price: Price | None) -> None:
        self._model_id = model_id
        self._price = price
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._usage: Usage | None = None
        self._thought = ""
        self._field = ""
        self._details: list[Json] = []
        self._refused = False
        self._finish: str | None = None
        self.started = False
        self.saw_choice = False

    @property
    def finished(self) -> bool:
        return self._finish is not None

    @property
    def finish_reason(self) -> str | None:
        return self._finish

    def feed(self, chunk: Json) -> list[ModelEvent]:
        """The events of one ``chat.completion.chunk``."""
        out: list[ModelEvent] = []
        self._read_usage(chunk)
        for choice in objects_of(chunk.get("choices")):
            if count_of(choice.get("index")):
                continue  # Only one answer was asked for; servers that send more are not obeyed.
            self.saw_choice = True
            # Some servers send the whole message in the place of a delta.
            self._read_delta(object_of(choice.get("delta") or choice.get("message")), out)
            reason = choice.get("finish_reason")
            if isinstance(reason, str) and reason:
                self._finish = reason
        if out:
            self.started = True
        return out

    def close(self) -> list[ModelEvent]:
        """The end: pending reasoning, the tool calls in their order, usage, and why it stopped."""
        out: list[ModelEvent] = []
        self._flush_reasoning(out)
        out += (
            ToolRequest(call_id=call.call_id or None, name=call.name, arguments=call.arguments)
            for call in self._calls
        )
        out.append(UsageReport(usage=priced(self._usage or unreported(), self._price)))
        out.append(Stop(reason=self._reason(), raw=self._finish))
        return out

    def _reason(self) -> StopReason:
        reason = _REASONS.get(self._finish, "other") if self._finish else "end_turn"
        if reason == "end_turn" and self._calls:
            return "tool_use"  # Ollama, among others, says "stop" after calls too.
        if reason == "tool_use" and not self._calls:
            return "other"
        if reason == "end_turn" and self._refused:
            return "refusal"
        return reason

    def _read_delta(self, delta: Json, out: list[ModelEvent]) -> None:
        self._read_reasoning(delta, out)
        content = delta.get("content")
        if isinstance(content, list):
            self._read_parts(objects_of(cast("Any", content)), out)
        else:
            self._say(text_of(content), out)
        refusal = text_of(delta.get("refusal"))
        if refusal:
            self._refused = True
            self._say(refusal, out)
        fragments = objects_of(delta.get("tool_calls"))
        if delta.get("function_call"):
            fragments.append({"index": 0, "function": delta["function_call"]})
        for fragment in fragments:
            self._flush_reasoning(out)
            self._read_call(fragment)
            self.started = True

    def _read_parts(self, parts: list[Json], out: list[ModelEvent]) -> None:
        """Mistral's models that reason write their content as typed parts."""
        for part in parts:
            if part.get("type") == "thinking":
                for thought in objects_of(part.get("thinking")):
                    self._think(text_of(thought.get("text")), "", out)
            else:
                self._say(text_of(part.get("text")), out)

    def _say(self, text: str, out: list[ModelEvent]) -> None:
        if text:
            self._flush_reasoning(out)
            out.append(TextDelta(text=text))

    def _think(self, text: str, field: str, out: list[ModelEvent]) -> None:
        if text:
            self._thought += text
            self._field = field
            out.append(ThoughtDelta(text=text))

    def _read_reasoning(self, delta: Json, out: list[ModelEvent]) -> None:
        # Servers that send both fields send the same text twice.
        for field in ("reasoning_content", "reasoning"):
            text = text_of(delta.get(field))
            if text:
                self._think(text, field, out)
                break
        for piece in objects_of(delta.get("reasoning_details")):
            _join_detail(self._details, piece)
            self.started = True

    def _flush_reasoning(self, out: list[ModelEvent]) -> None:
        if not self._thought and not self._details:
            return
        fields: Json = {}
        if self._details:
            fields["reasoning_details"] = self._details
        elif self._field == "reasoning_content":
            fields["reasoning_content"] = self._thought
        opaque = {"model": self._model_id, "fields": fields} if fields else None
        out.append(
            ReasoningBlock(reasoning=Reasoning(text=self._thought, provider=FORMAT, opaque=opaque))
        )
        self._thought, self._details = "", []

    def _read_call(self, fragment: Json) -> None:
        function = object_of(fragment.get("function"))
        call_id = text_of(fragment.get("id"))
        name = text_of(function.get("name")) or text_of(fragment.get("name"))
        arguments = _arguments_text(function.get("arguments", fragment.get("arguments")))
        call = self._call_of(count_of(fragment.get("index")), call_id, name, arguments)
        call.call_id = call.call_id or call_id
        if not call.name:
            call.name = name
        elif name and name != call.name and not call.arguments:
            call.name += name  # A name that came in pieces.
        call.arguments += arguments

    def _call_of(self, index: int | None, call_id: str, name: str, arguments: str) -> _Call:
        """The call that a fragment belongs to; a new one when it can belong to none."""
        if index is not None:
            call = self._by_index.get(index)
        else:
            same = (each for each in reversed(self._calls) if call_id and each.call_id == call_id)
            last = self._calls[-1] if self._calls and not call_id else None
            call = next(same, last)
        if call is None or _begins_another(call, call_id, name, arguments):
            call = _Call()
            self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call

    def _read_usage(self, chunk: Json) -> None:
        found = object_of(chunk.get("usage")) or object_of(
            object_of(chunk.get("x_groq")).get("usage")
        )
        if not found:
            return
        prompt = object_of(found.get("prompt_tokens_details"))
        completion = object_of(found.get("completion_tokens_details"))
        read = count_of(prompt.get("cached_tokens"))
        if read is None:
            read = count_of(found.get("prompt_cache_hit_tokens"))  # DeepSeek's name for it.
        tokens = count_of(found.get("prompt_tokens"))
        usage = Usage(
            requests=1,
            input_tokens=tokens,
            output_tokens=count_of(found.get("completion_tokens")),
            cache_read_tokens=read,
            cache_write_tokens=count_of(prompt.get("cache_write_tokens")),
            reasoning_tokens=count_of(completion.get("reasoning_tokens")),
            context_tokens=tokens,
        )
        cost: Any = found.get("cost")
        if isinstance(cost, int | float) and not isinstance(cost, bool) and cost >= 0:
            # OpenRouter's credits are dollars.
            usage = evolve(usage, cost=float(cost), currency="USD")
        self._usage = usage


def _begins_another(call: _Call, call_id: str, name: str, arguments: str) -> bool:
    """Whether a fragment that is addressed like `call` starts a call of its own.

    Some servers give every call index 0, or no index; then another id tells them apart, or, with the
    same id or none, a name together with a call that is complete already.
    """
    if call_id and call.call_id and call_id != call.call_id:
        return True
    if not name or not call.name:
        return False
    return call.is_whole() and (not arguments or arguments.lstrip().startswith("{"))


def _arguments_text(value: object) -> str:
    if isinstance(value, dict):
        return orjson.dumps(value).decode()  # Not what was specified, but what is meant is clear.
    return text_of(value)


def _join_detail(details: list[Json], piece: Json) -> None:
    """Appends a piece of OpenRouter's ``reasoning_details``; pieces of one block become one block."""
    last = details[-1] if details else None
    same = last is not None and all(last.get(key) == piece.get(key) for key in ("type", "index"))
    if last is None or not same or "index" not in piece:
        details.append(dict(piece))
        return
    for key, value in piece.items():
        if key in ("text", "summary", "data") and isinstance(value, str):
            last[key] = text_of(last.get(key)) + value
        elif value is not None:
            last[key] = value
