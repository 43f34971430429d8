"""The agents of one store, as one host serves them: spawn, message, wait, interrupt, close.

Who runs a child is decided like for every session: a durable trigger, and a reservation under a fence.
So there is never more than one worker for it, in whatever process, and nothing here holds a task or a
lock of its own (coordination 23, 24).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from callboard_rpc.common import Actor
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import AgentCloseRequested, AgentInterrupted, Author

from ..config.settings import AgentSettings, Settings
from ..log.log import Log
from ..log.transaction import Transaction
from ..models.catalog import ModelCatalog
from ..sessions.cache import SessionCache
from ..sessions.dispatch import Dispatcher
from ..sessions.playing import ADRIFT
from ..sessions.profiles import ProfileBook
from ..sessions.service import Sessions
from ..tools.registry import ToolRegistry
from ..turns.boundary import Query
from ..turns.reservation import SYSTEM, Grant, assert_fence
from . import mail, spawning
from .asks import Ask, expire
from .attention import Attention
from .examining import Caller, Delegates, Examiner, ModelOf, Wanted
from .interrupts import Interrupted, Verb, interrupt, overdue
from .messaging import Messaging
from .naming import clean_name
from .projection import SQL, agent_of, find
from .reading import AgentReading
from .state import AgentState
from .waiting import Waiting

T = TypeVar("T")

_log = logging.getLogger(__name__)

MAX_HOPS = 64
"""How far up from a target its ancestors are followed (interrupts-and-peers 9)."""

_CLOSED = "the agent was closed"
_NEVER_BEGUN = "the server that was to run this agent is gone; continue it"


class Agents:
    """`model_of` names the model that an agent of a session would use now."""

    def __init__(
        self,
        log: Log,
        dispatcher: Dispatcher,
        sessions: Sessions,
        cache: SessionCache,
        *,
        catalog: ModelCatalog,
        registry: ToolRegistry,
        profiles: Callable[[str], ProfileBook],
        settings: Settings,
        model_of: ModelOf,
        spawn: Callable[[Callable[[], Awaitable[None]], str], None],
        delegates: Delegates | None = None,
    ) -> None:
        self._log = log
        self._dispatcher = dispatcher
        self._sessions = sessions
        self._cache = cache
        self._settings = settings
        self._tasks: set[asyncio.Task[Any]] = set()
        self.waiting = Waiting(log, self.target)
        self.messaging = Messaging(log, settings.agents, host_id=dispatcher.host_id)
        self.reading = AgentReading(log, max_running=settings.agents.max_running)
        self.attention = Attention(log, dispatcher, spawn)
        self._examiner = Examiner(
            cache,
            catalog=catalog,
            registry=registry,
            profiles=profiles,
            model_of=model_of,
            name_of=self.name_of,
            features=settings.features,
            delegates=delegates,
        )

    @property
    def settings(self) -> AgentSettings:
        return self._settings.agents

    @property
    def host_id(self) -> str:
        return self._dispatcher.host_id

    @property
    def glance(self) -> Query:
        """A quick look at the store."""
        return self._log.glance

    # --- who is meant ---

    def may_have_agents(self, session_id: str) -> bool:
        """Whether there can be agents below a session (coordination 45)."""
        agent = find(self._log.glance, session_id)
        return agent is None or agent.depth_left > 0

    def name_of(self, session_id: str, profile: str | None = None) -> str:
        """What a session's agent is called: by its parent, or else by its profile. `profile` is the one that
        acts, of several in a room."""
        agent = find(self._log.glance, session_id)
        if agent is not None:
            return agent.name
        if profile is not None:
            return profile
        state = self._cache.read(session_id)
        return "agent" if state is None else state.profile

    def agent(self, agent_id: str) -> AgentState:
        """The agent of this id, whosever it is. Raises agentNotFound."""
        agent = find(self._log.glance, agent_id)
        if agent is None:
            raise mail.not_found(agent_id)
        return agent

    def target(self, caller: str, named: str) -> AgentState:
        """The agent below `caller` that is meant by an id, or by the name of one of its children. Its
        ancestors are followed up to the caller; whatever goes wrong on the way there is one and the same
        agentNotFound, so that nobody learns what is elsewhere (interrupts-and-peers 9, 10)."""
        agent = find(self._log.glance, named)
        if agent is None:
            rows = self._log.glance(SQL["of_name"], caller, _as_name(named))
            agent = find(self._log.glance, rows[0][0]) if rows else None
        above = agent
        for _ in range(MAX_HOPS):
            if agent is None or above is None:
                break
            if above.parent_id == caller:
                return agent
            above = find(self._log.glance, above.parent_id)
        raise mail.not_found(named)

    def children(self, parent_id: str) -> tuple[AgentState, ...]:
        """By name, then id; closed ones, too."""
        return tuple(agent_of(row) for row in self._log.glance(SQL["children"], parent_id))

    # --- spawning ---

    async def spawn(self, caller: Caller, wanted: Wanted) -> AgentState:
        """Makes a child, and starts its first turn as soon as there is room for it.

        Raises invalidParams, messageTooLarge, profileNotFound, modelUnavailable, taskNotFound, and what
        `spawning.spawn` does; agentNotFound when somebody has deleted the child by now. What was made stays,
        and runs, whatever becomes of the caller.
        """
        request = await self._examiner.examine(caller, wanted)

        def commit(tx: Transaction) -> str:
            child_id = spawning.spawn(
                tx, request, self.settings, by=caller.by, host_id=self.host_id
            )
            tx.decided(session_id=child_id)
            return child_id

        async def work() -> str:
            child_id = await self._log.transact(commit)
            try:
                await self._dispatcher.wake(child_id)
            except CallboardError as error:
                if error.kind != "sessionNotFound":  # it is deleted already
                    raise
            return child_id

        return self.agent(await self._durably(work()))

    # --- messages ---

    async def send(self, agent_id: str, text: str, *, goes_on: bool, author: Author, by: Actor,
                   grant: Grant | None = None) -> tuple[mail.Queued, str | None]:  # fmt: skip
        """Queues a message; with `goes_on` a turn takes it in now. The turn that was begun for it here,
        if one was, comes with it. Raises what `mail.send` does."""
        checked = mail.checked_text(text)

        def commit(tx: Transaction) -> mail.Queued:
            if grant is not None:
                assert_fence(tx, grant)
            queued = mail.send(
                tx,
                agent_id,
                checked,
                goes_on=goes_on,
                author=author,
                by=by,
                host_id=self.host_id,
            )
            begins = queued.asked is None
            tx.decided(message_id=queued.message_id, agent_id=agent_id, begins=begins)
            return queued

        async def work() -> tuple[mail.Queued, str | None]:
            queued = await self._log.transact(commit)
            turn_id = None if queued.asked is not None else await self._dispatcher.wake(agent_id)
            return queued, turn_id

        return await self._durably(work())

    async def reply(
        self,
        ask_id: str,
        text: str,
        *,
        author: Author,
        by: Actor,
        grant: Grant | None = None,
        as_parent: str | None = None,
    ) -> Ask:
        """Answers an agent's question, as its parent or as a person; see `Messaging.reply`."""
        return await self.messaging.reply(
            ask_id, text, author=author, by=by, grant=grant, as_parent=as_parent
        )

    # --- interrupting and closing ---

    async def interrupt(self, agent_id: str, verb: Verb) -> Interrupted:
        """See `interrupts.interrupt`. Returns when it is durable; what runs the turn hears of it by the
        commit."""

        def commit(tx: Transaction) -> Interrupted:
            if verb.grant is not None:
                assert_fence(tx, verb.grant)
            return self._interrupted(tx, agent_id, verb)

        async def work() -> Interrupted:
            done = await self._log.transact(commit)
            for each in done.ended:
                await self._dispatcher.wake(each)  # what waited behind a parked turn is next
            return done

        return await self._durably(work())

    def _interrupted(self, tx: Transaction, agent_id: str, verb: Verb) -> Interrupted:
        return interrupt(
            tx,
            agent_id,
            verb,
            self.settings,
            host_id=self.host_id,
            hooks=self._dispatcher.hooks,
        )

    async def close(self, agent_id: str, *, by: Actor, grant: Grant | None = None) -> AgentState:
        """Ends an agent, and those below it, for good; returns when nothing of it runs any more. One that
        is closed already stays as it is (coordination 34-36). Raises agentNotFound."""

        def commit(tx: Transaction) -> bool:
            if grant is not None:
                assert_fence(tx, grant)
            agent = find(tx.all, agent_id)
            if agent is None:
                raise mail.not_found(agent_id)
            if agent.status == "closed":
                tx.decided(session_id=agent_id)
                return False
            if not agent.closing:
                tx.append(agent_id, AgentCloseRequested(), actor=by)
            return True

        async def work() -> None:
            if await self._log.transact(commit):
                await self._sessions.close(agent_id, by=by, reason=_CLOSED)

        await self._durably(work())
        return self.agent(agent_id)

    # --- time ---

    @property
    def now(self) -> Callable[[], str]:
        return self._log.now

    def next_deadline(self) -> str | None:
        """When the next grace, or the next question's time, is over."""
        rows = self._log.glance(SQL["next_deadline"])
        return rows[0][0] if rows else None

    async def end_overdue(self) -> None:
        """Aborts agents that were cancelled and have not ended in their grace (DESIGN 6), and settles
        questions that nobody has answered in time. One that cannot be ended keeps up no other."""

        def end(tx: Transaction, agent_id: str, ended: list[str]) -> None:
            verb = Verb(
                kind="abort",
                by=SYSTEM,
                origin="clock",
                reason="it was cancelled, and did not end in the time that it had",
            )
            ended += self._interrupted(tx, agent_id, verb).ended

        def commit(tx: Transaction) -> list[str]:
            ended: list[str] = []
            for agent_id in overdue(tx, tx.now()):
                fault = tx.contain(lambda agent_id=agent_id: end(tx, agent_id, ended))
                if fault is not None:
                    _log.error("agent %s could not be ended", agent_id, exc_info=fault)
            fault = tx.contain(lambda: expire(tx, tx.now()))
            if fault is not None:
                _log.error("questions could not be settled", exc_info=fault)
            return ended

        for each in await self._log.transact(commit):
            await self._dispatcher.wake(each)

    # --- restarts ---

    async def reconcile(self) -> None:
        """Interrupts, once, children that were to begin under a host that is gone: nothing of them runs
        until somebody continues them (coordination 21, 22). What ran was interrupted with its turn; what
        was under way when it was exported is nobody's here. What was being closed is closed."""
        for (agent_id,) in self._log.glance(SQL["half_closed"]):
            # should the host that does it live after all, both of them close it once
            await self._sessions.close(agent_id, by=SYSTEM, reason=_CLOSED)

        def commit(tx: Transaction) -> None:
            for (agent_id,) in tx.all(SQL["never_begun"]):
                tx.append(agent_id, AgentInterrupted(reason=_NEVER_BEGUN), actor=SYSTEM)
                tx.execute(SQL["hold"], agent_id)
            for (agent_id,) in tx.all(SQL["adrift"]):
                tx.append(agent_id, AgentInterrupted(reason=ADRIFT), actor=SYSTEM)

        if self._log.glance(SQL["never_begun"]) or self._log.glance(SQL["adrift"]):
            await self._log.transact(commit)

    async def _durably(self, work: Awaitable[T]) -> T:
        """Finishes `work` also when whoever asked for it is cancelled in between."""

        async def done() -> T:
            return await work

        task = asyncio.get_running_loop().create_task(done())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)


def _as_name(named: str) -> str:
    """A name as it would be kept; what can be no name names nobody."""
    try:
        return clean_name(named)
    except CallboardError:
        return ""
