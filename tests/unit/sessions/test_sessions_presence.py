"""Who is there and who is gone: judged by this process's own clock, decided in the transaction that acts."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callboard.host import Host
from callboard.log import feed
from callboard.log.faults import StaleFence
from callboard.log.transaction import SQL as LOG_SQL
from callboard.sessions.identity import Life, identity, life
from callboard.sessions.presence import LIMIT_S, Presence
from callboard.sessions.recovery import conclude, seize_runs
from callboard.turns.reservation import AlreadyRunning, Reserved, assert_fence
from callboard_rpc.common import Actor, TurnId
from callboard_rpc.events import CancelRequested, SessionCreated
from harness.inside import CLIENT, host_in, idle, log_of, new_session, say, until
from harness.process import scenario

pytestmark = pytest.mark.anyio

SCENE = """
rules:
  - when: {last_user: {regex: "^hang$"}}
    answer: [{say: "Working"}, {hang: true}]
  - when: {last_user: {regex: "^talk$"}}
    answer: [{say: {text: "on and on ", chunk: 2, delay_ms: 2, repeat: 4000}}]
  - when: {last_user: {regex: "^run$"}, step: 0}
    answer: [{call: {tool: run_command, arguments: {command: "echo x >> ran.txt"}}}]
default: [{say: "Heard."}]
"""


@pytest.fixture
def model(tmp_path: Path) -> str:
    return scenario(tmp_path, SCENE)


def _clock(start: float = 0.0) -> tuple[Callable[[], float], Callable[[float], None]]:
    now = [start]

    def advance(seconds: float) -> None:
        now[0] += seconds

    return (lambda: now[0]), advance


def _lives(_: int, __: str) -> Life:
    return "alive"


def _gone(_: int, __: str) -> Life:
    return "gone"


async def _started(host: Host, session_id: str) -> None:
    async def acknowledged() -> bool:
        return "ack" in [r.type for r in await log_of(host, session_id)]

    await until(host, acknowledged)


async def _beats(host: Host) -> dict[str, str]:
    return dict(await host.log.query("SELECT host_id, heartbeat_at FROM hosts"))


async def _beat(host: Host, at: str) -> None:
    sql = "UPDATE hosts SET heartbeat_at = ? WHERE host_id = ?"
    await host.log.transact(lambda tx: tx.execute(sql, at, host.host_id))


# --- who is gone ------------------------------------------------------------------------------


async def test_messaging_10_a_host_is_gone_when_its_heartbeat_stood_still_for_the_limit_by_our_clock(
    tmp_path: Path, model: str
) -> None:
    async with host_in(tmp_path, model=model) as owner, host_in(tmp_path, model=model) as host:
        session_id = await new_session(owner, tmp_path)
        await say(owner, session_id, "hang")
        await _started(owner, session_id)
        clock, advance = _clock()
        presence = Presence(host.log, host.host_id, is_alive=_lives, clock=clock)
        while clock() + 5 <= LIMIT_S:
            assert not await presence.look()
            advance(5)
        await _beat(owner, "2031-01-01T00:00:00.000Z")  # in the last moment: all begins anew
        for _ in range(int(LIMIT_S // 5)):
            assert not await presence.look()
            advance(5)
        assert (await host.reading.session(session_id)).status == "running"
        advance(5)
        assert await presence.look()
        await idle(host, session_id)
        assert (await log_of(host, session_id))[-1].value.outcome == "interrupted"
        assert owner.host_id not in await _beats(host)


async def test_messaging_10_who_stood_still_itself_judges_nobody_by_that_time(
    tmp_path: Path, model: str
) -> None:
    async with host_in(tmp_path, model=model) as owner, host_in(tmp_path, model=model) as host:
        clock, advance = _clock()
        presence = Presence(host.log, host.host_id, is_alive=_lives, clock=clock)
        assert not await presence.look()
        advance(10 * LIMIT_S)
        assert not await presence.look()
        assert owner.host_id in await _beats(host)


async def test_messaging_10_a_host_whose_process_is_gone_is_replaced_at_the_first_look(
    tmp_path: Path, model: str
) -> None:
    async with host_in(tmp_path, model=model) as owner, host_in(tmp_path, model=model) as host:
        session_id = await new_session(owner, tmp_path)
        await say(owner, session_id, "hang")
        await _started(owner, session_id)
        presence = Presence(host.log, host.host_id, is_alive=_gone)
        assert await presence.look()
        assert not await presence.look()
        records = await log_of(host, session_id)
        assert records[-1].value.outcome == "interrupted"
        # the owner, which lives after all, has lost the session and knows it
        while owner.dispatcher.running:
            await asyncio.sleep(0)
        assert len(await log_of(host, session_id)) == len(records)


def test_a_process_is_told_from_a_later_one_with_its_pid_and_from_those_that_cannot_be_seen() -> (
    None
):
    told = identity(os.getpid())
    where, _, when = told.rpartition("@")
    assert life(os.getpid(), told) == "alive"
    assert life(os.getpid(), f"{where}@0") == "gone"
    assert life(2**22 + 1, told) == "gone"
    assert life(os.getpid(), f"another machine@{when}") == "unknown"


def test_a_process_of_another_boot_of_this_machine_is_gone_and_one_of_elsewhere_unknown() -> None:
    pid, here = os.getpid(), "machine/boot-2/pid:[1]"
    assert life(pid, "machine/boot-1/pid:[1]@5", here=here) == "gone"
    assert life(pid, "machine/boot-1/pid:[7]@5", here=here) == "gone"
    assert life(pid, "machine/boot-2/pid:[7]@5", here=here) == "unknown"  # a container of this boot
    assert life(pid, "other/boot-1/pid:[1]@5", here=here) == "unknown"
    assert life(pid, "/boot-1/pid:[1]@5", here="/boot-2/pid:[1]") == "unknown"  # without a name
    assert life(pid, "boot-1/pid:[1]@5", here=here) == "unknown"
    assert life(pid, "@", here=here) == "unknown"


async def test_messaging_10_a_host_that_shows_itself_before_it_is_seized_keeps_what_it_runs(
    tmp_path: Path, model: str
) -> None:
    """The judgement is looked at again in the transaction that acts on it."""
    async with host_in(tmp_path, model=model) as owner, host_in(tmp_path, model=model) as host:
        session_id = await new_session(owner, tmp_path)
        await say(owner, session_id, "hang")
        await _started(owner, session_id)
        judged = (await _beats(host))[owner.host_id]
        await _beat(owner, "2031-01-01T00:00:00.000Z")
        assert await seize_runs(host.log, {owner.host_id: judged}, by=host.host_id) == []
        assert await seize_runs(host.log, {owner.host_id: None}, by=host.host_id) == []
        assert owner.host_id in await _beats(host)
        assert (await host.reading.session(session_id)).owner.host_id == owner.host_id  # type: ignore[union-attr]


async def test_messaging_10_a_host_that_was_taken_for_gone_is_known_again_with_what_it_takes_next(
    tmp_path: Path, model: str
) -> None:
    async with host_in(tmp_path, model=model) as owner, host_in(tmp_path, model=model) as host:
        session_id = await new_session(owner, tmp_path)
        assert await Presence(host.log, host.host_id, is_alive=_gone).look()
        assert owner.host_id not in await _beats(host)
        await say(owner, session_id, "hang")
        await _started(owner, session_id)
        assert owner.host_id in await _beats(host)
        assert not await Presence(host.log, host.host_id, is_alive=_lives).look()
        assert (await host.reading.session(session_id)).status == "running"


# --- taking over ------------------------------------------------------------------------------


async def test_execution_8_a_run_is_seized_under_a_new_fence_once_and_the_old_one_writes_nothing(
    tmp_path: Path, model: str
) -> None:
    async with host_in(tmp_path, model=model) as owner, host_in(tmp_path, model=model) as host:
        session_id = await new_session(owner, tmp_path)
        await say(owner, session_id, "hang")
        await _started(owner, session_id)
        live = owner.dispatcher.live(session_id)
        assert live is not None
        gone: dict[str, str | None] = {**(await _beats(host))}
        gone = {owner.host_id: gone[owner.host_id]}
        seized = await asyncio.gather(
            *(seize_runs(each.log, dict(gone), by=each.host_id) for each in (host, owner))
        )
        (grant,) = [each for found in seized for each in found]
        assert grant.fence == live.grant.fence + 1
        with pytest.raises(StaleFence):
            await owner.log.transact(lambda tx: assert_fence(tx, live.grant))
        await asyncio.gather(*(conclude(each.log, [grant]) for each in (host, owner)))
        await conclude(host.log, [grant])
        await idle(host, session_id)
        ends = [r for r in await log_of(host, session_id) if r.type == "turn_finished"]
        assert [(r.fence, r.value.outcome) for r in ends] == [(grant.fence, "interrupted")]


async def test_execution_8_a_stream_that_runs_on_after_its_turn_was_seized_leaves_no_draft(
    tmp_path: Path, model: str
) -> None:
    config = tmp_path / "config"
    config.mkdir()
    (config / "config.toml").write_text("[draft]\ninterval_ms = 10\n", "utf-8")
    async with host_in(tmp_path, model=model) as owner, host_in(tmp_path, model=model) as host:
        session_id = await new_session(owner, tmp_path)
        await say(owner, session_id, "talk")
        await _started(owner, session_id)
        turn_id = (await log_of(host, session_id))[2].turn_id
        while await host.log.draft(turn_id) is None:
            await asyncio.sleep(0.001)  # a draft is no event, so there is nothing to wait on
        assert await Presence(host.log, host.host_id, is_alive=_gone).look()
        while owner.dispatcher.running:
            await asyncio.sleep(0.001)
        assert await host.log.query("SELECT * FROM drafts") == []
        (partial,) = [r for r in await log_of(host, session_id) if r.type == "message"][1:]
        assert partial.value.partial
        assert partial.value.content[0].text.startswith("on")


async def test_one_run_that_the_store_does_not_let_end_holds_up_no_other_and_is_tried_again(
    tmp_path: Path, model: str
) -> None:
    async with host_in(tmp_path, model=model) as owner, host_in(tmp_path, model=model) as host:
        refused, ended = [await new_session(owner, tmp_path) for _ in range(2)]
        for each in (refused, ended):
            await say(owner, each, "hang")
            await _started(owner, each)
        clock, advance = _clock()
        presence = Presence(host.log, host.host_id, is_alive=_gone, clock=clock)
        trigger = (
            "CREATE TRIGGER refuse BEFORE INSERT ON events WHEN NEW.type = 'turn_finished' "
            f"AND NEW.session_id = '{refused}' BEGIN SELECT raise(ABORT, 'refused'); END"
        )
        await host.log.transact(lambda tx: tx.execute(trigger))
        assert await presence.look()
        assert (await host.reading.session(refused)).owner.host_id == host.host_id  # type: ignore[union-attr]
        assert (await host.reading.session(ended)).status == "idle"
        await host.log.transact(lambda tx: tx.execute("DROP TRIGGER refuse"))
        advance(5)
        assert await presence.look()
        assert (await host.reading.session(refused)).status == "idle"
        assert (await log_of(host, refused))[-1].value.outcome == "interrupted"


async def test_messaging_18_a_run_that_somebody_had_asked_to_stop_ends_as_cancelled(
    tmp_path: Path, model: str
) -> None:
    by = Actor(kind="client", id="impatient")
    async with host_in(tmp_path, model=model) as owner, host_in(tmp_path, model=model) as host:
        session_id = await new_session(owner, tmp_path)
        await say(owner, session_id, "hang")
        await _started(owner, session_id)
        live = owner.dispatcher.live(session_id)
        assert live is not None
        (grant,) = await seize_runs(
            host.log, {owner.host_id: (await _beats(host))[owner.host_id]}, by=host.host_id
        )
        wish = CancelRequested(scope="turn", turn_id=TurnId(live.turn_id), reason="enough")
        await host.log.append(session_id, wish, actor=by, turn_id=live.turn_id)
        await conclude(host.log, [grant])
        assert (await log_of(host, session_id))[-1].value.outcome == "cancelled"


async def test_design_4_an_answer_that_comes_between_the_seizure_of_a_waiting_turn_and_its_end_runs_the_call(
    tmp_path: Path, model: str
) -> None:
    """The turn is parked as it is seized, so that there is no such moment: whoever answers resumes it."""
    async with (
        host_in(tmp_path, model=model) as owner,
        host_in(tmp_path, model=model) as host,
        host_in(tmp_path, model=model) as third,
    ):
        session_id = await new_session(owner, tmp_path)
        await say(owner, session_id, "run")
        waited = await owner.waiting.wait(session_id, until="attention", turn_id=None, timeout_s=30)
        gone = {owner.host_id: (await _beats(host))[owner.host_id]}
        seized = await seize_runs(host.log, gone, by=host.host_id)
        assert seized == []
        assert (await log_of(host, session_id))[-1].type == "turn_parked"
        answered = waited.approvals[0].approval_id
        await third.approvals.answer(answered, "allow_once", by=CLIENT, via="method")
        await conclude(host.log, seized)
        await idle(third, session_id)
        records = await log_of(third, session_id)
        assert [r.value.status for r in records if r.type == "tool_result"] == ["ok"]
        assert [r.value.outcome for r in records if r.type == "turn_finished"] == ["completed"]
        assert (tmp_path / "ran.txt").read_text() == "x\n"


async def test_messaging_18_a_waiting_turn_that_somebody_had_asked_to_stop_is_not_parked_but_ended(
    tmp_path: Path, model: str
) -> None:
    async with host_in(tmp_path, model=model) as owner, host_in(tmp_path, model=model) as host:
        session_id = await new_session(owner, tmp_path)
        await say(owner, session_id, "run")
        await owner.waiting.wait(session_id, until="attention", turn_id=None, timeout_s=30)
        live = owner.dispatcher.live(session_id)
        assert live is not None
        wish = CancelRequested(scope="turn", turn_id=TurnId(live.turn_id), reason="enough")
        gone = {owner.host_id: (await _beats(host))[owner.host_id]}
        # in one commit, so that the owner cannot heed the wish itself
        asked = host.log.submit(
            lambda tx: tx.append(session_id, wish, actor=CLIENT, turn_id=live.turn_id)
        )
        seized = await seize_runs(host.log, gone, by=host.host_id)
        await asked
        await conclude(host.log, seized)
        records = await log_of(host, session_id)
        assert records[-1].value.outcome == "cancelled"
        assert "turn_parked" not in [r.type for r in records]


# --- an id that is used again -----------------------------------------------------------------


async def test_execution_3_a_session_deleted_and_made_again_inherits_neither_lease_nor_fence(
    tmp_path: Path, model: str
) -> None:
    """As an import does that brings an exported session back under its old id."""
    async with host_in(tmp_path, model=model) as host:
        session_id = await new_session(host, tmp_path)
        held = await host.reservations.reserve(session_id, lambda tx, grant: True)
        assert isinstance(held, Reserved)
        stale = held.reservation.grant

        def again(tx: Any) -> None:
            tx.delete_session(session_id, actor=CLIENT)
            tx.execute(LOG_SQL["set_tombstones_apart"], session_id)
            tx.begin_session(session_id, session_id)
            created = SessionCreated(
                session_id=session_id,  # type: ignore[arg-type]
                root_id=session_id,  # type: ignore[arg-type]
                cwd=str(tmp_path),
                profile="default",
                mode="work",
            )
            tx.append(session_id, created, actor=CLIENT)

        await host.log.transact(again)
        owners = "SELECT fence FROM owners WHERE session_id = ?"
        assert await host.log.query(owners, session_id) == [(None,)]
        with pytest.raises(StaleFence):
            await host.log.transact(lambda tx: assert_fence(tx, stale))
        newer = await host.reservations.reserve(session_id, lambda tx, grant: True)
        assert not isinstance(newer, AlreadyRunning)
        assert isinstance(newer, Reserved)
        assert newer.reservation.grant.fence > stale.fence
        with pytest.raises(StaleFence):
            await host.log.transact(lambda tx: assert_fence(tx, stale))
        # the reservation of the session that is no more ends nothing of this one
        await held.reservation.abandon()
        assert await host.log.query(owners, session_id) == [(newer.reservation.grant.fence,)]
        await newer.reservation.abandon()
        await say(host, session_id, "hello")
        await idle(host, session_id)
        assert (await log_of(host, session_id))[-1].value.outcome == "completed"


# --- a process that missed much ---------------------------------------------------------------


async def test_an_answer_a_cancel_and_a_loss_are_noticed_though_much_was_committed_meanwhile(
    tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So much came from elsewhere while this process stood still that it was not told one by one."""
    async with host_in(tmp_path, model=model) as host, host_in(tmp_path, model=model) as other:
        work = tmp_path / "work"
        work.mkdir()
        asking, hanging, losing = [await new_session(host, work) for _ in range(3)]
        await say(host, asking, "run")
        waited = await host.waiting.wait(asking, until="attention", turn_id=None, timeout_s=30)
        for each in (hanging, losing):
            await say(host, each, "hang")
            await _started(host, each)
        monkeypatch.setattr(feed, "_SKIPPED", -1)
        approval = waited.approvals[0].approval_id
        await other.approvals.answer(approval, "allow_once", by=CLIENT, via="method")
        await other.sessions.cancel(hanging, by=CLIENT)
        await other.log.transact(lambda tx: tx.delete_session(losing, actor=CLIENT))
        host.log.refresh()
        while host.dispatcher.running:
            await asyncio.sleep(0.01)  # nothing is told, so there is nothing to wait on
        assert (await log_of(host, asking))[-1].value.outcome == "completed"
        assert (await log_of(host, hanging))[-1].value.outcome == "cancelled"
        assert [r.type for r in await log_of(host, losing)] == ["session_deleted"]
        assert (work / "ran.txt").read_text() == "x\n"
