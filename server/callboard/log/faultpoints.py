"""Places at which a test can have this process killed, to show that nothing is lost there.

``CALLBOARD_FAULT=NAME[:NTH]`` in the environment of the process kills it with SIGKILL when it passes the
point NAME for the NTH time (the first by default). Nothing else can: no setting of any file is that
variable, and it is taken out of the environment at once, so that no child has it. Without it a point is
a call that does nothing.

Every commit is three points by itself, named after whoever wrote its transaction function:
``turns.reserve.deciding`` (written, not committed), ``.committed`` (and nobody told), ``.told`` (and
those who waited have taken their next step).
"""

import os
import signal
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

VARIABLE = "CALLBOARD_FAULT"

Stage: TypeAlias = Literal["deciding", "committed", "told"]


def _pass_on(name: str) -> None:
    """Does nothing: no test wants anything of this process."""


class _Armed:
    """Kills this process at the wanted passing of the wanted point."""

    def __init__(self, wanted: str) -> None:
        self.want(wanted)

    def want(self, wanted: str) -> None:
        """``NAME[:NTH]``."""
        self._name, _, nth = wanted.partition(":")
        self._left = int(nth or 1)

    def __call__(self, name: str) -> None:
        if name != self._name:
            return
        self._left -= 1
        if self._left == 0:
            os.write(2, f"killed at {name}\n".encode())
            os.kill(os.getpid(), signal.SIGKILL)


_wanted = os.environ.pop(VARIABLE, "")
ARMED = bool(_wanted)
point: Callable[[str], None] = _Armed(_wanted) if ARMED else _pass_on
"""``point("turns.call_ran")``: here a test may end this process."""


def commit_name(function: Callable[..., Any]) -> str:
    """What the commit of a transaction function is called: its folder, and the function or method
    in which it was written."""
    folder = function.__module__.split(".")[-2:][0]
    written_in = function.__qualname__.partition(".<locals>")[0].rpartition(".")[2]
    return f"{folder}.{written_in.lstrip('_')}"


def commits(names: set[str], stage: Stage) -> None:
    """Passes a point of each of the commits that share a transaction."""
    for name in names:
        point(f"{name}.{stage}")
