"""What happens while it happens: output of commands, turns that others start, and clients that read slowly."""

import json
import os
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from acp_scenes import scenes, workspace

from harness import acp
from harness.acp import ANEW, AcpProcess, Judge, allow, texts
from harness.acp_schema import Checker, OwnShapes
from harness.process import ServerProcess, scenario

COUNT = 30_000
FLOOD = f"""
rules:
  - when: {{last_user: {{contains: flood}}}}
    answer: [{{say: {{text: "0123456789abcdef\\n", repeat: {COUNT}, chunk: 400}}}}]
default: [{{say: Yes.}}]
"""
COUNTING = """
rules:
  - when: {last_user: {contains: count}, step: 0}
    answer:
      - call:
          tool: run_command
          arguments: {command: "echo first; until [ -e go ]; do sleep 0.05; done; echo second"}
default: [{say: Done.}]
"""


def test_what_a_command_prints_is_shown_while_it_runs(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    with AcpProcess(tmp_path, model=scenario(tmp_path, COUNTING), permit=allow) as agent:
        session = agent.new(folder)
        asked = agent.ask(session, "count")

        def shows_first(message: dict[str, Any]) -> bool:
            update = message.get("params", {}).get("update", {})
            content = update.get("content")
            return (
                update.get("sessionUpdate") == "tool_call_update"
                and update.get("status") == "in_progress"
                and isinstance(content, list)
                and "first" in content[0]["content"]["text"]
            )

        agent.until(shows_first)
        (folder / "go").touch()
        assert agent.result(asked) == {"stopReason": "end_turn"}
        last = [u for u in agent.updates() if u.get("status") == "completed"][-1]
        assert "first\nsecond" in last["content"][0]["content"]["text"]


def test_a_turn_that_a_schedule_starts_is_told_outside_of_a_prompt(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    with (
        AcpProcess(tmp_path, model=scenes(tmp_path)) as agent,
        ServerProcess(tmp_path, model=scenes(tmp_path), approvals=False) as other,
    ):
        session = agent.new(folder)
        assert agent.prompt(session, "hi") == "end_turn"
        schedule = other.call(
            "schedule/create",
            name="later",
            profile="default",
            prompt="water the plants",
            trigger={"cron": "0 5 * * *", "timeZone": "UTC"},
            target={"sessionId": session},
        )["schedule"]
        seen = len(agent.seen)
        other.call("schedule/runNow", scheduleId=schedule["scheduleId"])
        agent.until_update("agent_message_chunk")
        assert "water the plants" in texts(agent.updates(since=seen))


def test_a_turn_of_others_that_fails_is_told_as_a_notice(tmp_path: Path) -> None:
    model = scenes(tmp_path)
    with AcpProcess(tmp_path, model=model) as one, AcpProcess(tmp_path, model=model) as two:
        session = one.new(workspace(tmp_path))
        two.call("session/resume", sessionId=session, cwd=str(tmp_path / "work"), mcpServers=[])
        broken = one.answer_to(one.ask(session, "break"))
        assert "on fire" in broken["error"]["message"]
        notice = two.until_update("notice", severity="error")
        assert "on fire" in notice["description"]
        assert not [u for u in one.updates() if u["sessionUpdate"] == "notice"], "it has the answer"


def ask(server: ServerProcess, session: str, said: str) -> int:
    """Prompts, and returns where that stands in the session."""
    content = [{"type": "text", "text": said}]
    return server.call("session/prompt", sessionId=session, content=content)["eventSeq"]


def reword(server: ServerProcess, session: str, seq: int, said: str) -> None:
    content = [{"type": "text", "text": said}]
    server.call("session/queueUpdate", sessionId=session, eventSeq=seq, content=content)


def test_a_prompt_that_waited_before_a_resume_is_told_when_a_turn_takes_it_in(
    tmp_path: Path,
) -> None:
    folder, model = workspace(tmp_path), scenes(tmp_path)
    with (
        ServerProcess(tmp_path, model=model, approvals=False) as other,
        AcpProcess(tmp_path, model=model) as agent,
    ):
        session = other.call("session/create", cwd=str(folder))["session"]["sessionId"]
        ask(other, session, "stall")
        first, second = ask(other, session, "one"), ask(other, session, "two")
        reword(other, session, first, "eins")
        agent.call("session/resume", sessionId=session, cwd=str(folder), mcpServers=[])
        reword(other, session, second, "zwei")
        other.call("session/cancel", sessionId=session)
        while not texts(agent.updates()).endswith("zwei"):
            agent.until_update("agent_message_chunk")
        assert texts(agent.updates(), "user_message_chunk") == "einszwei"


class Unread(AcpProcess):
    """Nobody reads what it sends until `go_on`."""

    def _read(self) -> None:
        self.reading = threading.Event()
        self.reading.set()
        descriptor = self.process.stdout.fileno()
        rest = b""
        while True:
            self.reading.wait()
            data = os.read(descriptor, 1 << 16)
            if not data:
                break
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                try:
                    message = self._judge.received(line + b"\n")
                except BaseException as fault:
                    self.faults.append(fault)
                    message = json.loads(line)
                self._inbox.put(message)
        self._inbox.put(None)


def test_a_client_that_reads_slowly_loses_nothing(tmp_path: Path) -> None:
    """Half a megabyte streams while nobody reads; another client sees the turn end meanwhile."""
    folder = workspace(tmp_path)
    model = scenario(tmp_path, FLOOD)
    with (
        Unread(tmp_path, model=model, program=ANEW) as agent,
        ServerProcess(tmp_path, approvals=False) as other,
    ):
        session = agent.new(folder)
        agent.until_update("available_commands_update")
        agent.reading.clear()
        asked = agent.ask(session, "flood")
        scope = {"kind": "session", "id": session}
        other.call("event/subscribe", scope=scope, **{"from": "start"})
        other.told(lambda event: event["type"] == "turn_finished")
        agent.reading.set()
        assert agent.result(asked) == {"stopReason": "end_turn"}
        assert texts(agent.updates()) == "0123456789abcdef\n" * COUNT


def test_a_client_that_cancels_without_reading_is_heard(tmp_path: Path) -> None:
    folder = workspace(tmp_path)
    with Unread(tmp_path, model=scenes(tmp_path), program=ANEW) as agent:
        session = agent.new(folder)
        agent.until_update("available_commands_update")
        agent.reading.clear()
        asked = agent.ask(session, "stall")
        agent.notify("session/cancel", sessionId=session)
        agent.reading.set()
        assert agent.result(asked) == {"stopReason": "cancelled"}


def fill(server: ServerProcess, session: str) -> None:
    """Makes a session longer than what may wait for a client: in a frame each of these characters is six bytes."""
    server.prompt(session, "forbidden " + "\x01" * 1_600_000)
    server.wait(session)


def test_a_question_that_waits_for_a_slow_client_is_asked_when_the_session_is_loaded_anew(
    tmp_path: Path,
) -> None:
    """The client reads nothing of a long session, so that a call of another session cannot be told; it loads that
    one again before it was asked."""
    folder = workspace(tmp_path)
    careful = '[approvals.policy]\nwrite = "ask"\n'
    with (
        Unread(tmp_path, model=scenes(tmp_path), program=ANEW, config=careful) as agent,
        ServerProcess(tmp_path, approvals=False) as other,
    ):
        session, long = agent.new(folder), other.create(folder)
        place = {"cwd": str(folder), "mcpServers": []}
        fill(other, long)
        agent.reading.clear()
        loads = [agent.request("session/load", sessionId=long, **place)]
        scope = {"kind": "session", "id": session}
        other.call("event/subscribe", scope=scope, **{"from": "start"})
        asked = agent.ask(session, "write it")
        other.told(lambda event: event["type"] == "approval_request")
        loads.append(agent.request("session/load", sessionId=session, **place))
        agent.reading.set()
        assert agent.result(asked) == {"stopReason": "cancelled"}, "it follows the session anew"
        for each in loads:
            agent.result(each)
        question = agent.asked()[0] if agent.asked() else agent.until_asked()
        agent.send({"jsonrpc": "2.0", "id": question["id"], "result": allow({})})
        agent.until_update("tool_call_update", status="completed")
        assert len(agent.asked()) == 1


@pytest.mark.parametrize("published", [True, False])
def test_the_judge_refuses_what_does_not_fit(
    monkeypatch: pytest.MonkeyPatch, published: bool
) -> None:
    """Or else none of these tests would say anything; by the published schema where it is installed, and by
    our own contract elsewhere."""
    if not published:
        monkeypatch.setattr(acp, "Checker", partial(Checker, OwnShapes()))
    judge = Judge()
    judge.sent(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "session/new",
            "params": {"cwd": "/", "mcpServers": []},
        }
    )
    wrong: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "result": {"session": "x"}},
        {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s"}},
        {"jsonrpc": "2.0", "method": "session/update",
         "params": {"sessionId": "s", "update": {"sessionUpdate": "tool_call", "toolCallId": "c"}}},
        {"jsonrpc": "2.0", "method": "session/dance", "params": {}},
    ]  # fmt: skip
    for message in wrong:
        try:
            judge.received(json.dumps(message).encode() + b"\n")
        except Exception:
            continue
        raise AssertionError(message)


@pytest.mark.parametrize("way", ["load", "resume"])
def test_who_opens_a_session_in_the_middle_of_a_message_has_its_first_pieces(
    tmp_path: Path, way: str
) -> None:
    """The stream stands still after them, and no draft was saved."""
    config = "[draft]\ninterval_ms = 60000\nbytes = 1000000\n"
    with AcpProcess(tmp_path, model=scenes(tmp_path), config=config) as agent:
        folder = workspace(tmp_path)
        session = agent.new(folder)
        asked = agent.ask(session, "stall")
        agent.until_update("agent_message_chunk")
        seen = len(agent.seen)
        agent.call(f"session/{way}", sessionId=session, cwd=str(folder), mcpServers=[])
        if way == "resume":
            assert not texts(agent.updates(since=seen)), "it comes behind the answer"
            agent.until_update("agent_message_chunk")
        assert texts(agent.updates(since=seen)) == "Thinking."
        agent.notify("session/cancel", sessionId=session)
        agent.answer_to(asked)
