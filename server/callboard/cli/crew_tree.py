"""The agents of a session as a tree: who does what, since when, at what cost, and what it waits for."""

from collections.abc import Sequence

from rich.text import Text
from rich.tree import Tree

from callboard_client.terminal_text import clean_line
from callboard_rpc.agents import Agent
from callboard_rpc.sessions import Session

from .terminal import line
from .wording import duration, plural, usage

_TEXT = 120

_STATUS_STYLES = {
    "starting": "dim",
    "running": "cyan",
    "completed": "green",
    "interrupted": "yellow",
    "failed": "bold red",
    "closed": "dim",
}


def tree(root: Session, agents: Sequence[Agent]) -> Tree:
    """Agents below those that have started them, in the order in which they came."""
    shown = Tree(_root(root), guide_style="dim")
    branches = {root.session_id: shown}
    left = list(agents)
    while left:
        placed = [agent for agent in left if agent.parent_id in branches]
        for agent in placed:
            branches[agent.agent_id] = branches[agent.parent_id].add(_agent(agent))
        # whose parent is not among them stands below the root
        left = [agent for agent in left if agent not in placed]
        if not placed:
            for agent in left:
                shown.add(_agent(agent))
            break
    return shown


def _root(root: Session) -> Text:
    title = f'  "{clean_line(root.title, 60)}"' if root.title else ""
    status = root.status.replace("_", " ")
    return line((root.session_id, "bold"), (f"  {status}", "dim"), title)


def _agent(agent: Agent) -> Text:
    style = _STATUS_STYLES.get(agent.status, "")
    kind = f" ({clean_line(agent.agent_type, 40)})" if agent.agent_type else ""
    took = None if agent.elapsed_ms is None else duration(agent.elapsed_ms)
    shown = line(
        (clean_line(agent.name, 64), "bold"),
        (kind, "dim"),
        "  ",
        (agent.status, style),
        (f"  {agent.agent_id}", "dim"),
    )
    spent = " · ".join(part for part in (took, usage(agent.usage), agent.model) if part)
    if spent:
        shown.append("\n").append_text(line((spent, "dim")))
    for below in _below(agent):
        shown.append("\n").append_text(below)
    return shown


def _below(agent: Agent) -> list[Text]:
    """What it is at, and what it waits for, a line each."""
    lines = [line(("⋯ ", "cyan"), clean_line(tool.title, _TEXT)) for tool in agent.tools]
    lines += [_asks("approval", each.approval_id, each.title) for each in agent.approvals]
    if agent.question is not None:
        lines.append(_asks("reply to", agent.question.ask_id, agent.question.text))
    if agent.waits_for_slot:
        lines.append(line(("waits until another agent has ended its turn", "yellow")))
    if agent.interrupt is not None:
        word = {"steer": "is about to be corrected", "cancel": "is to wind down"}
        lines.append(line((word.get(agent.interrupt, "is being stopped"), "yellow")))
    if agent.queued:
        lines.append(line((f"{plural(agent.queued, 'message')} for its next step", "dim")))
    if agent.interrupted is not None:
        lines.append(line((f"stopped: {clean_line(agent.interrupted.reason, _TEXT)}", "yellow")))
    elif agent.report is not None and agent.turn_id is None and agent.report.summary:
        lines.append(line((clean_line(agent.report.summary, _TEXT), "dim")))
    return lines


def _asks(what: str, id: str, text: str) -> Text:
    """The id comes first: whoever answers needs the whole of it, also where the line is cut."""
    return line(
        ("? ", "bold yellow"), f"waits for {what} ", (id, "dim"), f": {clean_line(text, _TEXT)}"
    )
