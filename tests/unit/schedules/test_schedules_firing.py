"""What schedules fire, when, where, and how often: a fake clock drives them (session-messaging 8)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from schedules_kit import START, Clock, stage

from callboard.log.transaction import Transaction
from callboard.schedules.firing import MARK, Firing, start
from callboard.schedules.state import Due
from callboard.schedules.triggers import passed
from callboard.sessions.state import Room
from callboard_rpc.common import SessionId, Usage
from callboard_rpc.errors import CallboardError
from callboard_rpc.schedules import ScheduleTarget, ScheduleTrigger
from harness.inside import CLIENT
from harness.puppets import Pause, fails, of, pauses, shape, speaks, texts

pytestmark = pytest.mark.anyio

MINUTES = [f"2031-05-17T09:0{n}:00.000Z" for n in range(10)]


# --- the private prompt ---------------------------------------------------------------------------------


async def test_schedules_a_fire_is_a_run_with_a_prompt_of_its_own_and_no_directive(
    tmp_path: Path,
) -> None:
    usage = Usage(requests=1, input_tokens=7, output_tokens=3)
    async with stage(tmp_path, speaks("looked.", usage=usage)) as s:
        session_id = await s.session()
        schedule = await s.make(session_id, prompt="look at the inbox")
        await s.at(MINUTES[1])
        (fire,) = await s.until(schedule, "completed")
        await s.idle(session_id)
        log = await s.log(session_id)
        assert shape(log) == ["schedule_fired", "turn_started", "ack", "message", "turn_finished"]
        (fired,) = of(log, "schedule_fired")
        assert (fired.fire_id, fired.due_at) == (fire.fire_id, MINUTES[1])
        assert of(log, "turn_started")[0].trigger.kind == "schedule"
        assert log[1].by.kind == "schedule"
        assert s.puppet.heard() == "look at the inbox"
        assert fire.turn_id == of(log, "turn_started")[0].turn_id
        assert fire.usage is not None
        assert (fire.usage.input_tokens, fire.usage.output_tokens) == (7, 3)
        session = await s.host.reading.session(session_id)
        assert session.usage is not None
        assert session.usage.input_tokens == 7  # counted once
        now = s.now(schedule)
        assert (now.fire_count, now.next_at, now.last_fired_at) == (1, MINUTES[2], MINUTES[1])


async def test_schedules_a_silent_fire_leaves_no_message_and_a_record(tmp_path: Path) -> None:
    async with stage(tmp_path, speaks("  ")) as s:
        session_id = await s.session()
        schedule = await s.make(session_id)
        await s.at(MINUTES[1])
        await s.until(schedule, "completed")
        assert texts(await s.log(session_id)) == []


async def test_schedules_the_prompt_is_context_of_its_own_turn_alone(tmp_path: Path) -> None:
    async with stage(tmp_path, speaks("looked."), speaks("hi.")) as s:
        session_id = await s.session()
        schedule = await s.make(session_id, prompt="look at the inbox")
        await s.at(MINUTES[1])
        await s.until(schedule, "completed")
        await s.say(session_id, "what was it?")
        await s.idle(session_id)
        assert "look at the inbox" not in s.puppet.heard()
        assert "what was it?" in s.puppet.heard()


async def test_schedules_a_prompt_that_meets_a_fire_has_a_turn_of_its_own(tmp_path: Path) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause, "looked."), speaks("hi.")) as s:
        session_id = await s.session()
        schedule = await s.make(session_id, prompt="look at the inbox")
        await s.at(MINUTES[1])
        await pause.came()
        posted = await s.say(session_id, "hello")
        assert posted.outcome == "queued"
        pause.open.set()
        await s.idle(session_id)
        await s.until(schedule, "completed")
        assert [
            t.kind for t in (e.trigger for e in of(await s.log(session_id), "turn_started"))
        ] == [
            "schedule",
            "prompt",
        ]


async def test_schedules_a_prompt_behind_a_fire_that_waits_is_queued_and_has_its_own_turn(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, speaks("looked."), speaks("hi.")) as s:
        session_id = await s.session()
        schedule = await s.make(session_id)
        firing = Firing(host_id=s.host.host_id, now=START, due_at=MINUTES[1])
        await s.host.log.transact(lambda tx: start(tx, schedule, firing, None))
        posted = await s.say(session_id, "hello")
        assert (posted.outcome, posted.turn_id) == ("queued", None)
        await s.idle(session_id)
        assert texts(await s.log(session_id)) == ["looked.", "hi."]


# --- bounds ---------------------------------------------------------------------------------------------


async def test_schedules_three_fires_then_no_more_also_after_a_restart(tmp_path: Path) -> None:
    clock = Clock()
    async with stage(tmp_path, clock=clock) as s:
        session_id = await s.session()
        schedule = await s.make(session_id, max_fires=3)
        for n in (1, 2):
            await s.at(MINUTES[n])
            await s.until(schedule, *["completed"] * n)
            await s.idle(session_id)
    async with stage(tmp_path, clock=clock) as s:
        for n in (3, 4):
            await s.at(MINUTES[n])
            await s.until(schedule, *["completed"] * 3)
            await s.idle(session_id)
        now = s.now(schedule)
        assert (now.enabled, now.next_at, now.fire_count) == (False, None, 3)
        assert now.disabled_reason is not None
        assert "maxFires" in now.disabled_reason
    async with stage(tmp_path, clock=clock) as s:
        await s.at(MINUTES[5])
        assert len(await s.runs(schedule)) == 3
        with pytest.raises(CallboardError, match="another bound"):
            await s.update(schedule, enabled=True)
        again = await s.update(schedule, enabled=True, max_fires=4)
        assert (again.enabled, again.next_at, again.disabled_reason) == (True, MINUTES[6], None)


async def test_schedules_nothing_fires_at_its_expiry_or_behind_it(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        session_id = await s.session()
        schedule = await s.make(session_id, expires_at=MINUTES[2])
        assert schedule.next_at == MINUTES[1]
        await s.at(MINUTES[1])
        await s.until(schedule, "completed")
        now = s.now(schedule)
        assert not now.enabled
        assert now.disabled_reason is not None
        assert "expires" in now.disabled_reason
        await s.at(MINUTES[2])
        assert len(await s.runs(schedule)) == 1


async def test_schedules_what_has_expired_while_nobody_was_there_is_told_and_over(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as s:
        schedule = await s.make(await s.session(), expires_at=MINUTES[3], misfire="run_once")
        await s.at("2031-05-17T12:00:00Z")
        (fire,) = await s.runs(schedule)
        assert (fire.outcome, fire.reason) == ("skipped", f"it had expired at {MINUTES[3]}")
        assert not s.now(schedule).enabled


async def test_schedules_three_failures_in_a_row_switch_it_off(tmp_path: Path) -> None:
    scenes = [fails(), speaks("fine."), fails(), fails(), fails()]
    async with stage(tmp_path, *scenes) as s:
        session_id = await s.session()
        schedule = await s.make(session_id)
        outcomes = ["failed", "completed", "failed", "failed", "failed"]
        for n in range(1, 6):
            assert s.now(schedule).enabled
            await s.at(MINUTES[n])
            await s.until(schedule, *outcomes[:n])
            await s.idle(session_id)
        now = s.now(schedule)
        assert (now.enabled, now.failures, now.last_error) == (False, 3, "the model broke")
        assert now.disabled_reason is not None
        assert "3 runs failed" in now.disabled_reason
        assert (await s.runs(schedule))[-1].reason == "the model broke"
        again = await s.update(schedule, enabled=True)
        assert (again.failures, again.last_error, again.next_at) == (0, None, MINUTES[6])


async def test_schedules_no_number_of_failures_ends_one_with_max_failures_0(tmp_path: Path) -> None:
    async with stage(tmp_path, *[fails()] * 4) as s:
        session_id = await s.session()
        schedule = await s.make(session_id, max_failures=0)
        for n in range(1, 5):
            await s.at(MINUTES[n])
            await s.until(schedule, *["failed"] * n)
            await s.idle(session_id)
        assert s.now(schedule).enabled
        assert s.now(schedule).failures == 4


async def test_schedules_a_run_that_a_person_stops_is_no_failure(tmp_path: Path) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause)) as s:
        session_id = await s.session()
        schedule = await s.make(session_id, max_failures=1)
        await s.at(MINUTES[1])
        await pause.came()
        await s.host.sessions.cancel(session_id, by=CLIENT)
        await s.until(schedule, "cancelled")
        assert s.now(schedule).enabled


# --- what was missed ------------------------------------------------------------------------------------


async def test_schedules_missed_ticks_are_counted_and_not_replayed(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        session_id = await s.session()
        schedule = await s.make(session_id, cron="0 * * * *")
        await s.at("2031-05-17T13:30:00Z")
        (fire,) = await s.runs(schedule)
        assert (fire.outcome, fire.count, fire.reason) == ("skipped", 4, "no server was there")
        now = s.now(schedule)
        assert (now.skip_count, now.fire_count) == (4, 0)
        assert now.next_at == "2031-05-17T14:00:00.000Z"
        assert shape(await s.log(session_id)) == []


async def test_schedules_missed_ticks_are_one_run_where_that_is_wanted(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        session_id = await s.session()
        schedule = await s.make(session_id, cron="0 * * * *", misfire="run_once")
        await s.at("2031-05-17T13:30:00Z")
        (fire,) = await s.until(schedule, "completed")
        assert (fire.count, fire.due_at) == (4, "2031-05-17T13:00:00.000Z")
        assert s.now(schedule).fire_count == 1


async def test_schedules_a_missed_one_shot_fires_once_at_the_next_start(tmp_path: Path) -> None:
    clock = Clock()
    async with stage(tmp_path, clock=clock) as s:
        session_id = await s.session()
        schedule = await s.make(session_id, at=MINUTES[1])
    clock.set("2031-06-01T00:00:00Z")
    async with stage(tmp_path, clock=clock) as s:
        await s.look()
        (fire,) = await s.until(schedule, "completed")
        assert fire.due_at == MINUTES[1]
        now = s.now(schedule)
        assert (now.enabled, now.disabled_reason) == (False, "it has fired")
    async with stage(tmp_path, clock=clock) as s:
        await s.look()
        assert len(await s.runs(schedule)) == 1


async def test_schedules_a_clock_that_jumps_forward_skips_and_one_that_jumps_back_repeats_nothing(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as s:
        session_id = await s.session()
        schedule = await s.make(session_id, cron="0 * * * *")
        await s.at("2031-05-17T10:00:00Z")
        await s.until(schedule, "completed")
        await s.idle(session_id)
        await s.at("2031-05-17T15:20:00Z")
        await s.until(schedule, "completed", "skipped")
        await s.at("2031-05-17T09:59:00Z")
        await s.at("2031-05-17T10:00:00Z")
        assert len(await s.runs(schedule)) == 2
        assert s.now(schedule).next_at == "2031-05-17T16:00:00.000Z"


async def test_schedules_the_engine_never_sleeps_for_long_and_never_past_a_time(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as s:
        assert 0 < await s.look() <= 300
        await s.make(await s.session(), at="2031-05-17T09:00:00.250Z")
        assert await s.look() == 0.25


async def test_schedules_a_change_is_felt_at_once(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        await s.look()
        assert not s.schedules.changed.is_set()
        schedule = await s.make(await s.session())
        assert s.schedules.changed.is_set()
        await s.look()
        await s.update(schedule, trigger=ScheduleTrigger(every_seconds=5))
        assert s.schedules.changed.is_set()
        assert s.now(schedule).next_at == "2031-05-17T09:00:05.000Z"


# --- a session that is at work --------------------------------------------------------------------------


async def test_schedules_a_tick_that_finds_the_session_at_work_is_skipped_and_counted(
    tmp_path: Path,
) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause, "hi.")) as s:
        session_id = await s.session()
        schedule = await s.make(session_id)
        await s.say(session_id)
        await pause.came()
        await s.at(MINUTES[1])
        (fire,) = await s.runs(schedule)
        assert (fire.outcome, fire.reason) == ("skipped", "its session is at work")
        pause.open.set()
        await s.idle(session_id)
        await s.at(MINUTES[2])
        await s.until(schedule, "skipped", "completed")
        assert (s.now(schedule).skip_count, s.now(schedule).fire_count) == (1, 1)


async def test_schedules_a_one_shot_that_meets_a_busy_session_fires_when_that_is_free(
    tmp_path: Path,
) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause, "hi."), speaks("looked.")) as s:
        session_id = await s.session()
        schedule = await s.make(session_id, at=MINUTES[1], overlap="skip")
        assert schedule.overlap == "queue"  # it does not come again
        await s.say(session_id)
        await pause.came()
        await s.at(MINUTES[1])
        await s.until(schedule, "queued")
        pause.open.set()
        await s.until(schedule, "completed")
        await s.idle(session_id)
        assert texts(await s.log(session_id)) == ["hi.", "looked."]


async def test_schedules_of_several_ticks_that_wait_one_runs(tmp_path: Path) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause, "hi.")) as s:
        session_id = await s.session()
        schedule = await s.make(session_id, overlap="queue")
        await s.say(session_id)
        await pause.came()
        for n in (1, 2, 3):
            await s.at(MINUTES[n])
        assert [f.outcome for f in await s.runs(schedule)] == ["queued", "skipped", "skipped"]
        pause.open.set()
        await s.until(schedule, "completed", "skipped", "skipped")


async def test_schedules_the_next_fresh_session_waits_for_the_last_one(tmp_path: Path) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause, "one."), speaks("two.")) as s:
        schedule = await s.make(overlap="queue")
        await s.at(MINUTES[1])
        await pause.came()
        await s.at(MINUTES[2])
        first, second = await s.until(schedule, "running", "queued")
        assert second.session_id is not None
        assert await s.host.dispatcher.wake(second.session_id) is None
        await s.at(MINUTES[3])
        await s.until(schedule, "running", "queued", "skipped")
        pause.open.set()
        await s.until(schedule, "completed", "completed", "skipped")
        assert first.session_id != second.session_id


async def test_schedules_a_fresh_session_that_is_at_work_has_the_tick_skipped(
    tmp_path: Path,
) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause, "one.")) as s:
        schedule = await s.make()
        await s.at(MINUTES[1])
        await pause.came()
        await s.at(MINUTES[2])
        found = await s.until(schedule, "running", "skipped")
        assert found[1].reason == "its last session is still at work"
        pause.open.set()
        await s.until(schedule, "completed", "skipped")
        await s.at(MINUTES[3])
        await s.until(schedule, "completed", "skipped", "completed")


async def test_schedules_what_waits_is_woken_though_the_end_before_it_was_not_heard_of(
    tmp_path: Path,
) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause, "one."), speaks("two.")) as s:
        schedule = await s.make(overlap="queue")
        await s.at(MINUTES[1])
        await pause.came()
        await s.at(MINUTES[2])
        heard = s.schedules.reading.waiting_behind

        def unreadable(_: str) -> tuple[str, ...]:
            raise CallboardError("storeIo", "the disk stumbled")

        s.schedules.reading.waiting_behind = unreadable  # type: ignore[method-assign]
        pause.open.set()
        await s.until(schedule, "completed", "queued")
        s.schedules.reading.waiting_behind = heard  # type: ignore[method-assign]
        assert s.schedules.changed.is_set()
        await s.look()
        await s.until(schedule, "completed", "completed")


async def test_schedules_a_fire_whose_session_is_deleted_under_it_has_ended(tmp_path: Path) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause)) as s:
        schedule = await s.make(overlap="queue")
        await s.at(MINUTES[1])
        await pause.came()
        await s.at(MINUTES[2])
        first, second = await s.until(schedule, "running", "queued")
        assert first.session_id is not None
        deleted = first.session_id
        await s.host.log.transact(lambda tx: tx.delete_session(deleted, actor=CLIENT))
        await s.until(schedule, "cancelled", "completed")
        assert second.session_id != first.session_id
        pause.open.set()


# --- where ----------------------------------------------------------------------------------------------


async def test_schedules_a_fresh_fire_has_a_session_of_its_own_that_names_it(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as s:
        schedule = await s.make(name="nightly")
        for n in (1, 2):
            await s.at(MINUTES[n])
            await s.until(schedule, *["completed"] * n)
        one, two = await s.runs(schedule)
        assert one.session_id is not None
        assert one.session_id != two.session_id
        session = await s.host.reading.session(one.session_id)
        assert session.metadata == {MARK: schedule.schedule_id}
        assert (session.title, session.cwd) == ("nightly", str(tmp_path.resolve()))
        log = await s.log(one.session_id)
        assert [r.type for r in log][:2] == ["session_created", "schedule_fired"]
        assert log[0].by.kind == "schedule"
        assert of(log, "schedule_fired")[0].fresh


async def test_schedules_one_pinned_to_a_session_that_nobody_has_opened_since_the_restart_fires(
    tmp_path: Path,
) -> None:
    clock = Clock()
    async with stage(tmp_path, clock=clock) as s:
        session_id = await s.session()
        schedule = await s.make(session_id)
    async with stage(tmp_path, speaks("looked."), clock=clock) as s:
        assert session_id not in s.host.opened
        await s.at(MINUTES[1])
        await s.until(schedule, "completed")
        assert texts(await s.log(session_id)) == ["looked."]
        assert s.now(schedule).enabled


async def test_schedules_an_archived_session_is_skipped_until_it_is_back(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        session_id = await s.session()
        schedule = await s.make(session_id)
        await s.host.sessions.set_archived(session_id, archived=True, by=CLIENT)
        await s.at(MINUTES[1])
        (fire,) = await s.runs(schedule)
        assert fire.outcome == "skipped"
        assert fire.reason is not None
        assert "archived" in fire.reason
        await s.host.sessions.set_archived(session_id, archived=False, by=CLIENT)
        await s.at(MINUTES[2])
        await s.until(schedule, "skipped", "completed")


@pytest.mark.parametrize("end", ["close", "delete"])
async def test_schedules_the_end_of_its_session_is_its_own(tmp_path: Path, end: str) -> None:
    async with stage(tmp_path) as s:
        session_id = await s.session()
        schedule = await s.make(session_id)
        await getattr(s.host.sessions, end)(session_id, by=CLIENT)
        now = s.now(schedule)
        assert (now.enabled, now.next_at) == (False, None)
        assert now.disabled_reason == f"its session {session_id} was {end}d"
        await s.at(MINUTES[1])
        assert await s.runs(schedule) == []
        with pytest.raises(CallboardError) as caught:
            await s.update(schedule, enabled=True)
        assert caught.value.kind == ("sessionClosed" if end == "close" else "sessionNotFound")


def helper(tmp_path: Path) -> None:
    """A second agent."""
    agents = tmp_path / "config" / "agents"
    agents.mkdir(parents=True)
    (agents / "helper.md").write_text("---\ndescription: helps\n---\nYou are the helper.\n")


async def test_schedules_the_turn_is_that_of_the_member_whose_schedule_it_is(
    tmp_path: Path,
) -> None:
    helper(tmp_path)
    async with stage(tmp_path, speaks("helped.")) as s:
        session_id = await s.session(room=Room(members=("default", "helper")))
        schedule = await s.make(session_id, profile="HELPER")
        assert schedule.profile == "helper"
        await s.at(MINUTES[1])
        await s.until(schedule, "completed")
        (started,) = of(await s.log(session_id), "turn_started")
        assert (started.profile, started.trigger.kind) == ("helper", "schedule")
        assert "You are the helper." in s.puppet.requests[0].system


async def test_schedules_an_agent_that_has_left_the_room_is_not_put_back(tmp_path: Path) -> None:
    helper(tmp_path)
    async with stage(tmp_path) as s:
        session_id = await s.session(room=Room(members=("default", "helper")))
        schedule = await s.make(session_id, profile="helper")
        await s.host.services["rooms"].remove(session_id, "helper", by=CLIENT)
        before = shape(await s.log(session_id))
        await s.at(MINUTES[1])
        (fire,) = await s.runs(schedule)
        assert fire.outcome == "skipped"
        assert fire.reason is not None
        assert fire.reason.startswith("not a member")
        assert shape(await s.log(session_id)) == before
        assert s.now(schedule).enabled


async def test_schedules_a_stranger_cannot_have_one_in_a_session(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        session_id = await s.session()
        with pytest.raises(CallboardError, match="takes no part") as caught:
            await s.make(session_id, profile="stranger")
        assert caught.value.kind == "scheduleInvalid"


async def test_schedules_a_folder_that_is_gone_is_skipped(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        folder = tmp_path / "work"
        folder.mkdir()
        s.folder = folder
        schedule = await s.make()
        folder.rmdir()
        await s.at(MINUTES[1])
        (fire,) = await s.runs(schedule)
        assert fire.outcome == "skipped"
        assert fire.reason is not None
        assert "there is no folder" in fire.reason
        with pytest.raises(CallboardError) as caught:
            await s.schedules.run_now(schedule.schedule_id)
        assert caught.value.kind == "pathNotFound"
        with pytest.raises(CallboardError) as caught:
            await s.make()
        assert caught.value.kind == "pathNotFound"


# --- once, whoever looks --------------------------------------------------------------------------------


async def test_schedules_two_hosts_that_see_one_due_fire_it_once(tmp_path: Path) -> None:
    clock = Clock()
    async with stage(tmp_path, clock=clock) as one, stage(tmp_path, clock=clock) as two:
        session_id = await one.session()
        schedules = [await one.make(session_id, name=f"s{n}", overlap="queue") for n in range(5)]
        fresh = [await one.make(name=f"f{n}") for n in range(5)]
        clock.set(MINUTES[1])
        await asyncio.gather(one.look(), two.look())
        for schedule in (*schedules, *fresh):
            await one.until(schedule, "completed")
        fired = of(await one.log(session_id), "schedule_fired")
        assert len(fired) == len({f.fire_id for f in fired}) == 5


async def test_schedules_a_change_between_the_look_and_the_fire_is_heard(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        session_id = await s.session()
        schedule = await s.make(session_id)
        s.clock.set(MINUTES[1])
        (seen,) = s.schedules.reading.due(s.clock.now(), 10)
        await s.update(schedule, prompt="something else")
        assert await s.schedules.fire(seen, Due(fires_at=MINUTES[1]), s.clock.now()) is None
        await s.look()
        await s.until(schedule, "completed")
        assert s.puppet.heard() == "something else"


async def test_schedules_one_that_cannot_be_read_keeps_nothing_from_the_others(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as s:
        broken = await s.make(await s.session(), name="broken")
        sound = await s.make(await s.session(), name="sound")

        def misplace(tx: Transaction) -> None:
            tx.execute(
                "UPDATE schedules SET trigger = json_set(trigger, '$.timeZone', 'Mars/Olympus') "
                "WHERE schedule_id = ?",
                broken.schedule_id,
            )

        await s.host.log.transact(misplace)
        await s.at(MINUTES[1])
        await s.until(sound, "completed")
        assert await s.runs(broken) == []
        assert await s.look() > 0


async def test_schedules_many_that_are_due_at_once_let_others_in_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns_of_the_loop, seen = 0, list[int]()

    async def others() -> None:
        nonlocal turns_of_the_loop
        while True:
            turns_of_the_loop += 1
            await asyncio.sleep(0)

    def counted(*given: Any) -> Any:
        seen.append(turns_of_the_loop)
        return passed(*given)

    monkeypatch.setattr("callboard.schedules.engine.passed", counted)
    async with stage(tmp_path) as s:
        session_id = await s.session()
        for n in range(20):
            await s.make(session_id, name=f"n{n}")
        s.clock.set("2031-05-27T09:00:00Z")
        working = asyncio.create_task(others())
        await s.look()
        working.cancel()
    assert len(seen) == len(set(seen)) == 20


async def test_schedules_one_that_fails_does_not_end_the_look_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage(tmp_path) as s:
        failing = await s.make(await s.session(), name="failing")
        sound = await s.make(await s.session(), name="sound")
        fire = s.schedules.fire

        async def fails_for_one(seen: Any, *given: Any) -> Any:
            if seen.schedule.schedule_id == failing.schedule_id:
                raise CallboardError("storeBusy", "the store is busy")
            return await fire(seen, *given)

        monkeypatch.setattr(s.schedules, "fire", fails_for_one)
        with pytest.raises(CallboardError, match="busy"):
            await s.at(MINUTES[1])
        assert len(await s.runs(sound)) == 1  # by the end of the look, not some time later
        monkeypatch.undo()
        await s.at(MINUTES[1])
        await s.until(failing, "completed")


# --- asked for ------------------------------------------------------------------------------------------


async def test_schedules_run_now_fires_whatever_the_times_are_and_counts(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        schedule = await s.make(await s.session(), enabled=False, max_fires=2)
        fire = await s.schedules.run_now(schedule.schedule_id)
        assert (fire.outcome, fire.due_at) == ("queued", START)
        await s.until(schedule, "completed")
        await s.schedules.run_now(schedule.schedule_id)
        await s.until(schedule, "completed", "completed")
        with pytest.raises(CallboardError, match="maxFires") as caught:
            await s.schedules.run_now(schedule.schedule_id)
        assert caught.value.kind == "scheduleInvalid"


async def test_schedules_run_now_waits_for_a_busy_session_but_not_twice(tmp_path: Path) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause, "hi.")) as s:
        session_id = await s.session()
        schedule = await s.make(session_id)
        await s.say(session_id)
        await pause.came()
        assert (await s.schedules.run_now(schedule.schedule_id)).outcome == "queued"
        again = await s.schedules.run_now(schedule.schedule_id)
        assert again.outcome == "skipped"
        pause.open.set()
        await s.until(schedule, "completed", "skipped")


async def test_schedules_run_now_of_a_closed_session_says_so(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        session_id = await s.session()
        schedule = await s.make(session_id)
        await s.host.sessions.close(session_id, by=CLIENT)
        with pytest.raises(CallboardError) as caught:
            await s.schedules.run_now(schedule.schedule_id)
        assert caught.value.kind == "sessionClosed"
        with pytest.raises(CallboardError) as caught:
            await s.schedules.run_now("sched_none")
        assert caught.value.kind == "scheduleNotFound"


# --- changed and ended ----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["delete", "pause"])
async def test_schedules_what_waits_of_one_that_is_ended_does_not_begin(
    tmp_path: Path, how: str
) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause, "hi.")) as s:
        session_id = await s.session()
        schedule = await s.make(session_id, overlap="queue")
        await s.say(session_id)
        await pause.came()
        await s.at(MINUTES[1])
        if how == "delete":
            assert await s.schedules.delete(schedule.schedule_id)
            assert not await s.schedules.delete(schedule.schedule_id)
        else:
            await s.update(schedule, enabled=False)
            assert [f.outcome for f in await s.runs(schedule)] == ["cancelled"]
        pause.open.set()
        await s.idle(session_id)
        assert texts(await s.log(session_id)) == ["hi."]
        assert len(of(await s.log(session_id), "turn_started")) == 1


async def test_schedules_a_fire_that_is_taken_from_the_queue_is_cancelled(tmp_path: Path) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause, "hi.")) as s:
        session_id = await s.session()
        schedule = await s.make(session_id, at=MINUTES[1])
        await s.say(session_id)
        await pause.came()
        await s.at(MINUTES[1])
        (waiting,), _ = await s.host.queue.page(session_id)
        assert waiting.kind == "schedule"
        await s.host.queue.remove(session_id, waiting.event_seq, by=CLIENT)
        await s.until(schedule, "cancelled")
        pause.open.set()
        await s.idle(session_id)


async def test_schedules_an_update_changes_what_is_given_and_nothing_else(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        one, two = await s.session(), await s.session()
        schedule = await s.make(one, name="a", max_fires=5)
        changed = await s.update(schedule, name="b")
        assert changed.name == "b"
        assert (changed.trigger, changed.prompt, changed.max_fires) == (
            schedule.trigger,
            schedule.prompt,
            5,
        )
        assert (await s.update(schedule, max_fires=None)).max_fires is None
        moved = await s.update(schedule, target=ScheduleTarget(session_id=SessionId(two)))
        assert moved.target.session_id == two
        wrong: tuple[dict[str, Any], ...] = (
            {},
            {"max_fires": 0},
            {"prompt": " "},
            {"expires_at": "2030-01-01T00:00:00Z"},
        )
        for bad in wrong:
            with pytest.raises(CallboardError) as caught:
                await s.update(schedule, **bad)
            assert caught.value.kind == "scheduleInvalid"
        await s.make(one, name="taken")
        with pytest.raises(CallboardError) as caught:
            await s.update(schedule, name="taken")
        assert caught.value.kind == "nameInUse"


async def test_schedules_a_new_prompt_does_not_pass_over_a_time_that_is_due(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        schedule = await s.make(await s.session())
        s.clock.set("2031-05-17T09:01:10Z")
        assert (await s.update(schedule, prompt="new")).next_at == MINUTES[1]
        assert (
            await s.update(schedule, trigger=ScheduleTrigger(cron="* * * * *"))
        ).next_at == MINUTES[2]


async def test_schedules_limits_and_bad_fields_are_refused(tmp_path: Path) -> None:
    async with stage(tmp_path, environ={"CALLBOARD_SCHEDULES_MAX_SCHEDULES": "2"}) as s:
        session_id = await s.session()
        wrong: tuple[dict[str, Any], ...] = (
            {"prompt": "\n "},
            {"prompt": "x" * 70_000},
            {"name": "x" * 65},
            {"name": "  "},
            {"name": "a\u202eb"},
            {"max_fires": 0},
            {"max_failures": -1},
            {"expires_at": START},
            {"expires_at": "soon"},
            {"expires_at": MINUTES[1]},
        )
        for bad in wrong:
            with pytest.raises(CallboardError) as caught:
                await s.make(session_id, **bad)
            assert caught.value.kind == "scheduleInvalid", bad
        with pytest.raises(CallboardError) as caught:
            await s.make("ses_none")
        assert caught.value.kind == "sessionNotFound"
        with pytest.raises(CallboardError) as caught:
            await s.make(profile="nobody")
        assert caught.value.kind == "profileNotFound"
        await s.make(session_id, name="a")
        with pytest.raises(CallboardError) as caught:
            await s.make(session_id, name="a")
        assert caught.value.kind == "nameInUse"
        await s.make(session_id)
        with pytest.raises(CallboardError) as caught:
            await s.make(session_id)
        assert caught.value.kind == "limitReached"


async def test_schedules_the_newest_thousand_fires_are_kept(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        session_id = await s.session()
        schedule = await s.make(session_id)
        await s.host.sessions.set_archived(session_id, archived=True, by=CLIENT)
        for _ in range(1_010):
            s.clock.move(minutes=1)
            await s.look()
        found = await s.runs(schedule)
        assert len(found) == 1_000
        assert found[-1].due_at == s.clock.at
        assert s.now(schedule).skip_count == 1_010
