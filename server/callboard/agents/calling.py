"""What the tools have in common by which agents have to do with each other: who calls, what a model reads
of an agent, and the codes of errors."""

from collections.abc import Mapping
from functools import wraps
from typing import Any

import orjson

from callboard_rpc.agents import AgentQuestion
from callboard_rpc.common import Actor
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import AgentNotificationDelivered

from ..tools.base import Run, ToolContext, ToolFailure, ToolOutcome
from ..turns.kernel_tools import Called, coded, grant_of
from .examining import Caller
from .reports import shortened, told_by_result
from .service import Agents
from .state import AgentState
from .waiting import DEFAULT_WAIT_S, MAX_WAIT_S

SERVICE = "agents"
"""Under which name the host gives tools the `Agents`."""

CODES = {
    "invalidParams": "invalid_argument",
    "messageTooLarge": "message_too_large",
    "nameInUse": "name_in_use",
    "depthExceeded": "depth_exceeded",
    "limitReached": "limit_reached",
    "queueFull": "queue_full",
    "agentNotFound": "unknown_agent",
    "agentClosed": "agent_closed",
    "profileNotFound": "unknown_profile",
    "modelUnavailable": "model_unavailable",
    "authRequired": "model_unavailable",
    "taskNotFound": "unknown_task",
    "taskNotClaimable": "task_not_pending",
    "taskNotReady": "task_not_ready",
    "askNotFound": "unknown_question",
    "askSettled": "question_settled",
    "sessionClosed": "session_closed",
    "sessionArchived": "session_archived",
}
"""What a model is told for an error's kind: a code that stays, before a text that may change."""

with_codes = coded(CODES)

WAIT_MS = round(DEFAULT_WAIT_S * 1000)
MAX_WAIT_MS = round(MAX_WAIT_S * 1000)


def agents_of(context: ToolContext) -> Agents:
    service = context.services[SERVICE]
    assert isinstance(service, Agents)
    return service


def of_parents(run: Run) -> Run:
    """For the seven: an agent that may have none of its own gets one answer from all of them (45)."""

    @wraps(run)
    async def guarded(context: ToolContext, arguments: Any) -> ToolOutcome:
        if not agents_of(context).may_have_agents(context.session):
            raise ToolFailure(
                "depth_exceeded: agents cannot be started or steered from this depth; do the work yourself"
            )
        return await run(context, arguments)

    return with_codes(guarded)


def caller_of(context: ToolContext) -> Caller:
    """The run that makes the call."""
    return Caller(
        parent_id=context.session,
        by=Actor(kind="agent", id=context.session),
        grant=grant_of(context),
        call_id=context.call_id,
        profile=context.profile,
    )


def _name_of(context: ToolContext, agent_id: str) -> str:
    try:
        return agents_of(context).target(context.session, agent_id).name
    except CallboardError:  # told by the call itself
        return agent_id


CALLED: Mapping[str, Called] = {"agent_id": _name_of}
"""Agents have names, which say more to a person than their ids."""


def as_json(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def snapshot(agent: AgentState) -> dict[str, Any]:
    """An agent as a model sees it; never what it reported (44)."""
    out: dict[str, Any] = {
        "agent_id": agent.agent_id,
        "name": agent.name,
        "status": agent.status,
    }
    if agent.agent_type is not None:
        out["agent_type"] = agent.agent_type
    if agent.interrupted is not None and agent.status == "interrupted":
        out["interrupted"] = shortened(agent.interrupted.reason, 200)
    return out


def question(asked: AgentQuestion) -> dict[str, Any]:
    return {"ask_id": asked.ask_id, "agent": asked.name, "text": asked.text}


def told(
    agents: Agents, context: ToolContext, delivery_ids: list[str]
) -> tuple[AgentNotificationDelivered, ...]:
    """The events by which this call's result is the notification of these deliveries."""
    found = (
        told_by_result(agents.glance, context.session, each, context.call_id)
        for each in delivery_ids
    )
    return tuple(event for event in found if event is not None)
