"""What an agent has Callboard do for it, as calls of our own tools: judged, asked about, logged and run as every
other."""

import asyncio
from typing import Any

import orjson

from callboard_rpc.common import CallId

from ...models.base import ToolOutput, ToolRequest
from ...turns.answer import Requested
from ...turns.call import Call
from ...turns.turn import Turn
from ..peer import INVALID_PARAMS
from .desk import Refused
from .ledger import Ledger


class OwnCalls:
    def __init__(self, turn: Turn, ledger: Ledger) -> None:
        self._turn = turn
        self._ledger = ledger
        self.asking: set[asyncio.Task[Any]] = set()
        """The tasks in which somebody is asked about such a call."""

    async def admitted(self, name: str, **arguments: Any) -> Call:
        """A call of our tool `name` that is in the log and may run. Raises `Refused` for one that may not."""
        caller = self._turn.caller
        text = orjson.dumps({k: v for k, v in arguments.items() if v is not None}).decode()
        requested = Requested(
            call_id=CallId(self._turn.log.ids.new("call")),
            request=ToolRequest(call_id=None, name=name, arguments=text),
        )
        call = await caller.prepare(requested, 0)
        await self._ledger.commit((), (call,))
        refused = await self._admit(call)
        if refused is not None:
            raise Refused(INVALID_PARAMS, refused.text)
        return call

    async def _admit(self, call: Call) -> ToolOutput | None:
        caller, task = self._turn.caller, asyncio.current_task()
        if call.approval_id is None or task is None:
            return await caller.admit(call)
        self.asking.add(task)
        try:
            return await caller.admit(call)
        finally:
            self.asking.discard(task)

    async def run(self, name: str, **arguments: Any) -> ToolOutput:
        """Runs it, alone in its workspace. Raises `Refused` for one that may not or does not."""
        call = await self.admitted(name, **arguments)
        async with self._turn.coordinator.hold():
            output = await self._turn.caller.keep(await self._turn.caller.run(call))
        if output.is_error:
            raise Refused(INVALID_PARAMS, output.text)
        return output
