"""Steer, cancel, abort, and the parent's plain interrupt: interrupts-and-peers 1-4, 7, 8, 14-19, coordination 31, 32."""

import os
from pathlib import Path
from typing import Any

import pytest
from agents_kit import Cast, Troupe, troupe
from agents_races import tell, tree, verb
from interrupts_kit import ANOTHER, LOOK, after, allow, frames, held, terminals

from callboard.models.base import AssistantMessage, Text
from callboard_rpc.errors import CallboardError
from harness.inside import CLIENT
from harness.puppets import Pause, Scene, calls, fails, of, pauses, results, speaks

pytestmark = pytest.mark.anyio

# --- the slot -----------------------------------------------------------------------------------


async def test_peers_1_of_two_steers_before_a_boundary_the_newest_is_told(tmp_path: Path) -> None:
    async with troupe(tmp_path) as t:
        root = await t.root()
        agent, pause = await held(t, root, speaks("done"))
        for reason in ("to the left", "to the right"):
            done = await t.agents.interrupt(agent.agent_id, verb("steer", reason))
            assert (done.outcome, done.pending) == ("delivered", "steer")
        pause.open.set()
        ended = await t.ended(agent)
        assert frames(t) == 1
        assert "to the right" in t.cast.heard("one") and "to the left" not in t.cast.heard("one")
        assert ended.status == "completed"
        # 4: a steer is no end
        assert await terminals(t, agent) == []
        assert ended.report is not None and ended.report.status == "completed"
        assert len(of(await t.log(agent.agent_id), "agent_interrupt_consumed")) == 1


async def test_peers_2_a_cancel_takes_the_place_of_a_steer(tmp_path: Path) -> None:
    async with troupe(tmp_path) as t:
        root = await t.root()
        agent, pause = await held(t, root, speaks("this much is done"))
        await t.agents.interrupt(agent.agent_id, verb("steer", "to the left"))
        done = await t.agents.interrupt(agent.agent_id, verb("cancel", "enough"))
        assert (done.outcome, done.pending) == ("delivered", "cancel")
        pause.open.set()
        ended = await t.ended(agent)
        assert frames(t) == 1 and "enough" in t.cast.heard("one")
        assert 'kind="cancel"' in t.cast.heard("one") and "to the left" not in t.cast.heard("one")
        assert ended.status == "interrupted" and ended.interrupted is not None
        assert (ended.interrupted.kind, ended.interrupted.reason) == ("cancel", "enough")


async def test_peers_3_a_steer_behind_a_cancel_is_ignored_and_says_so(tmp_path: Path) -> None:
    async with troupe(tmp_path) as t:
        root = await t.root()
        agent, pause = await held(t, root, speaks("this much is done"))
        await t.agents.interrupt(agent.agent_id, verb("cancel", "enough"))
        before = len(await t.log(agent.agent_id))
        done = await t.agents.interrupt(agent.agent_id, verb("steer", "to the left"))
        assert (done.outcome, done.pending) == ("ignored", "cancel")
        assert len(await t.log(agent.agent_id)) == before
        again = await t.agents.interrupt(agent.agent_id, verb("cancel", "really enough"))
        assert (again.outcome, again.pending) == ("delivered", "cancel")
        pause.open.set()
        await t.ended(agent)
        assert frames(t) == 1 and "really enough" in t.cast.heard("one")
        assert "to the left" not in t.cast.heard("one")


async def test_peers_4_a_steer_keeps_what_was_done_and_calls_that_have_not_begun_give_way(
    tmp_path: Path,
) -> None:
    pause = Pause()
    async with troupe(tmp_path) as t:
        writes = [("write_file", {"path": f"{n}.txt", "content": "x"}) for n in range(2)]
        allow(tmp_path, write="allow")
        root = await t.root()
        t.cast.parts["one"] = [after(pause, calls(*writes)), speaks("done")]
        agent = await t.spawn(root, "one")
        await pause.came()
        await t.agents.interrupt(agent.agent_id, verb("steer", "do not write"))
        pause.open.set()
        ended = await t.ended(agent)
        assert [s for _, s in results(await t.log(agent.agent_id))] == ["superseded"] * 2
        assert ended.status == "completed" and await terminals(t, agent) == []


# --- abort --------------------------------------------------------------------------------------


async def test_peers_7_an_abort_ends_a_command_with_all_its_processes_and_no_result_follows(
    tmp_path: Path,
) -> None:
    allow(tmp_path, execute="allow")
    command = "sleep 600 & echo $! > pids; echo $$ >> pids; touch began; wait"
    cast = Cast(one=[calls(("run_command", {"command": command}))])
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        agent = await t.spawn(root, "one")
        while not (tmp_path / "began").exists():
            await t.host.log.query("SELECT 1")
        done = await t.agents.interrupt(agent.agent_id, verb("abort"))
        assert done.outcome == "aborted"
        await t.ended(agent)
        await t.idle(agent.agent_id)
        for pid in (tmp_path / "pids").read_text().split():
            assert not _runs(int(pid))
        kinds = [r.type for r in await t.log(agent.agent_id)]
        assert kinds.index("tool_result") < kinds.index("agent_interrupted")
        assert results(await t.log(agent.agent_id)) == [("run_command", "cancelled")]


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not (state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z")


@pytest.mark.parametrize("kind", ["abort", "steer", "cancel"])
async def test_peers_8_what_has_ended_is_not_changed_by_a_verb(tmp_path: Path, kind: str) -> None:
    async with troupe(tmp_path) as t:
        root = await t.root()
        agent = await t.ended(await t.spawn(root, "one"))
        await t.idle(agent.agent_id)
        before = await _everything(t)
        done = await t.agents.interrupt(agent.agent_id, verb(kind))
        assert done.outcome == "already_finished" and done.pending is None
        assert await _everything(t) == before


async def _everything(t: Troupe) -> dict[str, list[Any]]:
    """All that the store holds, but for who is there."""
    tables = await t.host.log.query(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'search%' "
        "AND name NOT IN ('hosts', 'sqlite_sequence', 'meta')"
    )
    return {
        name: sorted(await t.host.log.query(f"SELECT * FROM {name}"), key=repr)
        for (name,) in tables
    }


# --- one end ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "how", ["normal", "error", "cancel", "abort", "interrupt", "parent cancelled", "detached"]
)
async def test_peers_14_every_run_has_one_end_for_its_parent(tmp_path: Path, how: str) -> None:
    pause = Pause()
    last = fails() if how == "error" else speaks("done")
    cast = Cast(one=[after(pause, calls(LOOK)), last])
    more = {"wait": True, "timeout_ms": 20 if how == "detached" else 60_000}
    wait = how in ("detached", "parent cancelled")
    spawn = {"name": "one", "message": "go", **(more if wait else {})}
    cast.parts["root"] = [calls(("spawn_agent", spawn)), speaks("I go on")]
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        await t.say(root)
        await pause.came()
        agent = t.child(root, "one")
        if how == "parent cancelled":
            await t.host.sessions.cancel(root, by=CLIENT)
        if how in ("cancel", "abort", "interrupt"):
            origin = "parent" if how == "interrupt" else "user"
            await t.agents.interrupt(agent.agent_id, verb(how, "enough", origin))
        await t.idle(root)
        pause.open.set()
        await t.ended(agent)
        await t.idle(root)
        await t.say(root, "and now?")
        await t.idle(root)
        logs = await tree(t, root)  # holds that what was reported was told once
        reports = 0 if how == "interrupt" else 1
        kinds = [e["type"] for e in logs[agent.agent_id]]
        assert kinds.count("agent_report_created") == reports
        assert t.cast.heard("root").count("<agent-report") == reports


async def test_peers_15_a_cancelled_agent_tells_its_parent_why_what_and_by_which_id(
    tmp_path: Path,
) -> None:
    async with troupe(tmp_path) as t:
        root = await t.root()
        await t.say(root)
        await t.idle(root)
        pause = Pause()
        t.cast.parts["one"] = [pauses(pause, "never", before=["half of it"])]
        agent = await t.spawn(root, "one")
        await pause.came()
        await t.agents.interrupt(agent.agent_id, verb("abort", "too dear"))
        await t.ended(agent)
        await t.idle(root)
        told = t.cast.heard("root")
        assert 'status="aborted"' in told and "too dear" in told and "half of it" in told
        assert f'agent-id="{agent.agent_id}"' in told
        await tell(t, agent.agent_id, "cheaper, then")
        await t.idle(agent.agent_id)
        assert t.child(root, "one").status == "completed"
        assert "half of it" in _said_by(t, "one")


def _said_by(t: Troupe, part: str) -> str:
    return "".join(
        block.text
        for message in t.cast.requests[part][-1].messages
        if isinstance(message, AssistantMessage)
        for block in message.blocks
        if isinstance(block, Text)
    )


async def test_peers_16_a_new_turn_knows_no_old_end(tmp_path: Path) -> None:
    async with troupe(tmp_path) as t:
        root = await t.root()
        agent, pause = await held(t, root, speaks("as far as I came"))
        await t.agents.interrupt(agent.agent_id, verb("cancel", "enough"))
        pause.open.set()
        await t.ended(agent)
        again = Pause()
        t.cast.parts["one"] = [
            after(again, calls(ANOTHER)),
            calls(LOOK),
            calls(ANOTHER),
            speaks("x"),
        ]
        await tell(t, agent.agent_id, "go on after all")
        await again.came()
        now = t.child(root, "one")
        assert now.status == "running" and now.interrupted is None
        assert (now.pending, now.winding, now.deadline_at) == (None, None, None)
        again.open.set()
        await t.idle(agent.agent_id)
        ended = t.child(root, "one")
        assert ended.status == "completed" and ended.interrupted is None
        assert ended.report is not None and ended.report.summary == "x"  # no bound of old holds


async def test_peers_17_the_end_outlives_the_server(tmp_path: Path) -> None:
    async with troupe(tmp_path) as t:
        root = await t.root()
        agent, pause = await held(t, root, speaks("so far"))
        await t.agents.interrupt(agent.agent_id, verb("cancel", "enough"))
        pause.open.set()
        before = await t.ended(agent)
    async with troupe(tmp_path) as t:
        now = t.child(root, "one")
        assert now == before and now.status == "interrupted" and now.interrupted is not None
        assert (now.interrupted.kind, now.interrupted.reason) == ("cancel", "enough")
        await t.say(root)
        await t.idle(root)
        assert 'status="aborted"' in t.cast.heard("root")


@pytest.mark.parametrize("kind", ["steer", "cancel", "abort", "interrupt"])
async def test_peers_18_no_event_of_a_sibling_changes(tmp_path: Path, kind: str) -> None:
    async with troupe(tmp_path) as t:
        root = await t.root()
        agent, pause = await held(t, root, speaks("done"))
        other, hold = await held(t, root, speaks("all of it"), name="other")
        before = [r.event_id for r in await t.log(other.agent_id)]
        await t.agents.interrupt(agent.agent_id, verb(kind))
        pause.open.set()
        await t.ended(agent)
        assert [r.event_id for r in await t.log(other.agent_id)] == before
        hold.open.set()
        ended = await t.ended(other)
        assert ended.report is not None and ended.report.summary == "all of it"
        assert "<agent-interrupt" not in t.cast.heard("other")


@pytest.mark.parametrize("kind", ["abort", "interrupt"])
async def test_peers_19_interrupting_a_parent_leaves_nothing_running_below_it(
    tmp_path: Path, kind: str
) -> None:
    environ = {"CALLBOARD_AGENTS_MAX_DEPTH": "3"}
    low = Pause()

    def spawns(name: str) -> Scene:
        return calls(("spawn_agent", {"name": name, "message": "go", "wait": True}))

    cast = Cast(top=[spawns("mid")], mid=[spawns("low")], low=[pauses(low, "never")])
    async with troupe(tmp_path, cast, environ=environ) as t:
        root = await t.root()
        top = await t.spawn(root, "top")
        await low.came()
        mid = t.agents.children(top.agent_id)[0]
        lowest = t.agents.children(mid.agent_id)[0]
        assert t.host.dispatcher.running == 3
        await t.agents.interrupt(top.agent_id, verb(kind))
        for each in (top, mid, lowest):
            assert (await t.ended(each)).status == "interrupted"
            await t.idle(each.agent_id)
        assert t.host.dispatcher.running == 0
        assert len(cast.requests["top"]) == len(cast.requests["mid"]) == 1
        await tree(t, root)


# --- the plain interrupt ------------------------------------------------------------------------


async def test_coordination_31_32_an_interrupted_agent_has_no_report_and_goes_on_when_told(
    tmp_path: Path,
) -> None:
    cast = Cast(root=[calls(("interrupt_agent", {"agent_id": "one"})), speaks("ok")])
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        agent, pause = await held(t, root)
        await t.say(root)
        await t.idle(root)
        assert cast.read("root")[0] == f"Interrupt of 'one' ({agent.agent_id}) requested."
        ended = await t.ended(agent)
        assert (ended.status, ended.report) == ("interrupted", None)
        assert not pause.open.is_set()
        cast.parts["one"] = [speaks("again")]
        await tell(t, agent.agent_id, "go on")
        await t.idle(agent.agent_id)
        again = t.child(root, "one")
        assert again.status == "completed" and again.report is not None
        # 32: one that is idle
        await t.agents.interrupt(agent.agent_id, verb("interrupt", "stay there", "parent"))
        idle = t.child(root, "one")
        assert idle.status == "interrupted" and idle.interrupted is not None
        assert [r.type for r in await t.log(agent.agent_id)][-2:] == [
            "agent_interrupt_requested",
            "agent_interrupted",
        ]


async def test_coordination_33_a_closed_agent_cannot_be_interrupted(tmp_path: Path) -> None:
    async with troupe(tmp_path) as t:
        root = await t.root()
        agent = await t.ended(await t.spawn(root, "one"))
        await t.agents.close(agent.agent_id, by=CLIENT)
        for kind in ("steer", "cancel", "abort", "interrupt"):
            with pytest.raises(CallboardError) as refused:
                await t.agents.interrupt(agent.agent_id, verb(kind))
            assert refused.value.kind == "agentClosed"
