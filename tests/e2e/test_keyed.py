"""A key makes a request that changes something once, in real processes: after kill -9, and in two at once."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from callboard.log.lockfile import TurnLock
from callboard_rpc.methods import METHODS
from harness.process import Gone, RpcError, ServerProcess, scenario

DYING = (str(Path(__file__).with_name("dying_server.py")), "serve")
SCENE = """
rules:
  - when: {system: {contains: "You write the summary"}}
    answer: [{say: "A summary."}]
  - when: {last_tool: {name: run_command}}
    answer: [{say: "Ran it."}]
  - when: {last_user: {contains: run}}
    answer: [{call: {tool: run_command, arguments: {command: "echo x >> ran.txt"}}}]
  - when: {last_tool: {name: message}}
    answer: [{say: "It is said."}]
  - when: {last_user: {contains: ask the parent}}
    answer: [{call: {tool: message, arguments: {to: parent, text: "May I?"}}}]
  - when: {last_user: {contains: hang}}
    answer: [{say: "Working"}, {hang: true}]
default: [{say: "Heard."}]
"""
KEYED = sorted(m.name for m in METHODS.values() if m.mutates)
SAY = [{"type": "text", "text": "hello"}]
ENVIRON = {"CALLBOARD_FEATURES": "agents.messaging,peers", "CALLBOARD_LIMITS_MODEL_CALLS": "64"}
"""Agents ask, and many of the turns here hold a call of the model for ever."""


class Stage:
    """A session for each method, in the state in which the method changes something."""

    def __init__(self, server: ServerProcess, work: Path) -> None:
        self.server = server
        self.work = work

    def session(self, *said: str, **more: Any) -> str:
        session_id = self.server.create(self.work, mode="work", **more)
        for text in said:
            self.server.prompt(session_id, text)
            self.server.wait(session_id)
        return session_id

    def hanging(self) -> str:
        session_id = self.server.create(self.work, mode="work")
        self.server.prompt(session_id, "hang")
        return session_id

    def queued(self) -> dict[str, Any]:
        """A prompt that waits behind a turn."""
        session_id = self.hanging()
        return {
            "sessionId": session_id, "eventSeq": self.server.prompt(session_id, "next")["eventSeq"]
        }  # fmt: skip

    def turn(self) -> dict[str, Any]:
        """A turn that has ended."""
        session_id = self.session("one")
        (turn,) = self.server.call("session/turns", sessionId=session_id)["data"]
        return {"sessionId": session_id, "beforeTurnId": turn["turnId"]}

    def exported(self) -> str:
        session_id = self.session("one", title="exported")
        return self.server.call("session/export", sessionId=session_id)["text"]

    def asked(self) -> tuple[str, str]:
        session_id = self.server.create(self.work, mode="work")
        self.server.prompt(session_id, "run")
        waited = self.server.wait(session_id, "attention")
        return session_id, waited["approvals"][0]["approvalId"]

    def rule(self) -> dict[str, Any]:
        added = self.server.call(
            "approval/ruleAdd", scope="workspace", effect="deny", tool="run_command",
            pattern="never *", workspace=str(self.work),
        )  # fmt: skip
        return added["rule"]

    def agent(self, message: str = "one") -> str:
        """An agent of a root of its own; unless it hangs or asks, it has ended its first turn."""
        root = self.server.create(self.work, mode="work")
        made = self.server.call("agent/spawn", parentId=root, name="one", message=message)
        if message == "one":
            self.server.wait(made["agent"]["agentId"])
        return made["agent"]["agentId"]

    def question(self) -> str:
        agent_id = self.agent("ask the parent")
        root = self.server.call("session/get", sessionId=agent_id)["session"]["rootId"]
        return self.server.call("agent/wait", parentId=root)["questions"][0]["askId"]

    def task(self, *verbs: str) -> dict[str, Any]:
        """A task of a group of its own, after these were done to it."""
        root = self.session()
        made = self.server.call("group/taskCreate", rootId=root, title="one")
        task = {"rootId": root, "taskId": made["task"]["taskId"]}
        for verb in verbs:
            self.server.call(f"group/task{verb}", **task)
        return task

    def given(self) -> dict[str, Any]:
        """A task that is given to its root."""
        task = self.task()
        return {**task, "agentId": task["rootId"]}

    def yearly(self) -> dict[str, Any]:
        """A schedule that is not due for long."""
        return {
            "profile": "default", "trigger": {"cron": "0 0 29 2 *"}, "prompt": "one",
            "target": {"sessionId": self.session()},
        }  # fmt: skip

    def schedule(self) -> dict[str, Any]:
        made = self.server.call("schedule/create", **self.yearly())
        return {"scheduleId": made["schedule"]["scheduleId"]}

    def invitation(self) -> str:
        return self.server.call("peer/invite", sessionId=self.session())["token"]

    def linked(self) -> tuple[str, str]:
        one, two = self.session(), self.session()
        token = self.server.call("peer/invite", sessionId=one)["token"]
        self.server.call("peer/accept", sessionId=two, token=token)
        return one, two

    def requests(self) -> dict[str, dict[str, Any]]:
        """Params that change something, by method."""
        gone = self.session()
        self.server.call("session/archive", sessionId=gone)
        _, approval = self.asked()
        one, two = self.linked()
        left, right = self.linked()
        return {
            "session/create": {"cwd": str(self.work), "title": "made once"},
            "session/prompt": {"sessionId": self.session(), "content": SAY},
            "session/cancel": {"sessionId": self.hanging()},
            "session/update": {"sessionId": self.session(), "title": "new"},
            "session/archive": {"sessionId": self.session()},
            "session/unarchive": {"sessionId": gone},
            "session/close": {"sessionId": self.session()},
            "session/delete": {"sessionId": self.session()},
            "session/compact": {"sessionId": self.session("one", "two")},
            "session/import": {"content": self.exported(), "newId": True},
            "session/fork": {"sessionId": self.session("one"), "title": "forked once"},
            "session/rewind": self.turn(),
            "session/queueUpdate": {**self.queued(), "content": SAY},
            "session/queueRemove": self.queued(),
            "approval/answer": {"approvalId": approval, "optionId": "reject_once"},
            "approval/ruleAdd": {
                "scope": "workspace", "effect": "deny", "tool": "run_command",
                "pattern": "rm *", "workspace": str(self.work),
            },
            "approval/ruleRemove": {"ruleId": self.rule()["ruleId"]},
            "agent/spawn": {"parentId": self.session(), "name": "once", "message": "one"},
            "agent/send": {"agentId": self.agent(), "text": "by the way"},
            "agent/continue": {"agentId": self.agent(), "text": "go on"},
            "agent/interrupt": {"agentId": self.agent("hang"), "kind": "abort"},
            "agent/close": {"agentId": self.agent()},
            "agent/reply": {"askId": self.question(), "text": "Yes."},
            "session/memberAdd": {"sessionId": self.session(), "name": "default", "host": True},
            "session/memberRemove": {
                "sessionId": self.session(members=["default"]), "name": "default"
            },
            "group/taskCreate": {"rootId": self.session(), "title": "to do once"},
            "group/taskClaim": self.task(),
            "group/taskStart": self.task("Claim"),
            "group/taskComplete": {**self.task("Claim"), "summary": "did it"},
            "group/taskBlock": {**self.task("Claim"), "reason": "no key"},
            "group/taskRelease": self.task("Claim"),
            "group/taskCancel": self.task(),
            "group/taskReassign": self.given(),
            "group/messageSend": {"rootId": self.session(), "to": "group", "text": "hello"},
            "peer/accept": {"sessionId": self.session(), "token": self.invitation()},
            "peer/send": {"sessionId": one, "to": two, "text": "hello"},
            "peer/leave": {"sessionId": left, "peerId": right},
            "schedule/create": self.yearly(),
            "schedule/update": {**self.schedule(), "prompt": "look twice"},
            "schedule/delete": self.schedule(),
            "schedule/runNow": self.schedule(),
        }  # fmt: skip


OTHER: dict[str, dict[str, Any]] = {
    "session/create": {"title": "another"},
    "session/prompt": {"content": [{"type": "text", "text": "bye"}]},
    "session/cancel": {"reason": "another"},
    "session/update": {"title": "another"},
    "session/import": {"newId": False},
    "session/rewind": {"beforeTurnId": "trn_other"},
    "session/queueUpdate": {"eventSeq": 1_000},
    "session/queueRemove": {"eventSeq": 1_000},
    "approval/answer": {"optionId": "allow_once"},
    "approval/ruleAdd": {"pattern": "mv *"},
    "approval/ruleRemove": {"ruleId": "rule_other"},
    "agent/spawn": {"name": "another"},
    "agent/send": {"text": "another"},
    "agent/continue": {"text": "another"},
    "agent/interrupt": {"reason": "another"},
    "agent/close": {"agentId": "ses_other"},
    "agent/reply": {"text": "another"},
    "session/memberAdd": {"host": False},
    "session/memberRemove": {"name": "other"},
    "group/taskCreate": {"title": "another"},
    "group/taskClaim": {"taskId": "tsk_other"},
    "group/taskStart": {"taskId": "tsk_other"},
    "group/taskComplete": {"summary": "another"},
    "group/taskBlock": {"reason": "another"},
    "group/taskRelease": {"taskId": "tsk_other"},
    "group/taskCancel": {"reason": "another"},
    "group/taskReassign": {"taskId": "tsk_other"},
    "group/messageSend": {"text": "another"},
    "peer/accept": {"token": "another"},
    "peer/send": {"text": "another"},
    "peer/leave": {"peerId": "ses_other"},
    "schedule/create": {"prompt": "another"},
    "schedule/update": {"prompt": "another"},
    "schedule/delete": {"scheduleId": "sched_other"},
    "schedule/runNow": {"scheduleId": "sched_other"},
}
"""What another request with the same key asks for; another session, where nothing is named."""


ON_TASKS = {
    "group/taskClaim": ("group_task_claimed", "claimed"),
    "group/taskStart": ("group_task_status_changed", "in_progress"),
    "group/taskComplete": ("group_task_status_changed", "completed"),
    "group/taskBlock": ("group_task_status_changed", "blocked"),
    "group/taskRelease": ("group_task_released", "pending"),
    "group/taskCancel": ("group_task_status_changed", "cancelled"),
    "group/taskReassign": ("group_task_status_changed", "claimed"),
}
"""The one event by which each changes its task, and how the task stands then."""


def keyed_server(folder: Path, model: str) -> ServerProcess:
    return ServerProcess(folder, model=model, client_id="c", approvals=False, environ=ENVIRON)


def other(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {**params, **OTHER.get(method, {"sessionId": "ses_other"})}


def keyed(server: ServerProcess, method: str, params: dict[str, Any]) -> int:
    return server.request(method, **params, idempotencyKey="once")


def history(server: ServerProcess) -> list[dict[str, Any]]:
    """All that is in the store."""
    events: list[dict[str, Any]] = []
    after: dict[str, Any] = {}
    while True:
        page = server.call("event/list", scope={"kind": "all"}, limit=500, **after)
        events += page["data"]
        if not page.get("nextCursor"):
            return events
        after = {"after": page["nextCursor"]}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[ServerProcess, ServerProcess]]:
    """Two servers on one store, each with the same client, as an editor that was opened twice."""
    with ExitStack() as stack:
        model = scenario(tmp_path, SCENE)
        yield tuple(stack.enter_context(keyed_server(tmp_path, model)) for _ in range(2))  # pyright: ignore


def test_every_method_that_changes_something_is_done_once_though_its_server_is_killed_before_it_answers(
    tmp_path: Path, work: Path
) -> None:
    model = scenario(tmp_path, SCENE)
    with ServerProcess(
        tmp_path, model=model, client_id="c", approvals=False, program=DYING,
        environ={**ENVIRON, "DYING_AFTER": str(len(KEYED))},
    ) as dying:  # fmt: skip
        requests = Stage(dying, work).requests()
        assert sorted(requests) == KEYED, "each method has its request here"
        for method, params in requests.items():
            keyed(dying, method, params)
        with pytest.raises(Gone):
            while True:
                assert "error" not in dying.receive()
    assert dying.process.returncode == -9

    with keyed_server(tmp_path, model) as server:
        cancelled = requests["session/cancel"]["sessionId"]
        server.wait(cancelled)
        before = history(server)
        told = {m: server.result(keyed(server, m, p)) for m, p in requests.items()}
        again = {m: server.result(keyed(server, m, p)) for m, p in requests.items()}
        assert json.dumps(told) == json.dumps(again)
        for method, params in requests.items():
            with pytest.raises(RpcError) as conflict:
                server.result(keyed(server, method, other(method, params)))
            assert conflict.value.kind == "idempotencyConflict", method
        server.wait(requests["session/prompt"]["sessionId"])
        answered = server.call("approval/get", approvalId=requests["approval/answer"]["approvalId"])
        server.wait(answered["approval"]["sessionId"])
        after = history(server)
        rules = server.call("approval/ruleList")["data"]
        schedules = server.call("schedule/list")["data"]

    def events_of(method: str, kind: str) -> list[dict[str, Any]]:
        params = requests[method]
        family = method.partition("/")[0]
        session_id = params[{"agent": "agentId", "group": "rootId"}.get(family, "sessionId")]
        return [e for e in after if e["sessionId"] == session_id and e["type"] == kind]

    # a turn that was asked for takes in what was said to it when it begins, and says by whom it was said
    asked_now = [
        e["type"]
        for e in after[len(before) :]
        if e["actor"]["kind"] == "client" and "delivered" not in e["data"]
    ]
    assert asked_now == [], "nothing was done a second time"

    (made,) = [
        e["sessionId"] for e in after
        if e["type"] == "session_created" and e["data"].get("title") == "made once"
    ]  # fmt: skip
    assert told["session/create"]["session"]["sessionId"] == made
    (said,) = events_of("session/prompt", "message")[:1]
    assert told["session/prompt"]["eventSeq"] == said["seq"]
    assert len([e for e in events_of("session/prompt", "message") if "turnId" not in e]) == 1
    (stop,) = events_of("session/cancel", "cancel_requested")
    assert told["session/cancel"] == {
        "state": "cancelling", "turnId": stop["turnId"], "dropped": [],
    }  # fmt: skip
    assert told["session/update"]["session"]["title"] == "new"
    assert len(events_of("session/update", "session_updated")) == 1
    assert told["session/archive"]["session"]["archived"] is True
    assert told["session/unarchive"]["session"]["archived"] is False
    assert told["session/close"]["session"]["status"] == "closed"
    assert len(events_of("session/close", "session_closed")) == 1
    assert [
        e["type"] for e in after if e["sessionId"] == requests["session/delete"]["sessionId"]
    ] == ["session_deleted"]
    (summary,) = events_of("session/compact", "summary")
    assert told["session/compact"]["compacted"] is True
    assert told["session/compact"]["summarySeq"] == summary["seq"]
    (forked,) = [
        e["sessionId"] for e in after
        if e["type"] == "session_created" and e["data"].get("title") == "forked once"
    ]  # fmt: skip
    assert told["session/fork"]["session"]["sessionId"] == forked
    imported = {
        e["sessionId"] for e in after
        if e["type"] == "session_created" and e["data"].get("title") == "exported"
    }  # fmt: skip
    assert len(imported) == 2  # the exported one, and one made of it
    assert told["session/import"]["session"]["sessionId"] in imported
    (back,) = events_of("session/rewind", "session_rewound")
    assert told["session/rewind"]["eventSeq"] == back["seq"]
    (changed,) = events_of("session/queueUpdate", "prompt_updated")
    assert told["session/queueUpdate"]["eventSeq"] == changed["seq"]
    (removed,) = events_of("session/queueRemove", "triggers_dropped")
    assert told["session/queueRemove"]["eventSeq"] == removed["seq"]
    (added,) = events_of("session/memberAdd", "member_added")
    assert told["session/memberAdd"]["room"]["host"] == added["data"]["name"] == "default"
    assert len(events_of("session/memberRemove", "member_removed")) == 1
    assert told["session/memberRemove"]["room"]["members"] == []
    assert told["approval/answer"] == answered
    assert answered["approval"]["resolution"]["outcome"] == "rejected"
    (child,) = [
        e["sessionId"] for e in after
        if e["type"] == "agent_spawned" and e["data"]["name"] == "once"
    ]  # fmt: skip
    assert told["agent/spawn"]["agent"]["agentId"] == child
    for method in ("agent/send", "agent/continue"):
        (queued,) = events_of(method, "agent_message_queued")
        assert told[method]["messageId"] == queued["data"]["messageId"]
    turns = {e["turnId"] for e in events_of("agent/continue", "turn_started")}
    assert told["agent/continue"]["turnId"] in turns
    assert "turnId" not in told["agent/send"]
    assert len(events_of("agent/interrupt", "agent_interrupt_requested")) == 1
    assert told["agent/interrupt"]["outcome"] == "aborted"
    assert len(events_of("agent/close", "agent_closed")) == 1
    assert told["agent/close"]["agent"]["status"] == "closed"
    (replied,) = [e for e in after if e["type"] == "agent_replied" and e["data"].get("text")]
    assert told["agent/reply"]["agentId"] == replied["sessionId"]
    assert told["agent/reply"]["askId"] == replied["data"]["askId"]
    (task,) = events_of("group/taskCreate", "group_task_created")
    assert told["group/taskCreate"]["task"]["taskId"] == task["data"]["taskId"]
    for method, (kind, status) in ON_TASKS.items():
        assert len(events_of(method, kind)) == 1, method
        assert told[method]["task"]["status"] == status, method
    made_by = told["schedule/create"]["schedule"]
    assert [s for s in schedules if s["target"] == made_by["target"]] == [made_by]
    assert told["schedule/update"]["schedule"] in schedules
    assert told["schedule/update"]["schedule"]["prompt"] == "look twice"
    assert told["schedule/delete"]["deleted"] is True
    (fired,) = [e for e in after if e["type"] == "schedule_fired"]
    assert told["schedule/runNow"]["fire"]["fireId"] == fired["data"]["fireId"]
    (queued,) = events_of("group/messageSend", "group_message_queued")
    assert told["group/messageSend"]["messageId"] == queued["data"]["messageId"]
    (linked,) = events_of("peer/accept", "peer_linked")
    assert told["peer/accept"]["peer"]["sessionId"] == linked["data"]["peerId"]
    (sent,) = events_of("peer/send", "peer_message_sent")
    assert told["peer/send"]["messageId"] == sent["data"]["messageId"]
    assert (told["peer/send"]["repeated"], told["peer/send"]["left"]) == (False, 49)
    assert len(events_of("peer/leave", "peer_unlinked")) == 1
    assert told["peer/leave"]["left"] is True
    assert told["approval/ruleAdd"]["rule"] in rules
    assert (
        told["approval/ruleRemove"]["rule"]["ruleId"] == requests["approval/ruleRemove"]["ruleId"]
    )
    assert len(rules) == 1
    assert not (work / "ran.txt").exists()


def test_an_answer_that_was_told_is_told_again_by_the_next_server_whatever_has_become_of_it(
    tmp_path: Path, work: Path
) -> None:
    model = scenario(tmp_path, SCENE)
    with keyed_server(tmp_path, model) as first:
        requests = Stage(first, work).requests()
        told = {m: first.result(keyed(first, m, p)) for m, p in requests.items()}
        first.kill()
    with keyed_server(tmp_path, model) as next_:
        next_.call("session/update", sessionId=requests["session/update"]["sessionId"], title="x")
        next_.call("session/delete", sessionId=requests["session/archive"]["sessionId"])
        assert {m: next_.result(keyed(next_, m, p)) for m, p in requests.items()} == told


def test_of_two_processes_with_one_key_at_once_one_does_it_and_both_tell_the_same(
    two: tuple[ServerProcess, ServerProcess], work: Path, tmp_path: Path
) -> None:
    stage = Stage(two[0], work)
    rounds = [stage.requests() for _ in range(3)]
    asked: list[tuple[str, list[int]]] = []
    lock = TurnLock(tmp_path / "store.db.locks")
    with lock.held():  # nobody can write before both have seen that nobody has written
        for number, requests in enumerate(rounds):
            for method, params in requests.items():
                more = {"idempotencyKey": f"once {number}"}
                asked.append((method, [s.request(method, **params, **more) for s in two]))
        for server in two:
            server.call("server/ping")
    lock.close()
    for method, ids in asked:
        answers = []
        for server, request_id in zip(two, ids, strict=True):
            answer = next(
                (m for m in server.seen if m.get("id") == request_id and "method" not in m), None
            ) or server.until(lambda m, i=request_id: m.get("id") == i and "method" not in m)
            answers.append(answer.get("result"))
        # one at a time changes a history; the other is told so
        if method in ("session/compact", "session/rewind"):
            answers = [a for a in answers if a is not None] * 2
        assert answers[0] is not None and answers[0] == answers[1], method
    for requests in rounds:
        for method in ("session/prompt", "session/cancel", "session/compact", "session/rewind"):
            two[0].wait(requests[method]["sessionId"])
    done = Counter(
        (e["sessionId"], e["type"]) for e in history(two[0]) if e["actor"]["kind"] == "client"
    )
    once = {
        "session/prompt": "message", "session/update": "session_updated",
        "session/archive": "session_archived", "session/unarchive": "session_unarchived",
        "session/close": "session_closed", "session/delete": "session_deleted",
        "session/cancel": "cancel_requested", "session/compact": "summary",
        "session/rewind": "session_rewound", "session/queueUpdate": "prompt_updated",
        "session/queueRemove": "triggers_dropped",
    }  # fmt: skip
    for requests in rounds:
        for method, kind in once.items():
            assert done[requests[method]["sessionId"], kind] == 1, method
    made = [e for e in history(two[0]) if e["data"].get("title") == "made once"]
    assert len(made) == len(rounds)
    imported = [e for e in history(two[0]) if e["data"].get("title") == "exported"]
    assert len(imported) == 2 * len(rounds)
    forked = [e for e in history(two[0]) if e["type"] == "session_forked"]
    assert len(forked) == len(rounds)
    agents = {
        "agent/send": "agent_message_queued", "agent/continue": "agent_message_queued",
        "agent/interrupt": "agent_interrupt_requested", "agent/close": "agent_close_requested",
    }  # fmt: skip
    for requests in rounds:
        for method, kind in agents.items():
            assert done[requests[method]["agentId"], kind] == 1, method
    groups = {
        "group/taskCreate": "group_task_created", "group/messageSend": "group_message_queued",
        **{method: kind for method, (kind, _) in ON_TASKS.items()},
    }  # fmt: skip
    for requests in rounds:
        for method, kind in groups.items():
            assert done[requests[method]["rootId"], kind] == 1, method
    born = [e for e in history(two[0]) if e["data"].get("name") == "once"]
    assert len([e for e in born if e["type"] == "agent_spawned"]) == len(rounds)
    replies = [e for e in history(two[0]) if e["type"] == "agent_replied"]
    assert [e["data"]["outcome"] for e in replies] == ["replied"] * len(rounds)
    assert len(two[0].call("approval/ruleList")["data"]) == len(rounds)
