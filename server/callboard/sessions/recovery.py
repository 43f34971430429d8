"""What is done for hosts that are gone: their runs become interrupted, once.

Nothing is run again, and nothing of theirs runs on: commands are ended, open calls get an
`interrupted` result, text that had streamed becomes a partial message, pending approvals of those runs
end. A run that only waited for an approval is parked instead, since nothing of it has begun; its
approvals keep their ids. What was queued is still queued. Two hosts that start at the same time each see, inside their
transaction, what the other has done already.
"""

import asyncio
import logging
from collections.abc import Sequence

from callboard_rpc.common import MessageContent, MessageId, TextContent, Thinking, Usage
from callboard_rpc.events import Author, Message

from ..log.faultpoints import point
from ..log.log import Log
from ..log.transaction import SQL as LOG_SQL
from ..log.transaction import Transaction
from ..tools.processes import end_marked
from ..turns.finish import Ending, Hook, close_turn
from ..turns.parking import park, waits_only
from ..turns.projection import SQL as TURN_SQL
from ..turns.reservation import SYSTEM, Grant
from .projection import SQL

_log = logging.getLogger(__name__)

_GONE = "the server that ran this turn is gone"


async def take_over(log: Log, hosts: Sequence[str], *, hooks: Sequence[Hook] = ()) -> list[str]:
    """Ends or parks the runs of hosts that are gone; the sessions that were theirs.

    `hooks` write what a turn's end brings with it, as they do for a turn that ends here.
    """
    owners = await log.query(TURN_SQL["live_owners"])
    lost = [
        (session_id, fence, turn_id)
        for session_id, fence, _, turn_id, owner in owners
        if owner in hosts
    ]
    point("sessions.host_gone")
    await _end_commands(log, [turn_id for _, _, turn_id in lost if turn_id is not None])
    point("sessions.commands_ended")
    for session_id, fence, turn_id in lost:
        grant = Grant(session_id=session_id, turn_id=turn_id or "", fence=fence)
        await log.transact(lambda tx, grant=grant: interrupt(tx, grant, hooks))
    await log.transact(lambda tx: [tx.execute(SQL["forget_host"], each) for each in hosts] and None)
    if lost:
        _log.info("%d runs of servers that are gone were ended or parked", len(lost))
    return [session_id for session_id, _, _ in lost]


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
    """Ends a dead host's run; nothing when somebody did already."""
    if tx.one(TURN_SQL["holds"], grant.session_id, grant.fence) is None:
        return
    turn = tx.one(TURN_SQL["turn"], grant.turn_id)
    if turn is None or turn[7] is not None:
        tx.execute(TURN_SQL["release"], grant.session_id, grant.fence)
        return
    waiting = waits_only(tx, grant)
    if waiting:
        park(tx, grant, waiting)
        return
    draft = tx.one(LOG_SQL["read_draft"], grant.turn_id)
    if draft is not None:
        _keep_draft(tx, grant, *draft[:3])
    close_turn(
        tx,
        grant,
        Ending(outcome="interrupted", usage=Usage(), reason=_GONE),
        actor=SYSTEM,
        hooks=hooks,
    )


def _keep_draft(tx: Transaction, grant: Grant, message_id: str, answer: str, thought: str) -> None:
    content: list[MessageContent] = []
    if thought.strip():
        content.append(Thinking(text=thought, provider="text"))
    if answer.strip():
        content.append(TextContent(text=answer))
    if not content:
        return
    profile = tx.value("SELECT profile FROM sessions WHERE session_id = ?", grant.session_id)
    tx.append(
        grant.session_id,
        Message(
            message_id=MessageId(message_id),
            author=Author(kind="agent", name=profile or "agent", id=grant.session_id),
            content=tuple(content),
            partial=True,
        ),
        actor=SYSTEM,
        turn_id=grant.turn_id,
        fence=grant.fence,
    )
