"""The stages of a turn that are the same whatever drives it: its beginning, the boundary between two steps, its end."""

from collections.abc import Sequence

from callboard_rpc.errors import CallboardError

from ..log.faults import StaleFence
from ..log.transaction import SQL as LOG_SQL
from ..log.transaction import Transaction
from . import usage as sums
from .answer import Answer
from .boundary import anything_waiting, drain_all, requests_left
from .call import Call
from .finish import Ending, complete, decide_to_end, message_of
from .lifecycle import MAX_CONTINUATIONS, blocked, instruct
from .live import Cause, LiveTurn
from .projection import SQL
from .reservation import SYSTEM, assert_fence
from .turn import Progress, Turn, figures

_NUDGE = (
    "You have used all the steps of this turn. Do not call tools any more: say what was done, what is "
    "left, and what you would do next."
)


class Stopped(Exception):
    """The turn was told to stop and something in it has swallowed the cancellation."""


def go_on(live: LiveTurn) -> None:
    """Before anything new begins. Raises `Stopped`."""
    if live.stopping.is_set():
        raise Stopped


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


def holds(turn: Turn) -> None:
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
    holds(turn)
    if anything_waiting(turn.log.glance, grant, turn.sources):
        turn.live.took_in(await turn.log.transact(drain))
    else:
        turn.live.nothing_waits()
    turn.live.touch()
    await turn.context.compact(force=False)


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
