"""Schedules and their fires as rows, and back."""

from typing import Any

import orjson

from callboard_rpc.common import FireId, ScheduleId, Usage
from callboard_rpc.convert import structure_lenient, unstructure
from callboard_rpc.schedules import (
    FreshTarget,
    Schedule,
    ScheduleFire,
    ScheduleTarget,
    ScheduleTrigger,
)

from ..log import sqlfile
from ..log.transaction import Transaction
from ..turns.boundary import Query
from .state import Kept

SQL = sqlfile.load("callboard.schedules")


def _json(value: Any) -> str | None:
    return None if value is None else orjson.dumps(unstructure(value)).decode()


def kept_of(row: tuple[Any, ...]) -> Kept:
    """A row of the ``schedule`` queries."""
    (
        schedule_id, profile, name, trigger, prompt, session_id, cwd, enabled, created_at, updated_at, misfire,
        overlap, max_fires, expires_at, max_failures, fire_count, skip_count, failures, next_at, last_fired_at,
        last_error, disabled_reason, created_by, anchor_at, revision,
    ) = row  # fmt: skip
    return Kept(
        schedule=Schedule(
            schedule_id=ScheduleId(schedule_id),
            name=name,
            profile=profile,
            trigger=structure_lenient(orjson.loads(trigger), ScheduleTrigger),
            prompt=prompt,
            target=ScheduleTarget(
                session_id=session_id, fresh=None if cwd is None else FreshTarget(cwd=cwd)
            ),
            enabled=bool(enabled),
            created_at=created_at,
            updated_at=updated_at,
            misfire=misfire,
            overlap=overlap,
            max_fires=max_fires,
            expires_at=expires_at,
            max_failures=max_failures,
            fire_count=fire_count,
            skip_count=skip_count,
            failures=failures,
            next_at=next_at,
            last_fired_at=last_fired_at,
            last_error=last_error,
            disabled_reason=disabled_reason,
            created_by=created_by,
        ),
        anchor_at=anchor_at,
        revision=revision,
    )


def row_of(kept: Kept) -> tuple[Any, ...]:
    """As ``put_schedule`` takes it."""
    s = kept.schedule
    fresh = s.target.fresh
    return (
        s.schedule_id, s.profile, s.name, _json(s.trigger), s.prompt, s.target.session_id,
        None if fresh is None else fresh.cwd, int(s.enabled), s.created_at, s.updated_at, s.misfire, s.overlap,
        s.max_fires, s.expires_at, s.max_failures, s.fire_count, s.skip_count, s.failures, s.next_at,
        s.last_fired_at, s.last_error, s.disabled_reason, s.created_by, kept.anchor_at, kept.revision,
    )  # fmt: skip


def find(query: Query, schedule_id: str) -> Kept | None:
    """By `Transaction.all` or `Log.glance`."""
    rows = query(SQL["schedule"], schedule_id)
    return kept_of(rows[0]) if rows else None


def put(tx: Transaction, kept: Kept) -> None:
    tx.execute(SQL["put_schedule"], *row_of(kept))


def stands(tx: Transaction, schedule: Schedule) -> None:
    """Keeps how a schedule stands by now, and nothing of what it is."""
    tx.execute(
        SQL["set_standing"],
        int(schedule.enabled),
        schedule.fire_count,
        schedule.skip_count,
        schedule.failures,
        schedule.next_at,
        schedule.last_fired_at,
        schedule.last_error,
        schedule.disabled_reason,
        schedule.schedule_id,
    )


def fire_of(row: tuple[Any, ...]) -> ScheduleFire:
    """A row of the ``fire`` queries."""
    (
        _, fire_id, schedule_id, due_at, outcome, fired_at, fresh, session_id, turn_id, usage, reason, times,
    ) = row  # fmt: skip
    return ScheduleFire(
        fire_id=FireId(fire_id),
        schedule_id=ScheduleId(schedule_id),
        due_at=due_at,
        outcome=outcome,
        fired_at=fired_at,
        fresh=bool(fresh),
        session_id=session_id,
        turn_id=turn_id,
        usage=None if usage is None else structure_lenient(orjson.loads(usage), Usage),
        reason=reason,
        count=times,
    )


def record(
    tx: Transaction, fire: ScheduleFire, seq: int | None = None, *, asked: bool = False
) -> None:
    """Keeps a fire; `seq` is that of its event, `asked` that somebody wanted it now. The oldest that are over go,
    so that no schedule grows for ever."""
    tx.execute(
        SQL["insert_fire"],
        fire.fire_id,
        fire.schedule_id,
        fire.due_at,
        fire.outcome,
        fire.fired_at,
        int(fire.fresh),
        fire.session_id,
        seq,
        fire.reason,
        fire.count,
        int(asked),
    )
    tx.execute(SQL["forget_old_fires"], fire.schedule_id)


def usage_text(usage: Usage) -> str | None:
    return _json(usage)
