"""What the tests of agents share: models that play the parts of a root and of its agents, in one host."""

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
from attrs import define

from callboard.agents.examining import Caller, Wanted
from callboard.agents.service import Agents
from callboard.agents.state import AgentState
from callboard.host import Feature, Host
from callboard.models.base import (
    ModelCard,
    ModelEvent,
    ModelRequest,
    Text,
    ToolMessage,
    UserMessage,
)
from harness.inside import CLIENT, host_in, idle, log_of, new_session, say
from harness.puppets import Scene, speaks

_WHO = re.compile(r"You are the agent '([^']+)'")

ROOT = "root"
"""The part of whoever was given no brief."""


class Cast:
    """A model for all sessions of a host: each plays the scenes of its part, and then says "done."."""

    def __init__(self, **parts: Sequence[Scene]) -> None:
        self.card = ModelCard(model_id="cast/one", provider="cast", name="one")
        self.parts: dict[str, list[Scene]] = defaultdict(
            list, {name: list(scenes) for name, scenes in parts.items()}
        )
        self.requests: dict[str, list[ModelRequest]] = defaultdict(list)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        part = who(request)
        self.requests[part].append(request)
        scenes = self.parts[part]
        scene = scenes.pop(0) if scenes else speaks("done.")
        async for event in scene(request):
            yield event

    def heard(self, part: str, number: int = -1) -> str:
        """All that users said in a request of a part."""
        return heard(self.requests[part][number])

    def read(self, part: str, number: int = -1) -> list[Any]:
        """The results that a request of a part ends with; JSON is read."""
        last = next(
            (
                m
                for m in reversed(self.requests[part][number].messages)
                if isinstance(m, ToolMessage)
            ),
            None,
        )
        return [] if last is None else [_value(output.text) for output in last.outputs]


def heard(request: ModelRequest) -> str:
    return "\n".join(
        block.text
        for message in request.messages
        if isinstance(message, UserMessage)
        for block in message.blocks
        if isinstance(block, Text)
    )


def who(request: ModelRequest) -> str:
    found = _WHO.search(heard(request))
    return found.group(1) if found else ROOT


def _value(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


@define
class Troupe:
    """A host whose sessions play a cast."""

    host: Host
    cast: Cast
    folder: Path

    @property
    def agents(self) -> Agents:
        service = self.host.services["agents"]
        assert isinstance(service, Agents)
        return service

    async def root(self, **more: Any) -> str:
        return await new_session(self.host, self.folder, **more)

    async def say(self, session_id: str, text: str = "go", **more: Any) -> Any:
        return await say(self.host, session_id, text, **more)

    async def idle(self, session_id: str) -> None:
        assert (await idle(self.host, session_id)).reason == "idle"

    async def log(self, session_id: str) -> list[Any]:
        return await log_of(self.host, session_id)

    async def spawn(self, root: str, name: str, message: str = "work", **more: Any) -> AgentState:
        """A child, made by a person in the root's place."""
        return await self.agents.spawn(
            Caller(parent_id=root, by=CLIENT), Wanted(name=name, message=message, **more)
        )

    def child(self, root: str, name: str) -> AgentState:
        return self.agents.target(root, name)

    async def ended(self, agent: AgentState) -> AgentState:
        """The agent once its turn has ended."""
        while not (now := self.agents.agent(agent.agent_id)).is_terminal:
            async with asyncio.timeout(30):
                await self.host.log.moved(self.host.log.head)
        return now


@asynccontextmanager
async def troupe(
    folder: Path,
    cast: Cast | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    features: Sequence[Feature] = (),
) -> AsyncGenerator[Troupe]:
    """Opening the folder again is a restart."""
    cast = cast or Cast()
    async with host_in(folder, features=features, environ=environ) as host:

        async def resolve(model_id: str | None = None, *, text_tool_calls: bool = False) -> Cast:
            return cast

        host.catalog.resolve = resolve  # type: ignore[method-assign]
        yield Troupe(host, cast, folder)
