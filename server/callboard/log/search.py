"""Full text over what a person said, an agent answered and a tool printed.

The index follows the log at a distance, off the append path; a query adds the few events that are
not indexed yet. Graph, mailbox and group events are never in it (coordination 8).
"""

import re
from typing import Any

import orjson
from attrs import frozen

from .record import SELECT, Record
from .sqlite import sqlite3
from .transaction import SQL, Transaction

INDEXED_TYPES = ("message", "directive", "tool_result", "summary")
_BATCH = 500
_TAIL = 5_000
_INDEXED_CHARS = 256 * 1024


@frozen(kw_only=True)
class Hit:
    """A matching event and the words around the match."""

    record: Record
    snippet: str


def searchable_text(type: str, data: str) -> str | None:
    """The text of an event that a search can find, or None when it holds none."""
    if type not in INDEXED_TYPES:
        return None
    value: dict[str, Any] = orjson.loads(data)
    if type == "message":
        blocks: list[dict[str, Any]] = value.get("content", [])
        text = "\n".join(
            block["text"]
            for block in blocks
            if block.get("type") in ("text", "resource") and isinstance(block.get("text"), str)
        )
    else:
        text = str(value.get("text", ""))
    return text[:_INDEXED_CHARS] or None


def match_expression(query: str) -> str | None:
    """`query` for FTS5: every word must occur; ``word*`` is a prefix of three letters or more.

    Split at what is neither a letter, a digit nor ``_``; each word quoted, so that nothing in a
    query is an operator. None when there is no word in it.
    """
    terms: list[str] = []
    for match in re.finditer(r"(\w+)(\*?)", query):
        word, star = match.groups()
        terms.append(f'"{word}"*' if star and len(word) >= 3 else f'"{word}"')
    return " AND ".join(terms) or None


def index_batch(transaction: Transaction) -> bool:
    """Indexes the next events; True while there are more. Runs in the writer's thread."""
    through: int = transaction.value(SQL["indexed_through"])
    rows = transaction.all(SQL["to_index"], through, _BATCH)
    for pos, kind, data in rows:
        text = searchable_text(kind, data)
        if text is not None:
            transaction.execute(SQL["insert_search_row"], pos, text)
    if rows:
        transaction.execute(SQL["set_indexed_through"], rows[-1][0])
    return len(rows) == _BATCH


def find(
    connection: "sqlite3.Connection",
    query: str,
    *,
    session_id: str | None,
    before: int,
    limit: int,
) -> list[Hit]:
    """The newest `limit` matches with ``pos < before``, newest first."""
    expression = match_expression(query)
    if expression is None:
        return []
    through: int = connection.execute(SQL["indexed_through"]).fetchone()[0]
    hits = _find_unindexed(connection, expression, through, session_id, before)
    rest = limit - len(hits)
    if rest > 0:
        statement = SQL["search_session"] if session_id else SQL["search"]
        parameters = (expression, before, *((session_id,) if session_id else ()), rest)
        hits += _with_records(connection, connection.execute(statement, parameters).fetchall())
    return hits[:limit]


def _with_records(connection: "sqlite3.Connection", rows: list[tuple[int, str]]) -> list[Hit]:
    if not rows:
        return []
    marks = ",".join("?" * len(rows))
    found = {
        row[0]: Record.of(row)
        for row in connection.execute(f"{SELECT} WHERE pos IN ({marks})", [pos for pos, _ in rows])
    }
    return [Hit(record=found[pos], snippet=snippet) for pos, snippet in rows if pos in found]


def _find_unindexed(
    connection: "sqlite3.Connection",
    expression: str,
    through: int,
    session_id: str | None,
    before: int,
) -> list[Hit]:
    only = "AND session_id = ?" if session_id else ""
    rows = connection.execute(
        f"{SELECT} WHERE pos > ? AND pos < ? {only} AND type IN (?, ?, ?, ?) "
        "ORDER BY pos DESC LIMIT ?",
        (through, before, *((session_id,) if session_id else ()), *INDEXED_TYPES, _TAIL),
    ).fetchall()
    if not rows:
        return []
    # an index of its own, so that both halves of the answer split words in the same way
    tail = sqlite3.connect(":memory:")
    try:
        tail.execute(
            "CREATE VIRTUAL TABLE search USING fts5 "
            "(text, tokenize = 'unicode61 remove_diacritics 2')"
        )
        records = {row[0]: Record.of(row) for row in rows}
        for pos, record in records.items():
            text = searchable_text(record.type, record.data)
            if text is not None:
                tail.execute(SQL["insert_search_row"], (pos, text))
        matches = tail.execute(
            "SELECT rowid, snippet(search, 0, '', '', '…', 24) FROM search WHERE search MATCH ? "
            "ORDER BY rowid DESC",
            (expression,),
        ).fetchall()
    finally:
        tail.close()
    return [Hit(record=records[pos], snippet=snippet) for pos, snippet in matches]
