"""What editors of this process offer to the sessions that they have open: their files, their terminals."""

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Offered(Generic[T]):
    """One kind of it, by session; where several editors offer it, that of the last that came."""

    def __init__(self) -> None:
        self._of: dict[str, list[T]] = {}

    def add(self, session_id: str, offered: T) -> Callable[[], None]:
        """An editor has opened a session. Returns what takes it back."""
        self._of.setdefault(session_id, []).append(offered)

        def remove() -> None:
            left = self._of.get(session_id, [])
            if offered in left:
                left.remove(offered)
            if not left:
                self._of.pop(session_id, None)

        return remove

    def of(self, *session_ids: str) -> T | None:
        """What is offered to the first of these sessions to which anything is."""
        for session_id in session_ids:
            if found := self._of.get(session_id):
                return found[-1]
        return None
