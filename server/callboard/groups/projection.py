"""The tables of groups, as they follow the log, event by event."""

from collections.abc import Collection, Iterable
from typing import Any

import orjson
from attrs import frozen

from callboard_rpc.common import GroupId, SessionId, TaskId
from callboard_rpc.events import (
    AgentGroupCreated,
    AgentGroupMemberJoined,
    GroupMessageDelivered,
    GroupMessageQueued,
    GroupTaskClaimed,
    GroupTaskCreated,
    GroupTaskReleased,
    GroupTaskStatusChanged,
)
from callboard_rpc.groups import GroupTask

from ..log import sqlfile
from ..log.record import Record
from ..log.transaction import Projection, Transaction
from ..turns.boundary import Query
from .state import changes, created, follows

SQL = sqlfile.load("callboard.groups")

# --- rows ---------------------------------------------------------------------------------------


def task_of(row: tuple[Any, ...], completed: Collection[str] | None = None) -> GroupTask:
    """A row of the ``task`` queries. What follows from other tasks is in it where it is told which of them are
    `completed` (as `state.seen` has it)."""
    (
        task_id, group_id, title, status, created_by, created_at, updated_at, description, dependencies,
        required, expected_paths, assignee, summary, reason, findings, touched_files,
    ) = row  # fmt: skip
    behind = _read(dependencies)
    ready, waits_for = False, ()
    if completed is not None:
        open_ones = tuple(each for each in behind if each not in completed)
        ready, waits_for = follows(status, assignee, open_ones)
    return GroupTask(
        task_id=TaskId(task_id),
        group_id=GroupId(group_id),
        title=title,
        status=status,
        created_by=SessionId(created_by),
        created_at=created_at,
        updated_at=updated_at,
        description=description,
        dependencies=behind,
        required=bool(required),
        expected_paths=_read(expected_paths),
        assignee=assignee,
        summary=summary,
        reason=reason,
        findings=_read(findings),
        touched_files=_read(touched_files),
        ready=ready,
        blockers=waits_for,
    )


def size_of(row: tuple[Any, ...]) -> int:
    """About how many characters the task of a row has in an answer; what it depends on may be told twice."""
    return (
        400 + len(row[2]) + len(row[7]) + 2 * len(row[8]) + len(row[10]) + len(row[12] or "")
        + len(row[13] or "") + len(row[14]) + len(row[15])
    )  # fmt: skip


def row_of(root_id: str, task: GroupTask) -> tuple[Any, ...]:
    """A task as ``insert_task`` takes it."""
    return (
        root_id,
        task.task_id,
        task.group_id,
        task.title,
        task.status,
        task.created_by,
        task.created_at,
        task.updated_at,
        task.description,
        _text(task.dependencies),
        int(task.required),
        _text(task.expected_paths),
        task.assignee,
        task.summary,
        task.reason,
        _text(task.findings),
        _text(task.touched_files),
    )


def _read(text: str) -> tuple[Any, ...]:
    return () if text == "[]" else tuple(orjson.loads(text))


def _text(values: tuple[str, ...]) -> str:
    return "[]" if not values else orjson.dumps(values).decode()


def find_task(query: Query, root_id: str, task_id: str) -> GroupTask | None:
    """By `Transaction.all` or `Log.glance`."""
    rows = query(SQL["task"], root_id, task_id)
    return task_of(rows[0]) if rows else None


def by_id(rows: Iterable[tuple[Any, ...]]) -> dict[TaskId, GroupTask]:
    """Tasks of a query, by their ids."""
    tasks = map(task_of, rows)
    return {task.task_id: task for task in tasks}


@frozen
class Vertex:
    """A task without all that is not the graph's."""

    dependencies: tuple[TaskId, ...]


def graph_of(rows: Iterable[tuple[Any, ...]]) -> dict[TaskId, Vertex]:
    """The rows of ``tasks_below``."""
    return {task_id: Vertex(_read(dependencies)) for task_id, dependencies in rows}


def ids(values: Iterable[str]) -> str:
    """Ids as the queries take a list of them."""
    return orjson.dumps(list(values)).decode()


# --- events -------------------------------------------------------------------------------------


def _on_created(tx: Transaction, record: Record) -> None:
    event: AgentGroupCreated = record.value
    tx.execute(SQL["insert_group"], record.session_id, event.group_id, event.name, record.at)


def _on_joined(tx: Transaction, record: Record) -> None:
    event: AgentGroupMemberJoined = record.value
    if event.agent_id != record.session_id:
        tx.execute(SQL["insert_member"], record.session_id, event.agent_id, record.pos)


def _on_task_created(tx: Transaction, record: Record) -> None:
    event: GroupTaskCreated = record.value
    tx.execute(SQL["insert_task"], *row_of(record.session_id, created(event, record.at)))


def _on_task_changed(tx: Transaction, record: Record) -> None:
    """The row as `state.changes` has it, without reading it: what an event leaves empty stays."""
    event: GroupTaskClaimed | GroupTaskReleased | GroupTaskStatusChanged = record.value
    place = (record.session_id, event.task_id)
    if isinstance(event, GroupTaskStatusChanged):
        tx.execute(
            SQL["update_task"],
            event.status,
            record.at,
            event.assignee or None,
            event.summary or None,
            event.reason or None,
            _text(event.findings) if event.findings else None,
            _text(event.touched_files) if event.touched_files else None,
            *place,
        )
    else:
        change = changes(event, record.at)
        tx.execute(SQL["own_task"], change["status"], record.at, change["assignee"], *place)


def _on_queued(tx: Transaction, record: Record) -> None:
    event: GroupMessageQueued = record.value
    root_id = record.session_id
    tx.execute(
        SQL["insert_message"],
        root_id,
        event.message_id,
        record.pos,
        event.sender,
        event.to,
        event.text,
        record.at,
    )
    for recipient in event.recipients:
        tx.execute(SQL["insert_delivery"], recipient, record.pos, root_id, event.message_id)


def _on_delivered(tx: Transaction, record: Record) -> None:
    event: GroupMessageDelivered = record.value
    root_id = record.root_id or tx.value(SQL["root_of"], record.session_id)
    tx.execute(SQL["mark_delivered"], record.seq, root_id, event.message_id, record.session_id)


def _on_deleted(tx: Transaction, record: Record) -> None:
    tx.execute(SQL["forget_recipient"], record.session_id)


def _forget(tx: Transaction, session_id: str) -> None:
    forget_group(tx, session_id)
    tx.execute(SQL["forget_recipient"], session_id)


def forget_group(tx: Transaction, root_id: str) -> None:
    for name in ("group", "members", "tasks", "messages", "deliveries"):
        tx.execute(SQL[f"forget_{name}"], root_id)


PROJECTION = Projection(
    name="groups",
    tables=(
        "agent_groups",
        "group_members",
        "group_tasks",
        "group_messages",
        "group_message_deliveries",
    ),
    apply={
        "agent_group_created": _on_created,
        "agent_group_member_joined": _on_joined,
        "group_task_created": _on_task_created,
        "group_task_claimed": _on_task_changed,
        "group_task_released": _on_task_changed,
        "group_task_status_changed": _on_task_changed,
        "group_message_queued": _on_queued,
        "group_message_delivered": _on_delivered,
        "session_deleted": _on_deleted,
    },
    forget=_forget,
)
