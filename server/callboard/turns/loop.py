"""One turn, from its first request to its one end.

Ask the model, commit what it said, run the tools that it asked for, take in what has arrived
meanwhile, ask again; until it has said its last and nothing waits. Everything that can go wrong ends in
the same place: one terminal event and an idle session.
"""

from collections.abc import Awaitable, Callable, Sequence

from ..log.faultpoints import point
from ..log.transaction import SQL as LOG_SQL
from ..log.transaction import Transaction
from ..models.base import ModelError, ToolOutput
from ..tools.scheduling import Superseded, run_batch
from .answer import Answer
from .asking import ask
from .boundary import (
    anything_renewing,
    anything_superseding,
)
from .call import Call, Settled, settled_as
from .calls import BEYOND, MAX_CALLS
from .reads import reading
from .reservation import assert_fence
from .stages import (
    begin,
    boundary,
    go_on,
    holds,
    kept_from_ending,
    notify,
    say,
    spent,
    try_to_end,
    wind_down,
)
from .turn import Progress, Turn

_LOOP_NUDGE = (
    "You have asked for the same calls three times, so they were not run again. Do not call tools any "
    "more: say what you know and what stands in the way."
)


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
        holds(turn)
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
