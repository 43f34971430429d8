"""The updates that the records of a session make, one after the other. No I/O.

Who has said something to the agent is shown where a turn takes it in, not where it arrived: so a prompt that
came while the agent was busy stands behind the answer that it waited for, live as in what is replayed.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import attrs
from attrs import define, field

from callboard_rpc import events

from ...log.record import Record
from ..contract import tool_calls as acp
from ..contract import updates
from ..contract.server import ClientCapabilities
from . import tools
from .blocks import text_block, to_blocks
from .displays import Display, Way, display_of, ended_there, folder_of
from .streams import Printed, Spoken, Streams
from .texts import cut, heading, pieces

_MOST_ENTRIES: Final = 200
# agents of other makers have others, which a client need not know
_PRIORITIES: Final = frozenset({"high", "medium", "low"})
_STATUSES: Final = frozenset({"pending", "in_progress", "completed"})
_SEVERITIES: Final = frozenset({"info", "warning", "error"})
_NOTICE_CHARS: Final = 2_000


@define
class Story:
    """What a client was told of a session. `own` knows the prompts that are the client's: it has them.

    Whoever replays has no `streams`, and `results` of calls that have ended already, by their ids.
    """

    session_id: str
    capabilities: ClientCapabilities
    streams: Streams = field(factory=Streams)
    own: Callable[[str], bool] = lambda _: False
    results: dict[str, events.ToolResult] = field(factory=dict[str, events.ToolResult])
    way: Way = "text"
    """How commands are shown that begin from now on."""
    cwd: str = ""
    _held: dict[int, events.Message] = field(factory=dict[int, events.Message])
    _calls: dict[str, acp.ToolKind] = field(factory=dict[str, acp.ToolKind])
    """The calls that were told of and have not ended."""
    _displays: dict[str, Display] = field(factory=dict[str, Display])
    _terminals: dict[str, str] = field(factory=dict[str, str])
    """The client's terminals in which calls run."""
    _unshown: set[str] = field(factory=set[str])
    """The calls of those of which the client was not told that they do."""

    def knows_call(self, call_id: str) -> bool:
        return call_id in self._calls

    def note_call(self, call: updates.ToolCall) -> None:
        """The client was told of a call in another way than by its record."""
        self._calls[call.tool_call_id] = call.kind or "other"

    def hold(self, seq: int, prompt: events.Message) -> None:
        """Somebody's prompt waits that is told of when a turn takes it in."""
        self._held[seq] = prompt

    def opened_terminal(self, call_id: str, terminal_id: str) -> None:
        """A call runs in a terminal of the client's."""
        self._terminals[call_id] = terminal_id
        self._unshown.add(call_id)

    def terminals(self) -> Iterator[updates.ToolCallChanged]:
        """Which calls run in terminals of the client's, as far as it knows the calls and was not told."""
        for call_id in [each for each in self._unshown if each in self._calls]:
            self._unshown.discard(call_id)
            yield updates.ToolCallChanged(
                tool_call_id=call_id,
                status="in_progress",
                content=(acp.Terminal(terminal_id=self._terminals[call_id]),),
            )

    def printed(self, redact: Callable[[str], str]) -> Iterator[updates.SessionUpdate]:
        """What running commands have printed since."""
        for output in self.streams.outputs():
            call_id = output.call_id
            display = self._displays.get(call_id)
            if display is not None:
                update = display.printed(redact(output.fresh))
                if update is not None:
                    yield update
            elif call_id in self._calls and call_id not in self._terminals:
                yield tools.printed(call_id, redact(output.tail))

    def after(self, record: Record, value: Any) -> Iterator[updates.SessionUpdate]:
        """What a record brings; `value` is its data, whole."""
        if record.session_id != self.session_id:
            yield from self._below(value)
            return
        match value:
            case events.Message(from_outside=True):
                self.hold(record.seq, value)
            case events.Message():
                yield from self._said(value)
            case events.PromptUpdated(seq=seq, content=content) if seq in self._held:
                self._held[seq] = attrs.evolve(self._held[seq], content=content)
            case events.TriggersDropped(seqs=seqs):
                for seq in seqs:
                    self._held.pop(seq, None)
            case events.Ack(admits=admits):
                for seq in admits:
                    message = self._held.pop(seq, None)
                    if message is not None and not self.own(message.client_message_id or ""):
                        yield from _heard(message)
            case events.ToolCall():
                yield from self._called(value)
            case events.ApprovalRequest(approval=approval) if approval.call_id in self._calls:
                content = tools.subject_content(approval.subject)
                if content:
                    yield updates.ToolCallChanged(tool_call_id=approval.call_id, content=content)
            case events.ApprovalDecision(call_id=call_id, resolution=resolution):
                if call_id in self._calls and resolution.outcome == "allowed":
                    display = self._displays.get(call_id)
                    yield updates.ToolCallChanged(
                        tool_call_id=call_id,
                        status="in_progress",
                        content=None if display is None else display.content,
                    )
            case events.ToolResult():
                yield from self._ended(value)
            case events.PlanUpdated(entries=entries):
                yield _plan(entries)
            case events.Summary():
                yield from self._summarised(record, value)
            case events.Notice(severity=severity, title=title, description=description):
                yield from self.notice(severity, title, description)
            case events.ModelRetried():
                yield from self.notice(
                    "warning",
                    "The model did not answer; it is asked again",
                    value.error.message,
                )
            case events.TurnFinished(turn_id=turn_id):
                self.streams.turn_over(turn_id)
            case _:
                pass

    def notice(
        self, severity: str, title: str, description: str | None = None
    ) -> Iterator[updates.SessionUpdate]:
        """Something for the person, if the client can show it."""
        session = self.capabilities.session
        if session is not None and session.notices is not None:
            yield updates.Notice(
                severity=severity if severity in _SEVERITIES else "info",  # pyright: ignore[reportArgumentType]
                title=heading(title, _NOTICE_CHARS),
                description=None if description is None else cut(description),
            )

    def _below(self, value: Any) -> Iterator[updates.SessionUpdate]:
        """Of agents below, only calls that the person was asked about are told."""
        match value:
            case events.ApprovalDecision(call_id=call_id, resolution=resolution):
                if call_id in self._calls and resolution.outcome == "allowed":
                    yield updates.ToolCallChanged(tool_call_id=call_id, status="in_progress")
            case events.ToolResult(call_id=call_id) if call_id in self._calls:
                yield from self._ended(value)
            case _:
                pass

    def _said(self, message: events.Message) -> Iterator[updates.SessionUpdate]:
        for kind, text in self.streams.rest(message):
            yield from spoken(message.message_id, kind, text)

    def _called(self, call: events.ToolCall) -> Iterator[updates.SessionUpdate]:
        started = tools.begun(call)
        result = self.results.pop(call.call_id, None)
        if result is None:
            self._calls[call.call_id] = call.kind
            display = display_of(call) if self.way == "display" else None
            if display is not None:
                self._displays[call.call_id] = display
                started = display.begun(started, folder_of(call, self.cwd))
            yield started
            return
        over = tools.ended(result, call.kind)
        yield attrs.evolve(
            started,
            status=over.status,
            content=over.content,
            locations=over.locations or started.locations,
            raw_output=over.raw_output,
        )

    def _ended(self, result: events.ToolResult) -> Iterator[updates.SessionUpdate]:
        kind = self._calls.pop(result.call_id, None)
        terminal_id = self._terminals.pop(result.call_id, None)
        display = self._displays.pop(result.call_id, None)
        output = self.streams.output(result.call_id)
        self._unshown.discard(result.call_id)
        self.streams.call_over(result.call_id)
        if display is not None:
            yield from _ended_in_display(display, output, result)
        elif kind is not None and terminal_id is not None:
            yield ended_there(result, terminal_id)
        elif kind is not None:
            yield tools.ended(result, kind)

    def _summarised(
        self, record: Record, summary: events.Summary
    ) -> Iterator[updates.SessionUpdate]:
        session = self.capabilities.session
        if session is None or session.compaction is None:
            return
        yield updates.CompactionUpdate(
            compaction_id=record.event_id,
            status="completed",
            summary=(text_block(cut(summary.text)),),
        )


def _ended_in_display(
    display: Display, output: Printed | None, result: events.ToolResult
) -> Iterator[updates.SessionUpdate]:
    last = None if output is None else display.printed(output.fresh)
    rest, over = display.ended(result, heard=output is not None)
    for update in (last, rest, over):
        if update is not None:
            yield update


def spoken(message_id: str, kind: Spoken, text: str) -> Iterator[updates.SessionUpdate]:
    """Text of an agent's message, in pieces. Thoughts are a message of their own to a client that tells
    messages by their ids."""
    for piece in pieces(text):
        if kind == "thought":
            yield updates.AgentThoughtChunk(
                content=text_block(piece), message_id=f"{message_id}-thought"
            )
        else:
            yield updates.AgentMessageChunk(content=text_block(piece), message_id=message_id)


def _heard(message: events.Message) -> Iterator[updates.SessionUpdate]:
    for block in to_blocks(message.content):
        yield updates.UserMessageChunk(content=block, message_id=message.message_id)


def _plan(entries: Sequence[events.PlanEntry]) -> updates.Plan:
    return updates.Plan(
        entries=tuple(
            updates.PlanEntry(
                content=heading(entry.content, 200),
                priority=entry.priority if entry.priority in _PRIORITIES else "medium",
                status=entry.status if entry.status in _STATUSES else "pending",
            )
            for entry in entries[:_MOST_ENTRIES]
        )
    )
