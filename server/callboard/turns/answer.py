"""One answer of a model: streamed to whoever watches, kept as a draft, gathered whole."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Final

import orjson
from attrs import define, field, frozen

from callboard_rpc.common import (
    CallId,
    Failure,
    MessageContent,
    TextContent,
    Thinking,
    ToolUse,
    Usage,
)

from ..log.faultpoints import point
from ..log.log import Log
from ..log.text import well_formed
from ..models.base import (
    ModelError,
    ModelEvent,
    ReasoningBlock,
    Stop,
    StopReason,
    TextDelta,
    ThoughtDelta,
    ToolRequest,
    UsageReport,
)
from .deltas import Numbering
from .reservation import Grant, assert_fence


@frozen(kw_only=True)
class Requested:
    """A tool call of an answer, with the id that Callboard gave it."""

    call_id: CallId
    request: ToolRequest


@define(kw_only=True)
class Answer:
    """An answer as it grows. `content` keeps the model's own order of blocks."""

    message_id: str
    content: list[MessageContent] = field(factory=list[MessageContent])
    calls: list[Requested] = field(factory=list[Requested])
    usage: Usage = field(factory=Usage)
    stop: StopReason | None = None
    _text: list[str] = field(factory=list[str])
    _thought: list[str] = field(factory=list[str])

    def close_blocks(self) -> None:
        """Turns the text that has streamed so far into blocks."""
        if self._thought:
            text = "".join(self._thought)
            self._thought.clear()
            if text.strip():
                self.content.append(Thinking(text=text, provider="text"))
        if self._text:
            text = "".join(self._text)
            self._text.clear()
            if text:
                self.content.append(TextContent(text=text))

    def add(self, event: ModelEvent, call_id: Callable[[], CallId]) -> None:
        match event:
            case TextDelta(text=text):
                if self._thought:
                    self.close_blocks()
                self._text.append(text)
            case ThoughtDelta(text=text):
                if self._text:
                    self.close_blocks()
                self._thought.append(text)
            case ReasoningBlock(reasoning=reasoning):
                self._thought.clear()
                self.close_blocks()
                self.content.append(
                    Thinking(
                        text=reasoning.text, provider=reasoning.provider, opaque=reasoning.opaque
                    )
                )
            case ToolRequest():
                self.close_blocks()
                requested = Requested(call_id=call_id(), request=event)
                self.calls.append(requested)
                self.content.append(ToolUse(call_id=requested.call_id))
            case UsageReport(usage=usage):
                self.usage = usage
            case Stop(reason=reason):
                self.close_blocks()
                self.stop = reason

    @property
    def spent(self) -> Usage:
        """What its request used. An answer whose provider told nothing was not for nothing."""
        began = self.content or self.calls or self.stop or self._text or self._thought
        return self.usage if self.usage.requests or not began else Usage(requests=1, partial=True)

    @property
    def text(self) -> str:
        """What was said, all text blocks together."""
        return "\n\n".join(b.text for b in self.content if isinstance(b, TextContent)).strip()

    @property
    def worth_keeping(self) -> bool:
        """Whether there is anything in it beyond tool calls, which are events of their own."""
        return any(
            not isinstance(b, ToolUse) and (not isinstance(b, TextContent) or b.text.strip())
            for b in self.content
        )


_PART: Final = 16


class Draft:
    """Refreshes the turn's draft row every `interval_ms` or `bytes`, whichever comes first; under
    `grant`, so that a turn which was taken over leaves none behind. A row is written as a whole: so that a long
    answer is not written more often than that is worth, text alone has it written only when there is a
    sixteenth more of it."""

    def __init__(
        self,
        log: Log,
        numbering: Numbering,
        *,
        grant: Grant,
        interval_ms: int,
        bytes: int,
    ) -> None:
        self._log = log
        self._numbering = numbering
        self._grant = grant
        self._interval_s = interval_ms / 1000
        self._bytes = bytes
        self._message_id = ""
        self._answer: list[str] = []
        self._thought: list[str] = []
        self._size = self._whole = 0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, message_id: str) -> None:
        self._message_id = message_id
        self._answer.clear()
        self._thought.clear()
        self._size = self._whole = 0

    def add(self, text: str, *, thought: bool) -> None:
        (self._thought if thought else self._answer).append(text)
        self._size += len(text)
        self._whole += len(text)
        if self._size >= max(self._bytes, self._whole // _PART):
            self._write()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._interval_s, self._write)

    def end(self) -> None:
        """Writes no more; the message's commit removes what was written."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _write(self) -> None:
        self.end()
        answer, thought = "".join(self._answer), "".join(self._thought)
        self._answer.clear()
        self._thought.clear()
        self._size = 0
        if not (answer or thought):
            return
        point("turns.draft_due")
        written = self._log.append_draft(
            session_id=self._grant.session_id,
            turn_id=self._grant.turn_id,
            message_id=self._message_id,
            answer=answer,
            thought=thought,
            next_index=orjson.dumps(self._numbering.saved(self._message_id)).decode(),
            holds=lambda tx: assert_fence(tx, self._grant),
        )
        # a draft that cannot be written loses nothing that was promised
        written.add_done_callback(lambda done: done.cancelled() or done.exception())


async def gather(
    events: AsyncIterator[ModelEvent],
    answer: Answer,
    *,
    draft: Draft,
    numbering: Numbering,
    call_id: Callable[[], CallId],
    touch: Callable[[], None],
) -> None:
    """Reads a model's stream into `answer`. Raises `ModelError`, also for a stream that just ends."""
    draft.begin(answer.message_id)
    slice_ends = time.monotonic() + 0.005
    try:
        async for event in events:
            touch()
            point("turns.streamed")
            match event:
                case TextDelta(text=raw):
                    text = well_formed(raw)
                    draft.add(numbering.publish(answer.message_id, "answer", text), thought=False)
                    answer.add(TextDelta(text=text), call_id)
                case ThoughtDelta(text=raw):
                    text = well_formed(raw)
                    draft.add(numbering.publish(answer.message_id, "thought", text), thought=True)
                    answer.add(ThoughtDelta(text=text), call_id)
                case _:
                    answer.add(event, call_id)
            if time.monotonic() > slice_ends:
                await asyncio.sleep(0)  # a model that never waits must not hold the loop
                slice_ends = time.monotonic() + 0.005
    finally:
        draft.end()
        numbering.finish(answer.message_id)
        answer.close_blocks()
    if answer.stop is None:
        raise ModelError(
            Failure(
                kind="modelError",
                message="the model's answer was cut off before its end; ask again",
                retryable=True,
            ),
            started=True,
        )
