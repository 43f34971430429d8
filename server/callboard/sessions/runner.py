"""Builds a turn from what the session, its profile and the configuration say, and runs it."""

import asyncio
import platform
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import orjson
from attrs import frozen

from callboard_rpc.approvals import AgentStep
from callboard_rpc.common import Actor, BlobRef, CallId, Limits, Mode, SessionId, Usage
from callboard_rpc.convert import structure_lenient
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import Author, ToolCall

from ..approvals.service import Approvals
from ..config import ApprovalSettings, Settings
from ..hooks.service import HookSpace
from ..log.log import Log
from ..log.record import Record
from ..log.redact import Redactor
from ..models.catalog import ModelCatalog
from ..models.retry import BOUNDED, NEVER, UNTIL_CANCELLED, RetryPolicy
from ..tools.base import Buffers, Terminals, ToolContext
from ..tools.environment import scrubbed_environment
from ..tools.registry import ToolRegistry, in_scope, narrow
from ..tools.scheduling import WriteCoordinators
from ..tools.workspace import FolderWorkspace
from ..turns.boundary import Source
from ..turns.calls import Caller
from ..turns.completion import CompletionHook
from ..turns.deltas import Deltas, Numbering
from ..turns.finish import Hook
from ..turns.limits import TurnLimits
from ..turns.live import LiveTurn
from ..turns.projection import SQL as TURN_SQL
from ..turns.projection import turn_of
from ..turns.run import run
from ..turns.turn import Left, Turn
from ..turns.usage import add
from . import prompt_log
from .beginning import Begun
from .cache import SessionCache
from .context import ContextSettings, SessionContext
from .driving import Driver, Driving, Unasked, Untold
from .instructions import read_instructions
from .offered import Offered
from .permissions import Permits, time_to_answer_s
from .profiles import Profile, ProfileBook
from .projection import SQL
from .state import SessionState, narrowest
from .transcript import ToolContextMode

_BY_THE_CLOCK = (
    "a schedule has started this turn, and this server is set to refuse then what somebody would have to "
    "approve (schedules.approvals)"
)


@frozen(kw_only=True)
class Services:
    """What turns of one host share. `settings` and `profiles` are asked anew for every turn, so that
    an edit of a file applies to the next one."""

    log: Log
    cache: SessionCache
    catalog: ModelCatalog
    registry: ToolRegistry
    approvals: Approvals
    deltas: Deltas
    redactor: Redactor
    coordinators: WriteCoordinators
    model_slots: asyncio.Semaphore
    settings: Callable[[str], Settings]
    profiles: Callable[[str], ProfileBook]
    environ: Mapping[str, str]
    withheld: Sequence[Path]
    """Files that no tool may touch."""
    attended: Callable[[], bool]
    sources: Sequence[Source]
    hooks: Sequence[Hook]
    completion: Sequence[CompletionHook]
    lifecycle: HookSpace
    tool_services: Mapping[str, Any]
    drivers: Mapping[str, Driver]
    """Who drives the turns of profiles of a kind, where that is no model."""
    buffers: Offered[Buffers]
    terminals: Offered[Terminals]


class SessionBlobs:
    """The blob sink of one session."""

    def __init__(self, log: Log, session_id: str) -> None:
        self._log = log
        self._session_id = session_id

    async def put(self, data: bytes, mime_type: str = "text/plain; charset=utf-8") -> BlobRef:
        return await self._log.put_blob(self._session_id, data, mime_type)


class TurnRunner:
    """A `Runner` over a host's services."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._environments: dict[tuple[str, ...], Mapping[str, str]] = {}

    def _environment(self, allow: tuple[str, ...]) -> Mapping[str, str]:
        """What commands may see. This process' own does not change, so it is judged once."""
        known = self._environments.get(allow)
        if known is None:
            known = self._environments[allow] = scrubbed_environment(self._services.environ, allow)
        return known

    async def __call__(self, live: LiveTurn, begun: Begun) -> None:
        turn = await self.build(live, begun)
        await run(turn)
        if turn.lifecycle.knows("SessionEnd"):
            await self._tell_of_end(turn)

    async def _tell_of_end(self, turn: Turn) -> None:
        """Lets the hooks know of an end, as it stands in the store; a turn that was parked has none."""
        rows = await self._services.log.query(TURN_SQL["turn"], turn.live.turn_id)
        ended = turn_of(rows[0]) if rows else None
        if ended is not None and ended.ended_at is not None:
            turn.lifecycle.tell(
                "SessionEnd",
                outcome=ended.state,
                finalText=ended.final_text,
                error=None if ended.error is None else ended.error.message,
                errorKind=None if ended.error is None else ended.error.kind,
            )

    async def build(self, live: LiveTurn, begun: Begun) -> Turn:
        """Raises `CallboardError` for a folder, a profile or a model that is not there any more, and
        `ValueError` for what was begun for another session (execution 10)."""
        if begun.session_id != live.session_id:
            raise ValueError(f"{live.session_id} was given what {begun.session_id} has begun")
        services = self._services
        state = await services.cache.state(live.session_id)
        settings = services.settings(state.cwd)
        profile = services.profiles(state.cwd).get(begun.profile)
        workspace = _workspace(state, self._services.withheld)
        driver = self._driver(profile)
        model = (
            Unasked(profile)
            if driver is not None
            else await services.catalog.resolve(
                state.model or profile.model, text_tool_calls=profile.text_tool_calls
            )
        )
        scope = narrow(None if profile.tools is None else frozenset(profile.tools), state.tools)
        above = await services.cache.above(state)
        # a member may do no more than its profile says, in whatever mode the room is
        ceiling: Mode = (profile.mode or "work") if state.members else "work"
        name = profile.name if state.members else state.agent_name or profile.name
        author = Author(kind="agent", name=name, id=live.session_id)
        actor = Actor(kind="agent", id=live.session_id, name=name)
        numbering = Numbering(
            services.deltas, live.session_id, live.turn_id, redactor=services.redactor
        )
        permits = Permits(
            session_id=live.session_id,
            above=above,
            workspace=workspace,
            scope=scope,
            cache=services.cache,
            approvals=services.approvals,
            settings=_careful(settings.approvals, services.log, live.session_id),
            attended=services.attended,
            ceiling=ceiling,
            refusal=_refusal(settings, services.log, live.turn_id),
        )
        hooks = services.lifecycle.of(
            settings,
            session_id=live.session_id,
            cwd=state.cwd,
            touch=live.touch,
            rootId=state.root_id,
            turnId=live.turn_id,
            profile=profile.name,
        )
        environment = self._environment(tuple(settings.tools.environment_allow))
        blobs = SessionBlobs(services.log, live.session_id)

        def mode() -> Mode:
            known = (services.cache.read(each) for each in (live.session_id, *above))
            modes: list[Mode] = [ceiling, *(each.mode for each in known if each is not None)]
            return narrowest(modes if len(modes) > 1 else (ceiling, state.mode))

        def context_of(call_id: CallId) -> ToolContext:
            def emit(text: str) -> None:
                live.touch()
                numbering.publish(call_id, "tool_output", text)

            return ToolContext(
                workspace=workspace,
                session=live.session_id,
                turn=live.turn_id,
                fence=live.grant.fence,
                call_id=call_id,
                mode=mode(),
                emit=emit,
                blobs=blobs,
                environment=environment,
                command_timeout_s=settings.tools.command_timeout_s,
                output_limit_bytes=settings.tools.output_bytes,
                services=services.tool_services,
                profile=profile.name,
                buffers=services.buffers.of(live.session_id, state.root_id),
                # what agents below run goes on beside it, and stays with our own runner
                terminals=services.terminals.of(state.root_id) if state.parent_id is None else None,
            )

        def expires_at() -> str | None:
            return _from_now(time_to_answer_s(settings.approvals, attended=services.attended()))

        async def transact(function: Callable[[Any], None]) -> None:
            await services.log.transact(function)

        caller = Caller(
            grant=live.grant,
            root_id=state.root_id,
            path=_path_to(services.log, live.session_id, name),
            actor=actor,
            look_up=lambda name: services.registry.get(name) if in_scope(name, scope) else None,
            tool_names=lambda: [t.name for t in services.registry if in_scope(t.name, scope)],
            context=context_of,
            judge=permits.judge,
            judge_again=permits.judge_again,
            approvals=services.approvals,
            transact=transact,
            new_id=services.log.ids.new,
            expires_at=expires_at,
            time_limit_s=60.0,
            redact=services.log.redact,
            asking=live.asking,
            output_over=numbering.finish,
            why_not_asked=permits.why_not_asked,
            hooks=hooks,
        )
        tools = services.registry.specs(scope) if model.card.supports_tools else ()
        limits = turn_limits(settings, profile.limits, begun.limits)
        sections = prompt_sections(profile, settings, workspace, others=_others(state, name))
        speaker = name if state.parent_id is None else None
        drive = None
        if driver is None:
            prompt_log.note(live.session_id, live.turn_id, sections, tools, services.redactor)
        else:
            driving = Driving(
                profile=profile,
                state=state,
                workspace=workspace,
                mode=mode,
                context_of=context_of,
                notes=tuple(sections[each] for each in ("profile", "instructions", "room")),
                speaker=speaker,
                resumed=begun.resumed,
            )
            drive = partial(driver, driving)
        context = (
            Untold()
            if driver is not None
            else SessionContext(
                log=services.log,
                cache=services.cache,
                grant=live.grant,
                model=model,
                system=prompt_log.joined(sections),
                tools=tools,
                settings=ContextSettings(
                    tools=tools_in_context(state, profile, settings),
                    window=model.card.context_window or settings.context.window_default,
                    reserved_output=settings.context.reserved_output,
                    compact_at=settings.context.compact_at,
                ),
                author=author,
                actor=actor,
                max_output_tokens=model.card.max_output_tokens,
                effort=state.effort or profile.effort,
                lifecycle=hooks,
                speaker=speaker,
                of_several=is_shared(state),
            )
        )
        return Turn(
            live=live,
            log=services.log,
            model=model,
            context=context,
            caller=caller,
            coordinator=services.coordinators.of(workspace.root),
            numbering=numbering,
            author=author,
            actor=actor,
            model_slots=services.model_slots,
            sources=services.sources,
            hooks=services.hooks,
            completion=services.completion,
            lifecycle=hooks,
            limits=limits,
            retry=retry_policy(limits, begun.limits),
            draft_interval_ms=settings.draft.interval_ms,
            draft_bytes=settings.draft.bytes,
            left=await left_of(services.log, live) if begun.resumed else Left(),
            drive=drive,
        )

    def _driver(self, profile: Profile) -> Driver | None:
        """Who drives the turns of a profile; None is the loop over its model."""
        if profile.kind == "builtin":
            return None
        driver = self._services.drivers.get(profile.kind)
        if driver is None:
            raise CallboardError(
                "profileNotFound",
                f"the profile {profile.name!r} is an agent of kind {profile.kind}, which nobody here can "
                "run; use another profile, or another server",
            )
        return driver


async def left_of(log: Log, live: LiveTurn) -> Left:
    """What a parked turn has yet to do: its open calls, with all that was cut from their events. What
    it used so far is what its messages say, and partial: answers that were only calls say nothing."""
    rows = await log.query(TURN_SQL["open_call_records"], live.turn_id)
    calls = [structure_lenient(await log.whole(Record.of(row)), ToolCall) for row in rows]
    used = Usage()
    for (text,) in await log.query(TURN_SQL["usages_of_turn"], live.session_id, live.turn_id):
        used = add(used, structure_lenient(orjson.loads(text), Usage))
    return Left(calls=tuple(calls), usage=attrs.evolve(used, partial=True))


def _careful(settings: ApprovalSettings, log: Log, session_id: str) -> ApprovalSettings:
    """Nothing may be read unasked in folders that only an imported file names."""
    if not log.glance(SQL["folders_only_claimed"], session_id):
        return settings
    return attrs.evolve(settings, policy={**settings.policy, "read": "ask"})


def _refusal(settings: Settings, log: Log, turn_id: str) -> str | None:
    """Why a turn that the clock has started asks nobody, where it is set to refuse then."""
    if settings.schedules.approvals != "deny":
        return None
    rows = log.glance(TURN_SQL["turn"], turn_id)
    if rows and turn_of(rows[0]).trigger.kind == "schedule":
        return _BY_THE_CLOCK
    return None


def _path_to(log: Log, session_id: str, name: str) -> tuple[AgentStep, ...]:
    """The agents from a session's root, called by its profile, down to its own, which is called `name`
    (interrupts-and-peers 56)."""
    above = log.glance(SQL["path_to"], session_id)[:-1]
    return tuple(
        AgentStep(session_id=SessionId(each), name=called)
        for each, called in (*above, (session_id, name))
    )


def _workspace(state: SessionState, withheld: Sequence[Path]) -> FolderWorkspace:
    root = Path(state.cwd)
    if not root.is_dir():
        raise CallboardError(
            "pathNotFound",
            f"the folder {state.cwd} of session {state.session_id} is not there any more",
            data={"path": state.cwd},
        )
    directories = [Path(path) for path in state.directories]
    return FolderWorkspace(root, directories, withheld=withheld)


def _from_now(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    at = datetime.now(UTC) + timedelta(seconds=seconds)
    return at.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def turn_limits(settings: Settings, *asked: Limits | None) -> TurnLimits:
    """The configuration's limits, narrowed by the profile's and the prompt's. A time that is none, or
    less, limits nothing (execution 46)."""
    given = [limits for limits in asked if limits is not None]
    times = [
        ms / 1000 for ms in (limits.timeout_ms for limits in given) if ms is not None and ms > 0
    ]
    turns = [limits.turns for limits in given if limits.turns is not None]
    return TurnLimits(
        iterations=max(1, min((settings.limits.max_iterations, *turns))),
        tokens=min((each.tokens for each in given if each.tokens is not None), default=None),
        cost=min((each.cost for each in given if each.cost is not None), default=None),
        total_s=settings.limits.turn_total_s,
        deadline_s=min(times, default=None),
        idle_s=settings.limits.turn_idle_s,
        cancel_grace_s=settings.limits.cancel_grace_s,
    )


def retry_policy(limits: TurnLimits, asked: Limits | None) -> RetryPolicy:
    """How often a turn's model requests may be made again before they are answered (execution 42-44).

    `asked` is the prompt's own word, for its turn alone: it is no part of what a profile, a later turn
    or a child goes by. A work budget switches it off, since what is tried again is spent unseen.
    """
    if limits.tokens is not None or limits.cost is not None:
        return NEVER
    return UNTIL_CANCELLED if asked is not None and asked.retry == "until_cancelled" else BOUNDED


def is_shared(state: SessionState) -> bool:
    """Whether several agents take part. One that is alone in its room has a session like any other."""
    return len(state.members) > 1


def tools_in_context(state: SessionState, profile: Profile, settings: Settings) -> ToolContextMode:
    """What an agent sees of its earlier turns' tool traffic: nothing, where several take part (DESIGN 6)."""
    if is_shared(state):
        return "audit"
    return profile.context_tools or settings.context.tools


def _others(state: SessionState, name: str) -> tuple[str, ...]:
    """The other members of a room, each once, in their order."""
    own = name.casefold()
    return tuple(each for each in state.members if each.casefold() != own)


def room_note(others: Sequence[str]) -> str:
    """What a member is told of the others; nothing where there are none, so that an agent that is alone reads
    the same bytes with a room and without (session-messaging 9)."""
    if not others:
        return ""
    return (
        f"Others take part in this conversation: {', '.join(others)}. To have one of them answer you, address "
        "it in your last message, as @name; nobody answers otherwise."
    )


def prompt_sections(
    profile: Profile, settings: Settings, workspace: FolderWorkspace, *, others: Sequence[str] = ()
) -> Mapping[str, str]:
    """The system prompt by its parts: the profile's prompt, the configured instructions, where we are,
    who else is in the room, and the folder's AGENTS.md. Blank where there is nothing.

    Nothing in it changes from request to request, so that a provider's prompt cache holds.
    """
    return {
        "profile": profile.prompt,
        "instructions": settings.instructions or "",
        "place": f"Working directory: {workspace.root}\nOperating system: {platform.system()}",
        "room": room_note(others),
        "AGENTS.md": read_instructions(workspace.root).render(),
    }
