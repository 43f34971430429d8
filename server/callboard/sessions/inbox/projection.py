"""Receipts, as they follow the log: an accepted delivery is in the history once, and that is the proof.

Whatever puts a delivery into the log (a turn's boundary, an acknowledged claim, an import) has its
receipt written and its row taken out of the inbox by the event itself, in the same transaction.
"""

from callboard_rpc.events import (
    AgentNotificationDelivered,
    Delivered,
    DeliveriesDropped,
    Message,
)

from ...log import sqlfile
from ...log.record import Record
from ...log.transaction import Projection, Transaction

SQL = sqlfile.load("callboard.sessions.inbox")


_LAST = 1 << 53
"""No inbox comes as far; an imported file may say that one did, and the next delivery must have a number."""


def _settle(tx: Transaction, record: Record, delivered: Delivered, state: str) -> None:
    tx.execute(
        SQL["settle"],
        record.session_id,
        delivered.delivery_id,
        max(0, min(delivered.generation, _LAST)),
        delivered.digest,
        state,
        record.seq,
    )
    tx.execute(SQL["take_out"], record.session_id, delivered.delivery_id)


def _on_message(tx: Transaction, record: Record) -> None:
    message: Message = record.value
    if message.delivered is not None:
        for each in (message.delivered, *message.joined):
            _settle(tx, record, each, "admitted")


def _on_notified(tx: Transaction, record: Record) -> None:
    notified: AgentNotificationDelivered = record.value
    _settle(tx, record, notified.delivered, "admitted")


def _on_dropped(tx: Transaction, record: Record) -> None:
    dropped: DeliveriesDropped = record.value
    for each in dropped.deliveries:
        _settle(tx, record, each, "dropped")


def _forget(tx: Transaction, session_id: str) -> None:
    for statement in ("forget_inbox", "forget_watermarks", "forget_receipts", "forget_claims"):
        tx.execute(SQL[statement], session_id)


PROJECTION = Projection(
    name="inbox",
    tables=("receipts",),
    apply={
        "message": _on_message,
        "deliveries_dropped": _on_dropped,
        "agent_notification_delivered": _on_notified,
    },
    forget=_forget,
)
