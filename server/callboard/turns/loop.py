"""One turn, from its first request to its one end.

Ask the model, commit what it said, run the tools that it asked for, take in what has arrived
meanwhile, ask again; until it has said its last and nothing waits. Everything that can go wrong ends in
the same place: one terminal event and an idle session.
"""

from collections.abc import Awaitable, Callable, Sequence

from callboard_rpc.errors import CallboardError

from ..log.faultpoints import point
from ..log.faults import StaleFence
from ..log.transaction import SQL as LOG_SQL
from ..log.transaction import Transaction
from ..models.base import ModelError, ToolOutput
from ..tools.scheduling import Superseded, run_batch
from . import usage as sums
from .answer import Answer
from .asking import ask
from .boundary import (
    anything_renewing,
    anything_superseding,
    anything_waiting,
    drain_all,
    requests_left,
)
from .call import Call, Settled, settled_as
from .calls import BEYOND, MAX_CALLS
from .finish import Ending, complete, decide_to_end, message_of
from .lifecycle import MAX_CONTINUATIONS, blocked, instruct
from .live import Cause, LiveTurn
from .projection import SQL
from .reads import reading
from .reservation import SYSTEM, assert_fence
from .turn import Progress, Turn, figures

_NUDGE = (
    "You have used all the steps of this turn. Do not call tools any more: say what was done, what is "
    "left, and what you would do next."
)
_LOOP_NUDGE = (
    "You have asked for the same calls three times, so they were not run again. Do not call tools any "
    "more: say what you know and what stands in the way."
)


class Stopped(Exception):
    """The turn was told to stop and something in it has swallowed the cancellation."""


def go_on(live: LiveTurn) -> None:
    """Before anything new begins. Raises `Stopped`."""
    if live.stopping.is_set():
        raise Stopped


async def steps(turn: Turn, progress: Progress) -> None:
    """Runs until the turn's end is committed, or raises what keeps it from going on."""
    nudge: str | None = None
    await begin(turn)
    if turn.left.calls:
        calls = [await turn.caller.restore(logged) for logged in turn.left.calls]
        point("turns.restored")
        await _run_batch(turn, progress, calls, turn.caller.run)
    while True:
        go_on(turn.live)
        await boundary(turn)
        wind_down(turn)
        if nudge is None:
            nudge = spent(turn, progress)
        try:
            answer = await ask(turn, progress, nudge)
        except ModelError:
            if nudge is None or progress.last_output is None:
                raise
            # the last word failed, but there is a result to show for the turn
            answer = Answer(message_id=turn.log.ids.new("msg"), stop="other")
        go_on(turn.live)
        if answer.calls and nudge is None:
            looping = await _run_calls(turn, progress, answer)
            nudge = _LOOP_NUDGE if looping else None
            continue
        answer.content = [b for b in answer.content if b.type != "tool_use"]
        if nudge is None and await kept_from_ending(turn, progress, answer):
            continue
        if await try_to_end(turn, progress, answer):
            return
        nudge = None
        if anything_renewing(turn.log.glance, turn.live.grant, turn.sources):
            progress.iterations = 0


def wind_down(turn: Turn) -> None:
    """Ends a turn that was told to wind down and has had its last requests. Raises `Stopped`."""
    if requests_left(turn.log.glance, turn.live.grant, turn.sources) == 0:
        reason = "it was told to stop, and had its last words"
        turn.live.stop(Cause(outcome="cancelled", by=SYSTEM, reason=reason))
        raise Stopped


async def begin(turn: Turn) -> None:
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


async def kept_from_ending(turn: Turn, progress: Progress, answer: Answer) -> bool:
    """Whether a hook has something for the agent to do yet; then that is said to it. Bounded, and
    not asked while something else keeps the turn going."""
    hooks = turn.lifecycle
    if not hooks.knows("Stop") or progress.continuations >= MAX_CONTINUATIONS:
        return False
    if anything_waiting(turn.log.glance, turn.live.grant, turn.sources):
        return False
    decision = await hooks.ask("Stop", text=answer.text, continuations=progress.continuations)
    go_on(turn.live)
    if decision.block is None:
        return False
    reason = decision.block
    progress.continuations += 1

    def commit(tx: Transaction) -> None:
        _instruct(tx, turn, ())
        if answer.worth_keeping:
            say(tx, turn, answer)
        instruct(tx, turn.live.grant, reason)

    await turn.log.transact(commit)
    progress.answer = None
    return True


def spent(turn: Turn, progress: Progress) -> str | None:
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


async def boundary(turn: Turn) -> None:
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


async def _run_calls(turn: Turn, progress: Progress, answer: Answer) -> bool:
    """Commits an answer with its calls, runs them, and tells whether the model goes round in circles."""
    caller = turn.caller
    every = [await caller.prepare(asked, n) for n, asked in enumerate(answer.calls)]
    calls, beyond = every[:MAX_CALLS], every[MAX_CALLS:]
    refused = [settled_as(call, "error", BEYOND) for call in beyond]
    looping = progress.goes_round(every)
    async with reading(caller, () if looping else calls) as reads:
        quick = await reads.quick()
        over = [*quick, *refused]
        await turn.log.transact(lambda tx: _write_calls(tx, turn, answer, every, over))
        progress.answer = None
        turn.live.touch()
        notify(turn, calls)
        for settled in quick:
            progress.ran(settled.call, settled.output)
        if looping:
            for call in calls:
                await caller.refuse(
                    call, "Not run: the same calls were made twice before, with the same end."
                )
        elif len(quick) < len(calls):
            ran = {settled.call.call_id for settled in quick}
            left = [call for call in calls if call.call_id not in ran]
            await _run_batch(turn, progress, left, reads.run)
    return looping


async def _run_batch(
    turn: Turn,
    progress: Progress,
    calls: Sequence[Call],
    run: Callable[[Call], Awaitable[Settled]],
) -> None:
    """Runs committed calls, each with its one result."""
    caller, live = turn.caller, turn.live

    async def execute(call: Call) -> ToolOutput:
        go_on(live)
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
        say(tx, turn, answer)
    tx.execute(LOG_SQL["delete_draft"], grant.turn_id)
    turn.caller.write(tx, calls, answer.message_id)
    for settled in over:
        turn.caller.write_result(tx, settled)


def say(tx: Transaction, turn: Turn, answer: Answer) -> None:
    """Writes an answer that is not the last one. The caller has asserted the fence."""
    grant = turn.live.grant
    said = message_of(answer, turn.author, turn.model.card.model_id, final=False, partial=False)
    tx.append(grant.session_id, said, actor=turn.actor, turn_id=grant.turn_id, fence=grant.fence)
    tx.execute(LOG_SQL["delete_draft"], grant.turn_id)


def notify(turn: Turn, calls: Sequence[Call]) -> None:
    """Lets the hooks know that a person is asked."""
    for call in calls:
        if call.approval_id is not None and turn.lifecycle.knows("Notification"):
            turn.lifecycle.tell(
                "Notification",
                kind="approval",
                approvalId=call.approval_id,
                callId=call.call_id,
                tool=call.name,
                title=call.title,
            )


async def try_to_end(turn: Turn, progress: Progress, answer: Answer) -> bool:
    text = answer.text or progress.last_output
    ending = Ending(
        outcome="completed", final_text=text, stop_reason=answer.stop, **figures(turn, progress)
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
