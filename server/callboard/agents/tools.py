"""The seven tools of an agent that has others work for it (coordination 6): always the same, whatever there
is below it, so that a model's prompt cache holds (46)."""

from typing import Any

from attrs import field, frozen

from ..tools.base import ToolContext, ToolFailure, ToolOutcome
from ..tools.schema import describe
from ..turns.kernel_tools import kernel_tool
from .calling import (
    CALLED,
    MAX_WAIT_MS,
    WAIT_MS,
    agents_of,
    as_json,
    caller_of,
    of_parents,
    question,
    snapshot,
    told,
)
from .interrupts import Verb
from .spawn_tool import SPAWN_AGENT
from .spawning import author_of

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
        author=author_of(
            caller.by, context.session, agents.name_of(context.session, context.profile)
        ),
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


SEND_AGENT_MESSAGE = kernel_tool(
    "send_agent_message",
    (
        "Leave a message for one of your agents. One that works reads it at its next step; one that is idle "
        "reads it when it is continued. It starts nothing."
    ),
    AgentMessage,
    _send,
    lambda a: f"Message to {a.agent_id}: {a.message}",
    called=CALLED,
)

CONTINUE_AGENT = kernel_tool(
    "continue_agent",
    (
        "Give one of your agents something more to do: it goes on with its own memory of what it did. One "
        "that works takes it in at its next step."
    ),
    AgentMessage,
    _continue,
    lambda a: f"Continue {a.agent_id}: {a.message}",
    called=CALLED,
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
        metadata=describe(f"Longest wait. Default {WAIT_MS}, at most {MAX_WAIT_MS}; 0 only looks."),
    )


@of_parents
async def _wait(context: ToolContext, arguments: WaitAgents) -> ToolOutcome:
    agents = agents_of(context)
    timeout_ms = WAIT_MS if arguments.timeout_ms is None else arguments.timeout_ms
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


WAIT_AGENTS = kernel_tool(
    "wait_agents",
    (
        "Wait until one of your agents has ended, or asks you something, or the time is up. It tells their "
        "statuses; their reports come to you right after."
    ),
    WaitAgents,
    _wait,
    lambda a: "Wait for agents",
    waits=True,
)


@frozen(kw_only=True)
class ListAgents:
    pass


@of_parents
async def _list(context: ToolContext, arguments: ListAgents) -> ToolOutcome:
    children = agents_of(context).children(context.session)
    return ToolOutcome(text=as_json([snapshot(agent) for agent in children]))


LIST_AGENTS = kernel_tool(
    "list_agents",
    "List your agents with their statuses, those that are closed, too.",
    ListAgents,
    _list,
    lambda a: "List the agents",
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


INTERRUPT_AGENT = kernel_tool(
    "interrupt_agent",
    (
        "Stop what one of your agents does now. It keeps its memory, and can be continued; there is no "
        "report of what was stopped."
    ),
    OneAgent,
    _interrupt,
    lambda a: f"Interrupt {a.agent_id}",
    called=CALLED,
)

CLOSE_AGENT = kernel_tool(
    "close_agent",
    "End one of your agents, and its own, for good. Its name is free again.",
    OneAgent,
    _close,
    lambda a: f"Close {a.agent_id}",
    called=CALLED,
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
