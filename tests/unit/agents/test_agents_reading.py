"""The live tree: what a person is shown of every agent, from one state of the store."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from agents_kit import Cast, Troupe, troupe

from callboard.agents.interrupts import Verb
from callboard.agents.reading import AgentReading
from callboard.config import Settings
from callboard.host import builtin_features, projections_of
from callboard.log.ids import IdSource
from callboard.log.log import Log
from callboard.log.looking import Rows
from callboard.log.store import open_store
from callboard.log.transaction import Transaction
from callboard.sessions.telling import RunListeners
from callboard_rpc.agents import Agent, AgentQuestion, AgentTool
from callboard_rpc.approvals import AgentStep
from callboard_rpc.common import (
    UNSET,
    Actor,
    AskId,
    CallId,
    HostId,
    MessageId,
    ReportId,
    SessionId,
    TurnId,
    Usage,
)
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import (
    AgentAsked,
    AgentReplied,
    AgentReport,
    AgentReportCreated,
    AgentSpawned,
    AgentStatusChanged,
    Author,
    Directive,
    SessionCreated,
    ToolCall,
    Trigger,
    TurnFinished,
    TurnStarted,
)
from harness.inside import CLIENT, PERSON
from harness.puppets import Pause, calls, of, pauses, speaks

pytestmark = pytest.mark.anyio

DEEP = {"CALLBOARD_AGENTS_MAX_DEPTH": "3"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def tree(t: Troupe, session_id: str) -> dict[str, Agent]:
    """The agents of a tree by name."""
    return {agent.name: agent for agent in await t.agents.reading.list(session_id)}


async def below(t: Troupe, parent: str, *names: str) -> list[str]:
    """Agents below a session, that have ended their first turns."""
    return [(await t.ended(await t.spawn(parent, name))).agent_id for name in names]


# --- a log that is written by hand, with a clock of its own -----------------------------------------


class Clock:
    def __init__(self) -> None:
        self.seconds = 0

    def __call__(self) -> str:
        return f"2031-05-17T09:{self.seconds // 60:02}:{self.seconds % 60:02}.000Z"


@asynccontextmanager
async def written(folder: Path, now: Callable[[], str]) -> AsyncGenerator[Log]:
    ids = IdSource()
    store = open_store(folder / "store.db", ids=ids, now=now)
    projections = projections_of(RunListeners(), builtin_features(Settings()))
    async with Log(store, ids=ids, now=now, projections=projections) as log:
        yield log


ROOT, ONE = SessionId("ses_root"), SessionId("ses_one")
TURN = TurnId("trn_1")


def spawned(tx: Transaction) -> None:
    """A root, and one agent of it that has not begun."""
    created = SessionCreated(session_id=ROOT, root_id=ROOT, cwd="/w", profile="lead", mode="plan")
    tx.begin_session(ROOT, ROOT)
    tx.append(ROOT, created, actor=CLIENT)
    session = SessionCreated(
        session_id=ONE, root_id=ROOT, parent_id=ROOT, depth=1, cwd="/w", profile="worker",
        mode="work", model="m/pinned",
    )  # fmt: skip
    first = AgentSpawned(
        session=session, name="one", depth_left=0, agent_type="reviewer", message_allow=("two",)
    )
    tx.begin_session(ONE, ROOT)
    tx.append(ONE, first, actor=CLIENT)
    brief = Directive(
        message_id=MessageId("msg_1"),
        author=Author(kind="agent", name="lead", id=ROOT),
        text="do it",
        host_id=HostId("host_1"),
    )
    tx.append(ONE, brief, actor=CLIENT)


async def write(log: Log, *data: Any) -> None:
    agent = Actor(kind="agent", id=ONE)
    for each in data:
        await log.append(ONE, each, actor=agent, turn_id=TURN, fence=1)


def started(index: int = 0) -> TurnStarted:
    return TurnStarted(
        turn_id=TURN, index=index, trigger=Trigger(kind="directive", seqs=(2,)), model="m/used",
        mode="work", profile="worker", host_id=HostId("host_1"),
    )  # fmt: skip


async def test_an_agent_is_told_as_it_is_at_every_step_of_its_turn(tmp_path: Path) -> None:
    clock = Clock()
    async with written(tmp_path, clock) as log:
        await log.transact(spawned)
        reading = AgentReading(log, max_running=4)
        born = Agent(
            agent_id=ONE, root_id=ROOT, parent_id=ROOT, name="one", status="starting",
            profile="worker", mode="plan", depth=1, created_at="2031-05-17T09:00:00.000Z",
            path=(AgentStep(session_id=ONE, name="one"),), agent_type="reviewer", model="m/pinned",
            message_allow=("two",),
        )  # fmt: skip
        assert await reading.list(ROOT) == (born,)

        clock.seconds = 5
        await write(log, started(), AgentStatusChanged(status="running"))
        clock.seconds = 8
        call = CallId("call_1")
        await write(
            log,
            ToolCall(
                call_id=call, message_id=MessageId("msg_2"), name="read_file", arguments={},
                effect="read", title="Read it.txt",
            ),
            AgentAsked(ask_id=AskId("ask_1"), text="which?", expects_reply=True),
        )  # fmt: skip
        clock.seconds = 75
        agent = await reading.agent(ONE)
        assert (agent.status, agent.turn_id, agent.elapsed_ms) == ("running", TURN, 70_000)
        assert agent.turn_started_at == "2031-05-17T09:00:05.000Z"
        assert agent.model == "m/used"
        assert agent.tools == (
            AgentTool(
                call_id=call, name="read_file", title="Read it.txt",
                started_at="2031-05-17T09:00:08.000Z",
            ),
        )  # fmt: skip
        assert agent.question == AgentQuestion(
            ask_id=AskId("ask_1"), agent_id=ONE, name="one", text="which?",
            asked_at="2031-05-17T09:00:08.000Z",
        )  # fmt: skip
        assert agent.usage is None

        report = AgentReport(
            report_id=ReportId("rep_1"), agent_id=ONE, name="one", status="completed",
            summary="done", turn_id=TURN,
        )  # fmt: skip
        usage = Usage(requests=1, input_tokens=7, output_tokens=3)
        await write(
            log,
            AgentReplied(ask_id=AskId("ask_1"), outcome="cancelled"),
            AgentReportCreated(report=report),
            TurnFinished(
                turn_id=TURN,
                outcome="completed",
                usage=usage,
                duration_ms=70_000,
                answered_through=2,
            ),
        )
        clock.seconds = 3_000
        agent = await reading.agent(ONE)
        assert (agent.status, agent.turn_id, agent.turn_started_at) == ("completed", None, None)
        assert agent.elapsed_ms == 70_000, "how long its last turn took, however long ago"
        assert (agent.tools, agent.question, agent.report) == ((), None, report)
        assert agent.usage is not None and agent.usage.input_tokens == 7
        assert agent.model == "m/pinned", "what its next turn will use"


# --- in a host --------------------------------------------------------------------------------------


async def test_coordination_20_the_tree_is_listed_by_name_then_id_from_any_session_of_it(
    tmp_path: Path,
) -> None:
    async with troupe(tmp_path, environ=DEEP) as t:
        root, other = await t.root(), await t.root()
        b, a = await below(t, root, "b", "a")
        deep = (await below(t, b, "a"))[0]
        await below(t, other, "elsewhere")
        await t.agents.close(a, by=CLIENT)
        again = (await below(t, root, "a"))[0]
        listed = await t.agents.reading.list(root)
        assert [(each.name, each.agent_id) for each in listed] == [
            *sorted([("a", a), ("a", deep), ("a", again)]),
            ("b", b),
        ]
        assert [each.status for each in listed if each.agent_id == a] == ["closed"]
        for session_id in (b, deep, a):
            assert await t.agents.reading.list(session_id) == listed
        pages = [await t.agents.reading.list(root, limit=2)]
        place = (pages[0][-1].name, pages[0][-1].agent_id)
        pages.append(await t.agents.reading.list(root, behind=place, limit=5))
        assert (*pages[0], *pages[1]) == listed


async def test_a_path_leads_from_below_the_root_down_to_the_agent(tmp_path: Path) -> None:
    async with troupe(tmp_path, environ=DEEP) as t:
        root = await t.root()
        one = (await below(t, root, "one"))[0]
        two = (await below(t, one, "two"))[0]
        three = (await below(t, two, "three"))[0]
        path = (await t.agents.reading.agent(three)).path
        assert [(step.name, step.session_id) for step in path] == [
            ("one", one), ("two", two), ("three", three),
        ]  # fmt: skip


async def test_coordination_50_the_mode_that_is_told_is_the_one_that_holds(tmp_path: Path) -> None:
    async with troupe(tmp_path, environ=DEEP) as t:
        root = await t.root()
        one = (await below(t, root, "one"))[0]
        await below(t, one, "two")
        assert {each.mode for each in await t.agents.reading.list(root)} == {"work"}
        await t.host.sessions.update(
            one, by=CLIENT, mode="ask", title=UNSET, pinned=UNSET, metadata=UNSET, model=UNSET
        )
        modes = {name: each.mode for name, each in (await tree(t, root)).items()}
        assert modes == {"one": "ask", "two": "ask"}


async def test_who_waits_for_a_slot_is_told_apart_from_who_only_has_not_begun(
    tmp_path: Path,
) -> None:
    busy = Pause()
    cast = Cast(one=[pauses(busy, "done")])
    async with troupe(tmp_path, cast, environ={"CALLBOARD_AGENTS_MAX_RUNNING": "1"}) as t:
        root = await t.root()
        one = await t.spawn(root, "one")
        await busy.came()
        two = await t.spawn(root, "two")
        now = await tree(t, root)
        assert (now["one"].status, now["one"].waits_for_slot) == ("running", False)
        assert (now["two"].status, now["two"].waits_for_slot) == ("starting", True)
        busy.open.set()
        await t.ended(one)
        await t.ended(two)
        assert not any(each.waits_for_slot for each in await t.agents.reading.list(root))


async def test_what_waits_for_a_boundary_is_counted_and_the_interrupt_among_it_is_named(
    tmp_path: Path,
) -> None:
    busy = Pause()
    cast = Cast(one=[pauses(busy, "done")])
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        one = (await t.spawn(root, "one")).agent_id
        await busy.came()
        for text in ("one thing", "and another"):
            await t.agents.send(one, text, goes_on=False, author=PERSON, by=CLIENT)
        await t.say(one, "and a prompt of a person")
        steer = Verb(kind="steer", by=CLIENT, origin="user", reason="left")
        await t.agents.interrupt(one, steer)
        agent = await t.agents.reading.agent(one)
        assert (agent.queued, agent.interrupt) == (3, "steer")
        abort = Verb(kind="abort", by=CLIENT, origin="user", reason="enough")
        await t.agents.interrupt(one, abort)
        await t.idle(one)  # the prompt has a turn of its own, behind the one that was aborted
        records = await t.log(one)
        (stopped,) = of(records, "agent_interrupted")
        assert (stopped.kind, stopped.reason) == ("abort", "enough")
        reports = [each.report.status for each in of(records, "agent_report_created")]
        assert reports == ["aborted", "completed"]
        agent = await t.agents.reading.agent(one)
        assert (agent.queued, agent.interrupt, agent.interrupted) == (0, None, None)


async def test_what_an_agent_asks_a_person_is_told_with_it_and_goes_with_the_answer(
    tmp_path: Path,
) -> None:
    cast = Cast(one=[calls(("run_command", {"command": "true"})), speaks("done")])
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        one = await t.spawn(root, "one")
        waited = await t.host.waiting.wait(
            one.agent_id, until="attention", turn_id=None, timeout_s=30
        )
        (asked,) = waited.approvals
        agent = await t.agents.reading.agent(one.agent_id)
        assert [(each.approval_id, each.title) for each in agent.approvals] == [
            (asked.approval_id, asked.title)
        ]
        assert agent.status == "running"
        assert [each.name for each in agent.tools] == ["run_command"]
        await t.host.approvals.answer(asked.approval_id, "reject_once", by=CLIENT, via="method")
        await t.ended(one)
        agent = await t.agents.reading.agent(one.agent_id)
        assert (agent.approvals, agent.tools) == ((), ())


async def test_who_is_no_agent_is_not_found(tmp_path: Path) -> None:
    async with troupe(tmp_path) as t:
        root = await t.root()
        assert await t.agents.reading.list(root) == ()
        for unknown in (root, "ses_none", ""):
            with pytest.raises(CallboardError) as error:
                await t.agents.reading.agent(unknown)
            assert error.value.kind == "agentNotFound"
        with pytest.raises(CallboardError) as error:
            await t.agents.reading.list("ses_none")
        assert error.value.kind == "sessionNotFound"


async def test_a_tree_of_any_size_takes_the_same_few_statements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    at_once = Log.at_once

    async def counted(self: Log, function: Callable[[Rows], Any]) -> Any:
        def counting(rows: Rows) -> Any:
            def ask(sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
                asked.append(sql)
                return rows(sql, *parameters)

            return function(ask)

        return await at_once(self, counting)

    async with troupe(tmp_path, environ={"CALLBOARD_AGENTS_MAX_OPEN": "40"}) as t:
        root = await t.root()
        await below(t, root, "first")
        monkeypatch.setattr(Log, "at_once", counted)
        await t.agents.reading.list(root)
        of_one, asked[:] = list(asked), []
        await below(t, root, *(f"agent {n}" for n in range(30)))
        assert len(await t.agents.reading.list(root)) == 31
        assert asked == of_one
        assert len(of_one) < 10
