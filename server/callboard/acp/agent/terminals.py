"""Commands in the editor's own terminals: ``terminal/*``.

A terminal is put away when its command is over, in whatever way, also one that comes after nobody waits for it
any more. Nothing here is waited for without a bound, and what an editor answers is taken as what a stranger says.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Coroutine
from typing import Any, Final, cast

from attrs import define, field

from ...tools.base import TerminalCommand, TerminalEnd, ToolFailure
from ..contract import convert
from ..contract import services as acp
from ..contract.sessions import EnvVariable
from ..peer import REQUEST_CANCELLED, Peer, PeerClosed, PeerError
from .editor import Editor
from .follower import Follower
from .growth import Growth

_log = logging.getLogger(__name__)

_LOOK_S: Final = 0.5
"""Between two looks at what a running command has printed."""
_BEGIN_S: Final = 120.0
"""How long an editor may take to begin a command: it may ask the person about it."""
_ANSWER_S: Final = 2.0
_KILL_S: Final = 1.0
"""What is left of a turn's grace must do for the rest of its end."""
_SETTLE_S: Final = 0.05
_SETTLING: Final = 4
"""An editor may hear that a command has ended before the last of its output: it is looked at until it stays
as it is, at most so often."""
_SHOWN_S: Final = 10.0
_LONGEST_ID: Final = 1024
_LONGEST_WORDS: Final = 4096
_LARGEST_CODE: Final = 2**32 - 1

_DENIAL: Final = re.compile(
    r"\b(?:permission|access) (?:was |is )?(?:denied|refused)|\bnot (?:allowed|permitted|approved)\b"
    r"|\b(?:denied|refused|rejected|declined) by\b",
    re.IGNORECASE,
)
"""How editors say that a person, or a rule of theirs, forbids a command. The protocol has no code for it."""
_FAULTS: Final = (PeerError, PeerClosed, TimeoutError)


class EditorTerminals:
    """The terminals of one session that an editor has open."""

    def __init__(self, editor: Editor, follower: Follower, *, begin_s: float = _BEGIN_S) -> None:
        self._editor = editor
        self._begin_s = begin_s
        self._follower = follower
        self._tasks: set[asyncio.Future[Any]] = set()

    async def run(
        self, command: TerminalCommand, printed: Callable[[str], None]
    ) -> TerminalEnd | None:
        creating = self.begin(self._create(command))
        try:
            await asyncio.wait({creating}, timeout=self._begin_s)
        except asyncio.CancelledError:
            creating.add_done_callback(self._come_late)
            raise
        if not creating.done():
            creating.add_done_callback(self._come_late)
            return TerminalEnd(unknown="the editor has not answered whether it has begun it")
        fault = creating.exception()
        if isinstance(fault, PeerError):
            if fault.code == REQUEST_CANCELLED:
                raise ToolFailure("The editor called the command off. Nothing was run.")
            if _DENIAL.search(_words(fault)):
                raise ToolFailure(
                    "The editor did not allow the command, and nothing was run. Do not try it again in another "
                    "way; ask, or go on without it."
                )
            _log.info("the editor does not run a command: %s", fault)
            return None
        if fault is not None:
            return TerminalEnd(unknown=str(fault))
        terminal_id = terminal_id_of(creating.result())
        if terminal_id is None:
            return TerminalEnd(unknown="the editor has not named the terminal in which it runs")
        self._follower.show_terminal(command.call_id, terminal_id)
        return await _Running(self, terminal_id, command, printed).through()

    def _create(self, command: TerminalCommand) -> Coroutine[Any, Any, Any]:
        program, *arguments = command.argv
        request = acp.CreateTerminalRequest(
            session_id=self.session_id,
            command=program,
            args=tuple(arguments),
            env=tuple(EnvVariable(name=n, value=v) for n, v in command.environment.items()),
            cwd=str(command.cwd),
            output_byte_limit=command.kept_bytes,
        )
        # as it came: what does not fit is no refusal, since something may run
        return self.peer.request("terminal/create", request, plain=True)

    @property
    def peer(self) -> Peer:
        return self._editor.peer

    @property
    def session_id(self) -> str:
        return self._follower.session_id

    @property
    def reads(self) -> bool:
        """Whether the client keeps up with what it is sent."""
        return self._editor.conversation.drained.is_set()

    def begin(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Future[Any]":
        """A task that goes on when nobody waits for it, nor for what is wrong with it. It ends with the
        conversation."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: "asyncio.Future[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()

    def _come_late(self, creating: "asyncio.Future[Any]") -> None:
        """A terminal that nobody waits for any more."""
        if not creating.cancelled() and creating.exception() is None:
            terminal_id = terminal_id_of(creating.result())
            if terminal_id is not None:
                self.put_away(None, terminal_id, kill=True)

    def put_away(self, call_id: str | None, terminal_id: str, *, kill: bool) -> None:
        """Lets a terminal go, once the client was told to which call it belongs."""

        async def release() -> None:
            if kill:
                await self.asked("terminal/kill", acp.KillTerminalRequest, terminal_id)
            if call_id is not None:
                await self._follower.terminal_shown(call_id, within_s=_SHOWN_S)
            await self.asked("terminal/release", acp.ReleaseTerminalRequest, terminal_id)

        self.begin(release())

    async def asked(
        self, method: str, request: type[Any], terminal_id: str, within_s: float = _ANSWER_S
    ) -> Any:
        """The client's answer, or what was wrong."""
        try:
            return await self.peer.request(
                method,
                request(session_id=self.session_id, terminal_id=terminal_id),
                timeout_s=within_s,
            )
        except _FAULTS as fault:
            _log.info("%s: %s", method, fault or "no answer")
            return fault


@define(eq=False)
class _Running:
    """One command that an editor has begun."""

    _of: EditorTerminals
    _id: str
    _command: TerminalCommand
    _printed: Callable[[str], None]
    _growth: Growth = field(factory=Growth)
    _status: acp.TerminalExitStatus | acp.WaitForTerminalExitResponse | None = None
    """As the client tells it beside the output; some tell it nowhere else."""

    async def through(self) -> TerminalEnd:
        """Stays with it to its end."""
        over = False
        waiting = self._of.begin(self._exit())
        try:
            end = await self._end(waiting)
            over = end.unknown is None
            return end
        except asyncio.CancelledError:
            await self._ask_to_end()
            await self._look(_KILL_S)
            over = True
            raise
        finally:
            waiting.cancel()
            self._of.put_away(self._command.call_id, self._id, kill=not over)

    async def _exit(self) -> acp.WaitForTerminalExitResponse:
        request = acp.WaitForTerminalExitRequest(
            session_id=self._of.session_id, terminal_id=self._id
        )
        return await self._of.peer.request("terminal/wait_for_exit", request)

    async def _end(self, waiting: "asyncio.Future[Any]") -> TerminalEnd:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._command.time_limit_s
        while not waiting.done() and self._status is None:
            left = deadline - loop.time()
            if left <= 0:
                return await self._timed_out(waiting)
            await asyncio.wait({waiting}, timeout=min(_LOOK_S, left))
            if not waiting.done() and self._of.reads:
                await self._look(min(_ANSWER_S, max(deadline - loop.time(), _SETTLE_S)))
        if not waiting.done():
            await asyncio.wait({waiting}, timeout=_SETTLE_S)
        await self._settled()
        status = self._status
        if waiting.done():
            fault = waiting.exception()
            if fault is None:
                status = waiting.result()
            elif status is None:
                return self._told(unknown=str(fault))
        assert status is not None
        if status.exit_code is not None and not 0 <= status.exit_code <= _LARGEST_CODE:
            return self._told(unknown="the editor tells of an exit code that none can have")
        return self._told(exit_code=status.exit_code, signal=status.signal or None)

    async def _timed_out(self, waiting: "asyncio.Future[Any]") -> TerminalEnd:
        unknown = await self._ask_to_end()
        if unknown is None:
            await asyncio.wait({waiting}, timeout=_KILL_S)
        await self._look(_KILL_S)
        return self._told(timed_out=True, unknown=unknown)

    async def _ask_to_end(self) -> str | None:
        """What was wrong, if it did not do that."""
        answer = await self._of.asked(
            "terminal/kill", acp.KillTerminalRequest, self._id, within_s=_KILL_S
        )
        if isinstance(answer, BaseException):
            return str(answer) or "the editor does not answer"
        return None

    async def _settled(self) -> None:
        """Looks at the output until it stays as it is. What cannot be seen is missing."""
        seen = await self._look(_ANSWER_S)
        for _ in range(_SETTLING):
            if not seen:
                self._growth.cut = True
                return
            await asyncio.sleep(_SETTLE_S)
            before = self._growth.shown
            seen = await self._look(_ANSWER_S)
            if self._growth.shown == before:
                return

    async def _look(self, within_s: float) -> bool:
        answer = await self._of.asked(
            "terminal/output", acp.TerminalOutputRequest, self._id, within_s=within_s
        )
        if not isinstance(answer, acp.TerminalOutputResponse):
            return False
        new = self._growth.take(
            answer.output, cut=answer.truncated, kept_chars=self._command.kept_bytes
        )
        if new:
            self._printed(new)
        status = answer.exit_status
        if status is not None and (status.exit_code is not None or status.signal is not None):
            self._status = status
        return True

    def _told(self, **how: Any) -> TerminalEnd:
        return TerminalEnd(output=self._growth.shown, cut=self._growth.cut, **how)


def _words(fault: PeerError) -> str:
    """What an editor says of its refusal: many have the words in the data alone."""
    data: Any = fault.data
    told = cast("dict[str, Any]", data) if isinstance(data, dict) else {"message": data}
    words = (fault.message, told.get("message"), told.get("details"))
    return "\n".join(each for each in words if isinstance(each, str))[:_LONGEST_WORDS]


def terminal_id_of(answer: Any) -> str | None:
    """The terminal that an answer to ``terminal/create`` names."""
    try:
        made: acp.CreateTerminalResponse = convert.structure(answer, acp.CreateTerminalResponse)
    except convert.StructureError:
        return None
    return made.terminal_id if 0 < len(made.terminal_id) <= _LONGEST_ID else None
