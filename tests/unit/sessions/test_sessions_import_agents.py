"""An agent from a file: at rest, and nothing of what it was told or asked elsewhere is any clock's here."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callboard.agents.projection import find
from callboard.agents.service import Agents
from callboard.agents.state import AgentState, replay
from callboard.host import Host
from callboard_rpc.errors import CallboardError
from harness.exports import Lines, event_of, long_session, recounted, sealed
from harness.inside import CLIENT, PERSON, host_in, idle, log_of

pytestmark = pytest.mark.anyio

ROOT, ONE, TRN, ASK = "ses_01root", "ses_01agent", "trn_01agent", "ask_01"
AT = "2001-05-17T09:30:00.123Z"
"""A time that is over, whenever the test runs."""
SYSTEM = {"kind": "system", "id": "callboard"}
Event = tuple[str, str | None, dict[str, Any]]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


SPAWNED: Event = (
    "agent_spawned",
    None,
    {
        "session": {
            "sessionId": ONE, "rootId": ROOT, "parentId": ROOT, "cwd": "/nowhere", "depth": 1,
            "profile": "default", "mode": "work",
        },
        "name": "one",
        "depthLeft": 0,
        "messageAllow": ["two"],
    },
)  # fmt: skip
BRIEF: Event = (
    "directive",
    None,
    {"messageId": "msg_01", "author": {"kind": "agent", "name": "root", "id": ROOT}, "text": "go"},
)
STARTED: Event = (
    "turn_started",
    TRN,
    {
        "turnId": TRN, "index": 0, "trigger": {"kind": "directive", "seqs": [2]}, "model": "a/b",
        "mode": "work",
    },
)  # fmt: skip
RUNS: Event = ("agent_status_changed", TRN, {"status": "running"})
ACK: Event = ("ack", TRN, {"admits": [2]})
ASKED: Event = (
    "agent_asked",
    TRN,
    {"askId": ASK, "text": "left or right?", "expectsReply": True, "expiresAt": AT},
)
CANCEL: Event = (
    "agent_interrupt_requested",
    None,
    {
        "interruptId": "int_01", "kind": "cancel", "origin": "user", "reason": "enough",
        "deadlineAt": AT,
    },
)  # fmt: skip
FINISHED: Event = (
    "turn_finished",
    TRN,
    {"turnId": TRN, "outcome": "cancelled", "answeredThrough": 2, "usage": {"requests": 0}},
)
REPORT: Event = (
    "agent_report_created",
    TRN,
    {
        "report": {
            "reportId": "rep_01", "agentId": ONE, "name": "one", "status": "completed",
            "summary": "did it", "turnId": TRN,
        }
    },
)  # fmt: skip
AT_WORK = (SPAWNED, BRIEF, STARTED, RUNS, ACK, ASKED, CANCEL)


def file_of(*events: Event) -> Lines:
    lines: Lines = [{"callboard": {"export": 1, "sessionId": ONE, "events": len(events)}}]
    for seq, (kind, turn_id, data) in enumerate(events, 1):
        event = {
            "sessionId": ONE, "seq": seq, "eventId": f"evt_{seq:02}", "type": kind, "at": AT,
            "actor": SYSTEM, "data": data,
        }  # fmt: skip
        lines.append(event if turn_id is None else {**event, "turnId": turn_id})
    lines.append({"end": {}})
    return copy.deepcopy(recounted(lines))


def agents_of(host: Host) -> Agents:
    service = host.services["agents"]
    assert isinstance(service, Agents)
    return service


async def imported(host: Host, *events: Event, cwd: str = "/nowhere") -> AgentState:
    await host.importing.run(long_session(ROOT, cwd, 1))
    lines = file_of(*events)
    event_of(lines, "agent_spawned")["data"]["session"]["cwd"] = cwd
    done = await host.importing.run(sealed(lines))
    agent = find(host.log.glance, done.session_id)
    log = await log_of(host, ONE)
    assert agent is not None and replay([record.value for record in log]) == agent
    assert done.added == len(log) - len(events)
    return agent


@pytest.mark.parametrize(
    "events",
    [
        pytest.param(AT_WORK, id="at work"),
        pytest.param((*AT_WORK, FINISHED), id="whose turn has ended without a word of it"),
        pytest.param((SPAWNED, BRIEF), id="yet to begin"),
        pytest.param((SPAWNED, BRIEF, CANCEL), id="yet to begin, and cancelled"),
        pytest.param((*AT_WORK[:-1], REPORT, FINISHED, CANCEL), id="cancelled at rest"),
    ],
)
async def test_coordination_22_what_was_under_way_elsewhere_is_at_rest_and_no_clock_ends_it(
    tmp_path: Path, events: tuple[Event, ...]
) -> None:
    async with host_in(tmp_path) as host:
        agents = agents_of(host)
        agent = await imported(host, *events)
        assert agent.is_terminal and agent.deadline_at is None and agent.winding is None
        assert host.log.glance("SELECT 1 FROM asks WHERE outcome IS NULL") == []
        assert agents.next_deadline() is None
        before = len(await log_of(host, ONE))
        await agents.end_overdue()
        assert len(await log_of(host, ONE)) == before


async def test_coordination_22_it_goes_on_as_one_that_was_told_nothing(tmp_path: Path) -> None:
    async with host_in(tmp_path) as host:
        agents = agents_of(host)
        agent = await imported(host, *AT_WORK, cwd=str(tmp_path))
        assert agent.status == "interrupted" and agent.interrupted is not None
        assert "exported" in agent.interrupted.reason and agent.pending is None
        types = [record.type for record in await log_of(host, ONE)][len(AT_WORK) :]
        assert types == ["agent_replied", "agent_interrupted", "turn_finished"]
        await agents.send(ONE, "go on", goes_on=True, author=PERSON, by=CLIENT)
        await idle(host, ONE)
        assert agents.agent(ONE).status == "completed"
        kinds = [record.type for record in await log_of(host, ONE)]
        assert "agent_interrupt_consumed" not in kinds


async def test_coordination_22_one_that_was_at_rest_stays_as_it_was(tmp_path: Path) -> None:
    events = (*AT_WORK[:5], REPORT, FINISHED)
    async with host_in(tmp_path) as host:
        agent = await imported(host, *events)
        assert agent.status == "completed" and agent.report is not None
        assert len(await log_of(host, ONE)) == len(events)


# --- what is refused ------------------------------------------------------------------------------


def _in(kind: str, **changes: Any) -> Callable[[Lines], None]:
    def change(lines: Lines) -> None:
        event_of(lines, kind)["data"].update(changes)

    return change


def _spawned(**changes: Any) -> Callable[[Lines], None]:
    return _in("agent_spawned", **changes)


def _asked_outside(lines: Lines) -> None:
    del event_of(lines, "agent_asked")["turnId"]


def _asked_twice(lines: Lines) -> None:
    again = copy.deepcopy(event_of(lines, "agent_asked"))
    again["eventId"] = "evt_again"
    lines.insert(-1, again)
    recounted(lines)


def _of_a_root(lines: Lines) -> None:
    created = event_of(lines, "agent_spawned")
    session = {**created["data"]["session"], "depth": 0, "rootId": ONE}
    del session["parentId"]
    created.update(type="session_created", data=session)


def _then(kind: str, **data: Any) -> Callable[[Lines], None]:
    def change(lines: Lines) -> None:
        added = copy.deepcopy(event_of(lines, "agent_spawned"))
        added.update(eventId="evt_added", type=kind, data=data)
        lines.insert(-1, added)
        recounted(lines)

    return change


WRONG: dict[str, Callable[[Lines], None]] = {
    **{
        f"deadline {text!r}": _in("agent_interrupt_requested", deadlineAt=text)
        for text in ("0 never", "", "soon", "2031-05-17", "2031-05-17T09:30:00.000+02:00",
                     "2031-02-30T09:30:00.000Z", "9999-99-99T99:99:99.999Z")
    },
    **{
        f"question until {text!r}": _in("agent_asked", expiresAt=text)
        for text in ("0 never", "", "2031-05-17T09:30:00.000+02:00")
    },
    "a question of no id": _in("agent_asked", askId="../x"),
    "a question twice": _asked_twice,
    "a question outside of turns": _asked_outside,
    "a depth below nothing": _spawned(depthLeft=-1),
    "a depth without end": _spawned(depthLeft=10**6),
    "no name": _spawned(name=""),
    "a name as long as a book": _spawned(name="x" * 65),
    "a name that nobody sees": _spawned(name="a\u202eb"),
    "a name of lines": _spawned(name="a\nb"),
    "a sibling without a name": _spawned(messageAllow=["two", " "]),
    "siblings without end": _spawned(messageAllow=[f"n{n}" for n in range(65)]),
    "events of an agent in a root": _of_a_root,
    "a group of its own": _then("agent_group_created", groupId="grp_01", name="mine"),
    "a claim in its own log": _then("group_task_claimed", taskId="tsk_01", agentId=ONE),
    "a group's message in its own log": _then(
        "group_message_queued", messageId="msg_02", groupId="grp_01", sender=ONE, to="root",
        recipients=[ROOT], text="do as I say",
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
async def test_an_agent_that_no_server_would_have_written_is_refused(
    tmp_path: Path, wrong: str
) -> None:
    lines = file_of(*AT_WORK)
    WRONG[wrong](lines)
    async with host_in(tmp_path) as host:
        await host.importing.run(long_session(ROOT, "/nowhere", 1))
        head = host.log.head
        with pytest.raises(CallboardError) as refused:
            await host.importing.run(sealed(lines))
        assert refused.value.kind == "importRefused", refused.value
        assert host.log.head == head and find(host.log.glance, ONE) is None
        assert agents_of(host).next_deadline() is None


async def test_the_report_of_another_agent_is_refused(tmp_path: Path) -> None:
    lines = file_of(*AT_WORK[:5], REPORT, FINISHED)
    event_of(lines, "agent_report_created")["data"]["report"]["agentId"] = "ses_02other"
    async with host_in(tmp_path) as host:
        await host.importing.run(long_session(ROOT, "/nowhere", 1))
        with pytest.raises(CallboardError) as refused:
            await host.importing.run(sealed(lines))
        assert "report of another agent" in refused.value.message
