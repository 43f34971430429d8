"""What the demos play with: sample folders, settings of their own, and a proof at the end."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio
from rich.console import Console

from callboard_client import Client, ClientError
from callboard_rpc.common import SessionId

from . import cards
from .exits import CommandError
from .server import StoreOption, chosen_store, server_environment
from .terminal import line

_TEST = ("-m", "unittest", "-q")
_KEPT = ("CALLBOARD_DEBUG", "CALLBOARD_LOG_LEVEL", "CALLBOARD_LOG_FILE")
"""Variables that change nothing of what is played."""
_TIDY_S = 15.0
"""How long what was begun may take to end before the folder goes from under it."""


@contextmanager
def temporary_folder(prefix: str, *, keep: bool = False) -> Generator[Path]:
    """An empty folder of its own, without links in its path."""
    folder = Path(tempfile.mkdtemp(prefix=prefix)).resolve()
    try:
        yield folder
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def sample_folder(name: str, holds: str) -> Path:
    """A sample folder that holds such a file: inside of an installed package, or beside it in a checkout."""
    here = Path(__file__).resolve().parent
    for place in (here / f"demo_{name}", here.parents[2] / "demo" / name):
        if (place / holds).is_file():
            return place
    raise CommandError("the demo's sample folder is not part of this installation")


def staged_environment(option: StoreOption | None, config_dir: Path) -> dict[str, str]:
    """An environment in which nothing of the person's configuration counts but the store: what is played
    has to come out the same for everybody. `config_dir` is an empty folder."""
    kept = {
        name: value
        for name, value in server_environment(option).items()
        if not name.startswith("CALLBOARD_") or name in _KEPT
    }
    return {
        **kept,
        "CALLBOARD_STORE": str(chosen_store(option)),
        "CALLBOARD_CONFIG_DIR": str(config_dir),
    }


async def end_tree(client: Client, root: SessionId, reason: str, cut: anyio.Event) -> None:
    """Ends all that runs or waits in the tree, and returns when it has: no question is left behind that
    nobody can answer. `cut` ends the waiting."""
    with anyio.CancelScope(shield=True, deadline=anyio.current_time() + _TIDY_S) as scope:
        async with anyio.create_task_group() as tasks:

            async def hurry() -> None:
                await cut.wait()
                scope.cancel()

            tasks.start_soon(hurry)
            try:
                await client.sessions.cancel(root, scope="tree", reason=reason)
                agents = [agent.agent_id async for agent in client.agents.list(root)]
                for session_id in (*agents, root):
                    await client.sessions.wait(session_id, "idle", timeout_ms=int(_TIDY_S * 1000))
            except ClientError:
                pass  # the server is gone, or knows better; why the demo ended is told already
            tasks.cancel_scope.cancel()


async def run_test(console: Console, folder: Path) -> bool:
    """The sample's own test, run by the demo and not by an agent."""
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


def typed_command() -> str:
    """What to type for this program: it need not be on the PATH."""
    called = Path(sys.argv[0])
    found = called.name != "callboard" or shutil.which("callboard")
    return "callboard" if found else str(called)
