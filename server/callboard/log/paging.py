"""A page of the log, however large the log is and wherever in it the page lies.

Within a session, `pos` and `seq` rise together, so that a position is found among the session's events
by halving. A tree is the merge of its sessions; near the head it is quicker to walk the log itself.
"""

import heapq
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from attrs import frozen

from .record import SELECT
from .scope import Filter
from .sqlite import sqlite3

_CHUNK: Final = 64
_NEAR: Final = 2_000
"""Events that are walked through rather than looked up."""


@frozen(kw_only=True)
class Span:
    """Events with ``after < pos < before``; with `backwards` from the last one on."""

    after: int
    before: int | None
    backwards: bool


def rows(
    connection: "sqlite3.Connection", filter: Filter, span: Span, limit: int
) -> list[tuple[Any, ...]]:
    """The first `limit` rows of the span, from its beginning or, backwards, from its end."""
    sessions = _sessions(connection, filter, span)
    if sessions is None:
        return _walk(connection, filter, span, limit)
    merged = heapq.merge(
        *(_of_session(connection, each, filter, span) for each in sessions),
        key=lambda row: row[0],
        reverse=span.backwards,
    )
    return list(islice(merged, limit))


def count(connection: "sqlite3.Connection", filter: Filter, span: Span, limit: int) -> int:
    """How many rows the span has; `limit` if there are as many or more."""
    sessions = _sessions(connection, filter, span)
    if sessions is None:
        condition, parameters = _in_span(filter, span)
        return _counted(connection, condition, parameters, limit)
    found = 0
    for each in sessions:
        if found < limit:
            condition, parameters = _in_session(connection, each, filter, span)
            found += _counted(connection, condition, parameters, limit - found)
    return found


def _counted(
    connection: "sqlite3.Connection", condition: str, parameters: list[Any], limit: int
) -> int:
    return _value(
        connection,
        f"SELECT count(*) FROM (SELECT 1 FROM events WHERE {condition} LIMIT ?)",
        *parameters,
        limit,
    )


def _sessions(connection: "sqlite3.Connection", filter: Filter, span: Span) -> list[str] | None:
    """The sessions whose rows are to be found one by one; ``None`` where walking the log is quicker."""
    if filter.session_id is not None and filter.root_id is None:
        return [filter.session_id]
    if filter.root_id is None or _narrow(connection, span):
        return None
    return [
        row[0]
        for row in connection.execute(
            "SELECT session_id FROM heads WHERE root_id = ?", (filter.root_id,)
        )
        if filter.session_id in (None, row[0])
    ]


def _narrow(connection: "sqlite3.Connection", span: Span) -> bool:
    end = span.before
    if end is None:
        end = (connection.execute("SELECT max(pos) FROM events").fetchone()[0] or 0) + 1
    return end - span.after <= _NEAR


def _walk(
    connection: "sqlite3.Connection", filter: Filter, span: Span, limit: int
) -> list[tuple[Any, ...]]:
    condition, parameters = _in_span(filter, span)
    return connection.execute(
        f"{SELECT} WHERE {condition} ORDER BY pos {'DESC' if span.backwards else ''} LIMIT ?",
        (*parameters, limit),
    ).fetchall()


def _in_span(filter: Filter, span: Span) -> tuple[str, list[Any]]:
    where, parameters = filter.where()
    # the plus keeps the sessions' index out of it: that one would have to be sorted
    condition = f"{where.replace('session_id', '+session_id', 1)} AND pos > ?"
    if span.before is None:
        return condition, [*parameters, span.after]
    return f"{condition} AND pos < ?", [*parameters, span.after, span.before]


def _of_session(
    connection: "sqlite3.Connection", session_id: str, filter: Filter, span: Span
) -> Iterator[tuple[Any, ...]]:
    """A session's rows in a span, fetched as they are asked for."""
    condition, parameters = _in_session(connection, session_id, filter, span)
    cursor = connection.execute(
        f"{SELECT} WHERE {condition} ORDER BY seq {'DESC' if span.backwards else ''}", parameters
    )
    try:
        while chunk := cursor.fetchmany(_CHUNK):
            yield from chunk
    finally:
        cursor.close()


def _in_session(
    connection: "sqlite3.Connection", session_id: str, filter: Filter, span: Span
) -> tuple[str, list[Any]]:
    where, parameters = Filter(types=filter.types).where()
    condition = f"session_id = ? AND {where} AND seq > ?"
    found = [session_id, *parameters, _through(connection, session_id, span.after)]
    if span.before is None:
        return condition, found
    high = _through(connection, session_id, span.before - 1)
    return f"{condition} AND seq <= ?", [*found, high]


def _through(connection: "sqlite3.Connection", session_id: str, pos: int) -> int:
    """The last seq of a session that was written up to `pos`; 0 for none."""
    if pos <= 0:
        return 0
    low, high = (
        0,
        _value(connection, "SELECT max(seq) FROM events WHERE session_id = ?", session_id),
    )
    while low < high:
        middle = (low + high + 1) // 2
        written = _value(
            connection,
            "SELECT pos FROM events WHERE session_id = ? AND seq >= ? ORDER BY seq LIMIT 1",
            session_id,
            middle,
        )
        if written <= pos:
            low = middle
        else:
            high = middle - 1
    return low


def _value(connection: "sqlite3.Connection", sql: str, *parameters: Any) -> int:
    row = connection.execute(sql, parameters).fetchone()
    return 0 if row is None or row[0] is None else row[0]
