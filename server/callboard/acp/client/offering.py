"""What an agent lets its session be set to, in the words of the contract. Pure.

It comes from the agent, so that it is bounded: what is too long is left out, and so is what comes after a certain size.
"""

from collections.abc import Iterable
from typing import Any, Final, cast

from attrs import field, frozen

from callboard_rpc.common import OptionValue, SessionOption

from ...sessions.offers import LONGEST, MOST
from ...tools.display import one_line
from ..contract import sessions

_MOST_VALUES: Final = 300
_DESCRIPTION_CHARS = 300
_ALL_CHARS = 32 * 1024
_SWITCH: Final = (OptionValue(value="true", name="On"), OptionValue(value="false", name="Off"))


@frozen(kw_only=True)
class Models:
    """The models of an agent that tells them apart from its options, as the protocol once had it."""

    current: str
    values: tuple[OptionValue, ...]


def models_of(answer: Any) -> Models | None:
    """Those in the answer that opens a session, as it came."""
    told = _fields(_fields(answer).get("models"))
    listed: Any = told.get("availableModels")
    current = told.get("currentModelId")
    if not isinstance(current, str) or not isinstance(listed, list):
        return None
    found = (_fields(each) for each in cast("list[Any]", listed)[:_MOST_VALUES])
    values = [
        value_of(each["modelId"], each.get("name"), each.get("description"))
        for each in found
        if _is_id(each.get("modelId"))
    ]
    return Models(current=current[:LONGEST], values=tuple(values))


def _fields(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _is_id(value: Any) -> bool:
    """Whether it can be named: what holds what cannot be shown would be told to terminals in errors and lists."""
    return (
        isinstance(value, str) and 0 < len(value) <= LONGEST and value == one_line(value, LONGEST)
    )


def value_of(value: str, name: Any, description: Any = None) -> OptionValue:
    told = one_line(description, _DESCRIPTION_CHARS) if isinstance(description, str) else None
    called = one_line(name, LONGEST) if isinstance(name, str) else ""
    return OptionValue(value=value, name=called or value, description=told or None)


@frozen
class Offering:
    """Collects options within the bounds, each once."""

    profile: str
    options: list[SessionOption] = field(factory=list[SessionOption])

    def add(
        self,
        option_id: str,
        name: str,
        value: str,
        values: Iterable[OptionValue],
        category: str | None,
        description: str | None = None,
    ) -> None:
        known = [each.option_id for each in self.options]
        if not _is_id(option_id) or option_id in known or len(known) >= MOST or not _is_id(value):
            return
        left = _ALL_CHARS - sum(_size(each) for each in self.options)
        kept: list[OptionValue] = []
        for each in values:
            if not _is_id(each.value):
                continue
            left -= len(each.value) + len(each.name) + len(each.description or "") + 40
            if left < 0 or len(kept) >= _MOST_VALUES:
                break
            kept.append(each)
        self.options.append(
            SessionOption(
                profile=self.profile,
                option_id=option_id,
                name=one_line(name, LONGEST) or option_id,
                value=value,
                values=tuple(kept),
                category=category if category in ("mode", "model", "thought_level") else None,
                description=None
                if description is None
                else one_line(description, _DESCRIPTION_CHARS) or None,
            )
        )

    def add_option(self, option: Any, value: str | None = None) -> None:
        """One of the protocol's options; `value` where another counts than the one that it has."""
        match option:
            case sessions.SessionConfigSelect():
                chosen = option.current_value if value is None else value
                values = values_of(option.options)
            case sessions.SessionConfigBoolean():
                chosen, values = "true" if option.current_value else "false", _SWITCH
            case _:
                return
        self.add(option.id, option.name, chosen, values, option.category, option.description)


def _size(option: SessionOption) -> int:
    return 600 + sum(
        len(v.value) + len(v.name) + len(v.description or "") + 40 for v in option.values
    )


def values_of(entries: Iterable[Any]) -> Iterable[OptionValue]:
    """The values of a select, without its groups."""
    for entry in entries:
        if isinstance(entry, sessions.SessionConfigSelectGroup):
            yield from values_of(entry.options)
        elif isinstance(entry, sessions.SessionConfigSelectOption):
            yield value_of(entry.value, entry.name, entry.description)
