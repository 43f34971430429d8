"""specs/execution.md 17, 24-26: whoever waits for a run's end hears of it after the commit."""

import logging
from pathlib import Path
from typing import Any

import pytest
from turns_kit import Pause, calls, fails, of, owned, shape, speaks, stage, the_end
from turns_parent_kit import Parent, left_to_tell, nothing_left

from callboard.sessions.presence import Presence
from callboard_rpc.sessions import Turn
from harness.inside import CLIENT, host_in, idle, log_of

pytestmark = pytest.mark.anyio


async def test_execution_24_a_listener_hears_after_the_commit_and_of_what_is_stored(
    tmp_path: Path,
) -> None:
    seen: list[tuple[str, str, str, int]] = []

    async def look(turn: Turn) -> None:
        end = of(await on.log(turn.session_id), "turn_finished")[-1]
        session = await on.host.reading.session(turn.session_id)
        seen.append((end.turn_id, end.outcome, session.status, await owned(on.host)))

    parent = Parent(look)
    async with stage(tmp_path, speaks("hello"), fails(), features=[parent.feature]) as on:
        session_id, _ = await on.turn()
        turn = (await parent.heard(1))[0]
        assert (turn.state, turn.final_text) == ("completed", "hello")
        assert seen == [(turn.turn_id, "completed", "idle", 0)]
        await on.say(session_id, "again")
        turn = (await parent.heard(2))[1]
        assert turn.error is not None
        assert (turn.state, turn.error.kind) == ("failed", "modelError")
        await nothing_left(on.host)


async def test_execution_25_a_listener_that_fails_changes_nothing_and_is_told_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    parent = Parent(failures=2)
    with caplog.at_level(logging.ERROR):
        async with stage(tmp_path, speaks("hello"), features=[parent.feature]) as on:
            session_id, records = await on.turn()
            assert the_end(records).outcome == "completed"
            assert (await on.host.reading.session(session_id)).status == "idle"
            assert await owned(on.host) == 0
            # the session goes on while its parent is still being told
            await on.say(session_id, "more")
            await on.idle(session_id)
            told = await parent.heard(2)
            assert [turn.index for turn in told] == [0, 1]
            await nothing_left(on.host)
    assert parent.calls == 4
    assert "the listener parent failed" in caplog.text


async def test_execution_24_who_was_not_told_before_the_host_went_is_told_by_the_next_one(
    tmp_path: Path,
) -> None:
    pause = Pause()

    async def hang(_: Turn) -> None:
        await pause.here()

    first = Parent(hang)
    async with stage(tmp_path, features=[first.feature]) as on:
        session_id = await on.session()
        await on.say(session_id, "hello")
        await pause.came()
        assert await left_to_tell(on.host) == 1
    assert first.told == []
    second = Parent()
    async with host_in(tmp_path, features=[second.feature]) as host:
        turn = (await second.heard(1))[0]
        assert (turn.session_id, turn.state) == (session_id, "completed")
        await nothing_left(host)
    third = Parent()
    async with stage(tmp_path, features=[third.feature]) as on:
        await on.say(session_id, "hello again")
        assert [turn.index for turn in await third.heard(1)] == [1]


async def test_execution_26_a_run_without_an_answer_tells_of_no_older_one(tmp_path: Path) -> None:
    parent = Parent()
    async with stage(tmp_path, speaks("an answer"), fails(), features=[parent.feature]) as on:
        session_id, _ = await on.turn()
        await on.say(session_id, "again")
        told = await parent.heard(2)
        assert [turn.final_text for turn in told] == ["an answer", None]


async def test_execution_17_a_parked_run_is_no_end_and_its_answer_resumes_it(
    tmp_path: Path,
) -> None:
    asks = calls(("write_file", {"path": "a.txt", "content": "x"}))
    first, second = Parent(), Parent()
    async with stage(tmp_path, asks, features=[first.feature]) as on:
        session_id = await on.session()
        with on.host.log.watching(session_id) as changed:
            await on.say(session_id, "go")
            while not of(await on.log(session_id), "approval_request"):
                await changed.wait()
                changed.clear()
    async with stage(tmp_path, speaks("done"), features=[second.feature]) as on:
        # suspended: nobody owns it, it has not ended, its parent was not woken
        assert shape(await on.log(session_id))[-1] == "turn_parked"
        assert (await on.host.reading.session(session_id)).status == "parked"
        assert (await owned(on.host), await left_to_tell(on.host)) == (0, 0)
        approval = of(await on.log(session_id), "approval_request")[0].approval
        await on.host.approvals.answer(approval.approval_id, "allow_once", by=CLIENT, via="method")
        turn = (await second.heard(1))[0]
        assert (turn.turn_id, turn.state) == (approval.turn_id, "completed")
        assert (tmp_path / "a.txt").read_text() == "x"
    assert first.told == []


async def test_a_listener_may_want_some_runs_only_and_hears_of_deleted_sessions_no_more(
    tmp_path: Path,
) -> None:
    wanted: set[str] = set()
    pause = Pause()

    async def hang(turn: Turn) -> None:
        if turn.index == 0:
            await pause.here()

    parent = Parent(hang, wants=lambda _, record: record.session_id in wanted)
    async with stage(tmp_path, features=[parent.feature]) as on:
        other, session_id = await on.session(), await on.session()
        wanted.add(session_id)
        await on.say(other, "not for you")
        await on.idle(other)
        await on.say(session_id, "go")
        await pause.came()
        await on.say(session_id, "again")
        await on.idle(session_id)
        assert await left_to_tell(on.host) == 2
        await on.host.sessions.delete(session_id, by=CLIENT)
        assert await left_to_tell(on.host) == 0
        pause.open.set()
        assert [turn.index for turn in await parent.heard(1)] == [0]


async def test_a_rebuild_of_the_projections_tells_nobody_again(tmp_path: Path) -> None:
    parent = Parent()
    async with stage(tmp_path, features=[parent.feature]) as on:
        await on.turn()
        await parent.heard(1)
        await nothing_left(on.host)
        await on.host.log.rebuild()
        assert (await left_to_tell(on.host), len(parent.told)) == (0, 1)


async def test_execution_24_a_run_that_another_host_takes_over_is_told_of_by_that_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause = Pause()
    parent = Parent()

    async def waits(_: Any) -> Any:
        await pause.here()
        yield

    async with stage(tmp_path, waits) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await pause.came()
        look = Presence.look

        async def others_look(presence: Presence) -> bool:
            """The first host must not be the one that finds its own run without an owner."""
            return presence.host_id != on.host.host_id and await look(presence)

        monkeypatch.setattr(Presence, "look", others_look)
        owner = "UPDATE owners SET host_id = 'host_gone' WHERE session_id = ?"
        await on.host.log.transact(lambda tx: tx.execute(owner, session_id))
        async with host_in(tmp_path, features=[parent.feature]) as other:
            turn = (await parent.heard(1))[0]
            assert (turn.session_id, turn.state) == (session_id, "interrupted")
            await idle(other, session_id)
            the_end(await log_of(other, session_id))
            await nothing_left(other)
        pause.open.set()
