"""What is done for hosts that are gone: their runs become interrupted, once.

Nothing is run again, and nothing of theirs runs on: commands are ended, open calls get an
`interrupted` result, text that had streamed becomes a partial message, pending approvals of those runs
end. A run that only waited for an approval is parked instead, since nothing of it has begun; its
approvals keep their ids. A run that somebody had asked to stop is cancelled. What was queued is still
queued.

A run is first seized, under a new fence, in the transaction that sees that its host is still gone; so of
two hosts that recover at the same time one does it, and a host that was only stopped can write
nothing any more. What is to be parked is parked there and then: an answer that comes from a third process
afterwards finds the turn parked, and resumes it. Who has seized a run and dies is gone, too, and the
next host goes on from there.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence

from callboard_rpc.common import MessageContent, MessageId, TextContent, Thinking
from callboard_rpc.events import Author, Message

from ..log.faultpoints import point
from ..log.log import Log
from ..log.transaction import SQL as LOG_SQL
from ..log.transaction import Transaction
from ..tools.processes import end_marked
from ..turns.finish import Ending, Hook, close_turn
from ..turns.parking import cancelled, is_cancelled, park, waits_only
from ..turns.projection import SQL as TURN_SQL
from ..turns.reservation import SYSTEM, Grant, seize
from ..turns.usage import reported
from .projection import SQL

_log = logging.getLogger(__name__)

_GONE = "the server that ran this turn is gone"


async def seize_runs(log: Log, gone: Mapping[str, str | None], *, by: str) -> list[Grant]:
    """Takes the sessions of hosts that are gone, and parks the turns in them that only wait for an
    approval; the others are to be `conclude`d. `gone` is their last heartbeat, or None for a host
    without a row; one that has shown itself since keeps what it has. `by` is this host."""

    def commit(tx: Transaction) -> list[Grant]:
        really = [host for host, beat in gone.items() if tx.value(SQL["heartbeat"], host) == beat]
        owned = [
            Grant(session_id=session_id, turn_id=turn_id or "", fence=fence)
            for session_id, fence, _, turn_id, owner in tx.all(TURN_SQL["live_owners"])
            if owner in really
        ]
        seized = [seize(tx, grant, by) for grant in owned]
        for host in really:
            tx.execute(SQL["forget_host"], host)
        return [grant for grant in seized if grant is not None and not _parked(tx, grant)]

    point("sessions.host_gone")
    return await log.transact(commit)


async def conclude(
    log: Log, runs: Sequence[Grant], *, hooks: Sequence[Hook] = ()
) -> tuple[Grant, ...]:
    """Ends runs that were seized; those for which the store has refused it, to be tried again.

    `hooks` write what a turn's end brings with it, as they do for a turn that ends here.
    """
    await _end_commands(log, [grant.turn_id for grant in runs if grant.turn_id])
    point("sessions.commands_ended")
    ends = [log.submit(lambda tx, grant=grant: interrupt(tx, grant, hooks)) for grant in runs]
    if not ends:
        return ()
    await asyncio.wait(ends)
    left = tuple(
        grant for grant, end in zip(runs, ends, strict=True) if end.exception() is not None
    )
    _log.info("%d runs of servers that are gone were ended", len(runs) - len(left))
    if left:
        fault = next(end.exception() for end in ends if end.exception() is not None)
        _log.warning("%d runs of servers that are gone wait to be ended: %s", len(left), fault)
    return left


async def _end_commands(log: Log, turn_ids: Sequence[str]) -> None:
    """Ends the commands that outlived their server, before their calls are said to be over."""
    calls = [
        call_id
        for turn_id in turn_ids
        for call_id, _ in await log.query(TURN_SQL["open_calls_of_turn"], turn_id)
    ]
    if calls:
        ended = await asyncio.to_thread(end_marked, calls)
        if ended:
            _log.warning("%d processes that a server left running were ended", ended)


def interrupt(tx: Transaction, grant: Grant, hooks: Sequence[Hook] = ()) -> None:
    """Ends a run that was seized; nothing when somebody did already."""
    if tx.one(TURN_SQL["holds"], grant.session_id, grant.fence) is None:
        return
    turn = tx.one(TURN_SQL["turn"], grant.turn_id)
    if turn is None or turn[7] is not None:
        tx.execute(TURN_SQL["release"], grant.session_id, grant.fence)
        return
    used = reported(tx, grant.session_id, grant.turn_id)
    ending = Ending(outcome="interrupted", usage=used, reason=_GONE)
    wish = cancelled(tx, grant, ending)
    draft = tx.one(LOG_SQL["read_draft"], grant.turn_id)
    if draft is not None:
        _keep_draft(tx, grant, *draft[:3])
    close_turn(tx, grant, wish or ending, actor=SYSTEM, hooks=hooks)


def _parked(tx: Transaction, grant: Grant) -> bool:
    """Parks a run that was seized, if it has only waited for an approval and nobody wants it to end."""
    waiting = waits_only(tx, grant)
    if not waiting or is_cancelled(tx, grant):
        return False
    park(tx, grant, waiting)
    return True


def _keep_draft(tx: Transaction, grant: Grant, message_id: str, answer: str, thought: str) -> None:
    content: list[MessageContent] = []
    if thought.strip():
        content.append(Thinking(text=thought, provider="text"))
    if answer.strip():
        content.append(TextContent(text=answer))
    if not content:
        return
    name: str | None = tx.value(SQL["speaker_of_turn"], grant.turn_id)
    tx.append(
        grant.session_id,
        Message(
            message_id=MessageId(message_id),
            author=Author(kind="agent", name=name or "agent", id=grant.session_id),
            content=tuple(content),
            partial=True,
        ),
        actor=SYSTEM,
        turn_id=grant.turn_id,
        fence=grant.fence,
    )
