"""What becomes of fires in sessions that are exported, forked, rewound and rebuilt."""

from io import BytesIO
from pathlib import Path

import pytest
from schedules_kit import stage

from callboard.log.comparing import examine_projections
from callboard.schedules.firing import Firing, start
from callboard.schedules.rows import SQL
from harness.inside import CLIENT, idle, log_of, say
from harness.puppets import Pause, of, pauses, speaks, texts

pytestmark = pytest.mark.anyio

MINUTE = "2031-05-17T09:01:00.000Z"


async def test_schedules_a_fire_in_an_imported_session_wakes_nobody_with_the_next_prompt_neither(
    tmp_path: Path,
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    async with stage(one) as s:
        session_id = await s.session()
        schedule = await s.make(session_id, prompt="delete all")
        firing = Firing(host_id=s.host.host_id, now=MINUTE, due_at=MINUTE)
        await s.host.log.transact(lambda tx: start(tx, schedule, firing, None))
        text = (await s.host.writing_out.piece(session_id, cursor=None, limit=1_000)).text
    async with stage(two, speaks("hi.")) as s:
        imported = await s.host.importing.run(BytesIO(text.encode()))
        assert imported.session_id == session_id
        await s.host.dispatcher.wake(session_id)
        assert s.puppet.requests == []
        await say(s.host, session_id, "hello")
        await idle(s.host, session_id)
        assert len(of(await log_of(s.host, session_id), "turn_started")) == 1
        assert "delete all" not in s.puppet.heard()
        assert await s.host.log.query(SQL["schedules_page"], "", "", None, None, None, 9) == []


async def test_schedules_do_not_wake_what_an_imported_session_had_waiting(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    pause = Pause()
    async with stage(one, pauses(pause)) as s:
        session_id = await s.session()
        await s.say(session_id, "first")
        await pause.came()
        await s.say(session_id, "delete all")
        text = (await s.host.writing_out.piece(session_id, cursor=None, limit=1_000)).text
        pause.open.set()
        await s.idle(session_id)
    async with stage(two) as s:
        await s.host.importing.run(text)
        schedule = await s.make(session_id)
        s.clock.set(MINUTE)
        await s.look()
        (fire,) = await s.runs(schedule)
        assert fire.outcome == "skipped"
        assert fire.reason is not None
        assert "wakes nobody" in fire.reason
        assert s.puppet.requests == []


async def test_schedules_a_fork_takes_the_answer_of_a_fire_and_not_its_prompt(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, speaks("looked."), speaks("hi.")) as s:
        session_id = await s.session()
        schedule = await s.make(session_id, prompt="look at the inbox")
        s.clock.set(MINUTE)
        await s.look()
        await s.until(schedule, "completed")
        await s.idle(session_id)
        forked = await s.host.forking.fork(session_id, at_turn_id=None, title=None, by=CLIENT)
        fork = forked.session_id
        await say(s.host, fork, "hello")
        await idle(s.host, fork)
        log = await log_of(s.host, fork)
        assert of(log, "schedule_fired") == []
        assert texts(log) == ["looked.", "hi."]
        assert "look at the inbox" not in s.puppet.heard()
        assert s.now(schedule).target.session_id == session_id


async def test_schedules_the_tables_that_follow_the_log_are_made_anew_without_them(
    tmp_path: Path,
) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause, "hi.")) as s:
        session_id = await s.session()
        schedule = await s.make(session_id, at=MINUTE)
        await s.say(session_id)
        await pause.came()
        s.clock.set(MINUTE)
        await s.look()
        before = (s.now(schedule), await s.runs(schedule))
        writing = s.host.log._writing  # pyright: ignore[reportPrivateUsage]
        assert examine_projections(s.host.log.path, writing) == []
        await s.host.log.rebuild()
        assert (s.now(schedule), await s.runs(schedule)) == before
        pause.open.set()
        await s.until(schedule, "completed")


async def test_schedules_a_session_that_comes_back_under_its_id_is_another(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        session_id = await s.session()
        schedule = await s.make(session_id)
        s.clock.set(MINUTE)
        await s.look()
        await s.until(schedule, "completed")
        await s.idle(session_id)
        text = (await s.host.writing_out.piece(session_id, cursor=None, limit=1_000)).text
        await s.host.sessions.delete(session_id, by=CLIENT)
        await s.host.importing.run(text)
        assert not s.now(schedule).enabled
        assert [f.outcome for f in await s.runs(schedule)] == ["completed"]
