"""A store with sessions whose clock belongs to the test."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from attrs import define

from callboard.log.ids import IdSource
from callboard.log.log import Log
from callboard.log.store import open_store
from callboard.log.transaction import Transaction
from callboard.sessions import projection as sessions
from callboard.sessions.inbox import deliveries
from callboard.sessions.inbox import projection as inbox
from callboard.sessions.inbox.leases import Leases
from callboard.sessions.inbox.state import Envelope
from callboard.turns import projection as turns
from callboard.turns.reservation import Grant, Reservations, Reserved
from callboard_rpc.common import Actor, SessionId, TextContent
from callboard_rpc.events import Author, SessionCreated

CHILD = Actor(kind="agent", id="ses_child")


@define
class Clock:
    at: datetime = datetime(2031, 5, 17, 9, 30, tzinfo=UTC)

    def now(self) -> str:
        return self.at.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"

    def goes_on(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


@define
class Bench:
    log: Log
    clock: Clock
    leases: Leases

    async def session(self, session_id: str, *texts: str, authorised: int = 0) -> None:
        def begin(tx: Transaction) -> None:
            tx.begin_session(session_id, session_id)
            created = SessionCreated(
                session_id=SessionId(session_id),
                root_id=SessionId(session_id),
                cwd="/w",
                profile="default",
                mode="work",
            )
            tx.append(session_id, created, actor=CHILD)
            for text in texts:
                deliveries.deliver(tx, session_id, envelope(text), by=CHILD, host_id="host_a")
            if authorised:
                deliveries.authorise(tx, session_id, authorised)

        await self.log.transact(begin)

    async def run(self, session_id: str) -> Grant:
        """The right to write into a session."""
        reserved = await Reservations(self.log, "host_a").reserve(session_id, lambda _, __: True)
        assert isinstance(reserved, Reserved)
        return reserved.reservation.transfer()

    async def history(self, session_id: str) -> list[str]:
        records = await self.log.session(session_id)
        return [r.value.content[0].text for r in records if r.type == "message"]


def envelope(text: str, delivery_id: str | None = None) -> Envelope:
    return Envelope(
        delivery_id=delivery_id or f"id of {text}",
        content=(TextContent(text=text),),
        author=Author(kind="peer", name="another"),
        kind="peer",
    )


@asynccontextmanager
async def bench(store_path: Path) -> AsyncGenerator[Bench]:
    ids, clock = IdSource(), Clock()
    store_path.parent.mkdir(exist_ok=True)
    store = open_store(store_path, ids=ids, now=clock.now)
    projections = (turns.PROJECTION, sessions.PROJECTION, inbox.PROJECTION)
    async with Log(store, ids=ids, now=clock.now, projections=projections) as log:
        yield Bench(log, clock, Leases(log))
