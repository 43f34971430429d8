"""`update_plan`: the agent's list of steps, for those who watch."""

from typing import Literal

from attrs import field, frozen

from callboard_rpc.approvals import ToolCallSubject
from callboard_rpc.events import PlanEntry, PlanUpdated

from .base import Preview, Tool, ToolContext, ToolOutcome
from .display import one_line
from .schema import describe


@frozen(kw_only=True)
class Step:
    content: str = field(metadata=describe("What is to be done.", minLength=1, maxLength=1000))
    status: Literal["pending", "in_progress", "completed"] = field(
        metadata=describe("How far it is.")
    )
    priority: Literal["high", "medium", "low"] | None = field(
        default=None, metadata=describe("How much it matters. Default: medium.")
    )


@frozen(kw_only=True)
class UpdatePlan:
    entries: tuple[Step, ...] = field(
        metadata=describe("All steps, in order; they replace the plan before.", maxItems=100)
    )


def _summary(arguments: UpdatePlan) -> str:
    statuses = [step.status for step in arguments.entries]
    return (
        f"{statuses.count('completed')} done, {statuses.count('in_progress')} in progress, "
        f"{statuses.count('pending')} to do"
    )


async def _preview(context: ToolContext, arguments: UpdatePlan) -> Preview:
    steps = [{"content": one_line(s.content, 200), "status": s.status} for s in arguments.entries]
    return Preview(
        title=f"Update the plan: {_summary(arguments)}",
        subject=ToolCallSubject(name="update_plan", arguments={"entries": steps}),
        risk="low",
    )


async def _run(context: ToolContext, arguments: UpdatePlan) -> ToolOutcome:
    entries = tuple(
        PlanEntry(content=step.content, status=step.status, priority=step.priority or "medium")
        for step in arguments.entries
    )
    text = f"The plan was updated: {_summary(arguments)}." if entries else "The plan was cleared."
    return ToolOutcome(text=text, events=(PlanUpdated(entries=entries),))


UPDATE_PLAN = Tool(
    name="update_plan",
    description=(
        "Show the person your plan: all steps with their status. Use it for work of several steps, "
        "and again whenever a step begins or ends. Each call replaces the plan before."
    ),
    arguments=UpdatePlan,
    effect="kernel",
    kind="think",
    run=_run,
    preview=_preview,
)
