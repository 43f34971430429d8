"""A person cancels a whole tree: it comes to rest, and nobody goes on because of that."""

from pathlib import Path

import pytest
from agents_kit import Cast, troupe

from callboard.agents.interrupts import Verb
from callboard.agents.state import replay
from harness.inside import CLIENT, PERSON
from harness.puppets import Pause, calls, pauses, speaks

pytestmark = pytest.mark.anyio

ONE_AT_A_TIME = {"CALLBOARD_AGENTS_MAX_RUNNING": "1"}
DEEP = {"CALLBOARD_AGENTS_MAX_DEPTH": "2"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_a_root_that_rests_is_not_woken_by_what_was_cancelled_with_its_tree(
    tmp_path: Path,
) -> None:
    busy = Pause()
    cast = Cast(
        root=[calls(("spawn_agent", {"name": "one", "message": "work"})), speaks("begun")],
        one=[pauses(busy, "done")],
    )
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        await t.say(root)
        await t.idle(root)
        await busy.came()
        one = t.child(root, "one")
        await t.host.sessions.cancel(root, by=CLIENT, scope="tree", reason="enough")
        ended = await t.ended(one)
        assert ended.status == "interrupted"
        assert ended.report is not None and ended.report.status == "aborted"
        await t.idle(root)
        assert len(cast.requests["root"]) == 2
        # the report lies there, and the next turn takes it in
        await t.say(root, "and now?")
        await t.idle(root)
        assert cast.heard("root").count("<agent-report") == 1


async def test_an_agent_whose_brief_was_dropped_before_it_began_is_interrupted(
    tmp_path: Path,
) -> None:
    busy = Pause()
    async with troupe(tmp_path, Cast(one=[pauses(busy, "x")]), environ=ONE_AT_A_TIME) as t:
        root = await t.root()
        one = await t.spawn(root, "one")
        await busy.came()
        two = await t.spawn(root, "two")
        await t.host.sessions.cancel(root, by=CLIENT, scope="tree", reason="enough")
        await t.ended(one)
        state = t.child(root, "two")
        assert state.status == "interrupted"
        assert state.interrupted is not None and state.interrupted.reason == "enough"
        assert "two" not in t.cast.requests
        assert replay(r.value for r in await t.log(two.agent_id)) == state
        # as every agent that was interrupted, it can be continued
        await t.agents.send(two.agent_id, "go on", goes_on=True, author=PERSON, by=CLIENT)
        await t.idle(two.agent_id)
        assert t.child(root, "two").status == "completed"


async def test_a_wish_that_is_taken_back_is_told_to_who_waits_for_the_session_to_rest(
    tmp_path: Path,
) -> None:
    busy = Pause()
    async with troupe(tmp_path, Cast(one=[pauses(busy, "x")]), environ=ONE_AT_A_TIME) as t:
        root = await t.root()
        two = await t.ended(await t.spawn(root, "two"))
        await t.spawn(root, "one")
        await busy.came()
        # it waits for the slot, so that nothing but the cancel can end the wish
        await t.agents.send(two.agent_id, "go on", goes_on=True, author=PERSON, by=CLIENT)
        before = await t.log(two.agent_id)
        assert (await t.agents.reading.agent(two.agent_id)).waits_for_slot
        await t.host.sessions.cancel(two.agent_id, by=CLIENT, scope="queue", reason="never mind")
        after = (await t.log(two.agent_id))[len(before) :]
        assert [(r.type, r.value.seqs) for r in after] == [("triggers_dropped", ())]
        await t.idle(two.agent_id)
        await t.host.sessions.cancel(two.agent_id, by=CLIENT, scope="queue")
        assert len(await t.log(two.agent_id)) == len(before) + 1, "there is nothing left to tell"
        busy.open.set()
        await t.idle(t.child(root, "one").agent_id)
        assert len(t.cast.requests["two"]) == 1


async def test_peers_19_an_abort_of_an_idle_agent_does_not_wake_it_by_those_that_it_ends(
    tmp_path: Path,
) -> None:
    busy = Pause()
    async with troupe(tmp_path, Cast(two=[pauses(busy, "x")]), environ=DEEP) as t:
        root = await t.root()
        one = await t.ended(await t.spawn(root, "one"))
        two = await t.spawn(one.agent_id, "two")
        await busy.came()
        done = await t.agents.interrupt(
            one.agent_id, Verb(kind="abort", by=CLIENT, origin="user", reason="enough")
        )
        assert done.outcome == "already_finished"
        assert (await t.ended(two)).status == "interrupted"
        await t.idle(one.agent_id)
        assert len(t.cast.requests["one"]) == 1
