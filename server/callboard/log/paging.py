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
    if filter.session_id is not None and filter.root_id is None:
        return list(islice(_of_session(connection, filter.session_id, filter, span), limit))
    if filter.root_id is None or _narrow(connection, span):
        return _walk(connection, filter, span, limit)
    sessions = [
        row[0]
        for row in connection.execute(
            "SELECT session_id FROM heads WHERE root_id = ?", (filter.root_id,)
        )
        if filter.session_id in (None, row[0])
    ]
    merged = heapq.merge(
        *(_of_session(connection, each, filter, span) for each in sessions),
        key=lambda row: row[0],
        reverse=span.backwards,
    )
    return list(islice(merged, limit))


def _narrow(connection: "sqlite3.Connection", span: Span) -> bool:
    end = span.before
    if end is None:
        end = (connection.execute("SELECT max(pos) FROM events").fetchone()[0] or 0) + 1
    return end - span.after <= _NEAR


def _walk(
    connection: "sqlite3.Connection", filter: Filter, span: Span, limit: int
) -> list[tuple[Any, ...]]:
    where, parameters = filter.where()
    upper = "" if span.before is None else "AND pos < ?"
    return connection.execute(
        # the plus keeps the sessions' index out of it: that one would have to be sorted
        f"{SELECT} WHERE {where.replace('session_id', '+session_id', 1)} AND pos > ? {upper} "
        f"ORDER BY pos {'DESC' if span.backwards else ''} LIMIT ?",
        (*parameters, span.after, *(() if span.before is None else (span.before,)), limit),
    ).fetchall()


def _of_session(
    connection: "sqlite3.Connection", session_id: str, filter: Filter, span: Span
) -> Iterator[tuple[Any, ...]]:
    """A session's rows in a span, fetched as they are asked for."""
    where, parameters = Filter(types=filter.types).where()
    low = _through(connection, session_id, span.after)
    high = None if span.before is None else _through(connection, session_id, span.before - 1)
    upper = "" if high is None else "AND seq <= ?"
    cursor = connection.execute(
        f"{SELECT} WHERE session_id = ? AND {where} AND seq > ? {upper} "
        f"ORDER BY seq {'DESC' if span.backwards else ''}",
        (session_id, *parameters, low, *(() if high is None else (high,))),
    )
    try:
        while chunk := cursor.fetchmany(_CHUNK):
            yield from chunk
    finally:
        cursor.close()


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
