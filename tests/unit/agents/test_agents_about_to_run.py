"""An agent whose turn was asked for and has not begun is interrupted like one that runs
(interrupts-and-peers 1, 7, 19; coordination 31)."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from agents_kit import Cast, Troupe, troupe
from agents_races import tell, tree, verb
from interrupts_kit import after

from callboard.agents.state import AgentState
from harness.puppets import Pause, calls, of, pauses, speaks

pytestmark = pytest.mark.anyio

ONE_SLOT = {"CALLBOARD_AGENTS_MAX_RUNNING": "1"}


@asynccontextmanager
async def no_slot(folder: Path) -> AsyncGenerator[tuple[Troupe, str, AgentState, Pause]]:
    """The agent "one" has ended its first turn, and "other" has the only slot until the pause is opened."""
    pause = Pause()
    cast = Cast(other=[after(pause, speaks("done"))])
    async with troupe(folder, cast, environ=ONE_SLOT) as t:
        root = await t.root()
        one = await t.ended(await t.spawn(root, "one"))
        await t.idle(one.agent_id)
        await t.spawn(root, "other")
        await pause.came()
        yield t, root, one, pause


async def free(t: Troupe, root: str, pause: Pause) -> None:
    """Frees the slot, and waits until nobody wants it any more."""
    pause.open.set()
    await t.ended(t.child(root, "other"))
    await t.idle(t.child(root, "other").agent_id)


def kinds(log: list[Any]) -> list[str]:
    return [record.type for record in log]


@pytest.mark.parametrize("kind", ["abort", "cancel", "interrupt"])
@pytest.mark.parametrize("how", ["continue", "prompt"])
async def test_peers_7_a_turn_that_waits_for_a_slot_can_be_taken_back(
    tmp_path: Path, kind: str, how: str
) -> None:
    async with no_slot(tmp_path) as (t, root, one, pause):
        if how == "continue":
            await tell(t, one.agent_id, "go on")
        else:
            await t.say(one.agent_id, "go on")
        assert t.child(root, "one").status == "completed"
        done = await t.agents.interrupt(one.agent_id, verb(kind, "enough"))
        assert (done.outcome, done.pending) == ("aborted", None)
        stopped = t.child(root, "one")
        assert stopped.status == "interrupted" and stopped.interrupted is not None
        assert (stopped.interrupted.reason, stopped.interrupted.kind) == ("enough", None)
        assert kinds(await t.log(one.agent_id))[-2:] == [
            "agent_interrupt_requested",
            "agent_interrupted",
        ]
        again = await t.agents.interrupt(one.agent_id, verb("abort"))
        assert again.outcome == "already_finished"
        await free(t, root, pause)
        await t.idle(one.agent_id)
        log = await t.log(one.agent_id)
        assert kinds(log).count("turn_started") == 1
        assert len(of(log, "agent_report_created")) == 1, "none is due for a turn that never began"
        # what was said is read by the turn that somebody begins
        await tell(t, one.agent_id, "now, then")
        await t.idle(one.agent_id)
        assert kinds(await t.log(one.agent_id)).count("turn_started") == 2
        assert "go on" in t.cast.heard("one") and "now, then" in t.cast.heard("one")
        assert "<agent-interrupt" not in t.cast.heard("one")
        assert t.child(root, "one").status == "completed"
        await tree(t, root)


async def test_peers_1_a_steer_waits_for_the_first_boundary_of_a_turn_that_waits_for_a_slot(
    tmp_path: Path,
) -> None:
    async with no_slot(tmp_path) as (t, root, one, pause):
        await tell(t, one.agent_id, "go on")
        for reason in ("to the left", "to the right"):
            done = await t.agents.interrupt(one.agent_id, verb("steer", reason))
            assert (done.outcome, done.pending) == ("delivered", "steer")
        await free(t, root, pause)
        await t.idle(one.agent_id)
        assert len(t.cast.requests["one"]) == 2
        told = t.cast.heard("one")
        assert "go on" in told and "to the right" in told and "to the left" not in told
        ended = t.child(root, "one")
        assert ended.status == "completed" and ended.pending is None
        await tree(t, root)


async def test_peers_2_a_steer_goes_with_the_turn_that_it_waited_for(tmp_path: Path) -> None:
    async with no_slot(tmp_path) as (t, root, one, pause):
        await tell(t, one.agent_id, "go on")
        await t.agents.interrupt(one.agent_id, verb("steer", "to the left"))
        done = await t.agents.interrupt(one.agent_id, verb("cancel", "enough"))
        assert done.outcome == "aborted" and t.child(root, "one").pending is None
        await free(t, root, pause)
        await tell(t, one.agent_id, "now, then")
        await t.idle(one.agent_id)
        assert "to the left" not in t.cast.heard("one")


async def test_peers_7_one_that_has_not_begun_at_all_does_not_begin_for_what_came_meanwhile(
    tmp_path: Path,
) -> None:
    async with no_slot(tmp_path) as (t, root, _, pause):
        new = await t.spawn(root, "new")
        await tell(t, new.agent_id, "and this")
        done = await t.agents.interrupt(new.agent_id, verb("abort"))
        assert done.outcome == "aborted"
        await free(t, root, pause)
        await t.idle(new.agent_id)
        assert not t.cast.requests["new"]
        await tell(t, new.agent_id, "after all")
        await t.idle(new.agent_id)
        heard = t.cast.heard("new")
        assert "work" in heard and "and this" in heard and "after all" in heard


async def test_peers_19_what_waits_below_an_agent_is_taken_back_with_it(tmp_path: Path) -> None:
    low = Pause()
    environ = {**ONE_SLOT, "CALLBOARD_AGENTS_MAX_DEPTH": "2"}
    cast = Cast(
        top=[calls(("spawn_agent", {"name": "first", "message": "go", "wait": True})),
             calls(("spawn_agent", {"name": "second", "message": "go", "wait": True}))],
        second=[pauses(low, "never")],
    )  # fmt: skip
    async with troupe(tmp_path, cast, environ=environ) as t:
        root = await t.root()
        top = await t.spawn(root, "top")
        await low.came()
        first, second = t.agents.children(top.agent_id)
        await tell(t, first.agent_id, "go on")
        done = await t.agents.interrupt(top.agent_id, verb("abort"))
        assert done.outcome == "aborted"
        for each in (top, second, first):
            assert (await t.ended(each)).status in ("interrupted", "completed")
            await t.idle(each.agent_id)
        assert t.agents.agent(first.agent_id).status == "interrupted"
        assert kinds(await t.log(first.agent_id)).count("turn_started") == 1
        await tree(t, root)
