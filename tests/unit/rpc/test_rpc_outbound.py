"""The queue: nothing that must arrive is dropped, order is kept, deltas give way."""

import asyncio

import pytest

from callboard.rpc.outbound import Outbound

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


class Delta:
    """Mergeable text of one key."""

    def __init__(self, key, text):
        self.key, self.text = key, text
        self.weight = len(text)

    def merged(self, newer):
        return None if "!" in self.text else Delta(self.key, self.text + newer.text)

    def frame(self):
        return self.text.encode() + b"\n"


def queue(**bounds):
    stalls = []
    made = Outbound(loop=asyncio.get_running_loop(), on_stall=lambda: stalls.append(1), **bounds)
    return made, stalls


def drain(outbound):
    """What the writer thread would write, in one go."""
    data = outbound.take()
    outbound.written()
    return data


async def test_frames_come_out_in_the_order_in_which_they_were_put():
    outbound, _ = queue()
    for index in range(5):
        outbound.put(b"%d\n" % index)
    assert drain(outbound) == b"0\n1\n2\n3\n4\n"


async def test_frames_that_must_arrive_are_kept_beyond_the_bounds():
    outbound, _ = queue(max_frames=2, max_bytes=10)
    for index in range(10):
        outbound.put(b"%d\n" % index)
    assert outbound.pressure == "full"
    assert drain(outbound).count(b"\n") == 10
    assert outbound.pressure == "none"


async def test_deltas_of_one_key_join_while_they_wait():
    outbound, _ = queue()
    outcomes = [outbound.put_mergeable(Delta(k, t)) for k, t in ("a1", "b2", "a3", "b4")]
    assert outcomes == ["queued", "queued", "merged", "merged"]
    assert drain(outbound) == b"13\n24\n"


async def test_a_delta_never_joins_across_another_frame():
    outbound, _ = queue()
    outbound.put_mergeable(Delta("a", "1"))
    outbound.put(b"event\n")
    assert outbound.put_mergeable(Delta("a", "2")) == "queued"
    assert drain(outbound) == b"1\nevent\n2\n"


async def test_deltas_that_cannot_be_joined_stay_apart():
    outbound, _ = queue()
    outbound.put_mergeable(Delta("a", "1!"))
    assert outbound.put_mergeable(Delta("a", "2")) == "queued"
    assert drain(outbound) == b"1!\n2\n"


async def test_a_full_queue_drops_its_deltas_and_nothing_else():
    outbound, _ = queue(max_frames=3)
    outbound.put(b"1\n")
    outbound.put_mergeable(Delta("a", "delta"))
    outbound.put(b"2\n")
    assert outbound.put_mergeable(Delta("a", "late")) == "dropped"
    assert outbound.frames == 2
    assert drain(outbound) == b"1\n2\n"
    assert outbound.frames == 0
    assert outbound.put_mergeable(Delta("a", "again")) == "queued"


async def test_a_delta_in_the_writers_hands_is_not_changed():
    outbound, _ = queue()
    outbound.put_mergeable(Delta("a", "1"))
    assert outbound.take() == b"1\n"
    assert outbound.put_mergeable(Delta("a", "2")) == "queued"
    outbound.written()
    assert drain(outbound) == b"2\n"


async def test_pressure_counts_bytes_and_what_the_writer_has_in_hand():
    outbound, _ = queue(max_bytes=100)
    outbound.put(b"x" * 49)
    assert outbound.pressure == "none"
    outbound.put(b"x")
    assert outbound.pressure == "high"
    outbound.put(b"x" * 50)
    assert outbound.pressure == "full"
    outbound.take()
    assert outbound.pressure == "full"
    outbound.written()
    assert outbound.pressure == "none"


async def test_drained_is_set_again_once_a_quarter_is_left():
    outbound, _ = queue(max_bytes=100)
    assert outbound.drained.is_set()
    outbound.put(b"x" * 60)
    assert not outbound.drained.is_set()
    drain(outbound)
    await asyncio.wait_for(outbound.drained.wait(), 10)


async def test_flush_waits_until_it_is_written_not_only_taken():
    outbound, _ = queue()
    outbound.put(b"1\n")
    flushing = asyncio.create_task(outbound.flush())
    await asyncio.sleep(0)
    outbound.take()
    for _ in range(5):
        await asyncio.sleep(0)
    assert not flushing.done()
    outbound.written()
    await asyncio.wait_for(flushing, 10)


async def test_flush_returns_when_the_queue_is_closed():
    outbound, _ = queue()
    outbound.put(b"1\n")
    flushing = asyncio.create_task(outbound.flush())
    await asyncio.sleep(0)
    outbound.close()
    await asyncio.wait_for(flushing, 10)
    assert outbound.take() is None
    outbound.put(b"2\n")
    assert outbound.frames == 1  # what was put after the end is not even counted


async def test_a_client_that_takes_nothing_is_a_stall_and_an_idle_one_is_not():
    outbound, stalls = queue(stall_seconds=0.01)
    outbound.put(b"1\n")
    drain(outbound)
    waiting = asyncio.Event()
    asyncio.get_running_loop().call_later(0.05, waiting.set)
    await waiting.wait()
    assert stalls == []
    outbound.put(b"2\n")
    outbound.take()
    waiting.clear()
    asyncio.get_running_loop().call_later(0.05, waiting.set)
    await waiting.wait()
    assert stalls == [1]
