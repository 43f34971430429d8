"""What an agent of another maker asks to do: policy first, then a person, wherever that is answered."""

import json
from pathlib import Path
from typing import Any

import pytest
from acp_client_kit import (
    CLIENT,
    OPTIONS,
    command,
    permission,
    printed,
    stage,
    tool_call,
    tool_update,
)
from test_acp_client_turns import of, said

from callboard_rpc.approvals import CommandSubject, FileChangeSubject

pytestmark = pytest.mark.anyio

ASKS = (
    tool_call(status="pending", **command()),
    permission(**command()),
    tool_update(status="completed", content=printed("made")),
)


async def test_a_question_is_an_approval_of_its_call(tmp_path: Path) -> None:
    async with stage(tmp_path, {"say": "Let me."}, *ASKS) as play:
        session_id = await play.session()
        await play.say(session_id)
        approval = await play.asked()
        assert approval.subject == CommandSubject(command="touch made", cwd=str(tmp_path))
        assert approval.tool == "run_command"
        assert [o.kind for o in approval.options] == [
            "allow_once", "allow_session", "allow_always", "reject_once", "reject_always",
        ]  # fmt: skip
        await play.answer()
        records = await play.idle(session_id)
    (call,) = of(records, "tool_call")
    kinds = [r.type for r in records if r.type in ("tool_call", "approval_request", "tool_result")]
    assert kinds == ["tool_call", "approval_request", "tool_result"]
    assert (call.call_id, call.approval_id) == (approval.call_id, approval.approval_id)
    assert said(records) == ["Let me.", "[allow]"]
    assert [(r.status, r.text) for r in of(records, "tool_result")] == [("ok", "made")]


async def test_a_refusal_is_the_result_of_the_call_and_the_agents_own_is_not(
    tmp_path: Path,
) -> None:
    actions = (*ASKS[:2], tool_update(status="failed", content=printed("refused")))
    async with stage(tmp_path, *actions) as play:
        session_id = await play.session()
        await play.say(session_id)
        await play.answer("reject_once", feedback="not here")
        records = await play.idle(session_id)
        await play.say(session_id, "Go on")
        await play.answer("reject_once")
        await play.idle(session_id)
        assert play.told()[1].startswith("Your call 'touch made' was refused: not here")
    assert said(records) == ["[reject]"]
    (result,) = of(records, "tool_result")
    assert (result.status, result.text) == ("denied", "Not allowed: not here")


async def test_a_standing_answer_makes_a_rule_of_ours_and_is_one_time_for_the_agent(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, *ASKS) as play:
        session_id = await play.session()
        await play.say(session_id)
        await play.answer("allow_session")
        await play.idle(session_id)
        rules, _ = await play.host.approvals.rules()
        assert [(r.tool, r.pattern) for r in rules] == [("run_command", "touch")]
        await play.say(session_id)
        records = await play.idle(session_id)
    assert len(of(records, "approval_request")) == 1
    assert said(records) == ["[allow]", "[allow]"]


@pytest.mark.parametrize("mode", ["ask", "plan"])
async def test_nothing_is_changed_in_a_mode_that_changes_nothing(tmp_path: Path, mode: str) -> None:
    async with stage(tmp_path, *ASKS[:2]) as play:
        records = await play.turn(mode=mode)
    assert of(records, "approval_request") == []
    assert said(records) == ["[reject]"]
    (result,) = of(records, "tool_result")
    assert result.status == "denied"
    assert mode in result.text


async def test_the_agent_is_brought_into_a_mode_of_its_own_that_fits(tmp_path: Path) -> None:
    modes = {
        "currentModeId": "code",
        "availableModes": [{"id": each, "name": each.title()} for each in ("code", "plan")],
    }
    async with stage(tmp_path, {"say": "ok"}, scene={"opened": {"modes": modes}}) as play:
        session_id = await play.session(mode="plan")
        await play.say(session_id)
        await play.idle(session_id)
        await play.switch(session_id, "work")
        await play.say(session_id)
        await play.idle(session_id)
        set_to = [m["params"]["modeId"] for m in play.heard("session/set_mode")]
    assert set_to == ["plan", "code"]


async def test_a_diff_is_shown_to_whoever_is_asked(tmp_path: Path) -> None:
    path = str(tmp_path / "a.txt")
    diff = [{"type": "diff", "path": path, "newText": "two\n"}]
    async with stage(tmp_path, permission(kind="edit", content=diff)) as play:
        session_id = await play.session()
        await play.say(session_id)
        approval = await play.asked()
        await play.answer()
        await play.idle(session_id)
    assert isinstance(approval.subject, FileChangeSubject)
    (change,) = approval.subject.changes
    assert (change.path, change.operation) == (path, "create")
    assert approval.tool == "edit_file"


async def test_a_choice_is_offered_as_the_agent_has_it(tmp_path: Path) -> None:
    choice = [
        {"optionId": "red", "name": "Red", "kind": "allow_once"},
        {"optionId": "blue", "name": "Blue", "kind": "allow_once"},
        {"optionId": "none", "name": "Neither", "kind": "reject_once"},
    ]
    call = {"toolCallId": "t1", "title": "Which colour?"}
    async with stage(tmp_path, {"permission": {"toolCall": call, "options": choice}}) as play:
        session_id = await play.session()
        await play.say(session_id)
        assert [o.option_id for o in (await play.asked()).options] == ["red", "blue", "none"]
        await play.answer("blue")
        records = await play.idle(session_id)
    assert said(records) == ["[blue]"]


async def test_a_choice_that_cannot_be_shown_is_a_yes_or_no_of_ours(tmp_path: Path) -> None:
    evil = "\x1b]52;c;aGk=\x07"
    choice = [
        {"optionId": f"{each}{evil}", "name": f"{each}{evil}", "kind": "allow_once"}
        for each in ("a", "b")
    ]
    call = {"toolCallId": "t1", "title": "Which?"}
    async with stage(tmp_path, {"permission": {"toolCall": call, "options": choice}}) as play:
        session_id = await play.session()
        await play.say(session_id)
        asked = await play.asked()
        await play.answer("reject_once")
        await play.idle(session_id)
    assert "\x1b" not in repr(asked.options).encode().decode("unicode_escape")


async def test_a_cancel_answers_what_is_asked_and_ends_the_turn(tmp_path: Path) -> None:
    async with stage(tmp_path, *ASKS) as play:
        session_id = await play.session()
        await play.say(session_id)
        await play.asked()
        await play.host.sessions.cancel(session_id, by=CLIENT)
        records = await play.idle(session_id)
        answers = [m["result"]["outcome"] for m in play.heard() if "result" in m]
        assert len(play.heard("session/cancel")) == 1
    assert answers == [{"outcome": "cancelled"}]
    assert of(records, "turn_finished")[0].outcome == "cancelled"
    assert [d.resolution.outcome for d in of(records, "approval_decision")] == ["cancelled"]
    assert len(of(records, "tool_result")) == 1


async def test_a_question_that_was_taken_back_and_asked_again_is_answered_then(
    tmp_path: Path,
) -> None:
    params = {"sessionId": "agent-session-1", **permission(**command())["permission"]}
    asked = {"jsonrpc": "2.0", "method": "session/request_permission", "params": params}
    back = {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": "first"}}
    plan = {
        "sessionUpdate": "plan",
        "entries": [{"content": "x", "priority": "low", "status": "pending"}],
    }
    go, done = tmp_path / "go", tmp_path / "done"
    actions = [
        ASKS[0],
        {"raw": json.dumps({**asked, "id": "first"})},
        {"until_file": str(go)},
        {"raw": json.dumps(back)},
        {"raw": json.dumps({**asked, "id": "second"})},
        {"update": plan},
        {"until_file": str(done)},
        ASKS[2],
    ]
    async with stage(tmp_path, *actions) as play:
        session_id = await play.session()
        await play.say(session_id)
        await play.asked()
        go.touch()
        await play.seen(session_id, "plan_updated")
        await play.answer()
        await play.seen(session_id, "approval_decision")
        done.touch()
        records = await play.idle(session_id)
        answers = {m["id"]: m for m in play.heard() if "method" not in m}
    assert answers["second"]["result"]["outcome"] == {"outcome": "selected", "optionId": "allow"}
    assert "error" in answers["first"]
    assert len(of(records, "approval_request")) == len(of(records, "tool_result")) == 1


async def test_two_questions_at_once_are_answered_each(tmp_path: Path) -> None:
    two: list[Any] = []
    for call_id in ("t1", "t2"):
        call = {"toolCallId": call_id, "title": call_id, **command(f"touch {call_id}")}
        params = {"sessionId": "agent-session-1", "toolCall": call, "options": OPTIONS}
        frame = {"jsonrpc": "2.0", "id": call_id, "method": "session/request_permission"}
        two.append({**frame, "params": params})
    actions = [{"raw": json.dumps(frame)} for frame in two]
    actions += [{"until_file": str(tmp_path / "go")}]
    async with stage(tmp_path, *actions) as play:
        session_id = await play.session()
        await play.say(session_id)
        await play.seen(session_id, "approval_request", 2)
        for approval in (await play.host.approvals.page(state="pending"))[0]:
            await play.host.approvals.answer(
                approval.approval_id, "allow_once", by=CLIENT, via="method"
            )
        await play.seen(session_id, "approval_decision", 2)
        (tmp_path / "go").touch()
        records = await play.idle(session_id)
    assert len(of(records, "tool_result")) == 2
