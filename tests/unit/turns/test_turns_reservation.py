"""specs/execution.md 3 and 7: one owner at a time, under a fence that only rises."""

import asyncio
import random
from pathlib import Path

import pytest
from turns_kit import of, owned, the_end

from callboard.host import Host
from callboard.log.faults import StaleFence
from callboard.log.transaction import Transaction
from callboard.turns.parking import park
from callboard.turns.reservation import (
    SYSTEM,
    AlreadyRunning,
    ExecutionReservation,
    Grant,
    NoWork,
    PreparationReservation,
    Reservations,
    Reserved,
    assert_fence,
)
from callboard_rpc.common import TurnId
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import Ack, Trigger, TurnStarted
from harness.inside import host_in, log_of, new_session

pytestmark = pytest.mark.anyio


def begin(tx: Transaction, grant: Grant) -> str:
    tx.append(
        grant.session_id,
        TurnStarted(
            turn_id=TurnId(grant.turn_id),
            index=tx.value(
                "SELECT coalesce(max(idx), -1) + 1 FROM turns WHERE session_id = ?",
                grant.session_id,
            ),
            trigger=Trigger(kind="prompt", seqs=()),
            model="none/none",
            mode="work",
        ),
        actor=SYSTEM,
        turn_id=grant.turn_id,
        fence=grant.fence,
    )
    return grant.turn_id


def reservations(host: Host) -> Reservations:
    # as the host itself: whoever is no host that lives is taken for dead, and its runs are ended
    return Reservations(host.log, host.host_id)


async def reserve(made: Reservations, session_id: str) -> ExecutionReservation:
    outcome = await made.reserve(session_id, begin)
    assert isinstance(outcome, Reserved)
    return outcome.reservation


async def test_execution_1_of_many_reserves_one_wins_and_the_others_name_its_run(
    tmp_path: Path,
) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        made = reservations(host)
        outcomes = await asyncio.gather(*(made.reserve(session_id, begin) for _ in range(50)))
        won = [each for each in outcomes if isinstance(each, Reserved)]
        lost = [each for each in outcomes if isinstance(each, AlreadyRunning)]
        assert (len(won), len(lost)) == (1, 49)
        assert {each.turn_id for each in lost} == {won[0].reservation.turn_id}
        assert len(of(await log_of(host, session_id), "turn_started")) == 1


async def test_execution_2_reserves_of_different_sessions_do_not_block_each_other(
    tmp_path: Path,
) -> None:
    async with host_in(tmp_path) as host:
        made = reservations(host)
        sessions = [await new_session(host, tmp_path) for _ in range(20)]
        outcomes = await asyncio.gather(*(made.reserve(each, begin) for each in sessions))
        assert all(isinstance(each, Reserved) for each in outcomes)
        assert await owned(host) == 20


async def test_execution_3_the_fence_rises_over_runs_preparations_releases_and_restarts(
    tmp_path: Path,
) -> None:
    fences: list[int] = []
    session_id = ""
    for _ in range(3):
        async with host_in(tmp_path) as host:
            session_id = session_id or await new_session(host, tmp_path)
            made = reservations(host)
            run = await reserve(made, session_id)
            fences.append(run.grant.fence)
            await run.abandon()
            preparation = await made.prepare(session_id)
            fences.append(preparation.grant.fence)
            await preparation.abandon()
            await made.settled()
    assert len(set(fences)) == 6
    assert fences == sorted(fences)


@pytest.mark.parametrize("kind", ["run", "preparation"])
async def test_execution_4_a_reserve_that_is_cancelled_anywhere_leaves_no_owner(
    tmp_path: Path, kind: str
) -> None:
    steps = random.Random(4)
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        made = reservations(host)
        for _ in range(60):
            wanted = made.reserve(session_id, begin) if kind == "run" else made.prepare(session_id)
            task = asyncio.ensure_future(wanted)
            for _ in range(steps.randrange(12)):
                await asyncio.sleep(0)
            task.cancel()
            done = (await asyncio.gather(task, return_exceptions=True))[0]
            if isinstance(done, Reserved):
                await done.reservation.abandon()
            elif isinstance(done, PreparationReservation):
                await done.abandon()
            else:
                assert isinstance(done, asyncio.CancelledError)
            await host.log.transact(lambda tx: None)  # what was under way is through
            await made.settled()
            assert await owned(host) == 0
        await (await reserve(made, session_id)).abandon()


@pytest.mark.parametrize("how", ["return", "raise", "cancel"])
async def test_execution_5_leaving_without_a_transfer_frees_the_session_and_ends_the_run(
    tmp_path: Path, how: str
) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        made = reservations(host)
        inside = asyncio.Event()

        async def use() -> None:
            async with await reserve(made, session_id):
                inside.set()
                if how == "raise":
                    raise RuntimeError("it went wrong")
                if how == "cancel":
                    await asyncio.Event().wait()

        task = asyncio.ensure_future(use())
        await inside.wait()
        if how == "cancel":
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await made.settled()
        assert await owned(host) == 0
        assert the_end(await log_of(host, session_id)).outcome == "cancelled"
        await (await reserve(made, session_id)).abandon()


async def test_execution_6_cancelling_who_waits_for_a_release_does_not_stop_it(
    tmp_path: Path,
) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        made = reservations(host)
        for reservation in (await reserve(made, session_id), None):
            given = reservation or await made.prepare(session_id)
            task = asyncio.ensure_future(given.abandon())
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled()
            await made.settled()
            assert await owned(host) == 0


async def test_execution_7_a_second_release_is_nothing_and_never_ends_a_newer_run(
    tmp_path: Path,
) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        made = reservations(host)
        first = await reserve(made, session_id)
        await first.abandon()
        second = await reserve(made, session_id)
        before = len(await log_of(host, session_id))
        await first.abandon()
        await made.abandon(first.grant)
        assert await owned(host) == 1
        assert len(await log_of(host, session_id)) == before
        second.transfer()
        await second.abandon()
        assert await owned(host) == 1
        with pytest.raises(ValueError, match="used already"):
            second.transfer()


async def test_execution_8_a_stale_run_can_write_nothing(tmp_path: Path) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        made = reservations(host)
        old = (await reserve(made, session_id)).grant
        await made.abandon(old)
        await reserve(made, session_id)
        before = await log_of(host, session_id)

        def write(tx: Transaction) -> None:
            assert_fence(tx, old)
            tx.append(
                session_id, Ack(admits=()), actor=SYSTEM, turn_id=old.turn_id, fence=old.fence
            )

        with pytest.raises(StaleFence):
            await host.log.transact(write)
        assert len(await log_of(host, session_id)) == len(before)
        assert await owned(host) == 1


async def test_execution_9_a_second_reserve_neither_ends_nor_touches_the_live_run(
    tmp_path: Path,
) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        made = reservations(host)
        run = await reserve(made, session_id)
        outcome = await made.reserve(session_id, begin)
        assert outcome == AlreadyRunning(turn_id=run.turn_id)
        assert of(await log_of(host, session_id), "turn_finished") == []
        await host.log.transact(lambda tx: assert_fence(tx, run.grant))


async def test_execution_11_nothing_is_written_when_there_is_no_work_or_begin_fails(
    tmp_path: Path,
) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        made = reservations(host)
        assert await made.reserve(session_id, lambda tx, grant: None) == NoWork()

        def broken(tx: Transaction, grant: Grant) -> str:
            begin(tx, grant)
            raise RuntimeError("no")

        with pytest.raises(RuntimeError, match="no"):
            await made.reserve(session_id, broken)
        assert [r.type for r in await log_of(host, session_id)] == ["session_created"]
        assert await owned(host) == 0


async def test_execution_29_preparation_excludes_runs_and_runs_exclude_preparation(
    tmp_path: Path,
) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        made = reservations(host)
        async with await made.prepare(session_id):
            assert isinstance(await made.reserve(session_id, begin), AlreadyRunning)
            with pytest.raises(CallboardError) as busy:
                await made.prepare(session_id)
            assert busy.value.kind == "turnInProgress"
        assert [r.type for r in await log_of(host, session_id)] == ["session_created"]
        async with await reserve(made, session_id) as run:
            with pytest.raises(CallboardError) as busy:
                await made.prepare(session_id)
            assert busy.value.kind == "turnInProgress"
            assert busy.value.data["turnId"] == run.turn_id
        await made.settled()
        assert await owned(host) == 0


async def test_execution_30_a_preparation_cannot_start_a_run(tmp_path: Path) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        async with await reservations(host).prepare(session_id) as preparation:
            assert not hasattr(preparation, "transfer")
            assert preparation.grant.turn_id == ""
        assert (await host.log.query("SELECT count(*) FROM turns"))[0][0] == 0


async def test_execution_1_of_many_preparations_one_wins(tmp_path: Path) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        made = reservations(host)
        outcomes = await asyncio.gather(
            *(made.prepare(session_id) for _ in range(30)), return_exceptions=True
        )
        (won,) = [each for each in outcomes if isinstance(each, PreparationReservation)]
        lost = [each for each in outcomes if isinstance(each, CallboardError)]
        assert {(each.kind, each.data["turnId"]) for each in lost} == {("turnInProgress", None)}
        assert len(lost) == 29
        await won.abandon()
        assert await owned(host) == 0


async def test_execution_7_a_preparation_concludes_once_and_ends_nothing_newer(
    tmp_path: Path,
) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        made = reservations(host)
        seen: list[int] = []

        async with await made.prepare(session_id) as preparation:
            fence = preparation.grant.fence
            await preparation.transact(lambda tx: seen.append(fence))
            assert await owned(host) == 1
            assert await preparation.conclude(lambda tx: fence) == fence
            assert await owned(host) == 0  # in the transaction of the last write
            newer = await reserve(made, session_id)
        assert await owned(host) == 1
        await preparation.abandon()
        assert await owned(host) == 1
        await newer.abandon()
        assert seen == [fence]


async def test_execution_8_what_was_prepared_and_lost_writes_nothing_and_says_so(
    tmp_path: Path,
) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        made = reservations(host)
        before = len(await log_of(host, session_id))

        def write(tx: Transaction) -> None:
            tx.append(session_id, Ack(admits=()), actor=SYSTEM)

        for how in ("transact", "conclude"):
            with pytest.raises(CallboardError) as lost:
                async with await made.prepare(session_id) as preparation:
                    await made.abandon(preparation.grant)
                    async with await made.prepare(session_id):
                        await getattr(preparation, how)(write)
            assert lost.value.kind == "leaseLost"
            assert len(await log_of(host, session_id)) == before
            assert await owned(host) == 0


async def test_execution_11_a_preparation_that_is_refused_takes_nothing(tmp_path: Path) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        made = reservations(host)
        with pytest.raises(CallboardError) as unknown:
            await made.prepare("ses_nothing")
        assert unknown.value.kind == "sessionNotFound"

        def refuses(tx: Transaction, grant: Grant) -> None:
            tx.append(session_id, Ack(admits=()), actor=SYSTEM)
            raise RuntimeError("no")

        with pytest.raises(RuntimeError, match="no"):
            await made.prepare(session_id, refuses)
        assert await owned(host) == 0
        assert [r.type for r in await log_of(host, session_id)] == ["session_created"]
        assert await host.log.query("SELECT 1 FROM owners WHERE session_id = 'ses_nothing'") == []


async def test_execution_29_a_parked_turn_keeps_its_history(tmp_path: Path) -> None:
    """What it asked for must be there when the answer comes."""
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        made = reservations(host)
        run = (await reserve(made, session_id)).grant
        await host.log.transact(lambda tx: park(tx, run, ("apr_1",)))
        assert await owned(host) == 0
        with pytest.raises(CallboardError) as parked:
            await made.prepare(session_id)
        assert (parked.value.kind, parked.value.data) == (
            "turnInProgress",
            {"turnId": run.turn_id},
        )
        assert await owned(host) == 0
