"""The tables of one group, made anew from the log: what every host does with each group when it begins.

The rows are those that the projection has made, event by event: but a long history is reduced first
(`state.replay`), and only what came of it is written.
"""

from collections.abc import Iterator

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
from .projection import PROJECTION, SQL, forget_group, row_of
from .state import replay


def rebuild(tx: Transaction, root_id: str) -> None:
    """No truth lives in the rows alone (coordination 86)."""
    forget_group(tx, root_id)
    beside = _Beside(root_id=SessionId(root_id))
    records = (Record.of(row) for row in tx.each(SQL["events_of_root"], root_id))
    state = replay(
        ((record.value, record.at) for record in beside.seen(records)), SessionId(root_id)
    )
    if state is not None:
        tx.execute(SQL["insert_group"], root_id, state.group_id, state.name, state.created_at)
        tx.execute_many(
            SQL["insert_member"], ((root_id, each, beside.joined[each]) for each in state.members)
        )
        tx.execute_many(
            SQL["insert_task"], (row_of(root_id, task) for task in state.tasks.values())
        )
        beside.write(tx)
    for row in tx.all(SQL["deliveries_of_root"], root_id):
        record = Record.of(row)
        PROJECTION.apply[record.type](tx, record)
    tx.execute(SQL["forget_the_deleted"], root_id)


@define(kw_only=True)
class _Beside:
    """What the rows hold beside the reduced state: where members joined, and messages with whom they are for
    and where the root has read them."""

    root_id: SessionId
    joined: dict[SessionId, int] = field(factory=dict[SessionId, int])
    _begun: bool = False
    _messages: dict[MessageId, Record] = field(factory=dict[MessageId, Record])
    _read: dict[MessageId, int] = field(factory=dict[MessageId, int])

    def seen(self, records: Iterator[Record]) -> Iterator[Record]:
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
                        self._read.setdefault(message_id, record.seq)
                case _:
                    pass
            yield record

    def write(self, tx: Transaction) -> None:
        tx.execute_many(SQL["insert_message"], map(self._row_of, self._messages.values()))
        tx.execute_many(
            SQL["insert_delivery"],
            (
                (recipient, record.pos, self.root_id, message_id)
                for message_id, record in self._messages.items()
                for recipient in record.value.recipients
            ),
        )
        tx.execute_many(
            SQL["mark_delivered"],
            ((seq, self.root_id, message_id) for message_id, seq in self._read.items()),
        )

    def _row_of(self, record: Record) -> tuple[str | int, ...]:
        event: GroupMessageQueued = record.value
        at, pos = record.at, record.pos
        return self.root_id, event.message_id, pos, event.sender, event.to, event.text, at
