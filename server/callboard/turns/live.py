"""A turn that runs in this process, as others may touch it: stop it, tell it that something waits."""

import asyncio
import time
from collections.abc import Callable
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
    """The handle of a running turn. `touch` marks progress for the idle limit."""

    def __init__(self, grant: Grant, clock: Callable[[], float] = time.monotonic) -> None:
        self.grant = grant
        self.cause: Cause | None = None
        self.stopping = asyncio.Event()
        self.ended = asyncio.Event()
        self.steered = False
        self._clock = clock
        self.started = clock()
        self.last_progress = self.started

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

    def touch(self) -> None:
        self.last_progress = self._clock()

    def steer(self) -> None:
        """A person has said something to the running turn: calls that have not begun give way."""
        self.steered = True
