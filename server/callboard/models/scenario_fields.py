"""Reads single values of a scenario file, each with the place where it stands for errors."""

from collections.abc import Callable
from typing import TypeVar, cast

from attrs import evolve, frozen

from callboard.models.scenario import ScenarioError

T = TypeVar("T")


@frozen(kw_only=True)
class Place:
    """Where in a file a value stands, for errors."""

    file: str
    where: str = ""

    def at(self, part: str) -> "Place":
        joined = ", ".join(each for each in (self.where, part) if each)
        return evolve(self, where=joined)

    def error(self, problem: str) -> ScenarioError:
        return ScenarioError(self.file, self.where, problem)


def optional(
    place: "Place", fields: dict[str, object], name: str, read: Callable[["Place", object], T]
) -> T | None:
    return read(place.at(name), fields[name]) if name in fields else None


def as_mapping(place: "Place", value: object, allowed: tuple[str, ...] | None) -> dict[str, object]:
    if not isinstance(value, dict):
        raise place.error("must be a mapping of names to values")
    fields = cast("dict[object, object]", value)
    for name in fields:
        if not isinstance(name, str):
            raise place.error("has a name that is not text; put it in quotes")
        if allowed is not None and name not in allowed:
            raise place.at(name[:60]).error(f"is not known here; known are {', '.join(allowed)}")
    return cast("dict[str, object]", fields)


def as_list(place: "Place", value: object) -> list[object]:
    if not isinstance(value, list):
        raise place.error("must be a list")
    return cast("list[object]", value)


def as_text(place: "Place", value: object) -> str:
    if not isinstance(value, str):
        raise place.error("must be text; put it in quotes")
    return value


def as_whole(place: "Place", value: object, least: int = 0) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise place.error(f"must be a whole number, {least} or more")
    return value


def as_number(place: "Place", value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1e9:
        raise place.error("must be a number, 0 or more")
    return value
