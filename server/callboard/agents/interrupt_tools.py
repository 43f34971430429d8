"""Correcting and stopping a running agent, as tools of its parent (seed 004, 1): there only where
``interrupts`` is switched on.

To policy the three of them are `interrupt_agent`, the tool that is always there: a rule or a setting for
that name holds for every way in which an agent can interrupt another (interrupts-and-peers 11).
"""

from attrs import field, frozen

from callboard_rpc.events import InterruptVerb

from ..tools.base import ToolContext, ToolOutcome
from ..tools.schema import describe
from ..turns.kernel_tools import kernel_tool
from .calling import CALLED, agents_of, as_json, caller_of, of_parents
from .interrupts import Verb
from .tools import INTERRUPT_AGENT

PERMISSION = INTERRUPT_AGENT.name


@frozen(kw_only=True)
class WithReason:
    agent_id: str = field(metadata=describe("The agent's id, or its name.", minLength=1))
    reason: str = field(metadata=describe("What the agent is told.", minLength=1))


@frozen(kw_only=True)
class Abort:
    agent_id: str = field(metadata=describe("The agent's id, or its name.", minLength=1))
    reason: str | None = field(
        default=None, metadata=describe("Why, for its report and for people.")
    )


async def _interrupt(
    context: ToolContext, kind: InterruptVerb, named: str, reason: str | None
) -> ToolOutcome:
    agents, caller = agents_of(context), caller_of(context)
    agent = agents.target(context.session, named)
    verb = Verb(kind=kind, by=caller.by, origin="parent", reason=reason, grant=caller.grant)
    done = await agents.interrupt(agent.agent_id, verb)
    out = {"agent_id": agent.agent_id, "name": agent.name, "outcome": done.outcome}
    if done.pending is not None:
        out["pending"] = done.pending
    return ToolOutcome(text=as_json(out))


@of_parents
async def _steer(context: ToolContext, arguments: WithReason) -> ToolOutcome:
    return await _interrupt(context, "steer", arguments.agent_id, arguments.reason)


@of_parents
async def _cancel(context: ToolContext, arguments: WithReason) -> ToolOutcome:
    return await _interrupt(context, "cancel", arguments.agent_id, arguments.reason)


@of_parents
async def _abort(context: ToolContext, arguments: Abort) -> ToolOutcome:
    return await _interrupt(context, "abort", arguments.agent_id, arguments.reason)


STEER_AGENT = kernel_tool(
    "steer_agent",
    (
        "Correct one of your agents while it works: at its next step it is told the reason, keeps what it "
        "has done, and goes on. 'ignored' means that it is being stopped already."
    ),
    WithReason,
    _steer,
    lambda a: f"Correct {a.agent_id}: {a.reason}",
    called=CALLED,
    permission=PERMISSION,
)

CANCEL_AGENT = kernel_tool(
    "cancel_agent",
    (
        "Have one of your agents come to an end: at its next step it is told the reason, sums up what is "
        "done and what is left, and stops; its report comes to you."
    ),
    WithReason,
    _cancel,
    lambda a: f"Cancel {a.agent_id}: {a.reason}",
    called=CALLED,
    permission=PERMISSION,
)

ABORT_AGENT = kernel_tool(
    "abort_agent",
    (
        "Stop one of your agents at once, with all that it runs. It can be continued later; what it had "
        "said comes to you as a report."
    ),
    Abort,
    _abort,
    lambda a: f"Abort {a.agent_id}",
    called=CALLED,
    permission=PERMISSION,
)

INTERRUPT_TOOLS = (STEER_AGENT, CANCEL_AGENT, ABORT_AGENT)
