"""What is shown of agents: their names everywhere, a line for each thing, and nothing that commands a terminal."""

import io
from typing import Any

import pytest
from rich.console import Console

from callboard.cli.crew_tree import tree
from callboard.cli.present import Presenter
from callboard_rpc.agents import Agent, AgentApproval, AgentTool
from callboard_rpc.approvals import AgentStep
from callboard_rpc.common import ApprovalId, CallId, SessionId
from callboard_rpc.convert import structure_lenient
from callboard_rpc.events import AgentInterrupted, Event
from callboard_rpc.sessions import Session

ROOT, ONE, TWO = SessionId("ses_1"), SessionId("ses_2"), SessionId("ses_3")
AT = "2026-01-01T00:00:00Z"
HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202eevil\r\x9b1m"


class Screen:
    def __init__(self, *, width: int = 100) -> None:
        self.out = io.StringIO()
        self.console = Console(
            file=self.out, width=width, highlight=False, markup=False, emoji=False
        )
        self.presenter = Presenter(console=self.console, root=ROOT)
        self.seqs: dict[str, int] = {}

    def event(self, type_: str, session: str, /, turn: str | None = "trn_1", **data: Any) -> None:
        self.seqs[session] = self.seqs.get(session, 0) + 1
        wire = {
            "pos": 1, "sessionId": session, "seq": self.seqs[session], "eventId": "evt_1",
            "type": type_, "at": AT, "actor": {"kind": "agent", "id": "a"}, "data": data,
            **({} if turn is None else {"turnId": turn}),
        }  # fmt: skip
        self.presenter.show(structure_lenient(wire, Event))

    def spawned(self, session: str, parent: str, name: str, brief: str = "Do it.") -> None:
        made = {
            "sessionId": session, "rootId": ROOT, "parentId": parent, "depth": 1, "cwd": "/w",
            "profile": "default", "mode": "work",
        }  # fmt: skip
        self.event("agent_spawned", session, None, session=made, name=name, depthLeft=0)
        author = {"kind": "agent", "name": "lead"}
        self.event("directive", session, None, messageId="m", author=author, text=brief)

    @property
    def lines(self) -> list[str]:
        return self.out.getvalue().splitlines()


def said(screen: Screen, session: str, text: str, **more: Any) -> None:
    screen.event(
        "message",
        session,
        messageId="msg_1",
        content=[{"type": "text", "text": text}],
        **{"author": {"kind": "agent", "name": "default"}, **more},
    )


def finished(screen: Screen, session: str, outcome: str) -> None:
    screen.event(
        "turn_finished", session, turnId="trn_1", outcome=outcome, answeredThrough=1,
        usage={"inputTokens": 10}, durationMs=1500,
    )  # fmt: skip


def test_agents_are_called_by_their_names_from_their_brief_to_their_end() -> None:
    screen = Screen()
    screen.spawned(ONE, ROOT, "one", "Look\naround.")
    screen.spawned(TWO, ONE, "two")
    screen.event(
        "tool_call",
        TWO,
        callId="c",
        messageId="m",
        name="read_file",
        arguments={},
        title="Read a.py",
    )
    screen.event("tool_result", TWO, callId="c", name="read_file", status="ok", text="x")
    said(screen, TWO, "found it")
    finished(screen, TWO, "completed")
    screen.event("error", ONE, error={"kind": "modelError", "message": "it broke"})
    finished(screen, ONE, "failed")
    assert screen.lines == [
        "⤷ one: Look around.",
        "⤷ one › two: Do it.",
        "  one › two ✓ Read a.py",
        "  one › two: found it",
        "✓ one › two completed · 1.5 s · 10 tokens in",
        "✗ one: it broke",
        "✗ one failed · 1.5 s · 10 tokens in",
    ]


def test_what_is_said_between_agents_is_told_once_by_who_says_it() -> None:
    screen = Screen()
    screen.spawned(ONE, ROOT, "one")
    screen.event("agent_asked", ONE, askId="ask_1", text="left?", expectsReply=True)
    screen.event("agent_replied", ONE, askId="ask_1", outcome="replied", text="right")
    person = {"kind": "person", "name": "me"}
    screen.event(
        "agent_message_queued",
        ONE,
        None,
        messageId="m",
        kind="continue",
        author=person,
        text="more",
    )
    delivered = {"deliveryId": "m", "generation": 1, "digest": "d", "kind": "continue"}
    said(screen, ONE, "more", author=person, delivered=delivered)
    screen.event(
        "agent_interrupt_requested",
        ONE,
        None,
        interruptId="i",
        kind="steer",
        origin="user",
        reason="up",
    )
    frame = '<agent-interrupt kind="steer" origin="user">\nup\n</agent-interrupt>'
    screen.event("directive", ONE, messageId="m", author=person, text=frame)
    report = {"deliveryId": "r", "generation": 1, "digest": "d", "kind": "report"}
    agent = {"kind": "agent", "name": "one", "id": ONE}
    said(screen, ROOT, "<agent-report>done</agent-report>", author=agent, delivered=report)
    screen.event("agent_closed", ONE, None)
    assert screen.lines[1:] == [
        "? one asks: left?",
        '    callboard agents reply ask_1 "..." answers for its parent',
        "! one is answered: right",
        "→ one ← me: more",
        "↯ one is corrected by a person: up",
        "← the report of one",
        "■ one is closed",
    ]


def interrupt(screen: Screen, kind: str, reason: str) -> None:
    screen.event(
        "agent_interrupt_requested", ONE, None,
        interruptId="i", kind=kind, origin="user", reason=reason,
    )  # fmt: skip


def test_interrupts_and_peers_2_a_correction_that_something_else_replaces_was_not_read() -> None:
    screen = Screen()
    screen.spawned(ONE, ROOT, "one")
    interrupt(screen, "steer", "left")
    screen.event("agent_interrupt_consumed", ONE, interruptId="i", kind="steer", turnId="trn_1")
    interrupt(screen, "steer", "right")
    interrupt(screen, "cancel", "enough")
    interrupt(screen, "abort", "now")
    assert screen.lines[1:] == [
        "↯ one is corrected by a person: left",
        "↯ one is corrected by a person: right",
        "↯ one is told to stop by a person: enough",
        "    in place of the correction before, which it has not read",
        "↯ one is stopped by a person: now",
    ]


def test_the_session_in_front_is_the_lead_where_the_log_has_its_profile() -> None:
    screen = Screen()
    screen.spawned(ONE, ROOT, "one")
    lead = {"kind": "agent", "name": "default", "id": ROOT}
    screen.event(
        "agent_message_queued", ONE, None, messageId="m", kind="continue", author=lead, text="on"
    )
    question = {"deliveryId": "q", "generation": 1, "digest": "d", "kind": "update"}
    said(screen, ONE, "so", author=lead, delivered=question)
    assert screen.lines[1:] == ["→ one ← the lead: on", "← one takes in the update of the lead"]


@pytest.mark.parametrize(
    ("name", "status", "shown"),
    [
        ("message", "error", ["  one ✗ Message to x  error", "    There is no x."]),
        ("run_command", "denied", ["  one ⊘ Message to x  denied", "    There is no x."]),
        ("message", "cancelled", ["  one ■ Message to x  cancelled"]),
        ("read_file", "ok", ["  one ✓ Message to x"]),
    ],
)
def test_why_a_call_of_an_agent_failed_is_told(name: str, status: str, shown: list[str]) -> None:
    screen = Screen()
    screen.spawned(ONE, ROOT, "one")
    screen.event(
        "tool_call", ONE, callId="c", messageId="m", name=name, arguments={}, title="Message to x"
    )
    screen.event("tool_result", ONE, callId="c", name=name, status=status, text="There is no x.")
    assert screen.lines[1:] == shown


def agent(agent_id: SessionId, parent: SessionId, name: str, **more: Any) -> Agent:
    return Agent(
        agent_id=agent_id, root_id=ROOT, parent_id=parent, name=name, profile="default", mode="work",
        depth=1, created_at=AT, path=(AgentStep(session_id=agent_id, name=name),),
        **{"status": "running", **more},
    )  # fmt: skip


def root(title: str) -> Session:
    return Session(
        session_id=ROOT, root_id=ROOT, cwd="/w", profile="default", mode="work", status="idle",
        created_at=AT, updated_at=AT, head_seq=1, queue_length=0, pending_approvals=0, title=title,
    )  # fmt: skip


def test_a_tree_stands_as_it_was_spawned_and_keeps_ids_whole_where_it_is_narrow() -> None:
    screen = Screen(width=50)
    two = agent(TWO, ONE, "a two", waits_for_slot=True, status="starting")
    one = agent(ONE, ROOT, "one", interrupted=AgentInterrupted(reason="enough"), queued=2)
    screen.console.print(tree(root("Repair it"), [two, one]))
    assert screen.lines == [
        'ses_1  idle  "Repair it"',
        "└── one  running  ses_2",
        "    2 messages for its next step",
        "    stopped: enough",
        "    └── a two  starting  ses_3",
        "        waits until another agent has ended its t…",
    ]


def test_hostile_text_of_agents_reaches_no_terminal() -> None:
    screen = Screen()
    screen.spawned(ONE, ROOT, HOSTILE, HOSTILE)
    screen.event("agent_asked", ONE, askId="ask_1", text=HOSTILE, expectsReply=False)
    screen.event("agent_interrupted", ONE, None, reason=HOSTILE)
    screen.event("agent_interrupt_requested", ONE, interruptId="i", kind=HOSTILE, origin=HOSTILE)
    said(screen, ONE, HOSTILE)
    finished(screen, ONE, HOSTILE)
    tool = AgentTool(call_id=CallId("c"), name="x", title=HOSTILE, started_at=AT)
    asked = AgentApproval(approval_id=ApprovalId(HOSTILE), title=HOSTILE)
    bad = agent(
        ONE, ROOT, HOSTILE, agent_type=HOSTILE, model=HOSTILE, tools=(tool,), approvals=(asked,)
    )
    screen.console.print(tree(root(HOSTILE), [bad]))
    text = screen.out.getvalue()
    for char in "\x1b\x9b\x07\r\u202e":
        assert char not in text
    assert "evil" in text
