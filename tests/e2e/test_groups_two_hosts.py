"""Whatever root and agents do at a board, in whatever order and by whichever of two servers: it becomes what a model of
it says, at both of them, in the log, and when the tables were made anew (coordination 81-106)."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Any

import pytest
from board_hosts import Hosts, Outcome, Wanted
from board_model import BECOMES, Board, Refused, Task, no_group_yet
from board_steps import LONG, first, hosts, steps
from board_views import Events, not_stamped, said, shown
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

CODES = {
    "invalidParams": "invalid_argument",
    "invalidGraph": "invalid_argument",
    "rootOnly": "root_only",
    "taskNotFound": "unknown_task",
    "taskNotClaimable": "not_claimable",
    "taskNotReady": "task_not_ready",
    "notOwner": "not_owner",
    "transitionNotAllowed": "transition_not_allowed",
    "notAMember": "not_a_member",
    "agentClosed": "agent_closed",
    "messageTooLong": "message_too_long",
    "noGroup": "no_group",
}
"""What a model is told in place of an error's kind (coordination 9)."""
Number = str | tuple[str, int]
MOST_TASKS = 9
UNKNOWN_TASK, UNKNOWN_AGENT = "tsk_unknown", "ses_unknown"


class TwoHosts(RuleBasedStateMachine):
    """A new root with two or three agents at rest. It has one rule, of which `steps` says how often it does what: of
    several rules an example would leave out about half."""

    def __init__(self, pair: Hosts) -> None:
        super().__init__()
        self.pair = pair
        self.steady = False
        """Whether the last step ended as it was to."""
        self.count = 0
        self.restarted = False
        self.declared: dict[str, int] = {}
        """How often each has called their work complete."""

    @initialize(
        at=hosts,
        count=st.integers(2, 3),
        first=first,
        last=st.tuples(hosts, st.booleans()),
    )
    def begin(self, at: int, count: int, first: list[Any], last: tuple[int, bool]) -> None:
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
        self.declared = dict.fromkeys((self.root, *named), 0)
        for number, after in enumerate(first):
            self.create("root", at, f"first {number}", after, number != 1, ["a.txt"])

    @rule(step=steps)
    def step(self, step: dict[str, Any]) -> None:
        fields = {name: value for name, value in step.items() if name != "what"}
        getattr(self, step["what"])(**fields)

    # --- whom and what a step means ---

    def someone(self, actor: str | int, task_id: str | None = None) -> str:
        if actor == "owner":
            owner = self.board.tasks.get(task_id or "", {}).get("assignee")
            return owner if owner in self.board.open_agents() else self.root
        if actor == "root":
            return self.root
        able = self.board.open_agents()
        return able[int(actor) % len(able)]

    def anyone(self, agent: str | tuple[str, int]) -> str:
        if isinstance(agent, str):
            return {"root": self.root, "unknown": UNKNOWN_AGENT}[agent]
        which, place = agent
        among = (which == "member" and self.board.members) or list(self.board.agents)
        return among[place % len(among)]

    def task(self, number: Number, operation: str) -> str:
        if isinstance(number, str) or not self.board.tasks:
            return self.pair.foreign if number == "foreign" else UNKNOWN_TASK
        which, place = number
        known = list(self.board.tasks)
        fit = [each for each in known if self.board.tasks[each]["status"] in BECOMES[operation]]
        if operation == "claim":
            fit = [each for each in fit if self.board.seen(self.board.tasks[each])["ready"]]
        among = fit if which == "fit" and fit else known
        return among[place % len(among)]

    def dependency(self, number: str | int) -> str:
        known = list(self.board.tasks)
        return known[number % len(known)] if isinstance(number, int) else UNKNOWN_TASK

    # --- doing it, and what it was to be ---

    def start(
        self, actor: str, at: int, method: str, params: dict[str, Any], tool: str, **arguments: Any
    ) -> Wanted:
        """By the door of whoever does it: the root on the wire, an agent by its model's tool."""
        self.steady = False
        if actor == self.root:
            return self.pair.ask(at, actor, f"group/{method}", rootId=self.root, **params)
        self.board.turn(actor)
        return self.pair.call_tool(at, actor, tool, arguments)

    def judge(self, outcome: Outcome, operation: str, decide: Callable[[], Any]) -> Any:
        """What the model says of it, if that is what happened; None for what is refused."""
        try:
            if outcome.by_tool and not self.board.exists and no_group_yet(operation):
                raise Refused("noGroup")
            decided = decide()
        except Refused as refused:
            said = f"{operation} was to be refused with {refused}, and: {outcome}"
            if outcome.by_tool:
                assert outcome.refusal == CODES[refused.kind], said
            else:
                assert outcome.refusal == refused.kind, said
                assert outcome.data is not None
                wanted = dict(refused.data)
                if field := wanted.pop("field", None):
                    faults = [each["path"] for each in outcome.data["errors"]]
                    assert faults == [f"$.{field}"], said
                assert {name: outcome.data.get(name) for name in wanted} == wanted, said
            return None
        assert outcome.refusal is None, f"{operation} was refused: {outcome}"
        return decided

    def judge_task(self, outcome: Outcome, operation: str, decide: Callable[[], Task]) -> None:
        task = self.judge(outcome, operation, decide)
        if task is None:
            return
        if outcome.by_tool:
            line = f"{task['status']} [{task['taskId']}] {task['title']}"
            assert outcome.answer.startswith(line), outcome
        else:
            assert not_stamped(outcome.answer["task"]) == self.board.seen(task), outcome

    # --- steps ---

    def create(
        self,
        actor: str | int,
        at: int,
        title: str,
        after: list[Any],
        required: bool,
        expected: list[str],
    ) -> None:
        who, title, board = self.someone(actor), LONG.get(title, title), self.board
        if len(board.tasks) == MOST_TASKS:
            return
        dependencies = [self.dependency(each) for each in after] if board.tasks else []
        params = {
            "title": title, "dependencies": dependencies, "required": required, "expectedPaths": expected,
        }  # fmt: skip
        outcome = self.start(
            who, at, "taskCreate", params, "group_task", op="create", title=title,
            dependencies=dependencies, required=required, expected_paths=expected,
        )()  # fmt: skip
        task = self.judge(
            outcome, "create",
            lambda: board.create(who, title, dependencies, required=required, paths=expected),
        )  # fmt: skip
        if task is not None:
            told = outcome.answer["task"]
            board.created(told["taskId"], task)
            assert not_stamped(told) == board.seen(board.tasks[told["taskId"]])

    def claim(self, actor: str | int, at: int, number: Number) -> None:
        task_id = self.task(number, "claim")
        who = self.someone(actor, task_id)
        outcome = self._claims(who, at, task_id)()
        self.judge_task(outcome, "claim", lambda: self.board.claim(who, task_id))

    def claim_at_once(self, one: int, other: int, number: Number) -> None:
        """Two of them, by a server each: who gets it is theirs to decide, and that it is one of them."""
        task_id = self.task(number, "claim")
        able = [self.root, *self.board.open_agents()]
        first = one % len(able)
        second = (first + 1 + other % (len(able) - 1)) % len(able)
        started = [self._claims(able[n], at, task_id) for at, n in enumerate((first, second))]
        outcomes = sorted((wait() for wait in started), key=lambda o: o.refusal is not None)
        for each in outcomes:
            self.judge_task(each, "claim", lambda who=each.actor: self.board.claim(who, task_id))

    def _claims(self, who: str, at: int, task_id: str) -> Wanted:
        params = {"taskId": task_id}
        return self.start(who, at, "taskClaim", params, "group_task", op="claim", task_id=task_id)

    def change(
        self, actor: str | int, at: int, operation: str, number: Number, text: str,
        found: list[str], touched: list[str],
    ) -> None:  # fmt: skip
        task_id = self.task(number, operation)
        params: dict[str, Any] = {
            "complete": {"summary": text, "findings": found, "touchedFiles": touched},
            "block": {"reason": text},
        }.get(operation, {})
        ignored = {"reason": text} if operation in ("start", "release") else {}
        self._change(self.someone(actor, task_id), at, operation, task_id, params, ignored)

    def cancel(self, actor: str | int, at: int, number: Number, reason: str | None) -> None:
        params = {} if reason is None else {"reason": reason}
        task_id = self.task(number, "cancel")
        self._change(self.someone(actor), at, "cancel", task_id, params, {})

    def _change(
        self,
        who: str,
        at: int,
        operation: str,
        task_id: str,
        said: dict[str, Any],
        ignored: dict[str, Any],
    ) -> None:
        method = f"task{operation.capitalize()}"
        arguments = {"touched_files" if k == "touchedFiles" else k: v for k, v in said.items()}
        outcome = self.start(
            who, at, method, {"taskId": task_id, **said}, "group_task", op=operation, task_id=task_id,
            **arguments, **ignored,
        )()  # fmt: skip
        self.judge_task(
            outcome, operation, lambda: self.board.change(who, operation, task_id, said)
        )

    def reassign(self, actor: str | int, at: int, number: Number, to: Number) -> None:
        task_id = self.task(number, "reassign")
        who, agent_id = self.someone(actor), self.anyone(to)
        params = {"taskId": task_id, "agentId": agent_id}
        arguments = {"op": "claim", "task_id": task_id, "agent_id": agent_id}
        outcome = self.start(who, at, "taskReassign", params, "group_task", **arguments)()
        self.judge_task(outcome, "reassign", lambda: self.board.reassign(who, task_id, agent_id))

    def send(self, actor: str | int, at: int, to: str | tuple[Number], text: str) -> None:
        who, text = self.someone(actor), LONG.get(text, text)
        target, agent_id = (to, None) if isinstance(to, str) else ("agent", self.anyone(to[0]))
        about = {} if agent_id is None else {"agentId": agent_id}
        params = {"to": target, "text": text, **about}
        outcome = self.start(
            who, at, "messageSend", params, "group_message", op="send", to=target, text=text,
            **({} if agent_id is None else {"agent_id": agent_id}),
        )()  # fmt: skip
        recipients = self.judge(
            outcome, "send", lambda: self.board.send(who, target, agent_id, text)
        )
        if recipients is not None and not outcome.by_tool:
            assert outcome.answer["recipients"] == recipients

    def declare_complete(self, actor: str | int, at: int) -> None:
        """The gate, by the tool of whoever declares it (8.9)."""
        self.steady = False
        who = self.someone(actor)
        is_root = who == self.root
        self.board.turn(who)
        arguments = {"implementation_done": True, "summary": "All of it."}
        outcome = self.pair.call_tool(at, who, "complete", arguments, is_root=is_root)()
        still = self.board.keeps_open() if is_root else []
        if still:
            assert outcome.refusal == "not_complete", outcome
            assert f" {len(still)} required task" in outcome.answer, outcome
            named = Counter(re.findall(r"'([^']*)' \[(\w+)\]", outcome.answer))
            assert named.total() == min(6, len(still)), outcome
            assert named <= Counter((task["title"], task["status"]) for task in still), outcome
        else:
            assert outcome.refusal is None, outcome
            self.declared[who] += 1

    def go_on(self, actor: str | int, at: int) -> None:
        """A turn in which somebody reads what waits for them, and does nothing."""
        self.steady = False
        who = self.someone(actor)
        self.board.turn(who)
        self.pair.tell(at, who, "Go on.", is_root=who == self.root)()

    def stop(self, agent: int, at: int, closes: bool) -> None:
        """It keeps what it has (coordination 94)."""
        if self.count < 6 or len(self.board.open_agents()) == 1:
            return
        self.steady = False
        who, server = self.someone(agent), self.pair.servers[at]
        if closes:
            server.call("agent/close", agentId=who)
            self.board.status[who] = "closed"
        else:
            answer = server.call("agent/interrupt", agentId=who, kind="abort", reason="Enough.")
            assert answer["outcome"] == "already_finished", answer

    def restart(self, at: int, killed: bool, wiped: bool) -> None:
        """One of them goes, and comes again: it makes the tables anew, which may have been lost (coordination 86)."""
        if self.restarted:
            return
        self.steady = False
        self.restarted = True
        if killed:
            self.pair.kill(at)
        else:
            self.pair.close(at)
        if wiped:
            self.pair.wipe(self.root)
        self.pair.heal()

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
            self.go_on("root" if each == self.root else number - 1, number % 2)
            self.all_say_the_same()
        self._check_given()
        self.restarted = False
        self.restart(at, killed, wiped=True)
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
            assert complete == self.declared[each], each


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
        pytest.param(6, 50, id="few", marks=pytest.mark.timeout(600)),
        pytest.param(60, 60, id="many", marks=[pytest.mark.soak, pytest.mark.timeout(7_200)]),
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
