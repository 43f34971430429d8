"""What may be done to a task, by whom, and what is said otherwise: coordination 83-85, 92-96, every cell of the
table of transitions (8.3)."""

from pathlib import Path
from typing import Any

import pytest
from agents_races import verb
from groups_kit import Board, board, must_be_as_replayed, refused

from callboard.groups.tasks import NewTask, Said
from callboard_rpc.events import GroupTaskClaimed, GroupTaskReleased, GroupTaskStatusChanged
from callboard_rpc.groups import GroupTask

pytestmark = pytest.mark.anyio

OWNER, OTHER, ROOT = "owner", "other", "root"
STATUSES = ("pending", "claimed", "in_progress", "blocked", "completed", "cancelled")
OPERATIONS = ("claim", "start", "complete", "block", "release", "cancel", "reassign")
BECOMES = {
    "claim": {"pending": "claimed"},
    "start": {"claimed": "in_progress"},
    "complete": {"claimed": "completed", "in_progress": "completed"},
    "block": {"claimed": "blocked", "in_progress": "blocked"},
    "release": {"claimed": "pending", "in_progress": "pending"},
    "cancel": dict.fromkeys(STATUSES[:4], "cancelled"),
    "reassign": dict.fromkeys(STATUSES[:4], "claimed"),
}
"""The table: from which status to which one."""

CELLS = [(op, status, actor) for op in OPERATIONS for status in STATUSES
         for actor in (OWNER, OTHER, ROOT)]  # fmt: skip


async def _at(b: Board, status: str) -> GroupTask:
    """A task in a status; whoever owns it, or did, is `OWNER`."""
    task = await b.task(f"to be {status}")
    if status == "pending":
        return task
    task = await b.claim(OWNER, task)
    match status:
        case "in_progress":
            return await b.start(OWNER, task)
        case "blocked":
            return await b.block(OWNER, task, "no key")
        case "completed":
            return await b.complete(OWNER, task, findings=("a",), touched_files=("x.py",))
        case "cancelled":
            return await b.cancel(ROOT, task)
        case _:
            return task


def _expected_error(operation: str, status: str, actor: str) -> tuple[str, dict[str, Any]] | None:
    """Kind and fields of the refusal, in the order of checks of 8.3; of the root's own, who asks comes
    before how the task stands."""
    if operation in ("cancel", "reassign") and actor != ROOT:
        return "rootOnly", {}
    if status not in BECOMES[operation]:
        return (
            ("taskNotClaimable", {"status": status, "assignee": OWNER})
            if operation == "claim"
            else ("transitionNotAllowed", {"status": status})
        )
    if operation in ("start", "complete", "block", "release") and actor != OWNER:
        return "notOwner", {"assignee": OWNER}
    return None


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def everybody(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One board for all cells: each has a task of its own."""
    async with board(tmp_path_factory.mktemp("board"), OWNER, OTHER) as b:
        yield b


@pytest.mark.parametrize(("operation", "status", "actor"), CELLS)
async def test_coordination_95_every_cell_of_the_table(
    everybody: Board, operation: str, status: str, actor: str
) -> None:
    b = everybody
    task = await _at(b, status)
    expected = _expected_error(operation, status, actor)
    if expected is None:
        before, events = len(await b.events()), b.head()
        changed = await b.do(operation, actor, task, OTHER)
        assert b.head() == events + 1
        (event,) = (await b.events())[before:]
        _check_change(b, operation, actor, task, changed, event)
        assert await b.seen(task) == changed
        return
    kind, data = expected
    error = await refused(b, b.do(operation, actor, task, OTHER))
    assert error.kind == kind
    owner = None if status == "pending" else b.ids[OWNER]
    assert error.data == {k: owner if v == OWNER else v for k, v in data.items()}
    if kind != "rootOnly":
        assert task.task_id in error.message
    assert await b.seen(task) == task


def _check_change(
    b: Board, operation: str, actor: str, before: GroupTask, after: GroupTask, event: Any
) -> None:
    me, task_id = b.ids[actor], before.task_id
    status: Any = BECOMES[operation][before.status]
    assert (event.task_id, after.status) == (task_id, status)
    match operation:
        case "claim":
            assert event == GroupTaskClaimed(task_id=task_id, agent_id=me)
            assert after.assignee == me
        case "release":
            assert event == GroupTaskReleased(task_id=task_id, agent_id=me)
            assert after.assignee is None
        case "reassign":
            assert event == GroupTaskStatusChanged(
                task_id=task_id, status="claimed", agent_id=me, assignee=b.ids[OTHER],
                reason="reassigned",
            )  # fmt: skip
            assert (after.assignee, after.reason) == (b.ids[OTHER], "reassigned")
        case _:
            said = {"complete": {"summary": "done"}, "block": {"reason": "stuck"}}
            assert event == GroupTaskStatusChanged(
                task_id=task_id, status=status, agent_id=me, **said.get(operation, {})
            )
            assert after.assignee == before.assignee


async def test_coordination_95_the_tables_are_as_the_log_says_after_all_cells(
    tmp_path: Path,
) -> None:
    async with board(tmp_path, OWNER, OTHER) as b:
        for operation, status, actor in CELLS:
            if _expected_error(operation, status, actor) is None:
                await b.do(operation, actor, await _at(b, status), OTHER)
        await must_be_as_replayed(b)


async def test_coordination_83_a_claim_is_accepted_once_all_dependencies_are_completed(
    tmp_path: Path,
) -> None:
    async with board(tmp_path, OWNER) as b:
        first, second = await b.task("first"), await b.task("second")
        last = await b.task("last", dependencies=(first.task_id, second.task_id))
        assert not last.ready and last.blockers == (first.task_id, second.task_id)
        await b.complete(OWNER, await b.claim(OWNER, first))
        error = await refused(b, b.claim(OWNER, last))
        assert (error.kind, error.data) == ("taskNotReady", {"dependencies": [second.task_id]})
        await b.claim(OWNER, second)
        error = await refused(b, b.claim(OWNER, last))
        assert error.data == {"dependencies": [second.task_id]}
        await b.complete(OWNER, second)
        assert (await b.seen(last)).ready
        assert (await b.claim(OWNER, last)).assignee == b.ids[OWNER]


async def test_coordination_84_claim_release_claim_by_another_are_three_events_in_order(
    tmp_path: Path,
) -> None:
    async with board(tmp_path, OWNER, OTHER) as b:
        task = await b.task()
        before = len(await b.events())
        await b.claim(OWNER, task)
        released = await b.release(OWNER, task)
        assert (released.status, released.assignee, released.ready) == ("pending", None, True)
        assert (await b.claim(OTHER, task)).assignee == b.ids[OTHER]
        assert (await b.events())[before:] == [
            GroupTaskClaimed(task_id=task.task_id, agent_id=b.ids[OWNER]),
            GroupTaskReleased(task_id=task.task_id, agent_id=b.ids[OWNER]),
            GroupTaskClaimed(task_id=task.task_id, agent_id=b.ids[OTHER]),
        ]


async def test_coordination_85_being_root_gives_no_right_to_what_another_owns(
    tmp_path: Path,
) -> None:
    async with board(tmp_path, OWNER) as b:
        theirs = await b.claim(OWNER, await b.task())
        for operation in ("start", "complete", "block", "release"):
            error = await refused(b, b.do(operation, ROOT, theirs))
            assert (error.kind, error.data) == ("notOwner", {"assignee": b.ids[OWNER]})
            assert repr(OWNER) in error.message
        own = await b.claim(ROOT, await b.task("mine"))
        error = await refused(b, b.start(OWNER, own))
        assert error.data == {"assignee": b.root} and "'root'" in error.message


async def test_coordination_92_what_is_the_roots_is_refused_to_a_child(tmp_path: Path) -> None:
    async with board(tmp_path, OWNER) as b:
        task = await b.claim(OWNER, await b.task())
        for doing in (
            b.groups.create(b.who(OWNER), NewTask(title="of my own")),
            b.cancel(OWNER, task),
            b.reassign(OWNER, task, OWNER),
        ):
            assert (await refused(b, doing)).kind == "rootOnly"


async def test_coordination_93_a_task_is_only_given_to_a_member_that_is_open(
    tmp_path: Path,
) -> None:
    async with board(tmp_path, OWNER, OTHER) as b:
        task = await b.task()
        await b.hire("outside", joins=False)
        for stranger in ("outside", "ses_nobody", task.task_id, "", "x" * 500):
            error = await refused(b, b.reassign(ROOT, task, stranger))
            assert error.kind == "notAMember"
            assert len(error.message) < 300
        await b.t.agents.close(b.ids[OTHER], by=b.who().by)
        assert (await refused(b, b.reassign(ROOT, task, OTHER))).kind == "agentClosed"
        # to whom comes before whether it is ready
        waits = await b.task("waits", dependencies=(task.task_id,))
        for nobody, kind in (("outside", "notAMember"), (OTHER, "agentClosed")):
            assert (await refused(b, b.reassign(ROOT, waits, nobody))).kind == kind
        assert (await b.reassign(ROOT, task, ROOT)).assignee == b.root


async def test_coordination_16c_a_pending_task_that_waits_is_given_to_nobody(
    tmp_path: Path,
) -> None:
    async with board(tmp_path, OWNER) as b:
        first = await b.task("first")
        last = await b.task("last", dependencies=(first.task_id,))
        error = await refused(b, b.reassign(ROOT, last, OWNER))
        assert (error.kind, error.data) == ("taskNotReady", {"dependencies": [first.task_id]})


async def test_coordination_94_who_is_interrupted_or_closed_keeps_what_it_owns(
    tmp_path: Path,
) -> None:
    async with board(tmp_path, OWNER) as b:
        task = await b.start(OWNER, await b.claim(OWNER, await b.task()))
        await b.t.agents.interrupt(b.ids[OWNER], verb("cancel"))
        assert await b.seen(task) == task
        await b.t.agents.close(b.ids[OWNER], by=b.who().by)
        assert await b.seen(task) == task
        await must_be_as_replayed(b)


@pytest.mark.parametrize("blank", [None, "", " \n\t", "\u3000"])
async def test_coordination_96_no_completion_without_a_summary_no_block_without_a_reason(
    tmp_path: Path, blank: str | None
) -> None:
    async with board(tmp_path, OWNER) as b:
        task = await b.claim(OWNER, await b.task())
        for operation, field in (("complete", "summary"), ("block", "reason")):
            said = Said(summary=blank, reason=blank, findings=("f",))
            doing = b.groups.change(b.who(OWNER), task.task_id, operation, said)  # type: ignore[arg-type]
            error = await refused(b, doing)
            assert error.kind == "invalidParams"
            assert error.data["errors"][0]["path"] == f"$.{field}"


async def test_coordination_8_3_what_is_empty_leaves_what_was_said_before(tmp_path: Path) -> None:
    async with board(tmp_path, OWNER) as b:
        task = await b.claim(OWNER, await b.task())
        await b.block(OWNER, task, "no key")
        given = await b.reassign(ROOT, task, OWNER)
        assert (given.status, given.reason) == ("claimed", "reassigned")
        done = await b.complete(
            OWNER, task, summary=" made ", findings=(" a ", "", "b"), touched_files=("x",)
        )
        assert (done.summary, done.reason) == ("made", "reassigned")
        assert (done.findings, done.touched_files) == (("a", "b"), ("x",))
        assert done.updated_at >= given.updated_at >= task.created_at


async def test_coordination_8_3_a_task_that_is_not_there_is_said_first(tmp_path: Path) -> None:
    async with board(tmp_path, OWNER) as b:
        for before_there_is_a_group in (True, False):
            for unknown in ("tsk_none", "", "x" * 10_000, "'; DROP TABLE group_tasks; --"):
                for operation in OPERATIONS:
                    error = await refused(b, b.do(operation, OWNER, unknown, OTHER))
                    assert error.kind == "taskNotFound"
                    assert len(error.message) < 300
            if before_there_is_a_group:
                await b.task()


async def test_coordination_81_a_child_joins_once_by_claiming_the_root_never(
    tmp_path: Path,
) -> None:
    async with board(tmp_path) as b:
        await b.hire(OWNER, joins=False)
        for title in ("a", "b"):
            await b.release(OWNER, await b.claim(OWNER, await b.task(title)))
            await b.claim(ROOT, await b.task(f"{title} of the root"))
        joined = await b.events("agent_group_member_joined")
        assert [event.agent_id for event in joined] == [b.ids[OWNER]]
        assert [m.name for m in (await b.group()).members] == ["root", OWNER]
