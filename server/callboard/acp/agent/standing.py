"""What is told of a session beside its conversation: title, mode, options, and what it has used."""

from collections.abc import AsyncIterator

from callboard_rpc.errors import CallboardError

from ...host import Host
from ...log.record import Record
from ...sessions.runner import turn_limits
from ..contract import updates
from . import options
from .texts import heading


def title_of(title: str | None) -> str | None:
    """A session's title as a client is told it."""
    return None if title is None else heading(title)


async def standing(
    host: Host, session_id: str, record: Record, told_title: str | None
) -> AsyncIterator[updates.SessionUpdate]:
    """What a record has changed of it. `told_title` is the title that the client knows."""
    match record.type:
        case "mode_changed":
            state = await host.cache.state(session_id)
            yield updates.CurrentModeUpdate(current_mode_id=state.mode)
            yield updates.ConfigOptionUpdate(
                config_options=await options.config_options(host, session_id)
            )
        case "model_changed":
            yield updates.ConfigOptionUpdate(
                config_options=await options.config_options(host, session_id)
            )
        case "external_options":
            yield updates.ConfigOptionUpdate(
                config_options=await options.config_options(host, session_id)
            )
        case "session_updated" if {"effort", "options"} & record.value.changes.keys():
            yield updates.ConfigOptionUpdate(
                config_options=await options.config_options(host, session_id)
            )
        case "message" | "session_updated":
            title = title_of((await host.cache.state(session_id)).title)
            if title != told_title and title is not None:
                yield updates.SessionInfoUpdate(title=title, updated_at=record.at)
        case "turn_finished":
            used = await usage(host, session_id)
            if used is not None:
                yield used
        case _:
            pass


async def as_it_stands(host: Host, session_id: str) -> AsyncIterator[updates.SessionUpdate]:
    """What a client is told of a session that it has opened again: its title, and what it has used."""
    session = await host.reading.session(session_id)
    title = title_of(session.title)
    if title is not None:
        yield updates.SessionInfoUpdate(title=title, updated_at=session.updated_at)
    used = await usage(host, session_id)
    if used is not None:
        yield used


async def usage(host: Host, session_id: str) -> updates.UsageUpdate | None:
    """How full the context is, and what the session has cost; None while nothing is known."""
    session = await host.reading.session(session_id)
    used = session.usage
    if used is None or used.context_tokens is None:
        return None
    settings = host.settings_for(session.cwd)
    window = settings.context.window_default
    try:
        model = await host.catalog.resolve(await host.model_of(session_id))
        window = model.card.context_window or window
    except CallboardError:
        pass  # it cannot be used any more; what it was asked is told all the same
    cost = None
    if used.cost is not None:
        cost = updates.Cost(amount=used.cost, currency=used.currency or "USD")
    return updates.UsageUpdate(used=used.context_tokens, size=window, cost=cost)


async def most_iterations(host: Host, session_id: str) -> int:
    """How many steps a turn of a session has."""
    state = await host.cache.state(session_id)
    settings = host.settings_for(state.cwd)
    profile = host.profiles_for(state.cwd).get(state.profile)
    return turn_limits(settings, profile.limits).iterations
