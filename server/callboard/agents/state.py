"""An agent, told from its events alone: pure, without clock or I/O (coordination 4).

The projection applies these rules to rows, so the table of agents and a replay of the log say the same.
"""

from collections.abc import Iterable
from typing import Any

import attrs
from attrs import frozen

from callboard_rpc.events import (
    AgentClosed,
    AgentCloseRequested,
    AgentInterruptConsumed,
    AgentInterrupted,
    AgentInterruptRequested,
    AgentReport,
    AgentReportCreated,
    AgentSpawned,
    AgentStatus,
    AgentStatusChanged,
    SessionClosed,
    TriggersDropped,
)

TERMINAL: frozenset[AgentStatus] = frozenset({"completed", "interrupted", "failed", "closed"})
"""Statuses that end a wait. Only ``closed`` is final."""


BRIEF_SEQ = 2
"""Where an agent's brief stands in its session, behind its spawn. Without it, it has nothing to begin
with."""


@frozen(kw_only=True)
class AgentState:
    """One child. A value: a newer one replaces it.

    `pending` is what it is to be told at its next boundary, or the abort that is ending its turn; `winding`
    the cancel that it was told, until its turn ends. `deadline_at` is when the first cancel of its turn
    becomes an abort; there is none when its end has been asked for. `interrupted` says why its last turn
    ended early; `closing` that nothing it does is reported any more.
    """

    agent_id: str
    root_id: str
    parent_id: str
    name: str
    depth_left: int
    agent_type: str | None = None
    message_allow: tuple[str, ...] = ()
    status: AgentStatus = "starting"
    report: AgentReport | None = None
    interrupted: AgentInterrupted | None = None
    pending: AgentInterruptRequested | None = None
    winding: AgentInterruptRequested | None = None
    deadline_at: str | None = None
    closing: bool = False

    @property
    def is_terminal(self) -> bool:
        return self.status in TERMINAL


def spawned(event: AgentSpawned) -> AgentState:
    """The agent that begins with this event."""
    session = event.session
    assert session.parent_id is not None
    return AgentState(
        agent_id=session.session_id,
        root_id=session.root_id,
        parent_id=session.parent_id,
        name=event.name,
        depth_left=event.depth_left,
        agent_type=event.agent_type,
        message_allow=event.message_allow,
    )


def apply(state: AgentState, event: Any) -> AgentState:
    """The agent after an event of its session; most change nothing."""
    match event:
        case AgentStatusChanged(status=status):
            return _in_status(state, status)
        case AgentReportCreated(report=report):
            status = "interrupted" if report.status == "aborted" else report.status
            return attrs.evolve(_in_status(state, status), report=report)
        case AgentInterrupted():
            return attrs.evolve(_in_status(state, "interrupted"), interrupted=event)
        case AgentClosed() | SessionClosed():
            return _in_status(state, "closed")
        case AgentCloseRequested():
            return attrs.evolve(state, closing=True, deadline_at=None)  # it has no more time at all
        case AgentInterruptRequested():
            return attrs.evolve(state, pending=event, deadline_at=_deadline(state, event))
        case AgentInterruptConsumed() if state.pending is not None:
            cancels = state.pending.kind == "cancel"
            return attrs.evolve(
                state, pending=None, winding=state.pending if cancels else state.winding
            )
        case TriggersDropped(seqs=seqs) if state.status == "starting" and BRIEF_SEQ in seqs:
            stopped = AgentInterrupted(reason=event.reason)
            return attrs.evolve(_in_status(state, "interrupted"), interrupted=stopped)
        case _:
            return state


def _deadline(state: AgentState, wish: AgentInterruptRequested) -> str | None:
    """When a cancel becomes an abort; the first time stands. None where there is no turn that could be
    ended, or its end has been asked for: whoever runs it may take long, and is asked once."""
    has_turn = state.status in ("starting", "running") and not state.closing
    if not has_turn or wish.kind in ("abort", "interrupt"):
        return None
    return state.deadline_at or wish.deadline_at


def _in_status(state: AgentState, status: AgentStatus) -> AgentState:
    """A turn that begins knows nothing of the one before; one that has ended leaves no interrupt behind
    (interrupts-and-peers 16). What an agent was told before its first turn it hears in that one, and a
    steer that it was given between two turns in the second."""
    if state.status == "closed":
        return state
    if state.status == "starting" and status == "running":
        return attrs.evolve(state, status=status)
    begins = status == "running"
    steer = state.pending if begins and state.is_terminal else None
    if steer is not None and steer.kind != "steer":
        steer = None
    interrupted = None if begins else state.interrupted
    return attrs.evolve(
        state, status=status, pending=steer, winding=None, deadline_at=None, interrupted=interrupted
    )


def replay(events: Iterable[Any]) -> AgentState | None:
    """An agent from all events of its session; None for a session that is no agent."""
    state: AgentState | None = None
    for event in events:
        if isinstance(event, AgentSpawned):
            state = spawned(event)
        elif state is not None:
            state = apply(state, event)
    return state


def in_order(agents: Iterable[AgentState]) -> list[AgentState]:
    """By name, then id: the order of every list (coordination 20)."""
    return sorted(agents, key=lambda agent: (agent.name, agent.agent_id))


def has_ended(agent: AgentState, *, is_asked: bool) -> bool:
    """Whether an agent is through with all that it was to do. One of which a turn `is_asked` for that has not
    begun (since there is no room for it, say) is as little as one whose turn runs."""
    is_over = agent.status == "closed" or agent.closing
    return agent.is_terminal and (is_over or not is_asked)


def settled(agent: AgentState, *, is_asked: bool, is_told: bool) -> bool:
    """Whether a wait without ids has nothing more to expect of an agent: it is closed, or has ended, and
    its parent `is_told` of it already."""
    return agent.status == "closed" or (has_ended(agent, is_asked=is_asked) and is_told)
