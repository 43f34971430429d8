"""Which processes share the store, and what is done for those that are gone.

Each host has a row and renews its heartbeat. A host is gone when its process is, which is seen at once
on the same machine; or when its heartbeat has stood still for long by our own clock: stopped, or on
a machine that cannot be seen. Its runs then end or are parked, once, and what waits is woken. A host
that comes back finds its writes refused by the fence and stops.
"""

import asyncio
import contextvars
import os
import time
from collections.abc import Callable, Sequence

from ..log.log import Log
from ..log.transaction import Transaction
from ..turns.finish import Hook
from ..turns.reservation import Grant
from .identity import Life, identity, life
from .projection import SQL
from .recovery import conclude, seize_runs

BEAT_S = 10.0
"""How often the heartbeat is renewed."""
LIMIT_S = 35.0
"""How long a heartbeat may stand still."""
_AGAIN_S = 3.0
"""How long a run that was seized, and that the store did not let end, is left alone."""
_LEAVE_S = 1.0
"""How long a look that is under way may take when the host goes."""
_BLIND_S = 10.0
"""Without a look for so long, this process itself was stopped."""


class Presence:
    """This host among the others of its store. `clock` is monotonic, in seconds."""

    def __init__(
        self,
        log: Log,
        host_id: str,
        *,
        hooks: Sequence[Hook] = (),
        is_alive: Callable[[int, str], Life] = life,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = log
        self.host_id = host_id
        self._hooks = hooks
        self._is_alive = is_alive
        self._clock = clock
        self._seen: dict[str, tuple[str, float]] = {}
        self._beaten = clock()
        self._looking = asyncio.Lock()
        self._looks: set[asyncio.Task[bool]] = set()
        self._last_look = clock()
        self._runs: tuple[Grant, ...] = ()
        """Seized, and not ended yet: a full disk must not leave them with an owner that runs nothing."""
        self._again = clock()
        self._told = False

    async def arrive(self) -> None:
        """Registers this host and cares for those that are gone."""
        await self._log.transact(self._register)
        self._log.feed.knock()
        await self.look()

    @property
    def alone(self) -> bool:
        """Whether no other host was there at the last look."""
        return not self._seen

    def _register(self, tx: Transaction) -> None:
        now = tx.now()
        pid = os.getpid()
        tx.execute(SQL["register_host"], self.host_id, pid, identity(pid), now, now)

    def attend(self, tx: Transaction) -> None:
        """Registers this host in a transaction that takes a session, should it have been taken for gone
        and not know that yet."""
        if tx.one(SQL["heartbeat"], self.host_id) is None:
            self._register(tx)

    async def beat(self) -> None:
        """Renews the heartbeat when it is time. A host that was taken for gone registers anew."""
        if self._clock() - self._beaten >= BEAT_S:
            self._beaten = self._clock()
            await self._log.transact(self._register)

    async def look(self) -> bool:
        """Cares for hosts that are gone. True when one went, or a run of one was ended, so that
        something may wait that it had accepted. Cancelling the caller does not stop it."""
        # a clean context: what a request wants to know of its own work is no affair of a take-over
        look = asyncio.get_running_loop().create_task(self._look(), context=contextvars.Context())
        self._looks.add(look)
        look.add_done_callback(self._looked)
        return await asyncio.shield(look)

    def _looked(self, look: "asyncio.Task[bool]") -> None:
        self._looks.discard(look)
        if not look.cancelled():
            look.exception()  # whoever waits for it has it; who was cancelled needs it no more

    async def care(self) -> None:
        """Looks on behalf of somebody who is about to decide something that a host which has just died
        would have been the one to act on. What it finds is told by the next `look`."""
        self._told = await self.look() or self._told

    async def _look(self) -> bool:
        async with self._looking:
            before = set(self._seen)
            gone = self._gone()
            if gone:
                self._runs += tuple(await seize_runs(self._log, gone, by=self.host_id))
            for host in gone:
                self._seen.pop(host, None)
            ended = False
            if gone or (self._runs and self._clock() >= self._again):
                left = await conclude(self._log, self._runs, hooks=self._hooks)
                ended = len(left) < len(self._runs)
                self._runs = left
                self._again = self._clock() + _AGAIN_S
            told, self._told = self._told, False
            return told or ended or bool(gone) or not before <= set(self._seen)

    def _gone(self) -> dict[str, str | None]:
        """The hosts that are gone, with the heartbeat by which that was judged; those without a row
        that still own something among them."""
        now = self._clock()
        if now - self._last_look > _BLIND_S:
            # we stood still ourselves: what did not move meanwhile may not have had the time
            self._seen = {host: (beat, now) for host, (beat, _) in self._seen.items()}
        self._last_look = now
        rows = self._log.glance(SQL["hosts"])
        present = {host for host, *_ in rows}
        self._seen = {host: seen for host, seen in self._seen.items() if host in present}
        gone: dict[str, str | None] = {}
        for host, pid, told, beat in rows:
            if host == self.host_id:
                continue
            known = self._seen.get(host)
            if known is None or known[0] != beat:
                known = self._seen[host] = (beat, now)
            if self._is_alive(pid, told) == "gone" or now - known[1] > LIMIT_S:
                gone[host] = beat
        for (host,) in self._log.glance(SQL["hosts_of_owners"]):
            if host not in present and host != self.host_id:
                gone[host] = None
        return gone

    async def leave(self) -> None:
        """Takes this host's row away."""
        if self._looks:
            await asyncio.wait(list(self._looks), timeout=_LEAVE_S)
        await self._log.transact(lambda tx: tx.execute(SQL["forget_host"], self.host_id))
