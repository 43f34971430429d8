"""The conversation with one agent: what it can do, the session that it keeps for one of ours, and who deals with
what it says.

Agents are not all as the protocol has them: some print to their output, tell of a session before they have named it,
or answer with errors that are texts. What can be understood is; the rest is passed over, and logged.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from callboard_rpc.common import Mode
from callboard_rpc.errors import CallboardError

from ...rpc import codec
from ...rpc.framing import read_head
from ...sessions.offers import Values
from ...sessions.profiles import Profile
from ..contract import content, server, sessions, updates
from ..contract.convert import structure_lenient
from ..peer import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Peer,
    PeerClosed,
    PeerError,
)
from .backlog import Backlog
from .bounds import bounded
from .desk import NOT_FOUND, Desk, served
from .failures import HANDSHAKE_S, failure_of
from .last_words import SAID_LAST
from .lines import LIMIT
from .modes import Choices
from .offering import Models, models_of
from .process import AgentProcess
from .settling import Settling

_log = logging.getLogger(__name__)

STEERING: Final = "_session/steering"
STEERING_S = 5.0
"""How long it may take to say whether it takes a correction."""
_LEAVE_IT_WHEN_IDLE: Final = {"steering": {"idleBehavior": "promptRequired"}}
_TAKEN: Final = frozenset({"injected", "startedNewTurn"})
NOT_RESUMED: Final = frozenset({NOT_FOUND, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR})
"""Errors by which agents say that a session cannot be gone on with; a new one can be begun then."""

_KEPT = 200
"""How many updates are kept that come while nobody deals with them."""
_KEPT_BYTES = 8 * 1024 * 1024
_BREATH = 50
"""How many lines are read before others have their turn."""
_NOISE_CHARS = 400
_LONGEST_ID = 1024


class Connection:
    """`log_text` makes what is logged fit to be: redacted. `unheard` are updates that came while nobody dealt with
    them, the newest of many."""

    def __init__(self, profile: Profile, *, log_text: Callable[[str], str]) -> None:
        self.profile = profile
        self.hello: server.InitializeResponse = server.InitializeResponse(protocol_version=1)
        self.session_id: str | None = None
        self.choices = Choices()
        self._settling = Settling(profile, self.choices, self._ask_plain)
        self.desk: Desk | None = None
        self.unheard = Backlog(_KEPT, _KEPT_BYTES)
        self.through: int = 0
        """The seq through which the agent was told, in the session that it has now."""
        self.fresh = True
        """It was told nothing yet."""
        self.lost = False
        """It does not know any more what it was told in an earlier session."""
        self.owed: list[str] = []
        """What it is to be told with the next prompt besides."""
        self.spent: float = 0.0
        """What it has cost so far, in its session."""
        self._models: Models | None = None
        self._log_text = log_text
        self._process: AgentProcess | None = None
        self._swallowing = False
        self._read_lines = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.peer = Peer("client", send=self._send, spawn=self._spawn, structure=structure_lenient)
        self.peer.serve(served(self))

    # --- the process ---

    async def open(self, *, cwd: Path, environment: Mapping[str, str], mark: str) -> AgentProcess:
        """Starts the program. Raises `CallboardError` for one that cannot be."""
        try:
            self._process = await AgentProcess.start(
                self.profile.command,
                cwd=cwd,
                environment=environment,
                mark=mark,
                line=self._line,
                passed_over=self._passed_over,
                gone=self._gone,
            )
        except (OSError, ValueError) as fault:
            program = self.profile.command[0]
            reason = getattr(fault, "strerror", None) or str(fault)
            raise CallboardError(
                "modelUnavailable",
                f"the agent {self.profile.name!r} could not be started: {program}: {reason}; install it, or "
                f"mend 'command' in {self.profile.path or 'its profile'}",
            ) from None
        return self._process

    @property
    def lives(self) -> bool:
        return self._process is not None and self._process.lives and self.peer.closed is None

    def _send(self, body: bytes) -> None:
        assert self._process is not None
        self._process.send(body)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _gone(self) -> None:
        assert self._process is not None
        words = self._log_text(self._process.last_words())
        said = f"; {SAID_LAST}\n{words}" if words else ""
        self.peer.close(f"the agent {self.profile.name!r} {self._process.how_ended}{said}")

    async def over(self) -> None:
        """Returns when nothing is left of the process."""
        if self._process is not None:
            await self._process.over.wait()

    async def close(self) -> None:
        """Ends the conversation and the process."""
        self.peer.close(f"the agent {self.profile.name!r} was stopped")
        if self._process is not None:
            await self._process.end()

    # --- what comes ---

    async def _line(self, line: bytes) -> None:
        if not line.lstrip().startswith(b"{"):
            text = self._log_text(line.decode("utf-8", "replace")[: _NOISE_CHARS * 4])
            _log.info("agent %s printed: %s", self.profile.name, text[:_NOISE_CHARS])
            return
        message = self._read(line)
        if message is None:
            return
        if message.get("method") == "session/update" and "id" not in message:
            await self._update(message.get("params"), len(line))
            self._read_lines += 1
            if self._read_lines % _BREATH == 0:
                await asyncio.sleep(0)
            return
        self.peer.take(message)
        # what was asked begins before what comes behind it is looked at
        await asyncio.sleep(0)

    def _passed_over(self, beginning: bytes) -> None:
        """Whoever waits for what a line that was too long had asked, or answered, hears of it."""
        head = read_head(beginning)
        if head.id is not None:
            self.peer.refuse_large(head, LIMIT)

    def _read(self, line: bytes) -> dict[str, Any] | None:
        try:
            message = codec.decode(line)
        except (codec.NotJson, codec.TooDeep) as fault:
            _log.info("agent %s wrote a line that cannot be read: %s", self.profile.name, fault)
            return None
        return cast("dict[str, Any]", message)

    async def _update(self, params: Any, size: int) -> None:
        try:
            told: updates.SessionNotification = structure_lenient(
                params, updates.SessionNotification
            )
        except Exception as fault:
            _log.info("agent %s told what cannot be read: %s", self.profile.name, fault)
            return
        if self.session_id is not None and told.session_id != self.session_id:
            return
        if self._swallowing:
            return
        update = bounded(told.update)
        if update is None:
            return
        self.choices.heed(update)
        if self.desk is not None and self.session_id is not None:
            await self.desk.update(update, size)
        else:
            self.unheard.add(update, size)

    # --- what is asked of the agent ---

    async def initialize(self) -> None:
        """The handshake. Raises `CallboardError`."""
        mine = server.ClientCapabilities(
            fs=server.FileSystemCapabilities(read_text_file=True, write_text_file=True),
            terminal=True,
            session=server.ClientSessionCapabilities(
                config_options=server.SessionConfigOptionsCapabilities(boolean=server.Marker()),
                notices=server.Marker(),
            ),
            elicitation=server.ElicitationCapabilities(form=server.Marker(), url=server.Marker()),
            meta={"terminal_output": True},
        )
        asked = server.InitializeRequest(
            protocol_version=server.PROTOCOL_VERSION,
            client_capabilities=mine,
            client_info=server.Implementation(name="callboard", version=_version()),
        )
        self.hello = await self.ask("initialize", asked, timeout_s=HANDSHAKE_S)
        if self.hello.protocol_version != server.PROTOCOL_VERSION:
            raise CallboardError(
                "unsupportedVersion",
                f"the agent {self.profile.name!r} speaks version {self.hello.protocol_version} of the Agent "
                f"Client Protocol, and Callboard version {server.PROTOCOL_VERSION}",
            )

    @property
    def name(self) -> str | None:
        """What the agent calls itself, with its version."""
        info = self.hello.agent_info
        return None if info is None else f"{info.title or info.name} {info.version}"[:200]

    async def new_session(self, cwd: str, directories: tuple[str, ...]) -> None:
        """Raises `CallboardError`."""
        asked = self._place(sessions.NewSessionRequest, cwd, directories)
        try:
            answer = await self._opened("session/new", asked)
        except CallboardError as error:
            if error.kind != "authRequired" or not await self._used_its_key():
                raise
            answer = await self._opened("session/new", asked)
        if not 0 < len(answer.session_id) <= _LONGEST_ID:
            raise CallboardError(
                "modelError", f"the agent {self.profile.name!r} has given its session no usable id"
            )
        self._began(answer.session_id, answer)

    async def _opened(self, method: str, asked: Any) -> Any:
        try:
            return await self._open_by(method, asked)
        except (PeerError, PeerClosed, TimeoutError) as fault:
            raise self.failure(fault, method) from None

    async def _open_by(self, method: str, asked: Any) -> Any:
        """The answer that opens a session; some tell in it of models, which the protocol has no place for any more.
        Raises `PeerError`, `PeerClosed`, `TimeoutError`."""
        plain = await self.peer.request(method, asked, timeout_s=HANDSHAKE_S, plain=True)
        self._models = models_of(plain)
        return self.peer.result_of(method, plain)

    async def _used_its_key(self) -> bool:
        """Has the agent go by the key in its environment, where it has a way for that and wants to be asked. Any
        other way would have a person do something, in the agent's own program."""
        for method in self.hello.auth_methods:
            if isinstance(method, server.AuthMethodAgent) and "api-key" in (method.meta or {}):
                asked = server.AuthenticateRequest(method_id=method.id)
                try:
                    await self.peer.request("authenticate", asked, timeout_s=HANDSHAKE_S)
                except (PeerError, PeerClosed, TimeoutError):
                    return False
                return True
        return False

    async def take_up(self, session_id: str, cwd: str, directories: tuple[str, ...]) -> bool:
        """Goes on with a session of the agent's own. False when it cannot be. Raises `CallboardError`."""
        can = self.hello.agent_capabilities
        if can.session_capabilities.resume is not None:
            asked, method = sessions.ResumeSessionRequest, "session/resume"
        elif can.load_session:
            asked, method = sessions.LoadSessionRequest, "session/load"
        else:
            return False
        # what it tells of the past is in our log already
        self._swallowing = method == "session/load"
        try:
            place = self._place(asked, cwd, directories, session_id=session_id)
            answer = await self._open_by(method, place)
        except PeerError as error:
            if error.code in NOT_RESUMED:
                _log.info(
                    "agent %s cannot go on: %s", self.profile.name, self._log_text(error.message)
                )
                return False
            raise self.failure(error, method) from None
        except (PeerClosed, TimeoutError) as fault:
            raise self.failure(fault, method) from None
        finally:
            self._swallowing = False
        self._began(session_id, answer)
        return True

    def _place(self, asked: Any, cwd: str, directories: tuple[str, ...], **more: Any) -> Any:
        offers = self.hello.agent_capabilities.session_capabilities.additional_directories
        return asked(
            cwd=cwd, additional_directories=directories if offers is not None else (), **more
        )

    def _began(self, session_id: str, answer: Any) -> None:
        self.session_id = session_id
        self._settling.begin(session_id)
        self.choices.begin(answer.modes, answer.config_options, self._models)

    async def prompt(self, blocks: Sequence[content.ContentBlock]) -> dict[str, Any]:
        """The answer as it came: some tell in it what was used, which the protocol has no place for yet. Raises
        `PeerError`, `PeerClosed`."""
        assert self.session_id is not None
        asked = sessions.PromptRequest(session_id=self.session_id, prompt=tuple(blocks))
        answer = await self.peer.request("session/prompt", asked, plain=True)
        return cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}

    @property
    def steers(self) -> bool:
        """Whether it takes in what is said while it works."""
        for meta in (self.hello.meta, self.hello.agent_capabilities.meta):
            told = (meta or {}).get("steering")
            if isinstance(told, dict):
                return cast("dict[str, Any]", told).get("supported") is True
        return False

    async def steer(self, blocks: Sequence[content.ContentBlock]) -> bool:
        """Says something to an agent that works. False when it has not taken it in: some answer what they do not
        know with an empty result, and one that has just ended is to leave the words to the next prompt."""
        assert self.session_id is not None
        asked = sessions.PromptRequest(
            session_id=self.session_id, prompt=tuple(blocks), meta=_LEAVE_IT_WHEN_IDLE
        )
        try:
            answer = await self.peer.request(STEERING, asked, timeout_s=STEERING_S, plain=True)
        except (PeerError, PeerClosed, TimeoutError):
            return False
        outcome: Any = (
            cast("dict[str, Any]", answer).get("outcome") if isinstance(answer, dict) else None
        )
        return outcome in _TAKEN

    async def settle(self, mode: Mode, wanted: Values) -> None:
        """Brings the agent's session into a mode that fits ours, and sets what a person wants of it. Raises
        `CallboardError`."""
        await self._settling.settle(mode, wanted)

    async def _ask_plain(self, method: str, params: Any) -> Any:
        """The answer as it came. Raises `CallboardError`."""
        try:
            return await self.peer.request(method, params, timeout_s=HANDSHAKE_S, plain=True)
        except (PeerError, PeerClosed, TimeoutError) as fault:
            raise self.failure(fault, method) from None

    def cancel(self) -> None:
        if self.session_id is not None:
            self.peer.notify(
                "session/cancel", sessions.CancelNotification(session_id=self.session_id)
            )

    async def ask(self, method: str, params: Any, *, timeout_s: float | None = None) -> Any:
        """Raises `CallboardError`."""
        try:
            return await self.peer.request(method, params, timeout_s=timeout_s)
        except (PeerError, PeerClosed, TimeoutError) as fault:
            raise self.failure(fault, method) from None

    def failure(self, fault: Exception, method: str) -> CallboardError:
        """What a request came to, for people."""
        return failure_of(
            fault, method, self.profile, self.hello.auth_methods, log_text=self._log_text
        )


def _version() -> str:
    from ...rpc.greeting import version

    return version()
