"""``callboard demo-group``: a lead and three workers at one task board, and a server that is killed."""

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

from callboard_client import Client, ClientOptions, PendingApproval
from callboard_rpc.common import SessionId, TaskId, TextContent
from callboard_rpc.events import (
    AgentInterrupted,
    AgentSpawned,
    ApprovalDecision,
    CompletionChanged,
    Event,
    GroupMessageDelivered,
    GroupMessageQueued,
    GroupTaskClaimed,
    GroupTaskCreated,
    GroupTaskStatusChanged,
    Message,
    ToolCall,
    ToolResult,
    TurnFinished,
)
from callboard_rpc.server import ClientCapabilities
from callboard_rpc.streams import Scope

from .board import Board
from .demo import sample_folder, typed_command
from .exits import Exit
from .server import StoreOption, server_environment
from .terminal import line, open_console

BEGIN = "Release the warehouse: design, code, docs, and then the release."
GIVEN = "ann: code is yours now; ben cannot go on with it."
GO_ON = "The server was killed. Please go on where you were."

_TIME_LIMIT_S = 240.0
_STYLES = {"lead": "bold cyan", "ann": "green", "ben": "yellow", "cleo": "magenta"}
_AFTER = {"cleo": "lead waits for both", "ben": "lead heard of cleo"}
"""What a worker is allowed to do has its time, so that the demo shows what it is to show."""
_SAMPLE = ("team", "stock.py")


async def demo_group(
    *,
    keep: Annotated[bool, Parameter(negative=())] = False,
    store: StoreOption | None = None,
) -> int:
    """Watch a lead and three workers share a task board, through a crash of the server.

    Two tasks mean to change the same file, one is blocked and given to another worker by you; the lead
    cannot call its work complete too early; then the server is killed, and started again. It always
    runs on a built-in script.

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
            shutil.rmtree(folder.parent, ignore_errors=True)
    if keep:
        console.print(line(("The folder: ", "dim"), str(folder)), soft_wrap=True)
    return Exit.OK


def _new_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="callboard-board-")).resolve() / "warehouse"
    shutil.copytree(sample_folder(*_SAMPLE), folder)
    (folder / "build").mkdir()
    return folder


async def _show(console: Console, folder: Path, store: StoreOption | None) -> None:
    options = ClientOptions(
        env={**server_environment(store), "CALLBOARD_MODEL": "scripted/board"},
        name="callboard demo-group",
        capabilities=ClientCapabilities(approvals=True, deltas=False),
        restart=True,
        config={"store": {"waiting": "leave"}},
    )
    console.print(Rule("Callboard: a task board", style="cyan", align="left"))
    console.print(line(("folder  ", "dim"), str(folder)), soft_wrap=True)
    console.print(line(("prompt  ", "dim"), (BEGIN, "bold")))
    console.print(Rule(style="dim"))
    async with Client.start(options=options) as client:
        place = (await client.server.info()).store_path
        made = await client.sessions.create(folder, title="The demo of a task board")
        seen = Seen(console=console, root=made.session.session_id)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_allow, client, seen)
            tasks.start_soon(seen.follow, client)
            await _conduct(client, seen, folder)
            tasks.cancel_scope.cancel()
        await _print_board(console, client, seen.root)
    command = typed_command()
    console.print(Rule("what next", style="dim", align="left"))
    console.print(
        line(("The task board:      ", "dim"), (f"{command} group {seen.root}", "bold")),
        soft_wrap=True,
    )
    console.print(line(("The log of all this: ", "dim"), place), soft_wrap=True)


async def _print_board(console: Console, client: Client, root: SessionId) -> None:
    group = (await client.groups.get(root)).group
    tasks = tuple([task async for task in client.groups.tasks(root, "all")])
    session = (await client.sessions.get(root)).session
    console.print(Rule("the board", style="dim", align="left"))
    for each in Board(session=session, group=group, tasks=tasks).lines():
        console.print(each, soft_wrap=True)


async def _conduct(client: Client, seen: "Seen", folder: Path) -> None:
    """What the person does: everything else the workers do by themselves."""
    root = seen.root
    await client.sessions.prompt(root, [TextContent(text=BEGIN)])
    await seen.until("lead ended completed")
    seen.say("you give code to ann")
    ann = SessionId(seen.ids["ann"])
    await client.groups.reassign(root, TaskId(seen.ids["code"]), ann)
    await client.agents.continue_(ann, GIVEN)
    await seen.until("ann ran build.py pack")
    seen.say("the server is killed: ann is in the middle of a command")
    if client.pid is not None:
        os.kill(client.pid, signal.SIGKILL)
    await seen.until("ann was interrupted")
    seen.say("another server has taken over: ann has her task still, and nothing runs by itself")
    (folder / "build" / "pack").touch()
    await client.sessions.prompt(root, [TextContent(text=GO_ON)])
    await seen.until("the work is complete")


async def _allow(client: Client, seen: "Seen") -> None:
    """The demo allows whatever its workers ask for, at its time."""
    async with anyio.create_task_group() as tasks:
        async for pending in client.approval_requests():
            tasks.start_soon(_allow_one, pending, seen)


async def _allow_one(pending: PendingApproval, seen: "Seen") -> None:
    worker = pending.approval.path[-1].name
    await seen.until(_AFTER.get(worker, "the work began"))
    options = [o for o in pending.approval.options if o.kind == "allow_once"]
    if options:
        pending.answer(options[0].option_id)


@define(kw_only=True)
class Seen:
    """What has happened in the tree so far, each thing told once, and printed as it comes. `ids` are those
    of workers and of tasks, by what they are called."""

    console: Console
    root: SessionId
    ids: dict[str, str] = field(factory=dict[str, str])
    _names: dict[str, str] = field(factory=dict[str, str])
    _told: defaultdict[str, anyio.Event] = field(factory=lambda: defaultdict(anyio.Event))
    _asked: dict[str, str] = field(factory=dict[str, str])
    _completed: bool = False

    def __attrs_post_init__(self) -> None:
        self._names[self.root] = "lead"
        self._tell("the work began")

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
        self.console.print(line((f"{name:>7} ", _STYLES.get(name, "")), words), soft_wrap=True)

    def _known(self, an_id: str) -> str:
        return self._names.get(an_id, "?")

    def _take(self, event: Event) -> None:
        self._take_of_group(event)
        name = self._known(event.session_id)
        match event.data:
            case AgentSpawned(name=spawned):
                self._names[event.session_id] = spawned
                self.ids[spawned] = event.session_id
            case Message() as message if message.delivered is not None:
                told = message.author.name
                self._print(name, f"is told by {told} ({message.delivered.kind})")
                self._tell(f"{name} heard of {told}")
            case Message() as message if message.author.kind == "agent":
                said = " ".join(b.text for b in message.content if isinstance(b, TextContent))
                if said.strip():
                    self._print(name, said)
            case ToolCall() as call:
                self._called(name, call)
            case ToolResult() as result:
                self._has_result(name, result)
            case ApprovalDecision(call_id=call_id) if call_id in self._asked:
                self._tell(self._asked.pop(call_id))
            case AgentInterrupted(reason=reason):
                self._print(name, f"is interrupted: {reason}")
                self._tell(f"{name} was interrupted")
            case TurnFinished(outcome=outcome):
                self._tell(f"{name} ended {outcome}")
                if name == "lead" and self._completed:
                    self._tell("the work is complete")
            case _:
                pass

    def _take_of_group(self, event: Event) -> None:
        match event.data:
            case GroupTaskCreated(task_id=task_id, title=title):
                self._names[task_id] = title
                self.ids[title] = task_id
                waits = ", ".join(map(self._known, event.data.dependencies))
                self._print("lead", f"◦ task {title}" + (f", behind {waits}" if waits else ""))
            case GroupTaskClaimed(task_id=task_id, agent_id=agent_id):
                self._print(self._known(agent_id), f"◦ has {self._known(task_id)}")
            case GroupTaskStatusChanged(task_id=task_id, status=status) as change:
                said = change.summary or change.reason
                owner = "" if change.assignee is None else f" by {self._known(change.assignee)}"
                self._print(
                    self._known(change.agent_id),
                    f"◦ {self._known(task_id)} is {status}{owner}" + (f": {said}" if said else ""),
                )
            case GroupMessageQueued(sender=sender, to=to, text=text):
                self._print(self._known(sender), f"✉ to the {to}: {text}")
            case GroupMessageDelivered(sender=sender):
                self._print(
                    self._known(event.session_id), f"✉ reads what {self._known(sender)} wrote"
                )
            case CompletionChanged():
                self._completed = True
            case _:
                pass

    def _called(self, name: str, call: ToolCall) -> None:
        if call.name == "run_command":
            self._print(name, f"▸ {call.title}")
            # it runs as soon as it was allowed to
            self._asked[call.call_id] = f"{name} ran {call.title.removeprefix('python3 ')}"
        elif call.name == "wait_agents" and {"ben", "cleo"} <= self.ids.keys():
            self._tell("lead waits for both")

    def _has_result(self, name: str, result: ToolResult) -> None:
        """What the board says where it warns or refuses."""
        if result.name == "group_status":
            for warning in result.text.splitlines():
                if warning.startswith("conflict: "):
                    self._print(name, f"⚠ {self._with_titles(warning)}")
        elif result.name == "complete":
            self._print(name, f"▸ complete: {result.text.removeprefix('not_complete: ')}")

    def _with_titles(self, text: str) -> str:
        for an_id, name in self._names.items():
            text = text.replace(an_id, name)
        return text
