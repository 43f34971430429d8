"""Whatever root and agents do in whatever order: the rules let through only what the table allows, and what the
events say keeps its promises (coordination 82-95, 8.3-8.5)."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from callboard.groups.rules import (
    FROM,
    check_claim,
    check_dependencies,
    check_ready,
    check_transition,
)
from callboard.groups.state import (
    ACTIVE,
    FINAL,
    GroupState,
    apply,
    blockers,
    conflicts,
    counts,
    dependency_failures,
    is_ready,
    replay,
    required_unfinished,
    seen,
)
from callboard_rpc.common import GroupId, SessionId, TaskId
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import (
    AgentGroupCreated,
    GroupTaskClaimed,
    GroupTaskCreated,
    GroupTaskReleased,
    GroupTaskStatusChanged,
)
from callboard_rpc.groups import GroupTask

ROOT = SessionId("ses_root")
AGENTS = (ROOT, SessionId("ses_1"), SessionId("ses_2"))
BECOMES: dict[str, Any] = {
    "start": "in_progress", "complete": "completed", "block": "blocked", "cancel": "cancelled"
}  # fmt: skip

actions = st.tuples(
    st.sampled_from(["create", "create", "claim", "claim", "claim", *FROM]),
    st.sampled_from(AGENTS),
    st.integers(0, 7),
    st.lists(st.integers(0, 7), max_size=3),
    st.sampled_from(AGENTS),
    st.lists(st.sampled_from(["a", "./A", "b\\c", "b/c"]), max_size=2).map(tuple),
)


class Model:
    """A board on which everybody does what the rules let them."""

    def __init__(self) -> None:
        self.log: list[tuple[Any, str]] = []
        self.state: GroupState | None = None
        self._append(AgentGroupCreated(group_id=GroupId("grp_1"), name="work"))

    @property
    def board(self) -> GroupState:
        assert self.state is not None
        return self.state

    def _append(self, event: Any) -> None:
        at = f"2031-05-17T09:30:00.{len(self.log):03d}Z"
        self.log.append((event, at))
        self.state = apply(self.state, event, at, ROOT)

    def do(self, action: tuple[Any, ...]) -> tuple[GroupTask | None, Any]:
        """The task before, and the event that was appended; none for what is refused."""
        operation, agent, number, after, other, paths = action
        task_id = TaskId(f"tsk_{number}")
        try:
            before, event = self._decide(operation, agent, task_id, after, other, paths)
        except CallboardError:
            return None, None
        self._append(event)
        return before, event

    def _decide(
        self, operation: Any, agent: SessionId, task_id: TaskId, after: Sequence[int],
        other: SessionId, paths: tuple[str, ...],
    ) -> tuple[GroupTask | None, Any]:  # fmt: skip
        tasks = self.board.tasks
        if operation == "create":
            if agent != ROOT or task_id in tasks:
                raise CallboardError("rootOnly", "no")
            dependencies = tuple(TaskId(f"tsk_{each}") for each in after)
            check_dependencies(task_id, dependencies, tasks)
            return None, GroupTaskCreated(
                task_id=task_id, group_id=GroupId("grp_1"), title="t", created_by=ROOT,
                dependencies=dependencies, expected_paths=paths,
            )  # fmt: skip
        if task_id not in tasks:
            raise CallboardError("taskNotFound", "no")
        task = tasks[task_id]
        if operation == "claim":
            check_claim(task, tasks, str)
            return task, GroupTaskClaimed(task_id=task_id, agent_id=agent)
        if operation in ("cancel", "reassign") and agent != ROOT:
            raise CallboardError("rootOnly", "no")
        check_transition(task, operation, agent, str)
        if operation == "release":
            return task, GroupTaskReleased(task_id=task_id, agent_id=agent)
        if operation == "reassign":
            if task.status == "pending":
                check_ready(task, tasks)
            return task, GroupTaskStatusChanged(
                task_id=task_id, status="claimed", agent_id=agent, assignee=other
            )
        return task, GroupTaskStatusChanged(
            task_id=task_id, status=BECOMES[operation], agent_id=agent, touched_files=paths
        )


def _is_consistent(state: GroupState) -> None:
    tasks = state.tasks
    for task in tasks.values():
        if task.status == "pending":
            assert task.assignee is None
        if task.status in (*ACTIVE, "blocked", "completed"):
            assert task.assignee in AGENTS
            # nobody owns, or has done, what waits for something
            assert not blockers(task, tasks)
        view = seen(task, tasks)
        assert view.ready == is_ready(task, tasks)
        assert not (view.ready and view.blockers)
        assert not (task.status in FINAL and view.blockers)
    number = counts(tasks)
    assert number.total == len(tasks) == (
        number.pending + number.claimed + number.in_progress + number.completed + number.blocked
        + number.cancelled
    )  # fmt: skip
    assert number.ready == sum(is_ready(task, tasks) for task in tasks.values())
    for failure in dependency_failures(tasks):
        assert tasks[failure.task_id].status not in FINAL
        assert not is_ready(tasks[failure.task_id], tasks)
        assert failure.dependency_id in blockers(tasks[failure.task_id], tasks)
    for conflict in conflicts(tasks):
        assert {tasks[each].status for each in conflict.task_ids} <= ACTIVE
    assert all(t.status not in FINAL for t in required_unfinished(tasks))
    assert _is_acyclic(state)


def _is_acyclic(state: GroupState) -> bool:
    left = {task_id: set(task.dependencies) for task_id, task in state.tasks.items()}
    while left:
        free = {task_id for task_id, after in left.items() if not after & left.keys()}
        if not free:
            return False
        left = {task_id: after for task_id, after in left.items() if task_id not in free}
    return True


@given(st.lists(actions, max_size=60))
def test_coordination_95_whatever_is_done_the_board_keeps_its_promises(
    script: list[tuple[Any, ...]],
) -> None:
    model = Model()
    for action in script:
        operation, agent = action[0], action[1]
        standing = model.board
        before, event = model.do(action)
        if event is None:
            assert model.board is standing  # what is refused changes nothing
            continue
        after = model.board.tasks[event.task_id]
        others = {k: v for k, v in model.board.tasks.items() if k != event.task_id}
        assert others == {k: v for k, v in standing.tasks.items() if k != event.task_id}
        _is_consistent(model.board)
        if before is None:
            continue
        assert before.status not in FINAL  # what is over stays as it is
        if operation in ("start", "complete", "block", "release"):
            assert before.assignee == agent  # by its owner alone
        if after.status == "completed":
            assert (operation, after.assignee) == ("complete", agent)
        if after.assignee != before.assignee:
            assert operation in ("claim", "release", "reassign")
            assert operation == "reassign" or None in (before.assignee, after.assignee)
    assert replay(model.log, ROOT) == replay(model.log, ROOT) == model.board
