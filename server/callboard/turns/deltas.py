"""Text on its way to whoever watches: numbered, not stored, never waited for."""

from collections.abc import Callable
from typing import Literal, TypeAlias

from attrs import frozen

from ..log.redact import Redactor
from ..log.redact_stream import RedactedStream

DeltaKind: TypeAlias = Literal["answer", "thought", "tool_output"]


@frozen
class Delta:
    """A piece of text. `index` counts from 0 per message and kind; for ``tool_output`` the message is
    the call's id. Pieces of two segments are never joined: between them a draft was saved, and whoever has
    that goes on with the first piece behind it."""

    session_id: str
    turn_id: str
    message_id: str
    kind: DeltaKind
    index: int
    text: str
    segment: int = 0


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
    """Counts the deltas of one turn, and keeps secrets out of them, also such as stream in pieces."""

    def __init__(
        self, deltas: Deltas, session_id: str, turn_id: str, *, redactor: Redactor
    ) -> None:
        self._deltas = deltas
        self._session_id = session_id
        self._turn_id = turn_id
        self._redactor = redactor
        self._streams: dict[tuple[str, DeltaKind], RedactedStream] = {}
        self._next: dict[tuple[str, DeltaKind], int] = {}
        self._segments: dict[str, int] = {}

    def publish(self, message_id: str, kind: DeltaKind, text: str) -> str:
        """Passes on `text`, and returns what of all that came so far was passed on with it: the end
        waits when it may be the beginning of a secret."""
        stream = self._streams.get((message_id, kind))
        if stream is None:
            stream = self._streams[message_id, kind] = RedactedStream(self._redactor)
        clean = stream.feed(text)
        self._send(message_id, kind, clean)
        return clean

    def finish(self, message_id: str) -> None:
        """No more text comes for the message or call: what waited is passed on."""
        for key in [key for key in self._streams if key[0] == message_id]:
            self._send(*key, self._streams.pop(key).end())

    def _send(self, message_id: str, kind: DeltaKind, text: str) -> None:
        if not text:
            return
        index = self._next.get((message_id, kind), 0)
        self._next[message_id, kind] = index + 1
        segment = self._segments.get(message_id, 0)
        self._deltas.publish(
            Delta(self._session_id, self._turn_id, message_id, kind, index, text, segment)
        )

    def saved(self, message_id: str) -> dict[str, int]:
        """A draft of the message is saved with all that came so far: the next index of each kind, at which a
        new segment begins."""
        self._segments[message_id] = self._segments.get(message_id, 0) + 1
        return {kind: n for (message, kind), n in self._next.items() if message == message_id}
