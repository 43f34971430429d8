"""What the tests of rooms share: agents of one session, each of which plays scenes of its own."""

import re
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from attrs import define

from callboard.host import Feature, Host
from callboard.models.base import (
    AssistantMessage,
    ModelCard,
    ModelEvent,
    ModelRequest,
    Text,
    ToolMessage,
    UserMessage,
)
from callboard.rooms.projection import burst_of
from callboard.rooms.service import Rooms
from callboard.sessions.state import Room
from callboard_rpc.common import TextContent
from callboard_rpc.events import MemberMentioned, WakeSuppressed
from harness.inside import CLIENT, PERSON, host_in, idle, log_of, new_session, say
from harness.puppets import Scene, of, speaks

NAMES = ("alpha", "beta", "gamma")
_WHO = re.compile(r"^You are (\S+)\.$", re.MULTILINE)
_CHILD = re.compile(r"You are the agent '([^']+)'")


class Actors:
    """A model for all agents of a host: each plays its scenes, and then its last words for ever."""

    def __init__(self, **parts: Sequence[Scene]) -> None:
        self.card = ModelCard(model_id="actors/one", provider="actors", name="one")
        self.parts: dict[str, list[Scene]] = defaultdict(
            list, {name: list(scenes) for name, scenes in parts.items()}
        )
        self.for_ever: dict[str, str] = {}
        self.requests: list[tuple[str, ModelRequest]] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        name = who(request)
        self.requests.append((name, request))
        scenes = self.parts[name]
        scene = scenes.pop(0) if scenes else speaks(self.for_ever.get(name, "done."))
        async for event in scene(request):
            yield event

    def of(self, name: str) -> list[ModelRequest]:
        return [request for each, request in self.requests if each == name]


def who(request: ModelRequest) -> str:
    """Whose request it is, by its prompt; ``default`` for the agent that is built in."""
    child = _CHILD.search("\n".join(users(request)))
    if child is not None:
        return child.group(1)
    found = _WHO.search(request.system)
    return found.group(1) if found else "default"


def users(request: ModelRequest) -> list[str]:
    return [
        block.text
        for message in request.messages
        if isinstance(message, UserMessage)
        for block in message.blocks
        if isinstance(block, Text)
    ]


def assistants(request: ModelRequest) -> list[str]:
    return [
        block.text
        for message in request.messages
        if isinstance(message, AssistantMessage)
        for block in message.blocks
        if isinstance(block, Text)
    ]


def results_in(request: ModelRequest) -> list[str]:
    return [
        output.text
        for message in request.messages
        if isinstance(message, ToolMessage)
        for output in message.outputs
    ]


def profile(folder: Path, name: str, **fields: str) -> None:
    """An agent definition of the person's."""
    place = folder / "config" / "agents"
    place.mkdir(parents=True, exist_ok=True)
    lines = [
        f"name: {name}",
        f"description: The agent {name}",
        *(f"{k}: {v}" for k, v in fields.items()),
    ]
    text = "\n".join(["---", *lines, "---", f"You are {name}.", ""])
    (place / f"{name}.md").write_text(text, "utf-8")


def configure(folder: Path, text: str) -> None:
    (folder / "config").mkdir(exist_ok=True)
    (folder / "config" / "config.toml").write_text(text, "utf-8")


@define
class Stage:
    """A host with agents who take part in sessions."""

    host: Host
    actors: Actors
    folder: Path

    @property
    def rooms(self) -> Rooms:
        service = self.host.services["rooms"]
        assert isinstance(service, Rooms)
        return service

    async def room(
        self, *members: str, host: str | None = None, budget: int | None = None, **more: Any
    ) -> str:
        """A session with these members."""
        own = more.pop("profile", None) or (members[0] if members else "default")
        session = await self.host.sessions.create(
            cwd=str(self.folder),
            profile=own,
            mode=more.pop("mode", "work"),
            by=CLIENT,
            room=Room(members=members, host=host, burst_budget=budget),
            **more,
        )
        return session.session_id

    async def alone(self) -> str:
        return await new_session(self.host, self.folder)

    async def say(self, session_id: str, text: str, *, to: str | None = None, **more: Any) -> Any:
        content = [TextContent(text=text)]
        return await self.host.sessions.prompt(
            session_id,
            content,
            author=PERSON,
            by=CLIENT,
            addressing=self.rooms.addressing(content, to),
            **more,
        )

    async def rest(self, session_id: str) -> None:
        assert (await idle(self.host, session_id)).reason == "idle"

    async def told(self, session_id: str, text: str, **more: Any) -> list[str]:
        """Says something, and tells who has answered, in order, once all is quiet."""
        before = len(await self.turns(session_id))
        await self.say(session_id, text, **more)
        await self.rest(session_id)
        return (await self.turns(session_id))[before:]

    async def log(self, session_id: str) -> list[Any]:
        return await log_of(self.host, session_id)

    async def turns(self, session_id: str) -> list[str]:
        """Whose turns there were."""
        return [started.profile for started in of(await self.log(session_id), "turn_started")]

    async def mentions(self, session_id: str) -> list[MemberMentioned]:
        return of(await self.log(session_id), "member_mentioned")

    async def suppressed(self, session_id: str) -> list[WakeSuppressed]:
        return of(await self.log(session_id), "wake_suppressed")

    async def answered(self, session_id: str) -> dict[int, str]:
        """By the seq of each trigger that was taken in, whose turn took it; none twice."""
        records = await self.log(session_id)
        whose = {r.turn_id: r.value.profile for r in records if r.type == "turn_started"}
        taken: dict[int, str] = {}
        for record in records:
            if record.type == "ack":
                for seq in record.value.admits:
                    assert seq not in taken
                    taken[seq] = whose[record.turn_id]
        return taken

    def burst(self, session_id: str) -> int:
        return burst_of(self.host.log.glance, session_id)


@asynccontextmanager
async def stage(
    folder: Path,
    actors: Actors | None = None,
    *,
    names: Sequence[str] = NAMES,
    environ: Mapping[str, str] | None = None,
    features: Sequence[Feature] = (),
) -> AsyncGenerator[Stage]:
    """Opening the folder again is a restart."""
    actors = actors or Actors()
    for name in names:
        if not (folder / "config" / "agents" / f"{name}.md").exists():
            profile(folder, name)
    async with host_in(folder, environ=environ, features=features) as host:

        async def resolve(model_id: str | None = None, *, text_tool_calls: bool = False) -> Actors:
            return actors

        host.catalog.resolve = resolve  # type: ignore[method-assign]
        yield Stage(host, actors, folder)


__all__ = [
    "Actors",
    "Stage",
    "assistants",
    "configure",
    "profile",
    "results_in",
    "say",
    "stage",
    "users",
]
