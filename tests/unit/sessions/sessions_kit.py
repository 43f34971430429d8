"""A model whose requests are kept and whose answers the test gives, and a host around it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
from attrs import define, field, frozen

from callboard.host import Feature, Host
from callboard.models.base import (
    ModelCard,
    ModelEvent,
    ModelRequest,
    Stop,
    TextDelta,
    ToolRequest,
    UsageReport,
)
from callboard.tools.base import Preview, Tool, ToolContext, ToolOutcome
from callboard_rpc.approvals import ToolCallSubject
from callboard_rpc.common import Usage
from harness.inside import host_in

Answer = Callable[[ModelRequest], AsyncIterator[ModelEvent]]


@define
class Player:
    """Plays its answers one after the other, then says "done." for ever."""

    answers: list[Answer]
    window: int = 128_000
    requests: list[ModelRequest] = field(factory=list[ModelRequest])

    @property
    def card(self) -> ModelCard:
        return ModelCard(
            model_id="player/one", provider="player", name="one", context_window=self.window
        )

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.requests.append(request)
        answer = self.answers.pop(0) if self.answers else says("done.")
        async for event in answer(request):
            yield event


def says(text: str, *, usage: Usage | None = None) -> Answer:
    async def answer(_: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield TextDelta(text=text)
        if usage is not None:
            yield UsageReport(usage=usage)
        yield Stop(reason="end_turn")

    return answer


def asks_for(*calls: tuple[str, dict[str, Any]], text: str = "") -> Answer:
    async def answer(_: ModelRequest) -> AsyncIterator[ModelEvent]:
        if text:
            yield TextDelta(text=text)
        for n, (name, arguments) in enumerate(calls):
            yield ToolRequest(
                call_id=f"p{n}", name=name, arguments=orjson.dumps(arguments).decode()
            )
        yield Stop(reason="tool_use")

    return answer


@define
class Gate:
    """Where an answer stops until the test opens."""

    reached: asyncio.Event = field(factory=asyncio.Event)
    opened: asyncio.Event = field(factory=asyncio.Event)

    def before(self, answer: Answer) -> Answer:
        async def waits(request: ModelRequest) -> AsyncIterator[ModelEvent]:
            self.reached.set()
            await self.opened.wait()
            async for event in answer(request):
                yield event

        return waits

    async def came(self) -> None:
        await asyncio.wait_for(self.reached.wait(), 20)


@frozen(kw_only=True)
class Look:
    size: int = 10


async def _preview(_: ToolContext, arguments: Look) -> Preview:
    return Preview(title="look", subject=ToolCallSubject(name="look", arguments={}))


async def _look(_: ToolContext, arguments: Look) -> ToolOutcome:
    return ToolOutcome(text="seen " * (arguments.size // 5))


LOOK = Tool(
    name="look",
    description="Looks.",
    arguments=Look,
    effect="read",
    kind="read",
    preview=_preview,
    run=_look,
)
"""A read that returns as many characters as it is asked for."""


@asynccontextmanager
async def host_with(
    folder: Path, player: Player, *, config: str | None = None
) -> AsyncGenerator[Host]:
    if config is not None:
        (folder / "config").mkdir(exist_ok=True)
        (folder / "config" / "config.toml").write_text(config, "utf-8")
    async with host_in(folder, features=[Feature(name="tests", tools=[LOOK])]) as host:

        async def resolve(model_id: str | None = None, *, text_tool_calls: bool = False) -> Player:
            return player

        host.catalog.resolve = resolve  # type: ignore[method-assign]
        yield host
