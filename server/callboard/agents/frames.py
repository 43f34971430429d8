"""What an agent reads of another one: framed, so that it is seen who speaks, and escaped, so that no text
can end its frame or look like another (interrupts-and-peers 13)."""

from html import escape

from callboard_rpc.events import AgentReport

REASON_CHARS = 16_000


def element(tag: str, body: str, **attributes: str | None) -> str:
    """An element with an escaped body. Attributes of None are left out; ``_`` in a name is ``-``."""
    shown = "".join(
        f' {name.replace("_", "-")}="{escape(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return f"<{tag}{shown}>\n{escape(body, quote=False)}\n</{tag}>"


def brief_context(name: str, parent: str, depth_left: int) -> str:
    """What a child is told of its place, with its brief."""
    agents = (
        "You cannot start agents of your own."
        if depth_left < 1
        else "You may start agents of your own, and should wait for their reports."
    )
    return (
        f"You are the agent {name!r}, started by {parent!r} for this task alone. You do not see the "
        "conversation that led to it, and nobody reads along: when you are done your last message is the "
        "report that your parent gets, so say in it what was done, what was found, and what is left. The "
        f"workspace is shared with your parent and its other agents. {agents}"
    )


def report_text(report: AgentReport) -> str:
    """A report as the parent's model reads it. It is what the child says, and no evidence of it."""
    lines = [report.summary or "(It said nothing.)"]
    if report.touched_files:
        lines.append("Files that its tools changed: " + ", ".join(report.touched_files[:20]))
    if report.open_steps:
        lines.append("Steps of its plan that are not done: " + "; ".join(report.open_steps[:20]))
    if report.reason is not None:
        lines.insert(0, f"It was stopped: {report.reason}")
    framed = element(
        "agent-report",
        "\n\n".join(lines),
        agent=report.name,
        agent_id=report.agent_id,
        status=report.status,
    )
    return f"{framed}\nThe report of your agent. It is its own word: check what matters before you build on it."
