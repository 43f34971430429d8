"""What is done when a run's outcome is known and its last commit has not been made (execution 19, 20).

A completion hook may wait for something, which the final transaction must not. So it runs before
that, once, within a time limit and contained; what it returns is appended in the final transaction. It
is told an outcome that nothing changes any more: from before it runs, the run takes in nothing new, and
a cancel comes too late.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from attrs import frozen

from callboard_rpc.common import Failure, TurnOutcome
from callboard_rpc.events import EventData

from ..log.transaction import Transaction
from .finish import Ending, Hook
from .reservation import SYSTEM, Grant

_log = logging.getLogger(__name__)

_END_GRACE_S = 0.2
_STOPPING_LIMIT_S = 0.3
"""How long a hook has when the server is stopping."""

CANCELLED_TEXT = "The turn was cancelled by the user."


@frozen(kw_only=True)
class RunOutcome:
    """What became of a run. `cancelled` is a kind of not `success`; `error` is there only without
    `success`. A run that is parked has no outcome yet."""

    success: bool
    cancelled: bool = False
    error: str | None = None


def terminal_error(outcome: TurnOutcome, failure: Failure | None) -> Failure | None:
    """The error that a run ends with: none for success, one fixed text for a cancel whatever else was
    wrong, else what failed. Decided by the outcome, never by a text (execution 14-16)."""
    match outcome:
        case "completed":
            return None
        case "cancelled":
            return Failure(kind="requestCancelled", message=CANCELLED_TEXT, retryable=True)
        case "failed" | "interrupted" | "timed_out":
            return failure or Failure(kind="internal", message=f"The turn was {outcome}.")


def outcome_of(ending: Ending) -> RunOutcome:
    """A turn's end as whoever waits for its completion is told of it."""
    error = terminal_error(ending.outcome, ending.error)
    return RunOutcome(
        success=ending.outcome == "completed",
        cancelled=ending.outcome == "cancelled",
        error=None if error is None else error.message,
    )


@frozen(kw_only=True)
class CompletionHook:
    """`run` is told how a run of this host ends, and returns what is to be said of it in the log.

    One that raises, or takes longer than `limit_s`, is logged and says nothing; the run ends all the
    same. A run whose host died had its hooks die with it.
    """

    name: str
    run: Callable[[Grant, RunOutcome], Awaitable[Sequence[EventData]]]
    limit_s: float = 5.0


async def completed(
    hooks: Sequence[CompletionHook], grant: Grant, ending: Ending
) -> tuple[Hook, ...]:
    """Runs the hooks one after another; what each wants to write into the final transaction."""
    outcome = outcome_of(ending)
    return tuple([_writes(hook, await _run(hook, grant, outcome, ending)) for hook in hooks])


async def _run(
    hook: CompletionHook, grant: Grant, outcome: RunOutcome, ending: Ending
) -> Sequence[EventData]:
    limit_s = hook.limit_s
    if ending.outcome == "interrupted":
        limit_s = min(limit_s, _STOPPING_LIMIT_S)

    async def call() -> Sequence[EventData]:
        return await hook.run(grant, outcome)

    task = asyncio.create_task(call(), name=f"hook {hook.name} of {grant.turn_id}")
    done, _ = await asyncio.wait({task}, timeout=limit_s)
    if not done:
        _log.error(
            "the hook %s of turn %s took longer than %g s; the turn ends without it",
            hook.name, grant.turn_id, limit_s,
        )  # fmt: skip
        task.cancel()
        await asyncio.wait({task}, timeout=_END_GRACE_S)
        # one that ignores that is left behind, and what it says is not heard
        task.add_done_callback(lambda late: late.cancelled() or late.exception())
        return ()
    if task.cancelled():
        _log.error("the hook %s of turn %s was cancelled from inside", hook.name, grant.turn_id)
        return ()
    fault = task.exception()
    if fault is not None:
        _log.error("the hook %s of turn %s failed", hook.name, grant.turn_id, exc_info=fault)
        return ()
    return task.result()


def _writes(hook: CompletionHook, said: Sequence[EventData]) -> Hook:
    def write(tx: Transaction, grant: Grant, _: Ending) -> None:
        for data in said:
            tx.append(
                grant.session_id, data, actor=SYSTEM, turn_id=grant.turn_id, fence=grant.fence
            )

    write.__name__ = hook.name
    return write
