"""An agent made with the Python SDK. A prompt's last word says what it does: ``works`` (thinks, plans, tells what it has
used), ``writes`` and ``runs`` (with permission, and by its client), ``waits`` (until it is cancelled); anything else
it answers with all that was said to it so far. It keeps that beside the folder that it works in, and loads it again.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from acp.schema import (
    AgentCapabilities,
    Implementation,
    PermissionOption,
    ToolCallLocation,
    ToolCallUpdate,
    UsageUpdate,
)

import acp

OPTIONS = [
    PermissionOption(option_id="no", name="Rather not", kind="reject_once"),
    PermissionOption(option_id="yes", name="Go ahead", kind="allow_once"),
]


class Stopped(Exception):
    """The turn was cancelled."""


class SdkAgent(acp.Agent):
    def on_connect(self, conn: Any) -> None:
        self.client = conn
        self.cwd: Path = Path()
        self.cancelled = asyncio.Event()

    async def initialize(self, protocol_version: int, **_: Any) -> acp.InitializeResponse:
        return acp.InitializeResponse(
            protocol_version=acp.PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(load_session=True),
            agent_info=Implementation(name="python-sdk-agent", version="1"),
        )

    async def new_session(self, cwd: str, **_: Any) -> acp.NewSessionResponse:
        self.cwd = Path(cwd)
        return acp.NewSessionResponse(session_id="python-1")

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> acp.LoadSessionResponse:
        self.cwd = Path(cwd)
        for text in self.said():
            await self.client.session_update(session_id, acp.update_user_message_text(text))
            await self.client.session_update(
                session_id, acp.update_agent_message_text("So it was.")
            )
        return acp.LoadSessionResponse()

    @property
    def _kept(self) -> Path:
        return self.cwd.with_name("python-sdk-agent.json")

    def said(self) -> list[str]:
        return json.loads(self._kept.read_text("utf-8")) if self._kept.exists() else []

    async def cancel(self, session_id: str, **_: Any) -> None:
        self.cancelled.set()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> acp.PromptResponse:
        self.cancelled.clear()
        text = "".join(getattr(block, "text", "") for block in prompt)
        said = [*self.said(), text]
        self._kept.write_text(json.dumps(said), "utf-8")
        act = getattr(self, text.split()[-1], None) if text.split()[-1] in ACTS else None
        try:
            if act is None:
                await self.say(session_id, " / ".join(said))
            else:
                await act(session_id)
        except Stopped:
            return acp.PromptResponse(stop_reason="cancelled")
        return acp.PromptResponse(stop_reason="end_turn")

    async def say(self, session_id: str, text: str) -> None:
        await self.client.session_update(session_id, acp.update_agent_message_text(text))

    async def works(self, session_id: str) -> None:
        tell = self.client.session_update
        await tell(session_id, acp.update_agent_thought_text("First think."))
        entries = [acp.plan_entry("Look", priority="high", status="completed")]
        await tell(session_id, acp.update_plan(entries))
        place = ToolCallLocation(path=str(self.cwd / "a.txt"), line=3)
        started = acp.start_read_tool_call("look-1", "Look at a.txt", str(self.cwd / "a.txt"))
        await tell(session_id, started.model_copy(update={"locations": [place]}))
        content = [acp.tool_content(acp.text_block("It is empty."))]
        done = acp.update_tool_call("look-1", status="completed", content=content)
        await tell(session_id, done)
        usage = UsageUpdate(session_update="usage_update", used=321, size=1000)
        await tell(session_id, usage)
        await self.say(session_id, "Worked.")

    async def may(self, session_id: str, call_id: str) -> bool:
        answer = await self.client.request_permission(
            session_id, ToolCallUpdate(tool_call_id=call_id), OPTIONS
        )
        if answer.outcome.outcome == "cancelled":
            raise Stopped
        if answer.outcome.option_id == "yes":
            return True
        await self.client.session_update(session_id, acp.update_tool_call(call_id, status="failed"))
        await self.say(session_id, "Then not.")
        return False

    async def writes(self, session_id: str) -> None:
        path = str(self.cwd / "made.txt")
        started = acp.start_tool_call(
            "write-1",
            "Write made.txt",
            kind="edit",
            status="pending",
            locations=[ToolCallLocation(path=path)],
            content=[acp.tool_diff_content(path, "made\n")],
        )
        await self.client.session_update(session_id, started)
        if await self.may(session_id, "write-1"):
            await self.client.write_text_file(session_id, path, "made\n")
            done = acp.update_tool_call("write-1", status="completed")
            await self.client.session_update(session_id, done)
            back = await self.client.read_text_file(session_id, path)
            await self.say(session_id, f"It has {back.content!r}.")

    async def runs(self, session_id: str) -> None:
        command = "echo ran > ran.txt; cat ran.txt"
        started = acp.start_tool_call(
            "run-1", command, kind="execute", status="pending", raw_input={"command": command}
        )
        await self.client.session_update(session_id, started)
        if await self.may(session_id, "run-1"):
            made = await self.client.create_terminal(
                session_id, "/bin/sh", args=["-c", command], cwd=str(self.cwd)
            )
            shown = [acp.tool_terminal_ref(made.terminal_id)]
            begun = acp.update_tool_call("run-1", status="in_progress", content=shown)
            await self.client.session_update(session_id, begun)
            await self.client.wait_for_terminal_exit(session_id, made.terminal_id)
            output = await self.client.terminal_output(session_id, made.terminal_id)
            done = acp.update_tool_call("run-1", status="completed")
            await self.client.session_update(session_id, done)
            await self.client.release_terminal(session_id, made.terminal_id)
            await self.say(session_id, f"It printed {output.output!r}.")

    async def waits(self, session_id: str) -> None:
        await self.say(session_id, "tick")
        await self.cancelled.wait()
        raise Stopped


ACTS = ("works", "writes", "runs", "waits")

if __name__ == "__main__":
    sys.stderr.write("The agent of the Python SDK has begun.\n")
    asyncio.run(acp.run_agent(SdkAgent()))
