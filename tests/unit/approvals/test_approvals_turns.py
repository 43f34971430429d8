"""Approvals as a turn lives through them: it waits, is answered, and runs what it may, once."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from callboard.host import Host
from callboard_rpc.approvals import Approval, CommandSubject, Rule
from callboard_rpc.common import UNSET, Actor, RuleId
from callboard_rpc.errors import CallboardError
from harness.inside import CLIENT, host_in, idle, log_of, new_session, say
from harness.process import scenario

pytestmark = pytest.mark.anyio

OTHER = Actor(kind="client", id="other")

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


async def _refused(work: Any, kind: str) -> CallboardError:
    with pytest.raises(CallboardError) as error:
        await work
    assert error.value.kind == kind
    return error.value


async def _decisions(host: Host, session_id: str) -> list[Any]:
    return [r.value for r in await log_of(host, session_id) if r.type == "approval_decision"]


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


@pytest.mark.parametrize(("then", "ran"), [("allow_once", ["x"]), ("reject_once", [])])
async def test_coordination_77_an_answer_that_cannot_be_written_lets_the_waiting_turn_run_nothing(
    tmp_path: Path, then: str, ran: list[str]
) -> None:
    work = _work(tmp_path)
    async with host_in(tmp_path, model=scenario(tmp_path, RUNNER)) as host:
        watch = Watch(host)
        session_id = await new_session(host, work)
        await say(host, session_id, "run echo x >> runs")
        asked = await watch.next()
        await host.log.transact(lambda tx: tx.execute("PRAGMA query_only = ON"))
        await _refused(
            host.approvals.answer(asked.approval_id, "allow_always", by=CLIENT, via="method"),
            "storeReadOnly",
        )
        assert (await host.reading.session(session_id)).status == "waiting_approval"
        pending, _ = await host.approvals.page(state="pending")
        assert [each.approval_id for each in pending] == [asked.approval_id]
        assert (await host.approvals.rules())[0] == []
        connection = host.log._store.connection  # pyright: ignore[reportPrivateUsage]
        connection.execute("PRAGMA query_only = OFF")
        await host.approvals.answer(asked.approval_id, then, by=CLIENT, via="method")
        waited = await idle(host, session_id)
        assert waited.turn.state == "completed"
        assert [d.resolution.option_id for d in await _decisions(host, session_id)] == [then]
        # what was refused has had until now to show itself
        runs = work / "runs"
        assert (runs.read_text().split() if runs.exists() else []) == ran
        assert [s for s, _ in await _results(host, session_id)] == ["ok" if ran else "denied"]
