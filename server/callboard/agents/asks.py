"""Questions of a child to its parent, and their one end (seed 004, 2)."""

from callboard_rpc.common import AskId
from callboard_rpc.events import AgentReplied

from ..log.transaction import Transaction
from ..turns.reservation import SYSTEM
from .projection import SQL


def expire(tx: Transaction, now: str) -> None:
    """Settles the questions that nobody has answered in time: whoever asked goes on without."""
    for ask_id, agent_id in tx.all(SQL["overdue_asks"], now):
        tx.append(agent_id, AgentReplied(ask_id=AskId(ask_id), outcome="timed_out"), actor=SYSTEM)
