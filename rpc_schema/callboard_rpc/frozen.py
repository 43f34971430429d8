"""`frozen`: a value object, as `attrs.frozen` makes it, for classes of which there are hundreds.

For each class attrs writes the text of its methods and compiles it, at every start of every process: half
of what a command line waits for before it does anything. ``__init__`` is called all the time and is worth
it; ``repr``, ``==`` and ``hash`` need no code of their own.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

import attrs

_Class = TypeVar("_Class")


@dataclass_transform(frozen_default=True, field_specifiers=(attrs.field,))
def frozen(*, kw_only: bool) -> Callable[[type[_Class]], type[_Class]]:
    """Slots, no changes, and equal to another of its class with equal fields."""

    def finished(cls: type[_Class]) -> type[_Class]:
        built: Any = attrs.frozen(cls, kw_only=kw_only, repr=False, eq=False)
        names = tuple(field.name for field in attrs.fields(built))
        values: Callable[[Any], Any] = attrgetter(*names) if names else _nothing

        def __repr__(self: object) -> str:
            fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
            return f"{built.__qualname__}({fields})"

        def __eq__(self: object, other: object) -> bool:
            return values(self) == values(other) if type(other) is type(self) else NotImplemented

        def __hash__(self: object) -> int:
            return hash((built, values(self)))

        built.__repr__, built.__eq__, built.__hash__ = __repr__, __eq__, __hash__
        return built

    return finished


def _nothing(_: object) -> tuple[()]:
    return ()
