"""Summaries: one model call over the context, and a boundary behind which nothing is sent again.

A summary says through which seq it reaches. What arrives while it is made is admitted later, so it
is behind the boundary and stays in context (session-messaging 4).
"""

from contextlib import aclosing
from typing import Any, Literal, cast

from attrs import frozen

from callboard_rpc.common import Actor, Usage
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import Author, Summary

from ..log.log import Log
from ..log.record import Record
from ..log.text import well_formed
from ..log.transaction import Transaction
from ..models.base import (
    Model,
    ModelError,
    ModelMessage,
    ModelRequest,
    Stop,
    Text,
    TextDelta,
    UsageReport,
    UserMessage,
)
from ..models.retry import BOUNDED, stream_with_retry
from ..turns.reservation import Grant, assert_fence
from .sizes import CHARS_PER_TOKEN, fit
from .transcript import ToolContextMode, Transcript

MINIMUM_ENTRIES = 3
NOBODY = ""
"""The speaker of a summary that is for several agents: it reads what each of them has said by its name."""
_SYSTEM = (
    "You write the summary that lets another agent go on with this work without having read it. Be "
    "exact and complete: what the person wants, decisions and constraints, what was done, which "
    "files were read or changed and how, what was found out, commands that matter and their results, "
    "what is open and what comes next. No greetings, no comments on the summary itself."
)
_ASK = "Write the summary of everything above now."
_VERBATIM_CHARS = 4_000
_VERBATIM_SHARE = 0.1
"""Of the window, for all verbatim words together: a summary must leave more room than it takes."""


@frozen(kw_only=True)
class Compacted:
    """A summary that was written, and what it took."""

    record: Record
    usage: Usage


async def summarise(
    *,
    log: Log,
    model: Model,
    transcript: Transcript,
    grant: Grant,
    author: Author,
    actor: Actor,
    reason: Literal["command", "tool", "window"],
    tools: ToolContextMode,
    window: int,
    speaker: str | None = None,
    instructions: str | None = None,
) -> Compacted | None:
    """Summarises a session under a reservation's fence, as `speaker` reads it; None when there is too little
    in it.

    Raises `CallboardError` when the model fails; then nothing is written.
    """
    if transcript.length < MINIMUM_ENTRIES and reason == "command":
        return None
    covers_through = transcript.seq
    verbatim = transcript.last_requests()
    context = transcript.messages(tools, turn_id=grant.turn_id or None, speaker=speaker)
    text, usage = await _ask(model, context, transcript.summary, window, instructions)
    if not text.strip():
        raise CallboardError("modelError", "the model gave an empty summary; nothing was changed")
    if reason == "window" and verbatim:
        share = round(window * CHARS_PER_TOKEN * _VERBATIM_SHARE / len(verbatim))
        said = "\n\n".join(t[: min(share, _VERBATIM_CHARS)] for t in verbatim)
        text = f"{text}\n\nThe person's latest words, verbatim:\n\n{said}"
    summary = Summary(
        text=well_formed(text),
        covers_through=covers_through,
        author=author,
        reason=reason,
        # a provider that told nothing did not do it for nothing
        usage=usage if usage.requests else Usage(requests=1, partial=True),
        model=model.card.model_id,
    )

    def commit(tx: Transaction) -> Record:
        assert_fence(tx, grant)
        record = tx.append(
            grant.session_id,
            summary,
            actor=actor,
            turn_id=grant.turn_id or None,
            fence=grant.fence,
        )
        tx.decided(seq=record.seq)
        return record

    return Compacted(record=await log.transact(commit), usage=usage)


async def _ask(
    model: Model,
    messages: tuple[ModelMessage, ...],
    summary: Text | None,
    window: int,
    instructions: str | None,
) -> tuple[str, Usage]:
    ask = f"{_ASK} {instructions}" if instructions else _ASK
    # a context that overflowed must still fit together with the question
    fitting = fit(messages, round(window * CHARS_PER_TOKEN * 0.8), summary=summary)
    request = ModelRequest(
        system=_SYSTEM, messages=(*fitting, UserMessage(blocks=(Text(text=ask),))), tools=()
    )
    parts: list[str] = []
    usage = Usage()
    stopped = False
    try:
        stream = cast("Any", stream_with_retry(model, request, policy=BOUNDED))
        async with aclosing(stream) as events:
            async for event in events:
                match event:
                    case TextDelta(text=text):
                        parts.append(text)
                    case UsageReport(usage=report):
                        usage = report
                    case Stop():
                        stopped = True
                    case _:
                        pass
    except ModelError as error:
        failure = error.failure
        raise CallboardError(
            failure.kind,
            f"the summary could not be made: {failure.message}",
            data={"provider": failure.provider, "httpStatus": failure.http_status},
        ) from error
    if not stopped:
        raise CallboardError("modelError", "the model stopped in the middle of the summary")
    return "".join(parts), usage
