"""Which processes share the store, and what is done for those that are gone.

Each host has a row and renews its heartbeat. A host is gone when its process is, which is seen at once
on the same machine; or when its heartbeat has stood still for long by our own clock: stopped, or on
a machine that cannot be seen. Its runs then end or are parked, once, and what waits is woken. A host
that comes back finds its writes refused by the fence and stops.
"""

import os
import time
from collections.abc import Callable, Sequence

from ..log.log import Log
from ..log.transaction import Transaction
from ..turns.finish import Hook
from .identity import Life, identity, life
from .projection import SQL
from .recovery import take_over

BEAT_S = 10.0
"""How often the heartbeat is renewed."""
LIMIT_S = 35.0
"""How long a heartbeat may stand still."""


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
        self._host_id = host_id
        self._hooks = hooks
        self._is_alive = is_alive
        self._clock = clock
        self._seen: dict[str, tuple[str, float]] = {}
        self._beaten = clock()

    async def arrive(self) -> None:
        """Registers this host and cares for those that are gone."""
        await self._log.transact(self._register)
        await self.look()

    @property
    def alone(self) -> bool:
        """Whether no other host was there at the last look."""
        return not self._seen

    def _register(self, tx: Transaction) -> None:
        now = tx.now()
        pid = os.getpid()
        tx.execute(SQL["register_host"], self._host_id, pid, identity(pid), now, now)

    async def beat(self) -> None:
        """Renews the heartbeat when it is time. A host that was taken for gone registers anew."""
        if self._clock() - self._beaten >= BEAT_S:
            self._beaten = self._clock()
            await self._log.transact(self._register)

    async def look(self) -> bool:
        """Cares for hosts that are gone. True when one went, so that something may wait that it had
        accepted."""
        before = set(self._seen)
        gone = self._gone()
        known = {self._host_id, *self._seen} - set(gone)
        orphans = self._log.feed.query(SQL["hosts_of_owners"])
        lost = {*gone, *(host for (host,) in orphans if host not in known)}
        if lost:
            await take_over(self._log, sorted(lost), hooks=self._hooks)
            for host in lost:
                self._seen.pop(host, None)
        return bool(lost) or not before <= set(self._seen)

    def _gone(self) -> list[str]:
        now = self._clock()
        rows = self._log.feed.query(SQL["hosts"])
        present = {host for host, *_ in rows}
        self._seen = {host: seen for host, seen in self._seen.items() if host in present}
        gone: list[str] = []
        for host, pid, told, beat in rows:
            if host == self._host_id:
                continue
            known = self._seen.get(host)
            if known is None or known[0] != beat:
                known = self._seen[host] = (beat, now)
            if self._is_alive(pid, told) == "gone" or now - known[1] > LIMIT_S:
                gone.append(host)
        return gone

    async def leave(self) -> None:
        """Takes this host's row away."""
        await self._log.transact(lambda tx: tx.execute(SQL["forget_host"], self._host_id))
