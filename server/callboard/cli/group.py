"""``callboard group``: the task board of a session and its agents, looked at and driven by a person."""

import inspect
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Annotated, Any

import anyio
from cyclopts import App, Parameter
from rich.console import Group as Lines
from rich.live import Live

from callboard_client import Client, EventStream
from callboard_rpc.common import SessionId
from callboard_rpc.convert import unstructure
from callboard_rpc.events import Event, SessionDeleted
from callboard_rpc.streams import Scope

from .board import Board
from .exits import CommandError, Exit
from .group_commands import COMMANDS, OfSession
from .interrupts import Interrupts
from .naming import resolve_root
from .server import StoreOption, connect_existing
from .terminal import open_console, write_json_line

app = App(
    name="group",
    help="Show the task board of a session and its agents, and change it in the place of the session.",
    usage="Usage: callboard group SESSION [--follow] [--json]\n       callboard group SESSION COMMAND [ARGS]",
)


def _usage(command: Callable[..., Any]) -> str:
    """How a command is written: behind the session, where the parser has it before."""
    wanted = [
        each.name.upper()
        for each in inspect.signature(command).parameters.values()
        if each.kind is each.POSITIONAL_ONLY
    ]
    return " ".join(
        ("Usage: callboard group", wanted[0], command.__name__, "[OPTIONS]", *wanted[1:])
    )


for _command in COMMANDS:
    app.command(_command, usage=_usage(_command))
_VERBS = frozenset(command.__name__ for command in COMMANDS)

_CHANGES = (
    "agent_group_created",
    "agent_group_member_joined",
    "group_task_created",
    "group_task_claimed",
    "group_task_released",
    "group_task_status_changed",
    "agent_spawned",
    "agent_status_changed",
    "agent_report_created",
    "agent_interrupted",
    "agent_close_requested",
    "agent_closed",
    "session_closed",
    "session_updated",
    "session_deleted",
)
"""Events after which a board may look different."""
_TOGETHER_S = 0.05
"""What happens within so long of a change is shown with it."""


def verb_first(arguments: Sequence[str]) -> Sequence[str]:
    """``group SESSION claim TASK`` as the parser has it: the command, then what it is about."""
    match arguments:
        case ["group", session, verb, *rest] if verb in _VERBS and session not in _VERBS:
            return ["group", verb, session, *rest]
        case _:
            return arguments


# --- the board --------------------------------------------------------------------------------------


@app.default
async def board(
    session: OfSession,
    /,
    *more: Annotated[str, Parameter(show=False)],
    follow: Annotated[bool, Parameter(name=["--follow", "-f"], negative=())] = False,
    json: Annotated[bool, Parameter(negative=())] = False,
    store: StoreOption | None = None,
) -> int:
    """Show the tasks of a session and its agents: who has them, what they wait for, what is in the way.

    Parameters
    ----------
    follow
        Show the board again whenever it changes, until Ctrl-C.
    json
        The group as `group/get` tells it, one JSON object a line.
    """
    if more:
        raise _unknown(more[0])
    if not follow:
        async with connect_existing(store, name="group") as client:
            await _show(client, (await resolve_root(client, session)).session_id, json=json)
        return Exit.OK
    interrupts = Interrupts()
    async with anyio.create_task_group() as tasks:
        await tasks.start(interrupts.watch)
        interrupts.scope = tasks.cancel_scope
        async with connect_existing(store, name="group") as client:
            await _follow(client, (await resolve_root(client, session)).session_id, json=json)
        tasks.cancel_scope.cancel()
    return Exit.OK


def _unknown(word: str) -> CommandError:
    if word in _VERBS:
        return CommandError(
            f"{word!r} stands right behind the session: callboard group SESSION {word} …",
            exit=Exit.USAGE,
        )
    return CommandError(
        f"there is no command 'group SESSION {word}'",
        exit=Exit.USAGE,
        hint="`callboard group --help` lists those that there are.",
    )


async def _read(client: Client, root_id: SessionId) -> Board:
    found = await client.groups.get(root_id)
    tasks = [] if found.group is None else [t async for t in client.groups.tasks(root_id, "all")]
    session = (await client.sessions.get(root_id)).session
    return Board(session=session, group=found.group, tasks=tuple(tasks))


async def _show(client: Client, root_id: SessionId, *, json: bool) -> None:
    if json:
        write_json_line(unstructure(await client.groups.get(root_id)))
        return
    console = open_console()
    for each in (await _read(client, root_id)).lines():
        console.print(each, soft_wrap=True)


async def _follow(client: Client, root_id: SessionId, *, json: bool) -> None:
    """Ends when the session is deleted. Raises when the server ends."""
    scope = Scope(kind="tree", id=root_id)
    console = open_console()
    # subscribed before the first look, so that nothing is missed in between
    async with client.events(scope, deltas=False, types=_CHANGES) as stream:
        if json or not console.is_terminal:
            async for _ in _looks(stream, root_id):
                await _show(client, root_id, json=json)
                if not json:
                    console.print()
            return
        with Live(console=console, auto_refresh=False) as live:
            async for _ in _looks(stream, root_id):
                board = await _read(client, root_id)
                live.update(Lines(*board.lines(console.height - 1)), refresh=True)


async def _looks(stream: EventStream, root_id: SessionId) -> AsyncGenerator[None]:
    """A turn for each look at the board: at once, and whenever something has happened to it, until the
    session is gone. What happens together is one look."""
    yield
    while True:
        item, _ = await stream.receive()
        seen = [item]
        with anyio.move_on_after(_TOGETHER_S):
            while True:
                item, _ = await stream.receive()
                seen.append(item)
        events = [each for each in seen if isinstance(each, Event)]
        if any(isinstance(e.data, SessionDeleted) and e.session_id == root_id for e in events):
            return
        if events:
            yield
