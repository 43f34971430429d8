"""What an agent is like, found out by starting it: its version, whether it wants a login, what it can do."""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, Literal

from callboard_rpc.common import UnknownVariant
from callboard_rpc.errors import CallboardError
from callboard_rpc.profiles import (
    AgentProbeResult,
    ProbeCheck,
    ProbedAgent,
    ProbedChoice,
    ProbedLogin,
    ProbeStatus,
)

from ...sessions.profiles import Profile
from ..contract import server, sessions
from .connection import Connection
from .failures import AGAIN
from .places import folder_of
from .service import environment_of
from .standing import program_of, status_of

PROBE_S = 10.0
"""How long an agent may take to show itself."""
AT_ONCE: Final = 3
"""How many are started at the same time."""
_MOST: Final = 100
_NAME_CHARS: Final = 200
_CHARS: Final = 1_000
_DETAIL_CHARS: Final = 4_000

_Stage = Literal["program", "handshake", "session"]


async def probe_all(
    profiles: Iterable[Profile],
    environ: Mapping[str, str],
    *,
    redact: Callable[[str], str],
    within_s: float = PROBE_S,
) -> list[AgentProbeResult]:
    """Probes each, a few at a time."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(profile: Profile) -> AgentProbeResult:
        async with slots:
            mark = f"probe-{os.getpid()}-{profile.name}"
            connection = Connection(profile, log_text=redact)
            return await probe(connection, environ, mark=mark, redact=redact, within_s=within_s)

    return list(await asyncio.gather(*(one(each) for each in profiles)))


async def probe(
    connection: Connection,
    environ: Mapping[str, str],
    *,
    mark: str,
    redact: Callable[[str], str],
    within_s: float = PROBE_S,
) -> AgentProbeResult:
    """Starts the agent of a connection, asks it, and ends it again with all that it has started. `mark` is what its
    processes bear, `environ` what it inherits."""
    profile = connection.profile
    inherited = environment_of(environ, profile)
    seen = _Seen(connection, redact)
    async with folder_of(mark) as folder:
        try:
            async with asyncio.timeout(within_s):
                await connection.open(cwd=Path(folder), environment=inherited, mark=mark)
                seen.passed("program", program_of(profile, inherited) or profile.command[0])
                await connection.initialize()
                seen.passed("handshake", connection.name or "says no name")
                await connection.new_session(folder, ())
                await _close(connection)
                seen.passed("session", "opened")
            return seen.result("ready")
        except CallboardError as error:
            seen.failed(error.message.removesuffix(f"\n{AGAIN}"))
            return seen.result(status_of(error, profile, inherited))
        except TimeoutError:
            seen.failed(f"did not show itself within {within_s:g} s")
            return seen.result("error")
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


class _Seen:
    """What was found out so far. Words of the agent's are redacted and cut."""

    def __init__(self, connection: Connection, redact: Callable[[str], str]) -> None:
        self._connection = connection
        self._redact = redact
        self._checks: list[ProbeCheck] = []

    def passed(self, stage: _Stage, detail: str) -> None:
        self._checks.append(ProbeCheck(name=stage, ok=True, detail=self._text(detail)))

    def failed(self, detail: str) -> None:
        stages: tuple[_Stage, ...] = ("program", "handshake", "session")
        stage = stages[min(len(self._checks), len(stages) - 1)]
        told = self._text(detail, _DETAIL_CHARS)
        self._checks.append(ProbeCheck(name=stage, ok=False, detail=told))

    def result(self, status: ProbeStatus) -> AgentProbeResult:
        connection = self._connection
        began = any(check.name == "handshake" and check.ok for check in self._checks)
        return AgentProbeResult(
            profile=connection.profile.name,
            ok=status == "ready",
            status=status,
            checks=tuple(self._checks),
            agent_info=self._info(),
            capabilities=_capabilities(connection) if began else {},
            auth_methods=tuple(map(self._login, connection.hello.auth_methods[:_MOST])),
            modes=self._choices("mode"),
            models=self._choices("model"),
        )

    def _text(self, words: str, chars: int = _CHARS) -> str:
        return self._redact(words)[:chars]

    def _name(self, words: str) -> str:
        return self._text(words, _NAME_CHARS)

    def _maybe(self, words: str | None) -> str | None:
        return None if words is None else self._text(words)

    def _info(self) -> ProbedAgent | None:
        info = self._connection.hello.agent_info
        if info is None:
            return None
        title = None if info.title is None else self._name(info.title)
        return ProbedAgent(
            name=self._name(info.name), title=title, version=self._name(info.version)
        )

    def _login(self, method: server.AuthMethod | UnknownVariant) -> ProbedLogin:
        if isinstance(method, UnknownVariant):
            told = {k: v for k, v in method.fields.items() if isinstance(v, str)}
            return ProbedLogin(
                id=self._name(told.get("id", "")),
                name=self._name(told.get("name", "")),
                description=self._maybe(told.get("description")),
            )
        return ProbedLogin(
            id=self._name(method.id),
            name=self._name(method.name),
            description=self._maybe(method.description),
        )

    def _choices(self, category: Literal["mode", "model"]) -> tuple[ProbedChoice, ...]:
        offered = self._connection.choices.offered(self._connection.profile.name)
        option = next((each for each in offered if each.category == category), None)
        if option is None:
            return ()
        return tuple(
            ProbedChoice(
                id=self._name(each.value),
                name=self._name(each.name),
                description=self._maybe(each.description),
                current=each.value == option.value,
            )
            for each in option.values[:_MOST]
        )


def _capabilities(connection: Connection) -> dict[str, bool]:
    offers = connection.hello.agent_capabilities
    of_session, prompts = offers.session_capabilities, offers.prompt_capabilities
    return {
        "resume": of_session.resume is not None,
        "load": offers.load_session,
        "list": of_session.list is not None,
        "close": of_session.close is not None,
        "delete": of_session.delete is not None,
        "images": prompts.image,
        "audio": prompts.audio,
        "resources": prompts.embedded_context,
        "corrections": connection.steers,
        "logout": offers.auth.logout is not None,
    }
