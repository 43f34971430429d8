"""Follows one run to its end: shows it, answers its approvals, obeys Ctrl-C and the time limit."""

from typing import Protocol

import anyio
from attrs import define, field

from callboard_client import Client, ConnectionLost, RemoteError, RunOutcome, RunResult, StreamItem
from callboard_rpc.common import Json, SessionId
from callboard_rpc.events import Event

from .asking import Approver
from .exits import CommandError, Exit
from .faults import root_cause
from .interrupts import Interrupts
from .present import Presenter
from .terminal import write_json_line
from .wording import usage

_OVERTIME_S = 10.0
"""The server ends a turn that is over its time; this is how long it may take to."""

_TOO_LATE = frozenset({"turnNotFound", "turnMismatch"})
"""Errors of a cancel that mean that there is nothing left to cancel."""

_EXITS: dict[RunOutcome, Exit] = {
    "completed": Exit.OK,
    "recorded": Exit.OK,
    "failed": Exit.FAILED,
    "interrupted": Exit.FAILED,
    "parked": Exit.DENIED,
    "dropped": Exit.CANCELLED,
    "cancelled": Exit.CANCELLED,
    "timed_out": Exit.TIMED_OUT,
}


class Followed(Protocol):
    """What can be followed to its end: a `Run`, or the rest of a turn that was parked."""

    @property
    def has_answered(self) -> bool:
        """Whether the turn itself has ended; what it has begun may yet work."""
        ...

    async def receive(self) -> tuple[StreamItem, Json]: ...

    async def result(self) -> RunResult: ...

    async def cancel(self, reason: str | None = None) -> None: ...


@define(kw_only=True)
class Follower:
    """Without a `presenter` the run's events are written as JSON lines."""

    client: Client
    run: Followed
    approver: Approver
    presenter: Presenter | None
    interrupts: Interrupts
    timeout_s: float | None
    _result: RunResult | None = field(default=None, init=False)
    _answered: anyio.Event = field(factory=anyio.Event, init=False)
    _late: bool = field(default=False, init=False)

    async def follow(self) -> Exit:
        """Returns when the run has ended, by whatever way."""
        try:
            with self.approver.unechoed():
                exit = await self._follow()
        except Exception as fault:
            lost = root_cause(fault)
            if isinstance(lost, ConnectionLost):
                raise _server_is_gone(self.approver.root, lost) from None
            raise
        return exit or self._exit_code()

    async def _follow(self) -> Exit | None:
        """None when the run has come to an end of its own."""
        exit: Exit | None = None
        async with anyio.create_task_group() as tasks:

            async def end(ended: Exit | None) -> None:
                nonlocal exit
                exit = exit or ended
                tasks.cancel_scope.cancel()

            async def watch() -> None:
                await self._watch()
                await end(None)

            async def killed() -> None:
                await self.interrupts.second.wait()
                self.client.kill()
                await end(Exit.CANCELLED)

            async def overdue() -> None:
                if self.timeout_s is not None:
                    await self._overdue(self.timeout_s)
                    await end(Exit.TIMED_OUT)

            tasks.start_soon(watch)
            tasks.start_soon(self.approver.serve, self.client)
            tasks.start_soon(killed)
            tasks.start_soon(self._cancel_when_asked)
            tasks.start_soon(overdue)
        return exit

    async def _watch(self) -> None:
        try:
            while True:
                item, wire = await self.run.receive()
                if self.run.has_answered:
                    self._answered.set()
                if self.presenter is not None:
                    self.presenter.show(item)
                elif isinstance(item, Event):
                    write_json_line(wire)
        except StopAsyncIteration:
            self._result = await self.run.result()

    async def _overdue(self, timeout_s: float) -> None:
        """Returns when the time is up, and what still ran has had its chance to end."""
        await anyio.sleep(timeout_s)
        with anyio.move_on_after(_OVERTIME_S):
            await self._answered.wait()  # the server ends the turn; what it has begun, it does not
        if not self._answered.is_set():
            self._say("the server did not end the turn in time: cancelling it")
        self._late = True
        await self._cancel("timed out")
        await anyio.sleep(_OVERTIME_S)

    async def _cancel_when_asked(self) -> None:
        await self.interrupts.first.wait()
        self._say("cancelling; Ctrl-C again ends it at once")
        await self._cancel("Ctrl-C")

    async def _cancel(self, reason: str) -> None:
        try:
            await self.run.cancel(reason)
        except RemoteError as fault:
            if fault.kind not in _TOO_LATE:
                raise

    def _say(self, words: str) -> None:
        if self.presenter is not None:
            self.presenter.say((words, "yellow"))

    def _exit_code(self) -> Exit:
        result = self._result
        assert result is not None
        if self.presenter is not None:
            self.presenter.footer(result.outcome, result.duration_ms, usage(result.usage))
        code = Exit.TIMED_OUT if self._late else _EXITS.get(result.outcome, Exit.FAILED)
        return Exit.DENIED if code is Exit.OK and self.approver.denied else code


def _server_is_gone(session_id: SessionId, lost: ConnectionLost) -> CommandError:
    return CommandError(
        f"session {session_id}: {lost}",
        hint="What was committed is still there, and what ran is interrupted.\n"
        f'`callboard run --session {session_id} "..."` goes on.\n'
        f"`callboard agents list {session_id}` shows its agents, "
        '`callboard agents continue AGENT "..."` has one go on.',
    )
