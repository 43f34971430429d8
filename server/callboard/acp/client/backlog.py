"""What was told and not dealt with yet: as many as may wait, by number and by bytes."""

from collections import deque
from typing import Any

from attrs import define, field


@define
class Backlog:
    """The newest of what came; the oldest go where there is no room."""

    most: int
    most_bytes: int
    bytes: int = 0
    _held: deque[tuple[Any, int]] = field(factory=deque[tuple[Any, int]])

    def add(self, update: Any, size: int) -> None:
        self._held.append((update, size))
        self.bytes += size
        while self._held and (len(self._held) > self.most or self.bytes > self.most_bytes):
            self.bytes -= self._held.popleft()[1]

    def take(self) -> list[tuple[Any, int]]:
        """All of it, and forgets it."""
        held, self._held, self.bytes = list(self._held), deque(), 0
        return held
