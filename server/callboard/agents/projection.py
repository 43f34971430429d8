"""The tables of agents, of their questions, and of what they say to each other, as they follow the log."""

import functools
import hashlib
from typing import Any

import orjson

from callboard_rpc.convert import structure_lenient, unstructure
from callboard_rpc.events import (
    AgentAsked,
    AgentInterrupted,
    AgentInterruptRequested,
    AgentMessageQueued,
    AgentReplied,
    AgentReport,
)

from ..log import sqlfile
from ..log.record import Record
from ..log.transaction import Projection, Transaction
from ..turns.boundary import Query
from .state import AgentState, apply, spawned

SQL = sqlfile.load("callboard.agents")


def _dump(value: Any) -> str | None:
    return None if value is None else orjson.dumps(unstructure(value)).decode()


@functools.lru_cache(maxsize=512)
def _read(text: str, kind: type[Any]) -> Any:
    """Values never change, and a turn looks at its agent a dozen times."""
    return structure_lenient(orjson.loads(text), kind)


def _load(text: str | None, kind: type[Any]) -> Any:
    return None if text is None else _read(text, kind)


def agent_of(row: tuple[Any, ...]) -> AgentState:
    """A row of the ``agent`` queries."""
    (
        agent_id, root_id, parent_id, name, agent_type, depth_left, message_allow, status, report,
        interrupted, pending, winding, deadline_at, closing,
    ) = row  # fmt: skip
    return AgentState(
        agent_id=agent_id,
        root_id=root_id,
        parent_id=parent_id,
        name=name,
        agent_type=agent_type,
        depth_left=depth_left,
        message_allow=tuple(orjson.loads(message_allow)),
        status=status,
        report=_load(report, AgentReport),
        interrupted=_load(interrupted, AgentInterrupted),
        pending=_load(pending, AgentInterruptRequested),
        winding=_load(winding, AgentInterruptRequested),
        deadline_at=deadline_at,
        closing=bool(closing),
    )


def find(query: Query, agent_id: str) -> AgentState | None:
    """The agent of this id, by `Transaction.all` or `Log.glance`."""
    rows = query(SQL["agent"], agent_id)
    return agent_of(rows[0]) if rows else None


def find_interrupted(query: Query, agent_id: str) -> AgentState | None:
    """The agent of this id, if an interrupt waits for it, or it winds down for one."""
    rows = query(SQL["interrupted_agent"], agent_id)
    return agent_of(rows[0]) if rows else None


def _keep(tx: Transaction, agent: AgentState, pos: int) -> None:
    tx.execute(
        SQL["keep"],
        agent.agent_id,
        agent.root_id,
        agent.parent_id,
        agent.name,
        agent.agent_type,
        agent.depth_left,
        orjson.dumps(agent.message_allow).decode(),
        agent.status,
        _dump(agent.report),
        _dump(agent.interrupted),
        _dump(agent.pending),
        _dump(agent.winding),
        agent.deadline_at,
        int(agent.closing),
        pos,
    )


def _on_spawned(tx: Transaction, record: Record) -> None:
    _keep(tx, spawned(record.value), record.pos)


def _on_event(tx: Transaction, record: Record) -> None:
    before = find(tx.all, record.session_id)
    if before is not None:
        after = apply(before, record.value)
        if after != before:
            _keep(tx, after, record.pos)


def _on_asked(tx: Transaction, record: Record) -> None:
    asked: AgentAsked = record.value
    tx.execute(
        SQL["insert_ask"],
        asked.ask_id,
        record.session_id,
        asked.text,
        record.at,
        asked.expires_at,
        int(asked.expects_reply),
        record.turn_id,
        asked.call_id,
    )


def _on_replied(tx: Transaction, record: Record) -> None:
    replied: AgentReplied = record.value
    tx.execute(
        SQL["settle_ask"],
        replied.outcome,
        replied.text,
        _dump(replied.author),
        replied.ask_id,
        record.session_id,
    )


def digest_of(text: str) -> str:
    """What tells whether two messages say the same."""
    return hashlib.sha256(text.encode()).hexdigest()


def _on_queued(tx: Transaction, record: Record) -> None:
    queued: AgentMessageQueued = record.value
    if queued.kind == "sibling":
        tx.execute(
            SQL["insert_sibling_message"],
            record.session_id,
            record.seq,
            queued.author.id or "",
            record.root_id or record.session_id,
            digest_of(queued.text),
        )


def _forget(tx: Transaction, session_id: str) -> None:
    tx.execute(SQL["forget_agent"], session_id)
    tx.execute(SQL["forget_asks"], session_id)
    tx.execute(SQL["forget_sibling_messages"], session_id)


PROJECTION = Projection(
    name="agents",
    tables=("agents", "asks", "sibling_messages"),
    apply={
        "agent_spawned": _on_spawned,
        "agent_status_changed": _on_event,
        "agent_report_created": _on_event,
        "agent_interrupt_requested": _on_event,
        "agent_interrupt_consumed": _on_event,
        "agent_interrupted": _on_event,
        "agent_close_requested": _on_event,
        "agent_closed": _on_event,
        "session_closed": _on_event,
        "triggers_dropped": _on_event,
        "agent_message_queued": _on_queued,
        "agent_asked": _on_asked,
        "agent_replied": _on_replied,
    },
    forget=_forget,
)
