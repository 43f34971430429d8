"""Leases between processes: who is gone is replaced, once; who only stood still finds that out, and stops."""

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from callboard.host import Host
from callboard.sessions.presence import LIMIT_S, Presence
from callboard_rpc.common import Actor
from harness.inside import host_in, idle, log_of
from harness.process import ServerProcess, scenario, types
from harness.stopping import stopped

pytestmark = pytest.mark.anyio

MARK = f"73.{os.getpid()}"
SCENARIO = """
rules:
  - when: {last_user: long, step: 0}
    answer:
      - say: I run it.
      - call: {tool: run_command, arguments: {command: "echo begun >> ran.txt; sleep MARK; echo end >> ran.txt"}}
      - call: {tool: run_command, arguments: {command: "echo second >> ran.txt"}}
  - when: {last_user: {regex: "^run (.+)$"}, step: 0}
    answer: [{call: {tool: run_command, arguments: {command: "{{match.1}}"}}}]
  - when: {last_user: stream}
    answer: [{say: {text: "what I had to say until then ", chunk: 4, repeat: 3}}, {hang: true}]
  - when: {last_user: {regex: "^hold on$"}, step: 0}
    answer: [{wait_ms: 600000}, {say: Too late.}]
  - when: {last_tool: {contains: ""}}
    answer: [{say: "It said: {{last_tool}}"}]
default: [{say: "You said: {{last_user}}."}]
""".replace("MARK", MARK)
ALLOW = {"config": {"approvals": {"policy": {"execute": "allow"}}, "draft": {"interval_ms": 10}}}
OTHER = Actor(kind="client", id="other")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def model(tmp_path: Path) -> str:
    return scenario(tmp_path, SCENARIO)


def _eventually(holds: Callable[[], bool]) -> None:
    """Waits for something of the operating system, which sends no event."""
    ends = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.01)


def _commands() -> list[int]:
    return [
        process.pid
        for process in psutil.process_iter(["cmdline", "status"])
        if process.info["cmdline"] == ["sleep", MARK]
        and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


async def _heartbeats_stand_still(host: Host) -> None:
    """What `host` does when the limit has passed, by its own clock, without a heartbeat of the others."""
    now = 0.0
    presence = Presence(host.log, host.host_id, clock=lambda: now)
    while now <= LIMIT_S:
        assert not await presence.look()
        now += 5.0
    assert await presence.look()
    await host.dispatcher.wake_waiting()


def _types(records: list[Any]) -> list[str]:
    return [record.type for record in records]


def _follow(server: ServerProcess, session_id: str) -> None:
    scope = {"kind": "session", "id": session_id}
    server.call("event/subscribe", scope=scope, **{"from": "now"})


def _whole(events: list[dict[str, Any]]) -> None:
    assert [e["seq"] for e in events] == list(range(1, len(events) + 1))
    for begun, ended, key in (
        ("tool_call", "tool_result", "callId"),
        ("turn_started", "turn_finished", "turnId"),
    ):
        first = [e["data"][key] for e in events if e["type"] == begun]
        last = [e["data"][key] for e in events if e["type"] == ended]
        assert sorted(first) == sorted(last)
        assert len(set(first)) == len(first)


# --- a stale owner ----------------------------------------------------------------------------


async def test_messaging_18_an_owner_that_stood_still_too_long_wakes_stops_and_touches_nothing(
    tmp_path: Path, work: Path, model: str
) -> None:
    """It ran a command in one session and listened to its model in another."""
    with ServerProcess(tmp_path, model=model, callboard=ALLOW) as stale:
        running, listening = stale.create(work), stale.create(work)
        _follow(stale, running)
        stale.prompt(listening, "stream")
        stale.prompt(running, "long")
        stale.until_event(lambda e: e["type"] == "tool_call")
        _eventually(lambda: (work / "ran.txt").exists() and _commands() != [])
        async with host_in(tmp_path, model=model) as host:
            with stopped(stale):
                await _heartbeats_stand_still(host)
                assert _commands() == []
                logs = {each: await log_of(host, each) for each in (running, listening)}
                for records in logs.values():
                    assert records[-1].type == "turn_finished"
                    assert records[-1].value.outcome == "interrupted"
                    assert (records[2].fence, records[-1].fence) == (1, 2)  # seized, then ended
                results = [r.value for r in logs[running] if r.type == "tool_result"]
                assert [r.status for r in results] == ["interrupted", "interrupted"]
                partial = [r.value for r in logs[listening] if r.type == "message"][-1]
                assert partial.partial
                assert partial.content[0].text.startswith("what I had to say")
            # its client is told by the events, its turns come to nothing
            ended = stale.until_event(lambda e: e["type"] == "turn_finished")
            assert ended["data"]["outcome"] == "interrupted"
            _eventually(lambda: stale.call("server/diagnostics")["queues"]["turns"] == 0)
            for each, records in logs.items():
                assert _types(await log_of(host, each)) == _types(records)
                assert await host.log.draft(records[-1].turn_id) is None
            assert (work / "ran.txt").read_text() == "begun\n"
            # and it is a host as any other: what it is asked now it does
            stale.prompt(running, "hello again")
            assert stale.wait(running)["finalText"] == "You said: hello again."
            _whole(stale.events(running))
            assert "hello again" in (await log_of(host, running))[-1].value.final_text
        assert stale.close() == 0
        assert "Traceback" not in stale.stderr()


async def test_interrupts_59_an_owner_that_stood_still_runs_nothing_of_what_was_answered_meanwhile(
    tmp_path: Path, work: Path, model: str
) -> None:
    """Its turn was parked, answered and finished by another host. It wakes into the answer that it had
    waited for, and must not act on it."""
    with ServerProcess(tmp_path, model=model) as stale:
        session_id = stale.create(work)
        _follow(stale, session_id)
        stale.prompt(session_id, "run echo x >> ran.txt")
        (approval,) = stale.wait(session_id, "attention")["approvals"]
        async with host_in(tmp_path, model=model) as host:
            with stopped(stale):
                await _heartbeats_stand_still(host)
                assert (await host.reading.session(session_id)).status == "parked"
                await host.approvals.answer(
                    approval["approvalId"], "allow_once", by=OTHER, via="method"
                )
                await idle(host, session_id)
                assert (work / "ran.txt").read_text() == "x\n"
                before = await log_of(host, session_id)
            stale.until_event(lambda e: e["type"] == "turn_finished")
            _eventually(lambda: stale.call("server/diagnostics")["queues"]["turns"] == 0)
            assert _types(await log_of(host, session_id)) == _types(before)
            kinds = [kind for kind in _types(before) if kind.startswith("turn_")]
            assert kinds == ["turn_started", "turn_parked", "turn_resumed", "turn_finished"]
            assert (work / "ran.txt").read_text() == "x\n"
        assert stale.close() == 0
        assert "Traceback" not in stale.stderr()


async def test_interrupts_76_an_owner_that_stood_still_stops_when_its_session_is_gone(
    tmp_path: Path, work: Path, model: str
) -> None:
    """A deletion does not wait for ever for a turn whose owner does not hear it."""
    with ServerProcess(tmp_path, model=model, callboard=ALLOW) as stale:
        session_id = stale.create(work)
        stale.prompt(session_id, "long")
        _eventually(lambda: (work / "ran.txt").exists() and _commands() != [])
        async with host_in(tmp_path, model=model) as host:
            with stopped(stale):
                await host.log.transact(lambda tx: tx.delete_session(session_id, actor=OTHER))
            _eventually(lambda: _commands() == [])  # stopped by its own server
            _eventually(lambda: stale.call("server/diagnostics")["queues"]["turns"] == 0)
            rows = await host.log.query("SELECT type FROM events WHERE session_id = ?", session_id)
            assert rows == [("session_deleted",)]
            assert await host.log.query("SELECT * FROM drafts") == []
        assert (work / "ran.txt").read_text() == "begun\n"
        assert stale.close() == 0
        assert "Traceback" not in stale.stderr()


# --- an owner that is gone --------------------------------------------------------------------


def test_execution_51_two_servers_that_recover_at_the_same_time_do_it_once(
    tmp_path: Path, work: Path, model: str
) -> None:
    """One session runs a command, one streams, one waits for an answer, in each something is queued."""
    ask = {"config": {"draft": {"interval_ms": 10}, "approvals": {"policy": {"execute": "ask"}}}}
    with ServerProcess(tmp_path, model=model, callboard=ask) as server:
        running, streaming, waiting = (server.create(work) for _ in range(3))
        server.prompt(running, "long")
        for approval in server.wait(running, "attention")["approvals"][:1]:
            server.call("approval/answer", approvalId=approval["approvalId"], optionId="allow_once")
        server.prompt(streaming, "stream")
        server.prompt(waiting, "run echo x >> asked.txt")
        server.wait(waiting, "attention")
        for each in (running, streaming, waiting):
            assert server.prompt(each, "queued")["outcome"] == "queued"
        _eventually(lambda: (work / "ran.txt").exists() and _commands() != [])
        drafts = "SELECT count(*) FROM drafts"
        _eventually(lambda: _rows(tmp_path, drafts) == [(1,)])
        server.kill()
    servers = [ServerProcess(tmp_path, model=model, initialize=False) for _ in range(2)]
    together = threading.Barrier(2)

    def begin(server: ServerProcess) -> None:
        together.wait()
        hello = {"protocolVersions": ["1.0"], "clientId": "c", "clientInfo": {"name": "c"}}
        server.call("initialize", processId=None, callboard={**hello, "capabilities": {}})

    threads = [threading.Thread(target=begin, args=(each,)) for each in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with servers[0] as one, servers[1] as two:
        assert one.wait(running)["finalText"] == "You said: queued."
        assert two.wait(streaming)["finalText"] == "You said: queued."
        logs = {each: one.events(each) for each in (running, streaming, waiting)}
        for each in (running, streaming):
            _whole(logs[each])
            ends = [e["data"]["outcome"] for e in logs[each] if e["type"] == "turn_finished"]
            assert ends == ["interrupted", "completed"]
        partial = [
            e for e in logs[streaming] if e["type"] == "message" and e["data"].get("partial")
        ]
        assert len(partial) == 1
        turns = [kind for kind in types(logs[waiting]) if kind.startswith("turn_")]
        assert turns == ["turn_started", "turn_parked"]
        assert (work / "ran.txt").read_text() == "begun\n"
        assert _commands() == []
        # what is parked holds its queue up, and is answered from whichever server
        (approval,) = two.call("approval/list", state="pending")["data"]
        two.call("approval/answer", approvalId=approval["approvalId"], optionId="allow_once")
        assert one.wait(waiting)["finalText"] == "You said: queued."
        _whole(one.events(waiting))
        assert (work / "asked.txt").read_text() == "x\n"
        for server in (one, two):
            assert server.call("server/diagnostics")["leases"] == []
            assert server.close() == 0
            assert "Traceback" not in server.stderr()


def _rows(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(f"file:{folder / 'store.db'}?mode=ro", uri=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def test_messaging_18_a_steer_that_a_dying_owner_had_accepted_is_answered_by_another(
    tmp_path: Path, work: Path, model: str
) -> None:
    with (
        ServerProcess(tmp_path, model=model, client_id="one") as one,
        ServerProcess(tmp_path, model=model, client_id="two") as two,
    ):
        session_id = one.create(work)
        _follow(two, session_id)
        one.prompt(session_id, "hold on")
        two.until_event(lambda e: e["type"] == "ack")
        assert two.prompt(session_id, "no, this", delivery="steer")["outcome"] == "steered"
        one.kill()
        two.until_event(
            lambda e: e["type"] == "turn_finished" and e["data"]["outcome"] == "completed"
        )
        events = two.events(session_id)
        _whole(events)
        assert events[-1]["data"]["finalText"].endswith("no, this.")
        admitted = [seq for e in events if e["type"] == "ack" for seq in e["data"]["admits"]]
        persons = [
            e["seq"]
            for e in events
            if e["type"] == "message" and e["data"]["author"]["kind"] == "person"
        ]
        assert admitted == persons  # each was taken in once


def test_messaging_18_one_runs_and_the_other_reads_and_after_its_death_takes_over_with_no_double_reply(
    tmp_path: Path, work: Path, model: str
) -> None:
    with (
        ServerProcess(tmp_path, model=model, client_id="one") as one,
        ServerProcess(tmp_path, model=model, client_id="two") as two,
    ):
        ids = [one.create(work) for _ in range(2)]
        _follow(two, ids[0])
        one.prompt(ids[0], "hold on")
        two.until_event(lambda e: e["type"] == "ack")
        session = two.call("session/get", sessionId=ids[0])["session"]
        owner = one.hello["capabilities"]["experimental"]["callboard"]["hostId"]
        assert (session["status"], session["owner"]["hostId"]) == ("running", owner)
        assert two.events(ids[0]) == one.events(ids[0])
        one.prompt(ids[0], "first")
        two.prompt(ids[0], "second")
        one.kill()
        two.until_event(
            lambda e: e["type"] == "turn_finished" and e["data"]["outcome"] == "completed"
        )
        two.wait(ids[0])
        events = two.events(ids[0])
        _whole(events)
        admitted = [seq for e in events if e["type"] == "ack" for seq in e["data"]["admits"]]
        assert sorted(admitted) == sorted(set(admitted))
        assert len(admitted) == 3
        answers = [e["data"]["finalText"] for e in events if "finalText" in e["data"]]
        assert answers[-1].endswith("second.")
        assert two.call("session/get", sessionId=ids[0])["session"]["status"] == "idle"
        # fences only rise, whoever took the session
        fences = _rows(
            tmp_path, f"SELECT fence FROM events WHERE session_id = '{ids[0]}' AND fence > 0"
        )
        assert [f for (f,) in fences] == sorted(f for (f,) in fences)
