"""What a prompt can begin with to have something done at once, without the agent: ``/compact`` and others."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from attrs import frozen

from callboard_rpc.common import Actor, Content, TextContent

from ...host import Host
from ..contract import updates
from . import options, standing

Run: TypeAlias = Callable[[Host, str, str, Actor], Awaitable[str]]
"""``(host, session_id, rest, by)``: does it, and says what was done."""


@frozen(kw_only=True)
class Command:
    description: str
    run: Run
    hint: str | None = None


async def _compact(host: Host, session_id: str, rest: str, by: Actor) -> str:
    record = await host.compacting.compact(session_id, by=by, instructions=rest or None)
    if record is None:
        return "There is too little to summarise yet."
    return "The conversation was summarised; the agent goes on from the summary."


async def _title(host: Host, session_id: str, rest: str, by: Actor) -> str:
    if not rest:
        title = (await host.cache.state(session_id)).title
        return f"The session is called {title!r}." if title else "The session has no title yet."
    await options.set_title(host, session_id, rest, by=by)
    return f"The session is called {(await host.cache.state(session_id)).title!r} now."


async def _mode(host: Host, session_id: str, rest: str, by: Actor) -> str:
    if not rest:
        return f"The mode is {(await host.cache.state(session_id)).mode}."
    mode = options.mode_named(rest.lower(), "/mode")
    await options.set_mode(host, session_id, mode, by=by)
    return f"The mode is {mode} now."


async def _model(host: Host, session_id: str, rest: str, by: Actor) -> str:
    if not rest:
        return f"The model is {await host.model_of(session_id)}."
    await options.set_model(host, session_id, rest, by=by)
    return f"The model is {rest} now."


async def _status(host: Host, session_id: str, _: str, __: Actor) -> str:
    session = await host.reading.session(session_id)
    lines = [
        f"Session: {session.session_id}" + (f" ({session.title})" if session.title else ""),
        f"Folder: {session.cwd}",
        f"Agent: {session.profile}, mode {session.mode}, model {await host.model_of(session_id)}",
        f"State: {session.status}, {session.queue_length} waiting, "
        f"{session.pending_approvals} approvals open",
    ]
    used = await standing.usage(host, session_id)
    if used is not None:
        lines.append(f"Context: {used.used} of {used.size} tokens")
        if used.cost is not None:
            lines.append(f"Cost: {used.cost.amount:.4f} {used.cost.currency}")
    return "\n".join(f"- {line}" for line in lines)


COMMANDS: Final[dict[str, Command]] = {
    "compact": Command(
        description="Summarise the conversation so far, to make room",
        hint="what the summary should keep",
        run=_compact,
    ),
    "status": Command(description="Show the session's model, mode and usage", run=_status),
    "mode": Command(description="Show or set the mode", hint="ask, plan or work", run=_mode),
    "model": Command(description="Show or set the model", hint="provider/name", run=_model),
    "title": Command(description="Show or set the session's title", hint="title", run=_title),
}


def available() -> updates.AvailableCommandsUpdate:
    return updates.AvailableCommandsUpdate(
        available_commands=tuple(
            updates.AvailableCommand(
                name=name,
                description=command.description,
                input=None
                if command.hint is None
                else updates.UnstructuredCommandInput(hint=command.hint),
            )
            for name, command in COMMANDS.items()
        )
    )


def asked_for(content: tuple[Content, ...]) -> tuple[Command, str] | None:
    """The command that a prompt begins with, and what follows its name. Anything but one text that begins
    with the name of a command is for the agent."""
    match content:
        case (TextContent(text=text),):
            word, _, rest = text.strip().partition(" ")
            command = COMMANDS.get(word[1:]) if word.startswith("/") else None
            return None if command is None else (command, rest.strip())
        case _:
            return None
