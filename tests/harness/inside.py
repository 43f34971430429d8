"""A host in the test's own process, on a store of its own, with a scripted model."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from callboard.host import Environment, Feature, Host, open_host
from callboard_rpc.approvals import Approval
from callboard_rpc.common import Actor, TextContent
from callboard_rpc.events import Author

PERSON = Author(kind="person", name="tester", id="tests")
CLIENT = Actor(kind="client", id="tests", name="tester")
PATIENCE_S = 60.0
"""How long anything may take before a test fails; nothing waits for it to pass."""

T = TypeVar("T")


@asynccontextmanager
async def host_in(
    folder: Path,
    *,
    model: str = "scripted/demo",
    environ: Mapping[str, str] | None = None,
    features: Sequence[Feature] = (),
    leaves: bool = False,
) -> AsyncGenerator[Host]:
    """A host on ``folder/store.db``; opening the folder again is a restart. With `leaves` it is one that
    goes soon, as a command's on the terminal, and begins nothing that waited when it came."""
    environment = Environment(
        environ={
            "HOME": str(folder),
            "PATH": "/usr/bin:/bin",
            "CALLBOARD_MODEL": model,
            **(environ or {}),
        },
        user_dir=folder / "config",
        store=folder / "store.db",
        client_config={"store": {"waiting": "leave"}} if leaves else None,
    )
    async with open_host(environment, features=features) as host:
        yield host


async def new_session(host: Host, cwd: Path, **more: Any) -> str:
    """A session in work mode; its id."""
    session = await host.sessions.create(
        cwd=str(cwd), profile="default", mode=more.pop("mode", "work"), by=CLIENT, **more
    )
    return session.session_id


async def say(host: Host, session_id: str, text: str, **more: Any) -> Any:
    """A person's prompt."""
    return await host.sessions.prompt(
        session_id, [TextContent(text=text)], author=PERSON, by=CLIENT, **more
    )


async def idle(host: Host, session_id: str) -> Any:
    """Waits until the session has nothing to do; what `session/wait` would say."""
    return await host.waiting.wait(session_id, until="idle", turn_id=None, timeout_s=30)


async def until(host: Host, look: Callable[[], Awaitable[T]]) -> T:
    """What a look tells once there is something. The head is taken before each look, so that nothing that is
    committed while it looks is slept through."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            head = host.log.head
            if found := await look():
                return found
            await host.log.moved(head)


async def pending(host: Host) -> list[Approval]:
    """What is asked for, once something is."""

    async def look() -> list[Approval]:
        return (await host.approvals.page(state="pending"))[0]

    return await until(host, look)


async def log_of(host: Host, session_id: str) -> list[Any]:
    """All records of a session."""
    return await host.log.session(session_id)
