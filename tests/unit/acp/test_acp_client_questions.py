"""Questions of an agent to the person: forms, choices and places to go to, answered from anywhere and bounded."""

import json
from pathlib import Path
from typing import Any

import pytest
from acp_client_kit import CLIENT, Stage, stage
from test_acp_client_turns import of, said

from callboard.acp.client import questions
from callboard.cli import cards
from callboard_rpc.approvals import FormSubject, ToolCallSubject

pytestmark = pytest.mark.anyio

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name", "maxLength": 20},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "kinds": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "Apples"}, {"const": "b", "title": "Pears"}]}},
        "sure": {"type": "boolean", "default": True},
    },
    "required": ["name", "count"],
}  # fmt: skip
COLOURS = {"properties": {"colour": {"type": "string", "enum": ["red", "blue"]}}}
SITE = {"mode": "url", "elicitationId": "e1", "url": "https://example.org/consent", "message": "Go"}


def form(schema: Any = SCHEMA, message: str = "Tell me") -> dict[str, Any]:
    params = {"mode": "form", "message": message, "requestedSchema": schema}
    return {"ask": {"method": "elicitation/create", "params": params}}


def site(**fields: Any) -> dict[str, Any]:
    return {"ask": {"method": "elicitation/create", "params": {**SITE, **fields}}}


def told(records: list[Any]) -> list[Any]:
    """What the agent was answered; it says it again."""
    return [json.loads(part) for text in said(records) for part in text.strip("<>").split("><")]


async def asked_and_answered(play: Stage, option: str, feedback: str | None = None) -> list[Any]:
    session_id = await play.session()
    await play.say(session_id)
    await play.answer(option, feedback=feedback)
    return await play.idle(session_id)


async def test_both_kinds_are_offered_to_the_agent(tmp_path: Path) -> None:
    async with stage(tmp_path, {"say": "ok"}) as play:
        await play.turn()
        (hello,) = play.heard("initialize")
    assert hello["params"]["clientCapabilities"]["elicitation"] == {"form": {}, "url": {}}


@pytest.mark.parametrize(
    "answer",
    [
        '{"name": "Ada", "count": 3, "kinds": ["a", "b"]}',
        "name: Ada\ncount: 3\nkinds: Apples, Pears",
    ],
)
async def test_a_form_is_a_question_and_its_answer_goes_to_the_agent(
    tmp_path: Path, answer: str
) -> None:
    async with stage(tmp_path, form()) as play:
        session_id = await play.session(mode="plan")
        await play.say(session_id)
        approval = await play.asked()
        assert approval.kind == "question"
        assert isinstance(approval.subject, FormSubject)
        assert approval.subject.message == "Tell me"
        assert set(approval.subject.schema["properties"]) == {"name", "count", "kinds", "sure"}
        shown = [line.plain for line in cards.question(approval)]
        assert "    count  integer; required" in shown
        assert "    kinds  array; one of a, b; a (Apples), b (Pears)" in shown
        await play.answer("accept", feedback=answer)
        records = await play.idle(session_id)
    content = {"name": "Ada", "count": 3, "kinds": ["a", "b"], "sure": True}
    assert told(records) == [{"action": "accept", "content": content}]
    (call,) = of(records, "tool_call")
    assert (call.name, call.arguments, call.approval_id) == (
        "ask",
        {"message": "Tell me"},
        approval.approval_id,
    )
    (result,) = of(records, "tool_result")
    assert result.status == "ok"


async def test_an_answer_that_does_not_fit_is_asked_for_again(tmp_path: Path) -> None:
    async with stage(tmp_path, form()) as play:
        session_id = await play.session()
        await play.say(session_id)
        await play.answer("accept", feedback="name: Ada\ncount: 12")
        second = await play.seen(session_id, "approval_request", 2)
        assert "count is at most 9" in second.value.approval.subject.message
        await play.answer("accept", feedback="name: Ada\ncount: 2")
        records = await play.idle(session_id)
    (answer,) = told(records)
    assert answer["content"]["count"] == 2
    assert len(of(records, "tool_result")) == 1


async def test_who_never_answers_what_fits_is_not_asked_for_ever(tmp_path: Path) -> None:
    async with stage(tmp_path, form()) as play:
        session_id = await play.session()
        await play.say(session_id)
        for count in range(1, 6):
            await play.seen(session_id, "approval_request", count)
            await play.answer("accept", feedback="what?")
        records = await play.idle(session_id)
    assert told(records) == [{"action": "cancel"}]
    assert len(of(records, "approval_request")) == 6
    assert of(records, "approval_decision")[-1].resolution.outcome == "cancelled"


async def test_a_choice_among_few_is_answered_by_an_option(tmp_path: Path) -> None:
    async with stage(tmp_path, form(COLOURS, "Which?")) as play:
        session_id = await play.session()
        await play.say(session_id)
        approval = await play.asked()
        assert [o.name for o in approval.options] == ["red", "blue", "Do not answer"]
        assert isinstance(approval.subject, ToolCallSubject)
        await play.answer("answer_2")
        records = await play.idle(session_id)
    assert told(records) == [{"action": "accept", "content": {"colour": "blue"}}]


async def test_who_does_not_answer_is_taken_at_their_word(tmp_path: Path) -> None:
    async with stage(tmp_path, form()) as play:
        records = await asked_and_answered(play, "decline", "ask the boss")
        await play.say(records[0].session_id)
        await play.answer("decline")
        await play.idle(records[0].session_id)
        assert "ask the boss" in play.told()[1]
    assert told(records) == [{"action": "decline"}]


async def test_a_place_to_go_to_is_shown_as_text_and_accepted_or_not(tmp_path: Path) -> None:
    async with stage(tmp_path, site()) as play:
        session_id = await play.session()
        await play.say(session_id)
        approval = await play.asked()
        assert approval.subject.arguments == {"message": "Go", "url": SITE["url"]}
        assert [o.option_id for o in approval.options] == ["accept", "decline"]
        await play.answer("accept")
        records = await play.idle(session_id)
    assert told(records) == [{"action": "accept"}]


async def test_what_is_done_elsewhere_need_not_be_answered(tmp_path: Path) -> None:
    request = {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create"}
    done = {"jsonrpc": "2.0", "method": "elicitation/complete", "params": {"elicitationId": "e1"}}
    other = {**done, "params": {"elicitationId": "another"}}
    actions = [
        {"raw": json.dumps({**request, "params": {**SITE, "sessionId": "agent-session-1"}})},
        {"until_file": str(tmp_path / "asked")},
        {"raw": json.dumps(other)},
        {"raw": json.dumps(done)},
        {"until_file": str(tmp_path / "done")},
    ]
    async with stage(tmp_path, *actions) as play:
        session_id = await play.session()
        await play.say(session_id)
        await play.asked()
        (tmp_path / "asked").touch()
        decision = await play.seen(session_id, "approval_decision")
        assert decision.value.resolution.outcome == "cancelled"
        assert "done" in decision.value.resolution.reason
        (tmp_path / "done").touch()
        await play.idle(session_id)
        answers = [m["result"] for m in play.heard() if m.get("id") == "q"]
    assert answers == [{"action": "accept"}]


@pytest.mark.parametrize("how", ["cancelled", "ended"])
async def test_an_agent_that_does_not_wait_any_more_takes_its_question_back(
    tmp_path: Path, how: str
) -> None:
    params = {**form()["ask"]["params"], "sessionId": "agent-session-1"}
    request = {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params}
    back = {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": "q"}}
    actions = [{"raw": json.dumps(request)}, {"until_file": str(tmp_path / "asked")}]
    if how == "cancelled":
        actions += [{"raw": json.dumps(back)}, {"until_file": str(tmp_path / "withdrawn")}]
    async with stage(tmp_path, *actions) as play:
        session_id = await play.session()
        await play.say(session_id)
        await play.asked()
        (tmp_path / "asked").touch()
        decision = await play.seen(session_id, "approval_decision")
        assert decision.value.resolution.outcome == "cancelled"
        assert "does not wait" in decision.value.resolution.reason
        (tmp_path / "withdrawn").touch()
        records = await play.idle(session_id)
    (result,) = of(records, "tool_result")
    assert (result.status, of(records, "turn_finished")[0].outcome) == ("cancelled", "completed")


async def test_a_cancel_of_the_turn_answers_the_question(tmp_path: Path) -> None:
    async with stage(tmp_path, form(), {"until_cancelled": True}) as play:
        session_id = await play.session()
        await play.say(session_id)
        await play.asked()
        await play.host.sessions.cancel(session_id, by=CLIENT)
        records = await play.idle(session_id)
        answers = [m["result"] for m in play.heard() if "result" in m]
    assert answers == [{"action": "cancel"}]
    assert of(records, "turn_finished")[0].outcome == "cancelled"
    assert [d.resolution.outcome for d in of(records, "approval_decision")] == ["cancelled"]


async def test_a_question_does_not_outlive_the_program_that_has_asked(tmp_path: Path) -> None:
    async with stage(tmp_path, form()) as play:
        session_id = await play.session()
        await play.say(session_id)
        approval = await play.asked()
    async with stage(tmp_path, {"say": "anew"}) as play:
        records = await play.idle(session_id)
        after = await play.host.approvals.get(approval.approval_id)
        assert after.state == "cancelled"
        assert after.resolution is not None and after.resolution.reason
        assert of(records, "turn_finished")[0].outcome == "interrupted"
        await play.say(session_id, "again")
        assert said(await play.idle(session_id))[-1] == "anew"


async def test_nobody_is_asked_where_that_is_configured(tmp_path: Path) -> None:
    config = '[approvals]\nunattended = "deny"\n'
    async with stage(tmp_path, form(), config=config) as play:
        records = await play.turn()
    assert told(records) == [{"action": "cancel"}]
    assert of(records, "approval_request") == []
    (result,) = of(records, "tool_result")
    assert "nobody is connected" in result.text


DEEP = {"properties": {"who": {"type": "object", "properties": {}}}}
HOSTILE = [
    (form(DEEP), "who.type"),
    (form({"type": "array"}), "must be 'object'"),
    (form({"properties": {str(i): {"type": "string"} for i in range(51)}}), "more than 50"),
    (form({"properties": {"x": {"type": "string", "description": "d" * 70_000}}}), "over 65536 bytes"),
    (form({"properties": {"a\nb": {"type": "string"}}}), "not one line"),
    (form({"properties": {"x": {"type": "string", "enum": [{"$ref": "#"}]}}}), "a value is no text"),
    (form({"properties": {}, "required": ["no"]}), "must name properties"),
    (form({"properties": {"x": {"type": "integer", "default": "lots"}}}), "whole number"),
    (form(message="m" * 20_000), "message"),
    (site(url="javascript:alert(1)"), "http or https"),
    (site(url="file:///etc/passwd"), "http or https"),
    (site(url="https://example.org@evil.test/"), "without a user's name"),
    (site(url="https://example.org/\u202egro"), "ASCII"),
    (site(url="https://example.org/" + "x" * 3_000), "over 2000"),
    (site(elicitationId=""), "elicitationId"),
    ({"ask": {"method": "elicitation/create", "params": {"mode": "video", "message": "m"}}}, "mode"),
]  # fmt: skip


@pytest.mark.parametrize(("action", "words"), HOSTILE)
async def test_what_is_no_question_is_refused_by_name(
    tmp_path: Path, action: dict[str, Any], words: str
) -> None:
    async with stage(tmp_path, action) as play:
        records = await play.turn()
    (answer,) = told(records)
    assert answer["code"] == -32602
    assert words in answer["message"]
    assert of(records, "approval_request") == []


async def test_questions_are_not_without_number(tmp_path: Path) -> None:
    params = {**form()["ask"]["params"], "sessionId": "agent-session-1"}
    request = {"jsonrpc": "2.0", "method": "elicitation/create", "params": params}
    many = [{"raw": json.dumps({**request, "id": f"q{i}"})} for i in range(questions.MOST_OPEN)]
    actions = [*many, {"until_file": str(tmp_path / "asked")}, form()]
    async with stage(tmp_path, *actions) as play:
        session_id = await play.session()
        await play.say(session_id)
        await play.seen(session_id, "approval_request", questions.MOST_OPEN)
        (tmp_path / "asked").touch()
        records = await play.idle(session_id)
    (refused,) = told(records)
    assert "too many questions" in refused["message"]
    assert len(of(records, "tool_result")) == questions.MOST_OPEN


async def test_before_there_is_a_session_nobody_is_asked(tmp_path: Path) -> None:
    params = {"mode": "form", "message": "m", "requestedSchema": SCHEMA, "requestId": 2}
    request = {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params}
    before = {"session/new": [{"raw": json.dumps(request)}]}
    async with stage(tmp_path, {"say": "ok"}, scene={"before": before}) as play:
        records = await play.turn()
        answers = [m["result"] for m in play.heard() if m.get("id") == "q"]
    assert said(records) == ["ok"]
    assert answers == [{"action": "cancel"}]
