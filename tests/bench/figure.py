"""One line of the table: what was measured, beside the floor of the same run and the budget."""

import statistics
from collections.abc import Callable, Sequence
from typing import Literal

from attrs import field, frozen

Unit = Literal["s", "ms", "/s", "MB", "%"]


@frozen(kw_only=True)
class Figure:
    """`ours` and `floor` are samples in `unit`. What the budget holds is their difference with
    `beyond_floor`, else ours alone; ``/s`` must be at least the target, all else at most.
    A figure without a target is for orientation."""

    name: str
    unit: Unit
    ours: Sequence[float]
    floor: Sequence[float] = ()
    target: float | None = None
    beyond_floor: bool = False
    note: str = ""

    @property
    def value(self) -> float:
        """What is held against the target."""
        middle = statistics.median(self.ours)
        return middle - statistics.median(self.floor) if self.beyond_floor else middle

    @property
    def met(self) -> bool | None:
        if self.target is None:
            return None
        return self.value >= self.target if self.unit == "/s" else self.value <= self.target

    def row(self) -> tuple[str, str, str, str, str, str]:
        """Name, ours, floor, against the floor, target, verdict."""
        against = ""
        if self.floor:
            against = (
                f"+{_number(self.value)}"
                if self.beyond_floor
                else f"x{statistics.median(self.ours) / max(statistics.median(self.floor), 1e-9):.2f}"
            )
        target = ""
        if self.target is not None:
            sign = ">=" if self.unit == "/s" else "<=+" if self.beyond_floor else "<="
            target = f"{sign} {_number(self.target)} {self.unit}"
        verdict = {None: "", True: "met", False: "NOT met"}[self.met]
        return (
            self.name,
            f"{_spread(self.ours)} {self.unit}",
            _spread(self.floor) if self.floor else "",
            against,
            target,
            verdict,
        )


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _spread(samples: Sequence[float]) -> str:
    middle = _number(statistics.median(samples))
    if len(samples) == 1:
        return middle
    return f"{middle} ({_number(min(samples))}-{_number(max(samples))})"


@frozen(kw_only=True)
class Topic:
    """Figures that are measured together. `measure` gets how thorough to be: 1 is usual."""

    name: str
    about: str
    measure: Callable[[float], list[Figure]] = field(repr=False)


def rounds(usual: int, thorough: float) -> int:
    """How many samples to take."""
    return max(3, round(usual * thorough))
