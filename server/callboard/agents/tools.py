"""The seven tools of an agent that has others work for it (coordination 6): always the same, whatever there
is below it, so that a model's prompt cache holds (46)."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, Literal, cast

import attrs
import orjson
from attrs import field, frozen

from callboard_rpc.agents import AgentQuestion
from callboard_rpc.approvals import ToolCallSubject
from callboard_rpc.common import Actor
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import AgentNotificationDelivered

from ..tools.base import Preview, Tool, ToolContext, ToolFailure, ToolOutcome
from ..tools.display import one_line
from ..tools.schema import describe
from ..turns.reservation import Grant
from .interrupts import Verb
from .reports import shortened, told_by_result
from .service import Agents, Caller, Wanted
from .spawning import author_of
from .state import AgentState
from .waiting import DEFAULT_WAIT_S, MAX_WAIT_S, Ended

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

_WAIT_MS = round(DEFAULT_WAIT_S * 1000)
_MAX_WAIT_MS = round(MAX_WAIT_S * 1000)


# --- what they have in common -------------------------------------------------------------------

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
    )


def grant_of(context: ToolContext) -> Grant:
    return Grant(session_id=context.session, turn_id=context.turn, fence=context.fence)


def preview_as(title: Callable[[Any], str], name: str) -> Callable[..., Awaitable[Preview]]:
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


# --- spawn_agent --------------------------------------------------------------------------------


@frozen(kw_only=True)
class SpawnAgent:
    name: str = field(
        metadata=describe(
            "A short name, unique among your open agents.", minLength=1, maxLength=200
        )
    )
    message: str = field(
        metadata=describe(
            "The task, with everything that the agent has to know: it sees nothing of this conversation.",
            minLength=1,
        )
    )
    agent_type: str | None = field(
        default=None, metadata=describe("A label for people, such as 'reviewer'.", maxLength=64)
    )
    profile: str | None = field(
        default=None, metadata=describe("An agent definition. Default: your own.")
    )
    tools: tuple[str, ...] | None = field(
        default=None,
        metadata=describe("The only tools it may use, of those that you may.", maxItems=100),
    )
    message_allow: tuple[str, ...] | None = field(
        default=None,
        metadata=describe(
            "Names of your other agents that it may write to, if messages are switched on.",
            maxItems=64,
        ),
    )
    task_id: str | None = field(
        default=None, metadata=describe("A task of the group that it is to own.")
    )
    wait: bool = field(
        default=False,
        metadata=describe("Wait for its end; its last answer is then the result of this call."),
    )
    timeout_ms: int | None = field(
        default=None,
        metadata=describe(
            "How long to wait for its end. Default and maximum: 300000.",
            minimum=0,
            maximum=_MAX_WAIT_MS,
        ),
    )
    on_timeout: Literal["detach", "cancel"] | None = field(
        default=None,
        metadata=describe(
            "When the time is up: 'detach' lets it go on, and its report comes later (the default); "
            "'cancel' stops it."
        ),
    )


@of_parents
async def _spawn(context: ToolContext, arguments: SpawnAgent) -> ToolOutcome:
    agents = agents_of(context)
    agent = await agents.spawn(
        caller_of(context),
        Wanted(
            name=arguments.name,
            message=arguments.message,
            profile=arguments.profile,
            tools=arguments.tools,
            agent_type=arguments.agent_type,
            message_allow=arguments.message_allow or (),
            task_id=arguments.task_id,
        ),
    )
    if not arguments.wait:
        return ToolOutcome(text=as_json({**snapshot(agent), "status": "starting"}))
    limit_ms = _MAX_WAIT_MS if arguments.timeout_ms is None else arguments.timeout_ms
    return await _until_ended(context, agent, limit_ms / 1000, arguments.on_timeout or "detach")


async def _until_ended(
    context: ToolContext, agent: AgentState, limit_s: float, on_timeout: str
) -> ToolOutcome:
    """The directive flow of seed 000: the child's last answer is the result of the call."""
    agents = agents_of(context)
    ended = await agents.waiting.for_first_end(agent.agent_id, timeout_s=limit_s)
    if ended.question is not None:
        asked = question(ended.question)
        return ToolOutcome(
            text=as_json({**snapshot(ended.agent), "question": asked}),
            events=told(agents, context, [ended.question.ask_id]),
        )
    if not ended.over:
        return await _timed_out(context, ended.agent, limit_s, on_timeout)
    return _came_to(context, ended)


def _came_to(context: ToolContext, ended: Ended) -> ToolOutcome:
    """The result of a call that has waited for an agent's end, and is the notification of its report."""
    report = ended.report
    events = () if report is None else told(agents_of(context), context, [report.report_id])
    if report is None:
        why = f"it was stopped: {ended.stopped}"
    elif report.status == "completed":
        if ended.text.strip():
            return ToolOutcome(text=ended.text, events=events)
        why = "it gave no response"
    elif report.status == "failed":
        why = f"it failed: {ended.text}"
    else:
        why = f"it was stopped: {report.reason}"
        why += f"\n\nIts last words:\n{ended.text}" if ended.text.strip() else ""
    name, agent_id = ended.agent.name, ended.agent.agent_id
    return ToolOutcome(
        text=f"The agent {name!r} ({agent_id}) has no answer: {why}", status="error", events=events
    )


async def _timed_out(
    context: ToolContext, agent: AgentState, limit_s: float, on_timeout: str
) -> ToolOutcome:
    agents = agents_of(context)
    said = f"The agent {agent.name!r} ({agent.agent_id}) did not end within {limit_s:g} s"
    if on_timeout == "detach":
        text = f"{said}. It goes on, detached: its report comes to you when it ends."
        return ToolOutcome(text=text, status="timed_out")
    reason = f"it did not end within {limit_s:g} s"
    done = await agents.interrupt(
        agent.agent_id,
        Verb(
            kind="interrupt",
            by=caller_of(context).by,
            origin="parent",
            reason=reason,
            grant=grant_of(context),
        ),
    )
    if done.outcome == "already_finished":  # in the last moment
        return _came_to(context, await agents.waiting.for_first_end(agent.agent_id, timeout_s=0))
    return ToolOutcome(
        text=f"{said}, and was cancelled. Continue it by its id if it should go on.",
        status="timed_out",
    )


SPAWN_AGENT = Tool(
    name="spawn_agent",
    description=(
        "Start an agent for a task of its own, in a session of its own. It works beside you; its report "
        "comes to you when it ends. Give it all that it has to know. Agents share this workspace: give two "
        "of them different files."
    ),
    arguments=SpawnAgent,
    effect="kernel",
    kind="other",
    run=_spawn,
    preview=preview_as(lambda a: f"Start the agent {a.name!r}: {a.message}", "spawn_agent"),
    waits=True,
)


# --- messages -----------------------------------------------------------------------------------


@frozen(kw_only=True)
class AgentMessage:
    agent_id: str = field(metadata=describe("The agent's id, or its name.", minLength=1))
    message: str = field(metadata=describe("What it is to read.", minLength=1))


async def _message(context: ToolContext, arguments: AgentMessage, *, goes_on: bool) -> ToolOutcome:
    agents = agents_of(context)
    agent = agents.target(context.session, arguments.agent_id)
    caller = caller_of(context)
    await agents.send(
        agent.agent_id,
        arguments.message,
        goes_on=goes_on,
        author=author_of(caller.by, context.session, agents.name_of(context.session)),
        by=caller.by,
        grant=caller.grant,
    )
    return ToolOutcome(text=f"Queued for {agent.name!r} ({agent.agent_id}).")


@of_parents
async def _send(context: ToolContext, arguments: AgentMessage) -> ToolOutcome:
    return await _message(context, arguments, goes_on=False)


@of_parents
async def _continue(context: ToolContext, arguments: AgentMessage) -> ToolOutcome:
    return await _message(context, arguments, goes_on=True)


SEND_AGENT_MESSAGE = Tool(
    name="send_agent_message",
    description=(
        "Leave a message for one of your agents. One that works reads it at its next step; one that is idle "
        "reads it when it is continued. It starts nothing."
    ),
    arguments=AgentMessage,
    effect="kernel",
    kind="other",
    run=_send,
    preview=preview_as(lambda a: f"Message to {a.agent_id}: {a.message}", "send_agent_message"),
)

CONTINUE_AGENT = Tool(
    name="continue_agent",
    description=(
        "Give one of your agents something more to do: it goes on with its own memory of what it did. One "
        "that works takes it in at its next step."
    ),
    arguments=AgentMessage,
    effect="kernel",
    kind="other",
    run=_continue,
    preview=preview_as(lambda a: f"Continue {a.agent_id}: {a.message}", "continue_agent"),
)


# --- wait_agents and list_agents ----------------------------------------------------------------


@frozen(kw_only=True)
class WaitAgents:
    agent_ids: tuple[str, ...] | None = field(
        default=None,
        metadata=describe(
            "Ids or names. Default: all that have not ended, or whose end you have not been told.",
            maxItems=100,
        ),
    )
    timeout_ms: int | None = field(
        default=None,
        metadata=describe(
            f"Longest wait. Default {_WAIT_MS}, at most {_MAX_WAIT_MS}; 0 only looks."
        ),
    )


@of_parents
async def _wait(context: ToolContext, arguments: WaitAgents) -> ToolOutcome:
    agents = agents_of(context)
    timeout_ms = _WAIT_MS if arguments.timeout_ms is None else arguments.timeout_ms
    if timeout_ms < 0:
        raise ToolFailure("invalid_argument: timeout_ms must not be negative; 0 only looks")
    waited = await agents.waiting.for_any(
        context.session, arguments.agent_ids or (), timeout_s=timeout_ms / 1000
    )
    out: dict[str, Any] = {
        "reason": waited.reason,
        "agents": [snapshot(agent) for agent in waited.agents],
        "reports_pending": waited.reports_pending,
    }
    if waited.questions:
        out["questions"] = [question(asked) for asked in waited.questions]
    return ToolOutcome(
        text=as_json(out),
        events=told(agents, context, [asked.ask_id for asked in waited.questions]),
    )


WAIT_AGENTS = Tool(
    name="wait_agents",
    description=(
        "Wait until one of your agents has ended, or asks you something, or the time is up. It tells their "
        "statuses; their reports come to you right after."
    ),
    arguments=WaitAgents,
    effect="kernel",
    kind="other",
    run=_wait,
    preview=preview_as(lambda a: "Wait for agents", "wait_agents"),
    waits=True,
)


@frozen(kw_only=True)
class ListAgents:
    pass


@of_parents
async def _list(context: ToolContext, arguments: ListAgents) -> ToolOutcome:
    children = agents_of(context).children(context.session)
    return ToolOutcome(text=as_json([snapshot(agent) for agent in children]))


LIST_AGENTS = Tool(
    name="list_agents",
    description="List your agents with their statuses, those that are closed, too.",
    arguments=ListAgents,
    effect="kernel",
    kind="other",
    run=_list,
    preview=preview_as(lambda a: "List the agents", "list_agents"),
)


# --- interrupt_agent and close_agent ------------------------------------------------------------


@frozen(kw_only=True)
class OneAgent:
    agent_id: str = field(metadata=describe("The agent's id, or its name.", minLength=1))


@of_parents
async def _interrupt(context: ToolContext, arguments: OneAgent) -> ToolOutcome:
    agents = agents_of(context)
    agent = agents.target(context.session, arguments.agent_id)
    caller = caller_of(context)
    await agents.interrupt(
        agent.agent_id,
        Verb(kind="interrupt", by=caller.by, origin="parent", grant=caller.grant),
    )
    return ToolOutcome(text=f"Interrupt of {agent.name!r} ({agent.agent_id}) requested.")


@of_parents
async def _close(context: ToolContext, arguments: OneAgent) -> ToolOutcome:
    agents = agents_of(context)
    agent = agents.target(context.session, arguments.agent_id)
    caller = caller_of(context)
    await agents.close(agent.agent_id, by=caller.by, grant=caller.grant)
    return ToolOutcome(text=f"Closed {agent.name!r} ({agent.agent_id}).")


INTERRUPT_AGENT = Tool(
    name="interrupt_agent",
    description=(
        "Stop what one of your agents does now. It keeps its memory, and can be continued; there is no "
        "report of what was stopped."
    ),
    arguments=OneAgent,
    effect="kernel",
    kind="other",
    run=_interrupt,
    preview=preview_as(lambda a: f"Interrupt {a.agent_id}", "interrupt_agent"),
)

CLOSE_AGENT = Tool(
    name="close_agent",
    description="End one of your agents, and its own, for good. Its name is free again.",
    arguments=OneAgent,
    effect="kernel",
    kind="other",
    run=_close,
    preview=preview_as(lambda a: f"Close {a.agent_id}", "close_agent"),
    waits=True,
)

SEVEN = (
    SPAWN_AGENT,
    SEND_AGENT_MESSAGE,
    CONTINUE_AGENT,
    WAIT_AGENTS,
    LIST_AGENTS,
    INTERRUPT_AGENT,
    CLOSE_AGENT,
)
