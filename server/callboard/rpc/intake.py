"""Frames between the reader thread and whoever deals with them: dealt with in order, a few at a time.

Every request that is let in adds an answer to the outbound queue. So while that is flooded, the rest
waits here, and behind that in the pipe: a client that only writes fills no memory. What it cancels
meanwhile is cancelled at once, and its end is heard at once.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import Any, Protocol

from attrs import frozen

from .framing import Item
from .lifecycle import EndReason
from .outbound import Outbound

logger = logging.getLogger("callboard.rpc")

MAX_IN_FLIGHT = 256
"""Requests of a client that may have no answer yet."""
_HELPING = 64


@frozen
class _Post:
    items: deque[Item]
    at_end: bool
    taken: Callable[[], None]


class Receiver(Protocol):
    """Who deals with what was read."""

    def receive(self, item: Item) -> Iterator[None]:
        """Acts on one thing that was read, on one message of it with each step."""
        ...

    def urge(self, item: Item) -> bool:
        """Looks at what has to wait for its turn: cancels what it cancels. Says whether it ends the
        conversation."""
        ...


class Intake:
    """Calls that were started get their turn between two helpings, so that a burst of quick requests is
    not taken for hundreds that are in flight, and nothing else on the loop waits for a flood.

    Args:
        outbound: where the answers go.
        spawn: starts a task that ends with the connection.
        end: called at the end of the input, when all before it was dealt with.
    """

    def __init__(
        self,
        receiver: Receiver,
        outbound: Outbound,
        *,
        spawn: Callable[[Callable[[], Coroutine[Any, Any, None]]], object],
        end: Callable[[EndReason], None],
    ) -> None:
        self._receiver = receiver
        self._outbound = outbound
        self._spawn = spawn
        self._end = end
        self._posts: deque[_Post] = deque()
        self._steps: Iterator[None] | None = None
        self._dealing = False
        self._paused = False
        self._held = False
        self._ends = False

    def put(self, items: Iterable[Item], at_end: bool, taken: Callable[[], None]) -> None:
        """Takes what was read; `at_end` says that nothing follows. `taken` is called once all of it was
        dealt with."""
        post = _Post(deque(items), at_end, taken)
        self._posts.append(post)
        self._ends = self._ends or at_end
        if self._held:
            self._urge(post)
        self._go_on()

    def pause(self) -> None:
        """Deals with nothing more until `resume`, not even with the rest of a batch."""
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._go_on()

    def _go_on(self) -> None:
        if not self._dealing:
            self._dealing = True
            self._deal()

    def _deal(self) -> None:
        helping = _HELPING
        while self._posts and not self._must_wait():
            if helping == 0:
                asyncio.get_running_loop().call_soon(self._deal)
                return
            helping -= 1
            self._step()
        self._dealing = False

    def _must_wait(self) -> bool:
        if self._paused:
            return True
        if self._ends or not self._outbound.flooded:
            return False
        if not self._held:
            self._held = True
            for post in self._posts:
                self._urge(post)
            self._spawn(self._until_drained)
        return not self._ends

    async def _until_drained(self) -> None:
        await self._outbound.drained.wait()
        self._held = False
        self._go_on()

    def _urge(self, post: _Post) -> None:
        """Whoever leaves reads no answers: then all that is left is dealt with as it came."""
        for item in post.items:
            self._ends = self._receiver.urge(item) or self._ends

    def _step(self) -> None:
        post = self._posts[0]
        if self._steps is None and not post.items:
            self._posts.popleft()
            post.taken()
            if post.at_end:
                self._end("eof")
            return
        try:
            if self._steps is None:
                self._steps = self._receiver.receive(post.items.popleft())
            next(self._steps)
        except StopIteration:
            self._steps = None
        except Exception:
            self._steps = None
            logger.exception("a message could not be dealt with")
