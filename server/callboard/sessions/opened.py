"""Which sessions somebody works with through this process: made, looked at live, or prompted here.

What comes for such a session from outside (a message of a linked session) is this process' to take up, though
nobody has run it here yet (interrupts-and-peers 46).
"""

from collections.abc import Callable


class OpenedSessions:
    """Knows them from their first use on, for as long as the process lives."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._listeners: list[Callable[[str], None]] = []

    def __contains__(self, session_id: str) -> bool:
        return session_id in self._ids

    def ids(self) -> frozenset[str]:
        return frozenset(self._ids)

    def listen(self, listener: Callable[[str], None]) -> None:
        """Calls `listener`, on the loop, with each session that is opened from here on."""
        self._listeners.append(listener)

    def note(self, session_id: str) -> None:
        """The session is used here; the first time it is told."""
        if session_id in self._ids:
            return
        self._ids.add(session_id)
        for listener in self._listeners:
            listener(session_id)

    def forget(self, session_id: str) -> None:
        """The session is no more."""
        self._ids.discard(session_id)
