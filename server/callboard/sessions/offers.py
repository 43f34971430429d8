"""What agents that are programs of their own let a session set: their models, modes and other options, as they have told,
and what a person wants of it. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import attrs
from attrs import frozen

from callboard_rpc.common import SessionOption
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import ExternalOptions, SessionUpdated

from ..tools.display import one_line

Values: TypeAlias = Mapping[str, str]

MOST: Final = 50
"""How many options a session may have set."""
LONGEST: Final = 200
"""Characters of an option's id, and of a value."""
_LISTED = 40


@frozen(kw_only=True)
class Offers:
    """By agent (profile): what it has told, and what was set."""

    told: Mapping[str, tuple[SessionOption, ...]]
    wanted: Mapping[str, Values]

    def shown(self) -> tuple[SessionOption, ...]:
        """As clients see it: what was set counts, also before the agent has heard of it."""
        return tuple(
            attrs.evolve(each, value=self.wanted.get(profile, {}).get(each.option_id, each.value))
            for profile, options in self.told.items()
            for each in options
        )


NO_OFFERS: Final = Offers(told={}, wanted={})


def offers_after(offers: Offers, event: Any) -> Offers:
    """After an event of the session. What an agent has changed by itself, as its own commands do, is wanted then."""
    match event:
        case ExternalOptions(profile=profile, options=options):
            before = {each.option_id: each.value for each in offers.told.get(profile, ())}
            wanted = dict(offers.wanted.get(profile, {}))
            for each in options:
                changed = each.option_id in before and before[each.option_id] != each.value
                if changed and each.option_id in wanted:
                    wanted[each.option_id] = each.value
            return Offers(
                told={**offers.told, profile: options}, wanted={**offers.wanted, profile: wanted}
            )
        case SessionUpdated(changes=changes) if "options" in changes:
            return attrs.evolve(offers, wanted=_patched(offers.wanted, changes["options"]))
        case _:
            return offers


def _patched(wanted: Mapping[str, Values], patch: Mapping[str, Any]) -> Mapping[str, Values]:
    after = dict(wanted)
    for profile, values in patch.items():
        kept = {**after.get(profile, {}), **values}
        after[profile] = {key: value for key, value in kept.items() if value is not None}
    return after


def patch_of(
    offers: Offers, agents: Sequence[str], options: Mapping[str, Any]
) -> dict[str, dict[str, str | None]]:
    """What `options` set, by agent: an option by its id, or as ``AGENT/ID`` where several agents have one of that id.
    `agents` are those of the session that have options of their own. One that has not told yet has whatever it is
    asked for. Raises invalidParams that names what there is."""
    patch: dict[str, dict[str, str | None]] = {}
    if len(options) > MOST:
        raise _invalid("$.options", f"are more than {MOST}")
    for key, value in options.items():
        path = f"$.options.{key[:LONGEST]}"
        if not agents:
            raise _invalid(path, "is not there: no agent of this session has options of its own")
        if not key or len(key) > 2 * LONGEST:
            raise _invalid("$.options", f"has an id that is empty or over {2 * LONGEST} characters")
        if value is not None and (not isinstance(value, str) or len(value) > LONGEST):
            raise _invalid(path, f"must be a text of at most {LONGEST} characters, or null")
        profile, option_id = _named(offers, agents, key, path)
        _must_be_offered(offers.told.get(profile), profile, option_id, value, path)
        patch.setdefault(profile, {})[option_id] = value
    return patch


def _named(offers: Offers, agents: Sequence[str], key: str, path: str) -> tuple[str, str]:
    """The agent and the option that a key means."""
    profile, slash, option_id = key.partition("/")
    if slash and profile in agents and option_id:
        return profile, option_id
    having = [each for each in agents if any(o.option_id == key for o in offers.told.get(each, ()))]
    if not having:
        having = [each for each in agents if each not in offers.told]
    if len(having) > 1:
        named = ", ".join(f"{each}/{key}" for each in having)
        raise _invalid(path, f"may be one of several agents'; say which: {named}")
    return (having or list(agents))[0], key


def _must_be_offered(
    told: Sequence[SessionOption] | None, profile: str, option_id: str, value: str | None, path: str
) -> None:
    if told is None or value is None:
        return
    option = next((each for each in told if each.option_id == option_id), None)
    if option is None:
        raise _invalid(path, f"is no option of {profile!r}; {has_options(told)}")
    if value not in [each.value for each in option.values]:
        raise _invalid(path, f"cannot be {value!r}; {has_values(option)}")


def has_options(told: Sequence[SessionOption]) -> str:
    """What an agent has, as the end of a sentence."""
    return "it has " + (", ".join(one_line(each.option_id) for each in told[:_LISTED]) or "none")


def has_values(option: SessionOption) -> str:
    more = ", …" if len(option.values) > _LISTED else ""
    return (
        "it can be "
        + (", ".join(one_line(v.value) for v in option.values[:_LISTED]) or "nothing")
        + more
    )


def _invalid(path: str, message: str) -> CallboardError:
    return CallboardError(
        "invalidParams", f"{path} {message}", data={"errors": [{"path": path, "message": message}]}
    )
