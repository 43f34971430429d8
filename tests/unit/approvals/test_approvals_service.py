"""Approvals as entities: asked once, ended once, by the first answer; a failure is never a yes."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from callboard.approvals.service import decide, end_of_turn, withdraw
from callboard.host import Host
from callboard_rpc.approvals import Approval, ApprovalOption, CommandSubject, Resolution, Rule
from callboard_rpc.common import UNSET, Actor, ApprovalId, CallId, RuleId, SessionId, TurnId
from callboard_rpc.errors import CallboardError
from harness.inside import CLIENT, host_in, idle, log_of, new_session, say
from harness.process import scenario

pytestmark = pytest.mark.anyio

OTHER = Actor(kind="client", id="other")
KINDS: tuple[Any, ...] = (
    "allow_once", "allow_session", "allow_always", "reject_once", "reject_always",
)  # fmt: skip

RUNNER = """
rules:
  - when: {last_user: two writes, step: 0}
    answer:
      - call: {tool: write_file, arguments: {path: one.txt, content: "1"}}
      - call: {tool: write_file, arguments: {path: two.txt, content: "2"}}
  - when: {last_user: {regex: "^run (.+)$"}, step: 0}
    answer: [{call: {tool: run_command, arguments: {command: "{{match.1}}"}}}]
  - when: {last_user: {regex: "^write (.+)$"}, step: 0}
    answer: [{call: {tool: write_file, arguments: {path: "{{match.1}}", content: new}}}]
  - when: {last_user: plan it, step: 0}
    answer: [{call: {tool: update_plan, arguments: {entries: [{content: think, status: pending}]}}}]
  - when: {last_user: sneak, step: 0}
    answer:
      - call: {tool: run_command, arguments: {command: "mkdir .git && echo a > .git/hook"}}
      - call: {tool: edit_file, arguments: {path: .git/hook, edits: [{old_text: a, new_text: b}]}}
  - when: {last_tool: {contains: ""}}
    answer: [{say: "It said: {{last_tool}}"}]
default: [{say: done}]
"""


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
        here = await host.approvals.rules_for(session_id, str(tmp_path.resolve()))
        assert here == (rule,)
        assert await host.approvals.rules_for("ses_other", "/elsewhere") == ()
        assert await host.approvals.remove_rule(rule.rule_id) == rule
        assert await host.approvals.rules_for(session_id, str(tmp_path.resolve())) == ()
        await _refused(host.approvals.remove_rule(rule.rule_id), "ruleNotFound")


# --- as a turn lives through them -------------------------------------------------------------


class Watch:
    """The approvals that a session asks for, one after the other."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.queue: asyncio.Queue[Approval] = asyncio.Queue()
        host.log.listen(self._heard)

    def _heard(self, records: list[Any]) -> None:
        for record in records:
            if record.type == "approval_request":
                self.queue.put_nowait(record.value.approval)

    async def next(self) -> Approval:
        return await asyncio.wait_for(self.queue.get(), 20)

    async def answer(self, option: str, **more: Any) -> Approval:
        asked = await self.next()
        return await self.host.approvals.answer(
            asked.approval_id, option, by=CLIENT, via="method", **more
        )


async def _results(host: Host, session_id: str) -> list[tuple[str, str]]:
    return [
        (r.value.status, r.value.text)
        for r in await log_of(host, session_id)
        if r.type == "tool_result"
    ]


def _work(tmp_path: Path, name: str = "work") -> Path:
    folder = tmp_path / name
    folder.mkdir()
    return folder


def _configure(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text(text)


async def test_coordination_76_a_grant_covers_one_call_only(tmp_path: Path) -> None:
    work = _work(tmp_path)
    async with host_in(tmp_path, model=scenario(tmp_path, RUNNER)) as host:
        watch = Watch(host)
        session_id = await new_session(host, work)
        for n in range(2):
            await say(host, session_id, "run echo x >> runs")
            asked = await watch.answer("allow_once")
            assert asked.subject == CommandSubject(command="echo x >> runs", cwd=str(work))
            await idle(host, session_id)
            assert (work / "runs").read_text() == "x\n" * (n + 1)
        assert (asked.root_id, [step.session_id for step in asked.path]) == (
            session_id,
            [session_id],
        )


async def test_allow_for_this_session_spares_the_next_question_here_and_nowhere_else(
    tmp_path: Path,
) -> None:
    work = _work(tmp_path)
    async with host_in(tmp_path, model=scenario(tmp_path, RUNNER)) as host:
        watch = Watch(host)
        first, second = await new_session(host, work), await new_session(host, work)
        await say(host, first, "write a.txt")
        rule = (await watch.answer("allow_session")).resolution
        await idle(host, first)
        await say(host, first, "write b.txt")
        await idle(host, first)
        assert (work / "b.txt").read_text() == "new"
        await say(host, second, "write c.txt")
        await watch.answer("reject_once")
        await idle(host, second)
        assert not (work / "c.txt").exists()
        assert rule is not None and rule.rule_id is not None
        await host.approvals.remove_rule(rule.rule_id)
        await say(host, first, "write d.txt")
        await watch.answer("reject_once")
        await idle(host, first)
        assert not (work / "d.txt").exists()


async def test_always_holds_in_this_folder_also_after_a_restart_and_in_no_other(
    tmp_path: Path,
) -> None:
    work, elsewhere = _work(tmp_path), _work(tmp_path, "elsewhere")
    model = scenario(tmp_path, RUNNER)
    async with host_in(tmp_path, model=model) as host:
        watch = Watch(host)
        session_id = await new_session(host, work)
        await say(host, session_id, "run echo one")
        await watch.answer("allow_always")
        await idle(host, session_id)
    async with host_in(tmp_path, model=model) as host:
        watch = Watch(host)
        session_id = await new_session(host, work)
        await say(host, session_id, "run echo two")
        await idle(host, session_id)
        assert (await _results(host, session_id))[0][0] == "ok"
        session_id = await new_session(host, elsewhere)
        await say(host, session_id, "run echo three")
        await watch.answer("reject_once")
        await idle(host, session_id)


async def test_a_rejection_s_feedback_reaches_the_model(tmp_path: Path) -> None:
    async with host_in(tmp_path, model=scenario(tmp_path, RUNNER)) as host:
        watch = Watch(host)
        session_id = await new_session(host, _work(tmp_path))
        await say(host, session_id, "run make")
        await watch.answer("reject_once", feedback="use ninja instead")
        waited = await idle(host, session_id)
        assert "use ninja instead" in waited.turn.final_text
        assert waited.turn.state == "completed"  # a denial ends no turn
        ((status, text),) = await _results(host, session_id)
        assert status == "denied"
        assert "use ninja instead" in text


async def test_a_rule_made_by_the_first_call_of_a_batch_answers_for_the_second(
    tmp_path: Path,
) -> None:
    work = _work(tmp_path)
    async with host_in(tmp_path, model=scenario(tmp_path, RUNNER)) as host:
        watch = Watch(host)
        session_id = await new_session(host, work)
        await say(host, session_id, "two writes")
        await watch.answer("allow_session")
        await idle(host, session_id)
        assert (work / "two.txt").read_text() == "2"
        _, second = [d.resolution for d in await _decisions(host, session_id)]
        assert (second.outcome, second.via, second.by.kind) == ("allowed", "policy", "policy")


async def test_coordination_50_a_switch_to_ask_in_mid_turn_stops_the_next_write(
    tmp_path: Path,
) -> None:
    work = _work(tmp_path)
    async with host_in(tmp_path, model=scenario(tmp_path, RUNNER)) as host:
        watch = Watch(host)
        session_id = await new_session(host, work)
        await say(host, session_id, "two writes")
        first, second = await watch.next(), await watch.next()
        await host.sessions.update(
            session_id,
            by=CLIENT,
            mode="ask",
            title=UNSET,
            pinned=UNSET,
            metadata=UNSET,
            model=UNSET,
        )
        await host.approvals.answer(first.approval_id, "allow_once", by=CLIENT, via="method")
        await idle(host, session_id)
        assert list(work.iterdir()) == []
        results = await _results(host, session_id)
        assert [status for status, _ in results] == ["denied", "denied"]
        assert all("ask mode" in text for _, text in results)
        # nobody is asked any more about what will not run
        assert (await host.approvals.get(second.approval_id)).state == "cancelled"


async def test_cancelling_the_turn_takes_its_questions_back_and_runs_nothing(
    tmp_path: Path,
) -> None:
    work = _work(tmp_path)
    async with host_in(tmp_path, model=scenario(tmp_path, RUNNER)) as host:
        watch = Watch(host)
        session_id = await new_session(host, work)
        await say(host, session_id, "two writes")
        asked = [await watch.next(), await watch.next()]
        assert (await host.reading.session(session_id)).status == "waiting_approval"
        await host.sessions.cancel(session_id, by=OTHER, reason="enough")
        waited = await idle(host, session_id)
        assert waited.turn.state == "cancelled"
        assert list(work.iterdir()) == []
        assert [s for s, _ in await _results(host, session_id)] == ["cancelled", "cancelled"]
        for each in asked:
            ended = await host.approvals.get(each.approval_id)
            assert ended.resolution is not None
            assert (ended.state, ended.resolution.by, ended.resolution.via) == (
                "cancelled", OTHER, "cancel",
            )  # fmt: skip
            await _refused(
                host.approvals.answer(each.approval_id, "allow_once", by=CLIENT, via="method"),
                "alreadyResolved",
            )


async def test_a_steer_takes_back_the_questions_of_calls_that_it_supersedes(tmp_path: Path) -> None:
    work = _work(tmp_path)
    async with host_in(tmp_path, model=scenario(tmp_path, RUNNER)) as host:
        watch = Watch(host)
        session_id = await new_session(host, work)
        await say(host, session_id, "two writes")
        first, second = await watch.next(), await watch.next()
        await say(host, session_id, "stop, something else", delivery="steer")
        await host.approvals.answer(first.approval_id, "reject_once", by=CLIENT, via="method")
        await idle(host, session_id)
        assert [s for s, _ in await _results(host, session_id)] == ["denied", "superseded"]
        ended = await host.approvals.get(second.approval_id)
        assert ended.state == "cancelled"
        assert ended.resolution is not None
        assert "not run" in (ended.resolution.reason or "")


@pytest.mark.parametrize("command", ["sudo ls", "rm -rf /", "echo hi && mkfs.ext4 /dev/sda"])
async def test_coordination_74_a_hard_denial_holds_whatever_anybody_allowed(
    tmp_path: Path, command: str
) -> None:
    _configure(tmp_path, '[approvals.policy]\n"*" = "allow"\nrun_command = "allow"\n')
    async with host_in(tmp_path, model=scenario(tmp_path, RUNNER)) as host:
        await host.approvals.add_rule(
            Rule(
                rule_id=RuleId("rule_all"),
                scope="global",
                effect="allow",
                tool="*",
                created_at=host.log.now(),
                by=CLIENT,
            )
        )
        session_id = await new_session(host, _work(tmp_path))
        await say(host, session_id, f"run {command}")
        await idle(host, session_id)
        ((status, text),) = await _results(host, session_id)
        assert status == "denied"
        assert "never run" in text
        assert (await host.approvals.page())[0] == []


@pytest.mark.parametrize("mode", ["ask", "plan"])
async def test_coordination_75_ask_and_plan_deny_writes_and_kernel_tools_still_work(
    tmp_path: Path, mode: str
) -> None:
    work = _work(tmp_path)
    async with host_in(tmp_path, model=scenario(tmp_path, RUNNER)) as host:
        session_id = await new_session(host, work, mode=mode)
        for prompt in ("write a.txt", "run touch b.txt", "plan it"):
            await say(host, session_id, prompt)
            await idle(host, session_id)
        statuses = [s for s, _ in await _results(host, session_id)]
        assert statuses == ["denied", "denied", "ok"]
        assert list(work.iterdir()) == []
        assert (await host.approvals.page())[0] == []


async def test_interrupts_60_coordination_72_nobody_there_and_set_to_deny_never_hangs(
    tmp_path: Path,
) -> None:
    _configure(tmp_path, '[approvals]\nunattended = "deny"\n')
    work = _work(tmp_path)
    async with host_in(tmp_path, model=scenario(tmp_path, RUNNER)) as host:
        session_id = await new_session(host, work)
        await say(host, session_id, "write a.txt")
        waited = await idle(host, session_id)
        ((status, text),) = await _results(host, session_id)
        assert (status, waited.turn.state) == ("denied", "completed")
        assert "nobody is connected" in text
        assert not (work / "a.txt").exists()
        host.attendance.clients += 1  # somebody comes: now they are asked
        watch = Watch(host)
        await say(host, session_id, "write a.txt")
        asked = await watch.next()
        host.attendance.clients -= 1  # and leaves: a question that was asked stays
        await host.approvals.answer(asked.approval_id, "allow_once", by=CLIENT, via="method")
        await idle(host, session_id)
        assert (work / "a.txt").exists()


async def test_a_call_whose_target_shows_only_when_it_begins_is_judged_by_it_then(
    tmp_path: Path,
) -> None:
    """A file that an earlier call of the same answer makes cannot be previewed, and so not be judged
    by its place: that must not be a way around the places that always ask."""
    _configure(tmp_path, '[approvals.policy]\nedit_file = "allow"\nrun_command = "allow"\n')
    work = _work(tmp_path)
    async with host_in(tmp_path, model=scenario(tmp_path, RUNNER)) as host:
        session_id = await new_session(host, work)
        await say(host, session_id, "sneak")
        await idle(host, session_id)
        assert (work / ".git" / "hook").read_text() == "a\n"
        results = await _results(host, session_id)
        assert [status for status, _ in results] == ["ok", "denied"]
        assert "by itself" in results[1][1]
