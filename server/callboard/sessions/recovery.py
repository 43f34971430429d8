"""What is done when a host starts: the runs of hosts that are gone become interrupted, once.

Nothing is run again, and nothing of theirs runs on: commands are ended, open calls get an
`interrupted` result, text that had streamed becomes a partial message, pending approvals of those runs
end. What was queued is still queued. Two hosts that start at the same time each see, inside their
transaction, what the other has done already.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Sequence

from callboard_rpc.common import MessageContent, MessageId, TextContent, Thinking, Usage
from callboard_rpc.events import Author, Message

from ..log.log import Log
from ..log.transaction import SQL as LOG_SQL
from ..log.transaction import Transaction
from ..tools.processes import end_marked
from ..turns.finish import Ending, Hook, close_turn
from ..turns.projection import SQL as TURN_SQL
from ..turns.reservation import SYSTEM, Grant

_log = logging.getLogger(__name__)

_GONE = "the server that ran this turn is gone"


async def recover(
    log: Log,
    host_id: str,
    *,
    alive: Callable[[int, str], bool],
    born: str,
    hooks: Sequence[Hook] = (),
) -> list[str]:
    """Registers this host and ends the runs of dead ones; the sessions whose runs were ended.

    `hooks` write what a turn's end brings with it, as they do for a turn that ends here.
    """
    now = log.now()
    await log.transact(
        lambda tx: tx.execute(
            "INSERT INTO hosts (host_id, pid, process_born, started_at, heartbeat_at) "
            "VALUES (?, ?, ?, ?, ?) ON CONFLICT (host_id) DO NOTHING",
            host_id,
            os.getpid(),
            born,
            now,
            now,
        )
    )
    hosts = await log.query("SELECT host_id, pid, process_born FROM hosts")
    dead = [each for each, pid, birth in hosts if each != host_id and not alive(pid, birth)]
    known = {each for each, _, _ in hosts}
    owners = await log.query(TURN_SQL["live_owners"])
    lost = [
        (session_id, fence, turn_id)
        for session_id, fence, _, turn_id, owner in owners
        if owner in dead or owner not in known
    ]
    await _end_commands(log, [turn_id for _, _, turn_id in lost if turn_id is not None])
    for session_id, fence, turn_id in lost:
        grant = Grant(session_id=session_id, turn_id=turn_id or "", fence=fence)
        await log.transact(lambda tx, grant=grant: interrupt(tx, grant, hooks))
    if dead:
        await log.transact(
            lambda tx: [tx.execute("DELETE FROM hosts WHERE host_id = ?", each) for each in dead]
        )
    if lost:
        _log.info("%d runs of servers that are gone were interrupted", len(lost))
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
