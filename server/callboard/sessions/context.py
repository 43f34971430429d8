"""The context of one running turn: from the log's transcript to the next request."""

import attrs
from attrs import define, field, frozen

from callboard_rpc.common import Actor, Effort, Usage
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import Author

from ..hooks.service import NO_HOOKS, Lifecycle
from ..log.log import Log
from ..models.base import Model, ModelRequest, Text, ToolSpec, UserMessage
from ..turns.reservation import Grant
from .cache import SessionCache
from .compaction import NOBODY, summarise
from .sizes import Estimate, characters, fit
from .transcript import ToolContextMode

_MAX_COMPACTIONS = 3


@frozen(kw_only=True)
class ContextSettings:
    """Sizes in tokens; `compact_at` is the part of the window that may fill."""

    tools: ToolContextMode
    window: int
    reserved_output: int
    compact_at: float


@define(kw_only=True)
class SessionContext:
    """A `ContextSource` over a session of this process. The system prompt and the tools are fixed
    for the turn, so that each request extends the one before (coordination 66)."""

    log: Log
    cache: SessionCache
    grant: Grant
    model: Model
    system: str
    tools: tuple[ToolSpec, ...]
    settings: ContextSettings
    author: Author
    actor: Actor
    max_output_tokens: int | None = None
    effort: Effort | None = None
    lifecycle: Lifecycle = NO_HOOKS
    speaker: str | None = None
    """The agent that reads it, where there may be others."""
    of_several: bool = False
    """Several agents take part, and a summary is for all of them."""
    _estimate: Estimate = field(factory=Estimate)
    _compactions: int = 0

    @property
    def _budget(self) -> int:
        return max(1_024, self.settings.window - self.settings.reserved_output)

    async def request(self, *, nudge: str | None) -> ModelRequest:
        request = await self._whole(nudge)
        if self._estimate.tokens(request) > self._budget:
            transcript = await self.cache.transcript(self.grant.session_id)
            fixed = characters(attrs.evolve(request, messages=()))
            spare = self._estimate.characters(self._budget) - fixed
            request = attrs.evolve(
                request, messages=fit(request.messages, spare, summary=transcript.summary)
            )
            self._estimate.tokens(request)  # this is the one that the provider will count
        return request

    async def _whole(self, nudge: str | None) -> ModelRequest:
        transcript = await self.cache.transcript(self.grant.session_id)
        messages = transcript.messages(
            self.settings.tools, turn_id=self.grant.turn_id, speaker=self.speaker
        )
        if nudge is not None:
            messages = (*messages, UserMessage(blocks=(Text(text=nudge),)))
        return ModelRequest(
            system=self.system,
            messages=messages,
            tools=self.tools,
            max_output_tokens=self.max_output_tokens,
            effort=self.effort,
            session_key=self.grant.session_id,
        )

    def measured(self, usage: Usage) -> None:
        self._estimate.measured(usage.context_tokens)

    async def compact(self, *, force: bool) -> bool:
        """Summarises when the window is nearly full. Bounded: a summary that does not help is not
        tried for ever (interrupts-and-peers 75)."""
        if self._compactions >= _MAX_COMPACTIONS:
            return False
        transcript = await self.cache.transcript(self.grant.session_id)
        if not force:
            before = self._estimate.tokens(await self._whole(None))
            if before < self._budget * self.settings.compact_at or transcript.length < 2:
                return False
        self._compactions += 1
        if (await self.lifecycle.ask("PreCompact", reason="window")).block is not None:
            return False
        try:
            made = await summarise(
                log=self.log,
                model=self.model,
                transcript=transcript,
                grant=self.grant,
                author=self.author,
                actor=self.actor,
                reason="window",
                tools=self.settings.tools,
                window=self._budget,
                speaker=NOBODY if self.of_several else self.speaker,
            )
        except CallboardError as error:
            if force or error.kind.startswith("store"):
                raise
            return False  # the oldest exchanges are left out instead
        return made is not None
