"""Turns, open tool calls and triggers, as tables that follow the log."""

from typing import Any

import orjson

from callboard_rpc.common import Failure, SessionId, TurnId, Usage
from callboard_rpc.convert import structure_lenient, unstructure
from callboard_rpc.events import (
    Ack,
    Directive,
    Message,
    PromptUpdated,
    SessionRewound,
    ToolCall,
    ToolResult,
    Trigger,
    TriggersDropped,
    TurnFinished,
    TurnParked,
    TurnResumed,
    TurnStarted,
)
from callboard_rpc.sessions import Turn

from ..log import sqlfile
from ..log.record import Record
from ..log.transaction import Projection, Transaction

SQL = sqlfile.load("callboard.turns")


def _json(value: Any) -> str | None:
    return None if value is None else orjson.dumps(unstructure(value)).decode()


def is_trigger(record: Record) -> bool:
    """Whether an event wakes its session: what is said to its agent, and every directive. Never an
    agent's own message (session-messaging 2)."""
    if record.type == "directive":
        return True
    return record.type == "message" and record.value.from_outside


def _on_message(tx: Transaction, record: Record) -> None:
    if is_trigger(record):
        said: Message = record.value
        tx.execute(
            SQL["insert_trigger"],
            record.session_id,
            record.seq,
            _kind_of(said),
            said.delivery or "queue",
            said.client_message_id,
            said.host_id,
        )


def _kind_of(said: Message) -> str:
    if said.delivered is not None:
        return said.delivered.kind
    return "peer" if said.author.kind == "peer" else "prompt"


def insert_trigger(tx: Transaction, record: Record, kind: str, host_id: str | None) -> None:
    """Makes a feature's event wake its session, as a trigger of `kind` that `host_id` is to run while it
    lives: for the feature's own projection."""
    tx.execute(SQL["insert_trigger"], record.session_id, record.seq, kind, "queue", None, host_id)


def _on_directive(tx: Transaction, record: Record) -> None:
    directive: Directive = record.value
    insert_trigger(tx, record, "directive", directive.host_id)


def _on_ack(tx: Transaction, record: Record) -> None:
    ack: Ack = record.value
    for seq in ack.admits:
        tx.execute(SQL["admit_trigger"], record.turn_id, record.session_id, seq)


def _on_dropped(tx: Transaction, record: Record) -> None:
    dropped: TriggersDropped = record.value
    for seq in dropped.seqs:
        tx.execute(SQL["drop_trigger"], record.session_id, seq)


def _on_updated(tx: Transaction, record: Record) -> None:
    updated: PromptUpdated = record.value
    tx.execute(SQL["update_trigger"], record.seq, record.session_id, updated.seq)


def _on_rewound(tx: Transaction, record: Record) -> None:
    """The turns stay as rows: their ids are never used again, nor are their indices."""
    rewound: SessionRewound = record.value
    tx.execute(SQL["rewind_turns"], record.session_id, rewound.before_turn_id)


def _on_started(tx: Transaction, record: Record) -> None:
    started: TurnStarted = record.value
    tx.execute(
        SQL["insert_turn"],
        started.turn_id,
        record.session_id,
        started.index,
        _json(started.trigger),
        started.model,
        record.at,
        record.seq,
    )


def _on_parked(tx: Transaction, record: Record) -> None:
    parked: TurnParked = record.value
    tx.execute(SQL["set_turn_state"], "parked", parked.turn_id)


def _on_resumed(tx: Transaction, record: Record) -> None:
    resumed: TurnResumed = record.value
    tx.execute(SQL["set_turn_state"], "running", resumed.turn_id)


def _on_finished(tx: Transaction, record: Record) -> None:
    finished: TurnFinished = record.value
    tx.execute(
        SQL["end_turn"],
        finished.outcome,
        record.at,
        _json(finished.usage),
        _json(finished.error),
        finished.final_text,
        finished.stop_reason,
        finished.turn_id,
    )


def _on_call(tx: Transaction, record: Record) -> None:
    call: ToolCall = record.value
    tx.execute(
        SQL["open_call"],
        call.call_id,
        record.session_id,
        record.turn_id,
        call.name,
        record.seq,
        call.effect,
    )


def _on_result(tx: Transaction, record: Record) -> None:
    result: ToolResult = record.value
    tx.execute(SQL["close_call"], result.call_id)


def _forget(tx: Transaction, session_id: str) -> None:
    # the owner's row stays, without an owner: should a session of this id ever be again (imported
    # anew), its fences go on from there, and a run from before can write nothing into it
    for statement in ("forget_turns", "forget_open_calls", "forget_triggers", "disown"):
        tx.execute(SQL[statement], session_id)


PROJECTION = Projection(
    name="turns",
    tables=("turns", "open_calls", "triggers"),
    apply={
        "message": _on_message,
        "directive": _on_directive,
        "ack": _on_ack,
        "triggers_dropped": _on_dropped,
        "prompt_updated": _on_updated,
        "session_rewound": _on_rewound,
        "turn_started": _on_started,
        "turn_parked": _on_parked,
        "turn_resumed": _on_resumed,
        "turn_finished": _on_finished,
        "tool_call": _on_call,
        "tool_result": _on_result,
    },
    forget=_forget,
)


def turn_of(row: tuple[Any, ...]) -> Turn:
    """A row of the ``turn`` queries as the contract's class."""
    (
        turn_id,
        session_id,
        index,
        state,
        trigger,
        model,
        started,
        ended,
        usage,
        error,
        text,
        stop,
    ) = row
    return Turn(
        turn_id=TurnId(turn_id),
        session_id=SessionId(session_id),
        index=index,
        state=state,
        trigger=structure_lenient(orjson.loads(trigger), Trigger),
        model=model,
        started_at=started,
        ended_at=ended,
        usage=None if usage is None else structure_lenient(orjson.loads(usage), Usage),
        error=None if error is None else structure_lenient(orjson.loads(error), Failure),
        final_text=text,
        stop_reason=stop,
    )
