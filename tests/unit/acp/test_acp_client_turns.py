"""Turns that an agent of another maker drives: what it says, does and tells, in our log."""

from pathlib import Path
from typing import Any

import pytest
from acp_client_kit import command, permission, printed, stage, tool_call, tool_update

from callboard_rpc.common import TextContent, Thinking, ToolUse

pytestmark = pytest.mark.anyio


def of(records: list[Any], kind: str) -> list[Any]:
    return [record.value for record in records if record.type == kind]


def said(records: list[Any]) -> list[str]:
    """The texts of the agent's messages."""
    return [
        "".join(b.text for b in m.content if isinstance(b, TextContent))
        for m in of(records, "message")
        if m.author.kind == "agent"
    ]


async def test_an_agents_words_are_a_turn_like_any_other(tmp_path: Path) -> None:
    async with stage(tmp_path, {"think": "Hm."}, {"say": "Hello, "}, {"say": "you."}) as play:
        records = await play.turn("Say hello")
        assert play.told() == ["Say hello"]
    (answer,) = [m for m in of(records, "message") if m.author.kind == "agent"]
    assert answer.final
    assert answer.model == "acp/puppet"
    assert [b.text for b in answer.content if isinstance(b, Thinking)] == ["Hm."]
    assert said(records) == ["Hello, you."]
    (started,) = of(records, "turn_started")
    assert started.model == "acp/puppet"
    (end,) = of(records, "turn_finished")
    assert (end.outcome, end.final_text, end.stop_reason) == (
        "completed",
        "Hello, you.",
        "end_turn",
    )
    (told,) = of(records, "external_session")
    assert (told.profile, told.agent_session_id) == ("puppet", "agent-session-1")


async def test_a_call_is_logged_with_what_came_of_it(tmp_path: Path) -> None:
    actions = (
        {"say": "I look."},
        tool_call(kind="read", status="pending", rawInput={}),
        tool_update(status="in_progress", title="Read a.txt", rawInput={"path": "/a.txt"}),
        tool_update(status="completed", content=printed("what is in it")),
        {"say": "Done."},
    )
    async with stage(tmp_path, *actions) as play:
        records = await play.turn()
    (call,) = of(records, "tool_call")
    assert (call.title, call.kind, call.effect) == ("Read a.txt", "read", "read")
    assert call.arguments == {"path": "/a.txt"}
    (result,) = of(records, "tool_result")
    assert (result.call_id, result.status, result.text) == (call.call_id, "ok", "what is in it")
    first, last = [m for m in of(records, "message") if m.author.kind == "agent"]
    assert isinstance(first.content[-1], ToolUse)
    assert first.message_id == call.message_id
    assert (first.final, last.final) == (False, True)
    assert said(records) == ["I look.", "Done."]


async def test_a_diff_is_a_change_of_a_file(tmp_path: Path) -> None:
    path = str(tmp_path / "a.txt")
    diff = [{"type": "diff", "path": path, "oldText": "one\n", "newText": "two\n"}]
    actions = (
        tool_call(kind="edit", status="in_progress", content=diff),
        tool_update(status="completed"),
    )
    async with stage(tmp_path, *actions) as play:
        records = await play.turn()
    (result,) = of(records, "tool_result")
    (change,) = result.changes
    assert (change.path, change.added, change.removed) == (path, 1, 1)


async def test_an_update_of_an_unknown_call_makes_it(tmp_path: Path) -> None:
    update = tool_update("t9", title="Late", status="completed", content=printed("x"))
    async with stage(tmp_path, update) as play:
        records = await play.turn()
    (call,) = of(records, "tool_call")
    assert call.title == "Late"
    assert [r.status for r in of(records, "tool_result")] == ["ok"]


async def test_a_call_without_an_end_gets_one_with_the_prompt(tmp_path: Path) -> None:
    async with stage(tmp_path, tool_call(status="in_progress"), {"say": "Bye."}) as play:
        records = await play.turn()
    (result,) = of(records, "tool_result")
    assert result.status == "error"
    assert "without saying" in result.text
    assert of(records, "turn_finished")[0].outcome == "completed"


async def test_what_a_call_prints_is_told_once_though_each_update_tells_all_of_it(
    tmp_path: Path,
) -> None:
    actions = (
        tool_call(kind="execute", status="in_progress"),
        tool_update(content=printed("one\n")),
        tool_update(content=printed("one\ntwo\n")),
        tool_update(status="completed", content=printed("one\ntwo\n")),
    )
    told: list[str] = []
    async with stage(tmp_path, *actions) as play:
        play.host.deltas.listen(lambda d: told.append(d.text) if d.kind == "tool_output" else None)
        records = await play.turn()
    assert told == ["one\n", "two\n"]
    assert of(records, "tool_result")[0].text == "one\ntwo\n"


async def test_what_came_with_the_answer_and_right_after_it_belongs_to_the_turn(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, {"say": "one"}, scene={"late": [{"say": " two"}]}) as play:
        records = await play.turn()
    assert said(records) == ["one two"]


async def test_plan_and_usage_are_kept(tmp_path: Path) -> None:
    entry = {"content": "Look", "priority": "high", "status": "in_progress"}
    cost = {"amount": 0.25, "currency": "USD"}
    actions = (
        {"update": {"sessionUpdate": "plan", "entries": [entry]}},
        {"update": {"sessionUpdate": "usage_update", "used": 70, "size": 1000, "cost": cost}},
    )
    used = {"used": {"usage": {"inputTokens": 60, "outputTokens": 9, "totalTokens": 69}}}
    async with stage(tmp_path, *actions, scene=used) as play:
        records = await play.turn()
    (plan,) = of(records, "plan_updated")
    assert [(e.content, e.status) for e in plan.entries] == [("Look", "in_progress")]
    usage = of(records, "turn_finished")[0].usage
    assert (usage.input_tokens, usage.output_tokens, usage.context_tokens) == (60, 9, 70)
    assert usage.cost == 0.25


async def test_an_agent_is_told_only_what_is_new_to_it(tmp_path: Path) -> None:
    async with stage(tmp_path, {"say": "ok"}) as play:
        session_id = await play.session()
        for text in ("one", "two"):
            await play.say(session_id, text)
            await play.idle(session_id)
        assert play.told() == ["one", "two"]
        assert len(play.heard("session/new")) == 1


async def test_a_call_that_policy_lets_run_is_not_asked_about(tmp_path: Path) -> None:
    actions = (permission(**command()), tool_update(status="completed", content=printed("ok")))
    config = '[approvals.policy]\nexecute = "allow"\n'
    async with stage(tmp_path, *actions, config=config) as play:
        records = await play.turn()
    assert of(records, "approval_request") == []
    assert said(records) == ["[allow]"]
    assert [r.status for r in of(records, "tool_result")] == ["ok"]
