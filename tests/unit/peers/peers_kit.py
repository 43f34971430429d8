"""What the tests of links share: sessions of one host, each with a model of its own, and a clock that the test
can put forward."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from attrs import define, field

from callboard.host import Host
from callboard.log.clock import later, utc_now
from callboard.log.transaction import Transaction
from callboard.peers.consent import Left, Side
from callboard.peers.sending import Sent
from callboard.peers.service import Invitation, Peers
from callboard_rpc.errors import CallboardError
from callboard_rpc.peers import Peer
from harness.inside import CLIENT, host_in, idle, log_of, new_session, say
from harness.puppets import PATIENCE_S, Puppet

ON = {"CALLBOARD_FEATURES": "peers"}


@define
class Clock:
    """The time of the machine, put forward by the test."""

    ahead_s: float = 0.0
    stands_at: str | None = None

    def __call__(self) -> str:
        return later(self.stands_at or utc_now(), self.ahead_s)


@define
class Links:
    """A host with sessions, by the names that the test gives them."""

    host: Host
    folder: Path
    ids: dict[str, str] = field(factory=dict[str, str])
    models: dict[str, Puppet] = field(factory=dict[str, Puppet])

    @property
    def peers(self) -> Peers:
        service = self.host.services["peers"]
        assert isinstance(service, Peers)
        return service

    async def session(self, name: str, *, opened: bool = False, **more: Any) -> str:
        """A session whose model is a puppet of its own; not `opened`, as if another process had made it."""
        self.models[name] = Puppet()
        more = {"title": name, **more}
        session_id = await new_session(self.host, self.folder, model=f"puppet/{name}", **more)
        self.ids[name] = session_id
        if opened:
            self.host.opened.note(session_id)
        return session_id

    def side(self, name: str) -> Side:
        return Side(session_id=self.ids[name], by=CLIENT)

    async def invite(self, name: str) -> Invitation:
        return await self.peers.invite(self.side(name))

    async def accept(self, name: str, token: str) -> Peer:
        return await self.peers.accept(self.side(name), token)

    async def link(self, one: str, other: str) -> None:
        await self.accept(other, (await self.invite(one)).token)

    async def send(self, one: str, other: str, text: str = "hello") -> Sent:
        return await self.peers.send(self.side(one), self.ids[other], text)

    async def leave(self, one: str, other: str) -> Left:
        return await self.peers.leave(self.side(one), self.ids[other])

    async def linked(self, name: str) -> tuple[Peer, ...]:
        return await self.peers.linked(self.ids[name])

    async def log(self, name: str) -> list[Any]:
        return await log_of(self.host, self.ids[name])

    async def events(self, name: str, *types: str) -> list[Any]:
        """What the events of these types say."""
        return [record.value for record in await self.log(name) if record.type in types]

    async def received(self, name: str) -> list[Any]:
        """The messages of linked sessions in a log."""
        return [m for m in await self.events(name, "message") if m.author.kind == "peer"]

    async def say(self, name: str, text: str = "go", **more: Any) -> Any:
        return await say(self.host, self.ids[name], text, **more)

    async def idle(self, name: str) -> None:
        assert (await idle(self.host, self.ids[name])).reason == "idle"

    async def has(self, name: str, count: int, *types: str) -> list[Any]:
        """Waits until so many events of these types are in a log."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                position = self.host.log.head
                found = await self.events(name, *types)
                if len(found) >= count:
                    return found
                await self.host.log.moved(position)

    def waiting(self, name: str) -> int:
        """Rows that wait for a session."""
        return len(
            self.host.log.glance(
                "SELECT 1 FROM peer_inbox WHERE recipient_id = ? AND dead IS NULL", self.ids[name]
            )
        )

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        return self.host.log.glance(f"SELECT * FROM {table}")

    async def put(self, one: str, other: str, capsule: Any, message_id: str) -> None:
        """Lays a row into the inbox by hand; `capsule` is text, or what is written as JSON."""
        text = capsule if isinstance(capsule, str) else orjson.dumps(capsule).decode()

        def write(tx: Transaction) -> None:
            tx.execute(
                "INSERT INTO peer_inbox (message_id, recipient_id, sender_id, capsule, created_at) "
                "VALUES (?, ?, ?, ?, ?)",
                message_id,
                self.ids[other],
                self.ids[one],
                text,
                tx.now(),
            )

        await self.host.log.transact(write)


@asynccontextmanager
async def links(
    folder: Path, *, environ: Mapping[str, str] | None = None, leaves: bool = False
) -> AsyncGenerator[Links]:
    """A host where sessions can be linked. One that `leaves` polls nothing: then what is sent to an idle session
    lies there until the test has it taken in."""
    async with host_in(folder, environ={**ON, **(environ or {})}, leaves=leaves) as host:
        found = Links(host=host, folder=folder)

        async def resolve(model_id: str | None = None, *, text_tool_calls: bool = False) -> Puppet:
            return found.models[(model_id or "").partition("/")[2]]

        host.catalog.resolve = resolve  # type: ignore[method-assign]
        yield found


@asynccontextmanager
async def pair(folder: Path, *, opened: bool = False, **more: Any) -> AsyncGenerator[Links]:
    """Two linked sessions, ``one`` and ``two``."""
    async with links(folder, **more) as found:
        await found.session("one", opened=opened)
        await found.session("two", opened=opened)
        await found.link("one", "two")
        yield found


async def refused(work: Any) -> CallboardError:
    """What an attempt is refused with."""
    with pytest.raises(CallboardError) as caught:
        await work
    return caught.value
