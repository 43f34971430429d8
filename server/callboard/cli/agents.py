"""``callboard agents``: the agents below a session, and what their parent can do, done by a person."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated

import anyio
from cyclopts import App, Parameter
from rich.live import Live

from callboard_client import Client
from callboard_rpc.agents import Agent, AgentInterruptResult
from callboard_rpc.common import AskId, SessionId
from callboard_rpc.convert import unstructure
from callboard_rpc.events import InterruptKind
from callboard_rpc.server import ClientCapabilities
from callboard_rpc.sessions import Session
from callboard_rpc.streams import Scope

from .asking import Policy
from .crew_tree import tree
from .exits import CommandError, Exit
from .interrupts import Interrupts
from .naming import resolve, resolve_agent
from .server import StoreOption, connect_existing
from .staying import AgentTurn, stay, staying
from .terminal import line, open_console, write_json_line

app = App(name="agents", help="List the agents of a session, and talk to them, stop or close them.")

Root = Annotated[str | None, Parameter(name=["--root", "-r"])]
_REFRESH_S = 1.0
"""How often a tree that is watched is drawn anew, since times go on when nothing happens."""


@app.command(name="list")
async def list_agents(
    root: str,
    /,
    *,
    watch: Annotated[bool, Parameter(name=["--watch", "-w"], negative=())] = False,
    json: Annotated[bool, Parameter(negative=())] = False,
    store: StoreOption | None = None,
) -> int:
    """List the agents of a session as a tree: what each does, since when, and what it waits for.

    Parameters
    ----------
    root
        The id of the session, or the beginning of it; or the whole id of an agent of the tree.
    watch
        Show the tree as it changes, until Ctrl-C; on a terminal, and without `--json`.
    json
        One JSON object a line.
    """
    console = open_console()
    if watch and (json or not console.is_terminal):
        raise CommandError("--watch needs a terminal, and goes without --json", exit=Exit.USAGE)
    if watch:
        await _watch(root, store)
        return Exit.OK
    async with connect_existing(store, name="agents") as client:
        session, agents = await _tree(client, (await _root(client, root)).session_id)
    if json:
        for agent in agents:
            write_json_line(unstructure(agent))
        return Exit.OK
    console.print(tree(session, agents), soft_wrap=True)
    if not agents:
        console.print(line(("It has no agents.", "dim")))
    return Exit.OK


async def _root(client: Client, given: str) -> Session:
    found = await resolve(client, given)
    if found.root_id == found.session_id:
        return found
    return (await client.sessions.get(found.root_id)).session


async def _tree(client: Client, root_id: SessionId) -> tuple[Session, list[Agent]]:
    agents = [agent async for agent in client.agents.list(root_id)]
    return (await client.sessions.get(root_id)).session, agents


async def _watch(root: str, store: StoreOption | None) -> None:
    interrupts = Interrupts()
    async with anyio.create_task_group() as tasks:
        await tasks.start(interrupts.watch)
        interrupts.scope = tasks.cancel_scope
        async with connect_existing(store, name="agents", restart=True) as client:
            root_id = (await _root(client, root)).session_id
            scope = Scope(kind="tree", id=root_id)
            with Live(tree(*await _tree(client, root_id)), auto_refresh=False) as live:
                async with client.events(scope, deltas=False) as stream:
                    while True:
                        with anyio.move_on_after(_REFRESH_S):
                            await stream.receive()
                        live.update(tree(*await _tree(client, root_id)), refresh=True)
        tasks.cancel_scope.cancel()


# --- what is done to one ---------------------------------------------------------------------------


@asynccontextmanager
async def _found(
    agent: str, root: str | None, store: StoreOption | None
) -> AsyncGenerator[tuple[Client, Agent]]:
    takes = ClientCapabilities(approvals=True)
    async with connect_existing(store, name="agents", capabilities=takes) as client:
        yield client, await resolve_agent(client, agent, root)


def _say(words: str, style: str = "") -> None:
    open_console().print(line((words, style)), soft_wrap=True)


@app.command
async def send(
    agent: str, text: str, /, *, root: Root = None, store: StoreOption | None = None
) -> int:
    """Leave a message for an agent: it reads it at its next step, or when it is continued.

    Parameters
    ----------
    agent
        Its id; with `--root` its name, or the beginning of its id.
    text
        What it is to read.
    root
        The session whose agent it is.
    """
    async with _found(agent, root, store) as (client, found):
        await client.agents.send(found.agent_id, text)
        _say(f"left for {found.name}")
    return Exit.OK


@app.command(name="continue")
async def continue_(
    agent: str,
    text: str,
    /,
    *,
    root: Root = None,
    approve: Policy = "ask",
    store: StoreOption | None = None,
) -> int:
    """Give an agent something more to do: it goes on with its memory of what it did.

    When no other program runs it, it works here: this command shows it, and ends when it has ended and
    its session has heard of it, with the exit codes of `callboard run`.

    Parameters
    ----------
    agent
        Its id; with `--root` its name, or the beginning of its id.
    text
        What it is to do.
    root
        The session whose agent it is.
    approve
        Who answers approvals, as for `callboard run`; `leave` leaves them to other clients.
    """
    interrupts = Interrupts()
    code = Exit.CANCELLED
    async with anyio.create_task_group() as tasks:
        await tasks.start(interrupts.watch)
        interrupts.scope = tasks.cancel_scope
        async with (
            _found(agent, root, store) as (client, found),
            client.events(Scope(kind="tree", id=found.root_id)) as stream,
        ):
            went = await client.agents.continue_(found.agent_id, text)
            if went.turn_id is None:
                _say(f"told to {found.name}, which takes it in at its next step")
                code = Exit.OK
            else:
                turn = AgentTurn(
                    client=client, stream=stream, agent_id=found.agent_id, turn_id=went.turn_id
                )
                work = await staying(client, stream, found.root_id, turn)
                code = await stay(work, interrupts, policy=approve)
        tasks.cancel_scope.cancel()
    return code


@app.command
async def interrupt(
    agent: str,
    /,
    *,
    kind: InterruptKind = "abort",
    reason: str | None = None,
    root: Root = None,
    store: StoreOption | None = None,
) -> int:
    """Stop what an agent does now, or correct it.

    Parameters
    ----------
    agent
        Its id; with `--root` its name, or the beginning of its id.
    kind
        `abort` ends its turn at once; `cancel` has it sum up and end; `steer` corrects it, and it goes
        on. The last two need the feature `interrupts`.
    reason
        What it is told, and its parent is.
    root
        The session whose agent it is.
    """
    interrupts = Interrupts()
    code = Exit.CANCELLED
    async with anyio.create_task_group() as tasks:
        await tasks.start(interrupts.watch)
        interrupts.scope = tasks.cancel_scope
        async with (
            _found(agent, root, store) as (client, found),
            client.events(Scope(kind="tree", id=found.root_id)) as stream,
        ):
            before = stream.cursor
            done = await client.agents.interrupt(found.agent_id, kind, reason)
            _say(_came_of(found.name, done))
            code = Exit.OK
            # whom nobody ran is ended here, and who hears of that may begin here
            work = await staying(client, stream, found.root_id)
            if before is not None and await work.has_begun(before):
                code = await stay(work, interrupts, policy="ask")
        tasks.cancel_scope.cancel()
    return code


def _came_of(name: str, done: AgentInterruptResult) -> str:
    match done.outcome:
        case "delivered":
            return f"{name} is told at its next step"
        case "ignored":
            return f"ignored: {name} has been told to stop already"
        case "aborted":
            return f"{name} is being stopped"
        case "already_finished":
            return f"{name} has ended its turn already"


@app.command
async def close(agent: str, /, *, root: Root = None, store: StoreOption | None = None) -> int:
    """End an agent, and those below it, for good.

    Parameters
    ----------
    agent
        Its id; with `--root` its name, or the beginning of its id.
    root
        The session whose agent it is.
    """
    async with _found(agent, root, store) as (client, found):
        await client.agents.close(found.agent_id)
        _say(f"{found.name} is closed")
    return Exit.OK


@app.command
async def reply(ask: str, text: str, /, *, store: StoreOption | None = None) -> int:
    """Answer a question that an agent has asked its parent. Needs the feature `messaging`.

    Parameters
    ----------
    ask
        The id of the question, as `callboard agents list` shows it.
    text
        The answer.
    """
    async with connect_existing(store, name="agents") as client:
        answered = await client.agents.reply(AskId(ask.strip()), text)
        async for agent in client.agents.list(answered.agent_id):
            if agent.agent_id == answered.agent_id:
                _say(f"answered {agent.name} ({agent.agent_id})")
    return Exit.OK
