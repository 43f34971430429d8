"""What a child may do, and who is asked for it: coordination 49, 50, interrupts-and-peers 56-60, 77."""

from pathlib import Path
from typing import Any

import pytest
from agents_kit import Cast, Troupe, troupe
from agents_races import in_call, tree, verb
from interrupts_kit import after, allow, deny

from callboard.agents.examining import Caller, Wanted
from callboard_rpc.approvals import Approval
from callboard_rpc.common import UNSET
from callboard_rpc.errors import CallboardError
from harness.inside import CLIENT, pending
from harness.puppets import Pause, Scene, calls, of, results, speaks

pytestmark = pytest.mark.anyio

DEEP = {"CALLBOARD_AGENTS_MAX_DEPTH": "3"}
WRITE = ("write_file", {"path": "made.txt", "content": "x"})
RUN = ("run_command", {"command": "echo ran > ran.txt"})


def spawns(name: str, **more: Any) -> Scene:
    return calls(("spawn_agent", {"name": name, "message": "go", **more}))


async def asked(t: Troupe) -> Approval:
    """The one approval that is asked for."""
    (approval,) = await pending(t.host)
    return approval


async def answer(t: Troupe, approval: Approval, option: str = "allow_once") -> None:
    await t.host.approvals.answer(approval.approval_id, option, by=CLIENT, via="method")


async def switch(t: Troupe, session_id: str, mode: Any) -> None:
    same = {"title": UNSET, "pinned": UNSET, "metadata": UNSET, "model": UNSET}
    await t.host.sessions.update(session_id, by=CLIENT, mode=mode, **same)


def profile(folder: Path, name: str, **fields: str) -> None:
    """An agent definition of the person's."""
    place = folder / "config" / "agents"
    place.mkdir(parents=True, exist_ok=True)
    lines = [f"name: {name}", f"description: {name}", *(f"{k}: {v}" for k, v in fields.items())]
    (place / f"{name}.md").write_text("\n".join(["---", *lines, "---", f"You are {name}.", ""]))


# --- who is asked -------------------------------------------------------------------------------


async def test_coordination_49_what_a_child_must_ask_reaches_a_person_and_waits(
    tmp_path: Path,
) -> None:
    """The references refuse it at once, which users report as their worst fault (DESIGN 6)."""
    allow(tmp_path, execute="ask")
    cast = Cast(one=[calls(RUN), speaks("it ran")])
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        agent = await t.spawn(root, "one")
        approval = await asked(t)
        assert (approval.session_id, approval.root_id) == (agent.agent_id, root)
        assert [step.name for step in approval.path] == ["default", "one"]
        assert not of(await t.log(agent.agent_id), "tool_result")
        listed, _ = await t.host.approvals.page(state="pending")
        assert [a.approval_id for a in listed] == [approval.approval_id]
        await answer(t, approval)
        assert (await t.ended(agent)).status == "completed"
        assert results(await t.log(agent.agent_id)) == [("run_command", "ok")]
        assert (tmp_path / "ran.txt").exists()


async def test_peers_56_57_58_59_at_depth_two_over_a_restart_the_first_answer_wins(
    tmp_path: Path,
) -> None:
    allow(tmp_path, execute="ask")
    cast = Cast(
        top=[spawns("low", wait=True), speaks("top is done")],
        low=[calls(RUN), speaks("low is done")],
    )
    async with troupe(tmp_path, cast, environ=DEEP) as t:
        root = await t.root()
        top = await t.spawn(root, "top")
        first = await asked(t)
        low = t.agents.children(top.agent_id)[0]
        assert (first.session_id, first.root_id) == (low.agent_id, root)
        assert [(s.session_id, s.name) for s in first.path] == [
            (root, "default"),
            (top.agent_id, "top"),
            (low.agent_id, "low"),
        ]
    async with troupe(tmp_path, cast, environ=DEEP) as t:
        again = await asked(t)
        assert again == first
        assert t.agents.agent(low.agent_id).status == "running"  # it is parked
        assert t.agents.agent(top.agent_id).status == "interrupted"
        with pytest.raises(CallboardError) as unknown:
            await t.host.approvals.answer("apr_none", "allow_once", by=CLIENT, via="method")
        assert unknown.value.kind == "approvalNotFound"
        await answer(t, again)
        with pytest.raises(CallboardError) as late:
            await answer(t, again, "reject_once")
        assert late.value.kind == "alreadyResolved"
        assert late.value.data["resolution"]["outcome"] == "allowed"
        ended = await t.ended(low)
        assert ended.report is not None and ended.report.summary == "low is done"
        assert results(await t.log(low.agent_id)) == [("run_command", "ok")]
        assert (tmp_path / "ran.txt").read_text() == "ran\n"
        await tree(t, root)  # its report waits for the one above it, which was interrupted


async def test_peers_60_where_nobody_can_be_asked_policy_decides_and_the_child_goes_on(
    tmp_path: Path,
) -> None:
    allow(tmp_path, execute="ask")
    environ = {"CALLBOARD_APPROVALS_UNATTENDED": "deny"}
    cast = Cast(one=[calls(RUN), speaks("then not")])
    async with troupe(tmp_path, cast, environ=environ) as t:
        root = await t.root()
        agent = await t.ended(await t.spawn(root, "one"))
        assert results(await t.log(agent.agent_id)) == [("run_command", "denied")]
        assert "nobody is connected" in cast.read("one")[0]
        assert agent.status == "completed" and not (tmp_path / "ran.txt").exists()


async def test_peers_27_stopping_a_child_that_asks_takes_its_question_back(tmp_path: Path) -> None:
    """Both one that runs and one that is parked."""
    allow(tmp_path, execute="ask")
    cast = Cast(one=[calls(RUN)], two=[calls(RUN)])
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        one = await t.spawn(root, "one")
        approval = await asked(t)
        await t.agents.interrupt(one.agent_id, verb("abort"))
        await t.ended(one)
        ended = await t.host.approvals.get(approval.approval_id)
        assert ended.state == "cancelled"
        assert results(await t.log(one.agent_id)) == [("run_command", "cancelled")]
        two = await t.spawn(root, "two")
        await asked(t)
    async with troupe(tmp_path, cast) as t:
        assert t.child(root, "two").status == "running"
        done = await t.agents.interrupt(two.agent_id, verb("abort"))
        assert done.outcome == "aborted"
        now = t.child(root, "two")
        assert now.status == "interrupted" and now.report is not None
        assert (await t.host.approvals.page(state="pending"))[0] == []
        assert not (tmp_path / "ran.txt").exists()
        await tree(t, root)


# --- modes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["ask", "plan"])
async def test_coordination_50_a_root_that_is_switched_stops_the_writes_of_its_running_child(
    tmp_path: Path, mode: str
) -> None:
    allow(tmp_path, write="allow")
    pause = Pause()
    first = ("write_file", {"path": "before.txt", "content": "x"})
    cast = Cast(one=[calls(first), after(pause, calls(WRITE)), speaks("I may not")])
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        agent = await t.spawn(root, "one")
        await pause.came()
        await switch(t, root, mode)
        pause.open.set()
        await t.ended(agent)
        assert [s for _, s in results(await t.log(agent.agent_id))] == ["ok", "denied"]
        assert (tmp_path / "before.txt").exists() and not (tmp_path / "made.txt").exists()


async def test_peers_77_a_childs_mode_is_the_narrowest_of_all_above_it(tmp_path: Path) -> None:
    """At any depth, whatever its own definition says, and whatever it is switched to."""
    allow(tmp_path, write="allow")
    profile(tmp_path, "doer", mode="work")
    cast = Cast(top=[spawns("low", profile="doer")], low=[calls(WRITE), speaks("no")])
    async with troupe(tmp_path, cast, environ=DEEP) as t:
        root = await t.root(mode="plan")
        top = await t.ended(await t.spawn(root, "top"))
        low = t.agents.children(top.agent_id)[0]
        await t.ended(low)
        assert results(await t.log(low.agent_id)) == [("write_file", "denied")]
        await switch(t, low.agent_id, "work")
        await switch(t, top.agent_id, "work")
        cast.parts["low"] = [calls(WRITE), speaks("no")]
        await _again(t, low.agent_id)
        assert [s for _, s in results(await t.log(low.agent_id))] == ["denied", "denied"]
        await switch(t, root, "work")
        cast.parts["low"] = [calls(WRITE), speaks("yes")]
        await _again(t, low.agent_id)
        # what was pinned when it was made narrows no more than it is told: it was switched itself
        assert [s for _, s in results(await t.log(low.agent_id))][-1] == "ok"


async def _again(t: Troupe, agent_id: str) -> None:
    before = len(of(await t.log(agent_id), "turn_finished"))
    await t.say(agent_id, "try again")
    await t.idle(agent_id)
    assert len(of(await t.log(agent_id), "turn_finished")) == before + 1


async def test_peers_77_a_narrower_definition_holds_below_a_wider_root(tmp_path: Path) -> None:
    allow(tmp_path, write="allow")
    profile(tmp_path, "looker", mode="plan")
    cast = Cast(one=[calls(WRITE), speaks("no")])
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        agent = await t.ended(await t.spawn(root, "one", profile="looker"))
        assert results(await t.log(agent.agent_id)) == [("write_file", "denied")]


# --- tools --------------------------------------------------------------------------------------


async def test_peers_77_a_childs_tools_are_never_more_than_those_above_it(tmp_path: Path) -> None:
    """Advertised, and called: a scope is looked at when a call comes, too (session-messaging 5)."""
    allow(tmp_path, write="allow")
    profile(tmp_path, "reader", tools="[read_file, list_files, spawn_agent, wait_agents]")
    profile(tmp_path, "all")
    cast = Cast(
        top=[
            spawns("low", profile="all", tools=["read_file"], wait=True),
            spawns("wider", tools=["write_file"]),
            speaks("done"),
        ],
        low=[calls(WRITE), speaks("no")],
    )
    async with troupe(tmp_path, cast, environ=DEEP) as t:
        root = await t.root()
        top = await t.ended(await t.spawn(root, "top", profile="reader"))
        low = t.agents.children(top.agent_id)[0]
        names = {
            part: {tool.name for tool in cast.requests[part][0].tools} for part in cast.requests
        }
        assert names["top"] == {"read_file", "list_files", "spawn_agent", "wait_agents"}
        assert names["low"] == {"read_file"}
        assert results(await t.log(low.agent_id)) == [("write_file", "error")]
        assert not (tmp_path / "made.txt").exists()
        refused = cast.read("top")[0]
        assert refused.startswith("invalid_argument: there is no tool 'write_file' to give")
    # and a restart, or a wider definition of the parent's, gives nothing back
    profile(tmp_path, "reader")
    async with troupe(tmp_path, cast, environ=DEEP) as t:
        cast.requests.clear()
        await _again(t, low.agent_id)
        assert {tool.name for tool in cast.requests["low"][0].tools} == {"read_file"}


async def test_peers_77_an_agent_without_tools_is_one_that_only_speaks(tmp_path: Path) -> None:
    async with troupe(tmp_path) as t:
        root = await t.root()
        await t.ended(await t.spawn(root, "one", tools=()))
        assert t.cast.requests["one"][0].tools == ()


# --- rules --------------------------------------------------------------------------------------


async def test_peers_77_what_a_person_has_denied_a_root_its_children_may_not_either(
    tmp_path: Path,
) -> None:
    allow(tmp_path, execute="allow")
    cast = Cast(top=[spawns("low", wait=True)], low=[calls(RUN), speaks("no")])
    async with troupe(tmp_path, cast, environ=DEEP) as t:
        root = await t.root()
        await deny(t, root, "run_command")
        top = await t.ended(await t.spawn(root, "top"))
        low = t.agents.children(top.agent_id)[0]
        assert results(await t.log(low.agent_id)) == [("run_command", "denied")]
        assert not (tmp_path / "ran.txt").exists()


async def test_peers_77_what_is_allowed_for_the_session_holds_for_the_tree_and_no_other(
    tmp_path: Path,
) -> None:
    allow(tmp_path, execute="ask")
    cast = Cast(one=[calls(RUN)], two=[calls(RUN)], other=[calls(RUN)])
    async with troupe(tmp_path, cast) as t:
        root, stranger = await t.root(), await t.root()
        one = await t.spawn(root, "one")
        await answer(t, await asked(t), "allow_session")
        await t.ended(one)
        assert (await t.ended(await t.spawn(root, "two"))).status == "completed"
        other = await t.spawn(stranger, "other")
        assert (await asked(t)).session_id == other.agent_id
        await t.agents.interrupt(other.agent_id, verb("abort"))
        await t.ended(other)


async def test_peers_77_no_agent_answers_what_another_one_must_ask(tmp_path: Path) -> None:
    """There is no tool for it: only clients answer, and a report is no answer."""
    allow(tmp_path, execute="ask")
    cast = Cast(root=[calls(("wait_agents", {"timeout_ms": 60_000})), speaks("ok")])
    cast.parts["one"] = [calls(RUN), speaks("ok")]
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        agent = await t.spawn(root, "one")
        approval = await asked(t)
        await t.say(root, "allow it: yes, allow_once")
        await in_call(t, root)
        assert (await t.host.approvals.get(approval.approval_id)).state == "pending"
        assert not any("approv" in tool.name for tool in cast.requests["root"][0].tools)
        await answer(t, approval, "reject_once")
        await t.ended(agent)
        await t.idle(root)


async def test_peers_77_a_child_works_where_its_parent_does(tmp_path: Path) -> None:
    """Folders are its parent's; no call can name others."""
    async with troupe(tmp_path) as t:
        root = await t.root()
        agent = await t.ended(await t.spawn(root, "one"))
        spawned = of(await t.log(agent.agent_id), "agent_spawned")[0].session
        created = of(await t.log(root), "session_created")[0]
        assert (spawned.cwd, spawned.additional_directories) == (
            created.cwd,
            created.additional_directories,
        )
        with pytest.raises(CallboardError) as refused:
            await t.agents.spawn(
                Caller(parent_id="ses_none", by=CLIENT), Wanted(name="x", message="y")
            )
        assert refused.value.kind == "sessionNotFound"
