"""The inbox as others call it: deliver, authorise, ask for a turn, or all of it at once.

From any process of the store: what is delivered here may be taken in by a turn that runs elsewhere. A
producer that writes events of its own uses the pieces of `deliveries` in its transaction and then `wakes`.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol, TypeAlias, TypeVar

from callboard_rpc.common import Actor

from ...log.log import Log
from ...log.transaction import Transaction
from . import deliveries
from .leases import Leases
from .state import Accepted, Activation, ActiveNotified, Coalesced, Envelope, Started, Watermarks

T = TypeVar("T")


Asked: TypeAlias = ActiveNotified | Coalesced | None
"""What `deliveries.ask` says; None when somebody has to begin a turn."""


class Wakes(Protocol):
    """What a dispatcher does for an inbox."""

    @property
    def host_id(self) -> str: ...

    async def wake(self, session_id: str) -> str | None: ...


class Inbox:
    """The inboxes of one store. A change is one transaction; once it is under way it finishes, and so
    does the start of the turn that it asks for, whatever becomes of the caller."""

    def __init__(self, log: Log, dispatcher: Wakes) -> None:
        self._log = log
        self._dispatcher = dispatcher
        self._tasks: set[asyncio.Task[Any]] = set()
        self.leases = Leases(log)

    async def deliver(self, session_id: str, envelope: Envelope, *, by: Actor) -> Accepted:
        """Makes a delivery durable; it is inert until `authorise`. A repetition is no error; see
        `deliveries.deliver` for those that are."""

        def commit(tx: Transaction) -> Accepted:
            return deliveries.deliver(tx, session_id, envelope, by=by, host_id=self._host_id)

        return await self._log.transact(commit)

    async def authorise(self, session_id: str, generation: int) -> Watermarks:
        """Lets turns take in everything up to `generation`, and starts none; see `deliveries.authorise`."""
        return await self._log.transact(lambda tx: deliveries.authorise(tx, session_id, generation))

    async def request_activation(self, session_id: str, generation: int) -> Activation:
        """Asks that a turn takes in a delivery that is authorised; see `deliveries.ask`."""

        def commit(tx: Transaction) -> Asked:
            return deliveries.ask(tx, session_id, generation, host_id=self._host_id)

        async def work() -> Activation:
            return await self.carry_out(session_id, generation, await self._log.transact(commit))

        return await self._durably(work())

    async def activate(self, session_id: str, generation: int) -> Activation:
        """Authorises and asks, in one transaction."""

        def commit(tx: Transaction) -> Asked:
            deliveries.authorise(tx, session_id, generation)
            return deliveries.ask(tx, session_id, generation, host_id=self._host_id)

        async def work() -> Activation:
            return await self.carry_out(session_id, generation, await self._log.transact(commit))

        return await self._durably(work())

    async def send(
        self, session_id: str, envelope: Envelope, *, by: Actor
    ) -> tuple[Accepted, Activation]:
        """Delivers, authorises and asks, in one transaction. Sending the same again asks again, which
        changes nothing once a turn has taken it in."""

        def commit(tx: Transaction) -> tuple[Accepted, Asked]:
            accepted = deliveries.deliver(tx, session_id, envelope, by=by, host_id=self._host_id)
            deliveries.authorise(tx, session_id, accepted.generation)
            asked = deliveries.ask(tx, session_id, accepted.generation, host_id=self._host_id)
            return accepted, asked

        async def work() -> tuple[Accepted, Activation]:
            accepted, asked = await self._log.transact(commit)
            return accepted, await self.carry_out(session_id, accepted.generation, asked)

        return await self._durably(work())

    async def carry_out(self, session_id: str, generation: int, asked: Asked) -> Activation:
        """Begins the turn that `deliveries.ask` has found to be needed, in a producer's own transaction
        that is committed by now.

        `Started` is said of a turn that was begun here, never of an attempt: when another was faster, or
        the session cannot run just now, what holds then is said (execution 39). The wish stays either way.
        """
        if asked is not None:
            return asked
        turn_id = await self._dispatcher.wake(session_id)
        if turn_id is not None:
            return Started(turn_id=turn_id)
        return deliveries.outlook(self._log.glance, session_id, generation) or Coalesced()

    # --- inside ---

    @property
    def _host_id(self) -> str:
        return self._dispatcher.host_id

    async def _durably(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)
