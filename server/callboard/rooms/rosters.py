"""Who takes part in a new room, told from what was asked for and what the configuration says: pure."""

import logging
from collections.abc import Sequence
from typing import Any, cast

from attrs import frozen

from callboard_rpc.errors import CallboardError

from ..config.settings import RoomSettings
from ..log.text import quoted
from ..sessions.profiles import ProfileBook
from ..sessions.state import MAX_BUDGET, MAX_MEMBERS, Room

_log = logging.getLogger(__name__)


@frozen(kw_only=True)
class WantedRoom:
    """What a client asks for; None is what the configuration says, no members are none at all."""

    members: tuple[str, ...] | None = None
    roster: str | None = None
    host: str | None = None
    burst_budget: int | None = None


@frozen(kw_only=True)
class Roster:
    """A list of agents that the configuration names."""

    members: tuple[str, ...]
    host: str | None = None


def room_for(
    wanted: WantedRoom, profile: str | None, settings: RoomSettings, book: ProfileBook
) -> Room:
    """The room of a new session, without members where it is to be an ordinary one. `profile` is the session's,
    if one was named.

    Raises profileNotFound, and invalidParams for what is no room: nothing is made then.
    """
    checked_budget(wanted.burst_budget)
    room = _members(wanted, profile, settings, book)
    host = room.host
    if wanted.host is not None:
        host = room.named(wanted.host)
        if host is None:
            taking_part = ", ".join(room.members) or "nobody"
            raise _invalid(
                "host",
                f"the host {quoted(wanted.host)} is not among the members; there are: {taking_part}",
            )
    return Room(members=room.members, host=host, burst_budget=wanted.burst_budget)


def _members(
    wanted: WantedRoom, profile: str | None, settings: RoomSettings, book: ProfileBook
) -> Room:
    if wanted.members is not None:
        if wanted.roster is not None:
            raise _invalid("roster", "is given beside members; give the one or the other")
        return Room(members=_each_usable(wanted.members, book))
    if wanted.roster is not None:
        room = _attached(wanted.roster, settings, book)
        if not room.members:
            raise CallboardError(
                "profileNotFound",
                f"none of the roster {wanted.roster!r} can be used in this folder; there are: "
                f"{', '.join(_usable(book))}",
            )
        return room
    if settings.roster is not None and profile is None:
        return _attached(settings.roster, settings, book)
    return Room()


def checked_budget(budget: int | None) -> None:
    """Raises invalidParams."""
    if budget is not None and not 0 <= budget <= MAX_BUDGET:
        raise _invalid("burstBudget", f"must be from 0 to {MAX_BUDGET}, is {budget}")


def _each_usable(names: Sequence[str], book: ProfileBook) -> tuple[str, ...]:
    if len(names) > MAX_MEMBERS:
        raise _invalid("members", f"has {len(names)} agents; {MAX_MEMBERS} may take part")
    seen: set[str] = set()
    for name in names:
        book.get(name)
        if name.casefold() in seen:
            raise _invalid("members", f"names {name!r} twice; an agent takes part once")
        seen.add(name.casefold())
    return tuple(names)


# --- rosters ------------------------------------------------------------------------------------------


def _attached(name: str, settings: RoomSettings, book: ProfileBook) -> Room:
    """The room of a roster: those of it that can be used here, and its host if it is one of them."""
    roster = roster_of(name, settings)
    members: list[str] = []
    for each in roster.members:
        found = book.profiles.get(each)
        if found is None or found.error is not None:
            _log.warning(
                "rooms.rosters.%s: the agent %r cannot be used here, and takes no part",
                name,
                each[:80],
            )
        else:
            members.append(each)
    room = Room(members=tuple(members))
    return Room(members=room.members, host=None if roster.host is None else room.named(roster.host))


def roster_of(name: str, settings: RoomSettings) -> Roster:
    """A roster of the configuration. Raises invalidParams, which names those that there are, or what is wrong
    with this one."""
    table: Any = settings.rosters.get(name)
    if table is None:
        known = ", ".join(sorted(settings.rosters)) or "none (rooms.rosters)"
        raise _invalid("roster", f"there is no roster {quoted(name)}; there are: {known}")
    fields = cast("dict[str, Any]", table)
    unknown = sorted(fields.keys() - {"members", "host"})
    if unknown:
        raise _wrong(
            name, f"the field {quoted(unknown[0])} is none of a roster; there are members, host"
        )
    members, host = fields.get("members"), fields.get("host")
    if not isinstance(members, list) or not all(
        isinstance(each, str) and each for each in cast("list[Any]", members)
    ):
        raise _wrong(name, "members must be a list of names of agents")
    names = tuple(cast("list[str]", members))
    folded = {each.casefold() for each in names}
    if len(folded) < len(names):
        raise _wrong(name, "names an agent twice")
    if len(names) > MAX_MEMBERS:
        raise _wrong(name, f"has {len(names)} agents; {MAX_MEMBERS} may take part")
    if host is not None and (not isinstance(host, str) or host.casefold() not in folded):
        raise _wrong(name, "host must be one of the members")
    return Roster(members=names, host=host)


def _usable(book: ProfileBook) -> list[str]:
    return sorted(profile.name for profile in book.profiles.values() if profile.error is None)


def _wrong(name: str, what: str) -> CallboardError:
    return _invalid(
        "roster", f"the roster {quoted(name)} of the configuration (rooms.rosters): {what}"
    )


def _invalid(field: str, message: str) -> CallboardError:
    return CallboardError(
        "invalidParams",
        f"{field}: {message}",
        data={"errors": [{"path": f"$.{field}", "message": message}]},
    )
