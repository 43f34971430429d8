"""What a session is, told from its events alone."""

import re
from collections.abc import Iterable
from typing import Any, Final

import attrs
from attrs import frozen

from callboard_rpc.common import Effort, Mode, TextContent
from callboard_rpc.events import (
    AgentSpawned,
    ExternalOptions,
    MemberAdded,
    MemberRemoved,
    Message,
    ModeChanged,
    ModelChanged,
    RoomHostChanged,
    SessionArchived,
    SessionClosed,
    SessionCreated,
    SessionUnarchived,
    SessionUpdated,
)

from .offers import NO_OFFERS, Offers, offers_after

MAX_MEMBERS: Final = 32
"""Agents that may take part in one session."""
MAX_BUDGET: Final = 1000
"""The largest burst budget."""


@frozen(kw_only=True)
class Room:
    """Who takes part in a session, in the order in which they came, and who of them answers when nobody is
    addressed: `host`, else the first. `burst_budget` None is as configured."""

    members: tuple[str, ...] = ()
    host: str | None = None
    burst_budget: int | None = None

    def named(self, name: str) -> str | None:
        """The member that is called so, in whatever case."""
        wanted = name.casefold()
        return next((each for each in self.members if each.casefold() == wanted), None)

    def answers(self) -> str | None:
        """Who answers when nobody is addressed; None without members."""
        if self.host is not None and self.host in self.members:
            return self.host
        return self.members[0] if self.members else None


def room_after(room: Room, event: Any) -> Room:
    """A room after an event of its session."""
    match event:
        case MemberAdded(name=name) if room.named(name) is None:
            return attrs.evolve(room, members=(*room.members, name))
        case MemberRemoved(name=name):
            left = tuple(each for each in room.members if each != name)
            return attrs.evolve(room, members=left, host=None if room.host == name else room.host)
        case RoomHostChanged(name=name):
            return attrs.evolve(room, host=name)
        case SessionUpdated(changes=changes) if "burstBudget" in changes:
            return attrs.evolve(room, burst_budget=changes["burstBudget"])
        case _:
            return room


def room_of(created: SessionCreated) -> Room:
    """A session's room from its start."""
    return Room(members=created.members, host=created.host, burst_budget=created.burst_budget)


@frozen(kw_only=True)
class SessionState:
    """A session's settings and standing. A value: it never changes, a newer one replaces it."""

    session_id: str
    root_id: str
    cwd: str
    profile: str
    mode: Mode
    model: str | None = None
    title: str | None = None
    effort: Effort | None = None
    parent_id: str | None = None
    depth: int = 0
    directories: tuple[str, ...] = ()
    tools: frozenset[str] | None = None
    agent_name: str | None = None
    pinned: bool = False
    archived: bool = False
    closed: bool = False
    room: Room = Room()
    offers: Offers = NO_OFFERS

    @property
    def members(self) -> tuple[str, ...]:
        """The agents that take part, by their profiles; none where the session's own answers alone."""
        return self.room.members


_TITLE_CHARS = 72
_TAG = re.compile(r"<([a-z][a-z_-]{0,40})>")


def title_from(message: Message) -> str | None:
    """The title of a session that was given none: the first line of what a person said first."""
    if message.author.kind != "person":
        return None
    for block in message.content:
        if isinstance(block, TextContent) and (lines := _bare(block.text).splitlines()):
            title = " ".join(lines[0].split())
            return title if len(title) <= _TITLE_CHARS else title[: _TITLE_CHARS - 1] + "…"
    return None


def _bare(text: str) -> str:
    """A text without the tag that some clients put around what the person wrote."""
    text = text.strip()
    tag = _TAG.match(text)
    if tag is None or not text.endswith(f"</{tag[1]}>"):
        return text
    return text[tag.end() : -len(tag[1]) - 3].strip()


def created_by(event: Any) -> SessionCreated | None:
    """What a session is from the start, told by its first event; None for any other."""
    match event:
        case SessionCreated():
            return event
        case AgentSpawned(session=created):
            return created
        case _:
            return None


def name_of(event: Any) -> str | None:
    """What a session's agent is called by its parent, told by its first event."""
    return event.name if isinstance(event, AgentSpawned) else None


def narrowest(modes: Iterable[Mode]) -> Mode:
    """The mode that holds for a session whose own mode comes first, and those above it after it: what
    one of them may not do, it may not do either (coordination 50, interrupts-and-peers 77)."""
    mode: Mode = "work"
    for each in modes:
        mode = each if mode == "work" else mode
    return mode


def apply(state: SessionState | None, event: Any) -> SessionState | None:
    """The state after an event's data. Events before the session's creation say nothing."""
    created = created_by(event)
    if created is not None:
        return SessionState(
            session_id=created.session_id,
            root_id=created.root_id,
            cwd=created.cwd,
            profile=created.profile,
            mode=created.mode,
            model=created.model,
            title=created.title,
            parent_id=created.parent_id,
            depth=created.depth,
            directories=created.additional_directories,
            tools=None if created.tools is None else frozenset(created.tools),
            agent_name=name_of(event),
            room=room_of(created),
        )
    if state is None:
        return None
    match event:
        case Message() if state.title is None:
            return attrs.evolve(state, title=title_from(event))
        case SessionUpdated(changes=changes):
            known = {key: changes[key] for key in ("title", "pinned", "effort") if key in changes}
            return attrs.evolve(
                state,
                room=room_after(state.room, event),
                offers=offers_after(state.offers, event),
                **known,
            )
        case ExternalOptions():
            return attrs.evolve(state, offers=offers_after(state.offers, event))
        case ModeChanged(mode=mode):
            return attrs.evolve(state, mode=mode)
        case ModelChanged(model=model):
            return attrs.evolve(state, model=model)
        case SessionArchived():
            return attrs.evolve(state, archived=True)
        case SessionUnarchived():
            return attrs.evolve(state, archived=False)
        case SessionClosed():
            return attrs.evolve(state, closed=True)
        case MemberAdded() | MemberRemoved() | RoomHostChanged():
            return attrs.evolve(state, room=room_after(state.room, event))
        case _:
            return state


def replay(events: Iterable[Any]) -> SessionState | None:
    """The state after all of a session's events."""
    state: SessionState | None = None
    for event in events:
        state = apply(state, event)
    return state
