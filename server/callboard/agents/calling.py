"""What the tools have in common by which agents have to do with each other: who calls, what a model reads
of an agent, and the codes of errors."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, cast

import attrs
import orjson

from callboard_rpc.agents import AgentQuestion
from callboard_rpc.approvals import ToolCallSubject
from callboard_rpc.common import Actor
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import AgentNotificationDelivered

from ..tools.base import Preview, Tool, ToolContext, ToolFailure, ToolOutcome
from ..tools.display import one_line
from ..turns.reservation import Grant
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

WAIT_MS = round(DEFAULT_WAIT_S * 1000)
MAX_WAIT_MS = round(MAX_WAIT_S * 1000)

Run = Callable[[ToolContext, Any], Awaitable[ToolOutcome]]


def agents_of(context: ToolContext) -> Agents:
    service = context.services[SERVICE]
    assert isinstance(service, Agents)
    return service


def failure_of(error: CallboardError) -> ToolFailure:
    """An error that is the model's to deal with, as the result of its call. What ends the turn (a store
    that fails) is raised as it is."""
    code = CODES.get(error.kind)
    if code is None:
        raise error
    return ToolFailure(f"{code}: {error.message}")


def with_codes(run: Run) -> Run:
    """Turns the errors of agents into results that begin with their codes."""

    @wraps(run)
    async def guarded(context: ToolContext, arguments: Any) -> ToolOutcome:
        try:
            return await run(context, arguments)
        except CallboardError as error:
            raise failure_of(error) from error

    return guarded


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


def grant_of(context: ToolContext) -> Grant:
    return Grant(session_id=context.session, turn_id=context.turn, fence=context.fence)


def _preview_as(title: Callable[[Any], str], name: str) -> Callable[..., Awaitable[Preview]]:
    """A preview that shows the arguments under a title."""

    async def preview(context: ToolContext, arguments: Any) -> Preview:
        shown = {
            key: one_line(value, 400) if isinstance(value, str) else value
            for key, value in _plain(arguments).items()
        }
        return Preview(
            title=one_line(title(arguments)),
            subject=ToolCallSubject(name=name, arguments=shown),
            risk="low",
        )

    return preview


def _plain(arguments: Any) -> dict[str, Any]:
    given: dict[str, Any] = attrs.asdict(arguments, recurse=False)
    return {
        key: list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else value
        for key, value in given.items()
        if value is not None
    }


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


def tool(
    name: str,
    description: str,
    arguments: type[Any],
    run: Run,
    title: Callable[[Any], str],
    *,
    waits: bool = False,
    permission: str | None = None,
) -> Tool:
    """A tool by which agents have to do with each other; `title` says of its arguments what it will do."""
    return Tool(
        name=name,
        description=description,
        arguments=arguments,
        effect="kernel",
        kind="other",
        run=run,
        preview=_preview_as(title, name),
        waits=waits,
        permission=permission,
        invalid_code=CODES["invalidParams"],
    )
