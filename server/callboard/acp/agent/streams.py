"""What streams while a turn runs: what waits to be sent, and what of each message was sent already.

A stream is heard only by the process that runs the turn, and perhaps from its middle on; the log has all of
it in the end. So of every message it is known how much was sent, and its commit brings the rest. What waits
is bounded: of a message that is too far ahead of its client the commit brings the rest, too. No I/O.
"""

from collections import deque
from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

from attrs import define, field

from callboard_rpc.common import TextContent, Thinking
from callboard_rpc.events import Message

from ...turns.deltas import Delta

Spoken: TypeAlias = Literal["answer", "thought"]

_MOST_WAITING: Final = 256 * 1024
"""Characters of one message that may wait."""
_OUTPUT_CHARS: Final = 16 * 1024
"""How much of the end of a running command's output is shown."""


@define
class Piece:
    """Text of one message that waits. `mark` is the last position of the session's log that was known when
    it came: what is up to there goes first."""

    mark: int
    turn_id: str
    message_id: str
    kind: Spoken
    texts: list[str] = field(factory=list[str])

    @property
    def text(self) -> str:
        return "".join(self.texts)


@define
class _Stream:
    """One kind of one message, of which so many `chars` were sent; with a `hole` nothing of it is streamed
    any more."""

    turn_id: str
    chars: int = 0
    next: int = 0
    waiting: int = 0
    hole: bool = False


@define
class _Output:
    turn_id: str
    next: int = 0
    tail: str = ""
    fresh: str = ""
    passed_over: int = 0
    dirty: bool = False
    hole: bool = False


@define
class Printed:
    """What a running command has printed: the end of all of it, and what of that is new."""

    call_id: str
    tail: str
    fresh: str


@define
class Streams:
    """The streams of one session."""

    _pieces: deque[Piece] = field(factory=deque[Piece])
    _streams: dict[tuple[str, Spoken], _Stream] = field(factory=dict[tuple[str, Spoken], _Stream])
    _outputs: dict[str, _Output] = field(factory=dict[str, _Output])
    _early: list[tuple[Delta, int]] | None = None
    """What was heard while it was not known yet how much had been said before."""
    _early_chars: int = 0

    def hold(self) -> None:
        """Keeps what streams until it is told by `began`, or by `began_nothing`, what was said before."""
        self._early = []

    def take(self, delta: Delta, mark: int) -> None:
        """A piece that streams; `mark` as in `Piece`."""
        if self._early is not None:
            self._early_chars += len(delta.text)
            # The first piece that is left out is a hole, as for one that is too far ahead.
            if self._early_chars <= _MOST_WAITING:
                self._early.append((delta, mark))
            return
        if delta.kind == "tool_output":
            self._take_output(delta)
            return
        stream = self._streams.setdefault((delta.message_id, delta.kind), _Stream(delta.turn_id))
        if delta.index != stream.next or stream.waiting + len(delta.text) > _MOST_WAITING:
            stream.hole = True
        if stream.hole:
            return
        stream.next += 1
        stream.waiting += len(delta.text)
        last = self._pieces[-1] if self._pieces else None
        if (
            last is None
            or (last.message_id, last.kind) != (delta.message_id, delta.kind)
            or last.mark != mark
        ):
            last = Piece(mark, delta.turn_id, delta.message_id, delta.kind)
            self._pieces.append(last)
        last.texts.append(delta.text)

    def _take_output(self, delta: Delta) -> None:
        output = self._outputs.setdefault(delta.message_id, _Output(delta.turn_id))
        output.hole = output.hole or delta.index != output.next
        if output.hole:
            return
        output.next += 1
        output.tail = (output.tail + delta.text)[-_OUTPUT_CHARS:]
        fresh = output.fresh + delta.text
        output.fresh = fresh[-_OUTPUT_CHARS:]
        output.passed_over += len(fresh) - len(output.fresh)
        output.dirty = True

    def due(self, position: int) -> Iterator[Piece]:
        """What may go now that all up to `position` was sent; it counts as sent."""
        while self._pieces and self._pieces[0].mark <= position:
            piece = self._pieces.popleft()
            stream = self._streams.get((piece.message_id, piece.kind))
            if stream is not None:
                stream.waiting -= len(piece.text)
                stream.chars += len(piece.text)
            yield piece

    @property
    def waits(self) -> bool:
        """Whether text waits."""
        return bool(self._pieces)

    @property
    def has_output(self) -> bool:
        """Whether a command has printed something that was not shown."""
        return any(output.dirty for output in self._outputs.values())

    def outputs(self) -> list[Printed]:
        """The calls whose output has grown."""
        grown = [call_id for call_id, output in self._outputs.items() if output.dirty]
        return [self._printed(call_id) for call_id in grown]

    def output(self, call_id: str) -> Printed | None:
        """What a call has printed that was not shown; None where not all was heard that it printed."""
        output = self._outputs.get(call_id)
        if output is None:
            return Printed(call_id, "", "")
        return None if output.hole else self._printed(call_id)

    def _printed(self, call_id: str) -> Printed:
        output = self._outputs[call_id]
        note = (
            f"\n[… {output.passed_over} characters passed over …]\n" if output.passed_over else ""
        )
        printed = Printed(call_id, output.tail, note + output.fresh)
        output.fresh, output.passed_over, output.dirty = "", 0, False
        return printed

    def began(
        self, turn_id: str, message_id: str, answer: str, thought: str, following: dict[str, int]
    ) -> None:
        """A message had begun before anything of it was heard: so much of it was sent from its draft, and
        `following` are the indexes that come next. What was held meanwhile goes on from there."""
        kinds: tuple[tuple[Spoken, str], ...] = (("answer", answer), ("thought", thought))
        for kind, text in kinds:
            self._streams[message_id, kind] = _Stream(
                turn_id, chars=len(text), next=following.get(kind, 0)
            )
        self._let_go(message_id, following)

    def began_nothing(self) -> None:
        """No message had begun before it was heard."""
        self._let_go("", {})

    def _let_go(self, message_id: str, following: dict[str, int]) -> None:
        early, self._early = self._early or [], None
        for delta, mark in early:
            if delta.message_id != message_id or delta.index >= following.get(delta.kind, 0):
                self.take(delta, mark)

    def rest(self, message: Message) -> list[tuple[Spoken, str]]:
        """What of a message that is in the log now was not sent, in its order; nothing of it streams any
        more."""
        kinds: list[tuple[Spoken, str]] = []
        for block in message.content:
            if isinstance(block, TextContent):
                kinds.append(("answer", block.text))
            elif isinstance(block, Thinking):
                kinds.append(("thought", block.text))
        self._pieces = deque(p for p in self._pieces if p.message_id != message.message_id)
        left: dict[Spoken, int] = {}
        names: tuple[Spoken, ...] = ("answer", "thought")
        for name in names:
            stream = self._streams.pop((message.message_id, name), None)
            left[name] = 0 if stream is None else stream.chars
        out: list[tuple[Spoken, str]] = []
        for kind, text in kinds:
            skipped = min(left[kind], len(text))
            left[kind] -= skipped
            if skipped < len(text):
                out.append((kind, text[skipped:]))
        return out

    def call_over(self, call_id: str) -> None:
        """A call has its result; what it printed is shown with that."""
        self._outputs.pop(call_id, None)

    def turn_over(self, turn_id: str) -> None:
        """Nothing of a turn streams any more, whatever of it never came into the log."""
        self._pieces = deque(p for p in self._pieces if p.turn_id != turn_id)
        self._streams = {k: s for k, s in self._streams.items() if s.turn_id != turn_id}
        self._outputs = {k: o for k, o in self._outputs.items() if o.turn_id != turn_id}
