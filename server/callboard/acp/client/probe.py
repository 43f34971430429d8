"""What an agent is like, found out by starting it: its version, whether it wants a login, what it can do."""

import asyncio
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from attrs import frozen

from callboard_rpc.errors import CallboardError

from ...sessions.profiles import Profile
from ..contract import sessions
from .connection import Connection
from .failures import AGAIN
from .service import environment_of

PROBE_S = 10.0
"""How long an agent may take to show itself."""


@frozen(kw_only=True)
class Probed:
    """`problem` says why it cannot be used, if it cannot."""

    name: str
    agent: str | None = None
    can: tuple[str, ...] = ()
    problem: str | None = None
    wants_login: bool = False


async def probe(
    profiles: Iterable[Profile],
    environ: Mapping[str, str],
    *,
    redact: Callable[[str], str],
    within_s: float = PROBE_S,
) -> list[Probed]:
    """Starts each, asks it, and ends it again; all at the same time."""
    return list(
        await asyncio.gather(*(_probe(each, environ, redact, within_s) for each in profiles))
    )


async def _probe(
    profile: Profile, environ: Mapping[str, str], redact: Callable[[str], str], within_s: float
) -> Probed:
    connection = Connection(profile, log_text=redact)
    with tempfile.TemporaryDirectory(prefix="callboard-probe-") as folder:
        try:
            async with asyncio.timeout(within_s):
                await connection.open(
                    cwd=Path(folder),
                    environment=environment_of(environ, profile),
                    mark=f"probe-{os.getpid()}-{profile.name}",
                )
                await connection.initialize()
                await connection.new_session(folder, ())
                await _close(connection)
            return Probed(name=profile.name, agent=connection.name, can=_can(connection))
        except CallboardError as error:
            return Probed(
                name=profile.name,
                agent=connection.name,
                can=_can(connection),
                problem=error.message.removesuffix(f"\n{AGAIN}"),
                wants_login=error.kind == "authRequired",
            )
        except TimeoutError:
            said = f"did not show itself within {within_s:g} s"
            return Probed(name=profile.name, agent=connection.name, problem=said)
        finally:
            await connection.close()


async def _close(connection: Connection) -> None:
    """Leaves nothing behind, with an agent that can forget."""
    offers = connection.hello.agent_capabilities.session_capabilities
    if connection.session_id is None:
        return
    if offers.close is not None:
        asked = sessions.CloseSessionRequest(session_id=connection.session_id)
        await connection.ask("session/close", asked)
    if offers.delete is not None:
        gone = sessions.DeleteSessionRequest(session_id=connection.session_id)
        await connection.ask("session/delete", gone)


def _can(connection: Connection) -> tuple[str, ...]:
    offers = connection.hello.agent_capabilities
    of_session = offers.session_capabilities
    known = {
        "resume": of_session.resume is not None,
        "load": offers.load_session,
        "images": offers.prompt_capabilities.image,
        "resources": offers.prompt_capabilities.embedded_context,
        "corrections": connection.steers,
    }
    return tuple(name for name, there in known.items() if there)
