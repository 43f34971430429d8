"""What a client may not be sent yet: events that name an id whose reply is still on its way.

The reply to a request goes out before any event that names an id it created (PROTOCOL 3). A request
that creates something takes a hold before it commits anything; what was in the log by then, and the
turns that ran by then, are not held up by it.
"""

import asyncio
from collections.abc import Callable

from attrs import frozen


@frozen(eq=False)
class _Hold:
    position: int
    mark: str


class Holds:
    """The holds of one client. Positions are those of the log; marks are ids, which rise with time."""

    def __init__(self) -> None:
        self._held: list[_Hold] = []
        self._changed = asyncio.Event()
        self.on_release: Callable[[], None] = lambda: None

    def take(self, position: int, mark: str) -> Callable[[], None]:
        """Holds back events above `position` and turns with an id above `mark`. Returns what ends
        the hold; calling that twice does nothing."""
        hold = _Hold(position, mark)
        self._held.append(hold)

        def release() -> None:
            if hold in self._held:
                self._held.remove(hold)
                self._changed.set()
                self._changed = asyncio.Event()
                self.on_release()

        return release

    @property
    def limit(self) -> int | None:
        """The last position that may be sent, or None when nothing is held."""
        return min((hold.position for hold in self._held), default=None)

    def covers(self, turn_id: str) -> bool:
        """Whether a turn may not be named yet."""
        return any(turn_id > hold.mark for hold in self._held)

    async def released(self) -> None:
        """Waits until some hold ends."""
        await self._changed.wait()

    async def until_told(self, turn_id: str) -> None:
        """Waits until a turn may be named."""
        while self.covers(turn_id):
            await self.released()
