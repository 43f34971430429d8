"""The prompts of one session that this client waits for, and how each ends. No I/O.

A prompt ends with the turn that has taken it in. Until then it may be cancelled, dropped by somebody else, or
go with its session; what was cancelled ends as cancelled, whatever its turn came to.
"""

import asyncio
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from attrs import define, field

from callboard_rpc import events
from callboard_rpc.common import Failure

from ..contract.sessions import StopReason

Outcome: TypeAlias = StopReason | Failure

_STOP: Final[dict[str, StopReason]] = {"max_tokens": "max_tokens", "refusal": "refusal"}


def outcome_of(finished: events.TurnFinished, most_iterations: int) -> Outcome:
    """What the end of a turn is to a prompt. `most_iterations` is how many steps it had."""
    match finished.outcome:
        case "completed":
            stop = _STOP.get(finished.stop_reason or "")
            if stop is not None:
                return stop
            return "max_turn_requests" if finished.iterations > most_iterations else "end_turn"
        case "cancelled" | "interrupted":
            return "cancelled"
        case "failed" | "timed_out":
            error = finished.error
            if error is not None and error.kind == "budgetExceeded":
                return "max_tokens"
            return error or Failure(kind="internal", message="the turn failed")


@define(eq=False)
class Waiting:
    """One prompt. `key` is its ``clientMessageId`` in the log, `seq` its place there once it is known, and
    `turn_id` the turn that has it. `answered` is set once the client has its answer."""

    key: str
    outcome: "asyncio.Future[Outcome]"
    answered: asyncio.Event = field(factory=asyncio.Event)
    seq: int | None = None
    turn_id: str | None = None
    cancelled: bool = False
    is_command: bool = False
    """It is no prompt of the agent's, so that no turn ends it."""

    def call_off(self) -> None:
        """Whatever becomes of it, it ends as cancelled."""
        self.cancelled = True
        if self.is_command:
            self.end("cancelled")

    def end(self, outcome: Outcome) -> None:
        if not self.outcome.done():
            self.outcome.set_result("cancelled" if self.cancelled else outcome)


@define
class Prompts:
    """Those that have no end yet, in the order in which they came."""

    _open: dict[str, Waiting] = field(factory=dict[str, Waiting])
    _own: set[str] = field(factory=set[str])
    _next: asyncio.Event = field(factory=asyncio.Event)

    def add(self, key: str) -> Waiting:
        waiting = Waiting(key, asyncio.get_running_loop().create_future())
        self._open[key] = waiting
        self._own.add(key)
        return waiting

    @property
    def waits(self) -> bool:
        """Whether the client waits for what the agent says."""
        return any(not waiting.is_command for waiting in self)

    def goes_out(self) -> None:
        """A prompt goes to the agent: who waits for the `next` one goes on."""
        self._next.set()
        self._next = asyncio.Event()

    async def next(self) -> None:
        """Returns once another prompt goes to the agent."""
        await self._next.wait()

    def note_own(self, key: str) -> None:
        """A prompt of this client that it does not wait for."""
        self._own.add(key)

    def forget_own(self, key: str) -> None:
        """One that was not written after all."""
        self._own.discard(key)

    def remove(self, waiting: Waiting) -> None:
        self._open.pop(waiting.key, None)

    def is_own(self, key: str) -> bool:
        """Whether a prompt is one of this client, which need not be told of it."""
        return key in self._own

    def __iter__(self) -> Iterator[Waiting]:
        return iter(list(self._open.values()))

    def after(self, value: Any, seq: int, turn_id: str | None) -> None:
        """Learns from a record which prompt lies where, and which turn has it."""
        match value:
            case events.Message(client_message_id=str(key)) if key in self._open:
                self._open[key].seq = seq
            case events.Ack(admits=admits):
                for waiting in self:
                    if waiting.seq in admits:
                        waiting.turn_id = turn_id
            case _:
                pass

    def ending(self, value: Any) -> list[Waiting]:
        """Those that end with a record."""
        match value:
            case events.TurnFinished(turn_id=turn_id):
                return [w for w in self if w.turn_id == turn_id]
            case events.TriggersDropped(seqs=seqs):
                return [w for w in self if w.turn_id is None and w.seq in seqs]
            case events.SessionClosed() | events.SessionDeleted():
                return list(self)
            case _:
                return []
