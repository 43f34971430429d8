"""Shows a session as it happens."""

import anyio
from attrs import Factory, define, field
from rich.console import Console
from rich.live import Live

from callboard_client import CaughtUp, Delta, StreamItem
from callboard_client.terminal_text import TerminalText
from callboard_rpc.approvals import Resolution
from callboard_rpc.common import SessionId, TextContent
from callboard_rpc.events import (
    ApprovalDecision,
    ApprovalRequest,
    CancelRequested,
    Delivered,
    DeliveriesDropped,
    Directive,
    Error,
    Event,
    MemberAdded,
    MemberRemoved,
    Message,
    ModeChanged,
    ModelChanged,
    ModelRetried,
    Notice,
    PlanUpdated,
    PromptUpdated,
    RoomHostChanged,
    ScheduleFired,
    SessionCreated,
    SessionDeleted,
    SessionForked,
    SessionRewound,
    Summary,
    ToolCall,
    ToolResult,
    TriggersDropped,
    TurnFinished,
    TurnParked,
    TurnStarted,
    UnknownData,
    WakeSuppressed,
)

from . import cards, peers_seen
from .board_events import BoardNews
from .crew import Crew
from .terminal import block, line
from .wording import OUTCOME_WORDS, duration, usage

_OF_AGENTS = frozenset({"report", "question", "update", "continue", "information", "sibling"})
"""Deliveries of which the event of their sender tells."""
_FAILURES = frozenset({"error", "denied", "timed_out"})
"""Results of an agent's calls whose reason is told; what else it reads is its own concern."""
_TOLD_ALREADY = "<agent-interrupt"
"""How a directive begins whose wish was an event."""


@define
class _Streamed:
    """A message of which deltas were shown."""

    received: str = ""
    hole: bool = False
    filter: TerminalText = field(factory=TerminalText)


@define(kw_only=True)
class Presenter:
    """Prints items in order: answers as they stream, a line for each tool call when it has ended.

    `root` is the session in front; what happens in its children is set off. `hidden_seq` is the seq
    of a prompt that need not be repeated. On a terminal, running calls show in a line that goes
    away. `details` also tells of what is no concern of somebody who only waits for the answer.
    `open_line` says that the cursor is behind something, so that the next line needs a new one.
    """

    console: Console
    root: SessionId
    hidden_seq: int | None = None
    details: bool = False
    model: str | None = None
    open_line: bool = False
    members: tuple[str, ...] = ()
    """The agents of a room; where there are several, it is told whose turn it is."""
    _told_turns: set[str] = field(factory=set[str])
    """Turns of a room of which it was told whose they are."""
    _held: list[Delta] = field(factory=list[Delta])
    """What streams of a turn of which it was not told yet: events come a little later."""
    _streamed: dict[tuple[str, str], _Streamed] = field(factory=dict[tuple[str, str], _Streamed])
    _calls: dict[str, ToolCall] = field(factory=dict[str, ToolCall])
    _running: dict[str, str] = field(factory=dict[str, str])
    _shown_diffs: set[str] = field(factory=set[str])
    _answered: set[str] = field(factory=set[str])
    _refused: set[str] = field(factory=set[str])
    _requested: dict[str, anyio.Event] = field(factory=dict[str, anyio.Event])
    _open_kind: str | None = None
    _live: Live | None = None
    _last_error: str | None = None
    crew: Crew = field(
        init=False, default=Factory(lambda self: Crew(root=self.root), takes_self=True)
    )
    """The agents below `root`, by their names."""
    board: BoardNews = field(
        init=False, default=Factory(lambda self: BoardNews(crew=self.crew), takes_self=True)
    )
    """The tasks that they share, by their titles."""

    def show(self, item: StreamItem) -> None:
        match item:
            case Delta():
                if item.session_id == self.root:
                    self._delta(item)
            case CaughtUp():
                return
            case Event():
                self._event(item)

    def note_diff(self, call_id: str) -> None:
        """The diff of this call has been shown already, with its question."""
        self._shown_diffs.add(call_id)

    async def until_requested(self, approval_id: str) -> None:
        """Returns when everything that came before this approval has been shown."""
        await self._requested.setdefault(approval_id, anyio.Event()).wait()

    def note_call(self, call: ToolCall) -> None:
        """A call of before what is shown, whose result is yet to come."""
        self._calls[call.call_id] = call

    def note_answer(self, approval_id: str) -> None:
        """How this approval was answered has been shown already, where it was asked."""
        self._answered.add(approval_id)

    def note_refusal(self, call_id: str) -> None:
        """Why this call was refused has been shown already, where it was asked."""
        self._refused.add(call_id)

    def settle(self) -> None:
        """Ends what is half shown, so that something else can be printed."""
        if self._live is not None:
            self._live.stop()
            self._live = None
        if self.open_line:
            self.console.out("")
        self.open_line, self._open_kind = False, None

    def say(self, *parts: str | tuple[str, str]) -> None:
        """A line of its own."""
        self.settle()
        self.console.print(line(*parts), soft_wrap=True)

    # --- streaming --------------------------------------------------------------------------------

    def _delta(self, delta: Delta) -> None:
        if len(self.members) > 1 and delta.turn_id not in self._told_turns:
            self._held.append(delta)
            return
        if delta.kind == "tool_output":
            self._output(delta)
            return
        key = (delta.message_id, delta.kind)
        streamed = self._streamed.setdefault(key, _Streamed())
        streamed.received += delta.text
        streamed.hole |= delta.hole
        self._write(delta.kind, ("…" if delta.hole else "") + streamed.filter.feed(delta.text))

    def _output(self, delta: Delta) -> None:
        """The last line that running commands printed, beside what runs."""
        lines = delta.text.rstrip().splitlines()
        if self._live is not None and lines:
            self._live.update(
                line(("⋯ ", "cyan"), self._titles(), (f"  {lines[-1]}", "dim")), refresh=True
            )

    def _write(self, kind: str, text: str) -> None:
        if not text:
            return
        if kind != self._open_kind:
            self.settle()
            text = text.lstrip("\n")
        self._stop_live()
        self.console.out(text, style="dim italic" if kind == "thought" else None, end="")
        self._open_kind = kind
        self.open_line = not text.endswith("\n")

    # --- events -----------------------------------------------------------------------------------

    def _event(self, event: Event) -> None:
        told = self.crew.tell(event) or self.board.tell(event) or peers_seen.tell(event)
        if told is not None:
            self._lines([told])
            return
        own = event.session_id == self.root
        match event.data:
            case Message() as message:
                self._message(event, message, own=own)
            case Directive(text=text) if text.startswith(_TOLD_ALREADY) and not own:
                return
            case Directive() as directive if directive.is_group_message:
                return  # it was told when it was written
            case Directive(author=author, text=text):
                self.say((f"» {self.crew.speaker(author)}: ", "magenta"), text)
            case ScheduleFired(name=name, prompt=prompt):
                self.say((f"◷ {name}: ", "magenta"), prompt)
            case ToolCall() as call:
                self._calls[call.call_id] = call
                title = call.title or call.name
                label = self.crew.label(event.session_id)
                self._running[call.call_id] = f"{label}: {title}" if label else title
                self._show_running()
            case ToolResult() as result:
                self._result(event, result, own=own)
            case PlanUpdated() as update:
                self._lines(cards.plan(update))
            case Error(error=failure):
                label = self.crew.label(event.session_id)
                self._error(f"{label}: {failure.message}" if label else failure.message)
            case Notice() as notice:
                self._lines(cards.notice(notice, self.crew.label(event.session_id)))
            case TurnStarted(model=model, mode=mode, profile=profile):
                self.model = model if own else self.model
                if own and event.turn_id is not None and profile is not None:
                    self._speaks(event.turn_id, profile)
                if self.details:
                    self.say((f"● turn with {model}, mode {mode}", "dim"))
            case TurnFinished() as end:
                self._finished(end, own=own)
            case TurnParked():
                if self.details:
                    self.say(("the turn waits for an approval", "yellow"))
            case ApprovalRequest(approval=approval):
                self._requested.setdefault(approval.approval_id, anyio.Event()).set()
                if self.details:
                    self._lines(cards.question(approval))
            case ApprovalDecision() as decision:
                self._decision(decision)
            case ModelRetried(attempt=attempt, delay_ms=delay_ms, error=failure):
                self.say(
                    (f"the model did not answer ({failure.message}); ", "yellow"),
                    (f"attempt {attempt + 1} in {duration(delay_ms)}", "yellow"),
                )
            case Summary():
                self.say(("the conversation so far was summarised", "dim"))
            case CancelRequested():
                if self.details:
                    self.say(("cancelling", "yellow"))
            case TriggersDropped(seqs=seqs, reason=reason) if seqs:
                self.say((f"waiting prompts were dropped: {reason}", "yellow"))
            case DeliveriesDropped(deliveries=deliveries, reason=reason):
                self.say((f"{len(deliveries)} deliveries were dropped: {reason}", "yellow"))
            case PromptUpdated():
                self.say(("a waiting prompt was changed", "dim"))
            case SessionForked(forked_from=origin):
                self.say((f"── taken over from {origin.session_id} until here ──", "dim"))
            case SessionRewound(turns=turns):
                gone = "turn counts" if turns == 1 else f"{turns} turns count"
                self.say((f"↶ rewound: the last {gone} no longer", "yellow"))
            case SessionDeleted():
                self.say(("the session was deleted", "yellow"))
            case ModeChanged(mode=mode):
                self.say((f"mode is now {mode}", "dim"))
            case ModelChanged(model=model):
                self.say((f"model is now {model or 'the default'}", "dim"))
            case SessionCreated(members=members) if own:
                self.members = members
            case MemberAdded() | MemberRemoved() | RoomHostChanged() | WakeSuppressed() if own:
                self._room(event.data)
            case UnknownData(type=kind):
                if self.details:
                    self.say((f"({kind})", "dim"))
            case _:
                return

    def _speaks(self, turn_id: str, name: str) -> None:
        """Tells, once, whose turn it is, where there are several whose it may be."""
        held, self._held = self._held, []
        if len(self.members) <= 1 or turn_id in self._told_turns:
            return
        self._told_turns.add(turn_id)
        self.say((f"{name}:", "bold magenta"))
        for delta in held:
            if delta.turn_id == turn_id:
                self._delta(delta)

    def _room(self, event: MemberAdded | MemberRemoved | RoomHostChanged | WakeSuppressed) -> None:
        match event:
            case MemberAdded(name=name):
                self.members = tuple(dict.fromkeys((*self.members, name)))
                self.say((f"{name} takes part", "dim"))
            case MemberRemoved(name=name):
                self.members = tuple(each for each in self.members if each != name)
                self.say((f"{name} takes no part any more", "dim"))
            case RoomHostChanged(name=name):
                self.say((f"{name or 'the first member'} answers when nobody is addressed", "dim"))
            case WakeSuppressed(name=name, burst=burst):
                self.say(
                    (f"{name} was not woken: {burst} messages of agents in a row; ", "yellow"),
                    ("write something, and they go on", "yellow"),
                )

    def _message(self, event: Event, message: Message, *, own: bool) -> None:
        if message.delivered is not None and message.delivered.kind in _OF_AGENTS:
            self._delivery(event, message, message.delivered)
            return
        if message.from_outside:
            if event.seq != self.hidden_seq or not own:
                self.settle()
                self.console.print(block(f"› {_text(message)}", "bold blue"), soft_wrap=True)
            return
        if own and event.turn_id is not None:
            self._speaks(event.turn_id, message.author.name)
        text = _text(message)
        if not own:
            if text:
                name = self.crew.label(event.session_id) or message.author.name
                self.say((f"  {name}: ", "magenta"), (text, "dim"))
            return
        streamed = self._streamed.pop((message.message_id, "answer"), None)
        self._streamed.pop((message.message_id, "thought"), None)
        if streamed is None:
            self._write("answer", TerminalText().feed(text))
        elif text.startswith(streamed.received) and not streamed.hole:
            rest = streamed.filter.feed(text[len(streamed.received) :])
            self._write("answer", rest + streamed.filter.finish())
        else:
            self.settle()
            self._write("answer", TerminalText().feed(text))
        self.settle()
        if message.partial:
            self.say(("(cut off)", "yellow"))

    def _delivery(self, event: Event, message: Message, delivered: Delivered) -> None:
        """What agents say is told when they say it. This is the other one taking it in."""
        if not message.joined and delivered.kind not in ("continue", "information", "sibling"):
            label = self.crew.label(event.session_id)
            what = f"the {delivered.kind} of {self.crew.speaker(message.author)}"
            self.say((f"← {label} takes in {what}" if label else f"← {what}", "dim"))

    def _result(self, event: Event, result: ToolResult, *, own: bool) -> None:
        call = self._calls.pop(result.call_id, None)
        self._running.pop(result.call_id, None)
        self.settle()
        has_event = self.board.has_told(event.session_id, call) or (
            call is not None and call.kind == "think"
        )
        if has_event and result.status == "ok":
            self._show_running()
            return  # what it changed is shown by its own event
        shown = cards.result_line(call, result)
        if not own:
            label = self.crew.label(event.session_id)
            shown = line(("  " + (f"{label} " if label else ""), "magenta")).append_text(shown)
        self.console.print(shown, soft_wrap=True)
        told = result.status == "denied" and result.call_id in self._refused
        if not told and (own or result.status in _FAILURES):
            fresh = own and result.call_id not in self._shown_diffs
            self._lines(cards.result_details(call, result, with_diff=fresh))
        self._show_running()

    def _decision(self, decision: ApprovalDecision) -> None:
        resolution = decision.resolution
        if decision.approval_id not in self._answered:
            self._resolution(resolution)
        if resolution.rule_id is not None:
            self._lines([cards.rule_line(resolution.rule_id)])

    def _resolution(self, resolution: Resolution) -> None:
        style = "green" if resolution.outcome == "allowed" else "yellow"
        by = resolution.by.name or resolution.by.id
        if resolution.by.kind == "policy" and not self.details:
            return
        feedback = f": {resolution.feedback}" if resolution.feedback else ""
        self.say((f"  {resolution.outcome} by {by}", style), feedback)

    def _finished(self, end: TurnFinished, *, own: bool) -> None:
        self.settle()
        if own and end.error is not None:
            self._error(end.error.message)
        if self.details and own:
            self.footer(end.outcome, end.duration_ms, usage(end.usage))

    def footer(self, outcome: str, duration_ms: int | None, spent: str) -> None:
        """How a turn ended, how long it took, what it cost, and on which model."""
        words, style = OUTCOME_WORDS.get(outcome, (outcome, "yellow"))
        took = None if duration_ms is None else duration(duration_ms)
        rest = " · ".join(part for part in (took, spent, self.model) if part)
        self.say((words, style), (f" · {rest}" if rest else "", "dim"))

    def _error(self, message: str) -> None:
        if message != self._last_error:
            self._last_error = message
            self.say(("✗ ", "bold red"), (message, "red"))

    # --- drawing ----------------------------------------------------------------------------------

    def _lines(self, lines: list[cards.Text]) -> None:
        if lines:
            self.settle()
        for each in lines:
            self.console.print(each, soft_wrap=True)

    def _titles(self) -> str:
        return ", ".join(self._running.values())

    def _show_running(self) -> None:
        """Shows what runs in a line that goes away, if this is a terminal."""
        if not self._running or not self.console.is_terminal:
            return
        self.settle()
        self._live = Live(
            line(("⋯ ", "cyan"), self._titles()),
            console=self.console,
            transient=True,
            auto_refresh=False,
        )
        self._live.start(refresh=True)

    def _stop_live(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


def _text(message: Message) -> str:
    return "".join(part.text for part in message.content if isinstance(part, TextContent))
