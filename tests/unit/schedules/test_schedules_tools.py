"""The tools by which agents have themselves woken: limits, codes, and whose schedules they see."""

from pathlib import Path
from typing import Any

import pytest
from schedules_kit import START, Stage, stage

from callboard.agents.examining import Caller, Wanted
from callboard.schedules.tools import SCHEDULE_TOOLS
from callboard_rpc.schedules import Schedule
from harness.inside import CLIENT, pending
from harness.puppets import calls, of, results, speaks, texts

pytestmark = pytest.mark.anyio


def create(**more: Any) -> tuple[str, dict[str, Any]]:
    return ("schedule_create", {"prompt": "look", **(more or {"cron": "0 * * * *"})})


def once(delay: int = 60, **more: Any) -> tuple[str, dict[str, Any]]:
    return ("schedule_once", {"prompt": "look", "delay_seconds": delay, **more})


def update(which: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return ("schedule_update", {"schedule": which, **more})


def delete(which: str) -> tuple[str, dict[str, Any]]:
    return ("schedule_delete", {"schedule": which})


LIST: tuple[str, dict[str, Any]] = ("schedule_list", {})


def mine(s: Stage, session_id: str) -> tuple[Schedule, ...]:
    return s.schedules.reading.of_agent(session_id)


async def test_schedules_an_agent_wakes_itself_in_its_own_session(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        session_id = await s.session()
        (line,) = await s.use(session_id, once(90, name="tea"))
        (schedule,) = mine(s, session_id)
        assert schedule.schedule_id in line
        assert (schedule.created_by, schedule.target.session_id) == (session_id, session_id)
        assert (schedule.profile, schedule.name, schedule.overlap) == ("default", "tea", "queue")
        assert schedule.next_at == "2031-05-17T09:01:30.000Z"
        s.puppet.scenes.append(speaks("tea is ready."))
        await s.at("2031-05-17T09:01:30Z")
        await s.until(schedule, "completed")
        assert texts(await s.log(session_id))[-1] == "tea is ready."
        assert not s.now(schedule).enabled


async def test_schedules_tools_create_change_list_and_delete(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        session_id = await s.session()
        assert await s.use(session_id, LIST) == ["You have made no schedule in this session."]
        await s.use(
            session_id,
            create(
                cron="0 9 * * 1-5",
                time_zone="Europe/Berlin",
                name="mornings",
                max_fires=3,
                expires_at="2032-01-01T00:00:00Z",
            ),
        )
        (line,) = await s.use(session_id, LIST)
        for part in ("mornings", "'0 9 * * 1-5' in Europe/Berlin", "0 of 3 fired", "expires 2032"):
            assert part in line
        (line,) = await s.use(session_id, update("mornings", prompt="look twice", enabled=False))
        assert "off: it was switched off" in line
        (schedule,) = mine(s, session_id)
        assert (schedule.prompt, schedule.enabled, schedule.max_fires) == ("look twice", False, 3)
        (line,) = await s.use(session_id, update(schedule.schedule_id, every_seconds=600))
        assert "every 600 s" in line
        (line,) = await s.use(session_id, delete("mornings"))
        assert "deleted" in line
        assert mine(s, session_id) == ()


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (once(29), "invalid"),
        (once(2_592_001), "invalid"),
        (("schedule_once", {"prompt": "  ", "delay_seconds": 60}), "invalid_schedule"),
        (create(cron="* * * * * *"), "invalid_schedule"),
        (create(cron="0,1 0 0 1 1 *"), "invalid_schedule"),
        (create(every_seconds=59), "invalid_schedule"),
        (create(cron="0 0 30 2 *"), "invalid_schedule"),
        (create(cron="0 9 * * *", time_zone="Mars/Olympus"), "invalid_schedule"),
        (create(cron="0 9 * * *", at="2032-01-01T00:00:00Z"), "invalid_schedule"),
        (create(at="2030-01-01T00:00:00Z"), "invalid_schedule"),
        (("schedule_create", {"prompt": "look"}), "invalid_schedule"),
        (update("nothing", prompt="x"), "unknown_schedule"),
        (delete("nothing"), "unknown_schedule"),
    ],
)
async def test_schedules_refusals_of_tools_begin_with_a_code_and_the_turn_goes_on(
    tmp_path: Path, call: tuple[str, Any], code: str
) -> None:
    async with stage(tmp_path) as s:
        session_id = await s.session()
        (said,) = await s.use(session_id, call)
        assert said.startswith(code), said
        log = await s.log(session_id)
        assert results(log) == [(call[0], "error")]
        assert of(log, "turn_finished")[0].outcome == "completed"
        assert mine(s, session_id) == ()


async def test_schedules_an_agent_may_not_update_to_what_it_may_not_create(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        session_id = await s.session()
        await s.use(session_id, create(every_seconds=60, name="a"))
        (said,) = await s.use(session_id, update("a", every_seconds=5))
        assert said.startswith("invalid_schedule")
        (said,) = await s.use(session_id, update("a"))
        assert said.startswith("invalid_schedule")


async def test_schedules_an_agent_has_no_more_than_its_limit(tmp_path: Path) -> None:
    async with stage(tmp_path, environ={"CALLBOARD_SCHEDULES_MAX_OF_AGENT": "2"}) as s:
        session_id = await s.session()
        said = await s.use(session_id, once(name="a"), once(name="b"), once(name="c"))
        assert [each.partition(":")[0] == "limit_reached" for each in said] == [False, False, True]
        await s.use(session_id, delete("a"))
        (said_,) = await s.use(session_id, once(name="d"))
        assert "limit_reached" not in said_
        (said_,) = await s.use(session_id, once(name="d"))
        assert said_.startswith(("limit_reached", "name_in_use"))


async def test_schedules_an_agent_gets_no_further_by_pausing_or_resuming(tmp_path: Path) -> None:
    """Nor by any mix of both: neither more that fire, nor ever more that lie about."""
    async with stage(tmp_path, environ={"CALLBOARD_SCHEDULES_MAX_OF_AGENT": "2"}) as s:
        session_id = await s.session()
        await s.use(session_id, create(every_seconds=60, max_fires=1, name="over"))
        s.clock.move(seconds=60)
        s.puppet.scenes.append(speaks("looked."))
        await s.look()
        await s.idle(session_id)
        said = await s.use(
            session_id, create(cron="0 * * * *", name="a"), create(cron="0 * * * *", name="b")
        )
        assert all(each.startswith("[sched_") for each in said)
        (said_,) = await s.use(session_id, update("over", max_fires=9, enabled=True))
        assert said_.startswith("limit_reached: this session has 2 schedules"), said_
        (said_,) = await s.use(
            session_id, update("over", max_fires=9, cron="0 * * * *", enabled=True)
        )
        assert said_.startswith("limit_reached"), said_
        await s.use(session_id, update("a", enabled=False))
        (said_,) = await s.use(session_id, create(cron="0 * * * *", name="c"))
        assert said_.startswith("limit_reached"), said_
        (said_,) = await s.use(session_id, update("a", enabled=True, cron="1 * * * *"))
        assert "next" in said_
        assert {each.name for each in mine(s, session_id) if each.enabled} == {"a", "b"}


async def test_schedules_an_agent_is_not_woken_at_once(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        session_id = await s.session()
        soon, later_ = "2031-05-17T09:00:29.999Z", "2031-05-17T09:00:30Z"
        (said,) = await s.use(session_id, create(at=soon))
        assert said.startswith("invalid_schedule: at is 29.999 s from now"), said
        await s.use(session_id, create(at=later_, name="tea"))
        (said,) = await s.use(session_id, update("tea", at=soon))
        assert said.startswith("invalid_schedule: at is 29.999 s from now"), said
        (schedule,) = mine(s, session_id)
        assert schedule.next_at == "2031-05-17T09:00:30.000Z"


async def test_schedules_switching_off_makes_no_room_for_more(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, environ={"CALLBOARD_SCHEDULES_MAX_OF_AGENT": "2"}) as s:
        session_id = await s.session()
        await s.use(session_id, create(cron="0 * * * *", name="a"), once(name="b"))
        await s.use(session_id, update("a", enabled=False))
        (said,) = await s.use(session_id, once(name="c"))
        assert said.startswith("limit_reached")
        await s.use(session_id, update("b", enabled=False))
        (said,) = await s.use(session_id, once(name="d"))
        assert said.startswith("limit_reached")
        (said,) = await s.use(session_id, update("b", enabled=True))
        assert "next" in said


async def test_schedules_what_is_over_of_an_agent_does_not_grow_for_ever(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        session_id = await s.session()
        for n in range(25):
            await s.use(session_id, once(30, name=f"n{n}"))
            s.clock.move(seconds=30)
            await s.look()
            await s.idle(session_id)
        await s.use(session_id, once(30, name="last"))
        assert len(mine(s, session_id)) == 21


async def test_schedules_patterns_that_are_over_of_an_agent_do_not_grow_either(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as s:
        session_id = await s.session()
        for n in range(25):
            await s.use(session_id, create(every_seconds=60, max_fires=1, name=f"n{n}"))
            s.clock.move(seconds=60)
            await s.look()
            await s.idle(session_id)
        await s.use(session_id, once(30, name="last"))
        assert len(mine(s, session_id)) == 21


async def test_schedules_those_of_others_look_as_if_they_were_not_there(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        one, two = await s.session(), await s.session()
        await s.use(one, create(cron="0 * * * *", name="hers"))
        person = await s.make(one, name="person")
        for which in ("hers", mine(s, one)[0].schedule_id, person.name, person.schedule_id):
            (said,) = await s.use(two, delete(which))
            (none,) = await s.use(two, delete("nothing"))
            assert said.replace(which, "") == none.replace("nothing", "")
        (said,) = await s.use(one, delete(person.schedule_id))
        assert said.startswith("unknown_schedule")
        assert s.now(person).enabled


@pytest.mark.parametrize("end", ["close", "delete"])
async def test_schedules_of_an_agent_end_with_its_session(tmp_path: Path, end: str) -> None:
    async with stage(tmp_path) as s:
        session_id = await s.session()
        await s.use(session_id, create(cron="0 * * * *"))
        (schedule,) = mine(s, session_id)
        await getattr(s.host.sessions, end)(session_id, by=CLIENT)
        assert not s.now(schedule).enabled


async def test_schedules_the_tools_are_one_permission_for_policy(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.mkdir()
    (config / "config.toml").write_text('[approvals.policy]\nschedule = "deny"\n')
    async with stage(tmp_path) as s:
        session_id = await s.session()
        await s.use(session_id, create(), once(), LIST, delete("x"), update("x"))
        log = await s.log(session_id)
        assert {status for _, status in results(log)} == {"denied"}
        assert mine(s, session_id) == ()


async def test_schedules_the_schemas_of_the_tools_never_change(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        session_id = await s.session()
        await s.use(session_id, LIST)
        await s.use(session_id, create(), once())
        await s.use(session_id, LIST)
        first, *others = [request.tools for request in s.puppet.requests]
        assert all(each == first for each in others)
        assert {tool.name for tool in SCHEDULE_TOOLS} <= {spec.name for spec in first}


async def test_schedules_a_run_that_has_lost_its_session_makes_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        session_id = await s.session()
        s.puppet.scenes[:0] = [calls(once(name="late"))]

        async def lose(*_: Any) -> None:
            await s.host.log.transact(
                lambda tx: tx.execute(
                    "UPDATE owners SET fence = fence + 1, next_fence = next_fence + 1 "
                    "WHERE session_id = ?",
                    session_id,
                )
            )

        inner = s.schedules.create

        async def late(*args: Any, **more: Any) -> Any:
            await lose()
            return await inner(*args, **more)

        s.schedules.create = late  # type: ignore[method-assign]
        await s.say(session_id, "use your tools")
        live = s.host.dispatcher.live(session_id)
        assert live is not None
        await live.ended.wait()
        assert mine(s, session_id) == ()
        assert s.clock.at == START


async def test_schedules_a_child_wakes_itself_reports_again_and_does_not_outlive_its_session(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as s:
        root = await s.session()
        agents = s.host.services["agents"]
        s.puppet.scenes[:0] = [calls(once(60, name="tea")), speaks("soon.")]
        child = await agents.spawn(
            Caller(parent_id=root, by=CLIENT), Wanted(name="one", message="make tea")
        )
        await s.idle(child.agent_id)
        await s.idle(root)
        (schedule,) = mine(s, child.agent_id)
        await s.at("2031-05-17T09:01:00Z")
        await s.until(schedule, "completed")
        await s.idle(root)
        reports = of(await s.log(child.agent_id), "agent_report_created")
        assert [r.report.status for r in reports] == ["completed", "completed"]
        await s.use(child.agent_id, create(cron="0 * * * *", name="each hour"))
        (hourly, _) = mine(s, child.agent_id)
        await s.host.sessions.close(root, by=CLIENT)
        assert s.now(hourly).disabled_reason == f"its session {child.agent_id} was closed"


# --- approvals of what the clock has started ------------------------------------------------------------

ASKS = ("run_command", {"command": "touch made"})


@pytest.mark.parametrize("approvals", ["ask", "deny"])
async def test_schedules_approvals_of_a_turn_of_the_clock_park_or_are_refused_by_setting(
    tmp_path: Path, approvals: str
) -> None:
    environ = {"CALLBOARD_SCHEDULES_APPROVALS": approvals}
    async with stage(tmp_path, environ=environ) as s:
        session_id = await s.session()
        schedule = await s.make(session_id, at="2031-05-17T09:01:00Z")
        s.puppet.scenes[:0] = [calls(ASKS), speaks("done.")]
        await s.at("2031-05-17T09:01:00Z")
        if approvals == "deny":
            await s.until(schedule, "completed")
            log = await s.log(session_id)
            assert results(log) == [("run_command", "denied")]
            assert "schedules.approvals" in s.puppet.read()[0]
            assert of(log, "approval_request") == []
        else:
            await s.until(schedule, "running")
            (asked,) = await pending(s.host)
            await s.host.approvals.answer(asked.approval_id, "allow_once", by=CLIENT, via="client")
            await s.until(schedule, "completed")
            assert (tmp_path / "made").exists()


async def test_schedules_a_person_is_asked_as_ever_where_the_clock_is_refused(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, environ={"CALLBOARD_SCHEDULES_APPROVALS": "deny"}) as s:
        session_id = await s.session()
        s.puppet.scenes[:0] = [calls(ASKS), speaks("done.")]
        await s.say(session_id, "go")
        (asked,) = await pending(s.host)
        option = asked.options[-1].option_id
        await s.host.approvals.answer(asked.approval_id, option, by=CLIENT, via="client")
        await s.idle(session_id)
