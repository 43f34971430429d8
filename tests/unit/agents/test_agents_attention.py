"""Who waits for a root to need somebody hears of what its agents ask."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from agents_kit import Cast, troupe

from callboard.models.base import ModelEvent, ModelRequest
from harness.inside import CLIENT
from harness.puppets import Pause, calls, speaks

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_peers_56_a_wait_for_attention_on_a_root_ends_when_an_agent_asks(
    tmp_path: Path,
) -> None:
    busy = Pause()

    async def asks(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        await busy.here()
        async for event in calls(("run_command", {"command": "true"}))(request):
            yield event

    cast = Cast(
        root=[
            calls(("spawn_agent", {"name": "one", "message": "work"})),
            calls(("wait_agents", {})),
            speaks("all is well"),
        ],
        one=[asks, speaks("done")],
    )
    async with troupe(tmp_path, cast) as t:
        root = await t.root()
        await t.say(root)
        await busy.came()
        looked = asyncio.Event()
        waits = asyncio.create_task(
            t.host.waiting.wait(
                root, until="attention", turn_id=None, timeout_s=30, changed=lambda _: looked.set()
            )
        )
        await looked.wait()
        busy.open.set()
        waited = await waits
        assert waited.reason == "attention"
        (asked,) = waited.approvals
        assert [step.name for step in asked.path] == ["default", "one"]
        await t.host.approvals.answer(asked.approval_id, "allow_once", by=CLIENT, via="method")
        await t.idle(root)
        assert "done" in cast.heard("root")
