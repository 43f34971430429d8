"""A Callboard server as a child process, and what one can ask of it."""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO, Any

import anyio
from anyio.abc import TaskStatus
from attrs import evolve

from callboard_rpc.common import Cursor, Json, Limits, Mode, SessionId
from callboard_rpc.convert import StructureError, structure_lenient, unstructure
from callboard_rpc.events import Delivery
from callboard_rpc.methods import METHODS
from callboard_rpc.server import (
    ClientCapabilities,
    HandshakeResult,
)
from callboard_rpc.streams import Scope

from .agents import Agents
from .api import Approvals, Blobs, Config, Events, Models, Profiles, Server, Sessions
from .approving import ApprovalDesk, ApprovalRequests
from .connection import Connection, Handler, OnReply
from .errors import ClientError, ConnectionLost, ProtocolError, RemoteError, StartError
from .groups import Groups
from .handshake import shake_hands
from .options import ClientOptions
from .peers import Peers
from .process import ServerProcess
from .rooms import NewRoom, Rooms
from .run import Run, RunUntil
from .schedules import Schedules
from .stream import EventStream
from .subscriptions import Subscriptions

_RETRIES = 3
"""How often a request is sent again to a new server: it may be what ends them."""


_LAST_WORDS_S = 1.0
"""How long a server whose output has ended may take to end itself, and to say why on stderr."""


class Client:
    """Made by ``async with Client.start(...) as client``. Not for use from several threads."""

    def __init__(self, options: ClientOptions) -> None:
        self._options = options
        self._link: Connection | None = None
        self._process: ServerProcess | None = None
        self._up = anyio.Event()
        self._ended = anyio.Event()
        self._gone: Exception | None = None
        self._stopping = False
        self._grace_s = options.stop_grace_s
        self._desk = ApprovalDesk()
        self._tasks = anyio.create_task_group()
        self._subscriptions = Subscriptions(
            self, self._tasks, backoff=options.backoff, outlives=options.restart
        )
        self._handshake: HandshakeResult | None = None
        self.server = Server(self.call)
        self.config = Config(self.call)
        self.models = Models(self.call)
        self.profiles = Profiles(self.call)
        self.blobs = Blobs(self.call)
        self.sessions = Sessions(self.call)
        self.approvals = Approvals(self.call)
        self.agents = Agents(self.call)
        self.groups = Groups(self.call)
        self.rooms = Rooms(self.call)
        self.schedules = Schedules(self.call)
        self.peers = Peers(self.call)
        self.history = Events(self.call)

    @classmethod
    @asynccontextmanager
    async def start(
        cls,
        command: Sequence[str] | None = None,
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        client_id: str | None = None,
        name: str | None = None,
        capabilities: ClientCapabilities | None = None,
        restart: bool | None = None,
        stderr: IO[bytes] | None = None,
        handlers: Mapping[str, Handler] | None = None,
        options: ClientOptions | None = None,
    ) -> AsyncGenerator["Client", None]:
        """Starts a server, shakes hands, and ends it when the block is left.

        The keywords replace fields of `options`, which see; `env` replaces the whole environment
        (None inherits it). Raises `StartError`, or `RemoteError` when the server refuses.
        """
        given: dict[str, Any] = {
            "command": None if command is None else tuple(command),
            "env": env,
            "cwd": cwd,
            "client_id": client_id,
            "name": name,
            "capabilities": capabilities,
            "restart": restart,
            "stderr": stderr,
            "handlers": handlers,
        }
        changes = {key: value for key, value in given.items() if value is not None}
        client = cls(evolve(options or ClientOptions(), **changes))
        # A fault of the block is carried around the task group, which would wrap it into a group.
        fault: BaseException | None = None
        async with client._tasks:
            try:
                await client._tasks.start(client._supervise)
                yield client
            except anyio.get_cancelled_exc_class():
                raise
            except BaseException as raised:
                fault = raised
            finally:
                await client._stop()
        if fault is not None:
            raise fault

    # --- what it knows ----------------------------------------------------------------------------

    @property
    def handshake(self) -> HandshakeResult:
        """What the server said in its answer to ``initialize``; of the latest server."""
        assert self._handshake is not None
        return self._handshake

    @property
    def pid(self) -> int | None:
        """The server's process, while there is one."""
        return None if self._process is None else self._process.pid

    # --- calls ------------------------------------------------------------------------------------

    async def call(self, method: str, params: Any = None) -> Any:
        """Calls any request of the method table; the result is of the class that the table names.

        A mutating call without an idempotency key gets one. Raises `RemoteError`,
        `ConnectionLost`, or `ProtocolError` when the answer does not fit.
        """
        entry = METHODS.get(method)
        if entry is None or entry.direction != "clientToServer" or entry.kind != "request":
            raise ClientError(f"{method} is not a request that a client can make")
        if params is None:
            params = entry.params()
        if entry.mutates and params.idempotency_key is None:
            params = evolve(params, idempotency_key=self._options.new_key())
        result = await self.request(method, unstructure(params))
        try:
            return structure_lenient(result, entry.result)
        except StructureError as fault:
            raise ProtocolError(f"the answer to {method} is malformed: {fault}") from None

    async def request(self, method: str, params: Json, *, on_reply: OnReply | None = None) -> Any:
        """Any method by its name, raw JSON in and out: for what the table does not know yet."""
        for attempt in range(1 + _RETRIES):
            link = await self._wait_up()
            try:
                return await link.request(method, params, on_reply=on_reply)
            except ConnectionLost:
                if not self._options.restart or self._stopping or attempt == _RETRIES:
                    raise ConnectionLost(f"{method}: {await self._reason()}") from None
        raise AssertionError("unreachable")

    def notify(self, method: str, params: Json) -> None:
        """Sends a notification, or nothing when there is no server at this moment."""
        if self._link is not None:
            self._link.notify(method, params)

    def post(self, method: str, params: Json) -> None:
        """Sends a request whose answer does not matter, or nothing when there is no server."""
        if self._link is not None and not self._stopping:
            self._link.post(method, params)

    async def _wait_up(self) -> Connection:
        while True:
            if self._gone is not None:
                raise self._gone
            if self._link is not None:
                return self._link
            await self._up.wait()

    async def _reason(self) -> str:
        """Why the server ended, as soon as that is known."""
        if not self._options.restart and not self._stopping:
            with anyio.move_on_after(self._grace_s + _LAST_WORDS_S):
                await self._ended.wait()
        return str(self._gone or "the server ended before it answered")

    # --- events, approvals, runs ------------------------------------------------------------------

    def events(
        self,
        scope: Scope,
        from_: str | Cursor = "now",
        *,
        types: Iterable[str] | None = None,
        deltas: bool = True,
        max_batch: int | None = None,
        max_latency_ms: int | None = None,
    ) -> EventStream:
        """History from `from_` ("now", "start" or a cursor), then live; see `EventStream`."""
        return EventStream(
            self._subscriptions,
            scope,
            from_=from_,
            types=None if types is None else tuple(types),
            deltas=deltas,
            max_batch=max_batch,
            max_latency_ms=max_latency_ms,
        )

    def approval_requests(self) -> ApprovalRequests:
        """The approvals that the server asks this client for, until the client ends.

        Raises `ClientError` unless the client declared that it takes them.
        """
        if not self._options.capabilities.approvals:
            raise ClientError(
                "this client did not declare approvals: "
                "start it with capabilities=ClientCapabilities(approvals=True)"
            )
        return ApprovalRequests(self._desk)

    def run(
        self,
        prompt: str,
        *,
        cwd: str | Path | None = None,
        session_id: SessionId | None = None,
        title: str | None = None,
        profile: str | None = None,
        model: str | None = None,
        mode: Mode | None = None,
        delivery: Delivery = "auto",
        limits: Limits | None = None,
        deltas: bool = True,
        until: RunUntil = "turn",
        room: NewRoom | None = None,
        to: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> Run:
        """One prompt from start to end, in a new session in `cwd` (default: this process's) or in
        the session `session_id`. Iterate over it, or await its ``result()``. `until` ``rest``, it also
        waits for the agents that were begun meanwhile, and for what they wake. `room` says who takes part in
        a new session, `to` which of them is asked. `options` are those of an agent of another maker."""
        return Run(
            self,
            prompt,
            cwd=Path.cwd() if cwd is None else Path(cwd),
            session_id=session_id,
            title=title,
            profile=profile,
            model=model,
            mode=mode,
            delivery=delivery,
            limits=limits,
            deltas=deltas,
            until=until,
            room=room,
            to=to,
            options=options,
        )

    # --- life cycle -------------------------------------------------------------------------------

    async def _supervise(self, *, task_status: TaskStatus[None]) -> None:
        """Keeps a server running; ends when there will be none any more."""
        delays = self._options.backoff.delays()
        began = False
        while True:
            started_at = anyio.current_time()
            try:
                end: ClientError = await self._serve_once(None if began else task_status)
            except ClientError as fault:
                if not began:
                    raise
                end = fault
            began = True
            if self._stopping:
                return
            if anyio.current_time() - started_at > self._options.stable_after_s:
                delays = self._options.backoff.delays()
            delay_s = next(delays, None) if self._options.restart else None
            if delay_s is None:
                self._give_up(end)
                return
            await anyio.sleep(delay_s)

    async def _serve_once(self, task_status: TaskStatus[None] | None) -> ClientError:
        """One server from its start to its end, which it returns in words."""
        options = self._options
        process = await ServerProcess.spawn(
            options.command, env=options.env, cwd=options.cwd, stderr=options.stderr
        )
        link = Connection(
            process.stdin,
            process.stdout,
            on_notification=self._subscriptions.on_notification,
            handlers={**options.handlers, "approval/request": self._desk.handle},
        )
        refusal: ClientError | None = None
        self._process = process
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(process.drain_stderr)
                tasks.start_soon(link.serve)
                try:
                    self._handshake = await shake_hands(link, options)
                except ClientError as fault:
                    refusal = fault
                else:
                    self._open(link)
                    if task_status is not None:
                        task_status.started()
                    await link.lost.wait()
                    self._close()
                    with anyio.move_on_after(_LAST_WORDS_S):
                        await process.wait()
                tasks.cancel_scope.cancel()
        finally:
            self._close()
            await process.stop(self._grace_s)
            self._process = None
        if refusal is not None and not isinstance(refusal, ConnectionLost):
            raise refusal
        end = process.describe_end()
        if refusal is not None:
            stray = f" (it wrote {link.stray!r})" if link.stray else ""
            raise StartError(f"the server did not start: it {end}{stray}")
        return ConnectionLost(f"the server {end}")

    def _open(self, link: Connection) -> None:
        self._link = link
        self._up.set()
        self._subscriptions.on_up()

    def _close(self) -> None:
        self._link = None
        if self._up.is_set():
            self._up = anyio.Event()
        self._subscriptions.on_down()

    def _give_up(self, end: ClientError) -> None:
        self._gone = end
        self._ended.set()
        self._up.set()
        self._subscriptions.end(end)
        self._desk.end(end)

    def kill(self) -> None:
        """Ends the server without waiting for anything; leaving the block then takes 2 s at most.

        The log keeps what was committed; the server's turn is found as interrupted.
        """
        self._grace_s = 0.0
        if self._process is not None:
            self._process.terminate()

    async def _stop(self) -> None:
        """Asks the server to end, and sees to it that it does. Never raises."""
        self._stopping = True
        with anyio.CancelScope(shield=True):
            if self._link is not None:
                with anyio.move_on_after(self._grace_s):
                    await self._say_goodbye(self._link)
            self._give_up(ClientError("this client is closed"))
            self._desk.end(None)
            self._tasks.cancel_scope.cancel()

    async def _say_goodbye(self, link: Connection) -> None:
        with suppress(ConnectionLost, RemoteError):  # then it is ending already
            await link.request("shutdown", {})
        link.notify("exit", None)
        await link.lost.wait()
