"""What is said to an agent, and what its parent is told of it: coordination 21, 22, 25-28, 51-57."""

from pathlib import Path
from typing import Any

import pytest
from agents_kit import Cast, Troupe, troupe
from agents_races import in_call, taken_in, tell, tree
from attrs import define
from interrupts_kit import LOOK, after, allow

from callboard.agents.reports import SUMMARY_CHARS, shortened
from callboard.host import Feature
from callboard.log.record import Record
from callboard.log.transaction import Projection, Transaction
from callboard.models.base import ModelError, ToolMessage, UserMessage
from callboard_rpc.common import Failure
from harness.inside import CLIENT
from harness.puppets import Pause, calls, fails, of, pauses, results, speaks, the_end

pytestmark = pytest.mark.anyio


# --- messages -----------------------------------------------------------------------------------


async def test_coordination_26_information_to_an_idle_agent_lies_there_and_starts_nothing(
    tmp_path: Path,
) -> None:
    send = calls(("send_agent_message", {"agent_id": "one", "message": "by the way"}))
    async with troupe(tmp_path, Cast(root=[send, speaks("ok")])) as t:
        root = await t.root()
        agent = await t.ended(await t.spawn(root, "one"))
        await t.say(root)
        await t.idle(root)
        await t.idle(agent.agent_id)
        assert t.cast.read("root")[0] == f"Queued for 'one' ({agent.agent_id})."
        assert len(t.cast.requests["one"]) == 1
        records = await t.log(agent.agent_id)
        assert records[-1].type == "agent_message_queued"
        assert of(records, "agent_message_queued")[0].kind == "information"
    async with troupe(tmp_path) as t:  # nor does a restart
        await t.idle(agent.agent_id)
        assert not t.cast.requests and t.child(root, "one").status == "completed"


async def test_coordination_27_what_was_left_and_what_is_to_go_on_with_are_read_in_order_once(
    tmp_path: Path,
) -> None:
    one_by_one = [
        calls(("send_agent_message", {"agent_id": "one", "message": "first"})),
        calls(("continue_agent", {"agent_id": "one", "message": "second"})),
        speaks("ok"),
    ]
    async with troupe(tmp_path, Cast(root=one_by_one)) as t:
        root = await t.root()
        agent = await t.ended(await t.spawn(root, "one", "the brief"))
        await t.say(root)
        await t.idle(root)
        log = (await tree(t, root))[agent.agent_id]
        assert taken_in(log) == ["the brief", "first", "second"]
        heard = t.cast.heard("one")
        assert heard.index("first") < heard.index("second")
        assert (heard.count("first"), heard.count("second")) == (1, 1)


async def test_coordination_28_a_follow_up_to_a_running_agent_is_read_in_the_same_turn(
    tmp_path: Path,
) -> None:
    pause = Pause()
    cast = Cast(one=[after(pause, calls(LOOK)), speaks("both done")])
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        agent = await t.spawn(root, "one", "the brief")
        await pause.came()
        queued, turn_id = await tell(t, agent.agent_id, "and that, too")
        assert turn_id is None and queued.asked is not None
        pause.open.set()
        ended = await t.ended(agent)
        log = (await tree(t, root))[agent.agent_id]
        assert taken_in(log) == ["the brief", "and that, too"]
        assert [e["type"] for e in log].count("turn_started") == 1
        assert [e["type"] for e in log].count("agent_report_created") == 1
        assert ended.report is not None and ended.report.summary == "both done"


async def test_coordination_62_a_follow_up_makes_calls_give_way_and_information_does_not(
    tmp_path: Path,
) -> None:
    for goes_on, statuses in ((True, ["superseded"] * 2), (False, ["ok"] * 2)):
        folder = tmp_path / str(goes_on)
        folder.mkdir()
        allow(folder, write="allow")
        pause = Pause()
        writes = [("write_file", {"path": f"{n}.txt", "content": "x"}) for n in range(2)]
        cast = Cast(one=[after(pause, calls(*writes)), speaks("done")])
        async with troupe(folder, cast) as t:
            root = await t.root()
            agent = await t.spawn(root, "one")
            await pause.came()
            await tell(t, agent.agent_id, "wait with that", goes_on=goes_on)
            pause.open.set()
            await t.ended(agent)
            assert [status for _, status in results(await t.log(agent.agent_id))] == statuses
            assert "wait with that" in t.cast.heard("one")  # 63: and each call has one result
            await tree(t, root)


async def test_coordination_21_22_25_what_had_not_begun_waits_for_a_word_and_begins_with_its_brief(
    tmp_path: Path,
) -> None:
    pause = Pause()
    environ = {"CALLBOARD_AGENTS_MAX_RUNNING": "1"}
    async with troupe(tmp_path, Cast(one=[pauses(pause, "never")]), environ=environ) as t:
        root = await t.root()
        running = await t.spawn(root, "one", "the first brief")
        await pause.came()
        waiting = await t.spawn(root, "two", "the second brief")
        assert t.child(root, "two").status == "starting"
    for _ in range(2):  # opened twice: one event
        async with troupe(tmp_path) as t:
            for agent in (running, waiting):
                await t.idle(agent.agent_id)
                now = t.agents.agent(agent.agent_id)
                assert now.status == "interrupted" and now.report is None
                assert len(of(await t.log(agent.agent_id), "agent_interrupted")) == 1
            assert not t.cast.requests  # nothing runs by itself
            before = {a.agent_id: len(await t.log(a.agent_id)) for a in (running, waiting)}
    async with troupe(tmp_path) as t:
        assert before == {a.agent_id: len(await t.log(a.agent_id)) for a in (running, waiting)}
        await tell(t, waiting.agent_id, "go on")
        await t.idle(waiting.agent_id)
        heard = t.cast.heard("two")
        assert heard.index("the second brief") < heard.index("go on")
        await tell(t, running.agent_id, "go on")
        await t.idle(running.agent_id)
        logs = await tree(t, root)
        assert taken_in(logs[waiting.agent_id]) == ["the second brief", "go on"]
        assert taken_in(logs[running.agent_id]) == ["the first brief", "go on"]


# --- reports ------------------------------------------------------------------------------------


def _messages(t: Troupe, number: int) -> list[str]:
    """What a request of the root ends with: the kinds of its messages, and which of them is a report."""
    out: list[str] = []
    for message in t.cast.requests["root"][number].messages:
        if isinstance(message, ToolMessage):
            out.append("result")
        elif isinstance(message, UserMessage):
            text = "".join(getattr(block, "text", "") for block in message.blocks)
            out.append("report" if "<agent-report" in text else "said")
    return out


async def test_coordination_51_52_a_report_is_told_once_behind_the_result_of_the_wait(
    tmp_path: Path,
) -> None:
    steps = [
        calls(("spawn_agent", {"name": "one", "message": "go"})),
        calls(("wait_agents", {})),
        calls(LOOK),
        speaks("all is well"),
    ]
    pause = Pause()
    async with troupe(tmp_path, Cast(root=steps, one=[pauses(pause, "found it")])) as t:
        root = await t.root()
        await t.say(root)
        await pause.came()
        await in_call(t, root)
        pause.open.set()
        await t.idle(root)
        assert _messages(t, 1) == ["said", "result"]
        assert _messages(t, 2) == ["said", "result", "result", "report"]
        assert _messages(t, 3) == ["said", "result", "result", "report", "result"]
        assert t.cast.heard("root").count("found it") == 1
        await tree(t, root)


async def test_coordination_53_after_a_restart_every_untold_report_is_told_in_order_and_once(
    tmp_path: Path,
) -> None:
    """Also several of one agent: the reference forgets all but the last (DESIGN 6)."""
    pause = Pause()
    async with troupe(tmp_path, Cast(root=[speaks("hello"), speaks("thanks")])) as t:
        root = await t.root()
        await t.say(root)
        await t.idle(root)
        told = await t.ended(await t.spawn(root, "told"))
        await t.idle(root)  # it was woken for it
        t.cast.parts["root"] = [pauses(pause, "never")]
        await t.say(root)
        await pause.came()
        await t.host.sessions.cancel(root, by=CLIENT)
        await t.idle(root)
        t.cast.parts["one"] = [speaks("first"), speaks("second")]
        one = await t.ended(await t.spawn(root, "one"))
        await t.ended(await t.spawn(root, "two"))
        await tell(t, one.agent_id, "again")
        await t.idle(one.agent_id)
        assert "<agent-report" in t.cast.heard("root") and told.report is not None
    async with troupe(tmp_path, Cast(root=[speaks("I see"), speaks("nothing new")])) as t:
        await t.idle(root)
        assert not t.cast.requests  # a root that was stopped is not woken (DESIGN)
        for _ in range(2):
            await t.say(root)
            await t.idle(root)
        heard = t.cast.heard("root", 0)
        first, second = heard.index("first"), heard.index("second")
        assert first < heard.index('agent="two"') < second
        assert heard.count('agent="told"') == 1
        assert t.cast.heard("root", 1).count("<agent-report") == heard.count("<agent-report") == 4
        await tree(t, root)


@define
class Failing:
    """A projection that fails, once, at the so many-th report that a session takes in."""

    at: int = 0
    seen: int = 0

    def apply(self, tx: Transaction, record: Record) -> None:
        if record.value.delivered is not None and self.at:
            self.seen += 1
            if self.seen == self.at:
                self.at = 0
                raise ValueError("this cannot be projected")

    @property
    def feature(self) -> Feature:
        projection = Projection(
            name="failing", tables=(), apply={"message": self.apply}, forget=lambda tx, _: None
        )
        return Feature(name="failing", projections=(projection,))


async def test_coordination_54_reports_that_could_not_be_taken_in_keep_their_order(
    tmp_path: Path,
) -> None:
    failing = Failing()
    async with troupe(tmp_path, features=(failing.feature,)) as t:
        root = await t.root()
        for name in ("zeta", "alpha", "mid"):
            await t.ended(await t.spawn(root, name))
        failing.at = 2
        await t.say(root)
        await t.idle(root)
        assert the_end(await t.log(root)).outcome == "failed"
        assert not t.cast.requests["root"]
        assert failing.seen == 2
        await t.say(root, "try again")
        await t.idle(root)
        heard = t.cast.heard("root")
        places = [heard.index(f'agent="{name}"') for name in ("zeta", "alpha", "mid")]
        assert places == sorted(places) and heard.count("<agent-report") == 3
        await tree(t, root)


async def test_coordination_55_nothing_of_a_childs_work_enters_its_parent(tmp_path: Path) -> None:
    allow(tmp_path, write="allow")
    write = ("write_file", {"path": "made.txt", "content": "the child's own words"})
    cast = Cast(one=[calls(write), calls(LOOK), speaks("it is done")])
    cast.parts["root"] = [speaks("hello"), speaks("I see")]
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        await t.say(root)
        await t.idle(root)
        agent = await t.ended(await t.spawn(root, "one", "write it"))
        await t.idle(root)
        kinds = {r.type for r in await t.log(root)}
        assert not kinds & {"tool_call", "tool_result", "plan_updated", "agent_report_created"}
        heard = t.cast.heard("root")
        assert "the child's own words" not in heard and "write it" not in heard
        assert "it is done" in heard and str(tmp_path / "made.txt") in heard
        assert "It is its own word" in heard
        assert agent.report is not None
        assert agent.report.touched_files == (str(tmp_path / "made.txt"),)


@pytest.mark.parametrize("size", [SUMMARY_CHARS - 1, SUMMARY_CHARS, SUMMARY_CHARS + 1, 50_000])
@pytest.mark.parametrize("how", ["text", "error"])
async def test_coordination_56_a_summary_has_at_most_2000_characters(
    tmp_path: Path, size: int, how: str
) -> None:
    words = "ö" * size
    cast = Cast(one=[speaks(f"  {words}\n")] if how == "text" else [_fails_with(words)])
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        agent = await t.ended(await t.spawn(root, "one"))
        assert agent.report is not None
        summary = agent.report.summary
        assert len(summary) == min(size, SUMMARY_CHARS)
        assert summary.endswith("…") == (size > SUMMARY_CHARS)
        assert agent.report.status == ("completed" if how == "text" else "failed")


def _fails_with(words: str) -> Any:
    async def scene(_: Any) -> Any:
        raise ModelError(Failure(kind="modelError", message=words, retryable=False))
        yield

    return scene


def test_coordination_56_a_cut_leaves_no_space_before_its_ellipsis() -> None:
    assert SUMMARY_CHARS == 2_000
    assert shortened("a " * 2_000) == "a " * 999 + "a…"
    assert shortened("  x  ") == "x" and shortened(" ") == ""


async def test_coordination_57_a_report_during_the_last_answer_causes_one_more_request(
    tmp_path: Path,
) -> None:
    above, below = Pause(), Pause()
    cast = Cast(root=[pauses(above, "that is all"), speaks("oh, and that")])
    cast.parts["one"] = [pauses(below, "found it")]
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        agent = await t.spawn(root, "one")
        await below.came()
        await t.say(root)
        await above.came()
        below.open.set()
        await t.ended(agent)
        above.open.set()
        await t.idle(root)
        log = await t.log(root)
        assert len(of(log, "turn_started")) == 1 and len(t.cast.requests["root"]) == 2
        assert the_end(log).final_text == "oh, and that"
        assert t.cast.heard("root").count("found it") == 1


# --- whom a report wakes ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "last", "wakes"),
    [
        ("wake", "completed", True),
        ("wake", "failed", False),
        ("wake", "cancelled", False),
        ("wake", None, False),
        ("wait", "completed", False),
    ],
)
async def test_reports_wake_a_parent_that_has_ended_by_itself_and_no_other(
    tmp_path: Path, setting: str, last: str | None, wakes: bool
) -> None:
    pause = Pause()
    first = {"failed": fails(), "cancelled": pauses(pause, "never")}.get(last or "", speaks("hi"))
    cast = Cast(root=[first])
    async with troupe(tmp_path, cast, environ={"CALLBOARD_AGENTS_REPORTS": setting}) as t:
        root = await t.root()
        if last is not None:
            await t.say(root)
            if last == "cancelled":
                await pause.came()
                await t.host.sessions.cancel(root, by=CLIENT)
            await t.idle(root)
        turns = len(of(await t.log(root), "turn_started"))
        agent = await t.ended(await t.spawn(root, "one"))
        await t.idle(agent.agent_id)
        await t.idle(root)
        assert len(of(await t.log(root), "turn_started")) == turns + wakes
        await t.say(root, "and?")
        await t.idle(root)
        assert t.cast.heard("root").count("<agent-report") == 1
        await tree(t, root)


async def test_reports_of_one_whose_parent_was_closed_go_nowhere_and_hurt_nothing(
    tmp_path: Path,
) -> None:
    pause = Pause()
    async with troupe(tmp_path, Cast(one=[pauses(pause, "late")])) as t:
        root = await t.root()
        agent = await t.spawn(root, "one")
        await pause.came()
        await t.host.sessions.close(root, by=CLIENT)
        assert t.agents.agent(agent.agent_id).status == "closed"
        await tree(t, root)
