"""What agents cost on top of plain sessions: spawning, fifty at once, a look at the tree.

In one process, with a model that answers at once, so that only our own work is measured. The floor is
the same number of plain sessions, prompted by a person.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from figure import Figure, Topic, rounds

from callboard.agents.examining import Caller, Wanted
from callboard.agents.service import Agents
from callboard.host import Environment, Host, open_host
from callboard.models.base import ModelCard, ModelEvent, ModelRequest, Stop, TextDelta
from callboard_rpc.common import Actor, TextContent
from callboard_rpc.events import Author

_TOGETHER = 50
_PERSON = Author(kind="person", name="bench", id="bench")
_CLIENT = Actor(kind="client", id="bench")


class _Model:
    """Says one word at once, and notes when it was asked by whom."""

    def __init__(self) -> None:
        self.card = ModelCard(model_id="bench/one", provider="bench", name="one")
        self.asked: dict[str, float] = {}

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.asked[request.session_key or ""] = time.perf_counter()
        yield TextDelta(text="Yes.")
        yield Stop(reason="end_turn")


@asynccontextmanager
async def hosting() -> AsyncGenerator[tuple[Host, _Model, str]]:
    with tempfile.TemporaryDirectory(prefix="callboard-bench-") as name:
        folder = Path(name)
        environment = Environment(
            environ={
                "HOME": name,
                "PATH": "/usr/bin:/bin",
                "CALLBOARD_MODEL": "scripted/demo",
                "CALLBOARD_AGENTS_MAX_OPEN": "1000",
                "CALLBOARD_AGENTS_MAX_RUNNING": "1000",
                "CALLBOARD_AGENTS_REPORTS": "wait",
            },
            user_dir=folder / "config",
            store=folder / "store.db",
        )
        model = _Model()
        async with open_host(environment) as host:

            async def resolve(_: str | None = None, *, text_tool_calls: bool = False) -> _Model:
                return model

            host.catalog.resolve = resolve  # type: ignore[method-assign]
            yield host, model, name


async def new_root(host: Host, cwd: str) -> str:
    made = await host.sessions.create(cwd=cwd, profile="default", mode="work", by=_CLIENT)
    return made.session_id


async def _prompt(host: Host, session_id: str) -> None:
    content = [TextContent(text="say")]
    await host.sessions.prompt(session_id, content, author=_PERSON, by=_CLIENT)


async def rest(host: Host, session_ids: list[str]) -> None:
    for session_id in session_ids:
        await host.waiting.wait(session_id, until="idle", turn_id=None, timeout_s=60)


def agents_of(host: Host) -> Agents:
    service = host.services["agents"]
    assert isinstance(service, Agents)
    return service


async def _spawned(count: int) -> tuple[list[float], list[float]]:
    """From the wish for an agent to its first model request; and the same for a plain session."""
    ours: list[float] = []
    bare: list[float] = []
    async with hosting() as (host, model, cwd):
        caller = Caller(parent_id=await new_root(host, cwd), by=_CLIENT)
        for number in range(count + 5):
            began = time.perf_counter()
            wanted = Wanted(name=f"agent {number}", message="say")
            child = (await agents_of(host).spawn(caller, wanted)).agent_id
            await rest(host, [child])
            ours.append(model.asked[child] - began)
            began = time.perf_counter()
            plain = await new_root(host, cwd)
            await _prompt(host, plain)
            await rest(host, [plain])
            bare.append(model.asked[plain] - began)
    return ours[5:], bare[5:]  # the first ones load what the others have


async def _at_once(count: int) -> tuple[list[float], list[float], list[float]]:
    """Turns a second of fifty agents of one root, and of fifty plain sessions; and what a look at that
    tree takes."""
    ours: list[float] = []
    bare: list[float] = []
    looks: list[float] = []
    async with hosting() as (host, _, cwd):
        agents = agents_of(host)
        root = await new_root(host, cwd)
        caller = Caller(parent_id=root, by=_CLIENT)
        children = [
            (await agents.spawn(caller, Wanted(name=f"agent {n:02}", message="say"))).agent_id
            for n in range(_TOGETHER)
        ]
        plain = [await new_root(host, cwd) for _ in range(_TOGETHER)]
        await rest(host, children)
        for number in range(count):
            began = time.perf_counter()
            await asyncio.gather(
                *(agents.send(c, "say", goes_on=True, author=_PERSON, by=_CLIENT) for c in children)
            )
            await rest(host, children)
            ours.append(_TOGETHER / (time.perf_counter() - began))
            began = time.perf_counter()
            await asyncio.gather(*(_prompt(host, each) for each in plain))
            await rest(host, plain)
            bare.append(_TOGETHER / (time.perf_counter() - began))
            reports = await host.log.query(
                "SELECT count(*) FROM inbox WHERE session_id = ? AND kind = 'report'", root
            )
            if reports[0][0] != _TOGETHER * (number + 2):
                raise RuntimeError(f"{reports[0][0]} reports came of {_TOGETHER * (number + 2)}")
            began = time.perf_counter()
            tree = await agents.reading.list(root)
            looks.append(time.perf_counter() - began)
            if len(tree) != _TOGETHER:
                raise RuntimeError(f"{len(tree)} agents of {_TOGETHER} are listed")
    return ours, bare, looks


def measure(thorough: float) -> list[Figure]:
    spawned, prompted = asyncio.run(_spawned(rounds(40, thorough)))
    ours, bare, looks = asyncio.run(_at_once(rounds(25, thorough)))
    return [
        Figure(
            name="spawn to the agent's first request",
            unit="ms",
            ours=[1000 * s for s in spawned],
            floor=[1000 * s for s in prompted],
            target=15,
        ),
        Figure(
            name="50 agents of one root at once, turns",
            unit="/s",
            ours=ours,
            floor=bare,
            target=0.7 * statistics.median(bare),
            note="every one of their reports was in the root's inbox",
        ),
        Figure(
            name="a tree of 50 agents, listed", unit="ms", ours=[1000 * s for s in looks], target=5
        ),
    ]


TOPIC = Topic(name="agents", about="agents beside plain sessions", measure=measure)
