"""Approvals as entities: asked once, ended once, by the first answer; a failure is never a yes."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from callboard.approvals.service import decide, end_of_turn, withdraw
from callboard.host import Host
from callboard_rpc.approvals import Approval, ApprovalOption, CommandSubject, Resolution
from callboard_rpc.common import Actor, ApprovalId, CallId, SessionId, TurnId
from callboard_rpc.errors import CallboardError
from harness.inside import CLIENT, host_in, log_of, new_session

pytestmark = pytest.mark.anyio

OTHER = Actor(kind="client", id="other")
KINDS: tuple[Any, ...] = (
    "allow_once", "allow_session", "allow_always", "reject_once", "reject_always",
)  # fmt: skip


def _approval(session_id: str, approval_id: str, **more: Any) -> Approval:
    return Approval(
        approval_id=ApprovalId(approval_id),
        session_id=SessionId(session_id),
        root_id=SessionId(more.pop("root_id", session_id)),
        turn_id=TurnId("trn_x"),
        call_id=CallId(f"call_{approval_id}"),
        kind="permission",
        title="Run it",
        tool=more.pop("tool", "run_command"),
        subject=CommandSubject(command="npm test --watch", cwd="/w"),
        options=tuple(ApprovalOption(option_id=k, name=k, kind=k) for k in KINDS),
        created_at="2031-01-01T00:00:00.000Z",
        **more,
    )


async def _ask(host: Host, session_id: str, approval_id: str, **more: Any) -> str:
    approval = _approval(session_id, approval_id, **more)
    await host.log.transact(lambda tx: host.approvals.ask(tx, approval, actor=CLIENT, fence=0))
    return approval_id


async def _refused(work: Any, kind: str) -> CallboardError:
    with pytest.raises(CallboardError) as error:
        await work
    assert error.value.kind == kind
    return error.value


async def _decisions(host: Host, session_id: str) -> list[Any]:
    return [r.value for r in await log_of(host, session_id) if r.type == "approval_decision"]


# --- one answer -------------------------------------------------------------------------------


async def test_interrupts_57_coordination_70_of_two_answers_one_wins_and_the_other_hears_which(
    tmp_path: Path,
) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        ids = [await _ask(host, session_id, f"apr_{n:03}") for n in range(100)]

        async def answers(approval_id: str, option: str, by: Actor) -> Approval | CallboardError:
            try:
                return await host.approvals.answer(approval_id, option, by=by, via="method")
            except CallboardError as error:
                return error

        pairs = await asyncio.gather(
            *(
                asyncio.gather(answers(a, "allow_once", CLIENT), answers(a, "reject_once", OTHER))
                for a in ids
            )
        )
        for pair in pairs:
            (winner,) = [each for each in pair if isinstance(each, Approval)]
            (loser,) = [each for each in pair if isinstance(each, CallboardError)]
            assert winner.resolution is not None
            assert loser.kind == "alreadyResolved"
            assert loser.data["resolution"]["optionId"] == winner.resolution.option_id
            assert loser.data["resolution"]["by"]["id"] == winner.resolution.by.id
        decided = [d.approval_id for d in await _decisions(host, session_id)]
        assert sorted(decided) == ids


async def test_interrupts_58_an_unknown_id_and_an_unknown_option_are_errors(tmp_path: Path) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        for unknown in ("apr_none", "", "x" * 5_000):
            error = await _refused(
                host.approvals.answer(unknown, "allow_once", by=CLIENT, via="method"),
                "approvalNotFound",
            )
            assert len(error.message) < 200
        await _refused(host.approvals.get("apr_none"), "approvalNotFound")
        await _ask(host, session_id, "apr_1")
        for option in ("yes", "", "allow", "ALLOW_ONCE", "x" * 5_000):
            error = await _refused(
                host.approvals.answer("apr_1", option, by=CLIENT, via="method"), "optionInvalid"
            )
            assert error.data["options"] == list(KINDS)
        assert (await host.approvals.get("apr_1")).state == "pending"
        assert await _decisions(host, session_id) == []


async def test_coordination_71_a_cancelled_question_cannot_be_answered_any_more(
    tmp_path: Path,
) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        await _ask(host, session_id, "apr_1")
        await _ask(host, session_id, "apr_2")
        waiting = asyncio.ensure_future(host.approvals.wait("apr_1"))
        await host.log.transact(
            lambda tx: end_of_turn(tx, "trn_x", by=CLIENT, via="cancel", reason="enough")
        )
        assert (await waiting).outcome == "cancelled"
        error = await _refused(
            host.approvals.answer("apr_1", "allow_once", by=CLIENT, via="method"), "alreadyResolved"
        )
        assert error.data["resolution"]["outcome"] == "cancelled"
        assert error.data["resolution"]["reason"] == "enough"
        assert {d.approval_id for d in await _decisions(host, session_id)} == {"apr_1", "apr_2"}
        assert (await host.approvals.get("apr_2")).state == "cancelled"


async def test_a_second_end_by_whatever_road_changes_nothing(tmp_path: Path) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        await _ask(host, session_id, "apr_1")
        first = await host.approvals.answer("apr_1", "reject_once", by=CLIENT, via="request")
        await host.approvals.settle("apr_1", reason="late", holds=lambda _: None)
        await host.log.transact(lambda tx: withdraw(tx, "apr_1", by=CLIENT, reason="late", fence=0))
        allowed = Resolution(outcome="allowed", by=OTHER, via="method", at=host.log.now())
        assert await host.log.transact(lambda tx: decide(tx, "apr_1", allowed)) is None
        assert await host.approvals.get("apr_1") == first
        assert len(await _decisions(host, session_id)) == 1


async def test_an_answer_that_comes_before_the_wait_is_not_missed(tmp_path: Path) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        await _ask(host, session_id, "apr_1")
        await host.approvals.answer("apr_1", "allow_once", by=CLIENT, via="method")
        assert (await host.approvals.wait("apr_1")).option_id == "allow_once"


async def test_cancelling_the_wait_decides_nothing(tmp_path: Path) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        await _ask(host, session_id, "apr_1")
        waiting = asyncio.ensure_future(host.approvals.wait("apr_1"))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (await host.approvals.get("apr_1")).state == "pending"
        await host.approvals.answer("apr_1", "allow_once", by=CLIENT, via="method")


async def test_interrupts_57_an_answer_in_another_host_of_the_store_ends_the_wait(
    tmp_path: Path,
) -> None:
    async with host_in(tmp_path) as host, host_in(tmp_path) as other:
        session_id = await new_session(host, tmp_path)
        await _ask(host, session_id, "apr_1")
        waiting = asyncio.ensure_future(host.approvals.wait("apr_1"))
        await other.approvals.answer("apr_1", "reject_once", by=OTHER, via="method", feedback="no")
        resolution = await asyncio.wait_for(waiting, 20)
        assert (resolution.outcome, resolution.by.id, resolution.feedback) == (
            "rejected", "other", "no",
        )  # fmt: skip


async def test_coordination_77_an_answer_that_cannot_be_written_is_no_answer(
    tmp_path: Path,
) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        await _ask(host, session_id, "apr_1")
        waiting = asyncio.ensure_future(host.approvals.wait("apr_1"))
        await host.log.transact(lambda tx: tx.execute("PRAGMA query_only = ON"))
        await _refused(
            host.approvals.answer("apr_1", "allow_always", by=CLIENT, via="method"), "storeReadOnly"
        )
        assert (await host.approvals.get("apr_1")).state == "pending"
        assert (await host.approvals.rules())[0] == []
        assert not waiting.done()
        connection = host.log._store.connection  # pyright: ignore[reportPrivateUsage]
        connection.execute("PRAGMA query_only = OFF")
        await host.approvals.answer("apr_1", "reject_once", by=CLIENT, via="method")
        assert (await waiting).outcome == "rejected"


async def test_feedback_is_bounded_and_valid_text(tmp_path: Path) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        await _ask(host, session_id, "apr_1")
        await host.approvals.answer(
            "apr_1", "reject_once", by=CLIENT, via="method", feedback="\ud83d" + "x" * 50_000
        )
        feedback = (await _decisions(host, session_id))[0].resolution.feedback
        assert len(feedback) == 16_000
        assert feedback.startswith("\ufffdx")


# --- the clock --------------------------------------------------------------------------------


def _from_now(seconds: float) -> str:
    at = datetime.now(UTC) + timedelta(seconds=seconds)
    return at.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


async def test_an_expired_question_takes_no_answer_and_is_decided_once(tmp_path: Path) -> None:
    async with host_in(tmp_path) as host:
        await host.tasks.end()  # the host's own clock: this is about the answer alone
        session_id = await new_session(host, tmp_path)
        await _ask(host, session_id, "apr_old", expires_at=_from_now(-1))
        await _ask(host, session_id, "apr_new", expires_at=_from_now(3_600))
        for _ in range(2):
            error = await _refused(
                host.approvals.answer("apr_old", "allow_always", by=CLIENT, via="method"),
                "approvalExpired",
            )
            assert error.data["resolution"]["outcome"] == "expired"
            assert error.data["resolution"]["via"] == "timeout"
        await host.approvals.expire_due()
        assert len(await _decisions(host, session_id)) == 1
        assert (await host.approvals.rules())[0] == []
        assert (await host.approvals.get("apr_new")).state == "pending"
        assert await host.approvals.next_expiry() is not None


async def test_the_server_s_clock_ends_questions_without_anybody_s_help(tmp_path: Path) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        expiring = [
            await _ask(host, session_id, f"apr_{n}", expires_at=_from_now(0.02 * n))
            for n in range(10)
        ]
        await _ask(host, session_id, "apr_stays")
        position = 0
        async with asyncio.timeout(20):
            while len(await _decisions(host, session_id)) < len(expiring):
                position = await host.log.moved(position)
        pending, _ = await host.approvals.page(state="pending")
        assert [a.approval_id for a in pending] == ["apr_stays"]
        expired, _ = await host.approvals.page(state="expired")
        assert [a.approval_id for a in expired] == expiring


# --- lists and rules --------------------------------------------------------------------------


async def test_lists_page_in_the_order_of_asking_and_a_root_shows_those_below_it(
    tmp_path: Path,
) -> None:
    async with host_in(tmp_path) as host:
        root = await new_session(host, tmp_path)
        child = await new_session(host, tmp_path)
        stranger = await new_session(host, tmp_path)
        for n in range(6):
            await _ask(host, root, f"apr_r{n}")
            await _ask(host, child, f"apr_c{n}", root_id=root)
            await _ask(host, stranger, f"apr_s{n}")
        await host.approvals.answer("apr_r0", "allow_once", by=CLIENT, via="method")
        got: list[str] = []
        after: int | None = 0
        while after is not None:
            page, after = await host.approvals.page(
                state="pending", session_id=root, after=after, limit=4
            )
            got += [a.approval_id for a in page]
        assert got == [x for n in range(6) for x in (f"apr_r{n}", f"apr_c{n}")][1:]
        everything, more = await host.approvals.page(limit=100)
        assert (len(everything), more) == (18, None)


@pytest.mark.parametrize(
    ("option", "scope", "effect"),
    [
        ("allow_once", None, None),
        ("reject_once", None, None),
        ("allow_session", "session", "allow"),
        ("allow_always", "workspace", "allow"),
        ("reject_always", "workspace", "deny"),
    ],
)
async def test_standing_answers_leave_a_rule_that_can_be_seen_and_revoked(
    tmp_path: Path, option: str, scope: str | None, effect: str | None
) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        await _ask(host, session_id, "apr_1")
        answered = await host.approvals.answer("apr_1", option, by=CLIENT, via="method")
        rules, _ = await host.approvals.rules()
        assert answered.resolution is not None
        if scope is None:
            assert rules == []
            assert answered.resolution.rule_id is None
            return
        (rule,) = rules
        assert rule.rule_id == answered.resolution.rule_id
        assert (rule.scope, rule.effect, rule.tool, rule.pattern, rule.by) == (
            scope, effect, "run_command", "npm test", CLIENT,
        )  # fmt: skip
        assert rule.session_id == (session_id if scope == "session" else None)
        assert rule.workspace == (str(tmp_path.resolve()) if scope == "workspace" else None)
        here = await host.approvals.rules_for((session_id,), str(tmp_path.resolve()))
        assert here == (rule,)
        assert await host.approvals.rules_for(("ses_other",), "/elsewhere") == ()
        assert await host.approvals.remove_rule(rule.rule_id) == rule
        assert await host.approvals.rules_for((session_id,), str(tmp_path.resolve())) == ()
        await _refused(host.approvals.remove_rule(rule.rule_id), "ruleNotFound")


async def test_an_answer_is_heard_of_though_the_store_could_not_be_read_when_the_wait_began(
    tmp_path: Path,
) -> None:
    async with host_in(tmp_path) as host:
        session_id = await new_session(host, tmp_path)
        for approval_id in ("apr_before", "apr_later"):
            await _ask(host, session_id, approval_id)
        await host.approvals.answer("apr_before", "allow_once", by=CLIENT, via="method")
        query = host.log.query
        failed: list[str] = []

        async def failing(sql: str, *params: Any) -> Any:
            # the clock of the approvals asks the store, too, whenever it wants
            if params and params[0] in ("apr_before", "apr_later") and len(failed) < 4:
                failed.append(params[0])
                raise CallboardError("storeBusy", "busy")
            return await query(sql, *params)

        host.log.query = failing  # type: ignore[method-assign]
        waits = [
            asyncio.ensure_future(host.approvals.wait(each)) for each in ("apr_before", "apr_later")
        ]
        before = await asyncio.wait_for(waits[0], 20)
        await host.approvals.answer("apr_later", "reject_once", by=CLIENT, via="method")
        later = await asyncio.wait_for(waits[1], 20)
        assert (before.option_id, later.option_id) == ("allow_once", "reject_once")
        assert set(failed) == {"apr_before", "apr_later"}
