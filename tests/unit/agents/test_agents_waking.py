"""What ends a wait for agents, what does not, and what a wait looks at: coordination 39-41 and 5.7, and the
rows on spawn of session-messaging 5."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from agents_kit import Cast, Troupe, troupe
from agents_races import ended, in_call, tell, verb
from messaging_kit import ON, at_work

from callboard.agents import asks
from callboard.agents.attention import Attention
from callboard.agents.messaging import Messaging
from callboard.agents.projection import SQL
from callboard.agents.state import AgentState
from callboard.agents.waiting import Waiting
from callboard.rpc.handlers import agents as handlers
from callboard_rpc.events import SessionUpdated
from harness.inside import CLIENT
from harness.puppets import Pause, calls, of, pauses, results, speaks

pytestmark = pytest.mark.anyio

ONE_SLOT = {"CALLBOARD_AGENTS_MAX_RUNNING": "1"}
NEVER_S = 300.0


def spawning(**more: Any) -> Any:
    return calls(("spawn_agent", {"name": "one", "message": "go", "wait": True, **more}))


@asynccontextmanager
async def no_slot(
    folder: Path, *, told: bool = True
) -> AsyncGenerator[tuple[Troupe, str, AgentState, Pause]]:
    """The agent "one" has ended its first turn, of which its parent was `told`, or not; "other" has the only
    slot until the pause is opened."""
    pause = Pause()
    async with troupe(folder, Cast(other=[pauses(pause, "late")]), environ=ONE_SLOT) as t:
        root = await t.root()
        one = await t.ended(await t.spawn(root, "one"))
        await t.idle(one.agent_id)
        if told:
            await t.say(root)
            await t.idle(root)
        await t.spawn(root, "other")
        await pause.came()
        yield t, root, one, pause


# --- whose next turn is asked for ---------------------------------------------------------------


@pytest.mark.parametrize("how", ["continue", "prompt"])
@pytest.mark.parametrize("by_id", [True, False], ids=["by id", "all"])
async def test_coordination_40_one_that_is_to_go_on_and_waits_for_a_slot_has_not_ended(
    tmp_path: Path, how: str, by_id: bool
) -> None:
    async with no_slot(tmp_path) as (t, root, one, pause):
        if how == "continue":
            await tell(t, one.agent_id, "go on")
        else:
            await t.say(one.agent_id, "go on")
        ids = (one.agent_id,) if by_id else ()
        looked = await t.agents.waiting.for_any(root, ids, timeout_s=0)
        assert looked.reason == "timeout"
        assert [each.name for each in looked.agents] == (["one"] if by_id else ["one", "other"])
        waits = asyncio.ensure_future(
            t.agents.waiting.for_any(root, (one.agent_id,), timeout_s=NEVER_S)
        )
        pause.open.set()
        assert (await waits).reason == "finished"
        await ended(t, one.agent_id, 2)  # it was that turn's end
        (turns,) = t.host.log.glance(
            "SELECT count(*) FROM turns WHERE session_id = ? AND ended_at IS NOT NULL", one.agent_id
        )
        assert turns == (2,)


async def test_coordination_40_a_report_that_was_not_told_ends_the_wait_for_one_that_is_to_go_on(
    tmp_path: Path,
) -> None:
    """5.7: at once, since it is there; and as a report, not as its end."""
    async with no_slot(tmp_path, told=False) as (t, root, one, pause):
        await tell(t, one.agent_id, "go on")
        waited = await t.agents.waiting.for_any(root, (one.agent_id,), timeout_s=NEVER_S)
        assert (waited.reason, waited.reports_pending) == ("report", 1)
        pause.open.set()
        await ended(t, one.agent_id, 2)


async def test_coordination_41_one_whose_server_died_before_it_began_has_ended(
    tmp_path: Path,
) -> None:
    """Its brief is there for ever, and begins nothing by itself: nobody waits for it."""
    async with no_slot(tmp_path) as (t, root, _, pause):
        held = await t.spawn(root, "held")

        def dies(tx: Any) -> None:
            for table in ("triggers", "inbox"):
                tx.execute(
                    f"UPDATE {table} SET host_id = 'host_gone' WHERE session_id = ?", held.agent_id
                )

        await t.host.log.transact(dies)
        waits = [
            asyncio.ensure_future(
                t.agents.waiting.for_any(root, (held.agent_id,), timeout_s=NEVER_S)
            ),
            asyncio.ensure_future(t.agents.waiting.for_first_end(held.agent_id, timeout_s=NEVER_S)),
        ]
        await asyncio.sleep(0)
        assert not any(each.done() for each in waits)
        await t.agents.reconcile()
        first, second = await asyncio.gather(*waits)
        assert first.reason == "finished" and first.agents[0].status == "interrupted"
        assert second.over and "continue it" in second.stopped
        # and without ids there is nothing to be expected of it
        names = [e.name for e in (await t.agents.waiting.for_any(root, timeout_s=0)).agents]
        assert names == ["other"]
        # continued, it is to begin, whatever it was before
        await tell(t, held.agent_id, "go on")
        assert not (await t.agents.waiting.for_first_end(held.agent_id, timeout_s=0)).over
        looked = await t.agents.waiting.for_any(root, (held.agent_id,), timeout_s=0)
        assert looked.reason == "timeout"
        pause.open.set()
        assert (await t.agents.waiting.for_first_end(held.agent_id, timeout_s=NEVER_S)).report


async def test_coordination_41_one_that_is_closed_has_ended_whatever_waits_for_it(
    tmp_path: Path,
) -> None:
    async with no_slot(tmp_path) as (t, root, one, pause):
        await tell(t, one.agent_id, "go on")
        waits = asyncio.ensure_future(
            t.agents.waiting.for_any(root, (one.agent_id,), timeout_s=NEVER_S)
        )
        await t.agents.close(one.agent_id, by=CLIENT)
        assert (await waits).reason == "finished"
        pause.open.set()
        await t.ended(t.child(root, "other"))


# --- a spawn that waits, and somebody who says something else -------------------------------------


@pytest.mark.parametrize("how", ["steer", "continue", "steered", "cancel"])
async def test_messaging_5_a_spawn_that_waits_ends_for_whatever_is_said_to_the_parent(
    tmp_path: Path, how: str
) -> None:
    """A root that a person steers; an agent, itself a parent, that is continued, or told to change or to stop.
    The child goes on, whatever was to be when the time is up."""
    pause = Pause()
    environ = {"CALLBOARD_AGENTS_MAX_DEPTH": "2"}
    cast = Cast(one=[pauses(pause, "the late end")])
    part = "root" if how == "steer" else "mid"
    cast.parts[part] = [spawning(on_timeout="cancel"), speaks("heard")]
    async with troupe(tmp_path, cast, environ=environ) as t:
        root = await t.root()
        if how == "steer":
            parent = root
            await t.say(root)
        else:
            parent = (await t.spawn(root, "mid")).agent_id
        await pause.came()
        await in_call(t, parent, "spawn_agent")
        match how:
            case "steer":
                await t.say(root, "look here", delivery="steer")
            case "continue":
                await tell(t, parent, "look here")
            case _:
                kind = "steer" if how == "steered" else "cancel"
                await t.agents.interrupt(parent, verb(kind, "look here"))
        await t.idle(parent)
        assert results(await t.log(parent)) == [("spawn_agent", "ok")]
        (result,) = of(await t.log(parent), "tool_result")
        assert "It goes on, detached: its report comes to you" in result.text
        assert "look here" in cast.heard(part, 1), "it was read right after the result"
        one = t.child(parent, "one")
        assert one.status == "running"
        pause.open.set()
        await t.ended(one)
        await t.idle(parent)
        assert cast.heard(part).count("the late end") == 1


async def test_messaging_5_news_and_reports_do_not_end_a_spawn_that_waits(
    tmp_path: Path,
) -> None:
    """News of children keep nobody waiting, and are read at the boundary; the directive flow goes on."""
    pause = Pause()
    cast = Cast(
        root=[spawning(), speaks("thanks")],
        one=[
            calls(("message", {"to": "parent", "text": "half done", "expect_reply": False})),
            pauses(pause, "all done"),
        ],
    )
    async with troupe(tmp_path, cast, environ=ON) as t:
        root = await t.root()
        other = await at_work(t, root, "other")
        await t.say(root)
        await pause.came()
        await other.asks("by the way", expects_reply=False)
        other.pause.open.set()
        await t.ended(other.agent)  # and its report is there
        assert t.host.log.glance("SELECT count(*) FROM open_calls WHERE session_id = ?", root) == [
            (1,)
        ]
        pause.open.set()
        await t.idle(root)
        (result,) = of(await t.log(root), "tool_result")
        assert (result.status, result.text) == ("ok", "all done")
        assert "half done" in cast.heard("root", 1) and "by the way" in cast.heard("root", 1)


async def test_messaging_5_a_question_of_another_child_ends_a_spawn_that_waits(
    tmp_path: Path,
) -> None:
    """It has an end, and the wait may be longer."""
    pause = Pause()
    cast = Cast(root=[spawning(), speaks("noted")], one=[pauses(pause, "the late end")])
    async with troupe(tmp_path, cast, environ=ON) as t:
        root = await t.root()
        other = await at_work(t, root, "other")
        await t.say(root)
        await pause.came()
        await in_call(t, root, "spawn_agent")
        ask_id, waits = await other.asking()
        await t.idle(root)
        (result,) = of(await t.log(root), "tool_result")
        assert result.status == "ok" and "goes on, detached" in result.text
        assert cast.heard("root", 1).count(ask_id) == 1
        waits.cancel()
        other.pause.open.set()
        pause.open.set()
        await t.ended(t.child(root, "one"))
        await t.ended(other.agent)


# --- what a wait looks at -------------------------------------------------------------------------


def _counted(patch: pytest.MonkeyPatch, looks: Counter[str]) -> None:
    def count(owner: Any, name: str, as_name: str) -> None:
        look: Callable[..., Any] = getattr(owner, name)

        def counted(*args: Any) -> Any:
            looks[as_name] += 1
            return look(*args)

        patch.setattr(owner, name, counted)

    count(Waiting, "_look", "agents")
    count(Waiting, "_first_end", "first end")
    count(Messaging, "_waiting", "mail")
    count(asks, "moot", "reply")


async def at_rest() -> None:
    """Whoever was just told of something has looked."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_coordination_5_7_who_waits_looks_again_only_when_its_own_tree_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: Counter[str] = Counter()
    _counted(monkeypatch, looks)
    async with troupe(tmp_path, environ=ON) as t:
        root, elsewhere = await t.root(), await t.root()
        one = await at_work(t, root, "one")

        async def changes(session_id: str) -> None:
            event = SessionUpdated(changes={"title": "another"})
            await t.host.log.append(session_id, event, actor=CLIENT)
            await at_rest()

        _, asking = await one.asking()
        waits = [
            asyncio.ensure_future(t.agents.waiting.for_any(elsewhere, timeout_s=NEVER_S)),
            asyncio.ensure_future(t.agents.messaging.mail(one.agent_id, timeout_s=NEVER_S)),
            asking,
        ]
        assert (await waits[0]).reason == "nothing"  # it has no agents
        # told of the question, the parent waits on
        two = await at_work(t, elsewhere, "two")
        waits[0] = asyncio.ensure_future(t.agents.waiting.for_any(elsewhere, timeout_s=NEVER_S))
        waits.append(
            asyncio.ensure_future(t.agents.waiting.for_first_end(two.agent_id, timeout_s=NEVER_S))
        )
        await at_rest()
        assert not any(each.done() for each in waits)
        third = await t.root()
        before = looks.copy()
        for _ in range(20):
            await changes(third)
        assert looks == before, "it concerns none of them"
        for _ in range(20):
            await changes(root)
        assert looks["agents"] == before["agents"]
        assert looks["first end"] == before["first end"]
        assert looks["mail"] > before["mail"] and looks["reply"] > before["reply"]
        before = looks.copy()
        await changes(two.agent_id)
        await changes(elsewhere)
        assert looks["agents"] > before["agents"] and looks["first end"] > before["first end"]
        assert looks["mail"] == before["mail"] and looks["reply"] == before["reply"]
        two.pause.open.set()
        await t.ended(two.agent)
        assert (await waits[0]).reason == "finished"
        assert (await waits[3]).over
        for each in waits[1:3]:
            each.cancel()
        one.pause.open.set()
        await t.ended(one.agent)


async def test_coordination_44_a_wait_reads_neither_closed_children_nor_any_report(
    tmp_path: Path,
) -> None:
    async with no_slot(tmp_path) as (t, root, one, pause):
        for number in range(3):
            closed = await t.spawn(root, f"n{number}")
            await t.agents.close(closed.agent_id, by=CLIENT)
        rows = t.host.log.glance(SQL["awaited"], root, None)
        assert [row[3] for row in rows] == ["one", "other"]
        assert one.report is not None
        assert one.report.summary not in repr(rows)
        plan = t.host.log.glance("EXPLAIN QUERY PLAN " + SQL["awaited"], root, None)
        assert any("agents_open" in row[3] for row in plan)
        assert not any("SCAN agents" in row[3] or "agents_by_parent" in row[3] for row in plan)
        pause.open.set()
        await t.ended(t.child(root, "other"))


@pytest.mark.parametrize("count", [1, 3, 4])
async def test_coordination_44_who_waits_is_answered_with_those_that_are_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    async with troupe(tmp_path) as t:
        root = await t.root()
        named = [await t.spawn(root, f"n{number}") for number in range(5)]
        for each in named:
            await t.ended(each)
            await t.idle(each.agent_id)
        meant = {each.agent_id for each in named[:count]}
        whole = [each for each in await t.agents.reading.list(root) if each.agent_id in meant]
        reading = t.agents.reading
        if count <= 3:  # without a look at all of the tree
            monkeypatch.delattr(type(reading), "list")
        answered = await handlers._children(reading, root, meant)
        assert list(answered) == whole
        await t.host.sessions.delete(named[0].agent_id, by=CLIENT)
        answered = await handlers._children(reading, root, meant)
        assert [each.name for each in answered] == [f"n{number}" for number in range(1, count)]


# --- who may begin when a session is deleted -------------------------------------------------------


async def test_coordination_24_a_deleted_agent_leaves_its_slot_to_one_that_is_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with no_slot(tmp_path) as (t, root, one, _):
        await tell(t, one.agent_id, "go on")
        woken: list[str] = []
        monkeypatch.setattr(t.agents.attention, "_wake", woken.append)
        other = t.child(root, "other").agent_id
        await t.host.log.transact(lambda tx: tx.delete_session(other, actor=CLIENT))
        assert woken == [one.agent_id]
        await t.host.dispatcher.wake(one.agent_id)
        await ended(t, one.agent_id, 2)


async def test_coordination_24_many_deleted_sessions_are_one_reason_to_look_who_may_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Any] = []
    monkeypatch.setattr(
        Attention, "_wake_children", lambda _, parent_id, **__: looked.append(parent_id)
    )
    async with troupe(tmp_path) as t:
        roots = [await t.root() for _ in range(5)]

        def delete(tx: Any) -> None:
            for each in roots:
                assert tx.delete_session(each, actor=CLIENT)

        await t.host.log.transact(delete)
        assert looked == [None]
        plan = t.host.log.glance("EXPLAIN QUERY PLAN " + SQL["waiting_children"], None, "host")
        assert any("SEARCH a USING PRIMARY KEY" in row[3] for row in plan)
