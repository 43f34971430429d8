"""Waiting for what sends no event that a test could hear, with a limit that fails instead of hanging."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(
    check: Callable[[], T],
    what: str,
    *,
    deadline_s: float,
    pause: Callable[[], object],
    told: Callable[[str], str] = str,
) -> T:
    """What `check` returns, as soon as that is true; `pause` lets some time pass between two looks.

    Fails after `deadline_s` with what `told` makes of the fault, which names `what` did not come.
    """
    ends = time.monotonic() + deadline_s
    while not (found := check()):
        if time.monotonic() > ends:
            raise AssertionError(told(f"not in {deadline_s:g} s: {what}"))
        pause()
    return found
