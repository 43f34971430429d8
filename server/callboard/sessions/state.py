"""What a session is, told from its events alone."""

from collections.abc import Iterable
from typing import Any

import attrs
from attrs import frozen

from callboard_rpc.common import Mode, TextContent
from callboard_rpc.events import (
    Message,
    ModeChanged,
    ModelChanged,
    SessionArchived,
    SessionClosed,
    SessionCreated,
    SessionUnarchived,
    SessionUpdated,
)


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
    parent_id: str | None = None
    depth: int = 0
    directories: tuple[str, ...] = ()
    pinned: bool = False
    archived: bool = False
    closed: bool = False


_TITLE_CHARS = 72


def title_from(message: Message) -> str | None:
    """The title of a session that was given none: the first line of what a person said first."""
    if message.author.kind != "person":
        return None
    for block in message.content:
        if isinstance(block, TextContent) and (lines := block.text.strip().splitlines()):
            title = " ".join(lines[0].split())
            return title if len(title) <= _TITLE_CHARS else title[: _TITLE_CHARS - 1] + "…"
    return None


def apply(state: SessionState | None, event: Any) -> SessionState | None:
    """The state after an event's data. Events before the session's creation say nothing."""
    if isinstance(event, SessionCreated):
        return SessionState(
            session_id=event.session_id,
            root_id=event.root_id,
            cwd=event.cwd,
            profile=event.profile,
            mode=event.mode,
            model=event.model,
            title=event.title,
            parent_id=event.parent_id,
            depth=event.depth,
            directories=event.additional_directories,
        )
    if state is None:
        return None
    match event:
        case Message() if state.title is None:
            return attrs.evolve(state, title=title_from(event))
        case SessionUpdated(changes=changes):
            known = {key: changes[key] for key in ("title", "pinned") if key in changes}
            return attrs.evolve(state, **known)
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
        case _:
            return state


def replay(events: Iterable[Any]) -> SessionState | None:
    """The state after all of a session's events."""
    state: SessionState | None = None
    for event in events:
        state = apply(state, event)
    return state
