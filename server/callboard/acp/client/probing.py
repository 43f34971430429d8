"""Probes for whoever asks this server: a few at once, in tasks of the host, so that each is ended in order though nobody
waits for it any more, and by whoever comes next where this server dies meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from callboard_rpc.profiles import AgentProbeResult

from ...sessions.profiles import Profile
from .connection import Connection
from .probe import AT_ONCE, probe
from .service import ExternalAgents


class Probes:
    """`environ` is what the programs inherit; `spawn` gives a task to the host."""

    def __init__(
        self,
        agents: ExternalAgents,
        environ: Mapping[str, str],
        *,
        redact: Callable[[str], str],
        spawn: Callable[[Callable[[], Awaitable[None]], str], None],
    ) -> None:
        self._agents = agents
        self._environ = environ
        self._redact = redact
        self._spawn = spawn
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def probe(self, profile: Profile) -> AgentProbeResult:
        """Whoever is cancelled here ends the probe, which sees to its process by itself."""
        outcome: asyncio.Future[AgentProbeResult] = asyncio.get_running_loop().create_future()
        begun: list[asyncio.Task[object]] = []

        async def run() -> None:
            task = asyncio.current_task()
            if outcome.done() or task is None:
                return
            begun.append(task)
            try:
                result = await self._probe(profile)
            except BaseException as fault:
                if not outcome.done():
                    outcome.set_exception(fault)
                raise
            if not outcome.done():
                outcome.set_result(result)

        self._spawn(run, f"probe of {profile.name}")
        try:
            return await outcome
        finally:
            if not outcome.done() or outcome.cancelled():
                for task in begun:
                    task.cancel()
                outcome.cancel()

    async def _probe(self, profile: Profile) -> AgentProbeResult:
        async with self._slots:
            mark = self._agents.log.ids.new("acp")
            connection = Connection(profile, log_text=self._redact)
            async with self._agents.recorded(mark, connection.over):
                result = await probe(connection, self._environ, mark=mark, redact=self._redact)
        self._agents.standings.note(profile, result.status)
        return result
