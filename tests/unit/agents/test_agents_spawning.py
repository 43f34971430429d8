"""A parent and its child: spawn, report, continue."""

from pathlib import Path

import pytest
from agents_kit import Cast, troupe

from harness.puppets import Pause, calls, pauses, speaks

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_coordination_14_51_a_child_begins_with_its_spawn_and_reports_once(
    tmp_path: Path,
) -> None:
    cast = Cast(
        root=[
            calls(("spawn_agent", {"name": "one", "message": "look around"})),
            calls(("wait_agents", {})),
            speaks("all is well"),
        ],
        one=[speaks("nothing to see")],
    )
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        await t.say(root)
        await t.idle(root)
        agent = t.child(root, "one")
        records = await t.log(agent.agent_id)
        assert [r.type for r in records] == [
            "agent_spawned", "directive", "turn_started", "agent_status_changed", "ack", "message",
            "agent_report_created", "turn_finished",
        ]  # fmt: skip
        assert "nothing to see" in cast.heard("root")
        assert cast.heard("root").count("<agent-report") == 1
        assert agent.status == "completed"


async def test_waiting_again_and_again_is_no_loop(tmp_path: Path) -> None:
    wait = calls(("wait_agents", {"timeout_ms": 0}))
    cast = Cast(
        root=[
            calls(("spawn_agent", {"name": "one", "message": "look"})),
            *[wait] * 5,
            speaks("ok"),
        ],
        one=[pauses(pause := Pause(), "done")],
    )
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        await t.say(root)
        await t.idle(root)
        statuses = [r.value.status for r in await t.log(root) if r.type == "tool_result"]
        assert statuses == ["ok"] * 6
        pause.open.set()
        await t.ended(t.child(root, "one"))
