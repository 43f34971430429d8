"""Rooms, as they follow the log: how long a burst is by now, and mentions as what wakes a session.

A burst is counted as long as a session has members, so that sessions with one agent pay nothing for it.
"""

from callboard_rpc.events import MemberMentioned, SessionRewound

from ..log import sqlfile
from ..log.record import Record
from ..log.transaction import Projection, Transaction
from ..sessions.projection import find_room
from ..sessions.rewound import Gone
from ..sessions.state import Room, room_after, room_of
from ..turns.boundary import Query
from ..turns.projection import insert_trigger
from .state import burst_after

SQL = sqlfile.load("callboard.rooms")


def burst_of(query: Query, session_id: str) -> int:
    """By `Transaction.all` or `Log.glance`."""
    rows = query(SQL["burst"], session_id)
    return rows[0][0] if rows else 0


def _said(tx: Transaction, record: Record) -> None:
    if not find_room(tx.all, record.session_id).members:
        return
    burst = burst_of(tx.all, record.session_id)
    after = burst_after(burst, record.value, in_turn=record.turn_id is not None)
    if after != burst:
        tx.execute(SQL["set_burst"], record.session_id, after)


def _removed(tx: Transaction, record: Record) -> None:
    if not find_room(tx.all, record.session_id).members:
        tx.execute(SQL["forget_burst"], record.session_id)


def _rewound(tx: Transaction, record: Record) -> None:
    """Counts anew what is left. Who takes part stays as it is."""
    if not find_room(tx.all, record.session_id).members:
        return
    records = [Record.of(row) for row in tx.all(SQL["telling"], record.session_id, record.seq)]
    rewinds: list[SessionRewound] = [r.value for r in records if r.type == "session_rewound"]
    gone = Gone.of(rewinds)
    room, burst = Room(), 0
    for each in records:
        match each.type:
            case "session_created":
                room = room_of(each.value)
            case "member_added" | "member_removed":
                room = room_after(room, each.value)
                burst = burst if room.members else 0
            case _ if room.members and each.seq not in gone:
                burst = burst_after(burst, each.value, in_turn=each.turn_id is not None)
            case _:
                pass
    tx.execute(SQL["set_burst"], record.session_id, burst)


def _mentioned(tx: Transaction, record: Record) -> None:
    mentioned: MemberMentioned = record.value
    insert_trigger(tx, record, "mention", mentioned.host_id)


def _forget(tx: Transaction, session_id: str) -> None:
    tx.execute(SQL["forget_burst"], session_id)


PROJECTION = Projection(
    name="rooms",
    tables=("bursts",),
    apply={
        "message": _said,
        "directive": _said,
        "member_removed": _removed,
        "session_rewound": _rewound,
        "member_mentioned": _mentioned,
    },
    forget=_forget,
)
