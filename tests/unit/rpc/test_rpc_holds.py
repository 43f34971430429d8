"""Holds: nothing that names a new id goes out before the reply that tells it; all else flows on."""

import asyncio

import pytest

from callboard.rpc.holds import Holds

pytestmark = pytest.mark.anyio


async def test_what_was_there_before_the_request_is_not_held_up():
    holds = Holds()
    assert holds.limit is None and not holds.covers("trn_9")
    first = holds.take(10, "trn_5")
    second = holds.take(20, "trn_7")
    assert holds.limit == 10
    assert not holds.covers("trn_4") and holds.covers("trn_6")
    first()
    assert holds.limit == 20 and not holds.covers("trn_6") and holds.covers("trn_8")
    second()
    assert holds.limit is None and not holds.covers("trn_8")


async def test_a_hold_that_is_ended_twice_ends_no_other():
    holds = Holds()
    one, two = holds.take(10, "trn_5"), holds.take(10, "trn_5")
    one()
    one()
    assert holds.limit == 10
    two()
    assert holds.limit is None


async def test_whoever_waits_for_a_turn_to_be_told_is_woken_by_the_last_hold():
    holds = Holds()
    heard = []
    holds.on_release = lambda: heard.append(holds.limit)
    one, two = holds.take(10, "trn_5"), holds.take(12, "trn_6")
    told = asyncio.create_task(holds.until_told("trn_7"))
    await asyncio.sleep(0)
    one()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not told.done()
    two()
    await asyncio.wait_for(told, 5)
    assert heard == [12, None]
    await asyncio.wait_for(holds.until_told("trn_7"), 5)
