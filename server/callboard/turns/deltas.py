"""Text on its way to whoever watches: numbered, not stored, never waited for."""

from collections.abc import Callable
from typing import Literal, TypeAlias

from attrs import frozen

DeltaKind: TypeAlias = Literal["answer", "thought", "tool_output"]


@frozen
class Delta:
    """A piece of text. `index` counts from 0 per message and kind; for ``tool_output`` the message is
    the call's id."""

    session_id: str
    turn_id: str
    message_id: str
    kind: DeltaKind
    index: int
    text: str


Listener: TypeAlias = Callable[[Delta], None]


class Deltas:
    """Hands deltas to listeners, in order, on the loop."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Calls `listener` with each delta from now on. Returns what stops it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def publish(self, delta: Delta) -> None:
        for listener in self._listeners:
            listener(delta)


class Numbering:
    """Counts the deltas of one turn."""

    def __init__(self, deltas: Deltas, session_id: str, turn_id: str) -> None:
        self._deltas = deltas
        self._session_id = session_id
        self._turn_id = turn_id
        self._next: dict[tuple[str, DeltaKind], int] = {}

    def publish(self, message_id: str, kind: DeltaKind, text: str) -> None:
        index = self._next.get((message_id, kind), 0)
        self._next[message_id, kind] = index + 1
        self._deltas.publish(Delta(self._session_id, self._turn_id, message_id, kind, index, text))

    def reached(self, message_id: str) -> dict[str, int]:
        """The next index of each kind of a message."""
        return {kind: n for (message, kind), n in self._next.items() if message == message_id}
