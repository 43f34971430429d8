"""An agent made with the Python SDK: it says what it was told, asks before it "runs" something, and can be called
away."""

import asyncio
import uuid
from typing import Any

from acp.schema import AgentCapabilities, Implementation, PermissionOption, ToolCallUpdate

from acp import (
    PROTOCOL_VERSION,
    Agent,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    run_agent,
    start_tool_call,
    update_agent_message_text,
    update_tool_call,
)

OPTIONS = [
    PermissionOption(option_id="yes", name="Allow", kind="allow_once"),
    PermissionOption(option_id="no", name="Reject", kind="reject_once"),
]


class Echo(Agent):
    def on_connect(self, conn: Any) -> None:
        self.client = conn
        self.stops: dict[str, asyncio.Event] = {}

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(load_session=False),
            agent_info=Implementation(name="py-echo", version="1"),
        )

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        return NewSessionResponse(session_id=uuid.uuid4().hex)

    async def cancel(self, session_id: str, **_: Any) -> None:
        self.stops[session_id].set()

    async def prompt(self, prompt: Any, session_id: str, **_: Any) -> PromptResponse:
        text = "".join(getattr(block, "text", "") for block in prompt)
        stop = self.stops[session_id] = asyncio.Event()
        if "wait" in text:
            await self._say(session_id, "I wait.")
            await stop.wait()
            return PromptResponse(stop_reason="cancelled")
        if "run" not in text:
            await self._say(session_id, f"echo: {text}")
            return PromptResponse(stop_reason="end_turn")
        await self.client.session_update(
            session_id=session_id,
            update=start_tool_call("t1", "touch a.txt", kind="execute", status="pending"),
        )
        answer = await self.client.request_permission(
            session_id=session_id,
            tool_call=ToolCallUpdate(tool_call_id="t1", title="touch a.txt"),
            options=OPTIONS,
        )
        if answer.outcome.outcome == "cancelled":
            return PromptResponse(stop_reason="cancelled")
        allowed = answer.outcome.option_id == "yes"
        status = "completed" if allowed else "failed"
        await self.client.session_update(
            session_id=session_id, update=update_tool_call("t1", status=status)
        )
        await self._say(session_id, "done" if allowed else "refused")
        return PromptResponse(stop_reason="end_turn")

    async def _say(self, session_id: str, text: str) -> None:
        await self.client.session_update(
            session_id=session_id, update=update_agent_message_text(text)
        )


asyncio.run(run_agent(Echo()))
