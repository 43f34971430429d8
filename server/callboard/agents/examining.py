"""What is to be known of a child before it is made, and is not the transaction's to tell: which profile,
model, mode and tools it gets, and whether what was asked for makes sense."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from attrs import frozen

from callboard_rpc.common import Actor, CallId, Mode
from callboard_rpc.errors import CallboardError

from ..config.settings import AGENT_MESSAGING
from ..log.text import quoted
from ..models.catalog import ModelCatalog
from ..sessions.cache import SessionCache
from ..sessions.profiles import ProfileBook
from ..sessions.state import SessionState, narrowest
from ..tools.registry import ToolRegistry, in_scope, narrow
from ..turns.reservation import Grant
from . import spawning
from .messaging import WRITES
from .naming import clean_name, invalid
from .spawning import Delegation, Spawn


@frozen(kw_only=True)
class Caller:
    """Who acts on agents: a session's run, or a person in a session's place.

    `parent_id` is the session whose agents they are; `grant` the run, where one acts, and `profile` whose run
    it is: in a room one of several, each with rights of its own. None is the session's.
    """

    parent_id: str
    by: Actor
    grant: Grant | None = None
    call_id: CallId | None = None
    profile: str | None = None


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


class ModelOf(Protocol):
    """The model that a session's agent `profile` (None: the session's own) would use now."""

    def __call__(self, session_id: str, profile: str | None = None) -> Awaitable[str]: ...


class Delegates(Protocol):
    """Who owns tasks (a group): says what makes a child the owner of one."""

    async def __call__(self, caller: Caller, task_id: str) -> Delegation: ...


class Examiner:
    """`model_of` names the model that an agent of a session would use now, `name_of` what it is called."""

    def __init__(
        self,
        cache: SessionCache,
        *,
        catalog: ModelCatalog,
        registry: ToolRegistry,
        profiles: Callable[[str], ProfileBook],
        model_of: ModelOf,
        name_of: Callable[[str, str | None], str],
        features: Sequence[str] = (),
        delegates: Delegates | None = None,
    ) -> None:
        self._cache = cache
        self._catalog = catalog
        self._registry = registry
        self._profiles = profiles
        self._model_of = model_of
        self._name_of = name_of
        self._features = features
        self._delegates = delegates

    async def examine(self, caller: Caller, wanted: Wanted) -> Spawn:
        """Raises invalidParams, messageTooLarge, sessionNotFound, profileNotFound, modelUnavailable,
        taskNotFound."""
        name = clean_name(wanted.name)
        message = spawning.checked_brief(wanted.message)
        parent = await self._cache.state(caller.parent_id)
        above = await self._cache.above(parent)
        book = self._profiles(parent.cwd)
        acting = caller.profile or parent.profile
        profile = book.get(wanted.profile or acting)
        of_parent = book.get(acting)
        scope = narrow(_scope(of_parent.tools), parent.tools)
        scope = narrow(scope, _scope(profile.tools))
        if wanted.tools is not None:
            scope = narrow(scope, self._known_tools(wanted.tools, scope))
        delegation = None
        if wanted.task_id is not None:
            if self._delegates is None:
                raise CallboardError("taskNotFound", f"there is no task {quoted(wanted.task_id)}")
            delegation = await self._delegates(caller, wanted.task_id)
        return Spawn(
            parent_id=caller.parent_id,
            name=name,
            message=message,
            parent_name=self._name_of(parent.session_id, caller.profile),
            cwd=parent.cwd,
            directories=parent.directories,
            profile=profile.name,
            mode=await self._mode(profile.mode, of_parent.mode, parent, above),
            model=await self._model(wanted.model or profile.model, parent, acting),
            scope=scope,
            agent_type=spawning.checked_type(wanted.agent_type),
            message_allow=spawning.checked_allow(name, wanted.message_allow),
            can_write=AGENT_MESSAGING in self._features and in_scope(WRITES, scope),
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
                f"there is no tool {quoted(unknown[0])} to give to an agent; there are: "
                f"{', '.join(usable)}",
            )
        return frozenset(tools)

    async def _mode(
        self, wanted: Mode | None, own: Mode | None, parent: SessionState, above: Sequence[str]
    ) -> Mode:
        """Never more than any above it may do; nor, in a room, than the member's `own` mode allows it."""
        modes = await self._cache.modes((parent.session_id, *above))
        if parent.members and own is not None:
            modes.append(own)
        return narrowest([wanted or parent.mode, *modes])

    async def _model(self, wanted: str | None, parent: SessionState, acting: str) -> str | None:
        """The model that is pinned: what was named (raises modelUnavailable), else the parent's as it is
        now (coordination 47)."""
        if wanted is not None:
            await self._catalog.resolve(wanted)
            return wanted
        model = await self._model_of(parent.session_id, acting)
        return None if model == "unknown/unknown" else model


def _scope(tools: Sequence[str] | None) -> frozenset[str] | None:
    return None if tools is None else frozenset(tools)
