"""A group as it follows from its events, and what follows from its tasks: pure (coordination 87-91, 8.7)."""

import time
from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from callboard.groups import state
from callboard.groups.rules import check_claim, check_dependencies
from callboard.groups.state import (
    MAX_CONFLICTS,
    MAX_FAILURES,
    apply,
    conflicts,
    counts,
    dependency_failures,
    is_shown,
    normal_path,
    replay,
    required_unfinished,
    seen,
)
from callboard_rpc.common import GroupId, SessionId, TaskId
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import (
    AgentGroupCreated,
    AgentGroupMemberJoined,
    GroupTaskClaimed,
    GroupTaskCreated,
    GroupTaskReleased,
    GroupTaskStatusChanged,
    SessionArchived,
    TaskStatus,
)
from callboard_rpc.groups import DependencyFailure, GroupConflict, GroupCounts, GroupTask

ROOT, ONE, TWO = SessionId("ses_root"), SessionId("ses_1"), SessionId("ses_2")
GROUP = GroupId("grp_1")


def task(number: int, status: TaskStatus = "pending", at: int = 0, **more: Any) -> GroupTask:
    """A task by hand; whatever was once somebody's is the first agent's."""
    dependencies = tuple(map(tid, more.pop("after", ())))
    owner = None if status == "pending" else ONE
    return GroupTask(
        task_id=tid(number), group_id=GROUP, title=f"task {number}", status=status, created_by=ROOT,
        created_at=_time(at), updated_at=_time(at), dependencies=dependencies,
        **{"assignee": owner, **more},
    )  # fmt: skip


def tid(number: int) -> TaskId:
    return TaskId(f"tsk_{number:05d}")


def _time(second: int) -> str:
    return f"2031-05-17T09:30:{second:02d}.000Z"


def of(*tasks: GroupTask) -> dict[TaskId, GroupTask]:
    return {each.task_id: each for each in tasks}


def events(*data: Any) -> list[tuple[Any, str]]:
    return [(each, _time(second)) for second, each in enumerate(data)]


BEGUN = (AgentGroupCreated(group_id=GROUP, name="work"),)


def made(number: int, **more: Any) -> GroupTaskCreated:
    return GroupTaskCreated(
        task_id=tid(number), group_id=GROUP, title=f"task {number}", created_by=ROOT, **more
    )


HISTORY: Sequence[Any] = (
    *BEGUN,
    made(2, description="how", required=False, expected_paths=("a.py",)),
    AgentGroupMemberJoined(group_id=GROUP, agent_id=TWO),
    AgentGroupMemberJoined(group_id=GROUP, agent_id=ONE),
    AgentGroupMemberJoined(group_id=GROUP, agent_id=TWO),
    AgentGroupMemberJoined(group_id=GROUP, agent_id=ROOT),
    made(1, dependencies=(tid(2),)),
    GroupTaskClaimed(task_id=tid(2), agent_id=ONE),
    GroupTaskStatusChanged(task_id=tid(2), status="blocked", agent_id=ONE, reason="no key"),
    GroupTaskStatusChanged(
        task_id=tid(2), status="claimed", agent_id=ROOT, assignee=TWO, reason="reassigned"
    ),
    GroupTaskStatusChanged(
        task_id=tid(2), status="completed", agent_id=TWO, summary="made", findings=("f",),
        touched_files=("b.py",),
    ),
    GroupTaskClaimed(task_id=tid(1), agent_id=ONE),
    GroupTaskReleased(task_id=tid(1), agent_id=ONE),
)  # fmt: skip


# --- replay -------------------------------------------------------------------------------------


def test_coordination_87_replaying_twice_gives_the_same_state() -> None:
    assert replay(events(*HISTORY), ROOT) == replay(iter(events(*HISTORY)), ROOT)
    state = replay(events(*HISTORY), ROOT)
    assert state is not None
    assert (state.group_id, state.name, state.created_at) == (GROUP, "work", _time(0))
    assert state.members == (TWO, ONE)
    assert state.tasks[tid(2)] == GroupTask(
        task_id=tid(2), group_id=GROUP, title="task 2", status="completed", created_by=ROOT,
        created_at=_time(1), updated_at=_time(10), description="how", required=False,
        expected_paths=("a.py",), assignee=TWO, summary="made", reason="reassigned", findings=("f",),
        touched_files=("b.py",),
    )  # fmt: skip
    last = state.tasks[tid(1)]
    assert (last.status, last.assignee, last.updated_at) == ("pending", None, _time(12))


def test_coordination_87_event_by_event_comes_to_the_same_as_a_replay() -> None:
    state = None
    for number, (event, at) in enumerate(events(*HISTORY), 1):
        state = apply(state, event, at, ROOT)
        assert state == replay(events(*HISTORY)[:number], ROOT)


def test_coordination_8_3_a_task_was_changed_when_the_last_event_about_it_was() -> None:
    for number, (event, at) in enumerate(events(*HISTORY), 1):
        if isinstance(event, AgentGroupCreated | AgentGroupMemberJoined):
            continue
        state = replay(events(*HISTORY)[:number], ROOT)
        assert state is not None
        assert state.tasks[event.task_id].updated_at == at
        assert state.tasks[event.task_id].created_at in (_time(1), _time(6))


def test_coordination_8_3_what_an_event_leaves_empty_stays_as_it_was() -> None:
    said = GroupTaskStatusChanged(
        task_id=tid(2), status="blocked", agent_id=TWO, summary="so far", reason="no key",
        findings=("f",), touched_files=("b.py",),
    )  # fmt: skip
    silent = GroupTaskStatusChanged(
        task_id=tid(2), status="cancelled", agent_id=ROOT, summary="", reason=None
    )
    state = replay(events(*BEGUN, made(2), said, silent), ROOT)
    assert state is not None
    after = state.tasks[tid(2)]
    assert (after.status, after.summary, after.reason) == ("cancelled", "so far", "no key")
    assert (after.findings, after.touched_files) == (("f",), ("b.py",))


STRANGE: Sequence[Any] = (
    AgentGroupCreated(group_id=GroupId("grp_2"), name="another"),
    made(1, description="again"),
    GroupTaskClaimed(task_id=tid(9), agent_id=ONE),
    GroupTaskReleased(task_id=tid(9), agent_id=ONE),
    GroupTaskStatusChanged(task_id=tid(9), status="completed", agent_id=ONE),
    SessionArchived(),
)


@pytest.mark.parametrize("event", STRANGE, ids=lambda event: type(event).__name__)
def test_coordination_87_what_cannot_follow_changes_nothing(event: Any) -> None:
    before = replay(events(*HISTORY), ROOT)
    assert before is not None
    assert replay(events(*HISTORY, event), ROOT) == before
    assert apply(before, event, _time(59), ROOT) == before
    assert replay(events(event, *HISTORY[1:]), ROOT) is None or isinstance(event, AgentGroupCreated)


def test_coordination_79_without_its_creation_there_is_no_group() -> None:
    assert replay([], ROOT) is None
    assert replay(events(*HISTORY[1:]), ROOT) is None
    assert apply(None, made(1), _time(0), ROOT) is None


# --- order, readiness, counts -------------------------------------------------------------------


def test_coordination_8_7_tasks_stand_by_creation_then_id() -> None:
    tasks = of(task(3, at=1), task(1, at=2), task(2, at=1), task(4, at=0))
    assert [t.task_id for t in required_unfinished(tasks)] == [tid(4), tid(2), tid(3), tid(1)]


@pytest.mark.parametrize("status", ["claimed", "in_progress", "blocked", "cancelled", "pending"])
def test_coordination_89_only_a_completed_dependency_makes_ready(status: TaskStatus) -> None:
    waiting = task(2, after=[1])
    tasks = of(task(1, status), waiting)
    assert not seen(waiting, tasks).ready
    assert seen(waiting, tasks).blockers == (tid(1),)
    with pytest.raises(CallboardError) as caught:
        check_claim(waiting, tasks, str)
    assert (caught.value.kind, caught.value.data) == ("taskNotReady", {"dependencies": [tid(1)]})
    tasks = of(task(1, "completed"), waiting)
    assert seen(waiting, tasks).ready
    check_claim(waiting, tasks, str)


@pytest.mark.parametrize("status", ["completed", "cancelled"])
def test_coordination_8_7_what_is_over_waits_for_nothing(status: TaskStatus) -> None:
    over = task(2, status, after=[1])
    view = seen(over, of(task(1), over))
    assert (view.ready, view.blockers) == (False, ())
    held = task(2, "blocked", after=[1])
    assert seen(held, of(task(1), held)).blockers == (tid(1),)


def test_coordination_89_a_dependency_that_is_unknown_is_never_completed() -> None:
    assert seen(task(2, after=[1]), of(task(2, after=[1]))).blockers == (tid(1),)


def test_coordination_89_failures_are_the_direct_dependencies_that_are_blocked_then_cancelled() -> (
    None
):
    tasks = of(
        task(1, "cancelled"), task(2, "blocked"), task(3, "cancelled"), task(4, "blocked"),
        task(9, after=[1, 2, 3, 4]), task(8, "claimed", after=[2]), task(7, after=[9]),
        task(6, "completed", after=[1]), task(5, "cancelled", after=[2]),
        task(10, "blocked", after=[1]),
    )  # fmt: skip
    assert dependency_failures(tasks) == tuple(
        DependencyFailure(task_id=tid(t), dependency_id=tid(d), status=status)
        for t, d, status in (
            (8, 2, "blocked"),
            (9, 2, "blocked"),
            (9, 4, "blocked"),
            (9, 1, "cancelled"),
            (9, 3, "cancelled"),
            (10, 1, "cancelled"),
        )
    )


def test_coordination_89_of_very_many_failures_the_first_are_told() -> None:
    tasks = of(
        *(task(n, "blocked") for n in range(1, 5)),
        *(task(n, after=[1, 2, 3]) for n in range(5, 1_005)),
    )
    told = dependency_failures(tasks)
    assert len(told) == MAX_FAILURES
    assert [(f.task_id, f.dependency_id) for f in told[:4]] == [
        (tid(5), tid(1)), (tid(5), tid(2)), (tid(5), tid(3)), (tid(6), tid(1))
    ]  # fmt: skip


def test_coordination_8_7_counts_are_of_each_kind_and_the_ready_are_pending_too() -> None:
    tasks = of(
        task(1, "completed"), task(2, "blocked"), task(3, after=[1]), task(4, after=[2]),
        task(5, "claimed"), task(6, "in_progress"), task(7, "in_progress"), task(8, "cancelled"),
    )  # fmt: skip
    assert counts(tasks) == GroupCounts(
        total=8, pending=2, ready=1, claimed=1, in_progress=2, completed=1, blocked=1, cancelled=1
    )
    assert counts({}) == GroupCounts()


def test_coordination_9_each_filter_shows_what_it_says() -> None:
    tasks = of(
        task(1, "completed"), task(2, "blocked"), task(3, after=[1]), task(4, after=[2]),
        task(5, "claimed"), task(6, "in_progress"), task(8, "cancelled"),
    )  # fmt: skip
    shown = {
        wanted: {int(t.task_id[4:]) for t in tasks.values() if is_shown(seen(t, tasks), wanted)}
        for wanted in (
            "open", "ready", "active", "blocked", "pending", "completed", "cancelled", "all"
        )
    }  # fmt: skip
    assert shown == {
        "open": {2, 3, 4, 5, 6}, "ready": {3}, "active": {5, 6}, "blocked": {2}, "pending": {3, 4},
        "completed": {1}, "cancelled": {8}, "all": {1, 2, 3, 4, 5, 6, 8},
    }  # fmt: skip


def test_coordination_8_7_required_and_unfinished_is_what_is_blocked_too() -> None:
    tasks = of(
        task(1, "completed"), task(2, "cancelled"), task(3, "blocked"), task(4, "claimed"),
        task(5, "in_progress"), task(6), task(7, required=False),
    )  # fmt: skip
    assert [t.task_id for t in required_unfinished(tasks)] == [tid(3), tid(4), tid(5), tid(6)]


# --- conflicts ----------------------------------------------------------------------------------

ACTIVE_ONLY = ("claimed", "in_progress")


@pytest.mark.parametrize("one", ["pending", "claimed", "in_progress", "completed", "blocked", "cancelled"])  # fmt: skip
@pytest.mark.parametrize("two", ["pending", "claimed", "in_progress", "completed", "blocked", "cancelled"])  # fmt: skip
def test_coordination_90_only_two_active_tasks_conflict(one: TaskStatus, two: TaskStatus) -> None:
    tasks = of(task(1, one, expected_paths=("a",)), task(2, two, touched_files=("a",)))
    both = one in ACTIVE_ONLY and two in ACTIVE_ONLY
    expected = (GroupConflict(task_ids=(tid(1), tid(2)), path="a"),) if both else ()
    assert conflicts(tasks) == expected


@pytest.mark.parametrize(
    ("one", "two", "path"),
    [
        ("src/a.py", "SRC/A.py", "src/a.py"),
        ("./src/a.py", "src/a.py", "src/a.py"),
        (".\\src\\a.py", "././src/a.py", "src/a.py"),
        ("  src\\A.py ", "src/a.py", "src/a.py"),
        ("\u00c9.py", "\u00c9.PY", "\u00c9.py"),
        ("../a", "../A", "../a"),
    ],
)
def test_coordination_90_case_slashes_and_a_leading_dot_do_not_matter(
    one: str, two: str, path: str
) -> None:
    tasks = of(task(1, "claimed", expected_paths=(one,)), task(2, "claimed", expected_paths=(two,)))
    assert conflicts(tasks) == (GroupConflict(task_ids=(tid(1), tid(2)), path=path),)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("src", "src/a.py"),
        ("src/", "src"),
        ("src/*", "src/a.py"),
        ("a.py", "b.py"),
        ("\u00c9.py", "\u00e9.py"),
        ("/a.py", "a.py"),
        ("", "./"),
        ("b/../a.py", "a.py"),
    ],
)
def test_coordination_91_a_folder_and_what_is_in_it_are_not_the_same(one: str, two: str) -> None:
    tasks = of(task(1, "claimed", expected_paths=(one,)), task(2, "claimed", expected_paths=(two,)))
    assert conflicts(tasks) == ()


def test_coordination_90_a_pair_is_named_once_in_the_order_of_lists_with_its_first_file() -> None:
    paths = ("z", "b", "./A")
    tasks = of(
        task(2, "claimed", at=1, expected_paths=paths),
        task(1, "in_progress", at=2, touched_files=paths),
        task(3, "claimed", at=0, expected_paths=("B",)),
        task(4, "claimed", at=3, expected_paths=("z", "z")),
    )
    assert [(c.task_ids, c.path) for c in conflicts(tasks)] == [
        ((tid(3), tid(2)), "b"),
        ((tid(3), tid(1)), "b"),
        ((tid(2), tid(1)), "a"),
        ((tid(2), tid(4)), "z"),
        ((tid(1), tid(4)), "z"),
    ]


def _plainly(tasks: Sequence[GroupTask]) -> list[tuple[tuple[TaskId, TaskId], str]]:
    """All conflicts of tasks in the order of lists, pair by pair."""
    named = [
        (each.task_id, {*map(normal_path, (*each.expected_paths, *each.touched_files))} - {""})
        for each in tasks
    ]
    return [
        ((one, two), min(mine & theirs))
        for number, (one, mine) in enumerate(named)
        for two, theirs in named[number + 1 :]
        if mine & theirs
    ]


@pytest.mark.parametrize("most", [1, 2, 7, 8, 1_000])
def test_coordination_8_7_of_more_conflicts_than_are_told_it_is_the_first(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "MAX_CONFLICTS", most)
    files = ("d", "c", "b", "a")
    tasks = [
        task(number, "claimed", expected_paths=tuple(f for at, f in enumerate(files) if not number >> at & 1))
        for number in range(16)
    ]  # fmt: skip
    all_of_them = _plainly(tasks)
    assert 8 < len(all_of_them) < 1_000
    for shuffled in (tasks, tasks[::-1], tasks[5:] + tasks[:5]):
        found = [(c.task_ids, c.path) for c in conflicts(of(*shuffled))]
        assert found == all_of_them[:most]


@pytest.mark.parametrize("paths", [1, 20])
def test_coordination_8_7_ten_thousand_that_name_the_same_files_are_told_soon(paths: int) -> None:
    """The first thousand pairs: of some fifty million, which nobody could go through in that time."""
    named = tuple(f"{letter}.py" for letter in "tsrqponmlkjihgfedcba"[-paths:])
    tasks = [task(number, "claimed", expected_paths=named) for number in range(10_000)]
    began = time.process_time()
    found = conflicts(of(*reversed(tasks)))
    assert time.process_time() - began < 5
    assert [c.task_ids for c in found] == [(tid(0), tid(n)) for n in range(1, MAX_CONFLICTS + 1)]
    assert {c.path for c in found} == {"a.py"}
    assert MAX_CONFLICTS == 1_000


def test_coordination_8_7_a_path_is_the_same_however_often_it_is_made_normal() -> None:
    for path in (" .\\A\\b ", "./././x", "a/./b", "..\\x", ".\\.\\.hidden", "."):
        assert normal_path(normal_path(path)) == normal_path(path)


# --- the graph ----------------------------------------------------------------------------------


def _reason(task_id: TaskId, after: Sequence[int | str], tasks: dict[TaskId, GroupTask]) -> str:
    names = [tid(each) if isinstance(each, int) else TaskId(each) for each in after]
    with pytest.raises(CallboardError) as caught:
        check_dependencies(task_id, names, tasks)
    assert caught.value.kind == "invalidGraph"
    assert len(caught.value.message) < 300
    assert attrs.asdict(tasks[tid(1)]) == attrs.asdict(task(1))
    return caught.value.data["reason"]


def test_coordination_88_what_is_no_graph_is_refused_in_the_order_of_checks() -> None:
    tasks = of(task(1), task(2, after=[1]))
    new = tid(9)
    assert _reason(new, [9], tasks) == "self"
    assert _reason(new, [7], tasks) == "unknown"
    assert _reason(new, ["x" * 5_000], tasks) == "unknown"
    assert _reason(new, [1, 1], tasks) == "duplicate"
    # per dependency, in their order: the first one that is wrong is told of
    assert _reason(new, [7, 9, 1, 1], tasks) == "unknown"
    assert _reason(new, [1, 1, 7, 9], tasks) == "duplicate"
    assert _reason(new, [1, 9, 7], tasks) == "self"
    # a cycle is looked for when all else is right
    assert _reason(tid(1), [2, 2], tasks) == "duplicate"
    assert _reason(tid(1), [2, 7], tasks) == "unknown"
    assert _reason(tid(1), [2], tasks) == "cycle"
    check_dependencies(new, [tid(2), tid(1)], tasks)
    check_dependencies(new, [], tasks)


def test_coordination_88_a_cycle_through_1000_tasks_is_found_and_a_chain_of_them_is_none() -> None:
    chain = of(task(1), *(task(number, after=[number - 1]) for number in range(2, 1_001)))
    assert _reason(tid(1), [1_000], chain) == "cycle"
    assert _reason(tid(1), [500], chain) == "cycle"
    check_dependencies(tid(1_001), [tid(1_000)], chain)


def test_coordination_88_a_graph_with_many_ways_is_walked_once() -> None:
    """Two tasks in each of 500 layers, each after both of the layer below: 2 to the 500 ways."""
    layers = [task(1), task(2)]
    for number in range(3, 1_001, 2):
        below = [number - 2, number - 1]
        layers += [task(number, after=below), task(number + 1, after=below)]
    check_dependencies(tid(2_000), [tid(999), tid(1_000)], of(*layers))
    assert _reason(tid(1), [999, 1_000], of(*layers)) == "cycle"


def test_coordination_88_a_graph_that_is_broken_already_does_not_hold_up_the_check() -> None:
    tasks = of(task(1), task(2, after=[3]), task(3, after=[2]), task(4, after=[77]))
    check_dependencies(tid(9), [tid(2), tid(4), tid(1)], tasks)
