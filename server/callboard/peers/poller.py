"""Wakes idle sessions for which a linked one has written: one for each host, for the sessions that somebody
works with there (interrupts-and-peers 4.5, half 2).

It hears of messages as they are committed, by whatever process, and looks by itself besides. It only delivers
and wakes: a turn is never waited for, each session has a task of its own, and what fails for one keeps up no
other (49). What a tick of it raises is logged; should it end all the same, another one takes its place (50).
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

import orjson

from callboard_rpc.errors import CallboardError
from callboard_rpc.events import PeerMessageSent, TurnStarted

from ..log.log import Log
from ..log.record import Record
from ..sessions.dispatch import Dispatcher
from ..sessions.opened import OpenedSessions
from . import receiving
from .consent import SQL

_log = logging.getLogger(__name__)

_AGAIN_S = 0.25
"""After how long another poller takes the place of one that has ended."""
_TIDY_S = 600.0


class Poller:
    """`tidy` is done now and then; `spawn` gives a task to the host."""

    def __init__(
        self,
        log: Log,
        dispatcher: Dispatcher,
        opened: OpenedSessions,
        *,
        poll_s: float,
        spawn: Callable[[Callable[[], Awaitable[None]], str], None],
        tidy: Callable[[], Awaitable[None]],
    ) -> None:
        self._log = log
        self._dispatcher = dispatcher
        self._opened = opened
        self._poll_s = poll_s
        self._spawn = spawn
        self._tidy = tidy
        self._woken = asyncio.Event()
        self._delivering: set[str] = set()
        self._again: set[str] = set()
        self._following = contextlib.ExitStack()
        self._follows = False
        self.task: asyncio.Task[None] | None = None
        """The one that polls now."""

    async def keep(self) -> None:
        """Polls for as long as the host lives."""
        self._log.listen(self._heard)
        self._log.feed.on_skip(self._woken.set)
        self._opened.listen(lambda _: self._woken.set())
        while True:
            self.task = asyncio.get_running_loop().create_task(self._poll(), name="peer poller")
            try:
                await asyncio.wait([self.task])
            finally:
                self.task.cancel()
                await asyncio.gather(self.task, return_exceptions=True)
                self._unfollow()
            _log.warning("the poller of linked sessions has ended, and begins anew")
            await asyncio.sleep(_AGAIN_S)

    # --- what happens -------------------------------------------------------------------------------

    def _heard(self, records: list[Record]) -> None:
        for record in records:
            match record.type:
                case "peer_message_sent":
                    sent: PeerMessageSent = record.value
                    self._look(sent.to)
                case "turn_started" if record.fence:
                    started: TurnStarted = record.value
                    if started.host_id == self._dispatcher.host_id:
                        self._opened.note(record.session_id)
                case "turn_finished" if self._follows:
                    self._look(record.session_id)
                case "session_unarchived" | "peer_linked":
                    self._look(record.session_id)
                case "session_deleted":
                    self._opened.forget(record.session_id)
                case _:
                    pass

    def _look(self, session_id: str) -> None:
        if session_id in self._opened:
            self._woken.set()

    # --- looking ------------------------------------------------------------------------------------

    async def _poll(self) -> None:
        clock = asyncio.get_running_loop().time
        tidied = -_TIDY_S
        while True:
            self._woken.clear()  # before the look: what comes meanwhile ends the wait below
            try:
                await self._tick()
                if clock() - tidied >= _TIDY_S:
                    tidied = clock()
                    await self._tidy()
            except CallboardError as error:
                _log.warning("linked sessions wait for the store: %s", error)
            except Exception:
                _log.exception("linked sessions could not be looked at")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._poll_s):
                    await self._woken.wait()

    async def _tick(self) -> None:
        opened = self._opened.ids()
        if not opened:
            self._unfollow()
            return
        ids = orjson.dumps(sorted(opened)).decode()
        if await self._log.query(SQL["any_links"], ids):
            self._follow()  # before the look, so that nothing falls in between
        else:
            self._unfollow()
        for (session_id,) in await self._log.query(SQL["to_wake"], ids):
            self._deliver_to(session_id)

    def _follow(self) -> None:
        if not self._follows:
            self._following.enter_context(self._log.feed.followed())
            self._follows = True

    def _unfollow(self) -> None:
        self._following.close()
        self._follows = False

    # --- delivering ---------------------------------------------------------------------------------

    def _deliver_to(self, session_id: str) -> None:
        if session_id in self._delivering:
            self._again.add(session_id)
            return
        self._delivering.add(session_id)
        self._spawn(lambda: self._deliver(session_id), f"messages for {session_id}")

    async def _deliver(self, session_id: str) -> None:
        try:
            host_id = self._dispatcher.host_id
            if await self._log.transact(lambda tx: receiving.deliver(tx, session_id, host_id)):
                await self._dispatcher.wake_here(session_id)
        except CallboardError as error:
            if error.kind not in ("sessionNotFound", "shuttingDown"):
                _log.warning("session %s could not be given its messages: %s", session_id, error)
        finally:
            self._delivering.discard(session_id)
            if session_id in self._again:
                self._again.discard(session_id)
                self._woken.set()
