"""One turn, from its first request to its one end.

Ask the model, commit what it said, run the tools that it asked for, take in what has arrived
meanwhile, ask again; until it has said its last and nothing waits. Everything that can go wrong ends in
the same place: one terminal event and an idle session.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, Protocol

import attrs
from attrs import define, field, frozen

from callboard_rpc.common import Actor, CallId, Failure, TextContent, Usage
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import Author, Message, ModelRetried

from ..log.faults import StaleFence
from ..log.log import Log
from ..log.text import well_formed
from ..log.transaction import SQL as LOG_SQL
from ..log.transaction import Transaction
from ..models.base import (
    Model,
    ModelError,
    ModelRequest,
    Text,
    UserMessage,
)
from ..models.retry import BOUNDED, RetryPolicy, stream_with_retry
from ..tools.scheduling import Superseded, WriteCoordinator, run_batch
from . import usage as sums
from .answer import Answer, Draft, gather
from .boundary import Source, drain_all
from .calls import Call, Caller
from .deltas import Numbering
from .finish import Ending, Hook, close_turn, complete, message_of
from .live import Cause, LiveTurn
from .reservation import SYSTEM, assert_fence

_log = logging.getLogger(__name__)

_LOOP_AT = 3
_MAX_CALLS = 128
_NUDGE = (
    "You have used all the steps of this turn. Do not call tools any more: say what was done, what is "
    "left, and what you would do next."
)
_LOOP_NUDGE = (
    "You have asked for the same calls three times, so they were not run again. Do not call tools any "
    "more: say what you know and what stands in the way."
)


@frozen(kw_only=True)
class TurnLimits:
    """What a turn may spend. `None` is no limit; times in seconds."""

    iterations: int = 50
    tokens: int | None = None
    cost: float | None = None
    total_s: float = 3_600.0
    idle_s: float = 900.0
    cancel_grace_s: float = 5.0


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
    hooks: Sequence[Hook] = ()
    retry: RetryPolicy = BOUNDED


@define(kw_only=True)
class _Progress:
    """How far a turn has come; what its end needs to know."""

    usage: Usage = field(factory=Usage)
    iterations: int = 0
    answer: Answer | None = None
    last_output: str | None = None
    seen: Counter[frozenset[tuple[str, int]]] = field(factory=Counter[frozenset[tuple[str, int]]])


async def run(turn: Turn) -> None:
    """Runs a turn to its end and returns when the end is committed.

    Never raises for what the model, a tool or the store did. Cancelling this task interrupts the turn.
    """
    live = turn.live
    progress = _Progress()
    work = asyncio.create_task(_steps(turn, progress), name=f"steps of {live.turn_id}")
    watch = asyncio.create_task(_watch(live, turn.limits), name=f"watchdog of {live.turn_id}")
    stop = asyncio.create_task(live.stopping.wait(), name=f"stop of {live.turn_id}")
    try:
        await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
        await _stop(work, turn)
        await _end(turn, progress, work)
    except asyncio.CancelledError:
        live.stop(Cause(outcome="interrupted", by=SYSTEM, reason="the server is stopping"))
        await asyncio.shield(_finish_late(turn, progress, work))
        raise
    finally:
        for task in (watch, stop):
            task.cancel()
        await asyncio.gather(watch, stop, return_exceptions=True)
        live.ended.set()


async def _finish_late(turn: Turn, progress: _Progress, work: "asyncio.Task[None]") -> None:
    await _stop(work, turn)
    await _end(turn, progress, work)


async def _stop(work: "asyncio.Task[None]", turn: Turn) -> None:
    """Cancels what still runs and gives it the grace; what then still lives is left to its fence,
    which refuses everything that it may yet want to write."""
    if work.done():
        return
    work.cancel()
    done, _ = await asyncio.wait({work}, timeout=turn.limits.cancel_grace_s)
    if not done:
        _log.warning(
            "turn %s did not stop within %s s and was left behind",
            turn.live.turn_id,
            turn.limits.cancel_grace_s,
        )
        work.add_done_callback(lambda task: task.cancelled() or task.exception())


async def _watch(live: LiveTurn, limits: TurnLimits) -> None:
    """Stops a turn that makes no progress, or takes too long altogether (execution 45)."""
    while True:
        now = time.monotonic()
        idle = live.last_progress + limits.idle_s - now
        total = live.started + limits.total_s - now
        if total <= 0:
            reason = f"the turn took longer than {limits.total_s:g} s"
        elif idle <= 0:
            reason = f"nothing happened for {limits.idle_s:g} s"
        else:
            await asyncio.sleep(min(idle, total))
            continue
        live.stop(Cause(outcome="timed_out", by=SYSTEM, reason=reason))
        return


# --- the steps ------------------------------------------------------------------------------------


async def _steps(turn: Turn, progress: _Progress) -> None:
    """Runs until the turn's end is committed, or raises what keeps it from going on."""
    nudge: str | None = None
    while True:
        await _boundary(turn)
        if nudge is None:
            nudge = _spent(turn, progress)
        try:
            answer = await _ask(turn, progress, nudge)
        except ModelError:
            if nudge is None or progress.last_output is None:
                raise
            # the last word failed, but there is a result to show for the turn
            answer = Answer(message_id=turn.log.ids.new("msg"), stop="other")
        if answer.calls and nudge is None:
            looping = await _run_calls(turn, progress, answer)
            nudge = _LOOP_NUDGE if looping else None
            continue
        answer.content = [b for b in answer.content if b.type != "tool_use"]
        if await _try_to_end(turn, progress, answer):
            return
        nudge = None
        progress.iterations = 0


def _spent(turn: Turn, progress: _Progress) -> str | None:
    """The nudge for the last request, when the steps are used up. Raises for a spent budget."""
    limits, usage = turn.limits, progress.usage
    tokens = sums.spent_tokens(usage)
    if limits.tokens is not None and tokens >= limits.tokens:
        raise CallboardError(
            "budgetExceeded", f"the turn used {tokens} of the {limits.tokens} tokens it was given"
        )
    if limits.cost is not None and usage.cost is not None and usage.cost >= limits.cost:
        raise CallboardError(
            "budgetExceeded",
            f"the turn cost {usage.cost:.4f} of the {limits.cost:.4f} it was given",
        )
    return _NUDGE if progress.iterations >= limits.iterations else None


async def _boundary(turn: Turn) -> None:
    """The safe point: takes in what waits, then makes room if the window is nearly full."""
    turn.live.steered = False
    grant = turn.live.grant

    def drain(tx: Transaction) -> None:
        assert_fence(tx, grant)
        drain_all(tx, grant, turn.sources)

    await turn.log.transact(drain)
    turn.live.touch()
    await turn.context.compact(force=False)


async def _ask(turn: Turn, progress: _Progress, nudge: str | None) -> Answer:
    """One model request. A context that turns out too long is compacted once."""
    progress.iterations += 1
    compacted = False
    while True:
        answer = Answer(message_id=turn.log.ids.new("msg"))
        progress.answer = answer
        request = await turn.context.request(nudge=nudge)
        if nudge is not None:
            request = attrs.evolve(request, allow_tools=False)
        try:
            async with turn.model_slots:
                await _stream(turn, request, answer)
        except ModelError as error:
            progress.usage = sums.add(progress.usage, answer.usage)
            too_long = error.failure.kind == "contextWindowExceeded" and not error.started
            if too_long and not compacted and await turn.context.compact(force=True):
                compacted = True
                continue
            raise
        progress.usage = sums.add(progress.usage, answer.usage)
        turn.context.measured(answer.usage)
        return answer


async def _stream(turn: Turn, request: ModelRequest, answer: Answer) -> None:
    live = turn.live

    async def retried(attempt: int, delay_ms: int, failure: Failure) -> None:
        live.touch()
        await turn.log.append(
            live.session_id,
            ModelRetried(attempt=attempt, delay_ms=delay_ms, error=failure),
            actor=turn.actor,
            turn_id=live.turn_id,
            fence=live.grant.fence,
        )

    draft = Draft(
        turn.log,
        turn.numbering,
        session_id=live.session_id,
        turn_id=live.turn_id,
        interval_ms=turn.draft_interval_ms,
        bytes=turn.draft_bytes,
    )
    stream = stream_with_retry(turn.model, request, policy=turn.retry, on_retry=retried)
    async with aclosing(stream) as events:
        await gather(
            events,
            answer,
            draft=draft,
            numbering=turn.numbering,
            call_id=lambda: CallId(turn.log.ids.new("call")),
            touch=live.touch,
        )


async def _run_calls(turn: Turn, progress: _Progress, answer: Answer) -> bool:
    """Commits an answer with its calls, runs them, and tells whether the model goes round in circles."""
    caller, live = turn.caller, turn.live
    calls = [await caller.prepare(asked, n) for n, asked in enumerate(answer.calls[:_MAX_CALLS])]
    caller.expect(calls)

    def commit(tx: Transaction) -> None:
        assert_fence(tx, live.grant)
        if answer.worth_keeping:
            said = message_of(
                answer, turn.author, turn.model.card.model_id, final=False, partial=False
            )
            tx.append(
                live.session_id,
                said,
                actor=turn.actor,
                turn_id=live.turn_id,
                fence=live.grant.fence,
            )
        tx.execute(LOG_SQL["delete_draft"], live.turn_id)
        caller.write(tx, calls, answer.message_id)

    await turn.log.transact(commit)
    progress.answer = None
    signature = frozenset(Counter(call.signature for call in calls).items())
    progress.seen[signature] += 1
    if progress.seen[signature] >= _LOOP_AT:
        for call in calls:
            await caller.refuse(
                call, "Not run: the same calls were made twice before, with the same end."
            )
        return True

    async def execute(call: Call) -> Any:
        live.touch()
        output = await caller.execute(call)
        live.touch()
        return output

    outcomes = await run_batch(
        calls,
        execute,
        coordinator=turn.coordinator,
        superseded=lambda: live.steered,
        admit=caller.admit,
    )
    for call, outcome in zip(calls, outcomes, strict=True):
        if isinstance(outcome, Superseded):
            await caller.supersede(call)
        else:
            progress.last_output = outcome.text or progress.last_output
    return False


async def _try_to_end(turn: Turn, progress: _Progress, answer: Answer) -> bool:
    text = answer.text or progress.last_output
    ending = _ending(turn, progress, "completed", final_text=text, stop_reason=answer.stop)
    said = (
        message_of(answer, turn.author, turn.model.card.model_id, final=True, partial=False)
        if answer.worth_keeping
        else None
    )
    ended = await turn.log.transact(
        lambda tx: complete(
            tx,
            turn.live.grant,
            ending,
            said,
            actor=turn.actor,
            sources=turn.sources,
            hooks=turn.hooks,
        )
    )
    progress.answer = None
    return ended


# --- the end --------------------------------------------------------------------------------------


def _ending(turn: Turn, progress: _Progress, outcome: Any, **more: Any) -> Ending:
    return Ending(
        outcome=outcome,
        usage=progress.usage,
        iterations=progress.iterations,
        duration_ms=round((time.monotonic() - turn.live.started) * 1000),
        **more,
    )


async def _end(turn: Turn, progress: _Progress, work: "asyncio.Task[None]") -> None:
    """Commits the end that fits how the work ended, unless it has committed its own."""
    live = turn.live
    fault: BaseException | None = None
    if work.done() and not work.cancelled():
        fault = work.exception()
        if fault is None and live.cause is None:
            return
        if isinstance(fault, StaleFence):
            _log.warning("turn %s lost its session and stopped: %s", live.turn_id, fault)
            return
    cause = live.cause
    if cause is not None:
        error = None
        if cause.outcome == "timed_out":
            error = Failure(kind="turnTimedOut", message=cause.reason, retryable=True)
        ending = _ending(
            turn, progress, cause.outcome, error=error, by=cause.by, reason=cause.reason
        )
    elif fault is None:
        cancelled = "the turn's work was cancelled from inside"
        ending = _ending(turn, progress, "interrupted", reason=cancelled)
    else:
        ending = _ending(turn, progress, "failed", error=failure_of(fault, live.turn_id))
    await _commit_end(turn, ending, _partial(turn, progress))


def _partial(turn: Turn, progress: _Progress) -> Message | None:
    """Text that had streamed when the turn was cut off; calls that were never committed are left out."""
    answer = progress.answer
    if answer is None:
        return None
    answer.close_blocks()
    answer.content = [b for b in answer.content if isinstance(b, TextContent)]
    if not answer.worth_keeping:
        return None
    return message_of(answer, turn.author, turn.model.card.model_id, final=False, partial=True)


async def _commit_end(turn: Turn, ending: Ending, partial: Message | None) -> None:
    """Commits the end, however long the store refuses: a full disk must not lose a turn's end."""
    grant = turn.live.grant

    def commit(tx: Transaction) -> None:
        assert_fence(tx, grant)
        if partial is not None:
            tx.append(
                grant.session_id,
                partial,
                actor=turn.actor,
                turn_id=grant.turn_id,
                fence=grant.fence,
            )
        close_turn(tx, grant, ending, actor=turn.actor, hooks=turn.hooks)

    delay = 0.1
    while True:
        try:
            await turn.log.transact(commit)
            return
        except StaleFence:
            return  # it was ended already: by its own last step, or by whoever took it over
        except CallboardError as error:
            if error.kind == "shuttingDown" or (
                not error.spec.retryable and error.kind != "storeReadOnly"
            ):
                _log.error("the end of turn %s could not be written: %s", grant.turn_id, error)
                return
            _log.warning("the end of turn %s waits for the store: %s", grant.turn_id, error)
        await asyncio.sleep(delay)
        delay = min(2 * delay, 2.0)


def failure_of(fault: BaseException, turn_id: str) -> Failure:
    """What ended a turn, as data. Decided by type, never by text (execution 15)."""
    match fault:
        case ModelError():
            return fault.failure
        case CallboardError():
            return Failure(
                kind=fault.kind,
                message=fault.message,
                retryable=fault.spec.retryable,
                retry_after_ms=fault.retry_after_ms,
            )
        case BaseExceptionGroup() if len(fault.exceptions) == 1:
            return failure_of(fault.exceptions[0], turn_id)
        case _:
            _log.error("turn %s failed", turn_id, exc_info=fault)
            what = well_formed(str(fault))[:1_000]
            return Failure(
                kind="internal",
                message=f"{type(fault).__name__}: {what}" if what else type(fault).__name__,
            )


def nudge_message(text: str) -> UserMessage:
    """A word from Callboard itself to the model, in no log."""
    return UserMessage(blocks=(Text(text=text),))
