"""What a room costs: from an agent's last words to the request of whom they address, beside a prompt that waited in a
session of one agent; and whose turn it is, told from a full queue and from a large text.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from agents import hosting, rest
from figure import Figure, Topic, rounds

from callboard.host import Host
from callboard.log.transaction import Transaction
from callboard.models.base import ModelCard, ModelEvent, ModelRequest, Stop, TextDelta
from callboard.rooms.mentions import mentioned
from callboard.rooms.routing import route
from callboard.sessions.answering import Pending
from callboard.sessions.state import Room
from callboard.turns.projection import SQL as TURN_SQL
from callboard_rpc.common import Actor, TextContent
from callboard_rpc.events import Author

_CLIENT = Actor(kind="client", id="bench")
_PERSON = Author(kind="person", name="bench")
_QUEUED = 200
_PROMPT = "Look at this, please.\n" * 190 + "@two"
"""4 KiB, and whom it is for at its end."""
_LARGE = "So it goes on, `here` and there.\n" * 32_000 + "@two"
"""A mebibyte."""


class _Speakers:
    """Notes when each answer has ended, and when each request has come."""

    def __init__(self, words: str) -> None:
        self.card = ModelCard(model_id="bench/one", provider="bench", name="one")
        self.words = words
        self.came: list[float] = []
        self.ended: list[float] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.came.append(time.perf_counter())
        yield TextDelta(text=self.words)
        self.ended.append(time.perf_counter())
        yield Stop(reason="end_turn")

    @property
    def gaps(self) -> list[float]:
        return [c - e for c, e in zip(self.came[1:], self.ended, strict=False) if c > e]


def _with(host: Host, model: Any) -> None:
    async def resolve(_: str | None = None, *, text_tool_calls: bool = False) -> Any:
        return model

    host.catalog.resolve = resolve  # type: ignore[method-assign]


async def _session(host: Host, folder: str, room: Room) -> str:
    place = Path(folder) / "config" / "agents"
    place.mkdir(parents=True, exist_ok=True)
    (place / "two.md").write_text("---\nname: two\n---\nYou are two.\n")
    made = await host.sessions.create(
        cwd=folder, profile="default", mode="work", by=_CLIENT, room=room
    )
    return made.session_id


async def _say(host: Host, session_id: str, text: str) -> None:
    content = [TextContent(text=text)]
    await host.sessions.prompt(session_id, content, author=_PERSON, by=_CLIENT)


async def _handed_over(count: int) -> list[float]:
    """Seconds between two turns of agents that address each other."""
    async with hosting() as (host, _, folder):
        model = _Speakers("What do you say, @two and @default?")
        _with(host, model)
        members = ("default", "two")
        session_id = await _session(host, folder, Room(members=members, burst_budget=count + 1))
        await _say(host, session_id, "go")
        await rest(host, [session_id])
        return model.gaps[-count:]


async def _queued(count: int) -> list[float]:
    """Seconds between two turns of one agent, when a prompt has waited for the end of the first."""
    gaps: list[float] = []
    async with hosting() as (host, _, folder):
        session_id = await _session(host, folder, Room())
        for _ in range(count):
            model = _Waited("Said.", host, session_id)
            _with(host, model)
            await _say(host, session_id, "go")
            await rest(host, [session_id])
            gaps += model.gaps[:1]
    return gaps


class _Waited(_Speakers):
    """Is prompted once more in the middle of its first answer."""

    def __init__(self, words: str, host: Host, session_id: str) -> None:
        super().__init__(words)
        self._host = host
        self._session_id = session_id

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        if not self.came:
            await _say(self._host, self._session_id, "next")
        async for event in super().stream(request):
            yield event


async def _routed(count: int) -> list[float]:
    """Seconds in which a transaction tells whose turn it is, of a full queue."""
    async with hosting() as (host, _, folder):
        room = Room(members=("default", "two"))
        session_id = await _session(host, folder, room)
        wake = host.dispatcher.wake_here

        async def later(_: str) -> None:
            return None

        host.dispatcher.wake_here = later  # type: ignore[method-assign, assignment]
        for _ in range(_QUEUED):
            await _say(host, session_id, _PROMPT)
        samples: list[float] = []

        def look(tx: Transaction) -> None:
            pending = [Pending(*row) for row in tx.all(TURN_SQL["pending_triggers"], session_id)]
            began = time.perf_counter()
            answers = route(tx, session_id, pending)
            samples.append(time.perf_counter() - began)
            if answers is None or (answers.profile, len(answers.admitted)) != ("two", _QUEUED):
                raise RuntimeError(f"it is the turn of {answers}")

        for _ in range(count):
            await host.log.transact(look)
        host.dispatcher.wake_here = wake  # type: ignore[method-assign]
        return samples


def _read(count: int) -> list[float]:
    samples: list[float] = []
    for _ in range(count):
        began = time.perf_counter()
        if mentioned(_LARGE, ("default", "two")) != "two":
            raise RuntimeError("nobody was addressed")
        samples.append(time.perf_counter() - began)
    return samples


def measure(thorough: float) -> list[Figure]:
    count = rounds(100, thorough)
    handed, queued = asyncio.run(_handed_over(count)), asyncio.run(_queued(count))
    return [
        Figure(
            name="from last words to the request of whom they address",
            unit="ms",
            ours=[1000 * s for s in handed],
            floor=[1000 * s for s in queued],
            target=3,
            beyond_floor=True,
            note="beside a prompt that waited for the end of a turn",
        ),
        Figure(
            name="whose turn it is, of 200 prompts of 4 KiB",
            unit="ms",
            ours=[1000 * s for s in asyncio.run(_routed(rounds(20, thorough)))],
            target=50,
        ),
        Figure(
            name="whom a text of 1 MiB addresses",
            unit="ms",
            ours=[1000 * s for s in _read(rounds(20, thorough))],
            target=300,
        ),
    ]


TOPIC = Topic(name="rooms", about="several agents in one session", measure=measure)
