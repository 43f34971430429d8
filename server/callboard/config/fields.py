"""How a setting is declared: a default, what it means, and what may be given for it.

Each helper returns an attrs field; its `Kind` in the metadata is what the loader checks values by.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias, cast

import attrs
from attrs import frozen

KIND: Final = "callboard.kind"


class Unfit(ValueError):
    """The value is not what the setting takes; the text says what is. `rest` is what of it can be taken
    all the same, None when nothing can."""

    def __init__(self, message: str, *, rest: Any = None) -> None:
        super().__init__(message)
        self.rest = rest


Parse: TypeAlias = Callable[[Any], Any]


@frozen(kw_only=True)
class Kind:
    """What a setting takes. `parse` gives the value from JSON or TOML, `from_text` from a variable
    of the environment; both raise `Unfit`."""

    doc: str
    parse: Parse
    from_text: Parse
    secret: bool = False
    open_table: bool = False
    """The keys below this one are the user's own (names of tools, of providers), not settings."""
    show: Parse | None = None
    """The value as ``config/get`` may tell it, where that is not the value itself."""


def kind_of(attribute: "attrs.Attribute[Any]") -> Kind | None:
    """The kind of a setting; None for a group of settings."""
    return cast("Kind | None", attribute.metadata.get(KIND))


def setting(default: Any, kind: Kind, *, factory: bool = False) -> Any:
    """The attrs field of a setting."""
    if factory:
        return attrs.field(factory=default, metadata={KIND: kind})
    return attrs.field(default=default, metadata={KIND: kind})


def _is(expected: str, value: Any) -> Unfit:
    shown = str(value).lower() if isinstance(value, bool) else repr(value)
    return Unfit(f"expected {expected}, found {shown if len(shown) <= 60 else shown[:57] + '...'}")


def _range(minimum: float | None, maximum: float | None) -> str:
    if minimum is not None and maximum is not None:
        return f" from {minimum:,} to {maximum:,}"
    if minimum is not None:
        return f" of at least {minimum:,}"
    return "" if maximum is None else f" of at most {maximum:,}"


def integer(
    default: int, doc: str, *, minimum: int = 0, maximum: int | None = None, unit: str = ""
) -> int:
    """A whole number."""
    expected = f"a whole number{_range(minimum, maximum)}{f' ({unit})' if unit else ''}"

    def parse(value: Any) -> int:
        if type(value) is not int or value < minimum or (maximum is not None and value > maximum):
            raise _is(expected, value)
        return value

    def from_text(text: str) -> int:
        try:
            return parse(int(text.replace("_", "")))
        except ValueError:
            raise _is(expected, text) from None

    return cast("int", setting(default, Kind(doc=doc, parse=parse, from_text=from_text)))


def _number(
    default: float | None, doc: str, minimum: float, maximum: float | None, unit: str
) -> Any:
    limits = _range(minimum, maximum)
    expected = f"a number{limits}{f' ({unit})' if unit else ''}"

    def parse(value: Any) -> float:
        if type(value) not in (int, float) or not value >= minimum or value == float("inf"):
            raise _is(expected, value)
        if maximum is not None and value > maximum:
            raise _is(expected, value)
        return float(value)

    def from_text(text: str) -> float:
        try:
            return parse(float(text))
        except ValueError:
            raise _is(expected, text) from None

    return setting(default, Kind(doc=doc, parse=parse, from_text=from_text))


def number(
    default: float, doc: str, *, minimum: float = 0, maximum: float | None = None, unit: str = ""
) -> float:
    """A number; a whole one is taken, too."""
    return cast("float", _number(default, doc, minimum, maximum, unit))


def optional_number(
    doc: str, *, minimum: float = 0, maximum: float | None = None, unit: str = ""
) -> float | None:
    """A number, absent unless given."""
    return cast("float | None", _number(None, doc, minimum, maximum, unit))


def optional_text(doc: str) -> str | None:
    """Text that is not blank, absent unless given."""

    def parse(value: Any) -> str:
        if not isinstance(value, str) or not value.strip() or "\0" in value:
            raise _is("text that is not blank", value)
        return value.strip()

    return cast("str | None", setting(None, Kind(doc=doc, parse=parse, from_text=parse)))


def choice(default: str, doc: str, choices: tuple[str, ...]) -> Any:
    """One of `choices`."""

    def parse(value: Any) -> str:
        if not isinstance(value, str) or value not in choices:
            raise _is("one of " + ", ".join(choices), value)
        return value

    return setting(
        default, Kind(doc=doc, parse=parse, from_text=lambda text: parse(text.strip().lower()))
    )


def names(
    default: tuple[str, ...], doc: str, *, known: tuple[str, ...] | None = None
) -> tuple[str, ...]:
    """A list of words; in the environment separated by commas. `known` are the only ones taken."""
    expected = "a list of " + ("names" if known is None else "some of " + ", ".join(known))

    def parse(value: Any) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise _is(expected, value)
        items = cast("list[Any]", value)
        for item in items:
            if not isinstance(item, str) or not item.strip():
                raise _is(expected, item)
        given = tuple(dict.fromkeys(item.strip() for item in items))
        unknown = () if known is None else tuple(item for item in given if item not in known)
        if known is not None and unknown:
            raise _unknown(unknown, known, tuple(item for item in given if item in known))
        return given

    def from_text(text: str) -> tuple[str, ...]:
        return parse([part for part in text.replace(" ", ",").split(",") if part])

    kind = Kind(doc=doc, parse=parse, from_text=from_text)
    return cast("tuple[str, ...]", setting(default, kind))


def _unknown(unknown: tuple[str, ...], known: tuple[str, ...], rest: tuple[str, ...]) -> Unfit:
    """Some words of a list are none that can be taken; the others count."""
    words = "; ".join(f"there is no {_quoted(word)}{did_you_mean(word, known)}" for word in unknown)
    stop = "" if words.endswith("?") else "."
    used = f"used: {', '.join(rest)}" if rest else "nothing of this list is used"
    return Unfit(f"{words}{stop} Expected some of {', '.join(known)}; {used}", rest=rest or None)


def _quoted(word: str) -> str:
    return repr(word if len(word) <= 60 else word[:57] + "...")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The known name that is most like `name`, as the end of a sentence; empty when none is."""
    import difflib

    close = difflib.get_close_matches(name, tuple(known), n=1, cutoff=0.7)
    return f"; did you mean {close[0]}?" if close else ""


def choices_by_name(doc: str, choices: tuple[str, ...]) -> Mapping[str, Any]:
    """A table of names, each with one of `choices`; in the environment ``name=choice,name=choice``."""
    expected = "a table of names, each with one of " + ", ".join(choices)

    def parse(value: Any) -> dict[str, str]:
        if not isinstance(value, dict):
            raise _is(expected, value)
        table = cast("dict[str, Any]", value)
        for name, item in table.items():
            if not isinstance(item, str) or item not in choices:
                raise Unfit(f"{name}: {_is('one of ' + ', '.join(choices), item)}")
        return cast("dict[str, str]", dict(table))

    def from_text(text: str) -> dict[str, str]:
        pairs: dict[str, Any] = {}
        for part in text.split(","):
            name, equals, item = part.rpartition("=")
            if part.strip():
                if not equals:
                    raise _is(f"{expected}, written name=choice", text)
                pairs[name.strip()] = item.strip()
        return parse(pairs)

    kind = Kind(doc=doc, parse=parse, from_text=from_text, open_table=True)
    return cast("Mapping[str, Any]", setting(dict, kind, factory=True))


def tables(doc: str) -> Mapping[str, Any]:
    """A table of tables that a higher floor understands. Not settable from the environment.

    What was found is never quoted: it may be a key in the wrong place.
    """

    def parse(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Unfit("expected a table of tables")
        table = cast("dict[str, Any]", value)
        for name, item in table.items():
            if not isinstance(item, dict):
                raise Unfit(f"{name}: expected a table")
        return table

    def from_text(text: str) -> dict[str, Any]:
        raise Unfit("cannot be given in the environment; use config.toml")

    kind = Kind(doc=doc, parse=parse, from_text=from_text, open_table=True)
    return cast("Mapping[str, Any]", setting(dict, kind, factory=True))
