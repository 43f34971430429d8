"""Who exists, under whom, in which status: coordination 14-22, 33-38, 46-48."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agents_kit import Cast, troupe
from attrs import define

from callboard.agents.examining import Caller, Wanted
from callboard.agents.state import in_order, replay
from callboard.host import Feature
from callboard.log.record import Record
from callboard.log.transaction import Projection, Transaction
from callboard_rpc.common import UNSET
from callboard_rpc.errors import CallboardError
from harness.inside import CLIENT, PERSON
from harness.puppets import Pause, calls, of, pauses, results, speaks

pytestmark = pytest.mark.anyio


@define
class Breaking:
    """A projection that fails at an event of a type, as a full disk or a fault of ours would."""

    at: str | None = None

    def apply(self, tx: Transaction, record: Record) -> None:
        if record.type == self.at:
            raise ValueError("this cannot be projected")

    @property
    def feature(self) -> Feature:
        types = ("agent_spawned", "directive", "agent_message_queued", "agent_close_requested")
        projection = Projection(
            name="breaking",
            tables=(),
            apply=dict.fromkeys(types, self.apply),
            forget=lambda tx, session_id: None,
        )
        return Feature(name="breaking", projections=(projection,))


async def _sessions(t: Any) -> list[Any]:
    return await t.host.log.query("SELECT session_id FROM heads ORDER BY session_id")


# --- making one ---------------------------------------------------------------------------------


async def test_coordination_14_the_spawn_is_the_first_event_and_the_brief_the_second(
    tmp_path: Path,
) -> None:
    async with troupe(tmp_path) as t:
        root = await t.root()
        agent = await t.spawn(root, "one", "look around", agent_type="scout")
        await t.ended(agent)
        first, second = (await t.log(agent.agent_id))[:2]
        assert (first.seq, first.type) == (1, "agent_spawned")
        spawned = first.value
        assert (spawned.name, spawned.agent_type, spawned.depth_left) == ("one", "scout", 0)
        assert (spawned.session.parent_id, spawned.session.depth) == (root, 1)
        assert (second.type, second.value.text) == ("directive", "look around")
        assert first.at == second.at


@pytest.mark.parametrize("at", ["agent_spawned", "directive"])
async def test_coordination_15_when_the_spawn_cannot_be_written_there_is_no_session(
    tmp_path: Path, at: str
) -> None:
    broken = Breaking()
    cast = Cast(root=[calls(("spawn_agent", {"name": "one", "message": "go"})), speaks("so be it")])
    async with troupe(tmp_path, cast, features=(broken.feature,)) as t:
        root = await t.root()
        broken.at = at
        await t.say(root)
        await t.idle(root)
        assert results(await t.log(root)) == [("spawn_agent", "error")]
        assert await _sessions(t) == [(root,)]
        assert t.agents.children(root) == ()
        broken.at = None  # and its name and its place are free
        assert (await t.ended(await t.spawn(root, "one"))).status == "completed"


async def test_coordination_16_spawn_answers_before_the_child_does(tmp_path: Path) -> None:
    pause = Pause()
    spawn = ("spawn_agent", {"name": "one", "message": "go"})
    cast = Cast(root=[calls(spawn), speaks("it is under way")], one=[pauses(pause, "done")])
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        await t.say(root)
        await t.idle(root)
        agent = t.child(root, "one")
        assert cast.read("root") == [
            {"agent_id": agent.agent_id, "name": "one", "status": "starting"}
        ]
        await pause.came()
        assert t.child(root, "one").status == "running"
        pause.open.set()
        await t.ended(agent)


async def test_coordination_17_two_children_run_at_once_and_see_only_their_own_brief(
    tmp_path: Path,
) -> None:
    here, there = Pause(), Pause()
    cast = Cast(one=[pauses(here, "first")], two=[pauses(there, "second")])
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        await t.say(root, "a secret of the root")
        await t.idle(root)
        one = await t.spawn(root, "one", "the first task")
        two = await t.spawn(root, "two", "the second task")
        await here.came()
        await there.came()  # neither has ended
        here.open.set()
        there.open.set()
        await t.ended(one)
        await t.ended(two)
        assert "the first task" in cast.heard("one") and "the second task" in cast.heard("two")
        for part, other in (("one", "second"), ("two", "first")):
            assert f"the {other} task" not in cast.heard(part)
            assert "secret" not in cast.heard(part)


async def test_coordination_18_a_name_is_taken_once_among_open_children_and_free_after_close(
    tmp_path: Path,
) -> None:
    def spawn(message: str) -> Any:
        return calls(("spawn_agent", {"name": "one", "message": message}))

    close = calls(("close_agent", {"agent_id": "one"}))
    cast = Cast(root=[spawn("a"), spawn("b"), close, spawn("c"), speaks("done")])
    async with troupe(tmp_path, cast) as t:
        root, other = await t.root(), await t.root()
        await t.say(root)
        await t.idle(root)
        said = [text for request in cast.requests["root"][1:] for text in _told(request)]
        assert said[0]["status"] == said[3]["status"] == "starting"
        assert said[1].startswith("name_in_use: ") and "'one'" in said[1]
        assert said[2].startswith("Closed 'one'")
        assert [c.status for c in t.agents.children(root)].count("closed") == 1
        await t.spawn(other, "one")  # of another parent


def _told(request: Any) -> list[Any]:
    """The results that a request ends with."""
    cast = Cast()
    cast.requests["x"] = [request]
    return cast.read("x")


# --- the graph ----------------------------------------------------------------------------------


async def test_coordination_19_20_the_events_say_what_the_list_says_by_name_and_then_id(
    tmp_path: Path,
) -> None:
    cast = Cast(broken=[speaks("")], held=[pauses(pause := Pause(), "late")])
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        for name in ("zeta", "alpha", "mid", "held"):
            await t.spawn(root, name)
        for name in ("zeta", "alpha", "mid"):
            await t.ended(t.child(root, name))
        await t.agents.close(t.child(root, "mid").agent_id, by=CLIENT)
        await t.ended(await t.spawn(root, "mid"))  # the same name, another id
        await pause.came()
        listed = t.agents.children(root)
        assert [c.name for c in listed] == ["alpha", "held", "mid", "mid", "zeta"]
        assert list(listed) == in_order(listed)
        told = [replay([r.value for r in await t.log(c.agent_id)]) for c in listed]
        assert told == list(listed)
        assert {c.status for c in listed} == {"completed", "running", "closed"}
        pause.open.set()
        await t.ended(t.child(root, "held"))


async def test_coordination_33_34_35_a_closed_child_refuses_all_and_can_be_closed_again(
    tmp_path: Path,
) -> None:
    pause = Pause()
    seven = [
        ("close_agent", {"agent_id": "one"}),
        ("continue_agent", {"agent_id": "one", "message": "go on"}),
        ("send_agent_message", {"agent_id": "one", "message": "by the way"}),
        ("interrupt_agent", {"agent_id": "one"}),
        ("close_agent", {"agent_id": "one"}),
        ("wait_agents", {"agent_ids": ["one"]}),
    ]
    cast = Cast(root=[calls(*seven), speaks("ok")], one=[pauses(pause, "never said")])
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        agent = await t.spawn(root, "one")
        await pause.came()
        await t.say(root)
        await t.idle(root)
        assert t.host.dispatcher.live(agent.agent_id) is None  # the request has ended with it
        first, *refused, again, waited = cast.read("root")
        assert first == again == f"Closed 'one' ({agent.agent_id})."
        assert [text.partition(":")[0] for text in refused] == ["agent_closed"] * 3
        assert waited["agents"][0]["status"] == "closed"
        records = await t.log(agent.agent_id)
        assert len(of(records, "agent_closed")) == len(of(records, "session_closed")) == 1
        assert [r.type for r in records][-2:] == ["agent_closed", "session_closed"]
        assert not of(records, "agent_report_created")
        assert not of(await t.log(root), "agent_notification_delivered")


async def test_coordination_36_a_child_that_ignores_its_cancel_is_ended_within_the_grace(
    tmp_path: Path,
) -> None:
    environ = {"CALLBOARD_LIMITS_CANCEL_GRACE_S": "0.1"}
    pause = Pause()

    async def stubborn(request: Any) -> Any:
        pause.reached.set()
        while not pause.open.is_set():
            try:
                await pause.open.wait()
            except asyncio.CancelledError:
                continue
        async for event in speaks("too late")(request):
            yield event

    cast = Cast(one=[stubborn])
    async with troupe(tmp_path, cast, environ=environ) as t:
        root = await t.root()
        agent = await t.spawn(root, "one")
        await pause.came()
        closed = await t.agents.close(agent.agent_id, by=CLIENT)
        assert closed.status == "closed"
        pause.open.set()  # what comes of it is refused by the fence
        before = len(await t.log(agent.agent_id))
        await t.ended(await t.spawn(root, "two"))
        records = await t.log(agent.agent_id)
        assert len(records) == before and records[-1].type == "session_closed"


async def test_coordination_37_closing_the_root_leaves_no_child_and_no_request(
    tmp_path: Path,
) -> None:
    names = ("one", "two", "three")
    holds = {name: Pause() for name in names}
    ended: list[str] = []

    def until_cancelled(name: str) -> Any:
        async def scene(request: Any) -> Any:
            try:
                async for event in pauses(holds[name], "never")(request):
                    yield event
            finally:
                ended.append(name)

        return scene

    cast = Cast(**{name: [until_cancelled(name)] for name in names})
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        idle = await t.ended(await t.spawn(root, "idle"))
        agents = [await t.spawn(root, name) for name in names]
        for hold in holds.values():
            await hold.came()
        await t.host.sessions.close(root, by=CLIENT)
        assert sorted(ended) == sorted(names)
        assert t.host.dispatcher.running == 0
        assert [c.status for c in t.agents.children(root)] == ["closed"] * 4
        for agent in (idle, *agents):
            kinds = [r.type for r in await t.log(agent.agent_id)]
            assert kinds.count("agent_closed") == 1


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("wait_agents", {"agent_ids": ["nobody"]}),
        ("send_agent_message", {"agent_id": "nobody", "message": "hello"}),
        ("continue_agent", {"agent_id": "nobody", "message": "hello"}),
        ("interrupt_agent", {"agent_id": "nobody"}),
        ("close_agent", {"agent_id": "nobody"}),
    ],
)
async def test_coordination_38_an_unknown_agent_is_an_error_everywhere(
    tmp_path: Path, tool: str, arguments: dict[str, Any]
) -> None:
    cast = Cast(root=[calls((tool, arguments)), speaks("ok")])
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        await t.say(root)
        await t.idle(root)
        assert cast.read("root")[0].startswith("unknown_agent: there is no agent 'nobody'")
        assert results(await t.log(root)) == [(tool, "error")]


# --- what a model sees --------------------------------------------------------------------------


async def test_coordination_46_the_tools_are_the_same_whatever_the_graph_holds(
    tmp_path: Path,
) -> None:
    steps = [
        calls(("list_agents", {})),
        calls(("spawn_agent", {"name": "one", "message": "go"})),
        calls(("wait_agents", {})),
        calls(("close_agent", {"agent_id": "one"})),
        speaks("done"),
    ]
    async with troupe(tmp_path, Cast(root=steps)) as t:
        root = await t.root()
        await t.say(root)
        await t.idle(root)
        kinds = [r.type for r in await t.log(root)]
        assert "<agent-report" in t.cast.heard("root") and kinds.count("tool_result") == 4
        given = [request.tools for request in t.cast.requests["root"]]
        assert len(given) >= 5 and all(tools == given[0] for tools in given)
        seven = {"spawn_agent", "send_agent_message", "continue_agent", "wait_agents", "list_agents",
                 "interrupt_agent", "close_agent"}  # fmt: skip
        assert seven <= {tool.name for tool in given[0]}


async def test_coordination_47_a_child_keeps_its_model_and_a_new_one_gets_the_new(
    tmp_path: Path,
) -> None:
    cast = Cast()
    wanted: list[str | None] = []

    async def resolve(model_id: str | None = None, *, text_tool_calls: bool = False) -> Cast:
        wanted.append(model_id)
        return cast

    async with troupe(tmp_path, cast) as t:
        t.host.catalog.resolve = resolve  # type: ignore[method-assign]
        root = await t.root(model="scripted/old")
        one = await t.ended(await t.spawn(root, "one"))
        assert wanted == ["scripted/old"]
        change = {"title": UNSET, "pinned": UNSET, "metadata": UNSET, "mode": UNSET}
        await t.host.sessions.update(root, by=CLIENT, model="scripted/new", **change)
    async with troupe(tmp_path, cast) as t:
        t.host.catalog.resolve = resolve  # type: ignore[method-assign]
        wanted.clear()
        await _continue(t, one.agent_id)
        assert wanted == ["scripted/old"]
        await t.ended(await t.spawn(root, "two"))
        assert wanted == ["scripted/old", "scripted/new"]


async def _continue(t: Any, agent_id: str, text: str = "go on") -> None:
    before = len(of(await t.log(agent_id), "turn_finished"))
    await t.agents.send(agent_id, text, goes_on=True, author=PERSON, by=CLIENT)
    await t.idle(agent_id)
    assert len(of(await t.log(agent_id), "turn_finished")) == before + 1


async def test_coordination_48_a_model_that_is_gone_is_an_error_and_no_other_model(
    tmp_path: Path,
) -> None:
    async def gone(model_id: str | None = None, *, text_tool_calls: bool = False) -> Cast:
        raise CallboardError(
            "modelUnavailable", f"no provider serves {model_id}", data={"reason": "unknown"}
        )

    cast = Cast()
    async with troupe(tmp_path, cast) as t:
        root = await t.root(model="scripted/old")
        one = await t.ended(await t.spawn(root, "one"))
        t.host.catalog.resolve = gone  # type: ignore[method-assign]
        asked = len(cast.requests["one"])
        await _continue(t, one.agent_id)
        report = t.child(root, "one").report
        assert report is not None and report.status == "failed"
        assert "no provider serves scripted/old" in report.summary
        assert len(cast.requests["one"]) == asked
        with pytest.raises(CallboardError) as refused:  # one that is named anew is refused at once
            await t.agents.spawn(
                Caller(parent_id=root, by=CLIENT),
                Wanted(name="two", message="go", model="scripted/none"),
            )
        assert refused.value.kind == "modelUnavailable"
