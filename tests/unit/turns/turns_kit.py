"""What the tests of turns share: a model that is played by the test, tools that do as they are told,
and a host around both."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
from attrs import define, field, frozen

from callboard.host import Feature, Host
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
from callboard.tools.base import Effect, Preview, Tool, ToolContext, ToolOutcome
from callboard_rpc.approvals import ToolCallSubject
from callboard_rpc.common import Failure, Usage
from harness.inside import CLIENT, host_in, idle, log_of, new_session, say

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


async def owned(host: Host) -> int:
    """How many sessions have an owner."""
    rows = await host.log.query("SELECT count(*) FROM owners WHERE fence IS NOT NULL")
    return rows[0][0]
