"""One turn, supervised: it runs, may be told to stop, and has exactly one end."""

import asyncio
import logging

from callboard_rpc.common import TextContent
from callboard_rpc.events import Message

from ..log.faultpoints import point
from ..log.faults import StaleFence
from .ending import ending_of, write_end
from .finish import message_of
from .limits import watch
from .live import Cause
from .loop import steps
from .reservation import SYSTEM
from .turn import Progress, Turn, figures

_log = logging.getLogger(__name__)

_LATE_GRACE_S = 0.2


async def run(turn: Turn) -> None:
    """Runs a turn to its end and returns when the end is committed.

    Never raises for what the model, a tool or the store did. Cancelling this task interrupts the turn.
    """
    live = turn.live
    progress = Progress(usage=turn.left.usage)
    work = asyncio.create_task(_drive(turn, progress), name=f"steps of {live.turn_id}")
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
        turn.numbering.close()
        live.ended.set()


async def _drive(turn: Turn, progress: Progress) -> None:
    if turn.drive is None:
        await steps(turn, progress)
    else:
        await turn.drive(turn, progress)


async def _finish_late(turn: Turn, progress: Progress, work: "asyncio.Task[None]") -> None:
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


async def _end(turn: Turn, progress: Progress, work: "asyncio.Task[None]") -> None:
    """Commits the end that fits how the work ended, unless it has committed its own. Whoever is
    cancelled meanwhile and comes again waits for the same end."""
    if progress.ending is None:
        name = f"end of {turn.live.turn_id}"
        progress.ending = asyncio.create_task(_write_end(turn, progress, work), name=name)
    await asyncio.shield(progress.ending)


async def _write_end(turn: Turn, progress: Progress, work: "asyncio.Task[None]") -> None:
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
        ending = ending_of(live, fault, **figures(turn, progress))
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


def _partial(turn: Turn, progress: Progress) -> Message | None:
    """Text that had streamed when the turn was cut off; calls that were never committed are left out."""
    answer = progress.answer
    if answer is None:
        return None
    answer.close_blocks()
    answer.content = [b for b in answer.content if isinstance(b, TextContent)]
    if not answer.worth_keeping:
        return None
    return message_of(answer, turn.author, turn.model.card.model_id, final=False, partial=True)
