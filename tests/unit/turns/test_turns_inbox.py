"""specs/execution.md 4 and 33-39: what is delivered is taken in at a boundary, once, and starts a turn
only when that was asked."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from turns_inbox_kit import CHILD, broken, deliver, envelope, left, received, send, started
from turns_kit import (
    Pause,
    calls,
    fails,
    of,
    pauses,
    results,
    returns,
    shape,
    speaks,
    stage,
    texts,
    tool,
)

from callboard.sessions.inbox import deliveries
from callboard.sessions.inbox.state import (
    MAX_PENDING,
    MAX_PER_DRAIN,
    ActiveNotified,
    Coalesced,
    Envelope,
    Policy,
    Started,
)
from callboard.turns.reservation import SYSTEM
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import Author

pytestmark = pytest.mark.anyio

# --- delivery ---------------------------------------------------------------------------------


async def test_execution_33_the_same_delivery_twice_is_one_generation_and_one_message(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as on:
        session_id = await on.session()
        inbox = on.host.inbox
        first = await inbox.deliver(session_id, envelope("news", "one"), by=CHILD)
        again = await inbox.deliver(session_id, envelope("news", "one"), by=CHILD)
        assert (first.generation, first.repeated) == (1, False)
        assert (again.generation, again.repeated) == (1, True)
        _, activation = await inbox.send(session_id, envelope("news", "one"), by=CHILD)
        assert isinstance(activation, Started)
        await on.idle(session_id)
        before = await on.log(session_id)
        # also when it is in the history already
        after, activation = await inbox.send(session_id, envelope("news", "one"), by=CHILD)
        assert (after.generation, after.repeated, activation) == (1, True, Coalesced())
        await on.idle(session_id)
        assert [r.seq for r in await on.log(session_id)] == [r.seq for r in before]
        assert received(before) == ["news"]


async def test_execution_33_other_content_under_the_same_id_is_a_conflict_and_changes_nothing(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as on:
        session_id = await on.session()
        await deliver(on, session_id, "news", delivery_id="one")

        async def rows() -> Any:
            return await on.host.log.query("SELECT * FROM inbox"), await on.host.log.query(
                "SELECT * FROM inboxes"
            )

        before = await rows()
        with pytest.raises(CallboardError) as refused:
            await deliver(on, session_id, "other news", delivery_id="one")
        assert refused.value.kind == "idempotencyConflict"
        assert await rows() == before
        await on.host.inbox.activate(session_id, 1)
        await on.idle(session_id)
        with pytest.raises(CallboardError) as refused:
            await deliver(on, session_id, "other news", delivery_id="one")
        assert refused.value.kind == "idempotencyConflict"
        assert received(await on.log(session_id)) == ["news"]


async def test_execution_34_what_is_delivered_and_not_activated_starts_nothing(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as on:
        session_id = await on.session()
        await deliver(on, session_id, "inert")
        assert await on.host.dispatcher.wake(session_id) is None
        await on.host.dispatcher.wake_waiting()
        await on.host.dispatcher.wake_delivered()
        # nor does a turn that somebody else has started take it in
        await on.say(session_id, "hello")
        await on.idle(session_id)
        assert received(await on.log(session_id)) == []
        assert await left(on, session_id) == ["inert"]
    async with stage(tmp_path) as on:  # the next server
        await on.host.dispatcher.wake_waiting()
        assert started(await on.log(session_id)) == ["prompt"]
        # authority without a wish starts nothing either
        await on.host.inbox.authorise(session_id, 1)
        assert await on.host.dispatcher.wake(session_id) is None
        assert isinstance(await on.host.inbox.request_activation(session_id, 1), Started)
        await on.idle(session_id)
        assert received(await on.log(session_id)) == ["inert"]


async def test_execution_34_what_was_authorised_under_a_server_that_is_gone_is_taken_in(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as on:
        session_id = await on.session()
        await deliver(on, session_id, "authorised")
        await on.host.inbox.authorise(session_id, 1)
        await deliver(on, session_id, "inert")
    async with stage(tmp_path) as on:
        await on.idle(session_id)
        assert received(await on.log(session_id)) == ["authorised"]
        assert await left(on, session_id) == ["inert"]


async def test_execution_35_only_what_is_authorised_is_taken_in_and_in_order(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as on:
        session_id = await on.session()
        for number in range(5):
            assert await deliver(on, session_id, f"m{number}") == number + 1
        with pytest.raises(CallboardError, match="not authorised"):
            await on.host.inbox.request_activation(session_id, 3)
        with pytest.raises(CallboardError, match="no generation 6"):
            await on.host.inbox.authorise(session_id, 6)
        await on.host.inbox.activate(session_id, 3)
        await on.idle(session_id)
        records = await on.log(session_id)
        assert received(records) == ["m0", "m1", "m2"]
        assert on.puppet.heard() == "m0\nm1\nm2"
        assert started(records) == ["report"]
        assert await left(on, session_id) == ["m3", "m4"]
        # a watermark does not fall
        reached = await on.host.inbox.authorise(session_id, 1)
        assert (reached.activated, reached.delivered) == (3, 5)


async def test_a_delivery_is_told_to_the_model_as_said_to_it_by_whomever_it_was_written(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, speaks("I am the agent.")) as on:
        session_id = await on.session()
        await on.say(session_id, "hello")
        await on.idle(session_id)
        await send(on, session_id, "the scout's report")
        await on.idle(session_id)
        assert on.puppet.heard() == "hello\nthe scout's report"
        message = of(await on.log(session_id), "message")[-2]
        assert message.author == Author(kind="agent", name="scout", id="ses_child")
        assert (message.delivered.generation, message.delivered.kind) == (1, "report")


async def test_the_pieces_stand_in_a_producers_own_transaction(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        session_id = await on.session()
        host_id = on.host.host_id

        def produce(tx: Any) -> Any:
            accepted = deliveries.deliver(
                tx, session_id, envelope("both or none"), by=CHILD, host_id=host_id
            )
            deliveries.authorise(tx, session_id, accepted.generation)
            return deliveries.ask(tx, session_id, accepted.generation, host_id=host_id)

        def break_off(tx: Any) -> None:
            produce(tx)
            raise ValueError

        with pytest.raises(ValueError):
            await on.host.log.transact(break_off)
        assert await left(on, session_id) == []
        asked = await on.host.log.transact(produce)
        assert isinstance(await on.host.inbox.carry_out(session_id, 1, asked), Started)
        await on.idle(session_id)
        assert received(await on.log(session_id)) == ["both or none"]


# --- limits, and what is refused ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "kind"),
    [
        (envelope("x" * (256 * 1024), "large"), "messageTooLarge"),
        (envelope("x", "i" * 257), "invalidParams"),
        (envelope("x", "é" * 129), "invalidParams"),
        (envelope("x", "a\nb"), "invalidParams"),
        (envelope("x", "\ud800"), "invalidParams"),
        (envelope("x", "sk-ant-REDACTED" + "aB3" * 12), "invalidParams"),
        (envelope(" \n"), "invalidParams"),
    ],
)
async def test_what_is_too_large_or_cannot_be_named_is_refused(
    tmp_path: Path, what: Envelope, kind: str
) -> None:
    async with stage(tmp_path) as on:
        session_id = await on.session()
        with pytest.raises(CallboardError) as refused:
            await on.host.inbox.send(session_id, what, by=CHILD)
        assert refused.value.kind == kind
        assert await left(on, session_id) == []
        assert (await on.host.inbox.deliver(session_id, envelope("y" * 200_000, "i" * 256), by=CHILD)).generation == 1  # fmt: skip


async def test_an_inbox_has_room_for_so_many_and_a_repetition_always_fits(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        session_id = await on.session()
        await asyncio.gather(*(deliver(on, session_id, f"m{n}") for n in range(MAX_PENDING)))
        with pytest.raises(CallboardError) as refused:
            await send(on, session_id, "one more")
        assert refused.value.kind == "queueFull"
        assert len(of(await on.log(session_id), "turn_started")) == 0
        assert await deliver(on, session_id, "m7") <= MAX_PENDING
        # a boundary takes in so many, and the turn goes on until nothing waits
        await on.host.inbox.activate(session_id, MAX_PENDING)
        await on.idle(session_id)
        records = await on.log(session_id)
        assert len(received(records)) == MAX_PENDING
        assert len(of(records, "turn_started")) == 1
        acks = [len(ack.admits) for ack in of(records, "ack")]
        assert acks == [MAX_PER_DRAIN] * (MAX_PENDING // MAX_PER_DRAIN)
        generations = [m.delivered.generation for m in of(records, "message") if m.delivered]
        assert generations == list(range(1, MAX_PENDING + 1))


async def test_a_secret_in_a_delivery_reaches_neither_inbox_nor_log(tmp_path: Path) -> None:
    secret = "sk-ant-REDACTED" + "aB3" * 12
    async with stage(tmp_path) as on:
        session_id = await on.session()
        await deliver(on, session_id, f"the key is {secret}", delivery_id="one")
        assert secret not in str(await on.host.log.query("SELECT * FROM inbox"))
        again = await on.host.inbox.deliver(
            session_id, envelope(f"the key is {secret}", "one"), by=CHILD
        )
        assert again.repeated
        await on.host.inbox.activate(session_id, 1)
        await on.idle(session_id)
        (text,) = received(await on.log(session_id))
        assert text.startswith("the key is [redacted")


async def test_sessions_that_take_in_nothing_are_named(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        session_id = await on.session()
        other = await on.session()
        await deliver(on, session_id, "before")
        await deliver(on, other, "before")
        await on.host.sessions.set_archived(other, archived=True, by=SYSTEM)
        await on.host.sessions.close(session_id, by=SYSTEM)
        for where, kind in (
            (session_id, "sessionClosed"),
            (other, "sessionArchived"),
            ("ses_none", "sessionNotFound"),
        ):
            with pytest.raises(CallboardError) as refused:
                await send(on, where, "after")
            assert refused.value.kind == kind


async def test_malformed_text_is_made_well_before_it_is_kept(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        session_id = await on.session()
        await send(on, session_id, "half \ud83d a pair", delivery_id="one")
        await on.idle(session_id)
        assert received(await on.log(session_id)) == ["half � a pair"]


# --- while a turn runs ----------------------------------------------------------------------------


async def test_a_delivery_to_a_running_turn_is_taken_in_at_its_next_boundary(
    tmp_path: Path,
) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause, "first"), tools=[tool("look", returns())]) as on:
        session_id = await on.session()
        posted = await on.say(session_id, "go")
        await pause.came()
        activation = await send(on, session_id, "by the way")
        assert activation == ActiveNotified(turn_id=posted.turn_id)
        assert received(await on.log(session_id)) == []  # not inside an answer
        pause.open.set()
        await on.idle(session_id)
        records = await on.log(session_id)
        assert received(records) == ["by the way"]
        assert len(of(records, "turn_started")) == 1
        assert texts(records) == ["first", "done."]
        assert on.puppet.heard(-1) == "go\nby the way"


@pytest.mark.parametrize(
    ("policy", "second"), [("respect_wait", "ok"), ("interrupt_wait", "superseded")]
)
async def test_coordination_62_calls_that_have_not_begun_give_way_to_what_interrupts_alone(
    tmp_path: Path, policy: Policy, second: str
) -> None:
    pause = Pause()

    async def slow(_: Any, __: Any) -> Any:
        await pause.here()
        return await returns()(_, __)

    tools = [tool("slow", slow), tool("next", returns())]
    scene = calls(("slow", {"text": "a"}), ("next", {"text": "b"}))
    async with stage(tmp_path, scene, tools=tools) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await pause.came()
        await send(on, session_id, "stop that", policy=policy)
        pause.open.set()
        await on.idle(session_id)
        records = await on.log(session_id)
        assert results(records) == [("slow", "ok"), ("next", second)]
        assert received(records) == ["stop that"]
        kinds = shape(records)
        assert kinds.index("tool_result") < kinds.index("ack", kinds.index("tool_result"))


async def test_execution_37_a_delivery_around_the_end_of_a_turn_is_taken_in_by_it_or_by_one_successor(
    tmp_path: Path,
) -> None:
    steps = random.Random(37)
    async with stage(tmp_path) as on:
        for number in range(40):
            session_id = await on.session()
            await on.say(session_id, "go")
            for _ in range(steps.randrange(60)):
                await asyncio.sleep(0)
            activation = await send(on, session_id, f"m{number}")
            await on.idle(session_id)
            records = await on.log(session_id)
            assert received(records) == [f"m{number}"]
            assert len(of(records, "turn_started")) <= 2
            if isinstance(activation, Started):
                assert activation.turn_id == of(records, "turn_started")[-1].turn_id
            assert await left(on, session_id) == []


async def test_execution_37_what_comes_to_a_turn_that_fails_has_one_successor(
    tmp_path: Path,
) -> None:
    pause = Pause()

    async def fails_after_a_while(request: Any) -> Any:
        await pause.here()
        async for event in fails()(request):
            yield event

    async with stage(tmp_path, fails_after_a_while) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await pause.came()
        assert isinstance(await send(on, session_id, "late"), ActiveNotified)
        pause.open.set()
        await on.idle(session_id)
        records = await on.log(session_id)
        assert [end.outcome for end in of(records, "turn_finished")] == ["failed", "completed"]
        assert started(records) == ["prompt", "report"]
        assert received(records) == ["late"]


# --- what cannot be taken in ---------------------------------------------------------------------


async def test_execution_38_a_delivery_that_no_turn_can_take_in_is_tried_once_by_itself(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as on:
        session_id = await on.session()
        whole = on.host.catalog.resolve
        await broken(on)
        assert isinstance(await send(on, session_id, "first"), Started)
        await on.idle(session_id)
        await on.host.dispatcher.wake_delivered()
        assert await on.host.dispatcher.wake(session_id) is None
        records = await on.log(session_id)
        assert [end.outcome for end in of(records, "turn_finished")] == ["failed"]
        # a newer one allows one more
        assert isinstance(await send(on, session_id, "second"), Started)
        await on.idle(session_id)
        assert len(of(await on.log(session_id), "turn_started")) == 2
        on.host.catalog.resolve = whole  # type: ignore[method-assign]
        # what can be taken in again, is; by a turn that somebody else has started, too
        await on.say(session_id, "hello")
        await on.idle(session_id)
        assert received(await on.log(session_id)) == ["first", "second"]


async def test_execution_38_what_waits_for_a_turn_that_fails_is_not_lost_over_a_restart(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as on:
        session_id = await on.session()
        await broken(on)
        await send(on, session_id, "patient")
        await on.idle(session_id)
    async with stage(tmp_path) as on:
        await on.idle(session_id)
        assert received(await on.log(session_id)) == ["patient"]


async def test_a_delivery_that_was_tried_too_often_is_set_aside_for_all_to_see(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as on:
        session_id = await on.session()
        whole = on.host.catalog.resolve
        await broken(on)
        await deliver(on, session_id, "poison", delivery_id="bad")
        for _ in range(3):
            assert isinstance(await on.host.inbox.activate(session_id, 1), Started)
            await on.idle(session_id)
        assert await on.host.inbox.activate(session_id, 1) == Coalesced()
        records = await on.log(session_id)
        assert len(of(records, "turn_started")) == 3
        (dropped,) = of(records, "deliveries_dropped")
        assert [each.delivery_id for each in dropped.deliveries] == ["bad"]
        assert "send it again under a new id" in dropped.reason
        assert await left(on, session_id) == []
        on.host.catalog.resolve = whole  # type: ignore[method-assign]
        # its id is used up, and another is free
        assert (await on.host.inbox.deliver(session_id, envelope("poison", "bad"), by=CHILD)).repeated  # fmt: skip
        await send(on, session_id, "poison", delivery_id="good")
        await on.idle(session_id)
        assert received(await on.log(session_id)) == ["poison"]


async def test_peers_47_a_row_that_cannot_be_read_is_set_aside_and_the_others_are_taken_in(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as on:
        session_id = await on.session()
        for name in ("a", "b", "c"):
            await deliver(on, session_id, name)
        await on.host.log.transact(
            lambda tx: tx.execute("UPDATE inbox SET body = '{' WHERE generation = 2")
        )
        await on.host.inbox.activate(session_id, 3)
        await on.idle(session_id)
        records = await on.log(session_id)
        assert received(records) == ["a", "c"]
        (dropped,) = of(records, "deliveries_dropped")
        assert [each.generation for each in dropped.deliveries] == [2]
        assert len(of(records, "turn_started")) == 1


async def test_execution_39_a_request_whose_attempt_is_abandoned_reports_nothing_that_did_not_start(
    tmp_path: Path,
) -> None:
    steps = random.Random(39)
    abandoned = 0
    async with stage(tmp_path) as on:
        for number in range(40):
            session_id = await on.session()
            generation = await deliver(on, session_id, f"m{number}")
            await on.host.inbox.authorise(session_id, generation)

            def ask(tx: Any, session_id: str = session_id, generation: int = generation) -> Any:
                return deliveries.ask(tx, session_id, generation, host_id=on.host.host_id)

            assert await on.host.log.transact(ask) is None
            attempt = asyncio.ensure_future(on.host.dispatcher.wake_here(session_id))
            for _ in range(steps.randrange(8)):
                await asyncio.sleep(0)
            attempt.cancel()
            second = on.host.inbox.request_activation(session_id, generation)
            (_, outcome) = await asyncio.gather(attempt, second, return_exceptions=True)
            await on.host.reservations.settled()
            await on.idle(session_id)
            records = await on.log(session_id)
            assert received(records) == [f"m{number}"]
            ends = [end.outcome for end in of(records, "turn_finished")]
            abandoned += ends.count("cancelled")
            assert ends.count("completed") == 1
            if isinstance(outcome, Started):
                assert outcome.turn_id in {each.turn_id for each in of(records, "turn_started")}
            else:
                assert isinstance(outcome, ActiveNotified | Coalesced)
    assert abandoned  # else nothing was shown


# --- the end of a session, and of a turn ----------------------------------------------------------


async def test_close_ends_what_waits_and_delete_forgets_it(tmp_path: Path) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause)) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await pause.came()
        await deliver(on, session_id, "inert")
        await send(on, session_id, "asked")
        await on.host.sessions.close(session_id, by=SYSTEM, reason="enough")
        records = await on.log(session_id)
        (dropped,) = of(records, "deliveries_dropped")
        assert ([each.generation for each in dropped.deliveries], dropped.reason) == (
            [1, 2],
            "enough",
        )
        assert len(of(records, "turn_started")) == 1
        assert await left(on, session_id) == []
        await on.host.sessions.delete(session_id, by=SYSTEM)
        for table in ("inbox", "inboxes", "receipts"):
            assert await on.host.log.query(f"SELECT * FROM {table}") == []


async def test_a_cancel_of_the_queue_takes_back_the_wish_and_not_the_delivery(
    tmp_path: Path,
) -> None:
    pause = Pause()

    async def never_ends(request: Any) -> Any:
        async for event in pauses(pause)(request):
            yield event

    async with stage(tmp_path, never_ends) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await pause.came()
        await send(on, session_id, "news")
        await on.cancel(session_id, scope="tree")
        await on.idle(session_id)
        assert len(of(await on.log(session_id), "turn_started")) == 1
    async with stage(tmp_path) as on:  # it stays quiet after a restart
        await on.idle(session_id)
        assert len(of(await on.log(session_id), "turn_started")) == 1
        await on.say(session_id, "now")
        await on.idle(session_id)
        assert received(await on.log(session_id)) == ["news"]


async def test_a_cancel_of_the_turn_alone_lets_the_delivery_have_the_next_one(
    tmp_path: Path,
) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause)) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await pause.came()
        await send(on, session_id, "news")
        await on.cancel(session_id)
        await on.idle(session_id)
        records = await on.log(session_id)
        assert [end.outcome for end in of(records, "turn_finished")] == ["cancelled", "completed"]
        assert received(records) == ["news"]


async def test_a_delivery_to_a_session_that_is_prepared_waits_for_its_end(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        session_id = await on.session()
        async with await on.host.reservations.prepare(session_id):
            assert await send(on, session_id, "news") == Coalesced()
            assert of(await on.log(session_id), "turn_started") == []
        await on.host.dispatcher.wake(session_id)
        await on.idle(session_id)
        assert received(await on.log(session_id)) == ["news"]


async def test_receipts_are_made_anew_from_the_log(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        session_id = await on.session()
        for name in ("a", "b", "c"):
            await deliver(on, session_id, name)
        await on.host.inbox.activate(session_id, 2)
        await on.idle(session_id)
        read = "SELECT * FROM receipts ORDER BY generation"
        rows = await on.host.log.query(read)
        assert [row[4] for row in rows] == ["admitted", "admitted"]
        await on.host.log.rebuild()
        assert await on.host.log.query(read) == rows
        assert await left(on, session_id) == ["c"]


async def test_execution_40_a_wish_behind_a_claim_is_not_spent_by_a_turn_that_cannot_take_it_in(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as on:
        session_id = await on.session()
        await on.host.inbox.authorise(session_id, await deliver(on, session_id, "claimed"))
        await on.host.inbox.leases.claim(session_id, "elsewhere", lease_s=3_600)
        await send(on, session_id, "news")
        await on.say(session_id, "go")
        head = 0
        while not of(await on.log(session_id), "turn_finished"):
            head = await on.host.log.moved(head)
        read = "SELECT wake, attempts, turn_id FROM inbox ORDER BY generation"
        assert await on.host.log.query(read) == [("none", 0, None), ("asked", 0, None)]
        over = "UPDATE inbox SET claim_expires = '2001-01-01T00:00:00.000Z'"
        await on.host.log.transact(lambda tx: tx.execute(over + " WHERE generation = 1"))
        await on.host.dispatcher.wake_delivered()
        await on.idle(session_id)
        assert received(await on.log(session_id)) == ["claimed", "news"]
        assert started(await on.log(session_id)) == ["prompt", "report"]
