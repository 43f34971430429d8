"""A turn that runs in this process, as others may touch it: stop it, tell it that something waits."""

import asyncio
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Literal

from attrs import frozen

from callboard_rpc.common import Actor, TurnOutcome

from .reservation import Grant


@frozen(kw_only=True)
class Cause:
    """Why a turn is stopped from outside, and what it will be called."""

    outcome: Literal["cancelled", "timed_out", "interrupted"]
    by: Actor
    reason: str


_PRECEDENCE: dict[TurnOutcome, int] = {"cancelled": 1, "interrupted": 2, "timed_out": 3}


class LiveTurn:
    """The handle of a running turn. `touch` marks progress for the idle limit.

    `supervised` is set by the task that will see to the turn's end.
    """

    def __init__(self, grant: Grant, clock: Callable[[], float] = time.monotonic) -> None:
        self.grant = grant
        self.cause: Cause | None = None
        self.stopping = asyncio.Event()
        self.ended = asyncio.Event()
        self.supervised = False
        self._steered_at = 0
        self._taken_in = 0
        self._clock = clock
        self.started = clock()
        self._last_progress = self.started
        self._asking = 0
        self._asked_since = 0.0
        self._asked_s = 0.0

    @property
    def session_id(self) -> str:
        return self.grant.session_id

    @property
    def turn_id(self) -> str:
        return self.grant.turn_id

    def stop(self, cause: Cause) -> None:
        """Stops the turn. A time limit's label beats a concurrent cancel (execution 45); a second
        cancel changes nothing."""
        if self.cause is None or _PRECEDENCE[cause.outcome] > _PRECEDENCE[self.cause.outcome]:
            self.cause = cause
        self.stopping.set()

    # --- time ---

    def touch(self) -> None:
        self._last_progress = self._clock()

    @contextmanager
    def asking(self) -> Generator[None]:
        """While a person is asked the turn neither idles nor works: that time is theirs."""
        if self._asking == 0:
            self._asked_since = self._clock()
        self._asking += 1
        try:
            yield
        finally:
            self._asking -= 1
            if self._asking == 0:
                self._asked_s += self._clock() - self._asked_since
            self.touch()

    @property
    def idle_s(self) -> float:
        """Seconds since anything of the turn moved."""
        return 0.0 if self._asking else self._clock() - self._last_progress

    @property
    def worked_s(self) -> float:
        """Seconds since the turn began, without those in which a person was asked."""
        asked = self._asked_s + (self._clock() - self._asked_since if self._asking else 0.0)
        return self.elapsed_s - asked

    @property
    def elapsed_s(self) -> float:
        return self._clock() - self.started

    # --- steering ---

    def steer(self, seq: int) -> None:
        """A person has said something to the running turn: calls that have not begun give way."""
        self._steered_at = max(self._steered_at, seq)

    def took_in(self, seq: int) -> None:
        """The context holds all that was said up to `seq`."""
        self._taken_in = max(self._taken_in, seq)

    def nothing_waits(self) -> None:
        """What was said, if anything was, was taken in or dropped: nothing gives way to it any more."""
        self._taken_in = self._steered_at

    @property
    def steered(self) -> bool:
        """Whether something was said that the next request does not hold yet."""
        return self._steered_at > self._taken_in
