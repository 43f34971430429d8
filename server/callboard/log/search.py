"""Full text over what a person said, an agent answered and a tool printed, and over notices for the person.

The index follows the log at a distance, off the append path; a query adds the few events that are
not indexed yet. Graph, mailbox and group events are never in it (coordination 8).
"""

import contextlib
import re
import threading
from collections.abc import Generator
from typing import Any

import orjson
from attrs import frozen

from .excerpt import Excerpts
from .record import SELECT, Record
from .sqlite import sqlite3
from .transaction import SQL, Transaction

INDEXED_TYPES = ("message", "directive", "tool_result", "summary", "prompt_updated", "notice")
_SAID = ("message", "prompt_updated")
_BATCH = 500
_BATCH_CHARS = 1024 * 1024
"""Text that is indexed in one transaction: nobody else can write meanwhile, and all of it is in the WAL."""
_STEPS = 2_000
"""Instructions of SQLite between two looks at whether to stop."""
_MAX_TERMS = 64
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
    if type in _SAID:
        blocks: list[dict[str, Any]] = value.get("content", [])
        text = "\n".join(
            block["text"]
            for block in blocks
            if block.get("type") in ("text", "resource") and isinstance(block.get("text"), str)
        )
    elif type == "notice":
        parts = (value.get("title"), value.get("description"))
        text = "\n".join(part for part in parts if isinstance(part, str))
    else:
        text = str(value.get("text", ""))
    return text[:_INDEXED_CHARS] or None


def match_expression(query: str) -> str | None:
    """`query` for FTS5: every word must occur; ``word*`` is a prefix of three letters or more.

    Split at what is neither a letter, a digit nor ``_``; each word quoted, so that nothing in a
    query is an operator. None when there is no word in it. Words beyond the 64th are not looked at.
    """
    terms = _terms(query)
    return " AND ".join(f'"{word}"*' if begins else f'"{word}"' for word, begins in terms) or None


def _terms(query: str) -> list[tuple[str, bool]]:
    """The words of a query, and whether each is only a beginning."""
    terms: list[tuple[str, bool]] = []
    for match in _WORD.finditer(query):
        word, star = match.groups()
        if any(c.isalnum() for c in word):  # the index holds no bare underscores and accents
            terms.append((word, bool(star) and len(word) >= 3))
        if len(terms) == _MAX_TERMS:
            break
    return terms


_WORD = re.compile(r"([\w\u0300-\u036f]+)(\*?)")
"""Accents that stand as characters of their own are part of their word, as they are in the index."""


def index_batch(transaction: Transaction) -> bool:
    """Indexes the next events; True while there are more. Runs in the writer's thread."""
    through: int = transaction.value(SQL["indexed_through"])
    rows = transaction.all(SQL["to_index"], through, _BATCH)
    left = _BATCH_CHARS
    for pos, kind, data in rows:
        text = searchable_text(kind, data)
        if text is not None:
            transaction.execute(SQL["insert_search_row"], pos, text)
            transaction.bytes += 2 * len(text)
            left -= len(text)
        if left <= 0 and pos != rows[-1][0]:
            transaction.execute(SQL["set_indexed_through"], pos)
            return True
    if rows:
        transaction.execute(SQL["set_indexed_through"], rows[-1][0])
    return len(rows) == _BATCH


@contextlib.contextmanager
def _stoppable(connection: "sqlite3.Connection", stop: threading.Event) -> Generator[None]:
    """Lets `stop` end the statements of `connection`, from any thread and at any time."""
    connection.set_progress_handler(lambda: int(stop.is_set()), _STEPS)
    try:
        yield
    finally:
        connection.set_progress_handler(None, 0)


def find(
    connection: "sqlite3.Connection",
    query: str,
    *,
    session_id: str | None,
    before: int,
    limit: int,
    stop: threading.Event,
) -> list[Hit]:
    """The newest `limit` matches with ``pos < before``, newest first. Ends soon after `stop` is set,
    with `sqlite3.OperationalError`."""
    expression = match_expression(query)
    if expression is None or limit <= 0:
        return []
    with _stoppable(connection, stop), _one_state(connection):
        through: int = connection.execute(SQL["indexed_through"]).fetchone()[0]
        found: list[Record] = []
        while len(found) < limit:
            rows = _unindexed(connection, through, session_id, before)
            if not rows:
                break
            found += _matching(rows, expression, stop)
            before = rows[-1][0]
        rest = limit - len(found)
        if rest > 0:
            statement = SQL["search_session"] if session_id else SQL["search"]
            parameters = (
                expression,
                min(before, through + 1),
                *((session_id,) if session_id else ()),
                rest,
            )
            rows = connection.execute(statement, parameters).fetchall()
            found += _records(connection, [pos for (pos,) in rows])
    return _hits(found[:limit], Excerpts(_terms(query)), stop)


@contextlib.contextmanager
def _one_state(connection: "sqlite3.Connection") -> Generator[None]:
    """All reads see the same state of the store; the indexer may go on meanwhile."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


def _records(connection: "sqlite3.Connection", positions: list[int]) -> list[Record]:
    records: list[Record] = []
    for start in range(0, len(positions), _BATCH):
        batch = positions[start : start + _BATCH]
        found = {
            row[0]: Record.of(row)
            for row in connection.execute(
                f"{SELECT} WHERE pos IN ({','.join('?' * len(batch))})", batch
            )
        }
        records += [found[pos] for pos in batch if pos in found]
    return records


def _hits(records: list[Record], excerpts: Excerpts, stop: threading.Event) -> list[Hit]:
    hits: list[Hit] = []
    for record in records:
        if stop.is_set():
            raise sqlite3.OperationalError("interrupted")
        text = searchable_text(record.type, record.data)
        hits.append(Hit(record=record, snippet=excerpts.of(text or "")))
    return hits


def _unindexed(
    connection: "sqlite3.Connection", through: int, session_id: str | None, before: int
) -> list[tuple[Any, ...]]:
    """The newest events below `before` that the index does not hold yet."""
    only = "AND session_id = ?" if session_id else ""
    return connection.execute(
        f"{SELECT} WHERE pos > ? AND pos < ? {only} "
        f"AND type IN ({','.join('?' * len(INDEXED_TYPES))}) "
        "ORDER BY pos DESC LIMIT ?",
        (through, before, *((session_id,) if session_id else ()), *INDEXED_TYPES, _BATCH),
    ).fetchall()


def _matching(rows: list[tuple[Any, ...]], expression: str, stop: threading.Event) -> list[Record]:
    """Those of `rows` that match, in their order."""
    # an index of its own, so that both halves of the answer split words in the same way
    index = sqlite3.connect(":memory:")
    try:
        with _stoppable(index, stop):
            index.execute(
                "CREATE VIRTUAL TABLE search USING fts5 "
                "(text, tokenize = 'unicode61 remove_diacritics 2')"
            )
            records = {row[0]: Record.of(row) for row in rows}
            for pos, record in records.items():
                text = searchable_text(record.type, record.data)
                if text is not None:
                    index.execute(SQL["insert_search_row"], (pos, text))
            matches = index.execute(
                "SELECT rowid FROM search WHERE search MATCH ? ORDER BY rowid DESC", (expression,)
            ).fetchall()
    finally:
        index.close()
    return [records[pos] for (pos,) in matches]
