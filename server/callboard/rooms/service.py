"""Who takes part in a session: the transactions and readings behind ``session/members*``, and whom a prompt
addresses."""

from collections.abc import Callable, Sequence
from typing import Any

from attrs import frozen

from callboard_rpc.common import Actor, Content
from callboard_rpc.convert import unstructure
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import MemberAdded, MemberRemoved, RoomHostChanged
from callboard_rpc.rooms import Burst, Member
from callboard_rpc.rooms import Room as RoomShown

from ..config import Settings
from ..log.faults import no_session
from ..log.log import Log
from ..log.text import quoted
from ..log.transaction import Transaction
from ..sessions.answering import Addressed, Addressing
from ..sessions.profiles import ProfileBook
from ..sessions.projection import SQL as SESSION_SQL
from ..sessions.projection import find_room
from ..sessions.reading import Reading, refuse_unless_open
from ..sessions.state import MAX_MEMBERS, Room
from .mentions import mentioned, mentions, shown
from .projection import burst_of
from .rosters import WantedRoom, room_for
from .routing import words_of


@frozen(kw_only=True)
class Rooms:
    """The rooms of one store, as one host serves them. `budget` is the configured one."""

    log: Log
    reading: Reading
    profiles: Callable[[str], ProfileBook]
    budget: int

    # --- a new session ---

    def planned(
        self, cwd: str, wanted: WantedRoom, profile: str | None, settings: Settings
    ) -> tuple[Room, str | None]:
        """The room of a new session in `cwd`, and the profile that is the session's own: the one that was named,
        else who answers when nobody is addressed; None without either. Raises what `room_for` does."""
        room = room_for(wanted, profile, settings.rooms, self.profiles(cwd))
        return room, profile or room.answers()

    # --- who takes part ---

    async def room(self, session_id: str) -> RoomShown:
        """Raises sessionNotFound."""
        session = await self.reading.session(session_id)
        book = self.profiles(session.cwd)
        room = find_room(self.log.glance, session_id)
        used = burst_of(self.log.glance, session_id)
        budget = self.budget if room.burst_budget is None else room.burst_budget
        return RoomShown(
            members=tuple(
                _member(book, name, is_host=name == room.answers()) for name in room.members
            ),
            host=room.host,
            burst=Burst(used=used, budget=budget, exhausted=used >= budget),
        )

    async def add(self, session_id: str, name: str, *, host: bool, by: Actor) -> None:
        """Lets the profile `name` take part. Whoever was alone in the session until now takes part, too, as the
        first: who was there stays. Doing it twice writes nothing.

        Raises sessionNotFound, sessionClosed, sessionArchived, rootOnly, profileNotFound, limitReached.
        """
        session = await self.reading.session(session_id)
        book = self.profiles(session.cwd)

        def commit(tx: Transaction) -> None:
            profile = _must_be_open(tx, session_id)
            room = find_room(tx.all, session_id)
            there = room.named(name)
            if there is None:
                added = [book.get(name).name]
                first = book.profiles.get(profile)
                alone = not room.members and first is not None and first.error is None
                if alone and profile.casefold() != name.casefold():
                    added.insert(0, profile)
                if len(room.members) + len(added) > MAX_MEMBERS:
                    raise CallboardError(
                        "limitReached",
                        f"{len(room.members)} agents take part in session {session_id}, and no more than "
                        f"{MAX_MEMBERS} may; remove one that is not needed",
                    )
                for each in added:
                    tx.append(session_id, MemberAdded(name=each), actor=by)
                there = added[-1]
            if host and room.host != there:
                tx.append(session_id, RoomHostChanged(name=there), actor=by)
            tx.decided(session_id=session_id)

        await self.log.transact(commit)

    async def remove(self, session_id: str, name: str, *, by: Actor) -> None:
        """Ends a member's part; the host's ends its being one. What waits for it is for whoever answers then.
        One that takes no part stays away. Raises sessionNotFound, sessionClosed, sessionArchived, rootOnly."""

        def commit(tx: Transaction) -> None:
            _must_be_open(tx, session_id)
            there = find_room(tx.all, session_id).named(name)
            if there is not None:
                tx.append(session_id, MemberRemoved(name=there), actor=by)
            tx.decided(session_id=session_id)

        await self.log.transact(commit)

    # --- prompts ---

    def addressing(self, content: Sequence[Content], to: str | None) -> Addressing:
        """Whom a prompt of a person is for: `to`, or whom it mentions.

        Refuses (notAMember) a `to` that takes no part, in a room and elsewhere. A mention of nobody falls through,
        with a warning. A steer for one agent never ends up in another one's turn: it waits for one of its own.
        """
        text = words_of([unstructure(block) for block in content])

        def addressed(tx: Transaction, session_id: str, running: str | None) -> Addressed:
            room = find_room(tx.all, session_id)
            if not room.members:
                return Addressed(to=None if to is None else _alone(tx, session_id, to))
            if to is not None:
                named = room.named(to)
                if named is None:
                    raise _no_member(session_id, to, room.members)
                return Addressed(to=named, joins=_runs(tx, running, named))
            named = mentioned(text, room.members)
            if named is not None:
                return Addressed(joins=_runs(tx, running, named))
            return Addressed(warning=_stranger(text, room))

        return addressed


def _member(book: ProfileBook, name: str, *, is_host: bool) -> Member:
    profile = book.profiles.get(name)
    if profile is None:
        about = f"there is no profile {name!r} in this folder any more"
        return Member(name=name, description=about, is_host=is_host, available=False)
    return Member(
        name=name,
        description=profile.info().description,
        is_host=is_host,
        available=profile.error is None,
    )


def _must_be_open(tx: Transaction, session_id: str) -> str:
    """The session's own profile. Raises sessionNotFound, sessionClosed, sessionArchived, rootOnly."""
    row = tx.one(SESSION_SQL["session_place"], session_id)
    if row is None:
        raise no_session(session_id)
    closed, archived, root_id, depth = row
    refuse_unless_open(session_id, closed=bool(closed), archived=bool(archived))
    if depth:
        raise CallboardError(
            "rootOnly",
            f"session {session_id} is an agent's, which its parent has started alone; add members to {root_id}",
        )
    room: Any = tx.one(SESSION_SQL["room"], session_id)
    return room[3]


def _alone(tx: Transaction, session_id: str, to: str) -> str:
    """The name of the one agent of a session, if `to` means it. Raises sessionNotFound, notAMember."""
    row: Any = tx.one(SESSION_SQL["room"], session_id)
    if row is None:
        raise no_session(session_id)
    profile: str = row[3]
    if to.casefold() != profile.casefold():
        raise _no_member(session_id, to, (profile,))
    return profile


def _no_member(session_id: str, to: str, members: Sequence[str]) -> CallboardError:
    return CallboardError(
        "notAMember",
        f"the profile {quoted(to)} takes no part in session {session_id}; there are: {', '.join(members)} "
        "(session/memberAdd adds another one)",
    )


def _runs(tx: Transaction, turn_id: str | None, name: str) -> bool:
    """Whether the turn is that agent's."""
    return turn_id is not None and tx.value(SESSION_SQL["profile_of_turn"], turn_id) == name


def _stranger(text: str, room: Room) -> str | None:
    """What is to be said of a mention that reaches nobody."""
    token = next(mentions(text), None)
    if token is None:
        return None
    return (
        f"@{shown(token)} takes no part in this session, so {room.answers()} answers; there are: "
        f"{', '.join(room.members)}"
    )
