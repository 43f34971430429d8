"""Waiting for agents: coordination 39-45, and the rows on spawn of session-messaging 5."""

import time
from pathlib import Path
from typing import Any

import pytest
from agents_kit import Cast, Troupe, troupe
from agents_races import born, in_call, tell, verb

from callboard.agents.waiting import MAX_WAIT_S
from harness.inside import CLIENT
from harness.puppets import Pause, calls, fails, of, pauses, results, speaks, the_end

pytestmark = pytest.mark.anyio


def spawning(**more: Any) -> Any:
    return calls(("spawn_agent", {"name": "one", "message": "go", **more}))


def waiting(**arguments: Any) -> Any:
    return calls(("wait_agents", arguments))


async def _root_does(t: Troupe, *scenes: Any) -> str:
    """A root that has played these scenes to its end."""
    t.cast.parts["root"] = [*scenes]
    root = await t.root()
    await t.say(root)
    await t.idle(root)
    return root


# --- wait_agents --------------------------------------------------------------------------------


async def test_coordination_39_a_wait_of_no_time_only_looks(tmp_path: Path) -> None:
    pause = Pause()
    cast = Cast(one=[pauses(pause, "late")])
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        agent = await t.spawn(root, "one")
        await pause.came()
        cast.parts["root"] = [waiting(timeout_ms=0), speaks("I go on")]
        await t.say(root)
        await t.idle(root)  # while the agent is held
        (looked,) = cast.read("root")
        assert looked == {
            "reason": "timeout",
            "agents": [{"agent_id": agent.agent_id, "name": "one", "status": "running"}],
            "reports_pending": 0,
        }
        assert results(await t.log(root)) == [("wait_agents", "ok")]  # 41: it is no error
        pause.open.set()
        await t.ended(agent)


async def test_coordination_40_a_wait_ends_when_one_of_several_has_ended(tmp_path: Path) -> None:
    pause, first = Pause(), Pause()
    cast = Cast(one=[pauses(pause, "late")], two=[pauses(first, "soon")])
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        one, two = await t.spawn(root, "one"), await t.spawn(root, "two")
        await pause.came()
        await first.came()
        cast.parts["root"] = [waiting(), speaks("good")]
        await t.say(root)
        await in_call(t, root)
        first.open.set()
        await t.idle(root)
        (waited,) = cast.read("root", 1)
        assert waited["reason"] == "finished" and waited["reports_pending"] == 1
        assert {a["name"]: a["status"] for a in waited["agents"]} == {
            "one": "running",
            "two": "completed",
        }
        pause.open.set()
        await t.ended(one)
        assert two.agent_id


async def test_coordination_41_a_wait_that_is_over_says_how_things_stand(tmp_path: Path) -> None:
    pause = Pause()
    cast = Cast(one=[pauses(pause, "late")])
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        agent = await t.spawn(root, "one")
        await pause.came()
        cast.parts["root"] = [waiting(timeout_ms=30), speaks("I go on")]
        await t.say(root)
        await t.idle(root)
        assert cast.read("root")[0]["reason"] == "timeout"
        assert cast.read("root")[0]["agents"][0]["status"] == "running"
        assert results(await t.log(root)) == [("wait_agents", "ok")]
        pause.open.set()
        await t.ended(agent)


async def test_coordination_42_no_wait_is_longer_than_300_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MAX_WAIT_S == 300
    pause = Pause()
    cast = Cast(one=[pauses(pause, "late")])
    monkeypatch.setattr("callboard.agents.waiting.MAX_WAIT_S", 0.05)
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        agent = await t.spawn(root, "one")
        await pause.came()
        cast.parts["root"] = [waiting(timeout_ms=86_400_000), speaks("I go on")]
        begun = time.monotonic()
        await t.say(root)
        await t.idle(root)
        assert cast.read("root")[0]["reason"] == "timeout"
        assert time.monotonic() - begun < 60
        pause.open.set()
        await t.ended(agent)


async def test_coordination_43_cancelling_the_root_ends_its_wait_and_not_its_agent(
    tmp_path: Path,
) -> None:
    pause = Pause()
    cast = Cast(root=[waiting()], one=[pauses(pause, "done")])
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        agent = await t.spawn(root, "one")
        await pause.came()
        await t.say(root)
        await in_call(t, root)
        await t.host.sessions.cancel(root, by=CLIENT)
        await t.idle(root)
        assert the_end(await t.log(root)).outcome == "cancelled"
        assert results(await t.log(root)) == [("wait_agents", "cancelled")]
        assert t.child(root, "one").status == "running"
        pause.open.set()
        assert (await t.ended(agent)).status == "completed"


async def test_coordination_44_a_wait_tells_statuses_and_no_word_of_a_report(
    tmp_path: Path,
) -> None:
    cast = Cast(one=[speaks("the very words of the report")], two=[fails(text="half of it")])
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        one = await t.ended(await t.spawn(root, "one", agent_type="scout"))
        two = await t.ended(await t.spawn(root, "two"))
        cast.parts["root"] = [waiting(agent_ids=["one", two.agent_id]), speaks("good")]
        await t.say(root)
        await t.idle(root)
        (result,) = of(await t.log(root), "tool_result")
        assert "the very words" not in result.text and "half of it" not in result.text
        assert "the model broke" not in result.text
        assert f'"{one.agent_id}"' in result.text and '"scout"' in result.text


async def test_coordination_41_without_ids_only_those_are_waited_for_of_whom_more_is_to_come(
    tmp_path: Path,
) -> None:
    """Closed ones, and those whose end was told, would end every later wait at once (DESIGN 6)."""
    cast = Cast()
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        await t.ended(await t.spawn(root, "told"))
        await t.say(root)  # takes its report in
        await t.idle(root)
        closed = await t.ended(await t.spawn(root, "closed"))
        await t.agents.close(closed.agent_id, by=CLIENT)
        cast.parts["root"] = [waiting(), speaks("nobody")]
        await t.say(root)
        await t.idle(root)
        (waited,) = next(
            read for number in range(len(cast.requests["root"]))
            if (read := cast.read("root", number))
        )  # fmt: skip
        assert (waited["reason"], waited["agents"]) == ("nothing", [])
        # by name they can be asked about
        cast.parts["root"] = [waiting(agent_ids=["told"]), speaks("ok")]
        await t.say(root)
        await t.idle(root)
        (waited,) = cast.read("root")
        assert waited["reason"] == "finished"


@pytest.mark.parametrize("how", ["steer", "continue", "cancel"])
async def test_coordination_41_a_wait_ends_for_whatever_is_said_to_the_one_that_waits(
    tmp_path: Path, how: str
) -> None:
    """A root that is steered; an agent, itself a parent, that is continued or told to stop."""
    pause = Pause()
    environ = {"CALLBOARD_AGENTS_MAX_DEPTH": "2"}
    cast = Cast(below=[pauses(pause, "late")], mid=[waiting(), speaks("heard")])
    cast.parts["root"] = [waiting(), speaks("heard")]
    async with troupe(tmp_path, cast, environ=environ) as t:
        root = await t.root()
        if how == "steer":
            waiter = root
            await t.spawn(root, "below")
            await pause.came()
            await t.say(root)
        else:
            cast.parts["mid"].insert(0, calls(("spawn_agent", {"name": "below", "message": "go"})))
            waiter = (await t.spawn(root, "mid")).agent_id
            await pause.came()
        await in_call(t, waiter)
        if how == "steer":
            await t.say(root, "look here", delivery="steer")
        elif how == "continue":
            await tell(t, waiter, "look here")
        else:
            await t.agents.interrupt(waiter, verb("cancel", "look here"))
        await t.idle(waiter)
        (result,) = [r for r in of(await t.log(waiter), "tool_result") if r.name == "wait_agents"]
        assert '"message"' in result.text
        part = "root" if how == "steer" else "mid"
        assert "look here" in cast.heard(part)
        pause.open.set()
        below = t.agents.children(waiter)[0]
        await t.ended(below)


# --- depth --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("spawn_agent", {"name": "below", "message": "go"}),
        ("send_agent_message", {"agent_id": "one", "message": "x"}),
        ("continue_agent", {"agent_id": "one", "message": "x"}),
        ("wait_agents", {}),
        ("list_agents", {}),
        ("interrupt_agent", {"agent_id": "one"}),
        ("close_agent", {"agent_id": "one"}),
    ],
)
async def test_coordination_45_a_child_is_refused_each_of_the_seven_and_its_turn_goes_on(
    tmp_path: Path, tool: str, arguments: dict[str, Any]
) -> None:
    cast = Cast(one=[calls((tool, arguments)), speaks("then I do it myself")])
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        agent = await t.ended(await t.spawn(root, "one"))
        records = await t.log(agent.agent_id)
        assert results(records) == [(tool, "error")]
        (refused,) = cast.read("one")
        assert refused.startswith("depth_exceeded: ")
        assert the_end(records).outcome == "completed"
        assert agent.report is not None and agent.report.summary == "then I do it myself"
        assert t.agents.children(agent.agent_id) == ()


# --- spawn and wait (session-messaging 5) -------------------------------------------------------


async def test_messaging_5_a_spawn_that_waits_has_the_last_message_as_its_result(
    tmp_path: Path,
) -> None:
    whole = "word " * 1_000 + "end"
    cast = Cast(one=[speaks(whole)])
    async with troupe(tmp_path, cast) as t:
        root = await _root_does(t, spawning(wait=True), speaks("thanks"))
        (result,) = of(await t.log(root), "tool_result")
        assert (result.status, result.text) == ("ok", whole)
        # the result is the notification: no message tells it again
        assert len(of(await t.log(root), "agent_notification_delivered")) == 1
        assert "<agent-report" not in cast.heard("root")
        assert t.host.log.glance("SELECT count(*) FROM inbox")[0][0] == 0
        assert t.host.dispatcher.running == 0


@pytest.mark.parametrize(
    ("scene", "said"),
    [
        (fails(), "it failed: the model broke"),
        (speaks(""), "it gave no response"),
        (speaks("  \n "), "it gave no response"),
    ],
    ids=["error", "silent", "blank"],
)
async def test_messaging_5_an_error_and_silence_are_errors_of_the_call(
    tmp_path: Path, scene: Any, said: str
) -> None:
    async with troupe(tmp_path, Cast(one=[scene])) as t:
        root = await _root_does(t, spawning(wait=True), speaks("I see"))
        (result,) = of(await t.log(root), "tool_result")
        assert result.status == "error" and said in result.text
        assert the_end(await t.log(root)).outcome == "completed"
        assert "<agent-report" not in t.cast.heard("root")


async def test_messaging_5_one_that_was_stopped_is_an_error_with_the_reason_and_its_last_words(
    tmp_path: Path,
) -> None:
    pause = Pause()
    cast = Cast(root=[spawning(wait=True), speaks("I see")])
    cast.parts["one"] = [pauses(pause, "never", before=["so far"])]
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        await t.say(root)
        await pause.came()
        await t.agents.interrupt(t.child(root, "one").agent_id, verb("abort", "not that way"))
        await t.idle(root)
        (result,) = of(await t.log(root), "tool_result")
        assert result.status == "error"
        assert "it was stopped: not that way" in result.text and "so far" in result.text
        assert "<agent-report" not in cast.heard("root")


async def test_messaging_5_detached_it_goes_on_and_reports_later(tmp_path: Path) -> None:
    pause = Pause()
    cast = Cast(one=[pauses(pause, "after all")])
    async with troupe(tmp_path, cast) as t:
        root = await _root_does(t, spawning(wait=True, timeout_ms=20), speaks("I go on"))
        (result,) = of(await t.log(root), "tool_result")
        assert result.status == "timed_out"
        assert "did not end within 0.02 s. It goes on, detached" in result.text
        agent = t.child(root, "one")
        assert agent.status == "running"
        pause.open.set()
        await t.ended(agent)
        await t.idle(root)
        assert cast.heard("root").count("after all") == 1


async def test_messaging_5_cancelled_it_is_over_and_the_result_says_so(tmp_path: Path) -> None:
    pause = Pause()
    cast = Cast(one=[pauses(pause, "never"), speaks("more")])
    async with troupe(tmp_path, cast) as t:
        root = await _root_does(
            t, spawning(wait=True, timeout_ms=20, on_timeout="cancel"), speaks("I go on")
        )
        (result,) = of(await t.log(root), "tool_result")
        assert result.status == "timed_out" and "and was cancelled. Continue it" in result.text
        agent = await t.ended(t.child(root, "one"))
        assert agent.status == "interrupted" and agent.report is None
        await tell(t, agent.agent_id, "go on")  # it is there, and has its memory
        await t.idle(agent.agent_id)
        assert t.child(root, "one").status == "completed"


async def test_messaging_5_the_result_is_that_runs_end_and_no_later_line(tmp_path: Path) -> None:
    """Somebody continues the agent as soon as it has ended, before its parent looks."""
    pause, later = Pause(), Pause()
    cast = Cast(root=[spawning(wait=True), speaks("thanks")])
    cast.parts["one"] = [pauses(pause, "the first end"), pauses(later, "a later line")]
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        await t.say(root)
        await pause.came()
        agent_id = await born(t, root, "one")
        await in_call(t, root, "spawn_agent")

        def continues(records: list[Any]) -> None:
            if any(r.type == "turn_finished" and r.session_id == agent_id for r in records):
                t.host.spawn(lambda: tell(t, agent_id, "and now"), "continue")

        t.host.log.listen(continues)
        pause.open.set()
        await later.came()
        await t.idle(root)
        (result,) = of(await t.log(root), "tool_result")
        assert (result.status, result.text) == ("ok", "the first end")
        later.open.set()
        await t.idle(agent_id)
        await t.idle(root)
        assert cast.heard("root").count("a later line") == 1


async def test_messaging_5_depth_outlives_the_server_and_cannot_be_reset(tmp_path: Path) -> None:
    environ = {"CALLBOARD_AGENTS_MAX_DEPTH": "2"}
    deeper = calls(("spawn_agent", {"name": "low", "message": "go"}))
    lowest = calls(("spawn_agent", {"name": "too low", "message": "go"}))
    cast = Cast(mid=[deeper, speaks("ok")])
    async with troupe(tmp_path, cast, environ=environ) as t:
        root = await t.root()
        mid = await t.ended(await t.spawn(root, "mid"))
        low = t.child(mid.agent_id, "low")
        await t.ended(low)
        assert (mid.depth_left, low.depth_left) == (1, 0)
    # and when the server is told of more meanwhile, an agent has no more than it was given
    cast.parts["low"] = [lowest, speaks("myself, then")]
    async with troupe(tmp_path, cast, environ={"CALLBOARD_AGENTS_MAX_DEPTH": "8"}) as t:
        await tell(t, low.agent_id, "try")
        await t.idle(low.agent_id)
        assert cast.read("low")[0].startswith("depth_exceeded: ")
    # less, it has
    cast.parts["mid"] = [calls(("spawn_agent", {"name": "other", "message": "go"})), speaks("no")]
    async with troupe(tmp_path, cast, environ={"CALLBOARD_AGENTS_MAX_DEPTH": "1"}) as t:
        await tell(t, mid.agent_id, "try")
        await t.idle(mid.agent_id)
        assert cast.read("mid")[0].startswith("depth_exceeded: ")
