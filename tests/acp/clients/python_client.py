"""The client of the Python SDK, on a lead: it does what lines of JSON on its stdin say.

``{"id", "do": "connect", "command", "terminal"}`` starts an agent and initializes it, with terminals or without; ``{"id", "do": METHOD, ...params}``
calls it; ``{"id", "do": "answer", "kinds"}`` says with which kinds of options permissions are answered from
now on (none: not before this is said again, or with ``"cancelled"``); ``{"id", "do": "leave"}`` ends the agent. On stdout come
``{"id", "result" | "error"}``, and ``{"update"}`` and ``{"asked"}`` as the agent sends them, ``{"created"}`` and
``{"released"}`` of terminals.
"""

import asyncio
import json
import os
import signal
import sys
from contextlib import AsyncExitStack
from typing import Any

from acp.schema import (
    AllowedOutcome,
    BooleanConfigOptionCapabilities,
    ClientCapabilities,
    ClientSessionCapabilities,
    CreateTerminalResponse,
    DeniedOutcome,
    FileSystemCapabilities,
    Implementation,
    RequestPermissionResponse,
    SessionConfigOptionsCapabilities,
    TerminalOutputResponse,
    WaitForTerminalExitResponse,
)

from acp import PROTOCOL_VERSION, RequestError, spawn_agent_process, text_block


def say(**message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return value


class Terminal:
    """One command that the agent has begun here."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.output = b""
        self.reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while data := await self.process.stdout.read(1 << 16):
            self.output += data

    async def exit(self) -> WaitForTerminalExitResponse:
        await self.reading
        code = await self.process.wait()
        name = signal.Signals(-code).name if code < 0 else None
        return WaitForTerminalExitResponse(exit_code=None if code < 0 else code, signal=name)

    async def end(self) -> None:
        if self.process.returncode is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        await self.exit()


class Person:
    """What the SDK calls for the agent."""

    def __init__(self) -> None:
        self.terminals: dict[str, Terminal] = {}
        self.kinds: list[str] = []
        self.decided = asyncio.Event()

    def on_connect(self, conn: Any) -> None:
        pass

    def decide(self, kinds: list[str]) -> None:
        self.kinds = kinds
        if kinds:
            self.decided.set()
        else:
            self.decided.clear()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        say(update=plain(update), sessionId=session_id)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: Any, **_: Any
    ) -> RequestPermissionResponse:
        say(asked=plain(tool_call), options=[plain(o) for o in options], sessionId=session_id)
        await self.decided.wait()
        for kind in self.kinds:
            for option in options:
                if option.kind == kind:
                    chosen = AllowedOutcome(outcome="selected", option_id=option.option_id)
                    return RequestPermissionResponse(outcome=chosen)
        return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))

    async def create_terminal(
        self,
        session_id: str,
        command: str,
        args: list[str] | None = None,
        env: list[Any] | None = None,
        cwd: str | None = None,
        output_byte_limit: int | None = None,
        **_: Any,
    ) -> CreateTerminalResponse:
        process = await asyncio.create_subprocess_exec(
            command,
            *(args or []),
            cwd=cwd,
            env={**os.environ, **{each.name: each.value for each in env or []}},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        terminal_id = f"terminal-{len(self.terminals) + 1}"
        self.terminals[terminal_id] = Terminal(process)
        say(created=terminal_id, command=[command, *(args or [])])
        return CreateTerminalResponse(terminal_id=terminal_id)

    async def terminal_output(
        self, session_id: str, terminal_id: str, **_: Any
    ) -> TerminalOutputResponse:
        text = self.terminals[terminal_id].output.decode("utf-8", "ignore")
        return TerminalOutputResponse(output=text, truncated=False)

    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **_: Any
    ) -> WaitForTerminalExitResponse:
        return await self.terminals[terminal_id].exit()

    async def kill_terminal(self, session_id: str, terminal_id: str, **_: Any) -> None:
        await self.terminals[terminal_id].end()

    async def release_terminal(self, session_id: str, terminal_id: str, **_: Any) -> None:
        await self.terminals[terminal_id].end()
        say(released=terminal_id)


class Lead:
    def __init__(self) -> None:
        self.person = Person()
        self.stack = AsyncExitStack()
        self.conn: Any = None
        self.process: Any = None

    async def connect(self, command: list[str], more: dict[str, Any]) -> Any:
        self.stack = AsyncExitStack()
        self.conn, self.process = await self.stack.enter_async_context(
            spawn_agent_process(
                self.person,  # pyright: ignore
                *command,
                env=dict(os.environ),
                transport_kwargs={"stderr": sys.stderr, "limit": 32 << 20},
            )
        )
        return await self.conn.initialize(
            protocol_version=PROTOCOL_VERSION,
            client_capabilities=ClientCapabilities(
                fs=FileSystemCapabilities(read_text_file=False, write_text_file=False),
                session=ClientSessionCapabilities(
                    config_options=SessionConfigOptionsCapabilities(
                        boolean=BooleanConfigOptionCapabilities()
                    )
                ),
                **more,
            ),
            client_info=Implementation(name="python-sdk", version="1"),
        )

    async def leave(self) -> Any:
        await self.stack.aclose()
        return {"code": self.process.returncode}

    async def do(self, what: str, given: dict[str, Any]) -> Any:
        conn, session = self.conn, given.get("sessionId", "")
        match what:
            case "connect":
                return await self.connect(given["command"], given["capabilities"])
            case "leave":
                return await self.leave()
            case "answer":
                return self.person.decide(given["kinds"])
            case "authenticate":
                return await conn.authenticate(method_id=given["methodId"])
            case "session/new":
                return await conn.new_session(cwd=given["cwd"], mcp_servers=[])
            case "session/load":
                return await conn.load_session(cwd=given["cwd"], session_id=session, mcp_servers=[])
            case "session/resume":
                return await conn.resume_session(cwd=given["cwd"], session_id=session)
            case "session/prompt":
                return await conn.prompt(session_id=session, prompt=[text_block(given["text"])])
            case "session/cancel":
                return await conn.cancel(session_id=session)
            case "session/list":
                return await conn.list_sessions(cwd=given["cwd"])
            case "session/close":
                return await conn.close_session(session_id=session)
            case "session/set_mode":
                return await conn.set_session_mode(session_id=session, mode_id=given["modeId"])
            case "session/set_config_option":
                return await conn.set_config_option(
                    session_id=session, config_id=given["configId"], value=given["value"]
                )
            case _:  # what this SDK has no method for
                return await conn._conn.send_request(what, given)

    async def obey(self, order: dict[str, Any]) -> None:
        number, what = order.pop("id"), order.pop("do")
        try:
            result = await self.do(what, order)
        except RequestError as error:
            say(id=number, error={"code": error.code, "message": str(error), "data": error.data})
        except Exception as error:
            say(id=number, error={"code": 0, "message": f"{type(error).__name__}: {error}"})
        else:
            say(id=number, result=plain(result))


async def main() -> None:
    reader = asyncio.StreamReader(limit=1 << 24)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    lead = Lead()
    async with asyncio.TaskGroup() as tasks:
        async for line in reader:
            tasks.create_task(lead.obey(json.loads(line)))


asyncio.run(main())
