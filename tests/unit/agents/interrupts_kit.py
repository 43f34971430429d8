"""What the tests of interrupts share: agents that are held in their first request."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from agents_kit import Troupe

from callboard.agents.state import AgentState
from callboard.models.base import ModelEvent, ModelRequest
from callboard_rpc.approvals import Rule
from callboard_rpc.common import RuleId, SessionId
from harness.inside import CLIENT
from harness.puppets import Pause, Scene, calls, of

SWITCHED_ON = {"CALLBOARD_FEATURES": "agents.interrupts"}
LOOK = ("list_files", {"path": "."})
ANOTHER = ("search_files", {"pattern": "x"})


def after(pause: Pause, scene: Scene) -> Scene:
    """A scene that waits for the test before it begins."""

    async def waits(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        await pause.here()
        async for event in scene(request):
            yield event

    return waits


async def held(t: Troupe, root: str, *scenes: Scene, name: str = "one") -> tuple[AgentState, Pause]:
    """An agent whose first request is held; then it looks around, and plays the scenes."""
    pause = Pause()
    t.cast.parts[name] = [after(pause, calls(LOOK)), *scenes]
    agent = await t.spawn(root, name)
    await pause.came()
    return agent, pause


def frames(t: Troupe, part: str = "one", number: int = -1) -> int:
    return t.cast.heard(part, number).count("<agent-interrupt")


async def terminals(t: Troupe, agent: AgentState) -> list[Any]:
    return of(await t.log(agent.agent_id), "agent_interrupted")


async def deny(t: Troupe, root: str, tool: str) -> None:
    """A standing answer of the person's for a session and all below it."""
    rule = Rule(
        rule_id=RuleId("rul_1"),
        scope="session",
        effect="deny",
        tool=tool,
        created_at=t.host.log.now(),
        by=CLIENT,
        session_id=SessionId(root),
    )
    await t.host.approvals.add_rule(rule)


def allow(folder: Path, **policy: str) -> None:
    """Sets what policy says of effects, for hosts that are opened afterwards."""
    (folder / "config").mkdir(exist_ok=True)
    lines = [f'{key} = "{value}"' for key, value in policy.items()]
    (folder / "config" / "config.toml").write_text("\n".join(["[approvals.policy]", *lines, ""]))
