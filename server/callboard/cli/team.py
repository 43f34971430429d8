"""``callboard demo-agents``: a lead and three agents, and a server that is killed while they work."""

import os
import shutil
import signal
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Annotated

import anyio
from attrs import define, field
from cyclopts import Parameter
from rich.console import Console
from rich.rule import Rule

from callboard_client import Client, ClientOptions
from callboard_rpc.agents import AgentInterruptParams, AgentInterruptResult
from callboard_rpc.common import SessionId, TextContent
from callboard_rpc.events import (
    AgentAsked,
    AgentInterruptConsumed,
    AgentInterrupted,
    AgentReplied,
    AgentReportCreated,
    AgentSpawned,
    ApprovalDecision,
    Event,
    InterruptKind,
    Message,
    ToolCall,
    TurnFinished,
)
from callboard_rpc.server import ClientCapabilities
from callboard_rpc.streams import Scope

from .demo import sample_folder, typed_command
from .exits import Exit
from .server import StoreOption, server_environment
from .terminal import line, open_console

BEGIN = "Bring this folder into shape: code, readme, and numbers."
GO_ON = "The server was killed. Please go on where you were."
STEER = "One paragraph is enough for the readme."
ABORT = "Counting does not end; I stop it."

_TIME_LIMIT_S = 240.0
_STYLES = {"lead": "bold cyan", "stock": "green", "docs": "yellow", "numbers": "magenta"}


async def demo_agents(
    *,
    keep: Annotated[bool, Parameter(negative=())] = False,
    store: StoreOption | None = None,
) -> int:
    """Watch a lead and its three agents work on a small folder, through a crash of the server.

    One agent asks its lead, one is corrected by you, one is stopped; then the server is killed with
    everybody at work, and started again. It always runs on a built-in script.

    Parameters
    ----------
    keep
        Leave the folder that they worked on where it is.
    """
    console = open_console()
    folder = _new_folder()
    try:
        with anyio.fail_after(_TIME_LIMIT_S):
            await _show(console, folder, store)
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    if keep:
        console.print(line(("The folder: ", "dim"), str(folder)), soft_wrap=True)
    return Exit.OK


def _new_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="callboard-team-")).resolve()
    shutil.copytree(sample_folder("team", "stock.py"), folder, dirs_exist_ok=True)
    (folder / "build").mkdir()
    return folder


async def _show(console: Console, folder: Path, store: StoreOption | None) -> None:
    environment = {
        **server_environment(store),
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
    console.print(Rule("Callboard: a lead and three agents", style="cyan", align="left"))
    console.print(line(("folder  ", "dim"), str(folder)), soft_wrap=True)
    console.print(line(("prompt  ", "dim"), (BEGIN, "bold")))
    console.print(Rule(style="dim"))
    async with Client.start(options=options) as client:
        place = (await client.server.info()).store_path
        made = await client.sessions.create(folder, title="The demo of agents")
        seen = Seen(console=console, root=made.session.session_id)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_allow, client)
            tasks.start_soon(seen.follow, client)
            await _conduct(client, seen, folder)
            tasks.cancel_scope.cancel()
    _conclude(console, seen.root, place)


def _conclude(console: Console, root: str, place: str) -> None:
    command = typed_command()
    console.print(Rule("what next", style="dim", align="left"))
    console.print(
        line(("The tree of agents:  ", "dim"), (f"{command} agents list {root}", "bold")),
        soft_wrap=True,
    )
    console.print(line(("The log of all this: ", "dim"), place), soft_wrap=True)


async def _conduct(client: Client, seen: "Seen", folder: Path) -> None:
    """What the person does: everything else the agents do by themselves."""
    root = seen.root
    await client.sessions.prompt(root, [TextContent(text=BEGIN)])
    await seen.until("lead heard of stock")
    await seen.until("numbers looked around")
    seen.say("you stop numbers")
    await _interrupt(client, seen.ids["numbers"], "abort", ABORT)
    await seen.until("lead heard of numbers")
    await seen.until("docs ran build.py compile")
    seen.say("you correct docs")
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
    await client.sessions.prompt(root, [TextContent(text=GO_ON)])
    await seen.until("lead ended completed")


async def _interrupt(client: Client, agent_id: str, kind: InterruptKind, reason: str) -> None:
    params = AgentInterruptParams(agent_id=SessionId(agent_id), kind=kind, reason=reason)
    result: AgentInterruptResult = await client.call("agent/interrupt", params)
    del result  # what came of it is among the events


async def _allow(client: Client) -> None:
    """The demo allows whatever its agents ask for."""
    async for pending in client.approval_requests():
        options = [o for o in pending.approval.options if o.kind == "allow_once"]
        if options:
            pending.answer(options[0].option_id)


@define(kw_only=True)
class Seen:
    """What has happened in the tree so far, each thing told once, and printed as it comes."""

    console: Console
    root: SessionId
    ids: dict[str, str] = field(factory=dict[str, str])
    _names: dict[str, str] = field(factory=dict[str, str])
    _told: defaultdict[str, anyio.Event] = field(factory=lambda: defaultdict(anyio.Event))
    _asked: dict[str, str] = field(factory=dict[str, str])
    _waits: int = 0

    def __attrs_post_init__(self) -> None:
        self._names[self.root] = "lead"
        self.ids["lead"] = self.root

    async def until(self, what: str) -> None:
        await self._told[what].wait()

    def say(self, text: str) -> None:
        self.console.print(line((f"        {text}", "bold red")), soft_wrap=True)

    async def follow(self, client: Client) -> None:
        scope = Scope(kind="tree", id=self.root)
        async with client.events(scope, "start", deltas=False) as stream:
            async for item in stream:
                if isinstance(item, Event):
                    self._take(item)

    def _tell(self, what: str) -> None:
        self._told[what].set()

    def _print(self, name: str, text: str) -> None:
        words = " ".join(text.split())
        self.console.print(line((f"{name:>7} ", _STYLES.get(name, "")), words))

    def _take(self, event: Event) -> None:
        name = self._names.get(event.session_id, "?")
        match event.data:
            case AgentSpawned(name=spawned):
                self._names[event.session_id] = spawned
                self.ids[spawned] = event.session_id
                self._print(spawned, "is spawned")
            case Message() as message if message.delivered is not None:
                told = message.author.name
                self._print(name, f"is told by {told} ({message.delivered.kind})")
                self._tell(f"{name} heard of {told}")
            case Message() as message if message.author.kind == "agent":
                said = " ".join(b.text for b in message.content if isinstance(b, TextContent))
                if said.strip():
                    self._print(name, said)
            case ToolCall() as call:
                self._print(name, f"▸ {call.title}")
                self._called(name, call)
            case ApprovalDecision(call_id=call_id) if call_id in self._asked:
                self._tell(self._asked.pop(call_id))
            case AgentAsked(text=text):
                self._print(name, f"asks its lead: {text}")
            case AgentReplied(text=text, outcome=outcome):
                self._print(name, f"gets an answer: {text or outcome}")
            case AgentInterruptConsumed(kind=kind):
                self._print(name, f"is told of the {kind}")
            case AgentInterrupted(reason=reason):
                self._print(name, f"is interrupted: {reason}")
                self._tell(f"{name} was interrupted")
            case AgentReportCreated(report=report):
                self._print(name, f"reports: {report.status}")
            case TurnFinished(outcome=outcome):
                self._tell(f"{name} ended {outcome}")
            case _:
                pass

    def _called(self, name: str, call: ToolCall) -> None:
        for script in ("build.py compile", "build.py publish"):
            if call.name == "run_command" and script in call.title:
                # it runs as soon as it was allowed to
                self._asked[call.call_id] = f"{name} ran {script}"
        if call.name == "list_files" and name == "numbers":
            self._tell("numbers looked around")
        if call.name == "wait_agents":
            self._waits += 1
            if self._waits == 4:  # after the question, after stock, after numbers
                self._tell("lead waits for docs")
