"""How long to wait before the next attempt."""

import random
from collections.abc import Callable, Iterator

from attrs import field, frozen

_random = random.SystemRandom()


@frozen(kw_only=True)
class Backoff:
    """Delays in seconds that double from `first_s` up to `most_s`, at most `attempts` of them.

    Each is drawn from between half and the whole of its bound, so that many clients of a store
    do not come back at the same instant. `draw` gives a number in [0, 1).
    """

    first_s: float = 0.1
    most_s: float = 5.0
    attempts: int = 8
    draw: Callable[[], float] = field(default=_random.random)

    def delays(self) -> Iterator[float]:
        bound = self.first_s
        for _ in range(self.attempts):
            yield bound * (0.5 + self.draw() / 2)
            bound = min(bound * 2, self.most_s)
