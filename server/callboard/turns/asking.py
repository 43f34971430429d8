"""One request to the model: streamed, retried while nothing was said, compacted when it is too long."""

from contextlib import aclosing

import attrs

from callboard_rpc.common import CallId, Failure
from callboard_rpc.events import ModelRetried

from ..log.faultpoints import point
from ..log.transaction import Transaction
from ..models.base import ModelError, ModelRequest
from ..models.retry import stream_with_retry
from . import usage as sums
from .answer import Answer, Draft, gather
from .reservation import assert_fence
from .turn import Progress, Turn


async def ask(turn: Turn, progress: Progress, nudge: str | None) -> Answer:
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
