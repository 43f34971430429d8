"""What happens on the task board of the session in front, a line for each thing."""

from attrs import Factory, define, field
from rich.text import Text

from callboard_client.terminal_text import clean_line
from callboard_rpc.common import SessionId
from callboard_rpc.events import (
    CompletionChanged,
    Event,
    GroupMessageDelivered,
    GroupMessageQueued,
    GroupTaskClaimed,
    GroupTaskCreated,
    GroupTaskReleased,
    GroupTaskStatusChanged,
    ToolCall,
)
from callboard_rpc.groups import GroupTask

from .crew import Crew
from .terminal import line

_TEXT = 200
_TOOLS = frozenset({"group_task", "group_message", "complete"})
"""Tools whose calls change a board: of each that does, there is an event."""


@define(kw_only=True)
class BoardNews:
    """Knows tasks by their titles, and agents as `crew` does. `root` is the session whose board it is, which
    may be one above the session in front."""

    crew: Crew
    root: SessionId = field(default=Factory(lambda self: self.crew.root, takes_self=True))
    _titles: dict[str, str] = field(factory=dict[str, str])
    _acted: set[str] = field(factory=set[str])
    """Agents of which something was told since their last result."""

    def add(self, task: GroupTask) -> None:
        """One that was there before what is shown."""
        self._titles[task.task_id] = task.title

    def has_told(self, session_id: SessionId, call: ToolCall | None) -> bool:
        """Whether a line of the board tells already what this call has done, which ends now. An agent makes such
        calls one after the other; who follows an agent alone sees the call, and not the root's event."""
        acted = session_id in self._acted
        self._acted.discard(session_id)
        return acted and call is not None and call.name in _TOOLS

    def tell(self, event: Event) -> Text | None:
        """The line for an event, where it tells of the board or of what was said in the group."""
        told = self._tell(event)
        if told is not None and event.actor.kind == "agent":
            self._acted.add(event.actor.id)
        return told

    def _tell(self, event: Event) -> Text | None:
        match event.data:
            case GroupTaskCreated() as made:
                self._titles[made.task_id] = made.title
                return _line(
                    "☐", "task", "cyan", made.title, "" if made.required else " (optional)"
                )
            case GroupTaskClaimed(task_id=task_id, agent_id=agent_id):
                return self._of(task_id, "☐", "cyan", f"{self._who(event, agent_id)} claims")
            case GroupTaskReleased(task_id=task_id, agent_id=agent_id):
                return self._of(task_id, "☐", "yellow", f"{self._who(event, agent_id)} gives back")
            case GroupTaskStatusChanged() as change:
                return self._changed(event, change)
            case GroupMessageQueued(sender=sender, recipients=recipients, text=text) as message:
                whom = "the group" if message.to == "group" else self._named(*recipients[:1])
                return _line("✉", f"{self._who(event, sender)} to {whom}", "magenta", text)
            case GroupMessageDelivered(sender=sender):
                return self._read(event, sender)
            case CompletionChanged(summary=summary):
                who = self.crew.label(event.session_id) or "it"
                said = f"{who} says that all is implemented; nobody has verified it"
                return _line("☑", said, "green", summary)
            case _:
                return None

    def _read(self, event: Event, sender: SessionId) -> Text:
        what = f"what {self._named(sender)} has written"
        reader = self.crew.label(event.session_id)
        return line((f"← {reader} reads {what}" if reader else f"← {what}", "dim"))

    def _changed(self, event: Event, change: GroupTaskStatusChanged) -> Text:
        who = self._who(event, change.agent_id)
        if change.assignee is not None:
            whom = self._named(change.assignee)
            return self._of(change.task_id, "☐", "cyan", f"{who} gives to {whom}")
        match change.status:
            case "in_progress":
                return self._of(change.task_id, "◐", "cyan", f"{who} begins")
            case "completed":
                return self._of(change.task_id, "☑", "green", f"{who} completes", change.summary)
            case "blocked":
                return self._of(change.task_id, "■", "red", f"{who} cannot do", change.reason)
            case "cancelled":
                return self._of(change.task_id, "■", "yellow", f"{who} cancels", change.reason)
            case status:
                return self._of(change.task_id, "☐", "cyan", f"{who} makes {status}")

    def _of(self, task_id: str, mark: str, style: str, what: str, said: str | None = None) -> Text:
        """A line about a task; `said` is what was said of it with the change."""
        title = clean_line(self._titles.get(task_id, task_id), _TEXT)
        shown = _line(mark, what, style, title)
        return shown.append_text(line((f" ({clean_line(said, _TEXT)})", "dim"))) if said else shown

    def _who(self, event: Event, agent_id: SessionId) -> str:
        """Who acts: a person stands in the place of the root."""
        return "a person" if event.actor.kind == "client" else self._named(agent_id)

    def _named(self, agent_id: SessionId | None = None) -> str:
        if agent_id == self.root:
            return "the root"
        return (self.crew.label(agent_id) if agent_id else "") or "an agent"


def _line(mark: str, what: str, style: str, text: str, more: str = "") -> Text:
    shown = line((f"{mark} {what}{more}", style))
    return shown.append_text(line(f": {clean_line(text, _TEXT)}")) if text else shown
