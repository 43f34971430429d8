"""The draft of a running turn: what it has said of a message that is not in the log yet."""

import asyncio
from functools import partial

import orjson
from attrs import evolve

from ..log.log import Log
from ..log.redact import Redactor
from .deltas import Deltas, Said

_LONG_CHARS = 256 * 1024
"""So long a text is looked through beside the loop."""


async def draft_of(log: Log, deltas: Deltas, redactor: Redactor, turn_id: str) -> Said | None:
    """The draft of a turn. Of one that runs in this process it holds all that was passed on before this is
    called, saved or not; of another one what was saved last."""
    said = deltas.said(turn_id)
    if said is None:
        row = await log.draft(turn_id)
        if row is None:
            return None
        message_id, answer, thought, following = row
        return Said(message_id, answer, thought, orjson.loads(following))
    clean = partial(_clean, said, redactor)
    if len(said.answer) + len(said.thought) < _LONG_CHARS:
        return clean()
    return await asyncio.to_thread(clean)


def _clean(said: Said, redactor: Redactor) -> Said:
    """As a whole, so that a secret that streamed in pieces is found."""
    return evolve(said, answer=redactor.text(said.answer), thought=redactor.text(said.thought))
