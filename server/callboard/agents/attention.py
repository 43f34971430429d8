"""What commits, of whatever process, mean for the agents that this host serves: who is to be woken."""

import asyncio
from collections.abc import Awaitable, Callable

from ..log.log import Log
from ..log.record import Record
from ..sessions.dispatch import Dispatcher
from ..sessions.inbox import runs as inbox_runs
from .projection import SQL, find


class Attention:
    """Wakes a parent that was told something, and children for which there is room now.
    `deadlines_changed` is set when there may be something to end sooner than was known."""

    def __init__(
        self,
        log: Log,
        dispatcher: Dispatcher,
        spawn: Callable[[Callable[[], Awaitable[None]], str], None],
    ) -> None:
        self._log = log
        self._dispatcher = dispatcher
        self._spawn = spawn
        self.deadlines_changed = asyncio.Event()
        log.listen(self._heard)

    def _heard(self, records: list[Record]) -> None:
        for record in records:
            match record.type:
                case "agent_report_created":
                    self._parent_told(record)
                case "agent_asked":
                    self.deadlines_changed.set()
                    self._parent_told(record)
                case "agent_interrupt_requested":
                    self.deadlines_changed.set()
                case "turn_finished" | "turn_parked" | "session_closed" | "agent_interrupted":
                    self._slot_free(record.session_id)
                case "session_deleted":
                    # whose it was is not known any more
                    for (parent_id,) in self._log.glance(SQL["parents_waited_for"]):
                        self._wake_children(parent_id)
                case _:
                    pass

    def _parent_told(self, record: Record) -> None:
        agent = find(self._log.glance, record.session_id)
        if agent is not None and inbox_runs.due(
            self._log.glance, agent.parent_id, self._dispatcher.host_id, self._log.now()
        ):
            self._wake(agent.parent_id)

    def _slot_free(self, session_id: str) -> None:
        """A child has ended its turn, or will begin none: another one of its parent may begin."""
        agent = find(self._log.glance, session_id)
        if agent is not None:
            self._wake_children(agent.parent_id, but=session_id)

    def _wake_children(self, parent_id: str, *, but: str | None = None) -> None:
        for (waiting,) in self._log.glance(
            SQL["waiting_children"], parent_id, self._dispatcher.host_id
        ):
            if waiting != but:
                self._wake(waiting)

    def _wake(self, session_id: str) -> None:
        async def wake() -> None:
            await self._dispatcher.wake(session_id)

        self._spawn(wake, f"wake {session_id}")
