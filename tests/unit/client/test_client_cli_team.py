"""What the demo of agents does when it does not go as it is written."""

import io
from typing import Any

import pytest
from rich.console import Console

from callboard.cli.exits import CommandError, Exit
from callboard.cli.team_seen import Seen
from callboard_rpc.common import SessionId
from callboard_rpc.convert import structure_lenient
from callboard_rpc.events import Event

pytestmark = pytest.mark.anyio
ROOT, DOCS = SessionId("ses_1"), SessionId("ses_2")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Scene:
    def __init__(self, step_limit_s: float = 60) -> None:
        self.out = io.StringIO()
        console = Console(file=self.out, width=60, highlight=False, markup=False, emoji=False)
        self.seen = Seen(console=console, root=ROOT, step_limit_s=step_limit_s)
        made = {
            "sessionId": DOCS, "rootId": ROOT, "parentId": ROOT, "depth": 1, "cwd": "/w",
            "profile": "default", "mode": "work",
        }  # fmt: skip
        self.event("agent_spawned", DOCS, session=made, name="docs", depthLeft=0)

    def event(self, type_: str, session: str, /, **data: Any) -> None:
        wire = {
            "pos": 1, "sessionId": session, "seq": 1, "eventId": "evt_1", "type": type_,
            "at": "2026-01-01T00:00:00Z", "actor": {"kind": "agent", "id": "a"}, "turnId": "trn_1",
            "data": data,
        }  # fmt: skip
        self.seen.take(structure_lenient(wire, Event))

    def denied(self) -> None:
        self.event(
            "tool_call", DOCS, callId="c", messageId="m", name="run_command", arguments={},
            title="python3 build.py compile",
        )  # fmt: skip
        self.event(
            "tool_result", DOCS, callId="c", name="run_command", status="denied",
            text="A rule denies it.",
        )  # fmt: skip


async def test_a_step_that_does_not_come_ends_the_demo_with_the_call_that_failed() -> None:
    scene = Scene(step_limit_s=0)
    scene.denied()
    assert "docs ✗ python3 build.py compile: denied: A rule denies it." in scene.out.getvalue()
    with pytest.raises(CommandError) as raised:
        await scene.seen.until("docs ran build.py compile")
    assert "did not come within 0 s: 'docs ran build.py compile'" in raised.value.message
    assert raised.value.exit is Exit.FAILED
    assert raised.value.hint is not None
    assert "python3 build.py compile: denied: A rule denies it." in raised.value.hint


async def test_a_lead_that_ends_its_turn_too_early_ends_the_demo_at_once() -> None:
    scene = Scene()
    scene.event(
        "turn_finished", ROOT, turnId="trn_1", outcome="completed", answeredThrough=1, usage={}
    )
    await scene.seen.until("lead ended completed")
    with pytest.raises(CommandError, match="the lead has ended its turn before"):
        await scene.seen.until("lead heard of stock")


async def test_a_refused_command_did_not_run() -> None:
    scene = Scene(step_limit_s=0)
    scene.denied()
    by = {"kind": "policy", "id": "p"}
    resolution = {"outcome": "denied", "by": by, "via": "policy", "at": "2026-01-01T00:00:00Z"}
    scene.event("approval_decision", DOCS, approvalId="a", callId="c", resolution=resolution)
    with pytest.raises(CommandError):
        await scene.seen.until("docs ran build.py compile")


def test_the_lead_is_called_lead_where_the_log_has_its_profile() -> None:
    scene = Scene()
    scene.event(
        "agent_message_queued", DOCS, messageId="m", kind="sibling", text="hello",
        author={"kind": "agent", "name": "default", "id": ROOT},
    )  # fmt: skip
    assert scene.out.getvalue().split() == ["docs", "gets", "a", "message", "of", "lead:", "hello"]
