"""What a feature brings to a host, and what it is built on. Features know this and the floors below it;
neither the host nor another feature is edited to add one."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from attrs import field, frozen

from callboard_rpc.events import DeliveryKind

from .config import Settings
from .log.log import Log
from .log.transaction import Projection
from .models.catalog import ModelCatalog
from .sessions.beginning import Opening
from .sessions.cache import SessionCache
from .sessions.dispatch import Dispatcher
from .sessions.driving import Driving
from .sessions.inbox.service import Inbox
from .sessions.opened import OpenedSessions
from .sessions.profiles import ProfileBook
from .sessions.reading import Reading
from .sessions.service import Closing, Sessions
from .sessions.telling import RunListener
from .tools.base import Tool
from .tools.registry import ToolRegistry
from .turns.boundary import Source
from .turns.completion import CompletionHook
from .turns.finish import Hook
from .turns.turn import Progress, Turn


@frozen(kw_only=True)
class Ground:
    """What a feature's service is built on. `model_of` names the model that a session (or one of several agents
    in it, by its profile) would use now;
    `settings_for` is the configuration as it is in a folder, read anew; `spawn` gives a task to the host; `opened` are the sessions that somebody works with through it. `services` are those of all features, by name, once they are built:
    for whoever works with another one, when it does."""

    host_id: str
    settings: Settings
    settings_for: Callable[[str], Settings]
    log: Log
    cache: SessionCache
    reading: Reading
    sessions: Sessions
    inbox: Inbox
    dispatcher: Dispatcher
    catalog: ModelCatalog
    registry: ToolRegistry
    profiles: Callable[[str], ProfileBook]
    model_of: Callable[..., Awaitable[str]]
    spawn: Callable[[Callable[[], Awaitable[None]], str], None]
    opened: OpenedSessions
    services: Mapping[str, Any]


@frozen(kw_only=True)
class Feature:
    """What a feature brings: tools that a model may call, things that wait at a boundary, kinds of
    deliveries that the turns of this host leave in the inbox (what is for tools that are switched off),
    tables that follow the log, what it has to say before a turn begins, what is written with the end of a turn or the
    closing of a session, what is done before a turn's end is committed, who hears of it afterwards, and
    JSON-RPC handlers by method name.

    `drivers` run the turns of profiles that are of their kind and no models', given the feature's service.

    `service` is built once for a host, under the feature's name: its tools find it there (`ToolContext.services`),
    and so do handlers (`Host.services`). Of it, `recovers` is awaited when this host has arrived, and when
    another one has gone, before anything that waited is taken up; `works` is a task for as long as the
    host lives.
    """

    name: str
    tools: Sequence[Tool] = ()
    sources: Sequence[Source] = ()
    withholds: Sequence[DeliveryKind] = ()
    projections: Sequence[Projection] = ()
    openings: Sequence[Opening] = ()
    hooks: Sequence[Hook] = ()
    closings: Sequence[Closing] = ()
    completion: Sequence[CompletionHook] = ()
    listeners: Callable[[Any], Sequence[RunListener]] | None = None
    tool_services: Mapping[str, Any] = field(factory=dict[str, Any])
    service: Callable[[Ground], Any] | None = None
    recovers: Callable[[Any], Awaitable[None]] | None = None
    works: Callable[[Any], Awaitable[None]] | None = None
    methods: Callable[[Any], Mapping[str, Any]] | None = None
    drivers: Mapping[str, Callable[[Any, Driving, Turn, Progress], Awaitable[None]]] = field(
        factory=dict[str, Callable[[Any, Driving, Turn, Progress], Awaitable[None]]]
    )
