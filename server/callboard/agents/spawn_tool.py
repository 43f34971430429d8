"""Starting an agent, and waiting for its end (session-messaging 5)."""

from typing import Literal

from attrs import field, frozen

from ..tools.base import ToolContext, ToolOutcome
from ..tools.schema import describe
from ..turns.kernel_tools import kernel_tool
from .calling import (
    MAX_WAIT_MS,
    agents_of,
    as_json,
    caller_of,
    grant_of,
    of_parents,
    question,
    snapshot,
    told,
)
from .examining import Wanted
from .interrupts import Verb
from .state import AgentState
from .waiting import Ended


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
            maximum=MAX_WAIT_MS,
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
    limit_ms = MAX_WAIT_MS if arguments.timeout_ms is None else arguments.timeout_ms
    return await _until_ended(context, agent, limit_ms / 1000, arguments.on_timeout or "detach")


async def _until_ended(
    context: ToolContext, agent: AgentState, limit_s: float, on_timeout: str
) -> ToolOutcome:
    """The directive flow of seed 000: the child's last answer is the result of the call, as it is and whole,
    without a frame (session-messaging 5.5). The call names the agent, so it is seen who speaks; and it is
    a tool's result, which to a model is data like a file's text, and not what a person says."""
    agents = agents_of(context)
    ended = await agents.waiting.for_first_end(agent.agent_id, timeout_s=limit_s)
    if ended.question is not None:
        asked = question(ended.question)
        return ToolOutcome(
            text=as_json({**snapshot(ended.agent), "question": asked}),
            events=told(agents, context, [ended.question.ask_id]),
        )
    if ended.called_away:
        name, agent_id = ended.agent.name, ended.agent.agent_id
        return ToolOutcome(
            text=f"The agent {name!r} ({agent_id}) has not ended yet: somebody has something else to say to "
            "you. It goes on, detached: its report comes to you when it ends."
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


SPAWN_AGENT = kernel_tool(
    "spawn_agent",
    (
        "Start an agent for a task of its own, in a session of its own. It works beside you; its report "
        "comes to you when it ends. Give it all that it has to know. Agents share this workspace: give two "
        "of them different files."
    ),
    SpawnAgent,
    _spawn,
    lambda a: f"Start the agent {a.name!r}: {a.message}",
    waits=True,
)
