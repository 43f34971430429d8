"""What follows the log: a fire is a trigger of its session; one that was dropped, or whose session is gone, has
ended. The tables of schedules are no projection, since what they hold is nowhere else."""

from callboard_rpc.events import ScheduleFired, TriggersDropped

from ..log.record import Record
from ..log.transaction import Projection, Transaction
from ..turns.projection import insert_trigger
from . import state
from .rows import SQL, kept_of, stands


def _on_fired(tx: Transaction, record: Record) -> None:
    fired: ScheduleFired = record.value
    insert_trigger(tx, record, "schedule", fired.host_id)


def _on_dropped(tx: Transaction, record: Record) -> None:
    dropped: TriggersDropped = record.value
    for seq in dropped.seqs:
        tx.execute(
            SQL["fire_dropped"], record.session_id, seq, dropped.reason or "it was taken back"
        )


def _forget(tx: Transaction, session_id: str) -> None:
    tx.execute(SQL["fires_of_gone"], session_id)
    end_around(tx, session_id, "deleted")


def end_around(tx: Transaction, session_id: str, what: str) -> None:
    """Switches off what runs in a session that is closed or deleted, and what its agent has made."""
    for row in tx.all(SQL["enabled_around"], session_id):
        schedule = kept_of(row).schedule
        stands(tx, state.disabled(schedule, f"its session {session_id} was {what}"))


PROJECTION = Projection(
    name="schedules",
    tables=(),
    apply={"schedule_fired": _on_fired, "triggers_dropped": _on_dropped},
    forget=_forget,
)
