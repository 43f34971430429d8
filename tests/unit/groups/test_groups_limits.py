"""What a group takes at the most, and who may not act in it any more."""

from pathlib import Path
from typing import get_args

import attrs
import pytest
from agents_kit import Troupe
from groups_kit import board, must_be_as_replayed, refused, tables
from messaging_kit import at_work

from callboard.groups import messages, reading, tasks
from callboard.groups.membership import Participant
from callboard.groups.projection import SQL
from callboard.groups.state import count_of, is_shown
from callboard.groups.tasks import MAX_ITEM_CHARS, MAX_ITEMS, MAX_TEXT_CHARS, MAX_TITLE_CHARS
from callboard.turns.reservation import StaleFence
from callboard_rpc.common import Actor, SessionId
from callboard_rpc.groups import GroupTask, TaskFilter
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


async def test_coordination_8_8_what_was_sent_is_counted_without_reading_it(tmp_path: Path) -> None:
    async with board(tmp_path) as b:
        for name in ("count_messages", "count_tasks"):
            ((*_, plan),) = b.t.host.log.glance("EXPLAIN QUERY PLAN " + SQL[name], b.root)
            assert "USING COVERING INDEX" in plan, name


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


@pytest.mark.parametrize(
    ("limit", "max_chars", "told"), [(2, None, 2), (1_000, 5_000, 2), (9, 1, 1)]
)
async def test_coordination_8_7_a_look_at_a_group_tells_as_much_of_a_board_as_there_is_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, max_chars: int | None, told: int
) -> None:
    room = reading._Bounds(limit=limit, max_chars=max_chars)  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(reading, "_ROOM", room)
    monkeypatch.setattr(reading, "_AT_ONCE", 3)
    async with board(tmp_path, "one") as b:
        made = [await b.task(f"task {n}", description="x" * 2_000) for n in range(15)]
        small = [await b.task("small", expected_paths=("same",)) for _ in range(2)]
        for task in (*made[5:9], *small):
            await b.claim("one", task)
        for task in made[10:]:
            await b.block("one", await b.claim("one", task))
        waiting = await b.task("waits", dependencies=(made[10].task_id, made[11].task_id))
        group = await b.group()
        assert (group.counts.ready, group.counts.claimed, group.counts.blocked) == (6, 6, 5)
        assert group.ready == tuple([await b.seen(each) for each in made[:told]])
        assert group.active == tuple([await b.seen(each) for each in made[5 : 5 + told]])
        assert group.blocked == tuple([await b.seen(each) for each in made[10 : 10 + told]])
        # what follows from the others is not cut
        assert [c.task_ids for c in group.conflicts] == [tuple(each.task_id for each in small)]
        assert [f.task_id for f in group.dependency_failures] == [waiting.task_id] * 2
        assert len(group.required_unfinished) == 18
        (status,) = await b.use("root", ("group_status", {}))
        assert f"ready: {6 - told} more" in status and f"blocked: {5 - told} more" in status


async def test_coordination_8_7_a_board_is_listed_in_pieces_and_none_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_AT_FIRST", 1)
    monkeypatch.setattr(reading, "_AT_ONCE", 2)
    filters = get_args(TaskFilter)
    async with board(tmp_path, "one") as b:
        first = await b.task("first", description="x" * 2_000)
        made = [await b.task(str(n), dependencies=(first.task_id,) * (n % 2)) for n in range(12)]
        for n in (0, 2, 4):
            await b.claim("one", made[n])
        await b.block("one", made[0])
        await b.complete("one", made[2])
        await b.cancel("root", made[6])
        counts = (await b.group()).counts
        for wanted in filters:
            whole = (await b.groups.reading.tasks(b.root, wanted)).tasks
            assert len(whole) == count_of(counts, wanted), wanted
            assert all(is_shown(task, wanted) for task in whole)
            for bounds in ({"limit": 1}, {"limit": 3}, {"max_chars": 900}, {"max_chars": 1}):
                listed: list[GroupTask] = []
                after, more = reading.FIRST, True
                while more:
                    page = await b.groups.reading.tasks(b.root, wanted, after=after, **bounds)
                    listed += page.tasks
                    more = page.more
                    assert page.tasks or not whole
                    if page.tasks:
                        after = (page.tasks[-1].created_at, page.tasks[-1].task_id)
                assert tuple(listed) == whole, (wanted, bounds)


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
