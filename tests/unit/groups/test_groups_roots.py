"""Roots that are closed, archived or oddly named, members that are gone, and graphs that no server has made
(coordination 79, 80, 88, 93, 8.2, 8.4)."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from agents_kit import Cast, troupe
from groups_kit import Board, again, board, must_be_as_replayed, refused, tables

from callboard.groups import tasks
from callboard.groups.membership import append
from callboard.groups.tasks import NewTask
from callboard_rpc.common import TaskId
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import GroupTaskCreated
from harness.inside import CLIENT, new_session

pytestmark = pytest.mark.anyio


# --- a root that takes nothing any more -------------------------------------------------------------


async def _closed(b: Board) -> str:
    await b.t.host.sessions.close(b.root, by=CLIENT, reason="over")
    return "sessionClosed"


async def _archived(b: Board) -> str:
    await b.t.host.sessions.set_archived(b.root, archived=True, by=CLIENT)
    return "sessionArchived"


@pytest.mark.parametrize("end", [_closed, _archived])
async def test_coordination_8_2_nothing_changes_at_the_board_of_a_root_that_is_over(
    tmp_path: Path, end: Callable[[Board], Awaitable[str]]
) -> None:
    async with board(tmp_path, "one") as b:
        ready, held = await b.task("ready"), await b.claim("one", await b.task("held"))
        kind = await end(b)
        for doing in (
            b.task("more"),
            b.claim("one", ready),
            b.claim("root", ready),
            *(
                b.do(operation, "one", held)
                for operation in ("start", "complete", "block", "release")
            ),
            b.cancel("root", held),
            b.reassign("root", held, "root"),
            b.send("one", "root", "x"),
            b.groups.complete(b.who(), "all of it"),
            # who may act at all is asked before anything about the task is told
            b.claim("one", "tsk_none"),
        ):
            assert (await refused(b, doing)).kind == kind
        assert (await b.group()).counts.total == 2 and await b.seen(held) == held
    async with again(tmp_path, b) as b:
        assert (await refused(b, b.claim("one", ready))).kind == kind
        assert await b.seen(ready) == ready


async def test_coordination_8_2_an_archived_root_that_is_wanted_again_goes_on_with_its_board(
    tmp_path: Path,
) -> None:
    async with board(tmp_path, "one") as b:
        made = await b.task()
        await _archived(b)
        await b.t.host.sessions.set_archived(b.root, archived=False, by=CLIENT)
        assert (await b.claim("one", made)).assignee == b.ids["one"]


async def test_coordination_79_a_root_that_is_over_gets_no_group_any_more(tmp_path: Path) -> None:
    async with board(tmp_path) as b:
        await _archived(b)
        assert (await refused(b, b.task())).kind == "sessionArchived"
        assert not any(tables(b).values())


async def test_coordination_79_an_agent_for_a_task_that_is_not_there_makes_no_group(
    tmp_path: Path,
) -> None:
    async with board(tmp_path) as b:
        error = await refused(b, b.t.spawn(b.root, "one", task_id="tsk_none"))
        assert error.kind == "taskNotFound"
        assert not any(tables(b).values()) and not await b.events()


# --- what a group is called -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("work", "work"),
        ("two words", "two words"),
        ("h\u00e9 \u2713", "h\u00e9 \u2713"),
        ("a\nb\u202ec\x1bd", "a b c d"),
        ("\x01\x02", "group"),
        ("x" * 80, "x" * 64),
    ],
)
async def test_coordination_8_2_a_group_is_called_by_the_folder_it_works_in(
    tmp_path: Path, folder: str, name: str
) -> None:
    (tmp_path / folder).mkdir()
    async with troupe(tmp_path, Cast()) as t:
        root = await new_session(t.host, tmp_path / folder)
        b = Board(t, root, {"root": root})
        await b.task()
        assert (await b.group()).name == name


async def test_coordination_8_2_a_group_in_no_named_folder_is_the_group(tmp_path: Path) -> None:
    async with troupe(tmp_path, Cast()) as t:
        root = await new_session(t.host, Path("/"))
        b = Board(t, root, {"root": root})
        await b.task()
        assert (await b.group()).name == "group"


# --- members that are gone --------------------------------------------------------------------------


async def test_coordination_93_94_a_member_that_was_deleted_keeps_its_task_and_gets_nothing_more(
    tmp_path: Path,
) -> None:
    async with board(tmp_path, "one", "two") as b:
        held, free = await b.claim("one", await b.task("held")), await b.task("free")
        await b.send("root", "one", "never to be read")
        await b.t.agents.close(b.ids["one"], by=CLIENT)
        await b.t.host.sessions.delete(b.ids["one"], by=CLIENT)
        assert await b.seen(held) == held
        assert (await refused(b, b.reassign("root", free, "one"))).kind == "notAMember"
        assert (await refused(b, b.send("root", "one", "x"))).kind == "notAMember"
        assert (await b.send("root", "group", "x")).recipients == (b.ids["two"],)
        assert not [row for row in tables(b)["group_message_deliveries"] if row[0] == b.ids["one"]]
        (told,) = await b.use("root", ("group_status", {}))
        assert f"members: two [{b.ids['two']}], {b.ids['one']} [{b.ids['one']}] (closed)" in told
        assert (await b.reassign("root", held, "two")).assignee == b.ids["two"]
        rows = tables(b)
    async with again(tmp_path, b) as b:
        assert tables(b) == rows
        await must_be_as_replayed(b)


async def test_coordination_9_members_are_told_with_their_ids_those_first_that_are_open(
    tmp_path: Path,
) -> None:
    async with board(tmp_path, "gone", "one", "two") as b:
        await b.t.agents.close(b.ids["gone"], by=CLIENT)
        (told,) = await b.use("one", ("group_status", {}))
        one, two, gone = (f"{name} [{b.ids[name]}]" for name in ("one", "two", "gone"))
        assert told.splitlines()[1] == f"members: {one}, {two}, {gone} (closed)"
        # an agent that knows nobody can write to whom it reads of there
        told = await b.use(
            "one",
            ("group_message", {"op": "send", "to": "agent", "agent_id": two[5:-1], "text": "x"}),
        )
        assert "queued for" in told[0]


# --- graphs -----------------------------------------------------------------------------------------


async def _play(b: Board, after: dict[int, tuple[int, ...]]) -> list[TaskId]:
    """Tasks as a log could tell of them that no server has written; their ids."""
    group_id = (await b.group()).group_id
    ids = [TaskId(f"tsk_{number:04d}") for number in range(len(after))]

    def commit(tx: Any) -> None:
        for number, task_id in enumerate(ids):
            event = GroupTaskCreated(
                task_id=task_id, group_id=group_id, title=str(number), created_by=b.who().root_id,
                dependencies=tuple(ids[each] for each in after[number]),
            )  # fmt: skip
            append(tx, b.who(), event)

    await b.t.host.log.transact(commit)
    return ids


async def test_coordination_88_a_log_that_goes_in_a_circle_of_1000_tasks_holds_up_nobody(
    tmp_path: Path,
) -> None:
    async with board(tmp_path, "one") as b:
        free = await b.task("free")
        ids = await _play(b, {number: ((number + 1) % 1_000,) for number in range(1_000)})
        last = await b.task("last", dependencies=(ids[0], ids[500], free.task_id))
        assert not last.ready and last.blockers == last.dependencies
        error = await refused(b, b.claim("one", ids[7]))
        assert (error.kind, error.data) == ("taskNotReady", {"dependencies": [ids[8]]})
        assert (await b.group()).counts.ready == 1
        await b.cancel("root", ids[8])
        failures = (await b.group()).dependency_failures
        assert [(f.task_id, f.dependency_id) for f in failures] == [(ids[7], ids[8])]
        await must_be_as_replayed(b)


async def test_coordination_88_a_chain_of_1000_tasks_is_a_graph_and_becomes_ready_one_by_one(
    tmp_path: Path,
) -> None:
    async with board(tmp_path, "one") as b:
        await b.task("to begin with")
        ids = await _play(b, {n: (n - 1,) if n else () for n in range(1_000)})
        last = await b.task("last", dependencies=(ids[-1],))
        assert last.blockers == (ids[-1],)
        await b.complete("one", await b.claim("one", ids[0]))
        assert (await b.seen(ids[1])).ready and not (await b.seen(ids[2])).ready
        assert (await b.group()).counts.ready == 2
        for dependencies, reason in (
            ((ids[3], ids[3]), "duplicate"),
            ((ids[3], TaskId("tsk_none")), "unknown"),
            ((TaskId("tsk_none"), ids[3], ids[3]), "unknown"),
        ):
            error = await refused(b, b.task("x", dependencies=dependencies))
            assert (error.kind, error.data) == ("invalidGraph", {"reason": reason})


async def test_coordination_88_what_a_task_depends_on_is_looked_at_where_the_task_is_made(
    tmp_path: Path,
) -> None:
    """One that is made before, in the same transaction, is there; one that was taken back is not."""
    async with board(tmp_path) as b:
        made: list[TaskId] = []

        def two(tx: Any) -> None:
            first = tasks.create(tx, b.who(), NewTask(title="first"))
            made.append(
                tasks.create(tx, b.who(), NewTask(title="x", dependencies=(first.task_id,))).task_id
            )

        def taken_back(tx: Any) -> None:
            made.append(tasks.create(tx, b.who(), NewTask(title="never")).task_id)
            raise LookupError("no")

        await b.t.host.log.transact(two)
        with pytest.raises(LookupError):
            await b.t.host.log.transact(taken_back)
        assert (await b.seen(made[0])).blockers
        error = await refused(b, b.task("x", dependencies=(made[1],)))
        assert error.data == {"reason": "unknown"}


async def test_coordination_8_4_of_those_who_make_the_last_tasks_at_once_no_more_than_fit_succeed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "MAX_TASKS", 3)
    async with board(tmp_path) as b:
        answers = await asyncio.gather(
            *(b.task(str(number)) for number in range(8)), return_exceptions=True
        )
        lost = [each for each in answers if isinstance(each, CallboardError)]
        assert [each.kind for each in lost] == ["limitReached"] * 5
        assert (await b.group()).counts.total == 3


# --- agents that are made for a task ----------------------------------------------------------------


async def test_coordination_97_a_claim_for_a_new_agent_is_of_whoever_made_the_agent(
    tmp_path: Path,
) -> None:
    async with board(tmp_path) as b:
        made = await b.task()
        await b.t.ended(await b.t.spawn(b.root, "one", task_id=made.task_id))
        records = [r for r in await b.t.log(b.root) if r.type == "group_task_claimed"]
        assert ['"client"' in record.actor for record in records] == [True]


async def test_coordination_97_no_agent_of_an_agent_takes_a_task_of_a_root_that_was_put_away(
    tmp_path: Path,
) -> None:
    async with board(tmp_path, "one", environ={"CALLBOARD_AGENTS_MAX_DEPTH": "2"}) as b:
        made = await b.task()
        await _archived(b)
        sessions = b.t.host.log.glance("SELECT count(*) FROM heads")
        error = await refused(b, b.t.spawn(b.ids["one"], "two", task_id=made.task_id))
        assert error.kind == "sessionArchived"
        assert b.t.host.log.glance("SELECT count(*) FROM heads") == sessions
        assert (await b.seen(made)).status == "pending"
