"""``callboard demo``: an agent repairs a small project while one watches."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import anyio
from cyclopts import Parameter
from rich.console import Console
from rich.rule import Rule

from callboard_client import Client
from callboard_rpc.common import SessionId
from callboard_rpc.server import ClientCapabilities, ServerInfo

from . import cards
from .asking import Approver
from .exits import CommandError, Exit
from .following import Follower
from .interrupts import Interrupts
from .present import Presenter
from .server import StoreOption, connect
from .terminal import line, open_console

PROMPT = "The test in this folder fails. Find out why, mend it, and run it again."
_TEST = ("-m", "unittest", "-q")
_TIME_LIMIT_S = 300.0


async def demo(
    *,
    keep: Annotated[bool, Parameter(negative=())] = False,
    store: StoreOption | None = None,
) -> int:
    """Watch an agent repair a small project with a failing test, in a temporary folder.

    It runs on the model that Callboard finds, and on a built-in script when there is none.

    Parameters
    ----------
    keep
        Leave the folder with the repaired project where it is.
    """
    console = open_console()
    folder = _new_folder()
    interrupts = Interrupts()
    code = Exit.CANCELLED
    try:
        shutil.copytree(sample_folder("workspace", "test_prices.py"), folder, dirs_exist_ok=True)
        async with anyio.create_task_group() as tasks:
            await tasks.start(interrupts.watch)
            interrupts.scope = tasks.cancel_scope
            code = await _show(console, folder, store, interrupts)
            tasks.cancel_scope.cancel()
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    if keep:
        console.print(line(("The repaired project: ", "dim"), str(folder)), soft_wrap=True)
    return code


async def _show(
    console: Console, folder: Path, store: StoreOption | None, interrupts: Interrupts
) -> Exit:
    capabilities = ClientCapabilities(approvals=True)
    async with connect(store, name="demo", capabilities=capabilities) as client:
        info = await client.server.info()
        _announce(console, folder, info)
        code, session = await _repair(client, console, folder, interrupts)
    if code is Exit.CANCELLED:
        return code
    console.print(Rule("the proof", style="dim", align="left"))
    passed = await _run_test(console, folder)
    _conclude(console, info, session, passed=passed)
    return Exit.OK if passed else Exit.FAILED


def _announce(console: Console, folder: Path, info: ServerInfo) -> None:
    console.print(Rule("Callboard", style="cyan", align="left"))
    console.print(
        line("A real server runs as a child process of this command; they speak JSON-RPC over")
    )
    console.print(
        line("its pipes. An agent is asked to repair a project of two files. What it wants to")
    )
    console.print(line("change or run has to be approved; here, the demo does that."))
    console.print()
    console.print(line(("folder  ", "dim"), str(folder)), soft_wrap=True)
    console.print(line(("model   ", "dim"), _model(info)), soft_wrap=True)
    console.print(line(("prompt  ", "dim"), (PROMPT, "bold")), soft_wrap=True)
    console.print(Rule(style="dim"))


def _model(info: ServerInfo) -> str:
    source = f" ({info.model_source})" if info.model_source else ""
    return f"{info.model or 'none'}{source}"


async def _repair(
    client: Client, console: Console, folder: Path, interrupts: Interrupts
) -> tuple[Exit, SessionId]:
    run = client.run(PROMPT, cwd=folder, title="The demo")
    async with run:
        interrupts.scope = None
        presenter = Presenter(
            console=console,
            root=run.session.session_id,
            hidden_seq=run.event_seq,
            model=run.session.model,
        )
        approver = Approver(
            root=run.session.root_id,
            policy="allow",
            console=console,
            presenter=presenter,
            keyboard=None,
            by="the demo",
        )
        follower = Follower(
            client=client,
            run=run,
            approver=approver,
            presenter=presenter,
            interrupts=interrupts,
            timeout_s=_TIME_LIMIT_S,
        )
        return await follower.follow(), run.session.session_id


async def _run_test(console: Console, folder: Path) -> bool:
    """The test itself, run by the demo and not by the agent."""
    console.print(line(("$ ", "dim"), ("python3 " + " ".join(_TEST), "bold")))
    result = await anyio.run_process(
        [sys.executable, *_TEST],
        cwd=folder,
        check=False,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    console.print(cards.tail(result.stdout.decode(errors="replace")))
    passed = result.returncode == 0
    mark = ("✓ the test passes", "bold green") if passed else ("✗ the test still fails", "bold red")
    console.print(line(mark))
    return passed


def _conclude(console: Console, info: ServerInfo, session: str, *, passed: bool) -> None:
    console.print(Rule("what next", style="dim", align="left"))
    if not passed:
        console.print(line("Not every model can do this; another one may."))
    console.print(
        line(("This was ", "dim"), _model(info), (". To use a model of your own:", "dim")),
        soft_wrap=True,
    )
    for command in (
        "export OPENAI_API_KEY=…      with OPENAI_BASE_URL and OPENAI_MODEL for any compatible server",
        "export ANTHROPIC_API_KEY=…   with ANTHROPIC_MODEL to choose one",
        "export CALLBOARD_MODEL=provider/model   to pick one of several",
    ):
        console.print(line(f"  {command}".replace("=…", "=...")), soft_wrap=True)
    console.print(line("  or start Ollama, llama.cpp or LM Studio on this machine"), soft_wrap=True)
    command = typed_command()
    console.print(line((f'then: {command} run "What is in this folder?"', "bold")), soft_wrap=True)
    console.print()
    console.print(line(("The log of all this: ", "dim"), info.store_path), soft_wrap=True)
    console.print(
        line(("See it again:        ", "dim"), (f"{command} sessions show {session}", "bold")),
        soft_wrap=True,
    )


def typed_command() -> str:
    """What to type for this program: it need not be on the PATH."""
    called = Path(sys.argv[0])
    found = called.name != "callboard" or shutil.which("callboard")
    return "callboard" if found else str(called)


def _new_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="callboard-demo-")).resolve()


def sample_folder(name: str, holds: str) -> Path:
    """A sample folder that holds such a file: inside of an installed package, or beside it in a checkout."""
    here = Path(__file__).resolve().parent
    for place in (here / f"demo_{name}", here.parents[2] / "demo" / name):
        if (place / holds).is_file():
            return place
    raise CommandError("the demo's sample folder is not part of this installation")
