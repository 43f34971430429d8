"""What a turn is made of, and how far it has come."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeAlias

from attrs import define, field, frozen

from callboard_rpc.common import Actor, Usage
from callboard_rpc.events import Author, Message, ToolCall

from ..hooks.service import NO_HOOKS, Lifecycle
from ..log.log import Log
from ..models.base import Model, ModelRequest, ToolOutput
from ..models.retry import BOUNDED, RetryPolicy
from ..tools.scheduling import WriteCoordinator
from .answer import Answer
from .boundary import Source
from .call import Call
from .calls import Caller
from .completion import CompletionHook
from .deltas import Numbering
from .finish import Ending, Hook
from .limits import TurnLimits
from .live import LiveTurn

_LOOP_AT = 3


class ContextSource(Protocol):
    """What the model is told. It follows the log, so that what was committed is in the next request."""

    async def request(self, *, nudge: str | None) -> ModelRequest:
        """The next request, `nudge` as a last user message that is in no log."""
        ...

    async def compact(self, *, force: bool) -> bool:
        """Summarises when the window is nearly full (or at once, with `force`); whether it did."""
        ...

    def measured(self, usage: Usage) -> None:
        """What the provider counted for the last request, to estimate the next one by."""
        ...


@frozen(kw_only=True)
class Left:
    """What a turn that was parked has yet to do, and what it has used so far."""

    calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(factory=Usage)


@frozen(kw_only=True)
class Turn:
    """Everything that a run needs, explicitly; nothing of it is ambient (specs/execution.md 6)."""

    live: LiveTurn
    log: Log
    model: Model
    context: ContextSource
    caller: Caller
    coordinator: WriteCoordinator
    numbering: Numbering
    author: Author
    actor: Actor
    model_slots: asyncio.Semaphore
    sources: Sequence[Source]
    limits: TurnLimits
    draft_interval_ms: int
    draft_bytes: int
    left: Left = field(factory=Left)
    hooks: Sequence[Hook] = ()
    completion: Sequence[CompletionHook] = ()
    lifecycle: Lifecycle = NO_HOOKS
    retry: RetryPolicy = BOUNDED
    drive: "Drive | None" = None
    """What runs the turn in place of the loop over a model; None is that loop."""


Signature: TypeAlias = frozenset[tuple[str, int]]
"""The calls of one answer, without their order."""


@define(kw_only=True)
class Progress:
    """How far a turn has come; what its end needs to know."""

    usage: Usage = field(factory=Usage)
    iterations: int = 0
    answer: Answer | None = None
    last_output: str | None = None
    continuations: int = 0
    """How often a hook has kept the turn from ending."""
    decided: "tuple[Ending, Message | None] | None" = None
    """How the turn ends and what it says last, when both are certain and yet to be committed."""
    ending: "asyncio.Task[None] | None" = None
    _seen: Counter[Signature] = field(factory=Counter[Signature])

    def goes_round(self, calls: Sequence[Call]) -> bool:
        """Whether the model asks for the same calls, in whatever order, for the third time. Who waits for
        others again goes nowhere in circles: it is they who move."""
        if any(call.tool is not None and call.tool.waits for call in calls):
            return False
        signature = frozenset(Counter(call.signature for call in calls).items())
        self._seen[signature] += 1
        return self._seen[signature] >= _LOOP_AT

    def ran(self, call: Call, output: ToolOutput) -> None:
        """Notes a result. A file that was changed makes the same calls new ones: a test that is run
        again after an edit goes nowhere in circles."""
        self.last_output = output.text or self.last_output
        if call.effect == "write" and not output.is_error:
            signature = frozenset({(call.signature, 1)})
            self._seen = Counter({signature: self._seen[signature]})


Drive: TypeAlias = Callable[[Turn, Progress], Awaitable[None]]
"""Runs a turn until its end is committed, or raises what keeps it from going on; as `loop.steps` does."""


def figures(turn: Turn, progress: Progress) -> dict[str, Any]:
    """What a turn has taken so far, for its end."""
    return {
        "usage": progress.usage,
        "iterations": progress.iterations,
        "duration_ms": round(turn.live.elapsed_s * 1000),
    }
