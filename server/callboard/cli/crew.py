"""What happens to the agents below the session in front, a line for each thing."""

from collections.abc import Mapping

from attrs import define, field
from rich.text import Text

from callboard_client.terminal_text import clean_line
from callboard_rpc.agents import Agent
from callboard_rpc.common import SessionId
from callboard_rpc.events import (
    AgentAsked,
    AgentClosed,
    AgentInterruptConsumed,
    AgentInterrupted,
    AgentInterruptRequested,
    AgentMessageQueued,
    AgentReplied,
    AgentSpawned,
    AskOutcome,
    Author,
    Directive,
    Event,
    InterruptOrigin,
    TurnFinished,
)

from .terminal import line
from .wording import OUTCOME_WORDS, duration, usage

_TEXT = 200
"""Characters of a text that are shown."""
_MARKS = {"completed": "✓", "failed": "✗"}
_BY: Mapping[InterruptOrigin, str] = {
    "user": "a person",
    "parent": "its parent",
    "clock": "the server",
}
_UNANSWERED: Mapping[AskOutcome, str] = {
    "timed_out": "nobody replied in time",
    "cancelled": "it need not wait any more",
    "parent_gone": "its parent is gone",
    "parent_restarted": "the server of its parent is gone",
}
_BRIEF_SEQ = 2


@define(kw_only=True)
class Crew:
    """Knows agents by what they are called below `root`: ``one``, and ``one › two`` for one that it has
    started itself."""

    root: SessionId
    _labels: dict[str, str] = field(factory=dict[str, str])
    _corrections: set[str] = field(factory=set[str])
    """Agents that are to be corrected, and have not read it yet."""

    def add(self, agent: Agent) -> None:
        """One that was there before what is shown."""
        self._labels[agent.agent_id] = " › ".join(clean_line(step.name, 40) for step in agent.path)

    def label(self, session_id: SessionId) -> str:
        """What an agent is called; nothing for the session in front, or one that is not known."""
        return "" if session_id == self.root else self._labels.get(session_id, "")

    def speaker(self, author: Author) -> str:
        """Who says something. The session in front is called after its profile in the log."""
        if author.kind != "agent" or author.id is None:
            return author.name
        if author.id == self.root:
            return "the lead"
        return self.label(SessionId(author.id)) or author.name

    def tell(self, event: Event) -> Text | None:
        """The line for an event, where it tells of an agent as such."""
        name = self.label(event.session_id) or "this agent"
        match event.data:
            case AgentSpawned() as spawned:
                return self._spawned(event, spawned)
            case Directive(text=text) if event.seq == _BRIEF_SEQ and event.session_id != self.root:
                return _line("⤷", name, "magenta", text)
            case AgentMessageQueued(author=author, text=text):
                return _line(
                    "→", name, "magenta", text, f" ← {clean_line(self.speaker(author), 80)}"
                )
            case AgentInterruptRequested() as wish:
                return self._interrupted(event, name, wish)
            case AgentInterruptConsumed():
                self._corrections.discard(event.session_id)
                return None
            case AgentInterrupted(reason=reason) if event.turn_id is None:
                return _line("■", name, "yellow", reason, " does not begin")
            case AgentAsked(text=text, expects_reply=False):
                return _line("?", name, "magenta", text, " says")
            case AgentAsked(text=text, ask_id=ask_id):
                asked = _line("?", name, "magenta", text, " asks")
                way = f'    callboard agents reply {clean_line(ask_id, 40)} "..." answers for its parent'
                return asked.append("\n").append_text(line((way, "dim")))
            case AgentReplied(outcome=outcome, text=text):
                what = " is answered" if outcome == "replied" else " is not answered"
                return _line("!", name, "magenta", text or _UNANSWERED.get(outcome), what)
            case AgentClosed():
                return _line("■", name, "dim", None, " is closed")
            case TurnFinished() as end if event.session_id != self.root:
                return self._ended(name, end)
            case _:
                return None

    def _spawned(self, event: Event, spawned: AgentSpawned) -> None:
        parent = spawned.session.parent_id
        above = "" if parent is None else self.label(parent)
        name = clean_line(spawned.name, 40)
        self._labels[event.session_id] = f"{above} › {name}" if above else name

    def _interrupted(self, event: Event, name: str, wish: AgentInterruptRequested) -> Text:
        verb = {"steer": "corrected", "cancel": "told to stop"}.get(wish.kind, "stopped")
        by = f" is {verb} by {_BY.get(wish.origin, wish.origin)}"
        told = _line("↯", name, "yellow", wish.reason, by)
        if event.session_id in self._corrections:  # only one waits until the agent reads it
            told.append("\n").append_text(
                line(("    in place of the correction before, which it has not read", "dim"))
            )
        self._corrections.discard(event.session_id)
        if wish.kind == "steer":
            self._corrections.add(event.session_id)
        return told

    def _ended(self, name: str, end: TurnFinished) -> Text:
        words, style = OUTCOME_WORDS.get(end.outcome, (end.outcome, "yellow"))
        took = None if end.duration_ms is None else duration(end.duration_ms)
        rest = " · ".join(part for part in (took, usage(end.usage)) if part)
        mark = _MARKS.get(end.outcome, "■")
        shown = line((f"{mark} {name} ", style), (words, style))
        return shown.append_text(line((f" · {rest}", "dim"))) if rest else shown


def _line(mark: str, name: str, style: str, text: str | None, what: str = "") -> Text:
    shown = line((f"{mark} {name}{what}", style))
    return shown if not text else shown.append_text(line((f": {clean_line(text, _TEXT)}", "dim")))
