"""Retry of a model request, as long as nothing of its answer has been seen (execution 5, 42-44).

Written here rather than with stamina: what decides is the failure and whether output began inside a
stream, a server's Retry-After replaces the back-off, jitter lies within [half, full] of it, each
wait is announced and awaited first, and sleep and randomness are parameters. stamina offers none
of these for an async iterator, so that only its loop would be left.
"""

import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Literal, TypeAlias, cast

import anyio
from attrs import frozen

from callboard.models.base import (
    Model,
    ModelError,
    ModelEvent,
    ModelRequest,
    ReasoningBlock,
    TextDelta,
    ThoughtDelta,
    ToolRequest,
)
from callboard_rpc.common import Failure

OnRetry: TypeAlias = Callable[[int, int, Failure], Awaitable[None]]
"""``on_retry(attempt, delay_ms, failure)``: retry `attempt` (from 1) follows after `delay_ms`."""


@frozen(kw_only=True)
class RetryPolicy:
    """How often and how long. `until_cancelled` knows no count; only a cancel ends it.

    A policy belongs to one run's main model: it is an argument, so that nothing can inherit it.
    """

    mode: Literal["bounded", "until_cancelled"] = "bounded"
    retries: int = 3
    base_ms: int = 500
    cap_ms: int = 30_000
    retry_after_ceiling_ms: int = 60_000


BOUNDED = RetryPolicy()
UNTIL_CANCELLED = RetryPolicy(mode="until_cancelled")
NEVER = RetryPolicy(retries=0)
"""For runs with a work budget, where a retry would be spent unseen."""


def delay_ms(policy: RetryPolicy, attempt: int, failure: Failure, fraction: float) -> int:
    """The wait before retry `attempt` (from 1). `fraction` in [0, 1) places it in [half, full]."""
    if failure.retry_after_ms:
        return min(failure.retry_after_ms, policy.retry_after_ceiling_ms)
    # The exponent is bounded, since `until_cancelled` may count far.
    full = min(policy.cap_ms, policy.base_ms << min(attempt - 1, 32))
    return round(full * (0.5 + fraction / 2))


async def stream_with_retry(
    model: Model,
    request: ModelRequest,
    *,
    policy: RetryPolicy = BOUNDED,
    on_retry: OnRetry | None = None,
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    fraction: Callable[[], float] = random.random,
) -> AsyncGenerator[ModelEvent]:
    """`model.stream(request)`, asked again when it fails before it said anything.

    Raises the last `ModelError` as it was. Cancelling ends a request and a wait alike, at once.
    """
    attempt = 0
    while True:
        spoke = False
        try:
            events = model.stream(request)
            try:
                async for event in events:
                    spoke = spoke or is_output(event)
                    yield event
                return
            finally:
                await _close(events)
        except ModelError as error:
            attempt += 1
            spent = policy.mode == "bounded" and attempt > policy.retries
            if spent or spoke or error.started or not error.failure.retryable:
                raise
            failure = error.failure
        wait = delay_ms(policy, attempt, failure, fraction())
        if on_retry is not None:
            await on_retry(attempt, wait, failure)
        await sleep(wait / 1000)


def is_output(event: ModelEvent) -> bool:
    """Whether `event` is part of the answer, after which a request must not be repeated."""
    return isinstance(event, TextDelta | ThoughtDelta | ReasoningBlock | ToolRequest)


async def _close(events: AsyncIterator[ModelEvent]) -> None:
    """Ends a generator's request now, and not when it happens to be collected."""
    if isinstance(events, AsyncGenerator):
        await cast("AsyncGenerator[ModelEvent]", events).aclose()
