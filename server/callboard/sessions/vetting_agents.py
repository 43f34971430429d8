"""What a file says of an agent, vetted, and what of it was open when the file was written.

A time here is one that the server's clock would go by, so it must be one of ours. Pure, like `vetting`.
"""

from typing import Any, Final

from attrs import define, field

from callboard_rpc.events import (
    AgentAsked,
    AgentClosed,
    AgentInterrupted,
    AgentInterruptRequested,
    AgentReplied,
    AgentReportCreated,
    AgentSpawned,
    AgentStatusChanged,
    SessionClosed,
    TriggersDropped,
)

from ..log.clock import is_ours
from .transfer import Refused, is_id

_OF_ROOTS: Final = frozenset(
    {
        "agent_group_created", "agent_group_member_joined", "group_task_created", "group_task_claimed",
        "group_task_released", "group_task_status_changed", "group_message_queued",
    }
)  # fmt: skip
"""A group is told in the log of its tree's root alone."""
_OF_OTHERS: Final = _OF_ROOTS | {"agent_spawned", "agent_notification_delivered"}
"""What is about agents, in a session that need not be one."""
_DEEPEST: Final = 64
_NAME_CHARS: Final = 64
_NAMES: Final = 64
_BRIEF: Final = 2
"""Where an agent's first directive stands."""


@define
class AgentVetting:
    """Follows the events of one session. Give it every one, in order."""

    agent_id: str | None = None
    """None for a session that is no agent."""
    at_work: bool = False
    """Whether it was running, or yet to begin."""
    open_asks: set[str] = field(factory=set[str])
    """Its questions that have no end yet."""
    _asks: set[str] = field(factory=set[str])
    _has_begun: bool = False

    def event(self, kind: str, value: Any, turn_id: str | None) -> None:
        """The next event; `turn_id` is the turn under way, if the event is of it. Raises `Refused`."""
        if kind.startswith("agent_") and kind not in _OF_OTHERS and self.agent_id is None:
            raise Refused("is about an agent, in a session that is none")
        if kind in _OF_ROOTS and self.agent_id is not None:
            raise Refused("is about a group, in the session of an agent; a root's log tells of it")
        self._has_begun = self._has_begun or kind == "turn_started"
        match value:
            case AgentSpawned():
                _check(value)
                self.agent_id, self.at_work = value.session.session_id, True
            case AgentStatusChanged(status=status):
                self.at_work = status in ("starting", "running")
            case AgentReportCreated(report=report):
                if report.agent_id != self.agent_id:
                    raise Refused("is the report of another agent")
                self.at_work = False
            case AgentInterrupted() | AgentClosed() | SessionClosed():
                self.at_work = False
            case TriggersDropped(seqs=seqs) if _BRIEF in seqs and not self._has_begun:
                self.at_work = False
            case AgentInterruptRequested(deadline_at=deadline_at):
                if deadline_at is not None and not is_ours(deadline_at):
                    raise Refused("interrupts an agent with a deadline that is no time")
            case AgentAsked() as asked:
                self._ask(asked, turn_id)
            case AgentReplied(ask_id=ask_id):
                self.open_asks.discard(ask_id)
            case _:
                pass

    def _ask(self, asked: AgentAsked, turn_id: str | None) -> None:
        if turn_id is None:
            raise Refused("asks a question outside of the agent's turns")
        if not is_id(asked.ask_id) or asked.ask_id in self._asks:
            raise Refused("asks a question whose id is none, or was used before")
        if asked.expires_at is not None and not is_ours(asked.expires_at):
            raise Refused("asks a question that expires at no time")
        self._asks.add(asked.ask_id)
        if asked.expects_reply:
            self.open_asks.add(asked.ask_id)


def _check(spawned: AgentSpawned) -> None:
    if not 0 <= spawned.depth_left <= _DEEPEST:
        raise Refused("lets an agent have agents to an impossible depth")
    if len(spawned.message_allow) > _NAMES:
        raise Refused("lets an agent write to too many others")
    if not all(map(_is_name, (spawned.name, *spawned.message_allow))):
        raise Refused("calls an agent what is no name")


def _is_name(text: str) -> bool:
    return 0 < len(text) <= _NAME_CHARS and text.isprintable() and text.strip() == text
