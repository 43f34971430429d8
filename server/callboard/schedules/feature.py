"""Schedules, as the host takes them in."""

from callboard_rpc.common import Actor

from ..features import Feature, Ground
from ..log.text import redacted
from ..log.transaction import Transaction
from ..sessions.beginning import Opening
from ..turns.finish import Ending
from ..turns.reservation import Grant
from . import state
from .calling import SERVICE
from .engine import Engine
from .projection import PROJECTION, end_around
from .rows import SQL, find, stands, usage_text
from .service import Schedules
from .tools import SCHEDULE_TOOLS


def feature() -> Feature:
    return Feature(
        name=SERVICE,
        tools=SCHEDULE_TOOLS,
        projections=(PROJECTION,),
        openings=(Opening(name=SERVICE, may_begin=_may_begin, begun=_begun),),
        hooks=(_ended,),
        closings=(_closed,),
        service=_service,
        recovers=_look_again,
        works=_work,
    )


def _may_begin(tx: Transaction, session_id: str) -> bool:
    """What a session was made for waits while an earlier fire of its schedule is at work."""
    return tx.one(SQL["must_wait"], session_id) is None


def _begun(tx: Transaction, grant: Grant) -> None:
    tx.execute(SQL["fire_began"], grant.turn_id, grant.session_id)


def _ended(tx: Transaction, grant: Grant, ending: Ending) -> None:
    """What a turn came to, in its fire and its schedule: by whatever path it ends, and whoever ends it."""
    row = tx.one(SQL["fire_of_turn"], grant.turn_id)
    if row is None:
        return
    fire_id, schedule_id = row
    reason: str | None = None
    if ending.error is not None:
        reason = ending.error.message
    elif ending.outcome != "completed":
        reason = ending.reason
    if reason is not None:
        reason = redacted(tx.writing.redact, reason)
    tx.execute(SQL["end_fire"], ending.outcome, usage_text(ending.usage), reason, fire_id)
    kept = find(tx.all, schedule_id)
    if kept is not None:
        stands(tx, state.ended(kept.schedule, ending.outcome, reason))


def _closed(tx: Transaction, session_id: str, _: Actor) -> None:
    end_around(tx, session_id, "closed")


def _service(ground: Ground) -> Schedules:
    return Schedules(
        ground.log,
        ground.dispatcher,
        limits=ground.settings.schedules,
        settings=ground.settings_for,
        profiles=ground.profiles,
        now=ground.log.now,
        fires=ground.settings.store.waiting == "take_up",
    )


async def _look_again(schedules: Schedules) -> None:
    """This host has arrived, or another one has gone, which may have been about to fire."""
    schedules.changed.set()


async def _work(schedules: Schedules) -> None:
    if schedules.fires:
        await Engine(schedules).run()
