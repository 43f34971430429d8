from typing import Any

import anyio
import pytest

from callboard_client import CaughtUp, Client, ConnectionLost, Delta, ProtocolError, RemoteError
from callboard_client.stream import EventStream
from callboard_rpc.common import Cursor, SessionId, SubscriptionId
from callboard_rpc.events import Event, UnknownData
from callboard_rpc.streams import Scope

pytestmark = pytest.mark.anyio

ALL = Scope(kind="all")
DELTA = {"sessionId": "ses_1", "turnId": "trn_1", "messageId": "msg_1", "kind": "answer"}


async def append(client: Client, count: int, session: str = "ses_1", pad: str = "") -> None:
    await client.request("fake/append", {"sessionId": session, "count": count, "pad": pad})


async def numbers(stream: EventStream, through: int) -> list[int]:
    """The positions of the events up to `through`."""
    got: list[int] = []
    async for item in stream:
        if isinstance(item, Event):
            got.append(item.pos)
            if item.pos >= through:
                break
    return got


async def test_history_then_caught_up_then_live(start) -> None:
    async with start() as client:
        await append(client, 3)
        kinds: list[Any] = []
        async with client.events(ALL, "start") as stream:
            await append(client, 1)
            async for item in stream:
                kinds.append(item.pos if isinstance(item, Event) else type(item))
                if kinds[-1] == 4:
                    break
    assert kinds == [1, 2, 3, CaughtUp, 4]


async def test_an_event_type_of_the_future_comes_through_whole(start) -> None:
    async with start() as client, client.events(ALL) as stream:
        await append(client, 1, pad="p")
        while True:
            item, wire = await stream.receive()
            if isinstance(item, Event):
                break
    assert item.data == UnknownData(type="a_new_type", data={"n": 0, "pad": "p"})
    assert wire["data"] == {"n": 0, "pad": "p"}


async def test_iterating_acknowledges_what_was_consumed_and_no_more(start) -> None:
    async with start() as client, client.events(ALL, "start") as stream:
        await append(client, 5)
        await numbers(stream, 3)
        acks = (await client.request("fake/seen", {}))["acks"]
        assert [ack["cursor"] for ack in acks] == ["c0", "c1", "c2"]


async def test_a_reset_leaves_no_gap_and_no_duplicate(start) -> None:
    async with start() as client, client.events(ALL, "start") as stream:
        await append(client, 2)
        await client.request("fake/reset", {})
        await append(client, 3)
        assert await numbers(stream, 5) == [1, 2, 3, 4, 5]


async def test_a_refused_resubscription_is_tried_again_while_that_can_help(start) -> None:
    async with start() as client, client.events(ALL, "start") as stream:
        refusals = [{"kind": "overloaded", "retryable": True}] * 2
        await client.request("fake/refuseSubscribe", {"errors": refusals})
        await client.request("fake/reset", {})
        await append(client, 1)
        assert await numbers(stream, 1) == [1]


async def test_a_cursor_that_is_refused_for_good_ends_the_stream_with_that_error(start) -> None:
    async with start() as client, client.events(ALL, "start") as stream:
        await append(client, 1)
        refusal = {"kind": "cursorExpired", "retryable": False}
        await client.request("fake/refuseSubscribe", {"errors": [refusal]})
        await client.request("fake/reset", {})
        with pytest.raises(RemoteError) as caught:
            await numbers(stream, 99)
    assert caught.value.kind == "cursorExpired"


async def test_a_crash_leaves_no_gap_and_no_duplicate(start) -> None:
    async with start(restart=True) as client, client.events(ALL, "start") as stream:
        await append(client, 3)
        assert await numbers(stream, 2) == [1, 2]
        with pytest.raises(ConnectionLost):
            await client.request("fake/crash", {})
        await append(client, 2)
        assert await numbers(stream, 5) == [3, 4, 5]


async def test_a_crash_in_the_answer_to_subscribe_subscribes_once(start) -> None:
    async with start(restart=True) as client:
        await append(client, 2)
        await client.request("fake/crashBeforeReplyTo", {"method": "event/subscribe"})
        async with client.events(ALL, "start") as stream:
            assert await numbers(stream, 2) == [1, 2]
            assert (await client.request("fake/seen", {}))["subscriptions"] == 1


async def test_without_restart_what_was_received_is_delivered_before_the_error(start) -> None:
    async with start() as client, client.events(ALL, "start") as stream:
        await append(client, 2)
        with pytest.raises(ConnectionLost):
            await client.request("fake/crash", {})
        assert await numbers(stream, 2) == [1, 2]
        with pytest.raises(ConnectionLost):
            await stream.receive()


async def test_a_malformed_batch_ends_its_stream_and_nothing_else(start) -> None:
    async with start() as client, client.events(ALL, "start") as stream:
        await client.request("fake/malformed", {})
        with pytest.raises(ProtocolError):
            await numbers(stream, 1)
        assert (await client.server.ping(2)).echo == 2


async def test_closing_unsubscribes(start) -> None:
    async with start() as client:
        async with client.events(ALL) as stream:
            pass
        with pytest.raises(StopAsyncIteration):
            await stream.receive()
        assert (await client.request("fake/seen", {}))["subscriptions"] == 0


async def test_closing_in_the_middle_of_a_reset_leaves_no_subscription(start) -> None:
    async with start() as client:
        stream = client.events(ALL)
        await stream.subscribe()
        await client.request("fake/reset", {})
        await stream.aclose()
        await client.server.ping()
        assert (await client.request("fake/seen", {}))["subscriptions"] == 0


async def test_a_missing_delta_is_told_as_a_hole(start) -> None:
    async with start() as client, client.events(ALL) as stream:
        for index in (0, 1, 3):
            await client.request("fake/delta", {**DELTA, "index": index, "text": str(index)})
        deltas = []
        async for item in stream:
            if isinstance(item, Delta):
                deltas.append((item.text, item.hole))
                if item.index == 3:
                    break
    assert deltas == [("0", False), ("1", False), ("3", True)]


class NobodyListens:
    """A stream's owner, for tests of the stream alone."""

    async def subscribe(self, stream: EventStream, params: Any) -> None:
        stream.on_subscribed({"subscriptionId": "sub_1", "cursor": "c0", "head": "c0"})

    async def unsubscribe(self, stream: EventStream) -> None: ...

    def acknowledge(self, subscription_id: SubscriptionId, cursor: Cursor) -> None: ...


async def test_deltas_that_nobody_reads_are_joined_then_dropped_and_stay_bounded() -> None:
    stream = EventStream(NobodyListens(), Scope(kind="session", id=SessionId("ses_1")))
    await stream.subscribe()
    total = 20_000
    for index in range(total):
        stream.on_delta({**DELTA, "index": index, "text": "x" * 1000})
    stream.on_batch({"events": [], "cursor": "c1", "caughtUp": True})
    got, items, holes = 0, 0, 0
    while not isinstance(item := (await stream.receive())[0], CaughtUp):
        assert isinstance(item, Delta)
        got, items, holes = got + len(item.text), items + 1, holes + item.hole
    assert got <= 8 * 1024 * 1024
    assert items < 1000
    assert holes == 0
    stream.on_delta({**DELTA, "index": total, "text": "after"})
    after, _ = await stream.receive()
    assert isinstance(after, Delta)
    assert after.hole


async def test_a_delta_of_several_pieces_is_no_hole() -> None:
    stream = EventStream(NobodyListens(), ALL)
    await stream.subscribe()
    for index, count in ((0, 3), (3, 1), (5, 2)):
        stream.on_delta({**DELTA, "index": index, "count": count, "text": "x"})
    deltas = [(await stream.receive())[0] for _ in range(3)]
    assert [isinstance(delta, Delta) and delta.hole for delta in deltas] == [False, False, True]


async def test_joined_deltas_keep_the_order_and_the_text() -> None:
    stream = EventStream(NobodyListens(), Scope(kind="all"))
    await stream.subscribe()
    for index in range(500):
        kind = "thought" if index < 250 else "answer"
        place = index if index < 250 else index - 250
        stream.on_delta({**DELTA, "kind": kind, "index": place, "text": f"{index} "})
    stream.on_batch({"events": [], "cursor": "c1", "caughtUp": True})
    text = ""
    while not isinstance(item := (await stream.receive())[0], CaughtUp):
        assert isinstance(item, Delta)
        assert not item.hole
        text += item.text
    assert text == "".join(f"{index} " for index in range(500))


async def test_two_consumers_do_not_disturb_each_other(start) -> None:
    async with start() as client:
        got: dict[str, list[int]] = {}

        async def follow(session: str, through: int) -> None:
            async with client.events(
                Scope(kind="session", id=SessionId(session)), "start"
            ) as stream:
                got[session] = await numbers(stream, through)

        await append(client, 2, "ses_1")
        await append(client, 2, "ses_2")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow, "ses_1", 2)
            tasks.start_soon(follow, "ses_2", 4)
    assert got == {"ses_1": [1, 2], "ses_2": [3, 4]}
