"""What the demo of agents has seen of their tree: each thing told once, and printed as it comes."""

from collections import defaultdict

import anyio
from attrs import define, field
from rich.console import Console

from callboard_client import Client
from callboard_rpc.common import SessionId, TextContent
from callboard_rpc.events import (
    AgentAsked,
    AgentInterruptConsumed,
    AgentInterrupted,
    AgentMessageQueued,
    AgentReplied,
    AgentReportCreated,
    AgentSpawned,
    ApprovalDecision,
    Author,
    Event,
    Message,
    ToolCall,
    ToolResult,
    TurnFinished,
)
from callboard_rpc.streams import Scope

from .exits import CommandError
from .terminal import line
from .wording import OUTCOME_WORDS

STEP_LIMIT_S = 60.0
"""A step takes seconds, also on a slow machine."""

_STYLES = {"lead": "bold cyan", "stock": "green", "docs": "yellow", "numbers": "magenta"}
_FAILURES = frozenset({"error", "denied", "timed_out"})
_SAID_BY_EVENTS = frozenset({"message", "reply"})
"""Calls of which an event tells that has the text, too."""
_REASON = 240


@define(kw_only=True)
class Seen:
    """Follows the tree of `root`; `until` waits for a step of it, by its name."""

    console: Console
    root: SessionId
    step_limit_s: float = STEP_LIMIT_S
    ids: dict[str, SessionId] = field(factory=dict[str, SessionId])
    _names: dict[str, str] = field(factory=dict[str, str])
    _told: defaultdict[str, anyio.Event] = field(factory=lambda: defaultdict(anyio.Event))
    _over: anyio.Event = field(factory=anyio.Event)
    """The lead has ended its turn, and not because its server was killed."""
    _asked: dict[str, str] = field(factory=dict[str, str])
    _calls: dict[str, str] = field(factory=dict[str, str])
    _failed: str | None = None
    _waits: int = 0

    def __attrs_post_init__(self) -> None:
        self._names[self.root] = "lead"
        self.ids["lead"] = self.root

    async def until(self, step: str) -> None:
        """Returns when the step has come. Raises `CommandError` when it does not in time, or cannot any
        more."""
        told = self._told[step]
        with anyio.move_on_after(self.step_limit_s):
            async with anyio.create_task_group() as tasks:
                for event in (told, self._over):
                    tasks.start_soon(_cancel_after, event, tasks.cancel_scope)
        if told.is_set():
            return
        why = (
            "the lead has ended its turn before"
            if self._over.is_set()
            else f"this did not come within {self.step_limit_s:g} s"
        )
        raise CommandError(
            f"the demo cannot go on: {why}: {step!r}",
            hint=None if self._failed is None else f"The last call that failed: {self._failed}",
        )

    def say(self, text: str) -> None:
        """What the person does."""
        self.console.print(line((f"        {text}", "bold red")), soft_wrap=True)

    async def follow(self, client: Client) -> None:
        scope = Scope(kind="tree", id=self.root)
        async with client.events(scope, "start", deltas=False) as stream:
            async for item in stream:
                if isinstance(item, Event):
                    self.take(item)

    def take(self, event: Event) -> None:
        """The next event of the tree."""
        name = self._names.get(event.session_id, "?")
        match event.data:
            case AgentSpawned(name=spawned):
                self._names[event.session_id] = spawned
                self.ids[spawned] = event.session_id
            case Message() as message if message.delivered is not None:
                self._tell(f"{name} heard of {self._speaker(message.author)}")
            case Message() as message if message.author.kind == "agent":
                self._said(name, message)
            case ToolCall() as call:
                self._called(name, call)
            case ToolResult() as result if result.status in _FAILURES:
                self._call_failed(name, result)
            case ApprovalDecision(call_id=call_id, resolution=resolution) if call_id in self._asked:
                ran = self._asked.pop(call_id)
                if resolution.outcome == "allowed":
                    self._tell(ran)
            case AgentAsked(text=text):
                self._print(name, f"asks its lead: {text}")
            case AgentReplied(text=text, outcome=outcome):
                self._print(name, f"gets an answer: {text or outcome}")
            case AgentMessageQueued(kind="sibling", author=author, text=text):
                self._print(name, f"gets a message of {self._speaker(author)}: {text}")
            case AgentInterruptConsumed(kind="steer"):
                self._print(name, "reads the correction")
            case AgentInterrupted(reason=reason, kind=kind):
                if kind is None:  # of the others there is a report
                    self._print(name, f"is interrupted: {reason}")
                self._tell(f"{name} was interrupted")
            case AgentReportCreated(report=report) if report.status == "completed":
                self._print(name, f"reports to the lead: {report.summary}")
            case AgentReportCreated(report=report):
                what = report.reason or report.summary
                self._print(name, f"reports to the lead that it {_ENDED[report.status]}: {what}")
            case TurnFinished() as end:
                self._ended(name, event, end)
            case _:
                pass

    def _said(self, name: str, message: Message) -> None:
        said = " ".join(b.text for b in message.content if isinstance(b, TextContent))
        last = all(isinstance(block, TextContent) for block in message.content)
        if said.strip() and not (last and name != "lead"):  # an agent's last words are its report
            self._print(name, said)

    def _called(self, name: str, call: ToolCall) -> None:
        self._calls[call.call_id] = call.title
        if call.name not in _SAID_BY_EVENTS:
            self._print(name, f"▸ {call.title}")
        for script in ("build.py compile", "build.py publish"):
            if call.name == "run_command" and script in call.title:
                # it runs as soon as it was allowed to
                self._asked[call.call_id] = f"{name} ran {script}"
        if call.name == "list_files" and name == "numbers":
            self._tell("numbers looked around")
        if call.name == "wait_agents":
            self._waits += 1
            if self._waits == 4:  # after the question, after stock, after numbers
                self._tell("lead waits for docs")

    def _call_failed(self, name: str, result: ToolResult) -> None:
        title = self._calls.get(result.call_id, result.name)
        status = result.status.replace("_", " ")
        reason = " ".join(result.text.split())[:_REASON]
        self._print(name, f"✗ {title}: {status}: {reason}")
        self._failed = f"{name} ▸ {title}: {status}: {reason}"

    def _ended(self, name: str, event: Event, end: TurnFinished) -> None:
        self._tell(f"{name} ended {end.outcome}")
        if end.error is not None:
            self._print(name, f"✗ {OUTCOME_WORDS[end.outcome][0]}: {end.error.message}")
            self._failed = f"{name}: {end.error.message}"
        if event.session_id == self.root and end.outcome != "interrupted":
            self._over.set()

    def _speaker(self, author: Author) -> str:
        """The session in front is called after its profile, and the lead here."""
        return self._names.get(author.id or "", author.name)

    def _tell(self, step: str) -> None:
        self._told[step].set()

    def _print(self, name: str, text: str) -> None:
        words = " ".join(text.split())
        self.console.print(line((f"{name:>7} ", _STYLES.get(name, "")), words), soft_wrap=True)


_ENDED = {"aborted": "was stopped", "failed": "failed"}


async def _cancel_after(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()
