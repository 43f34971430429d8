"""``callboard demo-agents``: a lead and three agents, and a server that is killed while they work."""

import os
import shlex
import shutil
import signal
from pathlib import Path
from typing import Annotated

import anyio
from cyclopts import Parameter
from rich.console import Console
from rich.rule import Rule

from callboard_client import Client, ClientOptions
from callboard_rpc.agents import AgentInterruptParams, AgentInterruptResult
from callboard_rpc.common import SessionId, TextContent
from callboard_rpc.events import InterruptKind
from callboard_rpc.server import ClientCapabilities

from .exits import Exit
from .interrupts import Interrupts
from .server import StoreOption
from .staging import (
    end_tree,
    run_test,
    sample_folder,
    staged_environment,
    temporary_folder,
    typed_command,
)
from .team_seen import Seen
from .terminal import line, open_console

BEGIN = "Bring this folder into shape: code, readme, and numbers."
GO_ON = "The server was killed. Please go on where you were."
STEER = "One paragraph is enough for the readme."
ABORT = "Counting does not end; I stop it."

_INTRODUCTION = (
    "A lead gets a prompt of three parts and starts an agent for each: stock mends the code and asks its",
    "lead, docs builds and writes the readme, numbers thinks for ever. It is a script that answers, and no",
    "model; the server, the files and the commands are real. The demo allows each edit and each command, and",
    "plays you (in red): you stop numbers, you correct docs, and then the server is killed with all at work.",
)


async def demo_agents(
    *,
    keep: Annotated[bool, Parameter(negative=())] = False,
    store: StoreOption | None = None,
) -> int:
    """Watch a lead and its three agents work on a small folder, through a crash of the server.

    One agent asks its lead, one is corrected by you, one is stopped; then the server is killed with
    everybody at work, and started again. It always runs on a built-in script, and nothing of your
    configuration counts but the store.

    Parameters
    ----------
    keep
        Leave the folder that they worked on where it is.
    """
    console = open_console()
    interrupts = Interrupts()
    code = Exit.CANCELLED
    with (
        temporary_folder("callboard-team-", keep=keep) as folder,
        temporary_folder("callboard-settings-") as settings,
    ):
        shutil.copytree(sample_folder("team", "stock.py"), folder, dirs_exist_ok=True)
        (folder / "build").mkdir()
        async with anyio.create_task_group() as tasks:
            await tasks.start(interrupts.watch)
            with anyio.CancelScope() as interrupts.scope:
                code = await _show(console, folder, store, settings, interrupts)
            tasks.cancel_scope.cancel()
    if keep:
        console.print(line(("The folder: ", "dim"), str(folder)), soft_wrap=True)
    return code


async def _show(
    console: Console,
    folder: Path,
    store: StoreOption | None,
    settings: Path,
    interrupts: Interrupts,
) -> Exit:
    environment = {
        **staged_environment(store, settings),
        "CALLBOARD_MODEL": "scripted/team",
        "CALLBOARD_FEATURES": "agents.interrupts,agents.messaging",
    }
    options = ClientOptions(
        env=environment,
        name="callboard demo-agents",
        capabilities=ClientCapabilities(approvals=True, deltas=False),
        restart=True,
        config={"store": {"waiting": "leave"}},
    )
    _announce(console, folder)
    async with Client.start(options=options) as client:
        place = (await client.server.info()).store_path
        made = await client.sessions.create(folder, title="The demo of agents")
        seen = Seen(console=console, root=made.session.session_id)
        if not await _play(client, seen, folder, interrupts):
            return Exit.CANCELLED
    console.print(Rule("the proof", style="dim", align="left"))
    proven = await run_test(console, folder) and _show_readme(console, folder)
    _conclude(console, seen.root, place, elsewhere=store is not None and store.store is not None)
    return Exit.OK if proven else Exit.FAILED


def _announce(console: Console, folder: Path) -> None:
    console.print(Rule("Callboard: a lead and three agents", style="cyan", align="left"))
    for each in _INTRODUCTION:
        console.print(line(each), soft_wrap=True)
    console.print()
    console.print(line(("folder  ", "dim"), str(folder)), soft_wrap=True)
    console.print(line(("prompt  ", "dim"), (BEGIN, "bold")), soft_wrap=True)
    console.print(Rule(style="dim"))


def _show_readme(console: Console, folder: Path) -> bool:
    readme = folder / "README.md"
    try:
        first = readme.read_text("utf-8").partition("\n")[0]
    except OSError:
        console.print(line(("✗ there is no README.md", "bold red")))
        return False
    console.print(line(("✓ README.md is there: ", "bold green"), first))
    return True


def _conclude(console: Console, root: str, place: str, *, elsewhere: bool) -> None:
    """`elsewhere`: the store has to be named to see it again."""
    command = typed_command()
    named = f" --store {shlex.quote(place)}" if elsewhere else ""
    console.print(Rule("what next", style="dim", align="left"))
    for words, what in (
        ("The tree of agents:  ", (f"{command} agents list {root}{named}", "bold")),
        ("The log of all this: ", place),
    ):
        console.print(line((words, "dim"), what), soft_wrap=True)


async def _play(client: Client, seen: Seen, folder: Path, interrupts: Interrupts) -> bool:
    """Whether it came to its end. Whatever ends it before, ends what it has begun, too."""
    ended = False
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_allow, client)
        tasks.start_soon(seen.follow, client)
        try:
            with anyio.CancelScope() as interrupts.scope:  # not the client, which has to end it all
                await _conduct(client, seen, folder)
                ended = True
        finally:
            interrupts.scope = None
            if not ended:
                if interrupts.first.is_set():
                    seen.say("everything is stopped; Ctrl-C again does not wait for it")
                await end_tree(client, seen.root, "the demo was ended", interrupts.second)
        tasks.cancel_scope.cancel()
    return ended


async def _conduct(client: Client, seen: Seen, folder: Path) -> None:
    """What the person does: everything else the agents do by themselves."""
    root = seen.root
    await client.sessions.prompt(root, [TextContent(text=BEGIN)])
    await seen.until("lead heard of stock")
    await seen.until("numbers looked around")
    seen.say(f"you stop numbers: {ABORT}")
    await _interrupt(client, seen.ids["numbers"], "abort", ABORT)
    await seen.until("lead heard of numbers")
    await seen.until("docs ran build.py compile")
    seen.say(f"you correct docs: {STEER}")
    await _interrupt(client, seen.ids["docs"], "steer", STEER)
    (folder / "build" / "compile").touch()
    await seen.until("docs ran build.py publish")
    await seen.until("lead waits for docs")
    seen.say("the server is killed: docs is in the middle of a command, the lead waits for it")
    if client.pid is not None:
        os.kill(client.pid, signal.SIGKILL)
    await seen.until("lead ended interrupted")
    await seen.until("docs was interrupted")
    seen.say(
        "another server has taken over: what ran is interrupted, and nothing runs again by itself"
    )
    (folder / "build" / "publish").touch()
    seen.say(f"you: {GO_ON}")
    await client.sessions.prompt(root, [TextContent(text=GO_ON)])
    await seen.until("lead ended completed")


async def _interrupt(client: Client, agent_id: SessionId, kind: InterruptKind, reason: str) -> None:
    params = AgentInterruptParams(agent_id=agent_id, kind=kind, reason=reason)
    result: AgentInterruptResult = await client.call("agent/interrupt", params)
    del result  # what came of it is among the events


async def _allow(client: Client) -> None:
    """The demo allows whatever its agents ask for."""
    async for pending in client.approval_requests():
        options = [o for o in pending.approval.options if o.kind == "allow_once"]
        if options:
            pending.answer(options[0].option_id)
