"""``callboard members``: who takes part in a session; and what ``run`` is told of that."""

from typing import Annotated, Literal

from cyclopts import Parameter

from callboard_client import NewRoom
from callboard_rpc.convert import unstructure
from callboard_rpc.rooms import Room, RoomResult
from callboard_rpc.sessions import Session

from .exits import CommandError, Exit
from .naming import resolve
from .server import StoreOption, connect_existing
from .terminal import line, open_console, write_json_line

Verb = Literal["add", "remove"]


async def members(
    session: str,
    verb: Verb | None = None,
    name: str | None = None,
    /,
    *,
    host: Annotated[bool, Parameter(negative=())] = False,
    json: Annotated[bool, Parameter(negative=())] = False,
    store: StoreOption | None = None,
) -> int:
    """Show the agents of a session, add one, or remove one.

    An agent of several answers when it is addressed, as @name; who is not addressed by name is the first, or the
    host. `callboard members SESSION` shows them; `callboard members SESSION add NAME` and `… remove NAME` change
    who takes part.

    Parameters
    ----------
    session
        Its id, or the beginning of it.
    verb
        `add` or `remove`.
    name
        The agent, by its profile's name.
    host
        With `add`: it answers when nobody is addressed.
    json
        The room as `session/members` tells it, as a line of JSON.
    """
    if (verb is None) != (name is None):
        raise CommandError(
            f"say whom to {verb}: callboard members SESSION {verb} NAME", exit=Exit.USAGE
        )
    if host and verb != "add":
        raise CommandError("--host goes with add: members SESSION add NAME --host", exit=Exit.USAGE)
    async with connect_existing(store, name="members") as client:
        found = await resolve(client, session)
        session_id = found.session_id
        if verb == "add" and name is not None:
            result = await client.rooms.add(session_id, name, host=host)
        elif verb == "remove" and name is not None:
            result = await client.rooms.remove(session_id, name)
            there = {each.casefold() for each in found.members}
            if not json and name.casefold() not in there:
                open_console(stderr=True).print(line(f"{name} took no part"), soft_wrap=True)
        else:
            result = await client.rooms.get(session_id)
    _show(found, result, json=json)
    return Exit.OK


def _show(session: Session, result: RoomResult, *, json: bool) -> None:
    if json:
        write_json_line(unstructure(result.room))
        return
    console = open_console()
    room = result.room
    if not room.members:
        console.print(line(session.profile, (" answers alone", "dim")), soft_wrap=True)
        return
    width = max(len(member.name) for member in room.members)
    for member in room.members:
        answers = " (answers when nobody is addressed)" if member.is_host else ""
        console.print(
            line(
                (member.name.ljust(width), "bold" if member.available else "red"),
                (f"  {member.description}", "dim" if member.available else "red"),
                (answers, "cyan"),
            ),
            soft_wrap=True,
        )
    console.print(_burst(room), soft_wrap=True)


def _burst(room: Room) -> object:
    burst = room.burst
    said = f"{burst.used} of {burst.budget} messages of agents since the last one of a person"
    if burst.exhausted:
        return line((f"{said}; a mention wakes nobody until a person writes", "yellow"))
    return line((said, "dim"))


def new_room(
    member: list[str] | None, roster: str | None, host: str | None, *, goes_on: bool
) -> NewRoom | None:
    """Who is to take part in the session of a `run`. Raises `CommandError` for what does not go together."""
    if member is None and roster is None and host is None:
        return None
    if goes_on:
        raise CommandError(
            "--member, --roster and --host are for a new session",
            exit=Exit.USAGE,
            hint="`callboard members SESSION add NAME` adds one to a session that there is.",
        )
    if member is not None and roster is not None:
        raise CommandError("--member and --roster exclude each other", exit=Exit.USAGE)
    return NewRoom(members=None if member is None else tuple(member), roster=roster, host=host)


def agent_of(room: NewRoom | None) -> str | None:
    """The agent that answers a prompt that addresses nobody, as far as the command line tells."""
    if room is None:
        return None
    return room.host or (room.members[0] if room.members else None)
