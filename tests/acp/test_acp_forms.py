"""Questions that want an answer of a certain form, for editors that can show forms and for others."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from acp_scenes import scenes, workspace

from callboard_rpc.approvals import Approval, ApprovalOption, FormSubject
from callboard_rpc.common import ApprovalId, CallId, SessionId, TurnId
from harness.acp import AcpProcess, allow
from harness.inside import CLIENT, host_in

pytestmark = pytest.mark.anyio

FLAT = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
DEEP = {"type": "object", "properties": {"who": {"type": "object", "properties": {}}}}


def question(session_id: str, schema: dict[str, Any]) -> Approval:
    return Approval(
        approval_id=ApprovalId("apr_form"),
        session_id=SessionId(session_id),
        root_id=SessionId(session_id),
        turn_id=TurnId("trn_x"),
        call_id=CallId("call_form"),
        kind="question",
        title="A question",
        tool="ask",
        subject=FormSubject(message="What is it called?", schema=schema),
        options=(
            ApprovalOption(option_id="yes", name="Answer", kind="allow_once"),
            ApprovalOption(option_id="no", name="Do not answer", kind="reject_once"),
        ),
        created_at="2031-01-01T00:00:00.000Z",
    )


def accept(_: dict[str, Any]) -> Any:
    return {"action": "accept", "content": {"name": "Ada"}}


def decline(_: dict[str, Any]) -> Any:
    return {"action": "decline"}


def choose(_: dict[str, Any]) -> Any:
    return {"outcome": {"outcome": "selected", "optionId": "yes"}}


@pytest.mark.parametrize(
    ("schema", "forms", "answer", "method", "told"),
    [
        (FLAT, True, accept, "elicitation/create", ("allowed", "yes", '{"name":"Ada"}')),
        (FLAT, True, decline, "elicitation/create", ("rejected", "no", None)),
        (FLAT, False, choose, "session/request_permission", ("allowed", "yes", None)),
        (DEEP, True, choose, "session/request_permission", ("allowed", "yes", None)),
    ],
)
async def test_a_form_is_shown_where_it_can_be(
    tmp_path: Path,
    schema: dict[str, Any],
    forms: bool,
    answer: Callable[[dict[str, Any]], Any],
    method: str,
    told: tuple[str, str, str | None],
) -> None:
    """The question comes from another process, as any does for which this one does not run the turn."""
    able: dict[str, Any] = {"elicitation": {"form": {}}} if forms else {}
    with AcpProcess(
        tmp_path, model=scenes(tmp_path), capabilities=able, answers={method: answer}
    ) as agent:
        session = agent.new(workspace(tmp_path))
        async with host_in(tmp_path) as host:
            asked = question(session, schema)
            await host.log.transact(lambda tx: host.approvals.ask(tx, asked, actor=CLIENT, fence=1))
            resolution = await host.approvals.wait("apr_form")
        assert (resolution.outcome, resolution.option_id, resolution.feedback) == told
        agent.close()
        agent.drain()
        (request,) = agent.asked(method)
        assert "What is it called?" in str(request["params"])


async def test_a_form_that_is_put_away_stays_open(tmp_path: Path) -> None:
    def put_away(_: dict[str, Any]) -> Any:
        return {"action": "cancel"}

    able = {"elicitation": {"form": {}}}
    with AcpProcess(
        tmp_path,
        model=scenes(tmp_path),
        capabilities=able,
        answers={"elicitation/create": put_away},
        permit=allow,
    ) as agent:
        session = agent.new(workspace(tmp_path))
        async with host_in(tmp_path) as host:
            asked = question(session, FLAT)
            await host.log.transact(lambda tx: host.approvals.ask(tx, asked, actor=CLIENT, fence=1))
            agent.until_asked("elicitation/create")
            assert agent.prompt(session, "hi") == "end_turn"
            assert (await host.approvals.get("apr_form")).state == "pending"
