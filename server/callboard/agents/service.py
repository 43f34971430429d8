"""The agents of one store, as one host serves them: spawn, message, wait, interrupt, close.

Who runs a child is decided like for every session: a durable trigger, and a reservation under a fence.
So there is never more than one worker for it, in whatever process, and nothing here holds a task or a
lock of its own (coordination 23, 24).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

from attrs import frozen

from callboard_rpc.common import Actor, CallId, Mode
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import AgentCloseRequested, AgentInterrupted, Author

from ..config.settings import AgentSettings, Settings
from ..log.log import Log
from ..log.record import Record
from ..log.transaction import Transaction
from ..models.catalog import ModelCatalog
from ..sessions.cache import SessionCache
from ..sessions.dispatch import Dispatcher
from ..sessions.inbox import runs as inbox_runs
from ..sessions.profiles import ProfileBook
from ..sessions.service import Sessions
from ..sessions.state import SessionState, narrowest
from ..tools.registry import ToolRegistry, in_scope, narrow
from ..turns.boundary import Query
from ..turns.reservation import SYSTEM, Grant, assert_fence
from . import mail, spawning
from .asks import Ask, expire
from .interrupts import Interrupted, Verb, interrupt, overdue
from .messaging import WRITES, Messaging
from .naming import clean_name, invalid
from .projection import SQL, agent_of, find
from .reading import AgentReading
from .spawning import Delegation, Spawn
from .state import AgentState
from .waiting import Waiting

T = TypeVar("T")

MAX_HOPS = 64
"""How far up from a target its ancestors are followed (interrupts-and-peers 9)."""

_CLOSED = "the agent was closed"
_NEVER_BEGUN = "the server that was to run this agent is gone; continue it"
_ADRIFT = "it was at work when it was exported; continue it"


@frozen(kw_only=True)
class Caller:
    """Who acts on agents: a session's run, or a person in a session's place.

    `parent_id` is the session whose agents they are; `grant` the run, where one acts.
    """

    parent_id: str
    by: Actor
    grant: Grant | None = None
    call_id: CallId | None = None


@frozen(kw_only=True)
class Wanted:
    """What a caller wants of a child that is to be made; None and empty come from the parent."""

    name: str
    message: str
    profile: str | None = None
    model: str | None = None
    tools: tuple[str, ...] | None = None
    agent_type: str | None = None
    message_allow: tuple[str, ...] = ()
    task_id: str | None = None


class Delegates(Protocol):
    """Who owns tasks (a group): says what makes a child the owner of one."""

    async def __call__(self, parent_id: str, task_id: str) -> Delegation: ...


class Agents:
    """`model_of` names the model that a session would use now."""

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
        model_of: Callable[[str], Awaitable[str]],
        spawn: Callable[[Callable[[], Awaitable[None]], str], None],
        delegates: Delegates | None = None,
    ) -> None:
        self._log = log
        self._dispatcher = dispatcher
        self._sessions = sessions
        self._cache = cache
        self._catalog = catalog
        self._registry = registry
        self._profiles = profiles
        self._settings = settings
        self._model_of = model_of
        self._spawn = spawn
        self._delegates = delegates
        self._tasks: set[asyncio.Task[Any]] = set()
        self.waiting = Waiting(log, self.target)
        self.messaging = Messaging(log, settings.agents, host_id=dispatcher.host_id)
        self.reading = AgentReading(log, max_running=settings.agents.max_running)
        self.deadlines_changed = asyncio.Event()
        log.listen(self._heard)

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

    def name_of(self, session_id: str) -> str:
        """What a session's agent is called: by its parent, or else by its profile."""
        agent = find(self._log.glance, session_id)
        if agent is not None:
            return agent.name
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
        `spawning.spawn` does. What was made stays, and runs, whatever becomes of the caller.
        """
        request = await self._examined(caller, wanted)

        def commit(tx: Transaction) -> str:
            child_id = spawning.spawn(
                tx, request, self.settings, by=caller.by, host_id=self.host_id
            )
            tx.decided(session_id=child_id)
            return child_id

        async def work() -> str:
            child_id = await self._log.transact(commit)
            await self._dispatcher.wake(child_id)
            return child_id

        child = find(self._log.glance, await self._durably(work()))
        assert child is not None
        return child

    async def _examined(self, caller: Caller, wanted: Wanted) -> Spawn:
        name = clean_name(wanted.name)
        message = spawning.checked_brief(wanted.message)
        parent = await self._cache.state(caller.parent_id)
        above = await self._cache.above(parent)
        book = self._profiles(parent.cwd)
        profile = book.get(wanted.profile or parent.profile)
        of_parent = book.get(parent.profile)
        scope = narrow(_scope(of_parent.tools), parent.tools)
        scope = narrow(scope, _scope(profile.tools))
        if wanted.tools is not None:
            scope = narrow(scope, self._known_tools(wanted.tools, scope))
        delegation = None
        if wanted.task_id is not None:
            if self._delegates is None:
                raise CallboardError("taskNotFound", f"there is no task {wanted.task_id[:80]!r}")
            delegation = await self._delegates(caller.parent_id, wanted.task_id)
        return Spawn(
            parent_id=caller.parent_id,
            name=name,
            message=message,
            parent_name=self.name_of(parent.session_id),
            cwd=parent.cwd,
            directories=parent.directories,
            profile=profile.name,
            mode=await self._mode(profile.mode, parent, above),
            model=await self._model(wanted.model or profile.model, parent),
            scope=scope,
            agent_type=spawning.checked_type(wanted.agent_type),
            message_allow=spawning.checked_allow(name, wanted.message_allow),
            can_write="messaging" in self._settings.features and in_scope(WRITES, scope),
            call_id=caller.call_id,
            grant=caller.grant,
            delegation=delegation,
        )

    def _known_tools(self, tools: Sequence[str], scope: frozenset[str] | None) -> frozenset[str]:
        """Raises invalidParams for what names no tool, or none that the parent may use itself."""
        usable = sorted(t.name for t in self._registry if in_scope(t.name, scope))
        unknown = sorted(
            wanted
            for wanted in set(tools)
            if not any(in_scope(name, frozenset({wanted})) for name in usable)
        )
        if unknown:
            raise invalid(
                "tools",
                f"there is no tool {unknown[0][:80]!r} to give to an agent; there are: "
                f"{', '.join(usable)}",
            )
        return frozenset(tools)

    async def _mode(self, wanted: Mode | None, parent: SessionState, above: Sequence[str]) -> Mode:
        modes = await self._cache.modes((parent.session_id, *above))
        return narrowest([wanted or parent.mode, *modes])

    async def _model(self, wanted: str | None, parent: SessionState) -> str | None:
        """The model that is pinned: what was named (raises modelUnavailable), else the parent's as it is
        now (coordination 47)."""
        if wanted is not None:
            await self._catalog.resolve(wanted)
            return wanted
        model = await self._model_of(parent.session_id)
        return None if model == "unknown/unknown" else model

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
            return interrupt(
                tx,
                agent_id,
                verb,
                self.settings,
                host_id=self.host_id,
                hooks=self._dispatcher.hooks,
            )

        async def work() -> Interrupted:
            done = await self._log.transact(commit)
            for each in done.ended:
                await self._dispatcher.wake(each)  # what waited behind a parked turn is next
            return done

        return await self._durably(work())

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

    # --- what others' commits mean here ---

    def _heard(self, records: list[Record]) -> None:
        for record in records:
            match record.type:
                case "agent_report_created":
                    self._parent_told(record)
                case "agent_asked":
                    self.deadlines_changed.set()
                    self._parent_told(record)
                case "agent_interrupt_requested":
                    self.deadlines_changed.set()
                case "turn_finished" | "turn_parked" | "session_closed" | "agent_interrupted":
                    self._slot_free(record.session_id)
                case "session_deleted":
                    # whose it was is not known any more
                    for (parent_id,) in self._log.glance(SQL["parents_waited_for"]):
                        self._wake_children(parent_id)
                case _:
                    pass

    def _parent_told(self, record: Record) -> None:
        agent = find(self._log.glance, record.session_id)
        if agent is not None and inbox_runs.due(
            self._log.glance, agent.parent_id, self.host_id, self._log.now()
        ):
            self._wake(agent.parent_id)

    def _slot_free(self, session_id: str) -> None:
        """A child has ended its turn, or will begin none: another one of its parent may begin."""
        agent = find(self._log.glance, session_id)
        if agent is not None:
            self._wake_children(agent.parent_id, but=session_id)

    def _wake_children(self, parent_id: str, *, but: str | None = None) -> None:
        for (waiting,) in self._log.glance(SQL["waiting_children"], parent_id, self.host_id):
            if waiting != but:
                self._wake(waiting)

    def _wake(self, session_id: str) -> None:
        async def wake() -> None:
            await self._dispatcher.wake(session_id)

        self._spawn(wake, f"wake {session_id}")

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
        questions that nobody has answered in time."""

        def commit(tx: Transaction) -> list[str]:
            ended: list[str] = []
            for agent_id in overdue(tx, tx.now()):
                verb = Verb(
                    kind="abort",
                    by=SYSTEM,
                    origin="clock",
                    reason="it was cancelled, and did not end in the time that it had",
                )
                done = interrupt(
                    tx,
                    agent_id,
                    verb,
                    self.settings,
                    host_id=self.host_id,
                    hooks=self._dispatcher.hooks,
                )
                ended += done.ended
            expire(tx, tx.now())
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
                tx.append(agent_id, AgentInterrupted(reason=_ADRIFT), actor=SYSTEM)

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


def _scope(tools: Sequence[str] | None) -> frozenset[str] | None:
    return None if tools is None else frozenset(tools)


def _as_name(named: str) -> str:
    """A name as it would be kept; what can be no name names nobody."""
    try:
        return clean_name(named)
    except CallboardError:
        return ""
