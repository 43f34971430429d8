"""The check that is made of every log in the end finds what it is there to find."""

import asyncio
import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from callboard.sessions.inbox.state import Envelope
from callboard_rpc.common import Actor, TextContent
from callboard_rpc.events import Author
from harness.inside import CLIENT, host_in, idle, log_of, new_session, say
from harness.invariants import Broken, check_session
from harness.process import scenario

SCENARIO = """
rules:
  - when: {last_user: write, step: 0}
    answer:
      - say: I write.
      - call: {tool: write_file, arguments: {path: a.txt, content: new}}
default: [{say: done}]
"""

Events = list[dict[str, Any]]


async def _lived(folder: Path) -> tuple[str, Events]:
    """A session in which turns were begun by a prompt, by two at once, by a delivery, and by the answer
    that came after a restart."""
    child = Actor(kind="agent", id="ses_child", name="scout")
    report = Envelope(
        delivery_id="one",
        content=(TextContent(text="found it"),),
        author=Author(kind="agent", name="scout", id="ses_child"),
        kind="report",
        policy="respect_wait",
    )
    model = scenario(folder, SCENARIO)
    async with host_in(folder, model=model) as host:
        session_id = await new_session(host, folder)
        await asyncio.gather(*(say(host, session_id, text) for text in ("a", "b")))
        await idle(host, session_id)
        await host.inbox.send(session_id, report, by=child)
        await idle(host, session_id)
        await say(host, session_id, "write it")
        await host.waiting.wait(session_id, until="attention", turn_id=None, timeout_s=30)
    async with host_in(folder, model=model) as host:
        (approval,), _ = await host.approvals.page(state="pending")
        await host.approvals.answer(approval.approval_id, "allow_once", by=CLIENT, via="method")
        await idle(host, session_id)
        return session_id, [
            orjson.loads(orjson.dumps(record.wire())) for record in await log_of(host, session_id)
        ]


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Events]:
    return asyncio.run(_lived(tmp_path_factory.mktemp("lived")))


def _first(events: Events, kind: str) -> dict[str, Any]:
    return next(e for e in events if e["type"] == kind)


def _begun_by(events: Events, kind: str) -> dict[str, Any]:
    """The trigger of the first turn that was begun by such a one."""
    triggers = (e["data"]["trigger"] for e in events if e["type"] == "turn_started")
    return next(trigger for trigger in triggers if trigger["kind"] == kind)


def test_messaging_18_prompts_deliveries_and_answers_after_a_restart_begin_turns_by_the_same_log(
    lived: tuple[str, Events],
) -> None:
    session_id, events = lived
    check_session(session_id, events)
    begun = [e["data"]["trigger"]["kind"] for e in events if e["type"] == "turn_started"]
    assert set(begun) == {"prompt", "report"}
    assert _first(events, "turn_resumed")["data"]["trigger"]["kind"] == "approval"


def _no_seqs(events: Events) -> None:
    _begun_by(events, "prompt")["seqs"] = []


def _what_came_after(events: Events) -> None:
    _begun_by(events, "prompt")["seqs"] = [events[-1]["seq"]]


def _no_trigger(events: Events) -> None:
    _begun_by(events, "prompt")["seqs"] = [1]


def _not_taken_in(events: Events) -> None:
    said = [e for e in events if e["type"] == "ack"]
    said[0]["turnId"], said[-1]["turnId"] = said[-1]["turnId"], said[0]["turnId"]


def _another_kind(events: Events) -> None:
    _begun_by(events, "prompt")["kind"] = "directive"


def _nothing_delivered(events: Events) -> None:
    _begun_by(events, "report")["kind"] = "schedule"


def _no_answer(events: Events) -> None:
    _first(events, "approval_decision")["turnId"] = _first(events, "turn_started")["turnId"]


def _no_call(events: Events) -> None:
    said = [e for e in events if e["type"] == "message"][-2]
    said["data"]["content"].append({"type": "tool_use", "callId": "call_none"})


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (_no_seqs, "begun by nothing that is in the log"),
        (_what_came_after, "begun by what came after it"),
        (_no_trigger, "begun by what is no trigger"),
        (_not_taken_in, "does not take in what began it"),
        (_another_kind, "begun by a message"),
        (_nothing_delivered, "begun by nothing that is in the log"),
        (_no_answer, "resumed without an answer"),
        (_no_call, "places of calls that are not there"),
    ],
)
def test_messaging_18_a_log_with_another_start_or_a_lost_call_does_not_pass(
    lived: tuple[str, Events], change: Callable[[Events], None], found: str
) -> None:
    session_id, events = lived
    events = copy.deepcopy(events)
    change(events)
    with pytest.raises(Broken, match=found):
        check_session(session_id, events)
