"""``callboard demo``: an agent repairs a small project while one watches."""

import shutil
from pathlib import Path
from typing import Annotated

import anyio
from cyclopts import Parameter
from rich.console import Console
from rich.rule import Rule

from callboard_client import Client
from callboard_rpc.common import SessionId
from callboard_rpc.server import ClientCapabilities, ServerInfo

from .asking import Approver
from .exits import Exit
from .following import Follower
from .interrupts import Interrupts
from .present import Presenter
from .server import StoreOption, connect, server_environment, settings_of
from .staging import run_test, sample_folder, temporary_folder, typed_command
from .terminal import line, open_console

PROMPT = "The test in this folder fails. Find out why, mend it, and run it again."
_TIME_LIMIT_S = 300.0


_SETTINGS = {
    "profile": "default",
    "approvals": {"mode": "work", "unattended": "park"},
    "limits": {"max_iterations": 50, "turn_total_s": 3600, "turn_idle_s": 900},
    "tools": {"command_timeout_s": 120},
}
"""What the play needs, whatever the person has configured; the model is theirs, and so is what they
refuse: here a real model may be at work, and nobody is asked."""


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
    interrupts = Interrupts()
    code = Exit.CANCELLED
    with temporary_folder("callboard-demo-", keep=keep) as folder:
        shutil.copytree(sample_folder("workspace", "test_prices.py"), folder, dirs_exist_ok=True)
        async with anyio.create_task_group() as tasks:
            await tasks.start(interrupts.watch)
            interrupts.scope = tasks.cancel_scope
            code = await _show(console, folder, store, interrupts)
            tasks.cancel_scope.cancel()
    if keep:
        console.print(line(("The repaired project: ", "dim"), str(folder)), soft_wrap=True)
    return code


async def _show(
    console: Console, folder: Path, store: StoreOption | None, interrupts: Interrupts
) -> Exit:
    capabilities = ClientCapabilities(approvals=True)
    async with connect(store, name="demo", capabilities=capabilities, config=_SETTINGS) as client:
        info = await client.server.info()
        _announce(console, folder, info)
        _tell_what_is_refused(console, store)
        code, session = await _repair(client, console, folder, interrupts)
    if code is Exit.CANCELLED:
        return code
    console.print(Rule("the proof", style="dim", align="left"))
    passed = await run_test(console, folder)
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


def _tell_what_is_refused(console: Console, store: StoreOption | None) -> None:
    policy = settings_of(server_environment(store)).approvals.policy
    refused = sorted(name for name, effect in policy.items() if effect == "deny")
    if refused:
        words = f"! your configuration refuses {', '.join(refused)}: the demo keeps to that"
        console.print(line((words, "yellow")), soft_wrap=True)


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
