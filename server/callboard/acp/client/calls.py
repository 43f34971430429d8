"""The calls that an agent tells of in one turn: as they form, until they are over."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from callboard_rpc.errors import CallboardError

from .ledger import Ledger, Tracked
from .told import ToldCall

FORMING_S: Final = 0.3
"""How long a call may be told without its input before it is in the log as it is."""
_MOST_CALLS: Final = 5_000
_MOST_OPEN_BYTES: Final = 64 * 1024 * 1024
"""How much may be told of calls that are not over."""


class Calls:
    """Those that were told of and are not in the log yet are brought there together, in their order. `due` is
    called when that has waited long enough."""

    def __init__(self, ledger: Ledger, due: Callable[[], None]) -> None:
        self._ledger = ledger
        self._due = due
        self._by_id: dict[str, Tracked] = {}
        self._forming: list[Tracked] = []
        self._open_bytes = 0
        self._flush: asyncio.TimerHandle | None = None

    @property
    def open(self) -> list[Tracked]:
        return [tracked for tracked in self._by_id.values() if not tracked.settled]

    def known(self, update: Any, size: int) -> Tracked:
        """The call that an update of `size` bytes is about; one that nobody has told of yet begins with it. Raises
        limitReached."""
        tracked = self._by_id.get(update.tool_call_id)
        if tracked is None:
            return self.begun(update, size)
        if not tracked.settled:
            self._merge(tracked, update, size)
        return tracked

    def begun(self, update: Any, size: int) -> Tracked:
        """Another call that begins with an update, also under an id that an earlier one had. Raises
        limitReached."""
        if len(self._by_id) >= _MOST_CALLS:
            raise CallboardError(
                "limitReached", f"the agent has made more than {_MOST_CALLS} calls with one prompt"
            )
        tracked = Tracked(told=ToldCall(tool_call_id=update.tool_call_id))
        self._by_id[update.tool_call_id] = tracked
        self._forming.append(tracked)
        self._merge(tracked, update, size)
        return tracked

    def _merge(self, tracked: Tracked, update: Any, size: int) -> None:
        before = tracked.told.weight
        tracked.told.merge(update, size)
        self._open_bytes += tracked.told.weight - before
        if self._open_bytes > _MOST_OPEN_BYTES:
            raise CallboardError(
                "limitReached",
                f"the agent has told more than {_MOST_OPEN_BYTES} bytes of calls that are not over",
            )

    def commit_soon(self) -> None:
        """Waits a little for what is told of a call after its beginning."""
        if self._flush is None:
            self._flush = asyncio.get_running_loop().call_later(FORMING_S, self._due)

    async def commit(self, but: Tracked | None = None) -> bool:
        """Brings those that form into the log, and tells whether there were any; `but` one that is asked about,
        which comes with its question."""
        self.stop()
        formed, self._forming = [each for each in self._forming if each is not but], []
        formed = [each for each in formed if each.call is None]
        if formed:
            await self._ledger.commit(formed)
        return bool(formed)

    def forget(self, tracked: Tracked) -> None:
        """Keeps nothing of what was told of a call that is over."""
        self._open_bytes -= tracked.told.weight
        tracked.release()

    def clear(self) -> None:
        """Nothing more is told of any of them."""
        self._by_id.clear()
        self._open_bytes = 0

    def stop(self) -> None:
        """Waits for nothing more."""
        if self._flush is not None:
            self._flush.cancel()
            self._flush = None
