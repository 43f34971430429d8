"""One turn, from its first request to its one end.

Ask the model, commit what it said, run the tools that it asked for, take in what has arrived
meanwhile, ask again; until it has said its last and nothing waits. Everything that can go wrong ends in
the same place: one terminal event and an idle session.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any, Protocol, TypeAlias

import attrs
from attrs import define, field, frozen

from callboard_rpc.common import Actor, CallId, Failure, TextContent, Usage
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import Author, Message, ModelRetried, ToolCall

from ..hooks.service import NO_HOOKS, Lifecycle
from ..log.faultpoints import point
from ..log.faults import StaleFence
from ..log.log import Log
from ..log.transaction import SQL as LOG_SQL
from ..log.transaction import Transaction
from ..models.base import Model, ModelError, ModelRequest, ToolOutput
from ..models.retry import BOUNDED, RetryPolicy, stream_with_retry
from ..tools.scheduling import Superseded, WriteCoordinator, run_batch
from . import usage as sums
from .answer import Answer, Draft, gather
from .boundary import Source, anything_superseding, anything_waiting, drain_all
from .calls import Call, Caller, Settled
from .completion import CompletionHook
from .deltas import Numbering
from .ending import ending_of, write_end
from .finish import Ending, Hook, complete, decide_to_end, message_of
from .lifecycle import MAX_CONTINUATIONS, blocked, instruct
from .limits import TurnLimits, watch
from .live import Cause, LiveTurn
from .projection import SQL
from .reads import reading
from .reservation import SYSTEM, assert_fence

_log = logging.getLogger(__name__)

_LOOP_AT = 3
_LATE_GRACE_S = 0.2
_MAX_CALLS = 128
_NUDGE = (
    "You have used all the steps of this turn. Do not call tools any more: say what was done, what is "
    "left, and what you would do next."
)
_LOOP_NUDGE = (
    "You have asked for the same calls three times, so they were not run again. Do not call tools any "
    "more: say what you know and what stands in the way."
)


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


Signature: TypeAlias = frozenset[tuple[str, int]]
"""The calls of one answer, without their order."""


@define(kw_only=True)
class _Progress:
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
        """Whether the model asks for the same calls, in whatever order, for the third time."""
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


async def run(turn: Turn) -> None:
    """Runs a turn to its end and returns when the end is committed.

    Never raises for what the model, a tool or the store did. Cancelling this task interrupts the turn.
    """
    live = turn.live
    progress = _Progress(usage=turn.left.usage)
    work = asyncio.create_task(_steps(turn, progress), name=f"steps of {live.turn_id}")
    watchdog = asyncio.create_task(watch(live, turn.limits), name=f"watchdog of {live.turn_id}")
    stop = asyncio.create_task(live.stopping.wait(), name=f"stop of {live.turn_id}")
    try:
        await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
        await _stop(work, turn, turn.limits.cancel_grace_s)
        point("turns.stopped")
        await _end(turn, progress, work)
    except asyncio.CancelledError:
        live.stop(Cause(outcome="interrupted", by=SYSTEM, reason="the server is stopping"))
        await asyncio.shield(_finish_late(turn, progress, work))
        raise
    finally:
        for task in (watchdog, stop):
            task.cancel()
        await asyncio.gather(watchdog, stop, return_exceptions=True)
        live.ended.set()


async def _finish_late(turn: Turn, progress: _Progress, work: "asyncio.Task[None]") -> None:
    # whoever cancels the run itself has asked it to stop before, and waited
    await _stop(work, turn, min(turn.limits.cancel_grace_s, _LATE_GRACE_S))
    await _end(turn, progress, work)


async def _stop(work: "asyncio.Task[None]", turn: Turn, grace_s: float) -> None:
    """Cancels what still runs and gives it the grace; what then still lives is left to its fence,
    which refuses everything that it may yet want to write."""
    if work.done():
        return
    work.cancel()
    done, _ = await asyncio.wait({work}, timeout=grace_s)
    if not done:
        _log.warning(
            "turn %s did not stop within %s s and was left behind", turn.live.turn_id, grace_s
        )
        work.add_done_callback(lambda task: task.cancelled() or task.exception())


class _Stopped(Exception):
    """The turn was told to stop and something in it has swallowed the cancellation."""


def _go_on(live: LiveTurn) -> None:
    """Before anything new begins. Raises `_Stopped`."""
    if live.stopping.is_set():
        raise _Stopped


# --- the steps ------------------------------------------------------------------------------------


async def _steps(turn: Turn, progress: _Progress) -> None:
    """Runs until the turn's end is committed, or raises what keeps it from going on."""
    nudge: str | None = None
    await _begin(turn)
    if turn.left.calls:
        calls = [await turn.caller.restore(logged) for logged in turn.left.calls]
        point("turns.restored")
        await _run_batch(turn, progress, calls, turn.caller.run)
    while True:
        _go_on(turn.live)
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
        _go_on(turn.live)
        if answer.calls and nudge is None:
            looping = await _run_calls(turn, progress, answer)
            nudge = _LOOP_NUDGE if looping else None
            continue
        answer.content = [b for b in answer.content if b.type != "tool_use"]
        if nudge is None and await _kept_from_ending(turn, progress, answer):
            continue
        if await _try_to_end(turn, progress, answer):
            return
        nudge = None
        progress.iterations = 0


async def _begin(turn: Turn) -> None:
    """Asks the hooks whether the turn may begin. Raises `hookBlocked`."""
    if not turn.lifecycle.knows("SessionStart"):
        return
    decision = await turn.lifecycle.ask(
        "SessionStart",
        source="resumed" if turn.left.calls else "started",
        model=turn.model.card.model_id,
    )
    if decision.block is not None:
        raise blocked("SessionStart", decision.block)
    if decision.context:
        await turn.log.transact(lambda tx: _instruct(tx, turn, decision.context))


def _instruct(tx: Transaction, turn: Turn, texts: Sequence[str]) -> None:
    assert_fence(tx, turn.live.grant)
    for text in texts:
        instruct(tx, turn.live.grant, text)


async def _kept_from_ending(turn: Turn, progress: _Progress, answer: Answer) -> bool:
    """Whether a hook has something for the agent to do yet; then that is said to it. Bounded, and
    not asked while something else keeps the turn going."""
    hooks = turn.lifecycle
    if not hooks.knows("Stop") or progress.continuations >= MAX_CONTINUATIONS:
        return False
    if anything_waiting(turn.log.glance, turn.live.grant, turn.sources):
        return False
    decision = await hooks.ask("Stop", text=answer.text, continuations=progress.continuations)
    _go_on(turn.live)
    if decision.block is None:
        return False
    reason = decision.block
    progress.continuations += 1

    def commit(tx: Transaction) -> None:
        _instruct(tx, turn, ())
        if answer.worth_keeping:
            _say(tx, turn, answer)
        instruct(tx, turn.live.grant, reason)

    await turn.log.transact(commit)
    progress.answer = None
    return True


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


def _holds(turn: Turn) -> None:
    """Before something begins that no transaction can take back: the session is still this run's. Raises
    `StaleFence` in a process that was taken for gone, and may not have heard of it yet."""
    grant = turn.live.grant
    if not turn.log.glance(SQL["holds"], grant.session_id, grant.fence):
        raise StaleFence(grant.session_id, grant.fence)


async def _boundary(turn: Turn) -> None:
    """The safe point: takes in what waits, then makes room if the window is nearly full."""
    grant = turn.live.grant

    def drain(tx: Transaction) -> int:
        assert_fence(tx, grant)
        drain_all(tx, grant, turn.sources)
        return tx.value(SQL["last_seq"], grant.session_id)

    # mostly nothing waits, and a look costs less than a transaction; what comes after the look is
    # taken in at the next boundary, or keeps the turn from ending
    _holds(turn)
    if anything_waiting(turn.log.glance, grant, turn.sources):
        turn.live.took_in(await turn.log.transact(drain))
    else:
        turn.live.nothing_waits()
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
            too_long = error.failure.kind == "contextWindowExceeded" and not error.started
            if too_long and not compacted and await turn.context.compact(force=True):
                compacted = True
                continue
            raise
        finally:
            progress.usage = sums.add(progress.usage, answer.spent)
        turn.context.measured(answer.usage)
        point("turns.answered")
        return answer


async def _stream(turn: Turn, request: ModelRequest, answer: Answer) -> None:
    live = turn.live
    failed = 0

    async def retried(attempt: int, delay_ms: int, failure: Failure) -> None:
        nonlocal failed
        failed = attempt
        live.touch()
        retry = ModelRetried(attempt=attempt, delay_ms=delay_ms, error=failure)

        def commit(tx: Transaction) -> None:
            assert_fence(tx, live.grant)
            tx.append(
                live.session_id,
                retry,
                actor=turn.actor,
                turn_id=live.turn_id,
                fence=live.grant.fence,
            )

        await turn.log.transact(commit)

    draft = Draft(
        turn.log,
        turn.numbering,
        grant=live.grant,
        interval_ms=turn.draft_interval_ms,
        bytes=turn.draft_bytes,
    )
    stream = stream_with_retry(turn.model, request, policy=turn.retry, on_retry=retried)
    try:
        async with aclosing(stream) as events:
            await gather(
                events,
                answer,
                draft=draft,
                numbering=turn.numbering,
                call_id=lambda: CallId(turn.log.ids.new("call")),
                touch=live.touch,
            )
    except ModelError as error:
        if not failed or not error.failure.retryable:
            raise
        raise _given_up(error, failed + 1) from None


def _given_up(error: ModelError, requests: int) -> ModelError:
    """The failure of the last of several requests, with the way out."""
    failure = error.failure
    said = failure.message.rstrip(". ")
    message = f"{said}; asked {requests} times. Try again later, or choose another model."
    return ModelError(attrs.evolve(failure, message=message), started=error.started)


async def _run_calls(turn: Turn, progress: _Progress, answer: Answer) -> bool:
    """Commits an answer with its calls, runs them, and tells whether the model goes round in circles."""
    caller = turn.caller
    calls = [await caller.prepare(asked, n) for n, asked in enumerate(answer.calls[:_MAX_CALLS])]
    looping = progress.goes_round(calls)
    async with reading(caller, () if looping else calls) as reads:
        quick = await reads.quick()
        await turn.log.transact(lambda tx: _write_calls(tx, turn, answer, calls, quick))
        progress.answer = None
        turn.live.touch()
        _notify(turn, calls)
        for settled in quick:
            progress.ran(settled.call, settled.output)
        if looping:
            for call in calls:
                await caller.refuse(
                    call, "Not run: the same calls were made twice before, with the same end."
                )
        elif len(quick) < len(calls):
            over = {settled.call.call_id for settled in quick}
            left = [call for call in calls if call.call_id not in over]
            await _run_batch(turn, progress, left, reads.run)
    return looping


async def _run_batch(
    turn: Turn,
    progress: _Progress,
    calls: Sequence[Call],
    run: Callable[[Call], Awaitable[Settled]],
) -> None:
    """Runs committed calls, each with its one result."""
    caller, live = turn.caller, turn.live

    async def execute(call: Call) -> ToolOutput:
        _go_on(live)
        _holds(turn)
        live.touch()
        output = await caller.keep(await run(call))
        live.touch()
        return output

    outcomes = await run_batch(
        calls,
        execute,
        coordinator=turn.coordinator,
        superseded=lambda: (
            live.steered or anything_superseding(turn.log.glance, live.grant, turn.sources)
        ),
        admit=caller.admit,
    )
    for call, outcome in zip(calls, outcomes, strict=True):
        if isinstance(outcome, Superseded):
            await caller.supersede(call)
        else:
            progress.ran(call, outcome)


def _write_calls(
    tx: Transaction, turn: Turn, answer: Answer, calls: list[Call], over: Sequence[Settled]
) -> None:
    grant = turn.live.grant
    assert_fence(tx, grant)
    if answer.worth_keeping:
        _say(tx, turn, answer)
    tx.execute(LOG_SQL["delete_draft"], grant.turn_id)
    turn.caller.write(tx, calls, answer.message_id)
    for settled in over:
        turn.caller.write_result(tx, settled)


def _say(tx: Transaction, turn: Turn, answer: Answer) -> None:
    """Writes an answer that is not the last one. The caller has asserted the fence."""
    grant = turn.live.grant
    said = message_of(answer, turn.author, turn.model.card.model_id, final=False, partial=False)
    tx.append(grant.session_id, said, actor=turn.actor, turn_id=grant.turn_id, fence=grant.fence)
    tx.execute(LOG_SQL["delete_draft"], grant.turn_id)


def _notify(turn: Turn, calls: Sequence[Call]) -> None:
    """Lets the hooks know that a person is asked."""
    for call in calls:
        if call.approval_id is not None and turn.lifecycle.knows("Notification"):
            turn.lifecycle.tell(
                "Notification",
                kind="approval",
                approvalId=call.approval_id,
                callId=call.call_id,
                tool=call.name,
                title=call.preview.title if call.preview else call.name,
            )


async def _try_to_end(turn: Turn, progress: _Progress, answer: Answer) -> bool:
    text = answer.text or progress.last_output
    ending = Ending(
        outcome="completed", final_text=text, stop_reason=answer.stop, **_figures(turn, progress)
    )
    said = (
        message_of(answer, turn.author, turn.model.card.model_id, final=True, partial=False)
        if answer.worth_keeping
        else None
    )
    grant, actor, sources = turn.live.grant, turn.actor, turn.sources
    if turn.completion:
        ended = await turn.log.transact(
            lambda tx: decide_to_end(tx, grant, said, actor=actor, sources=sources)
        )
        if ended:
            progress.decided = (ending, said)
    else:
        ended = await turn.log.transact(
            lambda tx: complete(
                tx, grant, ending, said, actor=actor, sources=sources, hooks=turn.hooks
            )
        )
    progress.answer = None
    return ended


# --- the end --------------------------------------------------------------------------------------


async def _end(turn: Turn, progress: _Progress, work: "asyncio.Task[None]") -> None:
    """Commits the end that fits how the work ended, unless it has committed its own. Whoever is
    cancelled meanwhile and comes again waits for the same end."""
    if progress.ending is None:
        name = f"end of {turn.live.turn_id}"
        progress.ending = asyncio.create_task(_write_end(turn, progress, work), name=name)
    await asyncio.shield(progress.ending)


async def _write_end(turn: Turn, progress: _Progress, work: "asyncio.Task[None]") -> None:
    live = turn.live
    if progress.decided is not None:
        ending, said = progress.decided
    else:
        fault: BaseException | None = None
        if work.done() and not work.cancelled():
            fault = work.exception()
            if fault is None and live.cause is None:
                return
            if isinstance(fault, StaleFence):
                _log.warning("turn %s lost its session and stopped: %s", live.turn_id, fault)
                return
        ending = ending_of(live, fault, **_figures(turn, progress))
        said = _partial(turn, progress)
    await write_end(
        turn.log,
        live.grant,
        ending,
        actor=turn.actor,
        said=said,
        hooks=turn.hooks,
        completion=turn.completion,
    )


def _figures(turn: Turn, progress: _Progress) -> dict[str, Any]:
    return {
        "usage": progress.usage,
        "iterations": progress.iterations,
        "duration_ms": round(turn.live.elapsed_s * 1000),
    }


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
