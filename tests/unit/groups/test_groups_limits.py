"""What a group takes at the most, and who may not act in it any more."""

from pathlib import Path

import attrs
import pytest
from agents_kit import Troupe
from groups_kit import board, must_be_as_replayed, refused, tables
from messaging_kit import at_work

from callboard.groups import messages, tasks
from callboard.groups.membership import Participant
from callboard.groups.tasks import MAX_ITEM_CHARS, MAX_ITEMS, MAX_TEXT_CHARS, MAX_TITLE_CHARS
from callboard.turns.reservation import StaleFence
from callboard_rpc.common import Actor, SessionId
from harness.inside import CLIENT

pytestmark = pytest.mark.anyio


async def test_coordination_8_4_a_group_takes_so_many_tasks_and_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "MAX_TASKS", 2)
    monkeypatch.setattr(messages, "MAX_MESSAGES", 2)
    async with board(tmp_path, "one") as b:
        made = [await b.task(), await b.task()]
        assert (await refused(b, b.task())).kind == "limitReached"
        await b.cancel("root", made[0])
        assert (await refused(b, b.task())).kind == "limitReached"  # those that are over count
        for _ in range(2):
            await b.send("root", "one", "x")
        assert (await refused(b, b.send("one", "root", "x"))).kind == "limitReached"


@pytest.mark.parametrize("character", ["x", "\U0001f600", "\x01", "\\"])
async def test_coordination_8_1_the_longest_texts_are_kept_whole(
    tmp_path: Path, character: str
) -> None:
    """Whatever they come to in bytes: as values of an event they may be too large to stay in it."""
    long, items = character * MAX_TEXT_CHARS, (character * MAX_ITEM_CHARS,) * MAX_ITEMS
    async with board(tmp_path, "one") as b:
        made = await b.task(character * MAX_TITLE_CHARS, description=long, expected_paths=items)
        await b.claim("one", made)
        await b.complete("one", made, summary=long, findings=items, touched_files=items)
        done = await b.seen(made)
        assert (done.title, done.description) == (character * MAX_TITLE_CHARS, long)
        assert done.summary == long
        assert done.findings == done.touched_files == done.expected_paths == items
        await must_be_as_replayed(b)
        (told,) = await b.use("root", ("group_task", {"op": "list", "status": "all"}))
        assert len(told) < 2_000


async def test_coordination_8_5_a_run_that_has_lost_its_session_changes_nothing(
    tmp_path: Path,
) -> None:
    async with board(tmp_path, "one") as b:
        made = await b.task()
        theirs = await b.claim("one", await b.task())
        agent = await at_work(b.t, b.root, "two")
        assert isinstance(b.t, Troupe)
        stale = attrs.evolve(agent.grant, fence=agent.grant.fence - 1)
        agent_id = SessionId(agent.agent_id)
        by = Actor(kind="agent", id=agent_id)
        who = Participant(root_id=SessionId(b.root), agent_id=agent_id, by=by, grant=stale)
        before = tables(b)
        for doing in (
            b.groups.claim(who, made.task_id),
            b.groups.change(who, theirs.task_id, "release"),
            b.groups.send(who, "root", None, "still here"),
        ):
            with pytest.raises(StaleFence):
                await doing
        assert tables(b) == before
        live = attrs.evolve(who, grant=agent.grant)
        assert (await b.groups.claim(live, made.task_id)).assignee == agent_id
        agent.pause.open.set()
        await b.t.ended(agent.agent)


async def test_coordination_8_2_a_person_acts_as_the_root_whichever_session_they_name(
    tmp_path: Path,
) -> None:
    async with board(tmp_path, "one") as b:
        for session_id in (b.root, b.ids["one"]):
            person = b.groups.person(session_id, CLIENT)
            made = await b.task()
            assert (await b.groups.claim(person, made.task_id)).assignee == b.root
            assert (await b.groups.change(person, made.task_id, "cancel")).status == "cancelled"
        claimed = [r for r in await b.t.log(b.root) if r.type == "group_task_claimed"]
        assert all('"client"' in record.actor for record in claimed)
