"""Who waits for the end of a run, and hears of it after the commit: a parent for its child's, say.

That somebody is to be told is written in the transaction of the end, by whatever path the run ends,
and taken away once it was told. So it is told at least once, also when a host dies in between, and a
listener must take being told twice. What it is told is read from the store (execution 24-26).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from attrs import frozen

from callboard_rpc.errors import CallboardError
from callboard_rpc.events import TurnFinished
from callboard_rpc.sessions import Turn

from ..log.log import Log
from ..log.record import Record
from ..log.transaction import Projection, Transaction
from ..turns.projection import SQL as TURN_SQL
from .projection import SQL
from .reading import Reading

_log = logging.getLogger(__name__)

_DELAYS_S = (0.1, 0.5, 2.0, 10.0)
"""Between the attempts to tell a listener that fails; then it is told again with the session's next
run, or by the host that takes over from this one."""


def _every_run(tx: Transaction, record: Record) -> bool:
    return True


@frozen(kw_only=True)
class RunListener:
    """`told` hears of each run that has ended and that `wants` wanted, those of one session in order.

    `wants` is asked in the transaction of the end, and must be quick. A run that is parked has not
    ended. What `told` raises, or takes longer than `limit_s` for, changes nothing about the run, and is
    tried again. The name is kept in the store.
    """

    name: str
    told: Callable[[Turn], Awaitable[None]]
    wants: Callable[[Transaction, Record], bool] = _every_run
    limit_s: float = 30.0


class RunListeners:
    """The listeners of one host. `projection` notes in each run's last commit who is to be told."""

    def __init__(self) -> None:
        self._by_name: dict[str, RunListener] = {}

    def register(self, listeners: Sequence[RunListener]) -> None:
        """Adds listeners. Raises `ValueError` for a name that is taken."""
        for listener in listeners:
            if listener.name in self._by_name:
                raise ValueError(f"there are two listeners named {listener.name!r}")
            self._by_name[listener.name] = listener

    def get(self, name: str) -> RunListener | None:
        return self._by_name.get(name)

    def __bool__(self) -> bool:
        return bool(self._by_name)

    @property
    def projection(self) -> Projection:
        # No table of it is rebuilt: who was told already cannot be seen from the log.
        return Projection(
            name="run listeners",
            tables=(),
            apply={"turn_finished": self._note},
            forget=self._forget,
        )

    def _forget(self, tx: Transaction, session_id: str) -> None:
        tx.execute(SQL["forget_runs_to_tell"], session_id)

    def _note(self, tx: Transaction, record: Record) -> None:
        if not self._by_name:
            return
        owner = tx.one(TURN_SQL["owner"], record.session_id)
        if owner is None or owner[1] is None or owner[1] != record.fence:
            return  # no run ends here: the event is read again, or was imported
        finished: TurnFinished = record.value
        for listener in self._by_name.values():
            if _wanted(tx, listener, record):
                tx.execute(
                    SQL["insert_run_to_tell"],
                    listener.name,
                    finished.turn_id,
                    record.session_id,
                    owner[4],
                )


def _wanted(tx: Transaction, listener: RunListener, record: Record) -> bool:
    answers: list[bool] = []
    fault = tx.contain(lambda: answers.append(listener.wants(tx, record)))
    if fault is not None:
        _log.error("the listener %s could not say what it wants", listener.name, exc_info=fault)
    return not answers or answers[0]


class Telling:
    """Tells the listeners of one host, in tasks of the host."""

    def __init__(
        self,
        log: Log,
        listeners: RunListeners,
        reading: Reading,
        *,
        host_id: str,
        spawn: Callable[[Callable[[], Awaitable[None]], str], None],
    ) -> None:
        self._log = log
        self._listeners = listeners
        self._reading = reading
        self._host_id = host_id
        self._spawn = spawn
        self._busy: set[str] = set()
        log.listen(self._heard)

    def _heard(self, records: list[Record]) -> None:
        if self._listeners:
            for record in records:
                if record.type == "turn_finished":
                    self._begin(record.session_id)

    def _begin(self, session_id: str) -> None:
        """Whoever tells of this session already looks again when it is done."""
        if session_id not in self._busy and self._waiting(session_id):
            self._busy.add(session_id)
            self._spawn(lambda: self._tell(session_id), f"listeners of {session_id}")

    def _waiting(self, session_id: str) -> list[tuple[int, str, str]]:
        rows = self._log.glance(SQL["runs_to_tell"], session_id, self._host_id)
        return [row for row in rows if self._listeners.get(row[1]) is not None]  # pyright: ignore[reportReturnType]

    async def adopt(self) -> None:
        """Tells what hosts that are gone had to tell. Of two hosts that look at once, one does."""
        if not self._listeners:
            return
        rows = await self._log.transact(lambda tx: tx.all(SQL["adopt_runs_to_tell"], self._host_id))
        for session_id in dict.fromkeys(session_id for (session_id,) in rows):
            self._begin(session_id)

    async def _tell(self, session_id: str) -> None:
        try:
            given_up: set[str] = set()
            while True:
                waiting = [row for row in self._waiting(session_id) if row[1] not in given_up]
                if not waiting:
                    return
                key, name, turn_id = waiting[0]
                listener = self._listeners.get(name)
                if listener is not None and not await self._insist(listener, turn_id):
                    given_up.add(name)  # its later runs wait, too: they are told in order
                    continue
                await self._log.transact(
                    lambda tx, key=key: tx.execute(SQL["delete_run_to_tell"], key)
                )
        finally:
            self._busy.discard(session_id)

    async def _insist(self, listener: RunListener, turn_id: str) -> bool:
        for delay_s in (*_DELAYS_S, None):
            try:
                turn = await self._reading.turn(turn_id)
            except CallboardError as error:
                if error.kind == "turnNotFound":
                    return True  # its session was deleted: there is nothing to tell any more
                raise
            try:
                async with asyncio.timeout(listener.limit_s):
                    await listener.told(turn)
                return True
            except Exception:
                _log.exception("the listener %s failed for turn %s", listener.name, turn_id)
            if delay_s is not None:
                await asyncio.sleep(delay_s)
        return False
