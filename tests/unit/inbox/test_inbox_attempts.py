"""How often a delivery is tried, where a turn has it in hand just now."""

from pathlib import Path

import pytest
from inbox_kit import bench

from callboard.log.transaction import Transaction
from callboard.sessions.inbox import deliveries, runs
from callboard.sessions.inbox.state import MAX_ATTEMPTS, Coalesced
from callboard_rpc.events import DeliveriesDropped

pytestmark = pytest.mark.anyio


async def test_what_a_turn_tries_for_the_last_time_is_not_set_aside_meanwhile(
    store_path: Path,
) -> None:
    async with bench(store_path) as on:
        await on.session("ses_a", "last try", "tried too often", authorised=2)

        def earlier(tx: Transaction) -> None:
            tx.execute("UPDATE inbox SET attempts = ? + generation - 2", MAX_ATTEMPTS)

        await on.log.transact(earlier)
        grant = await on.run("ses_a")
        kind = await on.log.transact(
            lambda tx: runs.begun_selected(tx, grant, "host_a", 1, tx.now())
        )
        assert kind == "peer"
        asked = await on.log.transact(lambda tx: deliveries.ask(tx, "ses_a", 2, host_id="host_a"))
        assert asked == Coalesced()
        (dropped,) = [
            r.value for r in await on.log.session("ses_a") if isinstance(r.value, DeliveriesDropped)
        ]
        assert [each.generation for each in dropped.deliveries] == [2]
        await on.log.transact(lambda tx: runs.source(on.clock.now).drain(tx, grant))
        assert await on.history("ses_a") == ["last try"]
