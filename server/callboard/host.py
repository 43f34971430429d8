"""The composition root: builds everything, owns the tasks, starts and stops.

One `Host` is one process's part in a store. Features register what they bring (`Feature`); nobody edits
another feature's folder, or this file, to add one.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

from attrs import define

from callboard_rpc.common import Usage
from callboard_rpc.errors import CallboardError

from .agents.feature import feature as agents
from .approvals import service as approvals
from .approvals.service import Approvals
from .config import Loaded, Settings
from .environment import Environment
from .features import Feature, Ground
from .groups.feature import feature as groups
from .hooks.service import HookSpace
from .log.clock import parse, utc_now
from .log.ids import IdSource
from .log.log import Log
from .log.redact import Redactor
from .log.store import Store, open_store
from .log.transaction import Projection, Transaction
from .log.writer import WalLimits
from .models.catalog import ModelCatalog, ModelSettings
from .models.http import HttpClient, Timeouts
from .models.keys import KeyRing
from .peers.feature import feature as peers
from .rooms.feature import feature as rooms
from .schedules.feature import feature as schedules
from .sessions import external
from .sessions import projection as sessions_projection
from .sessions.beginning import ModelOf
from .sessions.cache import SessionCache
from .sessions.compacting import Compacting
from .sessions.dispatch import Dispatcher
from .sessions.driving import Driver, model_id_of
from .sessions.export import Exporting
from .sessions.forking import Forking
from .sessions.importing import Importing
from .sessions.inbox import projection as inbox_projection
from .sessions.inbox import runs as inbox_runs
from .sessions.inbox.service import Inbox
from .sessions.offered import Offered
from .sessions.offers import patch_of
from .sessions.opened import OpenedSessions
from .sessions.permissions import suggestion
from .sessions.presence import Presence
from .sessions.profiles import Profile, ProfileBook
from .sessions.queue import Queue
from .sessions.reading import Reading
from .sessions.retention import Retention
from .sessions.rewinding import Rewinding
from .sessions.runner import Services, TurnRunner
from .sessions.service import SessionLimits, Sessions
from .sessions.state import SessionState
from .sessions.submitting import Submitting
from .sessions.telling import RunListeners, Telling
from .sessions.usage import UsageBook
from .sessions.vigil import Vigil
from .sessions.waiting import Waiting
from .sessions.writing_out import WritingOut
from .tasks import Attendance, Tasks
from .tools.base import Buffers, Terminals
from .tools.builtin import builtin_tools
from .tools.environment import scrubbed_environment, secret_values
from .tools.registry import ToolRegistry
from .tools.scheduling import WriteCoordinators
from .turns import boundary
from .turns import projection as turns_projection
from .turns.deltas import Deltas
from .turns.finish import Ending, Hook, close_turn
from .turns.live import Cause
from .turns.reservation import SYSTEM, Grant, Reservations

__all__ = [
    "Environment",
    "Feature",
    "Host",
    "builtin_features",
    "open_host",
    "prepare_store",
    "projections_of",
]

_log = logging.getLogger(__name__)

SHUTDOWN_S = 1.2
"""How long running turns have to come to their end when the process goes."""
_LOOK_AGAIN_S = 1.0
"""How long the clock of the approvals waits when it could not look."""


def builtin_features(settings: Settings) -> tuple[Feature, ...]:
    """The features of every host."""
    return (agents(settings), groups(), schedules(), rooms(settings), peers(settings))


@define(kw_only=True)
class Host:
    """What one process knows and runs. Made by `open_host`."""

    host_id: str
    started_at: str
    environment: Environment
    settings: Settings
    warnings: tuple[str, ...]
    log: Log
    redactor: Redactor
    catalog: ModelCatalog
    registry: ToolRegistry
    approvals: Approvals
    deltas: Deltas
    cache: SessionCache
    reading: Reading
    sessions: Sessions
    dispatcher: Dispatcher
    inbox: Inbox
    telling: Telling
    submitting: Submitting
    reservations: Reservations
    waiting: Waiting
    exporting: Exporting
    writing_out: WritingOut
    importing: Importing
    usage: UsageBook
    compacting: Compacting
    forking: Forking
    rewinding: Rewinding
    queue: Queue
    features: Sequence[Feature]
    services: Mapping[str, Any]
    """Those of the features, by their names."""
    tasks: "Tasks"
    attendance: "Attendance"
    opened: OpenedSessions
    buffers: Offered[Buffers]
    terminals: Offered[Terminals]
    model_of: Callable[..., Awaitable[str]]
    """The model that a session would use now; see `Ground`."""

    @property
    def takes_up(self) -> bool:
        """Whether this host goes on with what waited when it came; one that goes soon leaves it."""
        return self.settings.store.waiting == "take_up"

    def settings_for(self, cwd: str) -> Settings:
        """The configuration as it is in a folder, read anew."""
        return self.environment.settings_for(cwd)

    def profiles_for(self, cwd: str) -> ProfileBook:
        return self.environment.profiles_for(cwd)

    async def options_patch(
        self, session_id: str, options: Mapping[str, Any]
    ) -> dict[str, dict[str, str | None]]:
        """What `options` set at the agents of a session. Raises sessionNotFound, and what `patch_of` does."""
        state = await self.cache.state(session_id)
        book = self.profiles_for(state.cwd)
        found = [book.profiles.get(name) for name in state.members or (state.profile,)]
        agents = [each.name for each in found if each is not None and each.kind == "acp"]
        return patch_of(state.offers, agents, options)

    def spawn(self, run: Callable[[], Awaitable[None]], name: str) -> None:
        """A task of the host; see `Tasks.spawn`."""
        self.tasks.spawn(run, name)

    async def recover(self) -> None:
        """Lets the features see to what hosts have left that are gone."""
        for feature in self.features:
            if feature.recovers is not None:
                await feature.recovers(self.services[feature.name])

    async def stop(self, reason: str) -> None:
        """Starts nothing more and brings the running turns to their ends."""
        await self.dispatcher.stop_all(
            Cause(outcome="interrupted", by=SYSTEM, reason=reason), within_s=SHUTDOWN_S
        )
        await self.importing.stop(within_s=SHUTDOWN_S)
        await self.reservations.settled()


def projections_of(
    listeners: RunListeners, features: Sequence[Feature] = ()
) -> tuple[Projection, ...]:
    """All tables that follow the log, in the order in which an event reaches them."""
    return (
        turns_projection.PROJECTION,
        approvals.PROJECTION,
        sessions_projection.PROJECTION,
        inbox_projection.PROJECTION,
        external.PROJECTION,
        listeners.projection,
        *(projection for feature in features for projection in feature.projections),
    )


def prepare_store(environment: Environment, ids: IdSource) -> Store:
    """Opens the store without an event loop; see `log.store.open_store` for what it raises."""
    return open_store(environment.store_path(), ids=ids, now=utc_now)


@asynccontextmanager
async def open_host(
    environment: Environment,
    *,
    features: Sequence[Feature] = (),
    store: Store | None = None,
    ids: IdSource | None = None,
    host_id: str | None = None,
) -> AsyncGenerator[Host]:
    """Opens the store and starts what belongs to one process; stops it on leaving."""
    ids = ids or IdSource()
    loaded = environment.load()
    features = (*builtin_features(loaded.settings), *features)
    redactor = Redactor(secret_values(environment.environ))
    keys = KeyRing(environment.environ, environment.user_dir, on_secret=redactor.add)
    for secret in keys.secrets():
        redactor.add(secret)
    listeners = RunListeners()
    log = Log(
        store or prepare_store(environment, ids),
        ids=ids,
        now=utc_now,
        redact=redactor.json_text,
        projections=projections_of(listeners, features),
        wal=WalLimits(
            checkpoint_bytes=loaded.settings.store.checkpoint_bytes,
            limit_bytes=loaded.settings.store.wal_limit_bytes,
        ),
    )
    async with log, aclosing(HttpClient(redact=redactor.text)) as http:
        vigil = Vigil(log.feed.version, log.feed.door)
        presence = Presence(
            log, host_id or ids.new("host"), hooks=_hooks(features), is_alive=vigil.life
        )
        host = _compose(
            environment, loaded, log, keys, http, redactor, features, presence, listeners
        )
        try:
            for feature in features:
                if feature.listeners is not None:
                    listeners.register(feature.listeners(host))
            await presence.arrive()
            await host.importing.tidy()
            await host.recover()
            if host.takes_up:
                await host.telling.adopt()
                await host.dispatcher.wake_waiting()
            host.spawn(lambda: _tend(host, presence, vigil), "presence")
            host.spawn(lambda: _expire(host), "approval clock")
            for feature in features:
                _work(host, feature)
            if host.settings.store.retain_archived_days is not None:
                days = host.settings.store.retain_archived_days
                retention = Retention(log, days=days, now=utc_now)
                host.spawn(retention.keep, "retention")
            yield host
        finally:
            with contextlib.suppress(Exception):
                await host.stop("the server stopped")
            await host.tasks.end()
            # a store that is full keeps the row; the next start sees that the process is gone
            with contextlib.suppress(CallboardError):
                await presence.leave()
            vigil.close()


def _work(host: Host, feature: Feature) -> None:
    works = feature.works
    if works is not None:
        host.spawn(lambda: works(host.services[feature.name]), feature.name)


async def _tend(host: Host, presence: Presence, vigil: Vigil) -> None:
    """Shows that this host lives, and cares for those that do not any more."""
    while True:
        await vigil.due()
        host.catalog.look_at_keys()
        try:
            await presence.beat()
            went = await presence.look()
            await host.importing.tidy()
            if went:
                await host.recover()
            if went and host.takes_up:
                await host.telling.adopt()
                await host.dispatcher.wake_waiting()
            if went or not presence.alone:
                host.log.refresh()
                await host.dispatcher.wake_own()
            await host.dispatcher.wake_delivered()
        except CallboardError as error:
            _log.debug("the other servers could not be looked at: %s", error)
        except Exception:
            # without its heartbeat this host would be taken for gone, and so would all that it runs
            _log.exception("the other servers could not be looked at")


def _hooks(features: Sequence[Feature]) -> tuple[Hook, ...]:
    return (inbox_runs.ended, *(hook for feature in features for hook in feature.hooks))


def _compose(
    environment: Environment,
    loaded: Loaded,
    log: Log,
    keys: KeyRing,
    http: HttpClient,
    redactor: Redactor,
    features: Sequence[Feature],
    presence: Presence,
    listeners: RunListeners,
) -> Host:
    settings = loaded.settings
    registry = ToolRegistry(builtin_tools())
    for feature in features:
        for tool in feature.tools:
            registry.register(tool)
    catalog = ModelCatalog(
        ModelSettings(model=settings.model, providers=settings.providers),
        keys,
        http,
        environment.environ,
        timeouts=Timeouts(idle_s=settings.limits.model_timeout_s),
    )
    deltas = Deltas()
    log.listen(deltas.committed)
    tasks = Tasks()
    attendance = Attendance()
    opened = OpenedSessions()
    cache = SessionCache(log)
    asked = Approvals(log, suggest=suggestion(registry), before=presence.care)
    reading = Reading(log)
    host_id = presence.host_id
    importing = Importing(log, host_id)
    hooks = _hooks(features)
    # what the inbox was asked for is not spent by a turn that nobody ran
    unrun = tuple(hook for feature in features for hook in feature.hooks)

    def end(tx: Transaction, grant: Grant) -> None:
        close_turn(tx, grant, Ending(outcome="cancelled", usage=Usage()), actor=SYSTEM, hooks=unrun)

    reservations = Reservations(log, host_id, attend=presence.attend, end=end)
    of_features: dict[str, Any] = {}
    services = Services(
        log=log,
        cache=cache,
        catalog=catalog,
        registry=registry,
        approvals=asked,
        deltas=deltas,
        redactor=redactor,
        coordinators=WriteCoordinators(),
        model_slots=asyncio.Semaphore(settings.limits.model_calls),
        settings=environment.settings_for,
        profiles=environment.profiles_for,
        environ=environment.environ,
        withheld=environment.withheld,
        attended=attendance.anybody,
        sources=(
            boundary.STEERING,
            inbox_runs.source(
                utc_now, withheld=[kind for feature in features for kind in feature.withholds]
            ),
            *(s for feature in features for s in feature.sources),
        ),
        hooks=hooks,
        completion=tuple(hook for feature in features for hook in feature.completion),
        lifecycle=HookSpace(
            folder=environment.user_dir,
            environment=scrubbed_environment(environment.environ, settings.tools.environment_allow),
            redactor=redactor,
            new_id=log.ids.new,
            spawn=tasks.spawn,
        ),
        tool_services=of_features,
        drivers=_drivers(features, of_features),
        buffers=(buffers := Offered[Buffers]()),
        terminals=(terminals := Offered[Terminals]()),
    )

    async def model_for(state: SessionState, name: str) -> str:
        profile: Profile | None = None
        with contextlib.suppress(Exception):
            profile = environment.profiles_for(state.cwd).get(name)
        if profile is not None and profile.kind != "builtin":
            return model_id_of(profile)
        if state.model is not None:
            return state.model
        if profile is not None and profile.model is not None:
            return profile.model
        try:
            return (await catalog.selected()).model_id
        except CallboardError:
            # the turn says what is wrong with it, for all to see and in the log
            return settings.model or "unknown/unknown"

    async def model_of(session_id: str, profile: str | None = None) -> str:
        state = await cache.state(session_id)
        return await model_for(state, profile or state.profile)

    async def models_of(session_id: str) -> ModelOf:
        state = await cache.state(session_id)
        own = await model_for(state, state.profile)
        members = {name: await model_for(state, name) for name in state.members}
        return lambda profile: members.get(profile, own)

    dispatcher = Dispatcher(
        log,
        reservations,
        runner=TurnRunner(services),
        models_of=models_of,
        spawn=tasks.spawn,
        openings=tuple(opening for feature in features for opening in feature.openings),
        hooks=services.hooks,
        completion=services.completion,
        takes_up=(takes_up := settings.store.waiting == "take_up"),
    )
    sessions = Sessions(
        log,
        dispatcher,
        reading,
        limits=SessionLimits(
            queue=settings.limits.queue, prompt_bytes=settings.limits.prompt_bytes
        ),
        closings=tuple(closing for feature in features for closing in feature.closings),
    )
    inbox = Inbox(log, dispatcher)
    ground = Ground(
        host_id=host_id,
        settings=settings,
        settings_for=environment.settings_for,
        log=log,
        cache=cache,
        reading=reading,
        sessions=sessions,
        inbox=inbox,
        dispatcher=dispatcher,
        catalog=catalog,
        registry=registry,
        profiles=environment.profiles_for,
        model_of=model_of,
        spawn=tasks.spawn,
        opened=opened,
        services=of_features,
    )
    for feature in features:
        of_features.update(feature.tool_services)
        if feature.service is not None:
            of_features[feature.name] = feature.service(ground)
    if not takes_up:  # one that does hears of every answer, of whatever process
        asked.when_answered(dispatcher.answered)
    return Host(
        tasks=tasks,
        attendance=attendance,
        opened=opened,
        buffers=buffers,
        terminals=terminals,
        model_of=model_of,
        host_id=host_id,
        started_at=utc_now(),
        environment=environment,
        settings=settings,
        warnings=tuple(str(w) for w in loaded.warnings),
        log=log,
        redactor=redactor,
        catalog=catalog,
        registry=registry,
        approvals=asked,
        deltas=deltas,
        cache=cache,
        reading=reading,
        dispatcher=dispatcher,
        inbox=inbox,
        submitting=Submitting(
            log=log, cache=cache, settings=environment.settings_for, space=services.lifecycle
        ),
        telling=Telling(log, listeners, reading, host_id=host_id, spawn=tasks.spawn),
        reservations=reservations,
        sessions=sessions,
        waiting=Waiting(log, reading, asked),
        exporting=Exporting(log),
        writing_out=WritingOut(log, reading),
        importing=importing,
        usage=UsageBook(log, reading),
        compacting=Compacting(services, reservations, dispatcher),
        forking=Forking(log, reading, importing, host_id),
        rewinding=Rewinding(log, reservations, dispatcher),
        queue=Queue(log, settings.limits.prompt_bytes),
        features=features,
        services=of_features,
    )


def _drivers(features: Sequence[Feature], services: Mapping[str, Any]) -> dict[str, Driver]:
    """Who drives the turns of each kind of profile; `services` are there when one does."""

    def bound(name: str, drive: Callable[..., Awaitable[None]]) -> Driver:
        return lambda driving, turn, progress: drive(services[name], driving, turn, progress)

    return {
        kind: bound(feature.name, drive)
        for feature in features
        for kind, drive in feature.drivers.items()
    }


async def _expire(host: Host) -> None:
    """Ends approvals when their time is up, by the server's clock."""
    while True:
        try:
            await _expire_next(host)
        except CallboardError as error:
            _log.warning("approvals could not be looked at: %s", error)
            await asyncio.sleep(_LOOK_AGAIN_S)
        except Exception:
            # without this clock no question would ever end by itself again
            _log.exception("approvals could not be looked at")
            await asyncio.sleep(_LOOK_AGAIN_S)


async def _expire_next(host: Host) -> None:
    position = host.log.head  # before looking: what is asked meanwhile ends the wait below
    # what a turn asks that nobody runs is for a server that stays: its end would be the turn's to go on
    of_host = None if host.takes_up else host.host_id
    due = await host.approvals.next_expiry(of_host=of_host)
    # a turn that was parked may be ours from one moment to the next, with all that it has asked before
    wait_s = 30.0 if of_host is None else 1.0
    if due is not None:
        wait_s = min(wait_s, max(0.0, (parse(due) - parse(utc_now())).total_seconds()))
    if due is not None and wait_s <= 0:
        await host.approvals.expire_due(of_host=of_host)
        return
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(wait_s):
            await host.log.approvals_moved(position)
