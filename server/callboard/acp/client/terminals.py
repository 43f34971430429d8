"""``terminal/*``: commands that an agent has Callboard run. Each is ended, with all that it started, when the agent
lets go of it, and at the latest with the turn."""

import asyncio
import re
import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from attrs import define, field

from ...tools.base import PathDenied
from ...tools.command import RUN_COMMAND, shell
from ...tools.display import one_line, well_formed
from ...tools.environment import CALM
from ...tools.processes import Ended, ProcessLost, run_process
from ...tools.workspace import FolderWorkspace
from ...turns.call import Call, settled_as
from ...turns.turn import Turn
from ..contract import services, tool_calls
from ..peer import INVALID_PARAMS
from .asking import Asking
from .commands import command_line, with_variables, without_place
from .desk import NOT_FOUND, Refused
from .ledger import Ledger
from .own_calls import OwnCalls
from .told import ToldCall

_MOST = 32
"""How many a turn may have at once."""
_KEPT_BYTES = 1024 * 1024
_LONGEST_S = 3_600.0
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


@define(eq=False, kw_only=True)
class _Terminal:
    limit: int
    call: Call | None
    """Our own call, where it was no part of one of the agent's."""
    cut: bool = False
    ended: Ended | None = None
    killed: bool = False
    task: "asyncio.Task[None] | None" = None
    _output: bytearray = field(factory=bytearray)

    def feed(self, data: bytes) -> None:
        self._output += data
        if len(self._output) > self.limit:
            del self._output[: len(self._output) - self.limit]
            self.cut = True

    @property
    def text(self) -> str:
        """What was printed, the end of much."""
        data = bytes(self._output)
        while self.cut and data and data[0] & 0xC0 == 0x80:
            data = data[1:]  # the rest of a character whose beginning is gone
        return well_formed(data.decode("utf-8", "replace"))

    @property
    def status(self) -> services.TerminalExitStatus | None:
        if self.killed:
            return services.TerminalExitStatus(signal="SIGTERM")
        if self.ended is None:
            return None
        if self.ended.signal is not None:
            name = signal.Signals(self.ended.signal).name
            return services.TerminalExitStatus(signal=name)
        return services.TerminalExitStatus(exit_code=self.ended.exit_code)


def _variables(request: services.CreateTerminalRequest) -> dict[str, str]:
    """Raises `Refused` for a name that is none: it would be shown as something else than what is set."""
    for each in request.env:
        if not _NAME.fullmatch(each.name):
            raise Refused(
                INVALID_PARAMS, f"env: {one_line(each.name, 80)!r} is no name of a variable"
            )
    return {each.name: each.value for each in request.env}


class Terminals:
    def __init__(
        self,
        turn: Turn,
        workspace: FolderWorkspace,
        ledger: Ledger,
        asking: Asking,
        own: OwnCalls,
        recorded: Callable[[str], AbstractAsyncContextManager[None]],
    ) -> None:
        self._turn = turn
        self._workspace = workspace
        self._ledger = ledger
        self._asking = asking
        self._own = own
        self._recorded = recorded
        self._open: dict[str, _Terminal] = {}
        self._coming = 0
        """How many are asked for that are not open yet."""

    async def serve(self, method: str, request: Any) -> Any:
        """Raises `Refused`."""
        match method:
            case "terminal/create":
                return await self._create(request)
            case "terminal/output":
                terminal = self._of(request)
                return services.TerminalOutputResponse(
                    output=terminal.text, truncated=terminal.cut, exit_status=terminal.status
                )
            case "terminal/wait_for_exit":
                terminal = self._of(request)
                if terminal.task is not None:
                    await asyncio.wait({terminal.task})
                status = terminal.status or services.TerminalExitStatus()
                return services.WaitForTerminalExitResponse(
                    exit_code=status.exit_code, signal=status.signal
                )
            case "terminal/kill":
                await self._kill(self._of(request))
                return services.KillTerminalResponse()
            case _:
                await self._kill(self._of(request))
                del self._open[request.terminal_id]
                return services.ReleaseTerminalResponse()

    def _of(self, request: Any) -> _Terminal:
        terminal = self._open.get(request.terminal_id)
        if terminal is None:
            raise Refused(NOT_FOUND, f"there is no terminal {request.terminal_id[:80]!r}")
        return terminal

    async def _create(self, request: services.CreateTerminalRequest) -> Any:
        if len(self._open) + self._coming >= _MOST:
            raise Refused(INVALID_PARAMS, f"{_MOST} terminals are open; release some")
        self._coming += 1
        try:
            return await self._opened(request)
        finally:
            self._coming -= 1

    async def _opened(self, request: services.CreateTerminalRequest) -> Any:
        try:
            cwd = self._workspace.resolve(request.cwd or str(self._workspace.root))
        except PathDenied as denied:
            raise Refused(INVALID_PARAMS, str(denied)) from None
        if not cwd.is_dir():
            raise Refused(INVALID_PARAMS, "cwd: is not a folder")
        words = (request.command, *request.args)
        line = command_line(words) if request.args else request.command
        call: Call | None = None
        given = _variables(request)
        whole = with_variables(line, given)
        known_as = (whole, with_variables(without_place(line, str(cwd)), given))
        if not any(self._asking.allows_command(each, str(cwd)) for each in known_as):
            call = await self._own.admitted(RUN_COMMAND.name, command=whole, cwd=str(cwd))
        limit = min(request.output_byte_limit or _KEPT_BYTES, _KEPT_BYTES)
        terminal = _Terminal(limit=max(limit, 1), call=call)
        terminal_id = self._turn.log.ids.new("term")
        self._open[terminal_id] = terminal
        work = self._run(terminal, terminal_id, line, request, cwd)
        terminal.task = asyncio.get_running_loop().create_task(work)
        return services.CreateTerminalResponse(terminal_id=terminal_id)

    async def _run(
        self,
        terminal: _Terminal,
        terminal_id: str,
        line: str,
        request: services.CreateTerminalRequest,
        cwd: Path,
    ) -> None:
        mark = terminal_id if terminal.call is None else terminal.call.call_id
        context = self._turn.caller.context(terminal.call.call_id if terminal.call else mark)  # pyright: ignore[reportArgumentType]
        environment = {**context.environment, **CALM, **_variables(request), "PWD": str(cwd)}
        argv = (
            (request.command, *request.args)
            if request.args
            else (shell(environment.get("PATH")), "-c", line)
        )
        try:
            async with self._recorded(mark):
                terminal.ended = await run_process(
                    argv,
                    cwd=cwd,
                    environment=environment,
                    mark=mark,
                    time_limit_s=_LONGEST_S,
                    feed=terminal.feed,
                )
        except (OSError, ValueError) as fault:
            reason = getattr(fault, "strerror", None) or str(fault)
            terminal.feed(f"The command could not be started: {reason}\n".encode())
            terminal.ended = Ended(exit_code=127)
        except ProcessLost as lost:
            terminal.feed(f"The command was lost, and killed: {lost}\n".encode())
            terminal.ended = Ended(exit_code=137)
        except asyncio.CancelledError:
            terminal.killed = True
        await self._tell(terminal)

    async def _tell(self, terminal: _Terminal) -> None:
        """The result of a call of our own."""
        if terminal.call is None:
            return
        ended = terminal.ended
        code = None if ended is None else ended.exit_code
        note = (
            "\n[ended by its agent]" if terminal.killed else f"\n[exit code {code}]" if code else ""
        )
        status = "cancelled" if ended is None else "ok" if code == 0 else "error"
        settled = settled_as(
            terminal.call, status, (terminal.text.rstrip() or "(no output)") + note
        )
        await self._ledger.write_result(settled)

    @staticmethod
    async def _kill(terminal: _Terminal) -> None:
        if terminal.task is not None and not terminal.task.done():
            terminal.task.cancel()
            await asyncio.wait({terminal.task})

    def shown_in(self, told: ToldCall) -> None:
        """A call that refers to a terminal has printed what that has."""
        for each in told.content:
            if isinstance(each, tool_calls.Terminal) and each.terminal_id in self._open:
                terminal = self._open[each.terminal_id]
                told.printed = terminal.text
                status = terminal.status
                told.exit_code = None if status is None else status.exit_code

    async def close(self) -> None:
        """Ends all of them."""
        for terminal in list(self._open.values()):
            await self._kill(terminal)
        self._open.clear()
