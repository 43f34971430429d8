"""Which agents run in this host: one process for each session that one takes part in, started when it is to work,
ended when its session is closed, when it has had nothing to do for long, and with the host.

A process is recorded before it is started, and by its identity before it is spoken to, so that a host that comes
after one that was killed ends what is left.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from attrs import define

from callboard_rpc.errors import CallboardError

from ...features import Ground
from ...log import sqlfile
from ...log.record import Record
from ...log.text import redacted
from ...sessions.driving import Driving
from ...sessions.external import known_session
from ...sessions.identity import identity, life
from ...sessions.profiles import Profile
from ...tools.ending import end_marked, end_tree
from ...tools.offload import ended, finished
from .connection import Connection
from .places import remove_left
from .standing import Standings, status_of

_log = logging.getLogger(__name__)

SQL = sqlfile.load("callboard.acp.client")

_LOOK_S = 5.0
_BACKOFF_S = (0.0, 0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
"""How long a start waits after so many that came to nothing, one after the other."""

_Key = tuple[str, str]


@define
class _Held:
    """A connection, by whom it is used, and when it was used last."""

    connection: Connection
    users: int = 0
    rested_at: float = 0.0


class ExternalAgents:
    """The agents of one host, by session and profile. `environ` is what they inherit."""

    def __init__(
        self,
        ground: Ground,
        environ: Mapping[str, str],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.log = ground.log
        self.cache = ground.cache
        self._environ = environ
        self._host_id = ground.host_id
        self._idle_s = ground.settings.acp.idle_s
        self._spawn = ground.spawn
        self._redact = partial(redacted, ground.log.redact)
        self._clock = clock
        self._held: dict[_Key, _Held] = {}
        self._failed: dict[_Key, int] = {}
        self._starting: dict[_Key, asyncio.Lock] = {}
        self._closed = False
        self.standings = Standings()
        self.log.listen(self._heard)

    # --- a turn comes and goes ---

    async def enter(self, driving: Driving) -> Connection:
        """The agent of a session, ready to be told something: it goes on with what it knows, or begins anew. Leave it
        with `leave`. Raises `CallboardError`."""
        key = (driving.state.session_id, driving.profile.name)
        async with self._starting.setdefault(key, asyncio.Lock()):
            held = self._held.get(key)
            if held is not None and self._usable(held.connection, driving):
                held.users += 1
                return held.connection
            if held is not None:
                del self._held[key]
                await held.connection.close()
            connection = await self._started(key, driving)
            self._held[key] = _Held(connection, users=1)
            return connection

    def _usable(self, connection: Connection, driving: Driving) -> bool:
        """Whether it is the agent that the profile means by now, and knows all that it was told, by whatever server,
        and nothing that is gone."""
        now, then = driving.profile, connection.profile
        started_as = then.command, then.env, then.inherit_env
        if not connection.lives or (now.command, now.env, now.inherit_env) != started_as:
            return False
        known = known_session(self.log.glance, driving.state.session_id, now.name)
        if known is None:
            return connection.fresh
        mine = connection.session_id, connection.through
        return connection.fresh or (known.agent_session_id, known.through) == mine

    def leave(self, connection: Connection) -> None:
        """The turn is over; the agent waits for the next one."""
        for held in self._held.values():
            if held.connection is connection:
                held.users -= 1
                held.rested_at = self._clock()

    def worked(self, driving: Driving) -> None:
        """The agent has answered: it needs no patience any more when it is started."""
        self._failed.pop((driving.state.session_id, driving.profile.name), None)
        self.standings.note(driving.profile, "ready")

    def connections(self) -> list[Connection]:
        """Those with agents that run."""
        return [held.connection for held in self._held.values()]

    # --- starting ---

    async def _started(self, key: _Key, driving: Driving) -> Connection:
        if self._closed:
            raise CallboardError("shuttingDown", "the server is stopping; prompt again later")
        failed = self._failed.get(key, 0)
        self._failed[key] = failed + 1
        await asyncio.sleep(_BACKOFF_S[min(failed, len(_BACKOFF_S) - 1)])
        connection = Connection(driving.profile, log_text=self._redact)
        try:
            await self._open(connection, driving)
            await connection.initialize()
            await self._session(connection, driving)
        except BaseException as fault:
            await connection.close()
            if isinstance(fault, CallboardError):
                self.failed(driving, fault)
            raise
        self.standings.note(driving.profile, "ready")
        return connection

    def failed(self, driving: Driving, fault: CallboardError) -> None:
        """Keeps in mind how the agent of a profile stands."""
        status = status_of(fault, driving.profile, self._environ)
        self.standings.note(driving.profile, status)

    async def _open(self, connection: Connection, driving: Driving) -> None:
        mark = self.log.ids.new("acp")
        await self.log.transact(lambda tx: tx.execute(SQL["insert_process"], mark, self._host_id))
        try:
            process = await connection.open(
                cwd=Path(driving.state.cwd),
                environment=environment_of(self._environ, driving.profile),
                mark=mark,
            )
        except BaseException:
            await self._forget(mark)
            raise

        async def forget() -> None:
            await process.over.wait()
            await self._forget(mark)

        self._spawn(forget, f"record of agent {mark}")
        told = identity(process.pid)
        await self.log.transact(
            lambda tx: tx.execute(SQL["identify_process"], process.pid, told, mark)
        )

    @asynccontextmanager
    async def recorded(
        self, mark: str, over: Callable[[], Awaitable[None]] | None = None
    ) -> AsyncGenerator[None]:
        """What is started with that mark is ended by whoever comes next, if this host dies meanwhile: until this
        is left, and `over` has returned."""
        await self.log.transact(lambda tx: tx.execute(SQL["insert_process"], mark, self._host_id))
        try:
            yield
        finally:

            async def forget() -> None:
                if over is not None:
                    await over()
                await self._forget(mark)

            self._spawn(forget, f"record of {mark}")

    async def _forget(self, mark: str) -> None:
        with contextlib.suppress(CallboardError):
            await self.log.transact(lambda tx: tx.execute(SQL["delete_process"], mark))

    async def _session(self, connection: Connection, driving: Driving) -> None:
        state = driving.state
        known = known_session(self.log.glance, state.session_id, driving.profile.name)
        place = (state.cwd, tuple(state.directories))
        if known is not None:
            connection.through = known.through
            if await connection.take_up(known.agent_session_id, *place):
                connection.fresh = False
                return
            connection.lost = True
        await connection.new_session(*place)

    # --- ending ---

    def _heard(self, records: list[Record]) -> None:
        for record in records:
            if record.type in ("session_closed", "session_deleted"):
                for key in [key for key in self._held if key[0] == record.session_id]:
                    self._end(key)
            elif record.type == "member_removed":
                self._end((record.session_id, record.value.name))

    def drop(self, connection: Connection) -> None:
        """Ends an agent that cannot be relied on any more; the next turn starts it again."""
        for key, held in list(self._held.items()):
            if held.connection is connection:
                self._end(key)

    def _end(self, key: _Key) -> None:
        held = self._held.pop(key, None)
        if held is not None:
            self._spawn(held.connection.close, f"end of agent {key[1]}")

    async def keep(self) -> None:
        """Ends those that have nothing to do, for as long as the host lives; and then all."""
        try:
            while True:
                await asyncio.sleep(min(_LOOK_S, self._idle_s))
                now = self._clock()
                for key, held in list(self._held.items()):
                    if not held.users and now - held.rested_at >= self._idle_s:
                        self._end(key)
        finally:
            self._closed = True
            held, self._held = list(self._held.values()), {}
            await asyncio.gather(*(each.connection.close() for each in held))

    async def recover(self) -> None:
        """Ends what hosts have left running that are gone, and removes the folders of their probes."""
        left = await self.log.query(SQL["left_behind"])
        if not left:
            return
        for mark, pid, told in left:
            await ended(partial(_end_left, mark, pid, told))
            await finished(partial(remove_left, mark))
            await self._forget(mark)
        _log.info("%d agents of servers that are gone were ended", len(left))


def _end_left(mark: str, pid: int | None, told: str | None) -> None:
    if pid is not None and told is not None and life(pid, told) == "alive":
        end_tree(pid, mark)
    else:
        end_marked((mark,))


def environment_of(environ: Mapping[str, str], profile: Profile) -> dict[str, str]:
    """What an agent's program inherits: what the server has (its logins are in there), but for what is Callboard's
    own; and what its profile says. One that is to inherit nothing has what any program needs to run."""
    inherited = {
        name: value
        for name, value in environ.items()
        if not name.startswith("CALLBOARD_") and (profile.inherit_env or _is_plain(name))
    }
    return {**inherited, **profile.env}


_PLAIN = frozenset(
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TZ", "TMPDIR", "TMP", "TEMP"]
)  # fmt: skip


def _is_plain(name: str) -> bool:
    return name in _PLAIN or name.startswith(("LC_", "XDG_"))
