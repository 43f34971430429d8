"""What a cancelled agent may yet do, and for how long: interrupts-and-peers 5, 6, 8, 33."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from agents_kit import troupe
from agents_races import tell, tree, verb
from attrs import define
from interrupts_kit import ANOTHER, LOOK, after, frames, held

from callboard.host import Feature
from callboard.log.clock import later
from callboard.turns.completion import CompletionHook, RunOutcome
from callboard.turns.reservation import Grant
from callboard_rpc.events import AgentCloseRequested, EventData
from harness.inside import CLIENT
from harness.puppets import Pause, calls, of, speaks

pytestmark = pytest.mark.anyio


async def test_peers_5_a_cancelled_agent_has_two_answers_whatever_it_does(tmp_path: Path) -> None:
    async with troupe(tmp_path) as t:
        root = await t.root()
        paths = [calls(("list_files", {"path": f"{n}"})) for n in range(9)]
        agent, pause = await held(t, root, *paths)
        await t.agents.interrupt(agent.agent_id, verb("cancel", "enough"))
        pause.open.set()
        ended = await t.ended(agent)
        assert len(t.cast.requests["one"]) == 1 + 2
        assert ended.status == "interrupted"
        assert ended.report is not None and ended.report.status == "aborted"
        (end,) = of(await t.log(agent.agent_id), "turn_finished")
        assert end.outcome == "cancelled"
        await tree(t, root)


async def test_peers_5_what_is_said_to_it_meanwhile_makes_it_no_longer(tmp_path: Path) -> None:
    async with troupe(tmp_path) as t:
        root = await t.root()
        again = Pause()
        agent, pause = await held(t, root, after(again, speaks("first")), *[speaks("more")] * 5)
        await t.agents.interrupt(agent.agent_id, verb("cancel", "enough"))
        pause.open.set()
        await again.came()
        for n in range(4):
            await tell(t, agent.agent_id, f"and {n}")
        again.open.set()
        await t.idle(agent.agent_id)
        log = await t.log(agent.agent_id)
        first = of(log, "turn_started")[0].turn_id
        said = [r for r in log if r.type == "message" and r.turn_id == first
                and not r.value.from_outside]  # fmt: skip
        assert [r.value.final for r in said] == [False, True]
        ended = t.child(root, "one")
        assert ended.status == "interrupted" and len(of(log, "turn_started")) == 1


async def test_peers_33_the_boundary_that_tells_of_a_cancel_takes_nothing_else_in(
    tmp_path: Path,
) -> None:
    async with troupe(tmp_path) as t:
        root = await t.root()
        agent, pause = await held(t, root, speaks("done so far"))
        await tell(t, agent.agent_id, "by the way", goes_on=False)
        await t.agents.interrupt(agent.agent_id, verb("cancel", "enough"))
        pause.open.set()
        await t.ended(agent)
        assert "by the way" not in t.cast.heard("one", 1) and frames(t, "one", 1) == 1
        await tree(t, root)


@define
class Clock:
    """The server's clock, in the test's hands."""

    at: str = "2031-05-17T09:30:00.000Z"

    def now(self) -> str:
        return self.at

    def goes_on(self, seconds: float) -> None:
        self.at = later(self.at, seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("callboard.host.utc_now", clock.now)
    return clock


async def test_peers_6_a_second_cancel_moves_no_deadline(tmp_path: Path, clock: Clock) -> None:
    environ = {"CALLBOARD_AGENTS_CANCEL_GRACE_S": "60"}
    async with troupe(tmp_path, environ=environ) as t:
        root = await t.root()
        agent, pause = await held(t, root)
        await t.agents.interrupt(agent.agent_id, verb("cancel", "enough"))
        deadline = t.child(root, "one").deadline_at
        assert deadline == later(clock.now(), 60) == t.agents.next_deadline()
        clock.goes_on(30)
        await t.agents.interrupt(agent.agent_id, verb("cancel", "really enough"))
        assert t.child(root, "one").deadline_at == deadline
        pause.open.set()
        await t.ended(agent)
        assert t.agents.next_deadline() is None


async def test_peers_6_a_second_cancel_while_it_winds_down_changes_nothing(tmp_path: Path) -> None:
    async with troupe(tmp_path) as t:
        root = await t.root()
        again = Pause()
        agent, pause = await held(t, root, after(again, calls(ANOTHER)), *[calls(LOOK)] * 9)
        await t.agents.interrupt(agent.agent_id, verb("cancel", "enough"))
        pause.open.set()
        await again.came()
        before = len(await t.log(agent.agent_id))
        done = await t.agents.interrupt(agent.agent_id, verb("cancel", "once more"))
        assert done.outcome == "ignored"
        assert len(await t.log(agent.agent_id)) == before
        again.open.set()
        await t.ended(agent)
        assert len(t.cast.requests["one"]) == 3


async def test_peers_6_a_cancel_that_is_not_obeyed_in_its_grace_becomes_an_abort_and_says_so(
    tmp_path: Path, clock: Clock
) -> None:
    """The agent is in a request that does not end: no boundary comes (DESIGN 6)."""
    environ = {"CALLBOARD_AGENTS_CANCEL_GRACE_S": "60"}
    async with troupe(tmp_path, environ=environ) as t:
        root = await t.root()
        agent, pause = await held(t, root)
        await t.agents.interrupt(agent.agent_id, verb("cancel", "enough"))
        clock.goes_on(59)
        await t.agents.end_overdue()
        assert t.child(root, "one").status == "running"
        clock.goes_on(1)
        t.agents.attention.deadlines_changed.set()  # what the machine's clock would do
        ended = await t.ended(agent)
        assert not pause.open.is_set()
        assert ended.interrupted is not None and ended.interrupted.kind == "abort"
        assert ended.interrupted.origin == "clock"
        assert "did not end in the time that it had" in ended.interrupted.reason
        assert ended.report is not None and ended.report.status == "aborted"
        await tree(t, root)


async def test_peers_6_an_agent_that_is_being_closed_has_no_deadline_that_could_hold_up_others(
    tmp_path: Path, clock: Clock
) -> None:
    """Its close was cut short by a crash, say."""
    environ = {"CALLBOARD_AGENTS_CANCEL_GRACE_S": "60"}
    async with troupe(tmp_path, environ=environ) as t:
        root = await t.root()
        closing, _ = await held(t, root)
        other, _ = await held(t, root, name="other")
        for agent in (closing, other):
            await t.agents.interrupt(agent.agent_id, verb("cancel", "enough"))
        await t.host.log.append(closing.agent_id, AgentCloseRequested(), actor=CLIENT)
        clock.goes_on(60)
        await t.agents.end_overdue()
        ended = await t.ended(other)
        assert ended.interrupted is not None and ended.interrupted.origin == "clock"
        assert t.agents.next_deadline() is None
        await t.agents.close(closing.agent_id, by=CLIENT)
        await tree(t, root)


async def test_peers_8_what_comes_when_the_end_is_decided_comes_too_late_and_says_so(
    tmp_path: Path,
) -> None:
    """A hook is told of the end before it is written: nothing joins the turn any more."""
    pause = Pause()

    async def told(_: Grant, __: RunOutcome) -> Sequence[EventData]:
        await pause.here()
        return ()

    hook = CompletionHook(name="told", run=told)
    async with troupe(tmp_path, features=(Feature(name="told", completion=(hook,)),)) as t:
        root = await t.root()
        agent, first = await held(t, root, speaks("done"))
        first.open.set()
        await pause.came()
        for kind in ("steer", "cancel"):
            done = await t.agents.interrupt(agent.agent_id, verb(kind))
            assert (done.outcome, done.pending) == ("already_finished", None)
        pause.open.set()
        assert (await t.ended(agent)).status == "completed"
        await tree(t, root)
