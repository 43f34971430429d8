"""What the tests of agents of other makers share: a host with one such agent, which plays a scene."""

import json
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import psutil
from attrs import define

from callboard.acp.client.feature import feature
from callboard.features import Feature
from callboard.host import Host
from callboard_rpc.common import UNSET
from harness.inside import CLIENT, PATIENCE_S, PERSON, host_in, idle, log_of, pending, say, until

AGENT = Path(__file__).parents[2] / "harness" / "acp_agent.py"
OPTIONS = [
    {"optionId": "allow", "name": "Yes", "kind": "allow_once"},
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "reject", "name": "No", "kind": "reject_once"},
]


def tool_call(call_id: str = "t1", **fields: Any) -> dict[str, Any]:
    return {
        "update": {"sessionUpdate": "tool_call", "toolCallId": call_id, "title": "A call", **fields}
    }


def tool_update(call_id: str = "t1", **fields: Any) -> dict[str, Any]:
    return {"update": {"sessionUpdate": "tool_call_update", "toolCallId": call_id, **fields}}


def printed(text: str) -> list[dict[str, Any]]:
    return [{"type": "content", "content": {"type": "text", "text": text}}]


def permission(call_id: str = "t1", **fields: Any) -> dict[str, Any]:
    call = {"toolCallId": call_id, "title": "touch made", **fields}
    return {"permission": {"toolCall": call, "options": OPTIONS}}


def command(line: str = "touch made") -> dict[str, Any]:
    return {"kind": "execute", "rawInput": {"command": line}}


@define
class Stage:
    host: Host
    folder: Path

    async def session(self, profile: str = "puppet", mode: str = "work", **more: Any) -> str:
        session = await self.host.sessions.create(
            cwd=str(self.folder), profile=profile, mode=mode, by=CLIENT, **more
        )
        return session.session_id

    async def say(self, session_id: str, text: str = "go", **more: Any) -> Any:
        return await say(self.host, session_id, text, **more)

    async def idle(self, session_id: str) -> list[Any]:
        assert (await idle(self.host, session_id)).reason == "idle"
        return await log_of(self.host, session_id)

    async def turn(self, text: str = "go", **more: Any) -> list[Any]:
        """One prompt in a session of its own, to its end; its records."""
        session_id = await self.session(**more)
        await self.say(session_id, text)
        return await self.idle(session_id)

    async def asked(self) -> Any:
        (approval,) = await pending(self.host)
        return approval

    async def answer(self, option: str = "allow_once", **more: Any) -> Any:
        approval = await self.asked()
        return await self.host.approvals.answer(
            approval.approval_id, option, by=CLIENT, via="method", **more
        )

    async def switch(self, session_id: str, mode: Any) -> None:
        await self.host.sessions.update(
            session_id,
            by=CLIENT,
            title=UNSET,
            pinned=UNSET,
            metadata=UNSET,
            mode=mode,
            model=UNSET,
        )

    async def seen(self, session_id: str, kind: str, count: int = 1) -> Any:
        """The event of a kind, once there are so many."""

        async def look() -> Any:
            found = [r for r in await log_of(self.host, session_id) if r.type == kind]
            return found[count - 1] if len(found) >= count else None

        return await until(self.host, look)

    @staticmethod
    async def until_file(path: Path) -> None:
        """Waits for a file of the agent's."""
        with anyio.fail_after(PATIENCE_S):
            while not path.exists() or not path.read_text():
                await anyio.sleep(0.01)

    @staticmethod
    async def until_gone(pid: int) -> None:
        """Waits for the end of a process of the agent's; nothing of it may be left to be waited for."""
        with anyio.fail_after(PATIENCE_S):
            while psutil.pid_exists(pid):
                await anyio.sleep(0.01)

    def heard(self, method: str = "") -> list[dict[str, Any]]:
        """What the agent was sent, by method."""
        path = self.folder / "heard"
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        return [m for m in map(json.loads, lines) if not method or m.get("method") == method]

    def told(self) -> list[str]:
        """The texts of the prompts that it was sent."""
        return [
            "\n".join(block.get("text", "") for block in message["params"]["prompt"])
            for message in self.heard("session/prompt")
        ]


def write_agent(
    folder: Path, scene: Mapping[str, Any], name: str = "puppet", **fields: Any
) -> None:
    """Writes a profile of the person's, and the scene that its agent plays."""
    agents = folder / "config" / "agents"
    agents.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"heard": str(folder / "heard"), **scene}), "utf-8")
    words = [sys.executable, str(AGENT), str(path)]
    front = {"kind": "acp", "command": words, **fields}
    text = "\n".join(f"{key}: {json.dumps(value)}" for key, value in front.items())
    body = scene.get("prompt", "")
    (agents / f"{name}.md").write_text(f"---\n{text}\n---\n{body}", "utf-8")


@asynccontextmanager
async def stage(
    folder: Path,
    *actions: dict[str, Any],
    scene: Mapping[str, Any] | None = None,
    features: Sequence[Feature] = (),
    config: str = "",
    **more: Any,
) -> AsyncGenerator[Stage]:
    """A host with the agent ``puppet``, which does `actions` at every prompt that `scene` does not name."""
    given = dict(scene or {})
    given["prompts"] = [*given.get("prompts", ()), ["", list(actions)]]
    write_agent(folder, given)
    if config:
        (folder / "config" / "config.toml").write_text(config, "utf-8")
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(folder)}
    async with host_in(folder, features=[feature(environ), *features], **more) as host:
        yield Stage(host, folder)


__all__ = ["CLIENT", "PERSON", "Stage", "stage"]
