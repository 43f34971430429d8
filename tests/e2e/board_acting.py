"""Root and agents at a board: whom and what a step means as the board stands, how they do it, and what was to come of it."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from board_hosts import Hosts, Outcome, Wanted
from board_model import BECOMES, Board, Refused, Task, no_group_yet
from board_steps import LONG
from board_views import not_stamped

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
MOST_TASKS = 16
UNKNOWN_TASK, UNKNOWN_AGENT = "tsk_unknown", "ses_unknown"


class Acting:
    """Each method whose name is that of a step does it, has the model say what was to come of it, and fails when
    something else did."""

    def __init__(self, pair: Hosts, board: Board) -> None:
        self.pair, self.board = pair, board
        self.restarted = False
        self.declared = dict.fromkeys((board.root, *board.agents), 0)
        """How often each has called their work complete."""

    # --- whom and what a step means ---

    def someone(self, actor: str | int, task_id: str | None = None) -> str:
        if actor == "owner":
            owner = self.board.tasks.get(task_id or "", {}).get("assignee")
            return owner if owner in self.board.open_agents() else self.board.root
        if actor == "root":
            return self.board.root
        able = self.board.open_agents()
        return able[int(actor) % len(able)]

    def anyone(self, agent: str | tuple[str, int]) -> str:
        if isinstance(agent, str):
            return {"root": self.board.root, "unknown": UNKNOWN_AGENT}[agent]
        which, place = agent
        among = (which == "member" and self.board.members) or list(self.board.agents)
        return among[place % len(among)]

    def task(self, number: Number, operation: str) -> str:
        if isinstance(number, str) or not self.board.tasks:
            return self.pair.foreign if number == "foreign" else UNKNOWN_TASK
        which, place = number
        known = self.board.tasks
        fit = [each for each, task in known.items() if task["status"] in BECOMES[operation]]
        if operation == "claim" and place == 0:
            fit = [each for each in fit if self.board.seen(known[each])["ready"]]
        wanted = fit if which == "fit" else [e for e, t in known.items() if t["status"] == which]
        among = wanted or fit or list(known)
        return among[place % len(among)]

    def dependency(self, number: str | int) -> str:
        known = list(self.board.tasks)
        return known[number % len(known)] if isinstance(number, int) else UNKNOWN_TASK

    # --- doing it, and what it was to be ---

    def start(
        self, actor: str, at: int, method: str, params: dict[str, Any], tool: str, **arguments: Any
    ) -> Wanted:
        """By the door of whoever does it: the root on the wire, an agent by its model's tool."""
        if actor == self.board.root:
            return self.pair.ask(at, actor, f"group/{method}", rootId=self.board.root, **params)
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

    def prepare(
        self, number: int, after: list[Any], way: tuple[str, ...], actor: str | int
    ) -> None:
        """A task to begin with, and what is done to it, as far as it can be."""
        at, place = number % 2, ("any", len(self.board.tasks))
        expected = ("a.txt", " ./A.TXT", "src\\b.py")[number % 3]
        self.create("root", at, f"first {number}", after, number != 1, [expected])
        for operation in way:
            if operation == "claim":
                self.claim(actor, at, place)
            else:
                self.change(actor, at, operation, place, "Said.", [], ["b.txt"])

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
        able = [self.board.root, *self.board.open_agents()]
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
        who = self.someone(actor)
        is_root = who == self.board.root
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
        who = self.someone(actor)
        self.board.turn(who)
        self.pair.tell(at, who, "Go on.", is_root=who == self.board.root)()

    def stop(self, agent: int, at: int, closes: bool) -> None:
        """It keeps what it has (coordination 94)."""
        if len(self.board.open_agents()) == 1:
            return
        able = [each for each in self.board.members if each in self.board.open_agents()]
        who = able[agent % len(able)] if able else self.someone(agent)
        server = self.pair.servers[at]
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
        self.restarted = True
        if killed:
            self.pair.kill(at)
        else:
            self.pair.close(at)
        if wiped:
            self.pair.wipe(self.board.root)
        self.pair.heal()
