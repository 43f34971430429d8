"""specs/execution.md 48 and 49: an approval is for what was shown, is answered once, and in its time."""

import asyncio
from pathlib import Path

import attrs
import pytest
from turns_kit import Stage, calls, of, results, shape, speaks, stage, the_end

from callboard_rpc.approvals import Approval, CommandSubject
from callboard_rpc.errors import CallboardError
from harness.inside import CLIENT, host_in

pytestmark = pytest.mark.anyio

WRITE = calls(("write_file", {"path": "a.txt", "content": "new\n"}))


async def asked(on: Stage, session_id: str) -> Approval:
    with on.host.log.watching(session_id) as changed:
        while not (found := of(await on.log(session_id), "approval_request")):
            await changed.wait()
            changed.clear()
    return found[0].approval


async def answer(on: Stage, approval: Approval, option: str = "allow_once") -> Approval:
    return await on.host.approvals.answer(approval.approval_id, option, by=CLIENT, via="method")


async def test_execution_48_the_same_id_for_another_call_is_a_conflict_and_for_its_own_nothing(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, WRITE) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        approval = await asked(on, session_id)
        before = shape(await on.log(session_id))

        async def again(approval: Approval) -> None:
            approvals = on.host.approvals
            await on.host.log.transact(
                lambda tx: approvals.ask(tx, approval, actor=CLIENT, fence=0)
            )

        # asked once more, with a later deadline: it is the request that there is
        await again(attrs.evolve(approval, expires_at="2999-01-01T00:00:00.000Z"))
        for other in (
            attrs.evolve(approval, subject=CommandSubject(command="rm -rf .", cwd="/")),
            attrs.evolve(approval, tool="run_command"),
            attrs.evolve(approval, call_id="call_other"),
        ):
            with pytest.raises(CallboardError) as refused:
                await again(other)
            assert refused.value.kind == "idempotencyConflict"
        assert shape(await on.log(session_id)) == before
        assert (await on.host.approvals.get(approval.approval_id)).expires_at is None
        await on.cancel(session_id)
        await on.idle(session_id)


async def test_execution_48_an_answer_after_a_restart_is_for_what_was_shown_only(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_text("old\n", "utf-8")
    async with stage(tmp_path, WRITE) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        approval = await asked(on, session_id)
    (tmp_path / "a.txt").write_text("precious\n", "utf-8")
    async with stage(tmp_path, speaks("I see")) as on:
        await answer(on, approval)
        await on.idle(session_id)
        records = await on.log(session_id)
        assert results(records) == [("write_file", "error")]
        assert "make the call again" in on.puppet.read(0)[0]
        assert the_end(records).outcome == "completed"
    assert (tmp_path / "a.txt").read_text("utf-8") == "precious\n"


async def test_execution_48_of_two_decisions_from_two_hosts_one_wins(tmp_path: Path) -> None:
    async with stage(tmp_path, WRITE) as on, host_in(tmp_path) as other:
        session_id = await on.session()
        await on.say(session_id, "go")
        approval = await asked(on, session_id)
        answers = await asyncio.gather(
            *(
                host.approvals.answer(approval.approval_id, option, by=CLIENT, via="method")
                for host in (on.host, other)
                for option in ("allow_once", "reject_once")
            ),
            return_exceptions=True,
        )
        won = [each for each in answers if isinstance(each, Approval)]
        lost = [each for each in answers if isinstance(each, CallboardError)]
        assert (len(won), [each.kind for each in lost]) == (1, ["alreadyResolved"] * 3)
        assert won[0].resolution is not None
        for each in lost:
            assert each.data["resolution"]["optionId"] == won[0].resolution.option_id
        await on.idle(session_id)
        assert len(of(await on.log(session_id), "approval_decision")) == 1


async def test_execution_49_a_deadline_is_moved_neither_by_a_restart_nor_by_looking(
    tmp_path: Path,
) -> None:
    config = tmp_path / "config"
    config.mkdir()
    (config / "config.toml").write_text("[approvals]\nexpire_s = 3600\n", "utf-8")
    async with stage(tmp_path, WRITE) as on:
        on.host.attendance.clients += (
            1  # with nobody there it would be parked, and have no deadline
        )
        session_id = await on.session()
        await on.say(session_id, "go")
        deadline = (await asked(on, session_id)).expires_at
        assert deadline is not None
    (config / "config.toml").write_text("[approvals]\nexpire_s = 7200\n", "utf-8")
    for _ in range(2):
        async with stage(tmp_path) as on:
            page, _ = await on.host.approvals.page(state="pending")
            assert [each.expires_at for each in page] == [deadline]
            assert (await on.host.reading.session(session_id)).status == "parked"


async def test_execution_49_an_answer_after_the_deadline_or_the_runs_end_is_refused(
    tmp_path: Path,
) -> None:
    async def pending() -> tuple[str, Approval]:
        session_id = await on.session()
        await on.say(session_id, "go")
        return session_id, await asked(on, session_id)

    async with stage(tmp_path, WRITE, WRITE) as on:
        session_id, approval = await pending()
        await on.cancel(session_id)
        await on.idle(session_id)
        with pytest.raises(CallboardError) as refused:
            await answer(on, approval)
        assert refused.value.kind == "alreadyResolved"
        assert refused.value.data["resolution"]["outcome"] == "cancelled"

        session_id, approval = await pending()
        due = "UPDATE approvals SET request = json_set(request, '$.expiresAt', ?)"
        await on.host.log.transact(lambda tx: tx.execute(due, "2000-01-01T00:00:00.000Z"))
        with pytest.raises(CallboardError) as refused:
            await answer(on, approval)
        assert refused.value.kind == "approvalExpired"
        await on.idle(session_id)
        assert results(await on.log(session_id)) == [("write_file", "timed_out")]
    assert not (tmp_path / "a.txt").exists()
