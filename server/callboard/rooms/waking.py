"""What the end of a turn wakes in a room: the first other member that its last message addresses, while the
burst lasts (session-messaging 9).

Written in the transaction that ends the turn. So no reply that addresses somebody is lost while its run still has
the session, and none wakes anybody of a turn that did not end well.
"""

from callboard_rpc.common import Actor
from callboard_rpc.events import MemberMentioned, Message, WakeSuppressed

from ..log.record import Record
from ..log.transaction import Transaction
from ..sessions.projection import find_room
from ..turns.finish import Ending
from ..turns.projection import SQL as TURN_SQL
from ..turns.reservation import Grant
from .mentions import mentioned
from .projection import SQL, burst_of
from .routing import text_of


def ended(tx: Transaction, grant: Grant, ending: Ending, *, budget: int) -> None:
    """A `Hook`. `budget` is the configured one: so many messages of agents may follow one another."""
    if ending.outcome != "completed":
        return
    room = find_room(tx.all, grant.session_id)
    if not room.members:
        return
    row = tx.one(SQL["final_message"], grant.session_id, grant.turn_id)
    if row is None:
        return  # it ended in silence
    record = Record.of(row)
    said: Message = record.value
    by = said.author.name
    name = mentioned(text_of(tx, record), room.members, by=by)
    if name is None:
        return
    burst = burst_of(tx.all, grant.session_id)
    allowed = budget if room.burst_budget is None else room.burst_budget
    owner = tx.one(TURN_SQL["owner"], grant.session_id)
    event = (
        MemberMentioned(
            name=name,
            by=by,
            message_seq=record.seq,
            burst=burst,
            budget=allowed,
            host_id=None if owner is None else owner[4],
        )
        if burst < allowed
        else WakeSuppressed(name=name, by=by, message_seq=record.seq, burst=burst, budget=allowed)
    )
    tx.append(
        grant.session_id,
        event,
        actor=Actor(kind="agent", id=grant.session_id, name=by),
        turn_id=grant.turn_id,
        fence=grant.fence,
    )
