"""Receipts of sessions whose history came from elsewhere."""

from pathlib import Path

import pytest
from inbox_kit import CHILD, bench, envelope

from callboard.sessions.inbox import deliveries
from callboard_rpc.common import MessageId, TextContent
from callboard_rpc.events import Author, Delivered, Message

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("generation", [7, -1, (1 << 63) - 1])
async def test_a_history_with_deliveries_in_it_goes_on_from_there(
    store_path: Path, generation: int
) -> None:
    """An import, a fork: there are receipts, and no inbox yet. What the file says is not to be relied on."""
    async with bench(store_path) as on:
        await on.session("ses_a")
        said = Message(
            message_id=MessageId("msg_1"),
            author=Author(kind="peer", name="another"),
            content=(TextContent(text="from before"),),
            delivered=Delivered(delivery_id="one", generation=generation, digest="d", kind="peer"),
        )
        await on.log.append("ses_a", said, actor=CHILD)
        again = await on.log.append("ses_a", said, actor=CHILD)  # a file may say it twice, too
        assert again.seq == 3
        accepted = await on.log.transact(
            lambda tx: deliveries.deliver(tx, "ses_a", envelope("new"), by=CHILD, host_id="h")
        )
        assert not accepted.repeated
        assert accepted.generation == max(0, min(generation, 1 << 53)) + 1
        await on.log.transact(lambda tx: deliveries.authorise(tx, "ses_a", accepted.generation))
        (claimed,) = await on.leases.claim("ses_a", "here", lease_s=60)
        await on.leases.acknowledge(await on.run("ses_a"), claimed.claim)
        assert await on.history("ses_a") == ["from before", "from before", "new"]
