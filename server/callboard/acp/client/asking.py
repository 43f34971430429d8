"""An agent's questions whether it may do something: they become approvals of ours, and policy comes first."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from attrs import define, evolve

from ...turns.turn import Turn
from ..contract.tool_calls import RequestPermissionRequest, RequestPermissionResponse
from .choosing import CANCELLED, answer, own_options
from .deciding import Decided
from .ledger import Ledger, Tracked
from .writes import Allowance

_log = logging.getLogger(__name__)

_Answer = asyncio.Future[RequestPermissionResponse]


@define(eq=False)
class _Question:
    """What is asked of a person just now, and who waits for the answer: an agent may take its request back, and
    ask the same again."""

    tracked: Tracked
    request: RequestPermissionRequest
    given: _Answer


class Asking:
    """The questions of one turn. `decided` is what was, before a restart, of calls that had not begun. `owed` takes what the person has said besides, for the agent."""

    def __init__(
        self,
        turn: Turn,
        ledger: Ledger,
        *,
        decided: Decided,
        owed: Callable[[str], None],
    ) -> None:
        self._turn = turn
        self._ledger = ledger
        self._decided = decided
        self._owed = owed
        self._open: dict[int, _Question] = {}
        self._writes = Allowance()
        self._allowed_commands: set[tuple[str, str]] = set()

    async def ask(
        self,
        tracked: Tracked,
        request: RequestPermissionRequest,
        given: _Answer,
        *,
        fault: Callable[[Exception], None],
    ) -> None:
        """Decides a question, or has a person decide it; `given` is its answer then."""
        if tracked.question is not None and not tracked.question.done():
            self._once_more(self._open.get(id(tracked)), request, given)
            return
        caller = self._turn.caller
        call = self._ledger.make(tracked.told)
        tracked.writes = self._ledger.writes(tracked.told, call)
        if tracked.call is not None:
            call = evolve(call, call_id=tracked.call.call_id, index=tracked.call.index)
        standing = self._decided.take(call, self._turn.log.redact)
        verdict = await caller.judge(call)
        if verdict.effect == "ask" and standing is not None:
            call.verdict, call.approval_id = evolve(verdict, effect="allow"), None
        elif verdict.effect == "ask" and (own := own_options(request.options)):
            call.verdict = evolve(verdict, options=own)
        if tracked.call is None:
            tracked.call = call
            await self._ledger.commit((), (call,))
        else:
            tracked.call = call
            if call.approval_id is not None:
                await self._ledger.ask(call)
        if standing is not None and verdict.effect == "ask":
            await self._stands(tracked, request, given, allowed=standing)
            return
        question = self._open[id(tracked)] = _Question(tracked, request, given)
        tracked.question = asyncio.get_running_loop().create_task(self._decide(question, fault))

    def _once_more(
        self, question: _Question | None, request: RequestPermissionRequest, given: _Answer
    ) -> None:
        """Of several that wait for one answer, one gets it: the first that has not been taken back."""
        if question is not None and question.given.done():
            question.request, question.given = request, given
        else:
            _settle(given, CANCELLED)

    async def _stands(
        self, tracked: Tracked, request: Any, given: _Answer, *, allowed: bool
    ) -> None:
        if allowed:
            self._allow(tracked)
        else:
            await self._ledger.settle(
                tracked, "denied", "The person has refused this call before the restart."
            )
        _settle(given, answer(request.options, allowed=allowed))

    async def _decide(self, question: _Question, fault: Callable[[Exception], None]) -> None:
        tracked = question.tracked
        call, caller = tracked.call, self._turn.caller
        assert call is not None
        try:
            refused = await caller.admit(call)
            if refused is not None:
                tracked.settled = True
            else:
                self._allow(tracked)
            how = await caller.how_answered(call)
            if refused is not None and how is not None and how.feedback:
                self._owed(f"Your call '{tracked.told.shown_title}' was refused: {how.feedback}")
            chosen = None if how is None else how.option_id
            options = question.request.options
            _settle(question.given, answer(options, allowed=refused is None, chosen=chosen))
        except asyncio.CancelledError:
            _settle(question.given, CANCELLED)
            raise
        except Exception as error:
            _settle(question.given, CANCELLED)
            fault(error)
        finally:
            self._open.pop(id(tracked), None)

    def _allow(self, tracked: Tracked) -> None:
        """Goes by the call as it was judged and shown: its agent may have told something else of it since."""
        tracked.allowed = True
        call = tracked.call
        assert call is not None
        preview = call.preview
        if preview is None or call.tool is None:
            return
        if preview.command is not None:
            command = preview.command.strip()
            self._allowed_commands.update((command, folder) for folder in preview.paths)
        elif call.tool.effect == "write":
            self._writes.add(tracked.writes)

    # --- what was allowed ---

    def allows_write(self, path: str, before: str | None, after: str) -> bool:
        """Whether it was just allowed to make of that file (its path resolved), which is `before`, what is `after`;
        once."""
        return self._writes.take(path, before, after)

    def allows_command(self, command: str, cwd: str) -> bool:
        """Whether it was just allowed to run that in that folder; once."""
        try:
            self._allowed_commands.remove((command.strip(), cwd))
        except KeyError:
            return False
        return True

    def forget(self) -> None:
        """What was allowed was for that prompt."""
        self._writes.clear()
        self._allowed_commands.clear()

    # --- the end ---

    async def withdraw(self, tracked: Tracked) -> None:
        """The call is over, so nobody need answer; whoever decides it just now may have written its result."""
        question = tracked.question
        if question is not None and not question.done():
            question.cancel()
            await asyncio.gather(question, return_exceptions=True)

    def cancel(self) -> None:
        """Answers what is open: the turn is cancelled."""
        for question in list(self._open.values()):
            _settle(question.given, CANCELLED)
            if question.tracked.question is not None:
                question.tracked.question.cancel()

    def leave(self) -> None:
        """Answers nothing, and leaves what is asked as it is: it outlives this server."""
        for question in list(self._open.values()):
            if question.tracked.question is not None:
                question.tracked.question.cancel()

    async def close(self) -> None:
        questions = [
            each.tracked.question
            for each in self._open.values()
            if each.tracked.question is not None
        ]
        self.cancel()
        await asyncio.gather(*questions, return_exceptions=True)


def _settle(given: _Answer, response: RequestPermissionResponse) -> None:
    if not given.done():
        given.set_result(response)
