"""What a command has begun in a tree of agents runs in the command's own server, which goes with the
command: so the command stays until nothing runs there any more."""

from typing import Literal

import anyio
from attrs import define, evolve, field

from callboard_client import Client, EventStream, RemoteError, RunResult, StreamItem
from callboard_client.resting import all_told, may_bring_rest
from callboard_rpc.common import Cursor, Json, SessionId, TurnId
from callboard_rpc.events import (
    Event,
    SessionDeleted,
    TurnFinished,
    TurnParked,
    TurnResumed,
    TurnStarted,
)
from callboard_rpc.sessions import Session
from callboard_rpc.streams import Scope

from .acquainting import acquaint
from .asking import Approver, Policy
from .exits import Exit
from .following import Followed, Follower
from .interrupts import Interrupts
from .keys import TerminalKeyboard, person_is_there
from .present import Presenter
from .terminal import open_console

_BEGINS_WITHIN_S = 2.0
"""How long a turn that was asked for may take to begin. One that does not was asked of a server that is
gone, and this one is no place for it."""

_BEGINNINGS = (TurnStarted, TurnResumed)
_BEGINNING_TYPES = ("turn_started", "turn_resumed")

Activity = Literal["runs", "begins", "none"]


@define(kw_only=True)
class AgentTurn:
    """One turn of an agent, followed as a `Run` is."""

    client: Client
    stream: EventStream
    agent_id: SessionId
    turn_id: TurnId
    _result: RunResult | None = field(default=None, init=False)

    @property
    def has_answered(self) -> bool:
        return self._result is not None

    async def receive(self) -> tuple[StreamItem, Json]:
        if self._result is not None:
            raise StopAsyncIteration
        item, wire = await self.stream.receive()
        if isinstance(item, Event) and item.session_id == self.agent_id:
            self._observe(item)
        return item, wire

    async def result(self) -> RunResult:
        """How it ended, once `receive` has said that it has."""
        assert self._result is not None
        return self._result

    async def cancel(self, reason: str | None = None) -> None:
        """Asks the server to end the turn, and those below it."""
        await self.client.sessions.cancel(self.agent_id, scope="tree", reason=reason)

    def _observe(self, event: Event) -> None:
        match event.data:
            case TurnFinished(turn_id=turn_id) as end if turn_id == self.turn_id:
                self._result = RunResult(
                    session_id=self.agent_id,
                    outcome=end.outcome,
                    turn_id=turn_id,
                    final_text=end.final_text,
                    error=end.error,
                    usage=end.usage,
                    duration_ms=end.duration_ms,
                )
            case TurnParked(turn_id=turn_id) if turn_id == self.turn_id:
                self._result = RunResult(
                    session_id=self.agent_id, outcome="parked", turn_id=turn_id
                )
            case SessionDeleted():
                self._result = RunResult(session_id=self.agent_id, outcome="dropped")
            case _:
                return


@define(kw_only=True)
class Staying:
    """Follows a turn to its end, if there is one, and then whatever else of the tree runs in this command's
    server.

    `stream` is of the tree's events, the one that the turn is followed by. How it ended is told by the
    turn alone.
    """

    client: Client
    stream: EventStream
    root_id: SessionId
    host_id: str
    turn: Followed | None = None
    _turn_ended: bool = field(default=False, init=False)
    _stirred: bool = field(default=True, init=False)
    _cut: bool = field(default=False, init=False)

    @property
    def has_answered(self) -> bool:
        return self.turn is None or self.turn.has_answered

    async def receive(self) -> tuple[StreamItem, Json]:
        """The next item and its JSON; raises `StopAsyncIteration` after the last one."""
        if self.turn is not None and not self._turn_ended:
            try:
                return await self.turn.receive()
            except StopAsyncIteration:
                self._turn_ended = True
                if (await self.turn.result()).outcome == "parked":
                    raise  # it waits for somebody, and goes on elsewhere
        activity: Activity = "runs"
        if self._stirred and not self.stream.waiting:
            activity = await self.activity()
            self._stirred = activity == "none"
            if self._stirred and await all_told(self.client.history, self.stream, self._scope):
                raise StopAsyncIteration
        if activity != "begins":
            return await self._next()
        with anyio.move_on_after(_BEGINS_WITHIN_S):
            return await self._next()
        if await self.activity() != "runs":
            raise StopAsyncIteration
        return await self._next()

    async def _next(self) -> tuple[StreamItem, Json]:
        item, wire = await self.stream.receive()
        if isinstance(item, Event):
            self._stirred |= may_bring_rest(item.data) or isinstance(item.data, _BEGINNINGS)
        return item, wire

    async def result(self) -> RunResult:
        if self.turn is None:
            return RunResult(
                session_id=self.root_id, outcome="cancelled" if self._cut else "completed"
            )
        ended = await self.turn.result()
        cut = self._cut and ended.outcome == "completed"
        return evolve(ended, outcome="cancelled") if cut else ended

    async def cancel(self, reason: str | None = None) -> None:
        """Asks the server to end the turn; if that has ended, all that runs in the tree."""
        if self.turn is not None and not self.turn.has_answered:
            await self.turn.cancel(reason)
        else:
            self._cut = True
            await self.client.sessions.cancel(self.root_id, scope="tree", reason=reason)

    @property
    def _scope(self) -> Scope:
        return Scope(kind="tree", id=self.root_id)

    async def has_begun(self, after: Cursor) -> bool:
        """Whether something of the tree runs in this command's server, or has, since `after`."""
        match await self.activity():
            case "runs":
                return True
            case "begins":
                with anyio.move_on_after(_BEGINS_WITHIN_S):
                    await self._until_root_begins(after)
            case "none":
                pass
        page = await self.client.history.page(self._scope, after=after, types=_BEGINNING_TYPES)
        return any(
            isinstance(event.data, _BEGINNINGS) and event.data.host_id == self.host_id
            for event in page.data
        )

    async def _until_root_begins(self, after: Cursor) -> None:
        """Returns when some server has taken the root's turn."""
        scope = Scope(kind="session", id=self.root_id)
        stream = self.client.events(scope, after, types=_BEGINNING_TYPES, deltas=False)
        async with stream:
            while not isinstance(await anext(stream), Event):
                pass

    async def activity(self) -> Activity:
        """Whether something of the tree runs in this command's server, or is about to."""
        sessions = self.client.sessions
        try:
            async for agent in self.client.agents.list(self.root_id):
                if agent.turn_id is None or agent.status == "closed":
                    continue
                if self._owns((await sessions.get(agent.agent_id)).session):
                    return "runs"
            waited = await sessions.wait(self.root_id, "idle", timeout_ms=0)
            root = (await sessions.get(self.root_id)).session
            if self._owns(root):
                return "runs"
            return "begins" if waited.reason == "timeout" and root.status == "idle" else "none"
        except RemoteError as fault:
            if fault.kind != "sessionNotFound":
                raise
            return "none"

    def _owns(self, session: Session) -> bool:
        return session.owner is not None and session.owner.host_id == self.host_id


async def staying(
    client: Client, stream: EventStream, root_id: SessionId, turn: Followed | None = None
) -> Staying:
    info = await client.server.info()
    return Staying(client=client, stream=stream, root_id=root_id, host_id=info.host_id, turn=turn)


async def stay(work: Staying, interrupts: Interrupts, *, policy: Policy) -> Exit:
    """Shows what this command's server has begun; returns when nothing of it runs here any more, with how
    the turn ended."""
    interrupts.scope = None
    console = open_console()
    presenter = Presenter(console=console, root=work.root_id)
    await acquaint(work.client, presenter, work.root_id)
    presenter.say(("it goes on here; Ctrl-C cancels it", "dim"))
    follower = Follower(
        client=work.client,
        run=work,
        approver=Approver(
            root=work.root_id,
            policy=policy,
            console=console,
            presenter=presenter,
            keyboard=TerminalKeyboard() if person_is_there() else None,
        ),
        presenter=presenter,
        interrupts=interrupts,
        timeout_s=None,
    )
    return await follower.follow()
