"""Questions of an agent to the person (``elicitation/*``), as approvals of the kind ``question``: answered from anywhere,
once. Nothing is allowed by an answer; what it says goes to the agent."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeAlias

import orjson
from attrs import define, evolve

from callboard_rpc.common import CallId, ToolStatus

from ...tools.display import one_line
from ...turns.call import Call, settled_as
from ...turns.turn import Turn
from ..contract import services
from .eliciting import NAME, TOOL, Question
from .forms import Unfit
from .ledger import Ledger

MOST_OPEN = 16
"""How many may wait for an answer at once."""
MOST = 500
"""How many a turn may have."""
_TRIES = 5
"""How often a person is asked whose answer does not fit."""
_CANCELLED = services.ElicitationCancelled()
_NOT_AWAITED = "Its agent does not wait for the answer any more."
_DONE = "It is done, its agent says."

_Given: TypeAlias = "asyncio.Future[services.CreateElicitationResponse]"
_End: TypeAlias = tuple[services.CreateElicitationResponse, ToolStatus, str]


@define(eq=False)
class _Open:
    question: Question
    call: Call
    given: _Given
    task: "asyncio.Task[None] | None" = None


class Questions:
    """Those of one turn. `owed` takes what the person has said besides, for the agent."""

    def __init__(self, turn: Turn, ledger: Ledger, *, owed: Callable[[str], None]) -> None:
        self._turn = turn
        self._ledger = ledger
        self._owed = owed
        self._open: list[_Open] = []
        self._withdrawing: set[asyncio.Task[None]] = set()
        self._asked = 0

    @property
    def is_full(self) -> bool:
        return len(self._open) >= MOST_OPEN or self._asked >= MOST

    async def ask(
        self, question: Question, given: _Given, *, fault: Callable[[Exception], None]
    ) -> None:
        """Has a person answer; `given` is the answer then. Whoever cancels that withdraws the question."""
        if given.done():
            return
        self._asked += 1
        caller = self._turn.caller
        call = Call(
            call_id=CallId(self._turn.log.ids.new("call")),
            index=0,
            name=NAME,
            provider_call_id=None,
            tool=TOOL,
            shown=question.arguments,
            preview=question.preview(),
        )
        why = caller.why_not_asked()
        if why is None:
            caller.ask_person(call, question.options)
        await self._ledger.commit((), (call,))
        if why is not None:
            await self._ledger.write_result(settled_as(call, "denied", f"Not asked: {why}."))
            _settle(given, _CANCELLED)
            return
        entry = _Open(question, call, given)
        self._open.append(entry)
        entry.task = asyncio.get_running_loop().create_task(self._decide(entry, fault))
        given.add_done_callback(
            lambda done: self._let_go(entry, fault) if done.cancelled() else None
        )

    async def _decide(self, entry: _Open, fault: Callable[[Exception], None]) -> None:
        try:
            response, status, text = await self._end(entry)
            self._open.remove(entry)
            await self._ledger.write_result(settled_as(entry.call, status, text))
            _settle(entry.given, response)
        except Exception as error:
            _settle(entry.given, _CANCELLED)
            fault(error)

    async def _end(self, entry: _Open) -> _End:
        """What the person says, once it fits."""
        caller, question = self._turn.caller, entry.question
        for _ in range(_TRIES):
            how = await caller.answered(entry.call)
            match how.outcome:
                case "allowed":
                    try:
                        content = question.content(how)
                    except Unfit as misfit:
                        preview = question.preview(f"That did not fit: {misfit}")
                        entry.call = evolve(entry.call, preview=preview)
                        caller.ask_person(entry.call, question.options)
                        await self._ledger.ask(entry.call)
                        continue
                    said = "" if content is None else f": {orjson.dumps(content).decode()}"
                    accepted = services.ElicitationAccepted(content=content)
                    return accepted, "ok", f"Answered{said}"
                case "rejected":
                    if how.feedback:
                        about = one_line(question.message, 200)
                        self._owed(f"Your question '{about}' was not answered: {how.feedback}")
                    return services.ElicitationDeclined(), "denied", "The person does not answer."
                case "expired":
                    return _CANCELLED, "timed_out", "Nobody answered in time."
                case "cancelled":
                    return _CANCELLED, "cancelled", how.reason or "Cancelled."
        await self._ledger.withdraw(entry.call, "cancelled", "No answer has fitted.")
        return _CANCELLED, "cancelled", "No answer has fitted."

    # --- before it is answered ---

    def _let_go(self, entry: _Open, fault: Callable[[Exception], None]) -> None:
        """The agent has taken its question back, or is gone."""
        if entry not in self._open:
            return

        async def withdraw() -> None:
            try:
                await self._withdraw(entry, "cancelled", _NOT_AWAITED)
            except Exception as error:
                fault(error)

        task = asyncio.get_running_loop().create_task(withdraw())
        self._withdrawing.add(task)
        task.add_done_callback(self._withdrawing.discard)

    async def _withdraw(self, entry: _Open, status: ToolStatus, why: str) -> None:
        if entry not in self._open:
            return
        self._open.remove(entry)
        await _stop(entry)
        await self._ledger.withdraw(entry.call, status, why)

    async def complete(self, elicitation_id: str) -> None:
        """What was to be done at a URL is done: nobody need answer any more."""
        for entry in list(self._open):
            if entry.question.elicitation_id == elicitation_id:
                await self._withdraw(entry, "ok", _DONE)
                _settle(entry.given, services.ElicitationAccepted())

    async def withdraw_all(self, status: ToolStatus, why: str) -> None:
        """The agent has ended its answer, or was ended."""
        for entry in list(self._open):
            await self._withdraw(entry, status, why)
            _settle(entry.given, _CANCELLED)
        if self._withdrawing:
            await asyncio.wait(self._withdrawing)

    # --- the end ---

    def cancel(self) -> None:
        """Answers what is open: the prompt is cancelled. What is asked is taken back when that has ended."""
        for entry in self._open:
            _settle(entry.given, _CANCELLED)

    async def close(self) -> None:
        """Leaves what is asked to the end of the turn."""
        left, self._open = self._open, []
        for entry in left:
            await _stop(entry)
            _settle(entry.given, _CANCELLED)
        if self._withdrawing:
            await asyncio.wait(self._withdrawing)


async def _stop(entry: _Open) -> None:
    if entry.task is not None and entry.task is not asyncio.current_task():
        entry.task.cancel()
        await asyncio.gather(entry.task, return_exceptions=True)


def _settle(given: Any, response: services.CreateElicitationResponse) -> None:
    if not given.done():
        given.set_result(response)
