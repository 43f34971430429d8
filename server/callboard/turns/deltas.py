"""Text on its way to whoever watches: numbered, not stored, never waited for."""

from collections.abc import Callable
from typing import Literal, TypeAlias

from attrs import define, field, frozen

from ..log.record import Record
from ..log.redact import Redactor
from ..log.redact_stream import RedactedStream

DeltaKind: TypeAlias = Literal["answer", "thought", "tool_output"]


@frozen
class Delta:
    """A piece of text. `index` counts from 0 per message and kind; for ``tool_output`` the message is
    the call's id. Pieces of two segments are never joined: between them a draft was saved or read, and whoever
    has that goes on with the first piece behind it."""

    session_id: str
    turn_id: str
    message_id: str
    kind: DeltaKind
    index: int
    text: str
    segment: int = 0


Listener: TypeAlias = Callable[[Delta], None]


@frozen
class Said:
    """All that was passed on of a message that is not in the log. `following` says per kind which piece comes
    next."""

    message_id: str
    answer: str
    thought: str
    following: dict[str, int]


@define
class _Saying:
    """A message as it is passed on."""

    message_id: str
    answer: list[str] = field(factory=list[str])
    thought: list[str] = field(factory=list[str])


class Deltas:
    """Hands deltas to listeners, in order, on the loop. Who begins to listen asks what was `said` before, and
    misses nothing: both are of the same moment."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._turns: dict[str, Numbering] = {}
        """The turns of this process that have said something."""

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Calls `listener` with each delta from now on. Returns what stops it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def publish(self, delta: Delta) -> None:
        for listener in self._listeners:
            listener(delta)

    def said(self, turn_id: str) -> Said | None:
        """What a turn of this process has said of a message that is not in the log; None when it says nothing
        just now. A new segment begins with it."""
        numbering = self._turns.get(turn_id)
        return None if numbering is None else numbering.said()

    def committed(self, records: list[Record]) -> None:
        """Hears of commits: a message that is in the log is not being said any more."""
        for record in records:
            numbering = self._turns.get(record.turn_id or "")
            if numbering is not None and record.type in ("message", "tool_call"):
                numbering.committed(record.value.message_id)

    def begin(self, turn_id: str, numbering: "Numbering") -> None:
        self._turns[turn_id] = numbering

    def end(self, turn_id: str) -> None:
        self._turns.pop(turn_id, None)


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
        self._saying: _Saying | None = None
        self._closed = False

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
        if kind != "tool_output":
            self._keep(message_id, kind, text)
        segment = self._segments.get(message_id, 0)
        self._deltas.publish(
            Delta(self._session_id, self._turn_id, message_id, kind, index, text, segment)
        )

    def _keep(self, message_id: str, kind: DeltaKind, text: str) -> None:
        if self._saying is None or self._saying.message_id != message_id:
            self._saying = _Saying(message_id)
            if not self._closed:
                self._deltas.begin(self._turn_id, self)
        (self._saying.thought if kind == "thought" else self._saying.answer).append(text)

    def said(self) -> Said | None:
        """All that was passed on of the message that is being said."""
        saying = self._saying
        if saying is None:
            return None
        following = self.saved(saying.message_id)
        return Said(saying.message_id, "".join(saying.answer), "".join(saying.thought), following)

    def committed(self, message_id: str) -> None:
        if self._saying is not None and self._saying.message_id == message_id:
            self._saying = None

    def close(self) -> None:
        """The turn is over, whatever may still come of it."""
        self._closed = True
        self._deltas.end(self._turn_id)

    def saved(self, message_id: str) -> dict[str, int]:
        """A draft of the message is saved, or read, with all that came so far: the next index of each kind, at
        which a new segment begins."""
        self._segments[message_id] = self._segments.get(message_id, 0) + 1
        return {kind: n for (message, kind), n in self._next.items() if message == message_id}
