"""The table of sessions, as it follows the log."""

from typing import Any

import orjson

from callboard_rpc.common import Usage
from callboard_rpc.convert import structure_lenient, unstructure
from callboard_rpc.events import (
    ModeChanged,
    ModelChanged,
    SessionUpdated,
    Summary,
    TurnFinished,
)

from ..log import sqlfile
from ..log.record import Record
from ..log.transaction import Projection, Transaction
from ..turns.boundary import Query
from ..turns.usage import add
from .state import Room, created_by, name_of, room_after, room_of, title_from

SQL = sqlfile.load("callboard.sessions")


def _dump(value: Any) -> str | None:
    return None if value is None else orjson.dumps(value).decode()


def _created(tx: Transaction, record: Record) -> None:
    created = created_by(record.value)
    assert created is not None
    tx.execute(
        SQL["insert_session"],
        record.session_id,
        created.root_id,
        created.parent_id,
        created.depth,
        created.cwd,
        _dump(list(created.additional_directories)),
        created.profile,
        created.mode,
        created.model,
        created.title,
        _dump(created.metadata),
        record.at,
        record.at,
        record.pos,
        _dump(None if created.forked_from is None else unstructure(created.forked_from)),
        name_of(record.value),
        *_row_of(room_of(created)),
    )


def _row_of(room: Room) -> tuple[Any, ...]:
    return orjson.dumps(room.members).decode(), room.host, room.burst_budget


def find_room(query: Query, session_id: str) -> Room:
    """Who takes part in a session, by `Transaction.all` or `Log.glance`; an empty room for one that is not
    there."""
    rows = query(SQL["room"], session_id)
    if not rows:
        return Room()
    members, host, budget, _ = rows[0]
    return Room(members=tuple(orjson.loads(members)), host=host, burst_budget=budget)


def _room(tx: Transaction, record: Record) -> None:
    room = room_after(find_room(tx.all, record.session_id), record.value)
    tx.execute(SQL["set_room"], *_row_of(room), record.session_id)
    _touch(tx, record)


def _rewound(tx: Transaction, record: Record) -> None:
    """What was spent stays spent; only the size of the context is again that of before."""
    tx.execute(SQL["rewound_to"], record.session_id)
    known = tx.value(SQL["usage"], record.session_id)
    if known is not None:
        last = tx.value(SQL["last_turn_usage"], record.session_id)
        context = None if last is None else orjson.loads(last).get("contextTokens")
        usage = {**orjson.loads(known), "contextTokens": context}
        total = structure_lenient(usage, Usage)
        tx.execute(SQL["set_usage"], _dump(unstructure(total)), record.session_id)
    _touch(tx, record)


def _touch(tx: Transaction, record: Record) -> None:
    tx.execute(SQL["touch"], record.at, record.pos, record.session_id)


def _message(tx: Transaction, record: Record) -> None:
    title = title_from(record.value)
    if title is not None:
        tx.execute(SQL["title_if_none"], title, record.session_id)
    _touch(tx, record)


def _updated(tx: Transaction, record: Record) -> None:
    updated: SessionUpdated = record.value
    for key, value in updated.changes.items():
        match key:
            case "title":
                tx.execute(SQL["set_title"], value, record.session_id)
            case "pinned":
                tx.execute(SQL["set_pinned"], int(value), record.session_id)
            case "metadata":
                tx.execute(SQL["set_metadata"], _dump(value), record.session_id)
            case "burstBudget":
                _room(tx, record)
            case _:
                pass
    _touch(tx, record)


def _mode(tx: Transaction, record: Record) -> None:
    changed: ModeChanged = record.value
    tx.execute(SQL["set_mode"], changed.mode, record.session_id)
    _touch(tx, record)


def _model(tx: Transaction, record: Record) -> None:
    changed: ModelChanged = record.value
    tx.execute(SQL["set_model"], changed.model, record.session_id)
    _touch(tx, record)


def _archived(tx: Transaction, record: Record) -> None:
    tx.execute(SQL["set_archived"], int(record.type == "session_archived"), record.session_id)
    _touch(tx, record)


def _closed(tx: Transaction, record: Record) -> None:
    tx.execute(SQL["set_closed"], record.session_id)
    _touch(tx, record)


def _turn_started(tx: Transaction, record: Record) -> None:
    tx.execute(SQL["count_turn"], record.session_id)
    _touch(tx, record)


def _turn_finished(tx: Transaction, record: Record) -> None:
    finished: TurnFinished = record.value
    tx.execute(SQL["finish"], finished.outcome, finished.answered_through, record.session_id)
    _spent(tx, record.session_id, finished.usage)
    _touch(tx, record)


def _summarised(tx: Transaction, record: Record) -> None:
    """What a summary cost is no turn's usage, but the session's."""
    summary: Summary = record.value
    if summary.usage is not None:
        _spent(tx, record.session_id, summary.usage)
    _touch(tx, record)


def _spent(tx: Transaction, session_id: str, usage: Usage) -> None:
    known = tx.value(SQL["usage"], session_id)
    total = Usage() if known is None else structure_lenient(orjson.loads(known), Usage)
    tx.execute(SQL["set_usage"], _dump(unstructure(add(total, usage))), session_id)


def _forget(tx: Transaction, session_id: str) -> None:
    tx.execute(SQL["forget"], session_id)


PROJECTION = Projection(
    name="sessions",
    tables=("sessions",),
    apply={
        "session_created": _created,
        "agent_spawned": _created,
        "session_forked": _touch,
        "session_rewound": _rewound,
        "session_updated": _updated,
        "session_archived": _archived,
        "session_unarchived": _archived,
        "session_closed": _closed,
        "member_added": _room,
        "member_removed": _room,
        "room_host_changed": _room,
        "mode_changed": _mode,
        "model_changed": _model,
        "message": _message,
        "directive": _touch,
        "summary": _summarised,
        "turn_started": _turn_started,
        "turn_finished": _turn_finished,
    },
    forget=_forget,
)
