"""A parked turn that an answer given here has woken: this command's server runs it, and stays for it."""

from attrs import define, field

from callboard_client import Client, EventStream, RunOutcome, RunResult, StreamItem
from callboard_rpc.approvals import Approval
from callboard_rpc.common import Json, TurnId
from callboard_rpc.events import (
    ApprovalDecision,
    ApprovalRequest,
    Event,
    SessionDeleted,
    ToolCall,
    ToolResult,
    TurnFinished,
    TurnParked,
    TurnResumed,
)
from callboard_rpc.sessions import SessionResult
from callboard_rpc.streams import Scope

from .acquainting import acquaint
from .asking import Approver
from .exits import Exit
from .following import Follower
from .interrupts import Interrupts
from .keys import TerminalKeyboard, person_is_there
from .present import Presenter
from .staying import staying
from .terminal import open_console

_CALLS_WITHIN = 199
"""How many of the last events are looked through for the calls that wait."""


@define(kw_only=True)
class Resumed:
    """The rest of a turn, followed as a `Run` is. `begin` comes first.

    With `leaves_questions` it ends where the turn only waits for an answer: nobody is here to give it,
    and a turn that is left then is parked again. `open_calls` have no result yet; of those, `asked`
    wait for an answer.
    """

    client: Client
    approval: Approval
    stream: EventStream
    host_id: str
    leaves_questions: bool
    open_calls: set[str]
    asked: set[str]
    _result: RunResult | None = field(default=None, init=False)

    async def begin(self) -> bool:
        """Returns once somebody has taken the turn: whether that is this command's server."""
        while True:
            item, _ = await self.stream.receive()
            if not isinstance(item, Event):
                continue
            match item.data:
                case TurnResumed(turn_id=turn_id, host_id=host_id) if turn_id == self._turn_id:
                    return host_id == self.host_id
                case SessionDeleted():
                    return False
                case TurnFinished(turn_id=turn_id) if turn_id == self._turn_id:
                    return False
                case _:
                    pass

    @property
    def has_answered(self) -> bool:
        return self._result is not None

    async def receive(self) -> tuple[StreamItem, Json]:
        """The next item and its JSON; raises `StopAsyncIteration` after the last one."""
        if self._result is not None:
            raise StopAsyncIteration
        item, wire = await self.stream.receive()
        if isinstance(item, Event) and item.session_id == self.approval.session_id:
            self._observe(item)
        return item, wire

    async def result(self) -> RunResult:
        """How it ended, once `receive` has said that it has."""
        assert self._result is not None
        return self._result

    async def cancel(self, reason: str | None = None) -> None:
        """Asks the server to end the turn."""
        await self.client.sessions.cancel(
            self.approval.session_id, turn_id=self._turn_id, scope="turn", reason=reason
        )

    @property
    def _turn_id(self) -> TurnId:
        return self.approval.turn_id

    def _observe(self, event: Event) -> None:
        match event.data:
            case TurnFinished(turn_id=turn_id) as end if turn_id == self._turn_id:
                self._end(end.outcome, end)
            case TurnParked(turn_id=turn_id) if turn_id == self._turn_id:
                self._end("parked")
            case SessionDeleted():
                self._end("dropped")
            case ToolCall(call_id=call_id):
                self.open_calls.add(call_id)
            case ToolResult(call_id=call_id):
                self.open_calls.discard(call_id)
                self.asked.discard(call_id)
            case ApprovalRequest(approval=approval):
                self.asked.add(approval.call_id)
            case ApprovalDecision(call_id=call_id):
                self.asked.discard(call_id)
            case _:
                return
        waits_only = bool(self.asked) and self.open_calls <= self.asked
        if self.leaves_questions and waits_only and self._result is None:
            self._end("parked")

    def _end(self, outcome: RunOutcome, end: TurnFinished | None = None) -> None:
        self._result = RunResult(
            session_id=self.approval.session_id,
            outcome=outcome,
            turn_id=self._turn_id,
            final_text=end.final_text if end else None,
            error=end.error if end else None,
            usage=end.usage if end else None,
            duration_ms=end.duration_ms if end else None,
        )


async def see_through(
    client: Client, answered: Approval, before: SessionResult, interrupts: Interrupts
) -> Exit:
    """Follows the turn of an approval that was `answered` to its end, if this command's server runs it.
    `before` is its session as it was when it still waited."""
    host_id = (await client.server.info()).host_id
    after = (await client.sessions.get(answered.session_id)).session
    owned = after.owner is not None and after.owner.host_id == host_id
    if not owned and "parked" not in (before.session.status, after.status):
        return Exit.OK  # whoever had asked lives, and goes on
    async with _events_behind(client, before) as stream:
        keyboard = TerminalKeyboard() if person_is_there() else None
        calls = await _open_calls(client, before)
        turn = Resumed(
            client=client,
            approval=answered,
            stream=stream,
            host_id=host_id,
            leaves_questions=keyboard is None,
            open_calls={call.call_id for call in calls},
            asked=await _asked(client, answered),
        )
        if not await turn.begin():
            return Exit.OK
        interrupts.scope = None
        console = open_console()
        presenter = Presenter(console=console, root=answered.session_id, model=after.model)
        for call in calls:
            presenter.note_call(call)
        await acquaint(client, presenter, answered.root_id)
        presenter.say(("its turn goes on here; Ctrl-C cancels it", "dim"))
        follower = Follower(
            client=client,
            # what the end of an agent's turn makes its parent do, begins here, too
            run=await staying(client, stream, answered.root_id, turn),
            approver=Approver(
                root=answered.root_id,
                policy="leave" if keyboard is None else "ask",
                console=console,
                presenter=presenter,
                keyboard=keyboard,
            ),
            presenter=presenter,
            interrupts=interrupts,
            timeout_s=None,
        )
        return await follower.follow()


async def _open_calls(client: Client, before: SessionResult) -> list[ToolCall]:
    """The calls that were open when the session was read: their results come without them."""
    scope = Scope(kind="session", id=before.session.session_id)
    page = await client.history.page(scope, before=before.cursor, limit=_CALLS_WITHIN)
    calls: dict[str, ToolCall] = {}
    for event in page.data:
        match event.data:
            case ToolCall() as call:
                calls[call.call_id] = call
            case ToolResult(call_id=call_id):
                calls.pop(call_id, None)
            case _:
                pass
    return list(calls.values())


async def _asked(client: Client, answered: Approval) -> set[str]:
    """The calls of the turn that wait for another answer."""
    pending = client.approvals.list(state="pending", session_id=answered.session_id)
    return {each.call_id async for each in pending if each.turn_id == answered.turn_id}


def _events_behind(client: Client, before: SessionResult) -> EventStream:
    """The events since the session was read, of all in its tree."""
    return client.events(Scope(kind="tree", id=before.session.root_id), before.cursor)
