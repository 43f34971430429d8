"""specs/execution.md 3, 31 and 32: a turn that takes in one delivery, and what it leaves behind."""

from pathlib import Path
from typing import Any

import pytest
from turns_inbox_kit import CHILD, deliver, envelope, left, received, send, started
from turns_kit import Pause, Stage, calls, of, pauses, results, returns, stage, tool

from callboard.sessions.inbox.state import ActiveNotified, Coalesced, Started
from callboard.turns.reservation import AlreadyRunning, NoWork, Reserved

pytestmark = pytest.mark.anyio


async def three(on: Stage) -> str:
    """A session in which three deliveries wait, authorised."""
    session_id = await on.session()
    for name in ("a", "b", "c"):
        await deliver(on, session_id, name)
    await on.host.inbox.authorise(session_id, 3)
    return session_id


async def test_execution_31_a_selected_turn_takes_in_its_delivery_and_no_other(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as on:
        session_id = await three(on)
        outcome = await on.host.dispatcher.run_selected(session_id, 2)
        assert isinstance(outcome, Started)
        await on.idle(session_id)
        records = await on.log(session_id)
        assert received(records) == ["b"]
        assert on.puppet.heard() == "b"
        assert await left(on, session_id) == ["a", "c"]
        (begun,) = of(records, "turn_started")
        assert (begun.turn_id, begun.trigger.kind) == (outcome.turn_id, "report")
        # the next turn of the ordinary kind takes in the others, in order
        await on.say(session_id, "hello")
        await on.idle(session_id)
        assert received(await on.log(session_id)) == ["b", "a", "c"]


async def test_execution_31_neither_prompts_nor_later_boundaries_bring_others_in(
    tmp_path: Path,
) -> None:
    pause = Pause()
    async with stage(
        tmp_path, calls(("look", {})), pauses(pause, "seen"), tools=[tool("look", returns())]
    ) as on:
        session_id = await three(on)
        outcome = await on.host.dispatcher.run_selected(session_id, 3)
        assert isinstance(outcome, Started)
        await pause.came()
        await on.say(session_id, "a prompt waits its turn")
        await on.say(session_id, "a steer is for this one", delivery="steer")
        pause.open.set()
        await on.idle(session_id)
        records = await on.log(session_id)
        assert started(records) == ["report", "prompt"]
        first = {r.turn_id: r for r in records if r.type == "turn_started"}[outcome.turn_id]
        admitted = [
            r.value.content[0].text
            for ack in records
            if ack.type == "ack" and ack.turn_id == outcome.turn_id
            for r in records
            if r.seq in ack.value.admits
        ]
        assert (first.value.trigger.seqs, admitted) == ((), ["c", "a steer is for this one"])
        # the prompt's own turn is of the ordinary kind
        assert received(records) == ["c", "a", "b"]


async def test_execution_32_what_nobody_asked_for_during_the_hold_starts_no_successor(
    tmp_path: Path,
) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause)) as on:
        session_id = await three(on)
        await on.host.dispatcher.run_selected(session_id, 2)
        await pause.came()
        # durable, and authorised; but no wish
        await deliver(on, session_id, "d")
        await on.host.inbox.authorise(session_id, 4)
        pause.open.set()
        await on.idle(session_id)
        await on.host.dispatcher.wake_delivered()
        assert len(of(await on.log(session_id), "turn_started")) == 1
        assert await left(on, session_id) == ["a", "c", "d"]


@pytest.mark.parametrize("which", [1, 3])
async def test_execution_32_what_is_asked_for_during_the_hold_has_one_successor(
    tmp_path: Path, which: int
) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause)) as on:
        session_id = await three(on)
        outcome = await on.host.dispatcher.run_selected(session_id, 2)
        assert isinstance(outcome, Started)
        await pause.came()
        asked = await on.host.inbox.request_activation(session_id, which)
        assert asked == Coalesced()  # remembered: the turn that runs does not take it in
        pause.open.set()
        await on.idle(session_id)
        records = await on.log(session_id)
        assert len(of(records, "turn_started")) == 2
        assert received(records) == ["b", "a", "c"]


async def test_execution_32_a_hold_that_is_given_back_unused_passes_on_what_was_asked_meanwhile(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as on:
        for asked in (False, True):
            session_id = await three(on)
            outcome = await on.host.dispatcher.reserve_selected(session_id, 2)
            assert isinstance(outcome, Reserved)
            if asked:
                await on.host.inbox.request_activation(session_id, 3)
            await outcome.reservation.abandon()
            await on.idle(session_id)
            records = await on.log(session_id)
            assert received(records) == (["a", "b", "c"] if asked else [])
            assert len(of(records, "turn_started")) == (2 if asked else 1)


async def test_execution_32_a_wish_from_before_the_hold_is_not_passed_on_and_not_lost(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as on:
        session_id = await three(on)
        async with await on.host.reservations.prepare(session_id):
            assert await on.host.inbox.request_activation(session_id, 1) == Coalesced()
        assert isinstance(await on.host.dispatcher.run_selected(session_id, 2), Started)
        await on.idle(session_id)
        await on.host.dispatcher.wake_delivered()
        assert received(await on.log(session_id)) == ["b"]
    async with stage(tmp_path) as on:  # what is authorised is not forgotten
        await on.idle(session_id)
        assert received(await on.log(session_id)) == ["b", "a", "c"]


async def test_a_selected_turn_of_a_server_that_dies_leaves_all_to_the_next(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as on:
        session_id = await three(on)
        outcome = await on.host.dispatcher.reserve_selected(session_id, 2)
        assert isinstance(outcome, Reserved)
        outcome.reservation.transfer()  # and nobody ever runs it
    async with stage(tmp_path) as on:
        await on.host.dispatcher.wake_waiting()
        await on.idle(session_id)
        records = await on.log(session_id)
        assert received(records) == ["a", "b", "c"]
        assert [end.outcome for end in of(records, "turn_finished")] == ["interrupted", "completed"]


async def test_a_selection_gives_no_authority_and_needs_its_delivery(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        session_id = await on.session()
        select = on.host.dispatcher.run_selected
        assert await select(session_id, 1) == NoWork()  # there is none
        await deliver(on, session_id, "a")
        assert await select(session_id, 1) == NoWork()  # it is not authorised
        await on.host.inbox.authorise(session_id, 1)
        assert isinstance(await select(session_id, 1), Started)
        await on.idle(session_id)
        assert await select(session_id, 1) == NoWork()  # it was taken in
        records = await on.log(session_id)
        assert len(of(records, "turn_started")) == 1
        assert received(records) == ["a"]


async def test_a_selection_of_a_session_that_runs_names_its_turn(tmp_path: Path) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause)) as on:
        session_id = await on.session()
        posted = await on.say(session_id, "go")
        await pause.came()
        await deliver(on, session_id, "a")
        await on.host.inbox.authorise(session_id, 1)
        running = await on.host.dispatcher.run_selected(session_id, 1)
        assert running == AlreadyRunning(turn_id=posted.turn_id)
        pause.open.set()
        await on.idle(session_id)
        assert received(await on.log(session_id)) == ["a"]  # that turn has taken it in


async def test_what_interrupts_is_no_business_of_a_turn_that_does_not_take_it_in(
    tmp_path: Path,
) -> None:
    pause = Pause()

    async def slow(context: Any, arguments: Any) -> Any:
        await pause.here()
        return await returns()(context, arguments)

    scene = calls(("slow", {"text": "a"}), ("next", {"text": "b"}))
    async with stage(tmp_path, scene, tools=[tool("slow", slow), tool("next", returns())]) as on:
        session_id = await three(on)
        await on.host.dispatcher.run_selected(session_id, 1)
        await pause.came()
        assert await send(on, session_id, "stop", policy="interrupt_wait") == Coalesced()
        pause.open.set()
        await on.idle(session_id)
        records = await on.log(session_id)
        assert results(records) == [("slow", "ok"), ("next", "ok")]
        assert received(records) == ["a", "b", "c", "stop"]


async def test_asking_for_the_selected_delivery_itself_changes_nothing(tmp_path: Path) -> None:
    pause = Pause()
    async with stage(tmp_path, pauses(pause)) as on:
        session_id = await three(on)
        reserved = await on.host.dispatcher.reserve_selected(session_id, 1)
        assert isinstance(reserved, Reserved)
        asked = await on.host.inbox.request_activation(session_id, 1)
        assert asked == ActiveNotified(turn_id=reserved.reservation.turn_id)
        again = await on.host.inbox.deliver(session_id, envelope("a"), by=CHILD)
        assert again.repeated
        await reserved.reservation.abandon()
        await on.idle(session_id)
        # nothing was asked for that it would have had to pass on
        assert received(await on.log(session_id)) == []
