"""Scenes by the clock, and what must hold of schedules after a crash: what is fired is fired once, and told."""

import asyncio
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from crash_ledger import Snapshot, held
from crash_scenes import Play
from crash_stage import Stage, die

from callboard.host import Host
from callboard.log.clock import later, utc_now
from harness.process import ServerProcess

YEARLY = {"cron": "0 0 29 2 *"}
SOON = {"trigger": {"everySeconds": 1}, "maxFires": 1, "overlap": "queue"}
_SOON_S = 10.0
"""What is due within so long is waited for."""

# --- what clients do ----------------------------------------------------------------------------


def _make(stage: Stage, server: ServerProcess, target: dict[str, Any], **more: Any) -> str:
    params = {"profile": "default", "trigger": YEARLY, "prompt": "run", "target": target, **more}
    schedule_id = server.call("schedule/create", **params)["schedule"]["scheduleId"]
    stage.told_schedules[schedule_id] = "there"
    return schedule_id


def _pinned(stage: Stage, server: ServerProcess) -> dict[str, Any]:
    stage.greet(server)
    return {"sessionId": stage.create(server, mode="work")}


def plan(stage: Stage, server: ServerProcess) -> None:
    """A person makes two schedules, changes one, and deletes the other."""
    target = _pinned(stage, server)
    first = _make(stage, server, target)
    server.call("schedule/update", scheduleId=first, prompt="talk")
    stage.told_schedules[first] = "talk"
    second = _make(stage, server, target)
    stage.told_schedules[second] = "going"
    server.call("schedule/delete", scheduleId=second)
    stage.told_schedules[second] = "gone"


def ring(stage: Stage, server: ServerProcess) -> None:
    """One is fired by hand, while its session talks: it waits for that, and runs."""
    target = _pinned(stage, server)
    schedule_id = _make(stage, server, target)
    stage.prompt(server, target["sessionId"], "talk")
    fire = server.call("schedule/runNow", scheduleId=schedule_id)["fire"]
    stage.told_fires.append(fire["fireId"])
    server.wait(target["sessionId"])


def tick(stage: Stage, server: ServerProcess) -> None:
    """One fires by the clock in its session."""
    target = _pinned(stage, server)
    server.call("event/subscribe", scope={"kind": "all"})
    _make(stage, server, target, **SOON)
    server.told(lambda e: e["type"] == "turn_finished")


def tick_fresh(stage: Stage, server: ServerProcess) -> None:
    """One fires by the clock in a session that is made for it."""
    stage.greet(server)
    stage.creating += 1
    server.call("event/subscribe", scope={"kind": "all"})
    _make(stage, server, {"fresh": {"cwd": str(stage.cwd)}}, **SOON)
    server.told(lambda e: e["type"] == "turn_finished")


# --- scenes that begin with the death of another server -----------------------------------------


def _dies_before_its_turn(stage: Stage) -> None:
    die(stage, "schedules.fire.committed", tick)


def take_over(stage: Stage, server: ServerProcess) -> None:
    """What a dead server has fired, and had not begun, is begun by the next one."""
    stage.greet(server)
    server.wait(stage.created[0])


PRELUDES: dict[Play, Callable[[Stage], object]] = {take_over: _dies_before_its_turn}


# --- the way on ---------------------------------------------------------------------------------


async def come_due(host: Host) -> None:
    """Waits until all that is due soon has fired and has ended."""
    async with asyncio.timeout(30):
        while True:
            position = host.log.head
            soon = await host.log.query(
                "SELECT 1 FROM schedules WHERE enabled = 1 AND next_at < ? UNION ALL "
                "SELECT 1 FROM schedule_fires WHERE outcome IN ('queued', 'running')",
                later(utc_now(), _SOON_S),
            )
            if not soon:
                return
            await host.log.moved(position)


# --- what must hold -----------------------------------------------------------------------------


def _tables(store: Path) -> tuple[dict[str, dict[str, Any]], list[dict[str, Any]]]:
    """Schedules by id, and fires, read from a copy of the files."""
    if not store.exists():
        return {}, []
    with tempfile.TemporaryDirectory() as folder:
        for tail in ("", "-wal"):
            source = store.with_name(store.name + tail)
            if source.exists():
                shutil.copyfile(source, Path(folder, source.name))
        with closing(sqlite3.connect(Path(folder, store.name))) as connection:
            connection.row_factory = sqlite3.Row
            names = {n for (n,) in connection.execute("SELECT name FROM sqlite_master")}
            if "schedules" not in names:
                return {}, []
            schedules = {
                row["schedule_id"]: dict(row)
                for row in connection.execute("SELECT * FROM schedules")
            }
            fires = [dict(row) for row in connection.execute("SELECT * FROM schedule_fires")]
            return schedules, fires


def check_schedules(stage: Stage, shot: Snapshot) -> None:
    """A fire, its event, and that its schedule has fired, are there together or not at all; and what a client
    was told is there."""
    schedules, fires = _tables(stage.store)
    events = {
        e["data"]["fireId"]: e for e in shot.events if e["type"] == "schedule_fired"
    }  # fmt: skip
    fired = [e["data"]["fireId"] for e in shot.events if e["type"] == "schedule_fired"]
    held(len(fired) == len(events), "fired twice:", fired)
    for fire in fires:
        event = events.get(fire["fire_id"])
        held(event is not None, "recorded, and not there:", fire)
        assert event is not None
        where = (event["sessionId"], event["seq"])
        held((fire["session_id"], fire["seq"]) == where, "elsewhere:", fire, where)
    recorded = {fire["fire_id"] for fire in fires}
    held(set(events) <= recorded, "fired, and not recorded:", set(events) - recorded)
    counts = Counter(fire["schedule_id"] for fire in fires)
    for schedule_id, schedule in schedules.items():
        held(schedule["fire_count"] == counts[schedule_id], "counted", schedule, counts)
        held(schedule["max_fires"] is None or schedule["fire_count"] <= 1, "too often:", schedule)
    for schedule_id, told in stage.told_schedules.items():
        match told:
            case "gone":
                held(schedule_id not in schedules, "deleted, and there:", schedule_id)
            case "going":
                pass
            case _:
                held(schedule_id in schedules, "a schedule is gone:", schedule_id)
                prompt = schedules[schedule_id]["prompt"]
                held(told == "there" or prompt == told, "changed, and is", prompt)
    held(set(stage.told_fires) <= set(events), "a fire is gone:", stage.told_fires)


def check_all_fired(stage: Stage, end: Snapshot) -> None:
    """What was due has fired, once; what was fired has ended, and its end is in its record."""
    schedules, fires = _tables(stage.store)
    ends = {e["turnId"]: e["data"] for e in end.events if e["type"] == "turn_finished"}
    for fire in fires:
        turn = ends.get(fire["turn_id"] or "")
        held(turn is not None, "fired, and never run:", fire)
        assert turn is not None
        held(fire["outcome"] == turn["outcome"], "ended as", turn["outcome"], "and is", fire)
    for schedule in schedules.values():
        if schedule["max_fires"] is not None:
            held(schedule["fire_count"] == 1 and not schedule["enabled"], "never:", schedule)
