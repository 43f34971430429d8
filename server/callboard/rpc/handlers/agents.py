"""``agent/*``: a person in the place of an agent's parent."""

from collections.abc import Collection
from typing import Any

from callboard_rpc.agents import (
    Agent,
    AgentCloseParams,
    AgentInterruptParams,
    AgentInterruptResult,
    AgentListParams,
    AgentMessageParams,
    AgentMessageResult,
    AgentReplyParams,
    AgentReplyResult,
    AgentResult,
    AgentSpawnParams,
    AgentWaitParams,
    AgentWaitResult,
)
from callboard_rpc.common import Actor, AskId, SessionId, TurnId
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import Author

from ...agents.examining import Caller, Wanted
from ...agents.interrupts import Verb
from ...agents.reading import AgentReading, Place
from ...agents.service import Agents
from ...agents.waiting import DEFAULT_WAIT_S
from ...config.settings import AGENT_INTERRUPTS, AGENT_MESSAGING
from ...host import Host
from ...log.text import quoted
from ..call import Call, Handler
from ..pages import page_size, sized
from .client import Held, actor_of

_FEW = 3
"""So many agents are sooner read one by one than with all of their tree."""


def agents_of(host: Host) -> Agents:
    service = host.services["agents"]
    assert isinstance(service, Agents)
    return service


def handlers(host: Host, held: Held) -> dict[str, Handler]:
    agents = agents_of(host)
    limits = host.settings.limits

    async def result(agent_id: str) -> AgentResult:
        return AgentResult(agent=await agents.reading.agent(agent_id), cursor=host.log.cursor())

    async def list_(_: Call, params: AgentListParams) -> dict[str, Any]:
        behind = None if params.cursor is None else _place(params.cursor)

        async def fetch(limit: int) -> tuple[tuple[Agent, ...], str | None]:
            found = await agents.reading.list(params.root_id, behind=behind, limit=limit + 1)
            page = found[:limit]
            return page, _cursor(page[-1]) if len(found) > limit else None

        return await sized(fetch, page_size(params.limit, limits.page_items), limits.page_bytes)

    async def spawn(call: Call, params: AgentSpawnParams) -> AgentResult:
        wanted = Wanted(
            name=params.name,
            message=params.message,
            profile=params.profile,
            model=params.model,
            tools=params.tools,
            agent_type=params.agent_type,
            message_allow=params.message_allow,
            task_id=params.task_id,
        )
        caller = Caller(parent_id=params.parent_id, by=actor_of(call))
        with held(call):
            child = await agents.spawn(caller, wanted)
            return await result(child.agent_id)

    async def message(
        call: Call, params: AgentMessageParams, *, goes_on: bool
    ) -> AgentMessageResult:
        by = actor_of(call)
        with held(call):
            queued, turn_id = await agents.send(
                params.agent_id,
                params.text,
                goes_on=goes_on,
                author=_person(by),
                by=by,
            )
        return AgentMessageResult(
            message_id=queued.message_id,
            cursor=host.log.cursor(),
            turn_id=None if turn_id is None else TurnId(turn_id),
        )

    async def send(call: Call, params: AgentMessageParams) -> AgentMessageResult:
        return await message(call, params, goes_on=False)

    async def continue_(call: Call, params: AgentMessageParams) -> AgentMessageResult:
        return await message(call, params, goes_on=True)

    async def wait(_: Call, params: AgentWaitParams) -> AgentWaitResult:
        await host.reading.session(params.parent_id)
        waited = await agents.waiting.for_client(
            params.parent_id,
            params.agent_ids,
            timeout_s=DEFAULT_WAIT_S if params.timeout_ms is None else params.timeout_ms / 1000,
        )
        return AgentWaitResult(
            reason=waited.reason,
            agents=await _children(
                agents.reading, params.parent_id, {each.agent_id for each in waited.agents}
            ),
            reports_pending=waited.reports_pending,
            cursor=host.log.cursor(),
            questions=waited.questions,
        )

    async def interrupt(call: Call, params: AgentInterruptParams) -> AgentInterruptResult:
        if params.kind != "abort":
            _must_be_on(host, AGENT_INTERRUPTS, f"an agent cannot be told to {params.kind}")
        done = await agents.interrupt(
            params.agent_id,
            Verb(kind=params.kind, by=actor_of(call), origin="user", reason=params.reason),
        )
        return AgentInterruptResult(
            outcome=done.outcome, pending=done.pending, cursor=host.log.cursor()
        )

    async def close(call: Call, params: AgentCloseParams) -> AgentResult:
        await agents.close(params.agent_id, by=actor_of(call))
        return await result(params.agent_id)

    async def reply(call: Call, params: AgentReplyParams) -> AgentReplyResult:
        _must_be_on(host, AGENT_MESSAGING, "no agent asks anything")
        by = actor_of(call)
        asked = await agents.reply(params.ask_id, params.text, author=_person(by), by=by)
        return replied(host, asked.agent_id, asked.ask_id)

    return {
        "agent/list": list_,
        "agent/spawn": spawn,
        "agent/send": send,
        "agent/continue": continue_,
        "agent/wait": wait,
        "agent/interrupt": interrupt,
        "agent/close": close,
        "agent/reply": reply,
    }


async def _children(
    reading: AgentReading, parent_id: str, agent_ids: Collection[str]
) -> tuple[Agent, ...]:
    """Some children of a session, by name, then id, but for those that are deleted by now."""
    if len(agent_ids) > _FEW:
        tree = await reading.list(parent_id)
        return tuple(agent for agent in tree if agent.agent_id in agent_ids)
    found: list[Agent] = []
    for each in agent_ids:
        try:
            found.append(await reading.agent(each))
        except CallboardError as error:
            if error.kind != "agentNotFound":
                raise
    return tuple(sorted(found, key=lambda agent: (agent.name, agent.agent_id)))


def _person(by: Actor) -> Author:
    return Author(kind="person", name=by.name or "person", id=by.id)


def replied(host: Host, agent_id: str, ask_id: str) -> AgentReplyResult:
    """What ``agent/reply`` answers."""
    return AgentReplyResult(
        agent_id=SessionId(agent_id), ask_id=AskId(ask_id), cursor=host.log.cursor()
    )


def _must_be_on(host: Host, feature: str, without: str) -> None:
    """Raises featureDisabled for what seed 004 has off by default."""
    if feature not in host.settings.features:
        raise CallboardError(
            "featureDisabled",
            f"{without} here: switch {feature!r} on in the setting 'features' "
            f"(CALLBOARD_FEATURES={feature})",
        )


# --- cursors: the place of the last agent of a page, which no new agent can move -------------------


def _cursor(agent: Agent) -> str:
    return f"{agent.agent_id}/{agent.name}"


def _place(cursor: str) -> Place:
    agent_id, slash, name = cursor.partition("/")
    if not agent_id or not slash:
        raise CallboardError(
            "invalidCursor",
            f"the cursor {quoted(cursor)} is none of this list; leave it out to begin from the start",
        )
    return name, agent_id
