"""Sessions that were put away long ago are deleted, where the configuration says so: whole, one after the
other, and never one that runs or in which something waits."""

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta

from callboard_rpc.errors import CallboardError

from ..log.clock import parse
from ..log.log import Log
from ..log.transaction import Transaction
from ..turns.reservation import SYSTEM
from .upkeep import SQL

_log = logging.getLogger(__name__)

FIRST_LOOK_S = 60.0
"""A host that has just come has other things to do."""
LOOK_S = 3_600.0
_BATCH = 50


class Retention:
    """Deletes archived and closed sessions in which nothing has happened for `days`, with their
    children. Pinned ones stay. Every host may do it; a session goes once."""

    def __init__(self, log: Log, *, days: float, now: Callable[[], str]) -> None:
        self._log = log
        self._days = days
        self._now = now

    async def keep(self) -> None:
        """Does it now and then, for as long as the host lives."""
        await asyncio.sleep(FIRST_LOOK_S)
        while True:
            try:
                await self.forget_old()
            except CallboardError as error:
                _log.warning("old sessions could not be deleted: %s", error)
            except Exception:
                _log.exception("old sessions could not be deleted")
            await asyncio.sleep(LOOK_S)

    async def forget_old(self) -> list[str]:
        """Deletes what is old now; the roots that went."""
        oldest = parse(self._now()) - timedelta(days=self._days)
        before = oldest.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
        gone: list[str] = []
        while True:
            rows = await self._log.query(SQL["out_of_date"], before, None, _BATCH)
            went = [root_id for (root_id,) in rows if await self._forget(root_id, before)]
            gone += went
            if len(rows) < _BATCH or not went:
                break
        if gone:
            _log.info("%d sessions were deleted, put away for %g days", len(gone), self._days)
        return gone

    async def _forget(self, root_id: str, before: str) -> bool:
        def decide(tx: Transaction) -> bool:
            # it may have been taken up again, or gone, since it was found
            if tx.one(SQL["out_of_date"], before, root_id, 1) is None:
                return False
            for (each,) in tx.all(SQL["tree"], root_id):
                tx.delete_session(each, actor=SYSTEM)
            return True

        return await self._log.transact(decide)
