"""Models that are played by a test, scene by scene, and what is read back of what they did."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import orjson
from attrs import define, field

from callboard.models.base import (
    ModelCard,
    ModelError,
    ModelEvent,
    ModelRequest,
    Stop,
    Text,
    TextDelta,
    ToolMessage,
    ToolRequest,
    UsageReport,
    UserMessage,
)
from callboard_rpc.common import Failure, Usage

Scene = Callable[[ModelRequest], AsyncIterator[ModelEvent]]

PATIENCE_S = 60.0


class Puppet:
    """A model that plays one scene after another, and then says "done." for ever."""

    def __init__(self, *scenes: Scene) -> None:
        self.card = ModelCard(model_id="puppet/one", provider="puppet", name="one")
        self.scenes = list(scenes)
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.requests.append(request)
        scene = self.scenes.pop(0) if self.scenes else speaks("done.")
        async for event in scene(request):
            yield event

    def heard(self, number: int = -1) -> str:
        """All that users said in a request."""
        return "\n".join(
            block.text
            for message in self.requests[number].messages
            if isinstance(message, UserMessage)
            for block in message.blocks
            if isinstance(block, Text)
        )

    def read(self, number: int = -1) -> list[str]:
        """The texts of the results that a request ends with."""
        last = self.requests[number].messages[-1]
        return [output.text for output in last.outputs] if isinstance(last, ToolMessage) else []


def speaks(*texts: str, usage: Usage | None = None) -> Scene:
    async def scene(_: ModelRequest) -> AsyncIterator[ModelEvent]:
        for text in texts:
            yield TextDelta(text=text)
        if usage is not None:
            yield UsageReport(usage=usage)
        yield Stop(reason="end_turn")

    return scene


def calls(*requested: tuple[str, Any], text: str = "", ids: Sequence[str | None] = ()) -> Scene:
    """Asks for tools: name and arguments, which are an object, or text for garbage."""

    async def scene(_: ModelRequest) -> AsyncIterator[ModelEvent]:
        if text:
            yield TextDelta(text=text)
        for number, (name, arguments) in enumerate(requested):
            written = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
            call_id = ids[number] if ids else f"c{number}"
            yield ToolRequest(call_id=call_id, name=name, arguments=written)
        yield Stop(reason="tool_use")

    return scene


def fails(kind: str = "modelError", *, text: str = "", retryable: bool = False) -> Scene:
    async def scene(_: ModelRequest) -> AsyncIterator[ModelEvent]:
        if text:
            yield TextDelta(text=text)
        failure = Failure(kind=kind, message="the model broke", retryable=retryable)
        raise ModelError(failure, started=bool(text))
        yield

    return scene


@define
class Pause:
    """A place where somebody waits until the test lets it go on."""

    reached: asyncio.Event = field(factory=asyncio.Event)
    open: asyncio.Event = field(factory=asyncio.Event)

    async def here(self) -> None:
        self.reached.set()
        await self.open.wait()

    async def came(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await self.reached.wait()


def pauses(pause: Pause, *texts: str, before: Sequence[str] = ()) -> Scene:
    """Says `before`, waits for the test, and says the rest."""

    async def scene(_: ModelRequest) -> AsyncIterator[ModelEvent]:
        for text in before:
            yield TextDelta(text=text)
        await pause.here()
        for text in texts:
            yield TextDelta(text=text)
        yield Stop(reason="end_turn")

    return scene


# --- what was written -------------------------------------------------------------------------


def of(records: Sequence[Any], kind: str) -> list[Any]:
    """The data of all events of a type."""
    return [record.value for record in records if record.type == kind]


def the_end(records: Sequence[Any]) -> Any:
    """The one terminal event of the one turn; fails when there is another number of them."""
    ends = of(records, "turn_finished")
    assert len(ends) == 1, ends
    return ends[0]


def results(records: Sequence[Any]) -> list[tuple[str, str]]:
    """Name and status of every result; every call has exactly one."""
    called = Counter(call.call_id for call in of(records, "tool_call"))
    answered = Counter(result.call_id for result in of(records, "tool_result"))
    assert called == answered
    assert set(called.values()) <= {1}
    return [(result.name, result.status) for result in of(records, "tool_result")]


def texts(records: Sequence[Any]) -> list[str]:
    """What the agent said, message by message."""
    return [
        "".join(block.text for block in message.content if block.type == "text")
        for message in of(records, "message")
        if not message.from_outside
    ]


def shape(records: Sequence[Any]) -> list[str]:
    """The types of events, without the session's creation."""
    return [record.type for record in records if record.type != "session_created"]
