"""What schedules cost: ten thousand of them that wait, one that comes due, and a thousand that do at once."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from agents import hosting, new_root
from figure import Figure, Topic, rounds
from stage import fake_model, server

from callboard.host import Environment, Host, open_host
from callboard.log.transaction import Transaction
from callboard.schedules.rows import put
from callboard.schedules.service import Schedules
from callboard.schedules.state import Kept
from callboard.schedules.triggers import text_of
from callboard_rpc.common import ScheduleId, SessionId
from callboard_rpc.schedules import (
    FreshTarget,
    Schedule,
    ScheduleCreateParams,
    ScheduleTarget,
    ScheduleTrigger,
)

_WAITING = 10_000
_AT_ONCE = 1_000
_WATCHED_S = 10.0


def _schedules(host: Host) -> Schedules:
    service = host.services["schedules"]
    assert isinstance(service, Schedules)
    return service


# --- ten thousand that wait ---------------------------------------------------------------------


def _kept(number: int, cwd: str, now: datetime) -> Kept:
    """One that is due at some time of the next weeks, and not while it is watched."""
    next_at = text_of(now + timedelta(hours=1, seconds=137 * number))
    schedule = Schedule(
        schedule_id=ScheduleId(f"sched_{number:05}"),
        name=f"schedule {number}",
        profile="default",
        trigger=ScheduleTrigger(cron=f"{number % 60} {number % 24} * * *"),
        prompt="Look whether anything has changed since the last time, and say what.",
        target=ScheduleTarget(fresh=FreshTarget(cwd=cwd)),
        enabled=True,
        created_at=text_of(now),
        updated_at=text_of(now),
        next_at=next_at,
    )
    return Kept(schedule=schedule, anchor_at=schedule.created_at)


async def _fill(folder: Path) -> None:
    environment = Environment(
        environ={"HOME": str(folder), "PATH": "/usr/bin:/bin", "CALLBOARD_MODEL": "scripted/demo"},
        user_dir=folder / "unused",
        store=folder / "store.db",
    )
    async with open_host(environment) as host:
        now = datetime.now(UTC)

        def write(tx: Transaction) -> None:
            for number in range(_WAITING):
                put(tx, _kept(number, str(folder), now))

        await host.log.transact(write)


def _idle(port: int, folder: Path) -> float:
    """Percent of a core that a server takes with which nobody does anything."""
    with server(port, folder) as (peer, _):
        peer.call("schedule/list", limit=1)
        time.sleep(1.0)  # what a start leaves to be done
        before, began = peer.on_core(), time.perf_counter()
        time.sleep(_WATCHED_S)
        return 100 * (peer.on_core() - before) / (time.perf_counter() - began)


def _waiting(thorough: float) -> Figure:
    ours: list[float] = []
    none: list[float] = []
    with (
        fake_model() as port,
        TemporaryDirectory(prefix="callboard-bench-") as full,
        TemporaryDirectory(prefix="callboard-bench-") as empty,
    ):
        asyncio.run(_fill(Path(full)))
        for _ in range(rounds(3, thorough)):
            ours.append(_idle(port, Path(full)))
            none.append(_idle(port, Path(empty)))
    return Figure(
        name="an idle server with 10,000 schedules, of a core",
        unit="%",
        ours=ours,
        floor=none,
        target=1,
        note="the floor: the same without any",
    )


# --- one, and many, that come due -----------------------------------------------------------------


async def _make(host: Host, target: ScheduleTarget, at: datetime) -> None:
    await _schedules(host).create(
        ScheduleCreateParams(
            profile="default",
            trigger=ScheduleTrigger(at=text_of(at)),
            prompt="say",
            target=target,
        )
    )


async def _latencies(count: int) -> list[float]:
    """Milliseconds from the instant at which one is due until its model is asked."""
    samples: list[float] = []
    async with hosting() as (host, model, cwd):
        for _ in range(count):
            session_id = await new_root(host, cwd)
            due = datetime.now(UTC) + timedelta(milliseconds=150)
            due = due.replace(microsecond=due.microsecond // 1000 * 1000)
            to_go_s = (due - datetime.now(UTC)).total_seconds()
            at = time.perf_counter() + to_go_s
            await _make(host, ScheduleTarget(session_id=SessionId(session_id)), due)
            while session_id not in model.asked:
                await host.log.moved(host.log.head)
            samples.append(1000 * (model.asked[session_id] - at))
            await host.waiting.wait(session_id, until="idle", turn_id=None, timeout_s=60)
    return samples


async def _together() -> float:
    """How many a second are fired when many are due at once, each with its session and its turn."""
    async with hosting() as (host, _, cwd):
        due = datetime.now(UTC) + timedelta(seconds=10)
        for _ in range(_AT_ONCE):
            await _make(host, ScheduleTarget(fresh=FreshTarget(cwd=cwd)), due)
        at = time.perf_counter() + (due - datetime.now(UTC)).total_seconds()
        while True:
            head = host.log.head
            ((ended,),) = await host.log.query(
                "SELECT count(*) FROM schedule_fires WHERE outcome = 'completed'"
            )
            if ended == _AT_ONCE:
                return _AT_ONCE / (time.perf_counter() - at)
            await host.log.moved(head)


def measure(thorough: float) -> list[Figure]:
    return [
        _waiting(thorough),
        Figure(
            name="a schedule that is due, until its model is asked",
            unit="ms",
            ours=asyncio.run(_latencies(rounds(30, thorough))),
        ),
        Figure(
            name="1,000 that are due at once, each in a session of its own, done",
            unit="/s",
            ours=[asyncio.run(_together())],
        ),
    ]


TOPIC = Topic(name="schedules", about="agents that are woken by the clock", measure=measure)
