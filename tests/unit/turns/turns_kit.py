"""What the tests of turns share: tools that do as they are told, and a host around them and a model that
is played by the test."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from attrs import define, frozen

from callboard.host import Feature, Host
from callboard.tools.base import Effect, Preview, Tool, ToolContext, ToolOutcome
from callboard_rpc.approvals import ToolCallSubject
from harness.inside import CLIENT, host_in, idle, log_of, new_session, say
from harness.puppets import (
    PATIENCE_S,
    Pause,
    Puppet,
    Scene,
    calls,
    fails,
    of,
    pauses,
    results,
    shape,
    speaks,
    texts,
    the_end,
)

__all__ = [
    "PATIENCE_S",
    "Pause",
    "Puppet",
    "Scene",
    "calls",
    "fails",
    "of",
    "pauses",
    "results",
    "shape",
    "speaks",
    "texts",
    "the_end",
]


@frozen(kw_only=True)
class Anything:
    text: str = ""


Act = Callable[[ToolContext, Anything], Awaitable[ToolOutcome]]


def tool(name: str, act: Act, effect: Effect = "kernel") -> Tool:
    async def preview(_: ToolContext, arguments: Anything) -> Preview:
        subject = ToolCallSubject(name=name, arguments={"text": arguments.text})
        return Preview(title=name, subject=subject, risk="low")

    return Tool(
        name=name,
        description="For a test.",
        arguments=Anything,
        effect=effect,
        kind="other",
        run=act,
        preview=preview,
    )


def returns(text: str = "ok") -> Act:
    async def act(_: ToolContext, arguments: Anything) -> ToolOutcome:
        return ToolOutcome(text=f"{text} {arguments.text}".strip())

    return act


@define
class Stage:
    """A host whose sessions use the puppet."""

    host: Host
    puppet: Puppet
    folder: Path

    async def session(self, **more: Any) -> str:
        return await new_session(self.host, self.folder, **more)

    async def say(self, session_id: str, text: str, **more: Any) -> Any:
        return await say(self.host, session_id, text, **more)

    async def idle(self, session_id: str) -> None:
        assert (await idle(self.host, session_id)).reason == "idle"

    async def log(self, session_id: str) -> list[Any]:
        return await log_of(self.host, session_id)

    async def turn(self, text: str = "go", **more: Any) -> tuple[str, list[Any]]:
        """One prompt in a session of its own, to its end; the session and its records."""
        session_id = await self.session()
        await self.say(session_id, text, **more)
        await self.idle(session_id)
        return session_id, await self.log(session_id)

    async def cancel(self, session_id: str, **more: Any) -> Any:
        return await self.host.sessions.cancel(session_id, by=CLIENT, **more)


@asynccontextmanager
async def stage(
    folder: Path,
    *scenes: Scene,
    tools: Sequence[Tool] = (),
    hooks: Sequence[Any] = (),
    environ: Mapping[str, str] | None = None,
    allow: bool = False,
    features: Sequence[Feature] = (),
    leaves: bool = False,
) -> AsyncGenerator[Stage]:
    """`allow`: commands and writes are allowed without asking. `leaves` as in `host_in`."""
    if allow:
        config = folder / "config"
        config.mkdir(exist_ok=True)
        (config / "config.toml").write_text(
            '[approvals.policy]\nexecute = "allow"\nwrite = "allow"\n', "utf-8"
        )
    puppet = Puppet(*scenes)
    feature = Feature(name="tests", tools=tools, hooks=hooks)
    async with host_in(
        folder, features=[feature, *features], environ=environ, leaves=leaves
    ) as host:

        async def resolve(model_id: str | None = None, *, text_tool_calls: bool = False) -> Puppet:
            return puppet

        host.catalog.resolve = resolve  # type: ignore[method-assign]
        yield Stage(host, puppet, folder)


async def owned(host: Host) -> int:
    """How many sessions have an owner."""
    rows = await host.log.query("SELECT count(*) FROM owners WHERE fence IS NOT NULL")
    return rows[0][0]
