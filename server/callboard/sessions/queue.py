"""Prompts that wait: who they are from, what they say, and changing that while nobody has read it.

A prompt is taken in by the transaction that starts its turn, or by a boundary of the running one. A
change is a transaction, too, from whatever process: so one of the two is first, and the other is told.
"""

from collections.abc import Sequence
from typing import Any, cast

import orjson
from attrs import frozen

from callboard_rpc.common import Actor, Content, MessageId, TextContent, TurnId
from callboard_rpc.convert import structure_lenient
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import (
    EVENT_TYPES,
    Author,
    Directive,
    MemberMentioned,
    Message,
    PromptUpdated,
    ScheduleFired,
    TriggersDropped,
)
from callboard_rpc.history import QueuedPrompt

from ..log.faults import no_session
from ..log.log import Log
from ..log.looking import Rows
from ..log.record import Record
from ..log.transaction import Transaction
from ..turns.projection import SQL
from .content import checked_content
from .projection import SQL as SESSION_SQL

_REMOVED = "removed from the queue"
_NO_PROMPTS = {
    "directive": "an instruction of another agent, which cannot be rewritten",
    "mention": "what another agent of the room has said, which cannot be rewritten",
    "schedule": "a schedule's, which is changed there (schedule/update)",
    "peer": "a message of a linked session, which cannot be rewritten",
}


@frozen
class Queue:
    """The waiting prompts of the sessions of one store. `prompt_bytes` is how large one may be."""

    log: Log
    prompt_bytes: int

    async def page(
        self, session_id: str, *, after: int = 0, limit: int = 100
    ) -> tuple[list[QueuedPrompt], int | None]:
        """Prompts in the order in which they will be taken in; and where the next page begins."""
        rows = await self.log.query(SQL["queue_page"], session_id, after, limit + 1)
        page = await self._prompts(session_id, rows[:limit])
        return page, (rows[limit - 1][0] if len(rows) > limit else None)

    async def at_head(self, session_id: str) -> tuple[list[QueuedPrompt], int]:
        """All prompts that wait, and the position up to which that is what the log tells: whoever follows it
        from there on misses none and sees none twice."""

        def look(rows: Rows) -> tuple[list[tuple[Any, ...]], int]:
            head: int = rows(SQL["last_position"])[0][0] or 0
            return rows(SQL["queue_page"], session_id, 0, -1), head

        rows, head = await self.log.at_once(look)
        return await self._prompts(session_id, rows), head

    async def _prompts(
        self, session_id: str, rows: Sequence[tuple[Any, ...]]
    ) -> list[QueuedPrompt]:
        """Those of rows of ``queue_page``."""
        seqs = [seq for row in rows for seq in (row[0], row[3]) if seq is not None]
        found = await self.log.query(SQL["records_at"], session_id, orjson.dumps(seqs).decode())
        records = {record.seq: record for record in map(Record.of, found)}
        return [
            await self._prompt(records[seq], delivery, records.get(updated_seq))
            for seq, _, delivery, updated_seq in rows
            if seq in records  # else the session was deleted just now
        ]

    async def _prompt(self, record: Record, delivery: Any, update: Record | None) -> QueuedPrompt:
        said: Message | Directive | MemberMentioned | ScheduleFired = await self._whole(
            record, EVENT_TYPES[record.type]
        )
        if isinstance(said, MemberMentioned | ScheduleFired):
            return _wordless(record, said, delivery)
        content: tuple[Content, ...]
        if isinstance(said, Directive):
            content = (TextContent(text=said.text),)
        elif update is not None:
            content = (await self._whole(update, PromptUpdated)).content
        else:
            # what comes from outside has no thoughts and no calls
            content = cast("tuple[Content, ...]", said.content)
        return QueuedPrompt(
            event_seq=record.seq,
            message_id=MessageId(said.message_id),
            author=said.author,
            content=content,
            delivery=delivery,
            at=record.at,
            kind="directive" if isinstance(said, Directive) else "prompt",
            client_message_id=None if isinstance(said, Directive) else said.client_message_id,
            updated_at=None if update is None else update.at,
        )

    async def _whole(self, record: Record, cls: type[Any]) -> Any:
        if '"_blobs"' not in record.data:
            return record.value
        return structure_lenient(await self.log.whole(record), cls)

    async def update(
        self, session_id: str, seq: int, content: tuple[Content, ...], *, by: Actor
    ) -> Record:
        """Replaces what a waiting prompt says. Raises sessionNotFound, promptNotFound, promptTaken,
        invalidParams, messageTooLarge."""
        checked = checked_content(content, self.prompt_bytes)

        def commit(tx: Transaction) -> Record:
            kind = _must_wait(tx, session_id, seq)
            if kind != "prompt":
                what = _NO_PROMPTS.get(kind, f"a {kind}, which cannot be rewritten")
                raise CallboardError(
                    "promptNotFound",
                    f"#{seq} of session {session_id} is {what}; remove it, and prompt instead",
                )
            record = tx.append(session_id, PromptUpdated(seq=seq, content=checked), actor=by)
            tx.decided(seq=record.seq)
            return record

        return await self.log.transact(commit)

    async def remove(
        self, session_id: str, seq: int, *, by: Actor, reason: str | None = None
    ) -> Record:
        """Drops a waiting prompt: it will not be answered. Raises sessionNotFound, promptNotFound,
        promptTaken."""

        def commit(tx: Transaction) -> Record:
            _must_wait(tx, session_id, seq)
            dropped = TriggersDropped(seqs=(seq,), reason=reason or _REMOVED)
            record = tx.append(session_id, dropped, actor=by)
            tx.decided(seq=record.seq)
            return record

        return await self.log.transact(commit)


def _wordless(record: Record, said: MemberMentioned | ScheduleFired, delivery: Any) -> QueuedPrompt:
    """What wakes an agent and is no message."""
    match said:
        case MemberMentioned(name=name, by=by):
            author, text = Author(kind="agent", name=by, id=record.session_id), f"@{name}"
        case ScheduleFired(name=name, prompt=text):
            author = Author(kind="schedule", name=name, id=said.schedule_id)
    return QueuedPrompt(
        event_seq=record.seq,
        message_id=MessageId(record.event_id),
        author=author,
        content=(TextContent(text=text),),
        delivery=delivery,
        at=record.at,
        kind="mention" if isinstance(said, MemberMentioned) else "schedule",
    )


def _must_wait(tx: Transaction, session_id: str, seq: int) -> str:
    """What kind of trigger waits there."""
    if tx.one(SESSION_SQL["flags"], session_id) is None:
        raise no_session(session_id)
    row = tx.one(SQL["trigger_state"], session_id, seq)
    if row is None:
        raise CallboardError(
            "promptNotFound",
            f"#{seq} of session {session_id} is no prompt; session/queue lists those that wait",
        )
    kind, state, turn_id = row
    if state == "admitted":
        raise CallboardError(
            "promptTaken",
            f"turn {turn_id} has taken prompt #{seq} in already; steer or cancel that turn, or go back "
            "to before it (session/rewind)",
            data={"turnId": TurnId(turn_id)},
        )
    if state != "pending":
        raise CallboardError(
            "promptNotFound", f"prompt #{seq} of session {session_id} was dropped already"
        )
    return kind
