"""specs/execution.md 4 and 40: claims with a time limit, and acknowledgements that can be repeated."""

import asyncio
from pathlib import Path

import attrs
import pytest
from inbox_kit import bench

from callboard.log.faults import StaleFence
from callboard.log.transaction import Transaction
from callboard.sessions.inbox import deliveries, runs
from callboard.sessions.inbox.state import MAX_EPOCH, StaleClaim
from callboard_rpc.errors import CallboardError

pytestmark = pytest.mark.anyio

HERE, THERE = "here", "there"


async def test_execution_35_a_claim_gives_what_is_authorised_in_order_and_nothing_else(
    store_path: Path,
) -> None:
    async with bench(store_path) as on:
        await on.session("ses_a", "a", "b", "c", authorised=2)
        await on.session("ses_b", "inert")
        got = await on.leases.claim("ses_a", HERE, lease_s=60)
        assert [each.claim.generation for each in got] == [1, 2]
        assert [each.body.content[0].text for each in got] == ["a", "b"]  # type: ignore[union-attr]
        assert await on.leases.claim("ses_b", HERE, lease_s=60) == ()
        assert await on.leases.claim("ses_none", HERE, lease_s=60) == ()


async def test_execution_40_a_live_claim_is_exclusive_and_nothing_overtakes_it(
    store_path: Path,
) -> None:
    async with bench(store_path) as on:
        await on.session("ses_a", "a", "b", authorised=2)
        (first,) = await on.leases.claim("ses_a", HERE, lease_s=60, limit=1)
        assert first.claim.generation == 1
        assert await on.leases.claim("ses_a", THERE, lease_s=60) == ()


async def test_execution_40_a_claim_again_by_its_owner_is_the_same_and_no_longer(
    store_path: Path,
) -> None:
    async with bench(store_path) as on:
        await on.session("ses_a", "a", authorised=1)
        (first,) = await on.leases.claim("ses_a", HERE, lease_s=60)
        on.clock.goes_on(59)
        (again,) = await on.leases.claim("ses_a", HERE, lease_s=600)
        assert again.claim == first.claim
        on.clock.goes_on(1)  # at its very end it is over
        (later,) = await on.leases.claim("ses_a", HERE, lease_s=600)
        assert later.claim.epoch == first.claim.epoch + 1
        assert later.claim.incarnation != first.claim.incarnation


async def test_execution_40_a_claim_that_is_over_passes_on_under_a_higher_epoch(
    store_path: Path,
) -> None:
    async with bench(store_path) as on:
        await on.session("ses_a", "a", authorised=1)
        grant = await on.run("ses_a")
        (mine,) = await on.leases.claim("ses_a", HERE, lease_s=60)
        on.clock.goes_on(60)
        with pytest.raises(StaleClaim):  # over, though nobody else has come
            await on.leases.acknowledge(grant, mine.claim)
        (theirs,) = await on.leases.claim("ses_a", THERE, lease_s=60)
        assert (mine.claim.epoch, theirs.claim.epoch) == (1, 2)
        assert theirs.claim.incarnation != mine.claim.incarnation
        for stale in (mine.claim, attrs.evolve(mine.claim, epoch=2, owner=THERE)):
            with pytest.raises(StaleClaim):
                await on.leases.acknowledge(grant, stale)
        assert await on.history("ses_a") == []
        await on.leases.acknowledge(grant, theirs.claim)
        assert await on.history("ses_a") == ["a"]


async def test_execution_40_the_very_same_acknowledgement_can_be_repeated_and_no_other(
    store_path: Path,
) -> None:
    async with bench(store_path) as on:
        await on.session("ses_a", "a", authorised=1)
        grant = await on.run("ses_a")
        (mine,) = await on.leases.claim("ses_a", HERE, lease_s=60)
        receipt = await on.leases.acknowledge(grant, mine.claim)
        assert (receipt.generation, receipt.state) == (1, "admitted")
        on.clock.goes_on(1_000_000)
        gone = attrs.evolve(grant, fence=grant.fence + 7)
        for fence in (grant, gone):  # nothing is written, so no fence is needed
            assert await on.leases.acknowledge(fence, mine.claim) == receipt
        for other in (
            attrs.evolve(mine.claim, owner=THERE),
            attrs.evolve(mine.claim, epoch=2),
            attrs.evolve(mine.claim, incarnation="clm_other"),
        ):
            with pytest.raises(StaleClaim):
                await on.leases.acknowledge(grant, other)
        assert await on.history("ses_a") == ["a"]
        assert await on.leases.claim("ses_a", THERE, lease_s=60) == ()
    async with bench(store_path) as on:
        assert await on.leases.acknowledge(grant, mine.claim) == receipt


async def test_execution_40_renewing_gives_a_new_token_and_never_moves_the_end_back(
    store_path: Path,
) -> None:
    async with bench(store_path) as on:
        await on.session("ses_a", "a", authorised=1)
        grant = await on.run("ses_a")
        (first,) = await on.leases.claim("ses_a", HERE, lease_s=600)
        on.clock.goes_on(1)
        renewed = await on.leases.renew(first.claim, lease_s=1)
        assert renewed.expires_at == first.claim.expires_at
        assert (renewed.epoch, renewed.owner) == (first.claim.epoch, HERE)
        assert renewed.incarnation != first.claim.incarnation
        with pytest.raises(StaleClaim):
            await on.leases.renew(first.claim, lease_s=600)
        with pytest.raises(StaleClaim):
            await on.leases.acknowledge(grant, first.claim)
        longer = await on.leases.renew(renewed, lease_s=3_600)
        assert longer.expires_at > renewed.expires_at
        on.clock.goes_on(3_600)
        with pytest.raises(StaleClaim):
            await on.leases.renew(longer, lease_s=3_600)


@pytest.mark.parametrize("lease_s", [0.0, -1.0, 3_600.1, float("nan"), float("inf")])
async def test_a_lease_is_at_most_an_hour(store_path: Path, lease_s: float) -> None:
    async with bench(store_path) as on:
        await on.session("ses_a", "a", authorised=1)
        with pytest.raises(CallboardError) as refused:
            await on.leases.claim("ses_a", HERE, lease_s=lease_s)
        assert refused.value.kind == "invalidParams"


async def test_when_no_epoch_is_left_nobody_gets_the_claim(store_path: Path) -> None:
    async with bench(store_path) as on:
        await on.session("ses_a", "a", authorised=1)
        await on.leases.claim("ses_a", HERE, lease_s=60)
        await on.log.transact(lambda tx: tx.execute("UPDATE inbox SET claim_epoch = ?", MAX_EPOCH))
        on.clock.goes_on(60)
        with pytest.raises(CallboardError) as refused:
            await on.leases.claim("ses_a", HERE, lease_s=60)
        assert refused.value.kind == "limitReached"


async def test_execution_8_an_acknowledgement_of_a_run_that_lost_its_session_writes_nothing(
    store_path: Path,
) -> None:
    async with bench(store_path) as on:
        await on.session("ses_a", "a", authorised=1)
        grant = await on.run("ses_a")
        (mine,) = await on.leases.claim("ses_a", HERE, lease_s=60)
        with pytest.raises(StaleFence):
            await on.leases.acknowledge(attrs.evolve(grant, fence=grant.fence - 1), mine.claim)
        await on.session("ses_b")
        elsewhere = await on.run("ses_b")
        with pytest.raises(CallboardError):
            await on.leases.acknowledge(elsewhere, mine.claim)
        assert await on.history("ses_a") == []
        await on.leases.acknowledge(grant, mine.claim)
        assert await on.history("ses_a") == ["a"]


async def test_a_boundary_waits_for_a_claim_and_takes_in_what_it_left(store_path: Path) -> None:
    async with bench(store_path) as on:
        await on.session("ses_a", "a", "b", authorised=2)
        await on.leases.claim("ses_a", HERE, lease_s=60, limit=1)
        grant = await on.run("ses_a")
        source = runs.source(on.clock.now)

        async def boundary() -> list[str]:
            await on.log.transact(lambda tx: source.drain(tx, grant))
            return await on.history("ses_a")

        assert not source.waiting(on.log.glance, grant)
        assert await boundary() == []  # b does not overtake a
        on.clock.goes_on(60)
        assert source.waiting(on.log.glance, grant)
        assert await boundary() == ["a", "b"]
        assert not source.waiting(on.log.glance, grant)


async def test_what_a_running_turn_is_about_to_take_in_is_not_given_away(store_path: Path) -> None:
    async with bench(store_path) as on:
        await on.session("ses_a", "a", authorised=1)
        await on.log.transact(lambda tx: deliveries.ask(tx, "ses_a", 1, host_id="host_a"))
        grant = await on.run("ses_a")
        await on.log.transact(lambda tx: runs.begun(tx, grant, "host_a"))
        assert await on.leases.claim("ses_a", HERE, lease_s=60) == ()


async def test_a_claim_that_is_over_lets_the_wish_count_again(store_path: Path) -> None:
    async with bench(store_path) as on:
        await on.session("ses_a", "a", authorised=1)
        await on.log.transact(lambda tx: deliveries.ask(tx, "ses_a", 1, host_id="host_a"))

        def due() -> list[str]:
            return runs.due_sessions(on.log.glance, "host_a", on.clock.now())

        assert due() == ["ses_a"]
        await on.leases.claim("ses_a", HERE, lease_s=60)
        assert due() == []
        on.clock.goes_on(60)
        assert due() == ["ses_a"]


async def test_two_claimers_get_what_does_not_overlap(store_path: Path) -> None:
    """interrupts-and-peers 45, for one inbox."""
    async with bench(store_path) as on:
        texts = [f"m{n}" for n in range(200)]
        await on.session("ses_a", *texts, authorised=200)

        def settle(tx: Transaction) -> None:
            """Takes what is claimed out, as an acknowledgement would."""
            tx.execute("DELETE FROM inbox WHERE claim_owner IS NOT NULL")

        got: list[tuple[str, int]] = []
        while True:
            claims = await asyncio.gather(
                *(on.leases.claim("ses_a", owner, lease_s=60, limit=7) for owner in (HERE, THERE))
            )
            if not any(claims):
                break
            # nothing overtakes what the first one holds
            assert sum(1 for each in claims if each) == 1
            got += [(each.claim.owner, each.claim.generation) for c in claims for each in c]
            await on.log.transact(settle)
        assert [generation for _, generation in got] == list(range(1, 201))
