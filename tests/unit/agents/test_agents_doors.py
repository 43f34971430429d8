"""What holds of agents whichever tool is called: whom it reaches, what it says, what a child is left with
(coordination 6, 20, 44, 62, 63, interrupts-and-peers 9, 14, session-messaging 18)."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from agents_kit import Cast, Troupe, troupe
from agents_races import tell, tree
from interrupts_kit import SWITCHED_ON, allow, held

from callboard.agents.calling import CODES
from callboard.agents.examining import Caller
from callboard.agents.spawning import MAX_BRIEF_BYTES, Delegation
from callboard_rpc.errors import CallboardError
from harness.inside import CLIENT
from harness.puppets import Pause, Scene, calls, of, pauses, results, speaks

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


Call = tuple[str, dict[str, Any]]


def _of_an_agent(agent_id: str) -> list[Call]:
    """Each call by which a parent can name one of its agents."""
    return [
        ("send_agent_message", {"agent_id": agent_id, "message": "psst"}),
        ("continue_agent", {"agent_id": agent_id, "message": "psst"}),
        ("wait_agents", {"agent_ids": [agent_id], "timeout_ms": 0}),
        ("interrupt_agent", {"agent_id": agent_id}),
        ("steer_agent", {"agent_id": agent_id, "reason": "psst"}),
        ("cancel_agent", {"agent_id": agent_id, "reason": "psst"}),
        ("abort_agent", {"agent_id": agent_id}),
        ("close_agent", {"agent_id": agent_id}),
    ]


def _one_by_one(requested: Sequence[Call]) -> list[Scene]:
    return [*(calls(each) for each in requested), speaks("well then")]


async def _told(t: Troupe, session_id: str) -> list[str]:
    return [result.text for result in of(await t.log(session_id), "tool_result")]


async def _ids(t: Troupe, session_id: str) -> list[str]:
    return [record.event_id for record in await t.log(session_id)]


# --- whom a call reaches ------------------------------------------------------------------------


async def test_peers_9_no_tool_reaches_whom_it_may_not_and_all_misses_look_the_same(
    tmp_path: Path,
) -> None:
    """Oneself, one's parent, one's sibling, a stranger's agent, and nobody: at work, and untouched."""
    environ = {**SWITCHED_ON, "CALLBOARD_AGENTS_MAX_DEPTH": "2"}
    async with troupe(tmp_path, environ=environ) as t:
        root, elsewhere = await t.root(), await t.root()
        sibling, hold = await held(t, root, speaks("done"), name="sibling")
        other, hold_other = await held(t, elsewhere, speaks("done"), name="other")
        here = Pause()
        t.cast.parts["caller"] = [pauses(here, "ready")]
        caller = await t.spawn(root, "caller")
        await here.came()
        here.open.set()
        await t.ended(caller)
        ids = [caller.agent_id, root, sibling.agent_id, other.agent_id, elsewhere, "ses_nobody"]
        ids += ["sibling", "other"]  # nor by names, which are other parents' to use
        before = {each: await _ids(t, each) for each in (sibling.agent_id, other.agent_id)}
        t.cast.parts["caller"] = [
            *(calls(*_of_an_agent(each)) for each in ids),
            speaks("well then"),
        ]
        await tell(t, caller.agent_id, "try")
        await t.idle(caller.agent_id)
        said = await _told(t, caller.agent_id)
        expected = [
            f"unknown_agent: there is no agent {named!r} below this session; list them"
            for named in ids
            for _ in _of_an_agent(named)
        ]
        assert said == expected
        for each, log in before.items():
            assert await _ids(t, each) == log
        for pause, agent in ((hold, sibling), (hold_other, other)):
            pause.open.set()
            assert (await t.ended(agent)).status == "completed"


async def test_coordination_20_44_the_list_tells_all_by_name_and_no_word_of_a_report(
    tmp_path: Path,
) -> None:
    async with troupe(tmp_path) as t:
        root = await t.root()
        made = {name: await t.spawn(root, name) for name in ("zeta", "mid")}
        for agent in made.values():
            await t.ended(agent)
        await t.agents.close(made["mid"].agent_id, by=CLIENT)
        t.cast.parts["alpha"] = [pauses(pause := Pause(), "the very words")]
        made["alpha"] = await t.spawn(root, "alpha", agent_type="scout")
        await pause.came()
        t.cast.parts["root"] = _one_by_one([("list_agents", {})])
        await t.say(root)
        await t.idle(root)
        assert t.cast.read("root") == [
            [
                {"agent_id": made["alpha"].agent_id, "name": "alpha", "status": "running",
                 "agent_type": "scout"},
                {"agent_id": made["mid"].agent_id, "name": "mid", "status": "closed"},
                {"agent_id": made["zeta"].agent_id, "name": "zeta", "status": "completed"},
            ]
        ]  # fmt: skip
        pause.open.set()
        await t.ended(made["alpha"])


# --- what a call says ---------------------------------------------------------------------------

LATE: Mapping[str, tuple[str, str]] = {
    "taskNotFound": ("unknown_task", "there is no task"),
    "taskNotClaimable": ("task_not_pending", "it is in_progress, and 'one' has it"),
    "taskNotReady": ("task_not_ready", "it waits for 'tsk_1'"),
    "sessionClosed": ("session_closed", "the parent is closed"),
    "sessionArchived": ("session_archived", "the parent is archived"),
    "modelUnavailable": ("model_unavailable", "no provider serves it"),
    "authRequired": ("model_unavailable", "a key is missing"),
}
"""What is found out by others, and when the child is made: the error's kind, the code, what it says."""


@pytest.mark.parametrize("kind", LATE)
@pytest.mark.parametrize("when", ["before", "in the transaction"])
async def test_coordination_6_what_a_task_or_a_model_refuses_has_its_code_and_leaves_no_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, when: str
) -> None:
    code, words = LATE[kind]

    def refuse(*_: Any) -> None:
        raise CallboardError(kind, words, data={"reason": "unknown"})

    async def delegates(caller: Caller, task_id: str) -> Delegation:
        if when == "before":
            refuse()
        return refuse

    spawn = ("spawn_agent", {"name": "one", "message": "go", "task_id": "tsk_2"})
    async with troupe(tmp_path, Cast(root=_one_by_one([spawn]))) as t:
        examiner = t.agents._examiner  # pyright: ignore[reportPrivateUsage]
        monkeypatch.setattr(examiner, "_delegates", delegates)
        root = await t.root()
        await t.say(root)
        await t.idle(root)
        assert await _told(t, root) == [f"{code}: {words}"]
        assert t.agents.children(root) == ()
        assert t.host.log.glance("SELECT session_id FROM heads") == [(root,)]


async def test_coordination_6_what_an_agent_takes_no_more_of_has_its_code(tmp_path: Path) -> None:
    """An inbox that is full, and a session that was put away."""
    async with troupe(tmp_path) as t:
        root = await t.root()
        agent = await t.ended(await t.spawn(root, "one"))
        for number in range(2_000):
            try:
                await tell(t, agent.agent_id, f"message {number}", goes_on=False)
            except CallboardError as full:
                assert full.kind == "queueFull"
                break
        send = ("send_agent_message", {"agent_id": "one", "message": "one more"})
        t.cast.parts["root"] = _one_by_one([send])
        await t.say(root)
        await t.idle(root)
        away = await t.ended(await t.spawn(root, "away"))
        await t.host.sessions.set_archived(away.agent_id, archived=True, by=CLIENT)
        for_it = ("continue_agent", {"agent_id": "away", "message": "go on"})
        t.cast.parts["root"] = _one_by_one([for_it])
        await t.say(root)
        await t.idle(root)
        codes = [text.partition(":")[0] for text in await _told(t, root)]
        assert codes == ["queue_full", "session_archived"]
        assert len(of(await t.log(away.agent_id), "turn_started")) == 1


def test_coordination_6_no_code_says_two_things_but_of_models() -> None:
    codes = list(CODES.values())
    assert sorted({code for code in codes if codes.count(code) > 1}) == ["model_unavailable"]
    assert all(code.replace("_", "").isalpha() and code.islower() for code in codes)


@pytest.mark.parametrize("letter", ["x", "é"])
async def test_a_brief_may_have_256_kib_and_reaches_its_agent_whole(
    tmp_path: Path, letter: str
) -> None:
    brief = letter * (MAX_BRIEF_BYTES // len(letter.encode()))
    assert len(brief.encode()) == MAX_BRIEF_BYTES == 256 * 1024
    more = {"name": "two", "message": brief + "."}
    asked = [("spawn_agent", {"name": "one", "message": brief, "wait": True})]
    async with troupe(tmp_path, Cast(root=_one_by_one([*asked, ("spawn_agent", more)]))) as t:
        root = await t.root()
        await t.say(root)
        await t.idle(root)
        done, refused = await _told(t, root)
        assert done == "done." and refused.startswith("message_too_large: ")
        assert brief in t.cast.heard("one")
        assert [agent.name for agent in t.agents.children(root)] == ["one"]


# --- what a child is left with ------------------------------------------------------------------


def _profile(folder: Path, name: str, tools: str) -> None:
    place = folder / "config" / "agents"
    place.mkdir(parents=True, exist_ok=True)
    text = f"---\nname: {name}\ndescription: {name}\ntools: {tools}\n---\nYou are {name}.\n"
    (place / f"{name}.md").write_text(text)


@pytest.mark.parametrize("narrowed_by", ["profile", "call"])
async def test_messaging_18_a_tool_that_the_parent_lacks_is_not_got_by_listing_it(
    tmp_path: Path, narrowed_by: str
) -> None:
    """Neither advertised nor run, though the child's own definition lists it: whether the parent lacks it by
    its own definition, or because it was not given it."""
    allow(tmp_path, write="allow")
    _profile(tmp_path, "wide", "[read_file, write_file, spawn_agent]")
    _profile(tmp_path, "reader", "[read_file, spawn_agent]")
    write = ("write_file", {"path": "made.txt", "content": "x"})
    below = ("spawn_agent", {"name": "low", "message": "go", "profile": "wide", "wait": True})
    cast = Cast(top=[calls(below), speaks("ok")], low=[calls(write), speaks("no")])
    more: dict[str, Any] = {"profile": "reader"}
    if narrowed_by == "call":
        more = {"profile": "wide", "tools": ("read_file", "spawn_agent")}
    async with troupe(tmp_path, cast, environ={"CALLBOARD_AGENTS_MAX_DEPTH": "2"}) as t:
        root = await t.root()
        top = await t.ended(await t.spawn(root, "top", **more))
        low = t.agents.children(top.agent_id)[0]
        names = {tool.name for tool in cast.requests["low"][0].tools}
        assert names == {"read_file", "spawn_agent"}
        assert results(await t.log(low.agent_id)) == [("write_file", "error")]
        assert not (tmp_path / "made.txt").exists()


# --- one end, and one result --------------------------------------------------------------------


async def test_peers_14_a_run_that_has_asked_its_parent_has_one_end_for_it(tmp_path: Path) -> None:
    environ = {"CALLBOARD_FEATURES": "agents.messaging"}
    asks = calls(("message", {"to": "parent", "text": "which?"}))
    spawn = ("spawn_agent", {"name": "one", "message": "go", "wait": True})
    cast = Cast(root=[calls(spawn), speaks("let me see")], one=[asks, speaks("it is done")])
    async with troupe(tmp_path, cast, environ=environ) as t:
        root = await t.root()
        await t.say(root)
        await t.idle(root)  # its call was ended by the question
        told = cast.read("root", 1)[0]
        assert told["question"]["text"] == "which?"
        await t.agents.reply(
            told["question"]["ask_id"],
            "that",
            author=of(await t.log(root), "message")[0].author,
            by=CLIENT,
        )
        agent = await t.ended(t.child(root, "one"))
        await t.idle(root)
        await t.say(root, "and now?")
        await t.idle(root)
        kinds = [e["type"] for e in (await tree(t, root))[agent.agent_id]]
        assert kinds.count("agent_report_created") == kinds.count("turn_finished") == 1
        assert cast.heard("root").count("<agent-report") == 1


async def test_coordination_62_63_a_steer_during_the_first_of_three_writes_lets_reads_run(
    tmp_path: Path,
) -> None:
    """By a real command that runs until the test lets it end."""
    allow(tmp_path, execute="allow", write="allow")
    os.mkfifo(tmp_path / "go")
    batch: list[Call] = [
        ("run_command", {"command": "touch began; read _ < go; touch ended"}),
        ("write_file", {"path": "second.txt", "content": "x"}),
        ("list_files", {"path": "."}),
        ("write_file", {"path": "third.txt", "content": "x"}),
    ]
    async with troupe(tmp_path, Cast(one=[calls(*batch), speaks("as you say")])) as t:
        root = await t.root()
        agent = await t.spawn(root, "one")
        while not (tmp_path / "began").exists():
            await t.host.log.query("SELECT 1")
        await t.say(agent.agent_id, "write nothing more", delivery="steer")
        with (tmp_path / "go").open("w") as gate:
            gate.write("\n")
        await t.ended(agent)
        log = await t.log(agent.agent_id)
        by_call = {result.call_id: result.status for result in of(log, "tool_result")}
        requested = [call.call_id for call in of(log, "tool_call")]
        assert [by_call[each] for each in requested] == ["ok", "superseded", "ok", "superseded"]
        assert len(of(log, "tool_result")) == len(requested) == 4
        assert (tmp_path / "ended").exists()
        assert not list(tmp_path.glob("*.txt"))
        assert "write nothing more" in t.cast.heard("one")


async def test_messaging_18_a_raised_limit_gives_nothing_to_those_below_an_older_agent(
    tmp_path: Path,
) -> None:
    """An agent's children get of its depth what is left of it, whatever is set by now; also from a person."""
    low = calls(("spawn_agent", {"name": "low", "message": "go", "wait": True}))
    lower = calls(("spawn_agent", {"name": "lower", "message": "go"}))
    async with troupe(tmp_path, environ={"CALLBOARD_AGENTS_MAX_DEPTH": "2"}) as t:
        root = await t.root()
        top = await t.ended(await t.spawn(root, "top"))
    cast = Cast(top=[low, speaks("ok")], low=[lower, speaks("myself, then")])
    async with troupe(tmp_path, cast, environ={"CALLBOARD_AGENTS_MAX_DEPTH": "8"}) as t:
        await tell(t, top.agent_id, "go deeper")
        await t.idle(top.agent_id)
        made = t.child(top.agent_id, "low")
        assert (top.depth_left, made.depth_left) == (1, 0)
        assert cast.read("low")[0].startswith("depth_exceeded: ")
        with pytest.raises(CallboardError) as refused:
            await t.spawn(made.agent_id, "lower")
        assert refused.value.kind == "depthExceeded"
        assert t.agents.children(made.agent_id) == ()
