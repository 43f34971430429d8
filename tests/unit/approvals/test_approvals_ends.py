"""Every way in which a question can end, and how often its tool has run then: once or never."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from callboard.host import Host
from callboard_rpc.common import Actor
from callboard_rpc.errors import CallboardError
from harness.inside import CLIENT, host_in, idle, log_of, new_session, say
from harness.process import scenario

pytestmark = pytest.mark.anyio

SCENE = """
rules:
  - when: {last_user: {regex: "^run$"}, step: 0}
    answer: [{call: {tool: run_command, arguments: {command: "echo x >> ran.txt"}}}]
default: [{say: "{{last_tool}}"}]
"""
OTHER = Actor(kind="client", id="other")


async def _answer(host: Host, approval_id: str, option: str, by: Actor = CLIENT) -> str | None:
    """The kind of error that the answer ends in, if it does."""
    try:
        await host.approvals.answer(approval_id, option, by=by, via="method")
    except CallboardError as error:
        return error.kind
    return None


async def _approved(host: Host, session_id: str, approval_id: str) -> None:
    assert await _answer(host, approval_id, "allow_once") is None
    assert await _answer(host, approval_id, "reject_once", OTHER) == "alreadyResolved"


async def _denied(host: Host, session_id: str, approval_id: str) -> None:
    assert await _answer(host, approval_id, "reject_once") is None
    assert await _answer(host, approval_id, "allow_once", OTHER) == "alreadyResolved"


async def _in_time_is_late(host: Host, session_id: str, approval_id: str) -> None:
    past = "UPDATE approvals SET expires_at = '2001-01-01T00:00:00.000Z' WHERE approval_id = ?"
    old = "UPDATE approvals SET request = json_set(request, '$.expiresAt', '2001-01-01T00:00:00.000Z')"
    await host.log.transact(lambda tx: (tx.execute(past, approval_id), tx.execute(old)))
    assert await _answer(host, approval_id, "allow_once") == "approvalExpired"
    assert await _answer(host, approval_id, "allow_once") == "approvalExpired"


async def _cancelled(host: Host, session_id: str, approval_id: str) -> None:
    await host.sessions.cancel(session_id, by=OTHER)
    await idle(host, session_id)
    assert await _answer(host, approval_id, "allow_once") == "alreadyResolved"


async def _unknown_option(host: Host, session_id: str, approval_id: str) -> None:
    assert await _answer(host, approval_id, "allow") == "optionInvalid"
    assert (await host.approvals.get(approval_id)).state == "pending"
    await _denied(host, session_id, approval_id)


async def _closed(host: Host, session_id: str, approval_id: str) -> None:
    await host.sessions.close(session_id, by=OTHER)
    assert await _answer(host, approval_id, "allow_once") == "alreadyResolved"


@pytest.mark.parametrize(
    ("end", "status", "outcome", "runs"),
    [
        (_approved, "ok", "allowed", 1),
        (_denied, "denied", "rejected", 0),
        (_in_time_is_late, "timed_out", "expired", 0),
        (_cancelled, "cancelled", "cancelled", 0),
        (_unknown_option, "denied", "rejected", 0),
        (_closed, "cancelled", "cancelled", 0),
    ],
)
async def test_messaging_18_a_question_ends_once_and_its_tool_runs_once_or_never(
    tmp_path: Path,
    end: Callable[[Host, str, str], Awaitable[None]],
    status: str,
    outcome: str,
    runs: int,
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    async with host_in(tmp_path, model=scenario(tmp_path, SCENE)) as host:
        session_id = await new_session(host, work)
        await say(host, session_id, "run")
        waited = await host.waiting.wait(session_id, until="attention", turn_id=None, timeout_s=30)
        await end(host, session_id, waited.approvals[0].approval_id)
        await host.waiting.wait(session_id, until="idle", turn_id=None, timeout_s=30)
        records = await log_of(host, session_id)
        results = [r.value for r in records if r.type == "tool_result"]
        assert [r.status for r in results] == [status]
        decisions = [r.value.resolution for r in records if r.type == "approval_decision"]
        assert [d.outcome for d in decisions] == [outcome]
        # a refusal and a silence are told apart, to the model as well
        assert ("Nobody answered" in results[0].text) is (outcome == "expired")
        kinds = [r.type for r in records]
        assert kinds.count("turn_finished") == 1
        assert kinds.index("approval_request") < kinds.index("approval_decision")
    ran = (work / "ran.txt").read_text() if (work / "ran.txt").exists() else ""
    assert ran == "x\n" * runs


async def test_messaging_18_a_question_that_cannot_be_written_is_asked_of_nobody_and_runs_nothing(
    tmp_path: Path,
) -> None:
    """At once, not when some time is up; the call that would have waited is not in the log either."""
    work = tmp_path / "work"
    work.mkdir()
    refuse = (
        "CREATE TRIGGER refuse BEFORE INSERT ON events WHEN NEW.type = 'approval_request' "
        "BEGIN SELECT raise(ABORT, 'refused'); END"
    )
    async with host_in(tmp_path, model=scenario(tmp_path, SCENE)) as host:
        session_id = await new_session(host, work)
        await host.log.transact(lambda tx: tx.execute(refuse))
        await say(host, session_id, "run")
        waited = await idle(host, session_id)
        assert waited.turn.state == "failed"
        kinds: list[Any] = [r.type for r in await log_of(host, session_id)]
        assert kinds.count("turn_finished") == 1
        assert not {"tool_call", "tool_result", "approval_request"} & set(kinds)
        assert (await host.approvals.page())[0] == []
    assert not (work / "ran.txt").exists()


async def test_an_answer_that_wakes_a_turn_in_vain_is_kept_for_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends after it has taken the turn and before it runs it: the turn is parked again."""
    model = scenario(tmp_path, SCENE)
    async with host_in(tmp_path, model=model) as host:
        session_id = await new_session(host, tmp_path)
        await say(host, session_id, "run")
        waited = await host.waiting.wait(session_id, until="attention", turn_id=None, timeout_s=30)
        approval_id = waited.approvals[0].approval_id
    async with host_in(tmp_path, model=model) as host:
        spawn = host.dispatcher._spawn  # pyright: ignore[reportPrivateUsage]

        def no_turns(run: Any, name: str) -> None:
            if name.startswith("turn "):
                raise RuntimeError("no more turns")
            spawn(run, name)

        monkeypatch.setattr(host.dispatcher, "_spawn", no_turns)
        await _answer(host, approval_id, "allow_once")
        kinds: list[str] = []
        async with asyncio.timeout(30):
            while kinds.count("turn_parked") < 2:
                head = host.log.head
                kinds = [record.type for record in await log_of(host, session_id)]
                if kinds.count("turn_parked") < 2:
                    await host.log.feed.moved(head)
        assert kinds[-2:] == ["turn_resumed", "turn_parked"]
        assert not (tmp_path / "ran.txt").exists()
    async with host_in(tmp_path, model=model) as host:
        await idle(host, session_id)
        kinds = [record.type for record in await log_of(host, session_id)]
        assert (kinds.count("tool_result"), kinds.count("turn_finished")) == (1, 1)
        assert (tmp_path / "ran.txt").read_text() == "x\n"
