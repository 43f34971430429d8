"""A turn that an agent drives: what waits is taken in, the agent is told it, and what comes of that is the turn; until
the agent has said its last and nothing waits."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from attrs import define

from callboard_rpc.common import ApprovalId, MessageId
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import (
    Ack,
    Author,
    Directive,
    ExternalOptions,
    ExternalSession,
    Notice,
    ToolCall,
)

from ...log.transaction import Transaction
from ...sessions.driving import Driving
from ...sessions.offers import Offers
from ...turns.call import Call, settled_as
from ...turns.projection import SQL as TURN_SQL
from ...turns.reservation import SYSTEM, assert_fence
from ...turns.stages import (
    begin,
    boundary,
    go_on,
    kept_from_ending,
    spent,
    try_to_end,
    wind_down,
)
from ...turns.turn import Progress, Turn
from ..contract import content
from .asking import Asking
from .connection import Connection
from .deciding import Decided, Decision
from .exchange import Exchange
from .files import Files
from .ledger import Ledger
from .own_calls import OwnCalls
from .prompts import after_a_restart, blocks_of, introduction, past
from .questions import Questions
from .service import SQL, ExternalAgents
from .terminals import Terminals

_log = logging.getLogger(__name__)

_STOPS_WITHIN = 0.6
"""Part of a cancel's grace that an agent has before it is ended."""

_LOST = "The agent has begun anew"
_LOST_WHY = (
    "{name} could not go on with what it knew of this session. It was told what was said so far, as text; what it had "
    "read and done besides, it does not know any more."
)


async def drive(agents: ExternalAgents, driving: Driving, turn: Turn, progress: Progress) -> None:
    """Runs until the turn's end is committed, or raises what keeps it from going on."""
    await _Drive(agents, driving, turn, progress).run()


@define
class _Said:
    """What the agent is told next."""

    blocks: list[content.ContentBlock]
    through: int


class _Drive:
    def __init__(
        self, agents: ExternalAgents, driving: Driving, turn: Turn, progress: Progress
    ) -> None:
        self._agents = agents
        self._driving = driving
        self._turn = turn
        self._progress = progress
        self._connection: Connection | None = None
        self._exchange: Exchange | None = None
        self._ledger = Ledger(turn, progress, driving.workspace)
        self._decided = Decided()
        self._told_through = 0

    async def run(self) -> None:
        turn = self._turn
        try:
            await begin(turn)
            if turn.left.calls:
                await self._take_up(turn.left.calls)
            while not await self._step():
                pass
        except asyncio.CancelledError:
            await self._stop()
            raise
        finally:
            await self._let_go()

    async def _step(self) -> bool:
        """One prompt, with all that comes of it. True when the turn has ended."""
        turn, progress = self._turn, self._progress
        go_on(turn.live)
        await boundary(turn)
        wind_down(turn)
        spent(turn, progress)
        exchange = await self._at_agent()
        connection = self._connection
        assert connection is not None
        await connection.settle(self._driving.mode(), self._offers().wanted.get(self._name, {}))
        await self._tell_options(connection)
        said = await self._next(connection)
        if said.blocks:
            stop = await self._prompt(connection, exchange, said)
            await self._tell_options(connection)
            go_on(turn.live)
            if stop is None:
                return False
            self._agents.worked(self._driving)
            self._ledger.answer.stop = stop
        await exchange.release()
        answer = self._ledger.answer
        if await kept_from_ending(turn, progress, answer):
            return False
        return await try_to_end(turn, progress, answer)

    @property
    def _name(self) -> str:
        return self._driving.profile.name

    def _offers(self) -> Offers:
        """What a person wants of the agent by now."""
        state = self._agents.cache.read(self._turn.live.session_id) or self._driving.state
        return state.offers

    async def _tell_options(self, connection: Connection) -> None:
        """Commits what the agent lets its session be set to, when that has changed."""
        offered = connection.choices.offered(self._name)
        if offered != self._offers().told.get(self._name, ()):
            await self._ledger.append(ExternalOptions(profile=self._name, options=offered))

    async def _prompt(self, connection: Connection, exchange: Exchange, said: _Said) -> Any:
        before = connection.through, connection.fresh, self._told_through
        await self._record(connection, said.through)
        connection.through = self._told_through = said.through
        connection.fresh = connection.lost = False
        try:
            return await exchange.prompt(said.blocks)
        except CallboardError as error:
            if error.kind == "authRequired":  # it has taken in nothing
                connection.through, connection.fresh, self._told_through = before
                self._agents.failed(self._driving, error)
                self._agents.drop(connection)
                await self._untell(connection, before[0])
            raise

    async def _correct(self) -> bool:
        """Tells the agent at work what was said since. False when it does not take it: then it is to be called away,
        and told with the next prompt."""
        connection = self._connection
        assert connection is not None
        await boundary(self._turn)
        said = await self._next(connection)
        if not said.blocks or not await connection.steer(said.blocks):
            return not said.blocks
        await self._record(connection, said.through)
        connection.through = self._told_through = said.through
        return True

    async def _record(self, connection: Connection, through: int) -> None:
        assert connection.session_id is not None
        told = ExternalSession(
            profile=self._driving.profile.name,
            agent_session_id=connection.session_id,
            through=through,
            agent=connection.name,
        )
        name = connection.name or self._driving.profile.name
        lost = Notice(severity="warning", title=_LOST, description=_LOST_WHY.format(name=name))
        await self._ledger.append(*((lost,) if connection.lost else ()), told)

    async def _untell(self, connection: Connection, through: int) -> None:
        assert connection.session_id is not None
        await self._ledger.append(
            ExternalSession(
                profile=self._driving.profile.name,
                agent_session_id=connection.session_id,
                through=max(through, self._started_at() - 1),
            )
        )

    # --- the agent ---

    async def _at_agent(self) -> Exchange:
        """The exchange with the agent, which is started where it does not run."""
        if self._exchange is not None and self._connection is not None:
            if self._connection.lives:
                return self._exchange
            await self._let_go()
        turn = self._turn
        with turn.live.asking():  # how long a program takes to start is not the turn's own time
            connection = self._connection = await self._agents.enter(self._driving)
        turn.live.touch()
        workspace = self._driving.workspace
        asking = Asking(turn, self._ledger, decided=self._decided, owed=connection.owed.append)
        own = OwnCalls(turn, self._ledger)
        exchange = self._exchange = Exchange(
            turn,
            self._progress,
            connection,
            self._ledger,
            asking,
            Questions(turn, self._ledger, owed=connection.owed.append),
            Files(turn, workspace, asking, own),
            Terminals(turn, workspace, self._ledger, asking, own, self._agents.recorded),
            own,
            self._correct,
        )
        unheard = connection.unheard.take()
        if not connection.fresh:
            await exchange.catch_up(unheard)
        connection.desk = exchange
        return exchange

    async def _stop(self) -> None:
        """The turn was told to stop."""
        cause = self._turn.live.cause
        quietly = cause is None or cause.outcome == "interrupted"
        if self._exchange is not None:
            within_s = self._turn.limits.cancel_grace_s * _STOPS_WITHIN
            await self._exchange.stop(within_s=within_s, quietly=quietly)

    async def _let_go(self) -> None:
        connection, exchange = self._connection, self._exchange
        self._connection = self._exchange = None
        if exchange is not None:
            await exchange.close()
        if connection is not None:
            connection.desk = None
            self._agents.leave(connection)
            if not connection.lives or (exchange is not None and not exchange.sound):
                self._agents.drop(connection)

    # --- what it is told ---

    async def _next(self, connection: Connection) -> _Said:
        """All that was said to the agent since it was told the last time."""
        turn, driving = self._turn, self._driving
        transcript = await self._agents.cache.transcript(turn.live.session_id, calls=False)
        speaker = driving.speaker
        since = max(connection.through, self._told_through)
        if (
            not since
        ):  # it was told nothing yet; in a room, what has woken it was said before its turn
            since = min(self._started_at(), max(transcript.last_said(speaker=speaker) - 1, 0))
        takes = connection.hello.agent_capabilities.prompt_capabilities
        said = transcript.said_since(since, turn_id=turn.live.turn_id, speaker=speaker)
        blocks = blocks_of(said, takes)
        if connection.fresh:
            before = past(transcript.spoken_through(since, speaker=speaker))
            blocks = [*introduction(driving.notes), *before, *blocks]
        if connection.owed:
            owed, connection.owed = connection.owed, []
            blocks = [content.TextContent(text="\n".join(owed)), *blocks]
        return _Said(blocks, transcript.seq)

    def _started_at(self) -> int:
        rows = self._turn.log.glance(TURN_SQL["started_seq"], self._turn.live.turn_id)
        return rows[0][0] if rows else 0

    # --- after a restart ---

    async def _take_up(self, calls: Sequence[ToolCall]) -> None:
        """The agent that waited for permission is gone with its server: its calls are over, it is told what was
        decided, and what was decided stands once for the same call."""
        turn = self._turn
        decided: list[tuple[str, bool, str | None]] = []
        for logged in calls:
            call = await self._call_of(logged)
            asked = await turn.caller.asked_about(call)
            if asked is not None and asked.resolution is not None:
                how = asked.resolution
                allowed = how.outcome == "allowed"
                self._decided.add(Decision(asked=asked, kind=logged.kind, allowed=allowed))
                decided.append((logged.title, allowed, how.feedback))
            text = "Interrupted: the server was restarted while the agent waited for permission. It was not run."
            await self._ledger.write_result(settled_as(call, "interrupted", text))
        await self._tell(after_a_restart(decided))

    async def _call_of(self, logged: ToolCall) -> Call:
        """A call from the log, with what was asked about it last."""
        rows = await self._turn.log.query(SQL["approval_of_call"], logged.call_id)
        return Call(
            call_id=logged.call_id,
            index=logged.index,
            name=logged.name,
            provider_call_id=logged.provider_call_id,
            approval_id=ApprovalId(rows[0][0]) if rows else None,
        )

    async def _tell(self, text: str) -> None:
        """Has the agent told something by the server, in the log like all that it is told."""
        turn, grant = self._turn, self._turn.live.grant

        def write(tx: Transaction) -> None:
            assert_fence(tx, grant)
            record = tx.append(
                grant.session_id,
                Directive(
                    message_id=MessageId(tx.new_id("msg")),
                    author=Author(kind="system", name="callboard"),
                    text=text,
                ),
                actor=SYSTEM,
                turn_id=grant.turn_id,
                fence=grant.fence,
            )
            tx.append(
                grant.session_id,
                Ack(admits=(record.seq,)),
                actor=SYSTEM,
                turn_id=grant.turn_id,
                fence=grant.fence,
            )

        await turn.log.transact(write)
