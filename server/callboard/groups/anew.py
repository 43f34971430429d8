"""The tables of one group as the log tells them: what every host compares with each group when it begins, and
makes anew where they differ.

The rows are those that the projection has made, event by event: but a long history is reduced first
(`state.replay`), and only what came of it is compared and written. Tables that are right, as they are after
every ordinary end, cost no write: a store without room for one is opened and read like any other.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import define, field

from callboard_rpc.common import MessageId, SessionId
from callboard_rpc.events import (
    AgentGroupCreated,
    AgentGroupMemberJoined,
    GroupMessageDelivered,
    GroupMessageQueued,
)

from ..log.record import Record
from ..log.transaction import Transaction
from ..turns.boundary import Query
from .projection import SQL, forget_group, row_of
from .state import GroupState, replay

Row: TypeAlias = tuple[Any, ...]
Tables: TypeAlias = Mapping[str, Sequence[Row]]
"""All rows of a group, by what the queries call their table."""

_AT_ONCE = 1_000
"""Events that are read at once."""
_KINDS = ("group", "members", "tasks", "messages", "deliveries")


def rebuild(tx: Transaction, root_id: str) -> None:
    """No truth lives in the rows alone (coordination 86)."""
    told = tables_told(tx.all, root_id)
    forget_group(tx, root_id)
    for kind in _KINDS:
        tx.execute_many(SQL[f"put_{kind}"], told[kind])


def is_right(query: Query, root_id: str) -> bool:
    """Whether the tables of a group say what the log tells of it."""
    told = tables_told(query, root_id)
    # no two rows of a table are the same
    return all(set(told[kind]) == set(query(SQL[f"all_{kind}"], root_id)) for kind in _KINDS)


def tables_told(query: Query, root_id: str) -> Tables:
    """The rows that follow from the log, whatever the tables hold."""
    beside = _Beside(root_id=SessionId(root_id))
    state = replay(
        ((record.value, record.at) for record in beside.seen(_events(query, root_id))),
        SessionId(root_id),
    )
    if state is None:
        return dict.fromkeys(_KINDS, ())
    return beside.tables(query, state)


def _events(query: Query, root_id: str) -> Iterator[Record]:
    after = 0
    while rows := query(SQL["events_of_root"], root_id, after, _AT_ONCE):
        yield from map(Record.of, rows)
        after = rows[-1][2]


@define(kw_only=True)
class _Beside:
    """What the rows hold beside the reduced state: where members joined, and messages with whom they are for
    and where each has read them."""

    root_id: SessionId
    joined: dict[SessionId, int] = field(factory=dict[SessionId, int])
    _begun: bool = False
    _messages: dict[MessageId, Record] = field(factory=dict[MessageId, Record])
    _read: dict[tuple[str, MessageId], int] = field(factory=dict[tuple[str, MessageId], int])

    def seen(self, records: Iterable[Record]) -> Iterator[Record]:
        """The same records, each noted as it passes."""
        for record in records:
            match record.value:
                case AgentGroupCreated():
                    self._begun = True
                case AgentGroupMemberJoined(agent_id=agent_id) if self._begun:
                    self.joined.setdefault(agent_id, record.pos)
                case GroupMessageQueued(message_id=message_id) if self._begun:
                    self._messages.setdefault(message_id, record)
                case GroupMessageDelivered(message_id=message_id):
                    # what was read before it was there, in a file that somebody wrote, was not read
                    if message_id in self._messages:
                        self._note_read(record)
                case _:
                    pass
            yield record

    def _note_read(self, record: Record) -> None:
        self._read.setdefault((record.session_id, record.value.message_id), record.seq)

    def tables(self, query: Query, state: GroupState) -> Tables:
        for row in query(SQL["deliveries_of_root"], self.root_id):
            self._note_read(Record.of(row))
        return {
            "group": [(self.root_id, state.group_id, state.name, state.created_at)],
            "members": [(self.root_id, each, self.joined[each]) for each in state.members],
            "tasks": [row_of(self.root_id, task) for task in state.tasks.values()],
            "messages": [self._row_of(record) for record in self._messages.values()],
            "deliveries": list(self._deliveries(query)),
        }

    def _row_of(self, record: Record) -> Row:
        event: GroupMessageQueued = record.value
        at, pos = record.at, record.pos
        return self.root_id, event.message_id, pos, event.sender, event.to, event.text, at

    def _deliveries(self, query: Query) -> Iterator[Row]:
        """Not to sessions of other trees, which an imported log may name, nor what waited for one that was
        deleted since. What waits for one that is still to be imported stays."""
        gone_until: dict[SessionId, int | None] = {}
        for message_id, record in self._messages.items():
            for recipient in dict.fromkeys(record.value.recipients):
                if recipient not in gone_until:
                    gone_until[recipient] = self._gone_until(query, recipient)
                until = gone_until[recipient]
                if until is not None and record.pos > until:
                    seq = self._read.get((recipient, message_id))
                    yield recipient, record.pos, self.root_id, message_id, seq

    def _gone_until(self, query: Query, recipient: str) -> int | None:
        """The place up to which nothing waits for it any more; None for one of another tree."""
        root_id, deleted_at = query(SQL["recipient"], recipient)[0]
        return None if root_id not in (None, self.root_id) else deleted_at or 0
