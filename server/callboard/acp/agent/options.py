"""A session's mode and model, as modes and as options of the editor's; always the same in both."""

import asyncio
from typing import Final, cast, get_args

from callboard_rpc.common import Actor, Effort, Mode, SessionOption
from callboard_rpc.errors import CallboardError
from callboard_rpc.server import ModelInfo

from ...host import Host
from ...rpc.pages import invalid
from ...sessions.state import SessionState
from ..contract.sessions import (
    SessionConfigOption,
    SessionConfigSelect,
    SessionConfigSelectOption,
    SessionMode,
    SessionModeState,
)

_MODES: Final[tuple[SessionMode, ...]] = (
    SessionMode(
        id="ask", name="Ask", description="Answers questions; reads, and changes and runs nothing."
    ),
    SessionMode(
        id="plan", name="Plan", description="Reads and makes a plan; changes and runs nothing."
    ),
    SessionMode(
        id="work",
        name="Work",
        description="Changes files and runs commands; asks where the policy says so.",
    ),
)
_AS_IT_IS: Final = "default"
_EFFORTS: Final[tuple[Effort, ...]] = get_args(Effort)
_LISTING_S: Final = 1.0
"""How long the list of models may take; a model server on this machine may not answer at once."""


async def modes(host: Host, session_id: str) -> SessionModeState:
    state = await host.cache.state(session_id)
    return SessionModeState(current_mode_id=state.mode, available_modes=_MODES)


async def config_options(host: Host, session_id: str) -> tuple[SessionConfigOption, ...]:
    state = await host.cache.state(session_id)
    theirs = tuple(_agents_option(each) for each in state.offers.shown())
    if not state.members and any(each.category == "model" for each in theirs):
        return (_mode_option(state), *theirs)
    return (
        _mode_option(state),
        await _model_option(host, session_id),
        _effort_option(state),
        *theirs,
    )


def _agents_option(option: SessionOption) -> SessionConfigSelect:
    """An option of an agent of another maker. Its own modes are beside Callboard's, and no modes of the session."""
    return SessionConfigSelect(
        id=f"{option.profile}/{option.option_id}",
        name=f"{option.name} ({option.profile})",
        description=option.description,
        category=None if option.category == "mode" else option.category,
        current_value=option.value,
        options=tuple(
            SessionConfigSelectOption(value=v.value, name=v.name, description=v.description)
            for v in option.values
        ),
    )


def _mode_option(state: SessionState) -> SessionConfigSelect:
    return SessionConfigSelect(
        id="mode",
        name="Mode",
        category="mode",
        current_value=state.mode,
        options=tuple(
            SessionConfigSelectOption(value=mode.id, name=mode.name, description=mode.description)
            for mode in _MODES
        ),
    )


def _effort_option(state: SessionState) -> SessionConfigSelect:
    return SessionConfigSelect(
        id="thought_level",
        name="Thought level",
        description="How much the model thinks before it answers, where it can be told.",
        category="thought_level",
        current_value=state.effort or _AS_IT_IS,
        options=(
            SessionConfigSelectOption(value=_AS_IT_IS, name="Default"),
            *(SessionConfigSelectOption(value=each, name=each.capitalize()) for each in _EFFORTS),
        ),
    )


async def _model_option(host: Host, session_id: str) -> SessionConfigSelect:
    current = await host.model_of(session_id)
    found = [info for info in await _listed(host) if info.available]
    choices = {
        info.model_id: SessionConfigSelectOption(
            value=info.model_id, name=info.model_id, description=info.source
        )
        for info in found
    }
    choices.setdefault(current, SessionConfigSelectOption(value=current, name=current))
    return SessionConfigSelect(
        id="model",
        name="Model",
        category="model",
        current_value=current,
        options=tuple(choices.values()),
    )


async def _listed(host: Host) -> tuple[ModelInfo, ...]:
    """The models that are known; none when they cannot be listed now."""
    try:
        async with asyncio.timeout(_LISTING_S):
            return await host.catalog.list()
    except (CallboardError, TimeoutError):
        return ()


def mode_named(mode_id: str, path: str) -> Mode:
    """Raises invalidParams."""
    if mode_id not in get_args(Mode):
        raise invalid(path, f"is no mode; there are {', '.join(get_args(Mode))}")
    return cast(Mode, mode_id)


async def set_option(
    host: Host, session_id: str, config_id: str, value: str | bool, *, by: Actor
) -> None:
    """Raises invalidParams for an option or a value that there is not, and what the catalogue has to say of a
    model."""
    match config_id, value:
        case "mode", str():
            await set_mode(host, session_id, mode_named(value, "$.value"), by=by)
        case "model", str():
            await set_model(host, session_id, value, by=by)
        case "thought_level", str():
            await set_effort(host, session_id, value, by=by)
        case (("mode" | "model" | "thought_level"), _):
            raise invalid("$.value", f"must be a text: {config_id} is a select")
        case _, str() if "/" in config_id:
            patch = await host.options_patch(session_id, {config_id: value})
            await host.sessions.update(session_id, by=by, options=patch)
        case _:
            raise invalid("$.configId", "is no option; there are mode, model, thought_level")


async def set_mode(host: Host, session_id: str, mode: Mode, *, by: Actor) -> None:
    await host.sessions.update(session_id, by=by, mode=mode)


async def set_model(host: Host, session_id: str, model: str, *, by: Actor) -> None:
    await host.catalog.resolve(model)
    await host.sessions.update(session_id, by=by, model=model)


async def set_effort(host: Host, session_id: str, effort: str, *, by: Actor) -> None:
    """Raises invalidParams."""
    if effort not in (_AS_IT_IS, *_EFFORTS):
        raise invalid("$.value", f"is none of {', '.join((_AS_IT_IS, *_EFFORTS))}")
    await host.sessions.update(session_id, by=by, effort=None if effort == _AS_IT_IS else effort)


async def set_title(host: Host, session_id: str, title: str | None, *, by: Actor) -> None:
    await host.sessions.update(session_id, by=by, title=title)
