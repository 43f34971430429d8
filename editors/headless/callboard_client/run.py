"""One prompt from its start to its end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from attrs import evolve, frozen

from callboard_rpc.common import (
    UNSET,
    Failure,
    Json,
    Limits,
    Mode,
    SessionId,
    TurnId,
    TurnOutcome,
    Usage,
)
from callboard_rpc.events import (
    Ack,
    Delivery,
    Event,
    SessionDeleted,
    TriggersDropped,
    TurnFinished,
    TurnParked,
)
from callboard_rpc.sessions import Session, SessionResult
from callboard_rpc.streams import Scope

from .errors import ClientError, RemoteError
from .resting import all_told, at_rest, may_bring_rest
from .rooms import NewRoom

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .client import Client
    from .stream import EventStream, StreamItem

RunOutcome: TypeAlias = TurnOutcome | Literal["parked", "dropped", "recorded"]
"""How a prompt ended: as its turn did; ``parked``: the turn waits for an approval and gave its
process back; ``dropped``: it was cancelled while it waited, or its session was deleted; ``recorded``: it woke nobody."""


RunUntil: TypeAlias = Literal["turn", "rest"]
"""When a run is over. ``turn``: with the prompt's turn. ``rest``: when, besides, no agent of the session has
work any more, and nothing that one has said will wake the session."""


@frozen(kw_only=True)
class RunResult:
    """`final_text` is what the agent said last. `turn` is None when no turn took the prompt. Of a run
    until ``rest`` all is of the session's last turn; ``cancelled`` is also one that was cancelled when
    that turn had ended, and agents still worked."""

    session_id: SessionId
    outcome: RunOutcome
    turn_id: TurnId | None = None
    final_text: str | None = None
    error: Failure | None = None
    usage: Usage | None = None
    duration_ms: int | None = None


class Run:
    """An async iterator of the run's events and deltas; it stops when the prompt's turn ends, or when all
    comes to rest (see `RunUntil`; only a root session can be waited for so).

    It follows a root session together with its children. Entering it (or its first step) creates
    the session, subscribes, then prompts, so that nothing is missed.
    """

    def __init__(
        self,
        client: Client,
        prompt: str,
        *,
        cwd: Path,
        session_id: SessionId | None,
        title: str | None,
        profile: str | None,
        model: str | None,
        mode: Mode | None,
        delivery: Delivery,
        limits: Limits | None,
        deltas: bool,
        until: RunUntil,
        room: NewRoom | None = None,
        to: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        self._client = client
        self._prompt = prompt
        self._cwd = cwd
        self._session_id = session_id
        self._title = title
        self._profile = profile
        self._model = model
        self._mode: Mode | None = mode
        self._delivery: Delivery = delivery
        self._limits = limits
        self._deltas = deltas
        self._room = room or NewRoom()
        self._to = to
        self._options = options
        self._session: Session | None = None
        self._stream: EventStream | None = None
        self.event_seq: int | None = None
        """The seq of the prompt in its session, once it is durable."""
        self.warning: str | None = None
        """What the server has to say of the prompt: that it reaches somebody else than it names."""
        self._result: RunResult | None = None
        self._until: RunUntil = until
        self._cancelling = False
        self._gone = False
        """There is nothing that could go on."""
        self._cut = False
        self._stirred = False
        """Something has happened after which all may be at rest."""
        self.turn_id: TurnId | None = None
        """The turn that answers the prompt, once that is known."""

    @property
    def session(self) -> Session:
        """The session as it was when the run began. Raises `ClientError` before that."""
        if self._session is None:
            raise ClientError("the run has not begun: enter it, or iterate over it")
        return self._session

    @property
    def has_answered(self) -> bool:
        """Whether the prompt's turn has ended; of a run until ``rest``, more may be to come."""
        return self._result is not None

    async def __aenter__(self) -> Run:
        await self._begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __aiter__(self) -> Run:
        return self

    async def __anext__(self) -> StreamItem:
        item, _ = await self.receive()
        return item

    async def receive(self) -> tuple[StreamItem, Json]:
        """The next item and its JSON; raises `StopAsyncIteration` after the last one."""
        if self._stream is None:
            await self._begin()
        stream = self._stream
        assert stream is not None
        if self._result is not None and await self._is_over(stream):
            await stream.aclose()
            raise StopAsyncIteration
        item, wire = await stream.receive()
        if isinstance(item, Event):
            self._stirred |= may_bring_rest(item.data)
            if item.session_id == self.session.session_id:
                known = self.turn_id
                self._observe(item)
                if self._cancelling and known is None and self.turn_id is not None:
                    await self.cancel()  # the turn had begun before the queue was emptied
        return item, wire

    async def _is_over(self, stream: EventStream) -> bool:
        """Whether the run has ended, and everything of it was given out."""
        if self._until == "turn" or self._gone:
            return True
        if not self._stirred or stream.waiting:
            return False
        self._stirred = False
        root_id = self.session.session_id
        try:
            rests = await at_rest(self._client.sessions, self._client.agents, root_id)
        except RemoteError as fault:
            if fault.kind != "sessionNotFound":
                raise
            return False  # it was deleted, and the event that says so is on its way
        if not rests:
            return False
        # what came to rest may have said something that has not arrived here yet
        told = await all_told(self._client.history, stream, Scope(kind="tree", id=root_id))
        self._stirred = not told
        return told

    async def result(self) -> RunResult:
        """How it ended; goes through what has not been iterated over."""
        async for _ in self:
            pass
        assert self._result is not None
        if self._cut and self._result.outcome == "completed":
            return evolve(self._result, outcome="cancelled")
        return self._result

    async def cancel(self, reason: str | None = None) -> None:
        """Asks the server to end the turn, or to drop the prompt if none has taken it yet. A run until
        ``rest`` ends with all that runs below its session, too.

        The iterator goes on to the end that this leads to.
        """
        self._cancelling = True
        session_id, sessions = self.session.session_id, self._client.sessions
        if self.turn_id is None:
            await sessions.cancel(session_id, scope="queue", reason=reason)
        elif self._until == "turn":
            await sessions.cancel(session_id, turn_id=self.turn_id, reason=reason)
        else:
            self._cut = self._result is not None
            await sessions.cancel(session_id, scope="tree", reason=reason)

    async def aclose(self) -> None:
        """Stops watching. The turn goes on, unless it was cancelled."""
        if self._stream is not None:
            await self._stream.aclose()

    async def _begin(self) -> None:
        sessions = self._client.sessions
        if self._session_id is None:
            answer = await sessions.create(
                self._cwd,
                title=self._title,
                profile=self._profile,
                model=self._model,
                mode=self._mode,
                members=self._room.members,
                roster=self._room.roster,
                host=self._room.host,
            )
            if self._options:
                answer = await sessions.update(answer.session.session_id, options=self._options)
        else:
            answer = await self._continue(self._session_id)
        self._session = session = answer.session
        whole = session.root_id == session.session_id
        if not whole:
            self._until = "turn"
        self._stream = self._client.events(
            Scope(kind="tree" if whole else "session", id=session.session_id),
            from_="now" if self._session_id is not None else "start",
            deltas=self._deltas,
        )
        await self._stream.subscribe()
        try:
            prompted = await sessions.prompt(
                session.session_id,
                self._prompt,
                delivery=self._delivery,
                to=self._to,
                limits=self._limits,
            )
        except BaseException:
            await self._stream.aclose()
            raise
        self.event_seq = prompted.event_seq
        self.turn_id = prompted.turn_id
        self.warning = prompted.warning
        if prompted.outcome == "recorded":
            self._gone = True
            self._result = RunResult(session_id=session.session_id, outcome="recorded")

    async def _continue(self, session_id: SessionId) -> SessionResult:
        sessions = self._client.sessions
        if self._profile is not None:
            raise ClientError(f"session {session_id} has its profile already: leave it out")
        if self._room != NewRoom():
            raise ClientError(
                f"session {session_id} has its members already: add others (rooms.add)"
            )
        wanted = (self._title, self._model, self._mode, self._options)
        if all(each is None for each in wanted):
            return await sessions.get(session_id)
        return await sessions.update(
            session_id,
            title=UNSET if self._title is None else self._title,
            model=UNSET if self._model is None else self._model,
            mode=UNSET if self._mode is None else self._mode,
            options=self._options,
        )

    def _observe(self, event: Event) -> None:
        match event.data:
            case Ack(admits=admits) if self.event_seq in admits:
                self.turn_id = event.turn_id
            case TriggersDropped(seqs=seqs) if self.event_seq in seqs:
                self._gone = True
                self._end("dropped")
            case SessionDeleted():
                self._gone = True
                self._end("dropped")
            case TurnParked(turn_id=turn_id) if turn_id == self.turn_id:
                self._end("parked")
            case TurnFinished(turn_id=turn_id) as end if turn_id == self.turn_id or self._result:
                self._result = RunResult(
                    session_id=event.session_id,
                    outcome=end.outcome,
                    turn_id=turn_id,
                    final_text=end.final_text,
                    error=end.error,
                    usage=end.usage,
                    duration_ms=end.duration_ms,
                )
            case _:
                return

    def _end(self, outcome: RunOutcome) -> None:
        self._result = RunResult(
            session_id=self.session.session_id, outcome=outcome, turn_id=self.turn_id
        )
