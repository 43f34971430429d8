"""Whatever root and agents do at a board, in whatever order and by whichever of two servers: it becomes what a model of
it says, at both of them, in the log, and when the tables were made anew (coordination 81-106)."""

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import pytest
from board_acting import Acting
from board_hosts import Hosts
from board_model import Board
from board_steps import early, first, hosts, steps
from board_views import Events, said, shown
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from callboard.groups.state import replay, seen
from callboard_rpc.common import SessionId
from callboard_rpc.convert import structure, unstructure
from callboard_rpc.events import EVENT_TYPES


class TwoHosts(RuleBasedStateMachine):
    """A new root with two or three agents at rest. It has one rule, of which `steps` says how often it does what: of
    several rules an example would leave out about half."""

    def __init__(self, pair: Hosts) -> None:
        super().__init__()
        self.pair = pair
        self.count = 0
        """Steps, with all that was checked."""
        self.steady = False
        """Whether the last of them went as it was to."""

    @initialize(
        at=hosts,
        count=st.integers(2, 3),
        early=early,
        first=first,
        last=st.tuples(hosts, st.booleans()),
    )
    def begin(
        self,
        at: int,
        count: int,
        early: list[dict[str, Any]],
        first: list[Any],
        last: tuple[int, bool],
    ) -> None:
        server = self.pair.servers[at]
        self.last = last
        self.root = server.create(self.pair.work, mode="work")
        named: dict[str, str] = {}
        for name in ("one", "two", "three")[:count]:
            made = server.call("agent/spawn", parentId=self.root, name=name, message="wait")
            named[made["agent"]["agentId"]] = name
        for agent_id in named:
            server.wait(agent_id)
        self.board = Board(self.root, named)
        self.acting = Acting(self.pair, self.board)
        for step in early:
            self.step(step)
            self.all_say_the_same()
        for number, (after, way, actor) in enumerate(first):
            self.acting.prepare(number, after, way, actor)

    @rule(step=steps)
    def step(self, step: dict[str, Any]) -> None:
        self.steady = False
        fields = {name: value for name, value in step.items() if name != "what"}
        getattr(self.acting, step["what"])(**fields)

    # --- what holds after every step ---

    @invariant()
    def all_say_the_same(self) -> None:
        """The model, both servers, the log, and a replay of the log; of what was refused nothing is there."""
        self.count += 1
        seen_by_both = self.pair.look(self.root, list(self.board.agents))
        about, as_well = (each.pop("log") for each in seen_by_both)
        assert as_well == about
        assert [said(event) for event in about] == self.board.log
        expected = shown(self.board, self.pair.work.name, about)
        for each in seen_by_both:
            assert each == expected
        _check_replay(self.root, about, expected)
        self.steady = True

    def teardown(self) -> None:
        """Everybody goes on once more, and has then been given each message once; then one of the servers dies or
        leaves, and its successor shows the same."""
        try:
            if self.steady:
                self._end()
        finally:
            self.pair.heal()

    def _end(self) -> None:
        at, killed = self.last
        for number, each in enumerate((self.root, *self.board.open_agents())):
            self.acting.go_on("root" if each == self.root else number - 1, number % 2)
            self.all_say_the_same()
        self._check_given()
        self.acting.restarted = False
        self.acting.restart(at, killed, wiped=True)
        self.all_say_the_same()
        self._check_given()

    def _check_given(self) -> None:
        """Each message to somebody has one marker in their log, in the order of the queue, behind the text that
        their model reads (coordination 98-103). Each who has called their work complete did so in their log."""
        queued = [
            event["data"]["messageId"]
            for event in self.pair.servers[0].events(self.root)
            if event["type"] == "group_message_queued"
        ]
        for each, numbers in self.board.read.items():
            log = self.pair.servers[1].events(each)
            marked = [(n, e) for n, e in enumerate(log) if e["type"] == "group_message_delivered"]
            assert [e["data"]["messageId"] for _, e in marked] == [queued[n] for n in numbers]
            given = [
                n for n, e in enumerate(log)
                if e["type"] == "directive" and e["data"]["text"].startswith("<group-message")
            ]  # fmt: skip
            assert given == [n - 1 for n, _ in marked]
            for place, number in zip(given, numbers, strict=True):
                text = escape(self.board.messages[number]["text"], quote=False)
                assert f"\n{text}\n</group-message>" in log[place]["data"]["text"]
            complete = sum(e["type"] == "completion_changed" for e in log)
            assert complete == self.acting.declared[each], each


def _check_replay(root: str, about: Events, expected: dict[str, Any]) -> None:
    """The reducer makes of the log what the servers show (coordination 86, 87)."""
    state = replay(
        ((structure(e["data"], EVENT_TYPES[e["type"]]), e["at"]) for e in about), SessionId(root)
    )
    if state is None:
        assert expected["group"] is None
        return
    group = expected["group"]
    assert (state.group_id, state.created_at) == (group["groupId"], group["createdAt"])
    assert [root, *state.members] == [member["agentId"] for member in group["members"]]
    tasks = [unstructure(seen(task, state.tasks)) for task in state.in_order()]
    assert tasks == expected["tasks"]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Hosts]:
    running = Hosts(tmp_path)
    yield running
    running.end()


@pytest.mark.parametrize(
    ("examples", "steps"),
    [
        pytest.param(4, 90, id="few", marks=pytest.mark.timeout(600)),
        pytest.param(60, 100, id="many", marks=[pytest.mark.soak, pytest.mark.timeout(7_200)]),
    ],
)
def test_coordination_81_106_two_hosts_make_of_a_board_what_its_model_says(
    pair: Hosts, examples: int, steps: int
) -> None:
    wanted = settings(
        max_examples=examples,
        stateful_step_count=steps,
        derandomize=True,
        deadline=None,
        database=None,
        phases=(Phase.explicit, Phase.generate),  # what has failed is told as it was
        report_multiple_bugs=False,
    )
    run_state_machine_as_test(lambda: TwoHosts(pair), settings=wanted)
