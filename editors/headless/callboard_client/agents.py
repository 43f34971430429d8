"""``agent/*`` as typed methods: what the parent of an agent can do, a person can."""

from collections.abc import AsyncIterator, Iterable

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
from callboard_rpc.common import AskId, SessionId, TaskId
from callboard_rpc.events import InterruptKind

from .family import Family, pages


class Agents(Family):
    """Times are in milliseconds."""

    def list(self, root_id: SessionId) -> AsyncIterator[Agent]:
        """The agents of the tree that a session is in, each as it is now, by name and then id."""
        return pages(
            self._call,
            "agent/list",
            lambda cursor: AgentListParams(root_id=root_id, cursor=cursor),
        )

    async def spawn(
        self,
        parent_id: SessionId,
        name: str,
        message: str,
        *,
        profile: str | None = None,
        model: str | None = None,
        tools: Iterable[str] | None = None,
        agent_type: str | None = None,
        message_allow: Iterable[str] = (),
        task_id: TaskId | None = None,
        idempotency_key: str | None = None,
    ) -> AgentResult:
        """A new child with `message` as its brief; what is left out comes from the parent. With `task_id` it
        owns that task of the group, or is not made."""
        params = AgentSpawnParams(
            parent_id=parent_id,
            name=name,
            message=message,
            profile=profile,
            model=model,
            tools=None if tools is None else tuple(tools),
            agent_type=agent_type,
            message_allow=tuple(message_allow),
            task_id=task_id,
            idempotency_key=idempotency_key,
        )
        return await self._call("agent/spawn", params)

    async def send(
        self, agent_id: SessionId, text: str, *, idempotency_key: str | None = None
    ) -> AgentMessageResult:
        """Leaves a message for the agent's next turn or boundary; starts nothing."""
        params = AgentMessageParams(agent_id=agent_id, text=text, idempotency_key=idempotency_key)
        return await self._call("agent/send", params)

    async def continue_(
        self, agent_id: SessionId, text: str, *, idempotency_key: str | None = None
    ) -> AgentMessageResult:
        """A message that the agent goes on with; starts a turn when none runs."""
        params = AgentMessageParams(agent_id=agent_id, text=text, idempotency_key=idempotency_key)
        return await self._call("agent/continue", params)

    async def wait(
        self,
        parent_id: SessionId,
        agent_ids: Iterable[SessionId] = (),
        *,
        timeout_ms: int | None = None,
    ) -> AgentWaitResult:
        """Waits until a child has finished, reported or asked; 30 s unless told, 300 s at the most."""
        params = AgentWaitParams(
            parent_id=parent_id, agent_ids=tuple(agent_ids), timeout_ms=timeout_ms
        )
        return await self._call("agent/wait", params)

    async def interrupt(
        self,
        agent_id: SessionId,
        kind: InterruptKind,
        reason: str | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> AgentInterruptResult:
        """``steer`` and ``cancel`` need a reason, and the feature ``interrupts``."""
        params = AgentInterruptParams(
            agent_id=agent_id, kind=kind, reason=reason, idempotency_key=idempotency_key
        )
        return await self._call("agent/interrupt", params)

    async def close(
        self, agent_id: SessionId, *, idempotency_key: str | None = None
    ) -> AgentResult:
        """Ends an agent, and those below it, for good."""
        params = AgentCloseParams(agent_id=agent_id, idempotency_key=idempotency_key)
        return await self._call("agent/close", params)

    async def reply(
        self, ask_id: AskId, text: str, *, idempotency_key: str | None = None
    ) -> AgentReplyResult:
        """Answers an agent's question for its parent; needs the feature ``messaging``."""
        params = AgentReplyParams(ask_id=ask_id, text=text, idempotency_key=idempotency_key)
        return await self._call("agent/reply", params)
