"""What commits, of whatever process, mean for the agents that this host serves: who is to be woken."""

import asyncio
from collections.abc import Awaitable, Callable, Collection

import orjson

from ..log.log import Log
from ..log.record import Record
from ..sessions.dispatch import Dispatcher
from ..sessions.inbox import runs as inbox_runs
from .projection import SQL


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
        told: set[str] = set()
        resting: set[str] = set()
        deleted = False
        for record in records:
            match record.type:
                case "agent_report_created":
                    told.add(record.session_id)
                case "agent_asked":
                    self.deadlines_changed.set()
                    told.add(record.session_id)
                case "agent_interrupt_requested":
                    self.deadlines_changed.set()
                case "turn_finished" | "turn_parked" | "session_closed" | "agent_interrupted":
                    resting.add(record.session_id)
                case "session_deleted":
                    deleted = True
                case _:
                    pass
        if told:
            self._parents_told(told)
        if deleted:
            self._wake_children(None)  # whose they were is not known any more
        elif resting:
            self._slots_free(resting)

    def _parents_told(self, children: set[str]) -> None:
        now = self._log.now()
        for parent_id in self._by_parent(children):
            if inbox_runs.due(self._log.glance, parent_id, self._dispatcher.host_id, now):
                self._wake(parent_id)

    def _slots_free(self, children: set[str]) -> None:
        """Children have ended their turns, or will begin none: others of their parents may begin."""
        for parent_id, resting in self._by_parent(children).items():
            self._wake_children(parent_id, but=resting)

    def _by_parent(self, session_ids: set[str]) -> dict[str, set[str]]:
        """Those of the sessions that are agents, by whose they are."""
        groups: dict[str, set[str]] = {}
        listed = orjson.dumps(sorted(session_ids)).decode()
        for agent_id, parent_id in self._log.glance(SQL["parents"], listed):
            groups.setdefault(parent_id, set()).add(agent_id)
        return groups

    def _wake_children(self, parent_id: str | None, *, but: Collection[str] = ()) -> None:
        """Those of a parent, or of all, that wait for their turn to begin."""
        for (waiting,) in self._log.glance(
            SQL["waiting_children"], parent_id, self._dispatcher.host_id
        ):
            if waiting not in but:
                self._wake(waiting)

    def _wake(self, session_id: str) -> None:
        async def wake() -> None:
            await self._dispatcher.wake(session_id)

        self._spawn(wake, f"wake {session_id}")
