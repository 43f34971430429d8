"""One turn at an agent: what it tells and asks is dealt with one after the other, in the order in which it came.

One task does it, and nobody cancels that one: what it writes is written whole. Whoever ends the turn tells it to come
to its end, and ends the agent when it does not.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

import attrs

from callboard_rpc.common import ToolStatus
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import Notice, PlanEntry, PlanUpdated

from ...models.base import StopReason
from ...turns import usage as sums
from ...turns.boundary import anything_superseding
from ...turns.turn import Progress, Turn
from ..contract import content, services, tool_calls, updates
from ..peer import INVALID_PARAMS, PeerClosed
from .asking import Asking
from .bounds import bounded_call
from .calls import Calls
from .connection import Connection
from .desk import Refused
from .eliciting import question_of
from .errands import Errands
from .files import Files
from .forms import Unfit
from .ledger import Ledger, Tracked
from .own_calls import OwnCalls
from .questions import Questions
from .terminals import Terminals
from .told import size_of
from .used import used_of

T = TypeVar("T")

_log = logging.getLogger(__name__)

STRAGGLERS_S = 0.1
"""How long after its answer more may come of it."""
_MANY = 500
"""How many updates may wait; then nothing more is read of the agent until fewer do."""
_MANY_BYTES = 4 * 1024 * 1024
"""How much of them may wait."""
_BREATH = 50
"""How many are dealt with before others have their turn."""
_MOST_BESIDES = 2_000
"""How many plans and notices of one prompt are in the log."""

_SILENT = "The agent said nothing"
_SILENT_WHY = "It has ended its answer without a word. Some agents do that when their model fails; their own log may say more."

_STOPS: dict[str, StopReason] = {
    "end_turn": "end_turn",
    "max_tokens": "max_tokens",
    "refusal": "refusal",
}

Item: TypeAlias = Callable[[], Awaitable[None]]


class Exchange:
    """The `Desk` of one turn. `correct` tells an agent that works what was said since, if it takes that."""

    def __init__(
        self, turn: Turn, progress: Progress, connection: Connection, ledger: Ledger, asking: Asking,
        questions: Questions, files: Files, terminals: Terminals, own: OwnCalls,
        correct: Callable[[], Awaitable[bool]],
    ) -> None:  # fmt: skip
        self._turn = turn
        self._progress = progress
        self._connection = connection
        self._ledger = ledger
        self._asking = asking
        self._questions = questions
        self._files = files
        self._terminals = terminals
        self._correct = correct
        self._items: asyncio.Queue[Item | None] = asyncio.Queue()
        self._room = asyncio.Event()
        self._waiting_bytes = 0
        self._besides = 0
        self._calls = Calls(ledger, lambda: self._items.put_nowait(self._commit_forming))
        self._spoke_as: str | None = None
        self._size: updates.UsageUpdate | None = None
        self._silent = True
        """Nothing was said, and no call made."""
        self._answered: dict[str, Any] | None = None
        self._failed: Exception | None = None
        self._cut: tuple[ToolStatus, str] | None = None
        """Why the prompt was cancelled, for the results of its calls: by a correction, or by the turn's end."""
        self._waiting: set[asyncio.Future[Any]] = set()
        """Answers to the agent that are to come of items."""
        self._working: asyncio.Task[None] | None = None
        self._errands = Errands(lambda: own.asking)

    # --- one prompt ---

    async def prompt(self, blocks: Sequence[content.ContentBlock]) -> StopReason | None:
        """Tells the agent something, and takes in all that comes of it. None when it was called away by something
        that was said meanwhile. Raises `CallboardError` for an agent that fails, and whatever the log does."""
        self._answered = self._failed = self._cut = self._size = None
        self._silent = True
        self._errands.open()
        self._besides = 0
        self._progress.iterations += 1
        self._ledger.begin_anew()
        self._working = asyncio.get_running_loop().create_task(
            self._work(blocks), name=f"exchange of {self._turn.live.turn_id}"
        )
        await asyncio.shield(self._working)
        return self._outcome()

    @property
    def sound(self) -> bool:
        """Whether all that the agent was told has come to its end, so that it can be told more."""
        working = self._working
        if working is None:
            return True
        ended = working.done() and not working.cancelled() and working.exception() is None
        return ended and self._failed is None

    def _outcome(self) -> StopReason | None:
        if self._cut is not None:
            return None
        if self._failed is not None:
            if isinstance(self._failed, CallboardError):
                raise self._failed
            raise self._connection.failure(self._failed, "session/prompt")
        reason = (self._answered or {}).get("stopReason")
        return _STOPS.get(reason, "other") if isinstance(reason, str) else "end_turn"

    async def _work(self, blocks: Sequence[content.ContentBlock]) -> None:
        loop = asyncio.get_running_loop()
        asked = loop.create_task(self._connection.prompt(blocks))
        asked.add_done_callback(lambda done: self._items.put_nowait(partial(self._end, done)))
        watch = loop.create_task(self._watch_for_corrections())
        try:
            done = 0
            while (item := await self._items.get()) is not None:
                await item()
                if not self._is_full:
                    self._room.set()
                done += 1
                if done % _BREATH == 0:
                    await asyncio.sleep(0)
            self._errands.close()
            for _ in range(self._items.qsize()):  # what came behind the end, and may be waited for
                if (item := self._items.get_nowait()) is not None:
                    await item()
            await self._wind_up()
        finally:
            for task in (asked, watch):
                task.cancel()
            await asyncio.gather(asked, watch, return_exceptions=True)
            self._calls.stop()
            self._ledger.close()

    async def _end(self, asked: "asyncio.Task[dict[str, Any]]") -> None:
        """The prompt has its answer; what is on its way still belongs to it."""
        if asked.cancelled():
            self._failed = PeerClosed("the prompt was cancelled from inside")
        elif (fault := asked.exception()) is not None:
            self._failed = fault if isinstance(fault, Exception) else PeerClosed(str(fault))
        else:
            self._answered = asked.result()
        late = 0.0 if self._failed is not None else STRAGGLERS_S
        asyncio.get_running_loop().call_later(late, self._items.put_nowait, None)

    async def _wind_up(self) -> None:
        """Nothing more comes: every call gets its result."""
        await self._commit_forming()
        await self._questions.withdraw_all(
            *(self._cut or ("cancelled", "Its agent does not wait for the answer any more."))
        )
        for tracked in self._calls.open:
            await self._asking.withdraw(tracked)
            await self._ledger.settle(tracked, *self._left_open())
        self._calls.clear()
        self._asking.forget()
        if self._cut is not None and self._cut[0] == "superseded":
            await self._ledger.say_so_far()
        self._ledger.hush()
        if self._silent and self._failed is None and self._cut is None:
            await self._ledger.notice(_SILENT, _SILENT_WHY)
        used, self._connection.spent = used_of(
            self._answered or {}, self._size, self._connection.spent
        )
        self._ledger.answer.usage = used
        self._progress.usage = sums.add(self._progress.usage, used)

    def _left_open(self) -> Any:
        if self._cut is not None:
            return self._cut
        if self._failed is not None:
            return "error", "The agent failed before it said what came of this call."
        if (self._answered or {}).get("stopReason") == "cancelled":
            return "cancelled", "Cancelled by its agent; what it did until then stands."
        return "error", "The agent has ended its answer without saying what came of this call."

    async def catch_up(self, updates: Iterable[tuple[Any, int]]) -> None:
        """Takes in what the agent has told while no turn was under way."""
        for update, size in updates:
            await self._take(update, size)
        await self._commit_forming()
        for tracked in self._calls.open:
            await self._ledger.settle(tracked, "error", "Its agent has not said what came of it.")
        self._calls.clear()
        await self._ledger.say_so_far()

    # --- the desk ---

    async def update(self, update: Any, size: int) -> None:
        self._waiting_bytes += size

        async def take() -> None:
            self._waiting_bytes -= size
            await self._take(update, size)

        self._items.put_nowait(take)
        if self._is_full and self._working is not None:
            self._room.clear()
            room = asyncio.ensure_future(self._room.wait())
            await asyncio.wait({room, self._working}, return_when=asyncio.FIRST_COMPLETED)
            room.cancel()

    @property
    def _is_full(self) -> bool:
        return self._items.qsize() >= _MANY or self._waiting_bytes >= _MANY_BYTES

    async def permission(
        self, request: tool_calls.RequestPermissionRequest
    ) -> tool_calls.RequestPermissionResponse:
        call = bounded_call(request.tool_call)
        if call is None:
            raise Refused(INVALID_PARAMS, "toolCall.toolCallId: is empty, or too long")
        answer = self._answer()
        asked = attrs.evolve(request, tool_call=call)
        self._items.put_nowait(partial(self._asked, asked, answer))
        return await answer

    async def elicit(
        self, request: services.CreateElicitationRequest
    ) -> services.CreateElicitationResponse:
        try:
            question = question_of(request)
        except Unfit as unfit:
            raise Refused(INVALID_PARAMS, str(unfit)) from None
        if self._questions.is_full:
            raise Refused(INVALID_PARAMS, "too many questions: wait for answers, or ask in words")
        answer = self._answer()

        async def ask() -> None:
            self._silent = False
            await self._commit_forming()
            await self._questions.ask(question, answer, fault=self._fault)

        self._items.put_nowait(ask)
        return await answer

    def elicited(self, elicitation_id: str) -> None:
        self._items.put_nowait(partial(self._questions.complete, elicitation_id))

    def _answer(self) -> "asyncio.Future[Any]":
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.add(answer)
        answer.add_done_callback(self._waiting.discard)
        return answer

    async def _asked(self, request: tool_calls.RequestPermissionRequest, answer: Any) -> None:
        self._silent = False
        size = size_of(request.tool_call)
        tracked = self._calls.known(request.tool_call, size)
        if tracked.settled:  # it is asked about once more: that is another call
            tracked = self._calls.begun(request.tool_call, size)
        if tracked.call is None:
            await self._commit_forming(but=tracked)
        await self._asking.ask(tracked, request, answer, fault=self._fault)

    def _fault(self, fault: Exception) -> None:
        """Something of ours has failed beside the agent: the turn cannot go on."""

        async def fail() -> None:
            raise fault

        self._items.put_nowait(fail)

    async def read_file(
        self, request: services.ReadTextFileRequest
    ) -> services.ReadTextFileResponse:
        return await self._errands.run(self._files.read(request))

    async def write_file(
        self, request: services.WriteTextFileRequest
    ) -> services.WriteTextFileResponse:
        return await self._errands.run(self._in_order(self._files.write, request))

    async def terminal(self, method: str, request: Any) -> Any:
        if method != "terminal/create":
            return await self._terminals.serve(method, request)
        return await self._errands.run(self._in_order(self._terminals.serve, method, request))

    async def _in_order(self, do: Callable[..., Awaitable[T]], *given: Any) -> T:
        """Does something when all that came before is dealt with, and in the log."""
        done = self._answer()

        async def flush() -> None:
            await self._commit_forming()
            if not done.done():
                done.set_result(None)

        self._items.put_nowait(flush)
        await done
        return await do(*given)

    # --- what it tells ---

    async def _take(self, update: Any, size: int) -> None:
        self._turn.live.touch()
        match update:
            case updates.AgentMessageChunk(content=block, message_id=message_id):
                await self._speak(block, message_id, thought=False)
            case updates.AgentThoughtChunk(content=block, message_id=message_id):
                await self._speak(block, None, thought=True)
            case updates.ToolCall() | updates.ToolCallChanged():
                await self._call(update, size)
            case updates.Plan(entries=entries):
                plan = tuple(
                    PlanEntry(content=e.content, status=e.status, priority=e.priority)
                    for e in entries
                )
                await self._tell(PlanUpdated(entries=plan))
            case updates.UsageUpdate():
                self._size = update
            case updates.Notice(severity=severity, title=title, description=description):
                await self._tell(Notice(severity=severity, title=title, description=description))
            case _:
                pass

    async def _tell(self, event: PlanUpdated | Notice) -> None:
        self._besides += 1
        if self._besides <= _MOST_BESIDES:
            await self._ledger.append(event)

    async def _speak(self, block: Any, message_id: str | None, *, thought: bool) -> None:
        self._silent = False
        await self._commit_forming()
        if message_id is not None:
            if self._spoke_as not in (None, message_id) and not thought:
                await self._ledger.say_so_far()
            self._spoke_as = message_id
        if isinstance(block, content.TextContent):
            self._ledger.speak(block.text, thought=thought)
            if self._ledger.is_long:
                await self._ledger.say_so_far()
        elif not thought:
            self._ledger.show(block)

    async def _call(self, update: Any, size: int) -> None:
        self._silent = False
        tracked = self._calls.known(update, size)
        if tracked.settled:
            self._calls.forget(tracked)
            return
        told = tracked.told
        over = told.status in ("completed", "failed")
        if tracked.call is None:
            if over or told.status == "in_progress":
                await self._commit_forming()
            else:
                self._calls.commit_soon()
        if tracked.call is not None and not over:
            self._ledger.stream(tracked)
        if over:
            self._terminals.shown_in(told)
            await self._asking.withdraw(tracked)
            cancelled = told.status == "failed" and self._cut is not None
            await self._ledger.settle(tracked, "cancelled" if cancelled else None)
            self._calls.forget(tracked)

    async def _commit_forming(self, but: Tracked | None = None) -> None:
        if await self._calls.commit(but):
            self._spoke_as = None

    # --- corrections, and the end ---

    async def _watch_for_corrections(self) -> None:
        """Calls the agent away when something is said to it that it is to hear at once."""
        turn, log = self._turn, self._turn.log
        while True:
            head = log.head
            if turn.live.steered or anything_superseding(log.glance, turn.live.grant, turn.sources):
                if not (self._connection.steers and await self._correct()):
                    break
                continue
            await log.moved(head)
        self._items.put_nowait(self._call_away)
        await asyncio.sleep(turn.limits.cancel_grace_s)
        await self._connection.close()

    async def _call_away(self) -> None:
        if self._cut is None:
            self._cut = "superseded", "Not finished: something was said since. It comes next."
            self._cancel()

    def _cancel(self) -> None:
        self._connection.cancel()
        self._asking.cancel()
        self._questions.cancel()

    async def stop(self, *, within_s: float, quietly: bool) -> None:
        """The turn ends. The agent is told, and has the time to come to its own end; then it is ended. `quietly`:
        the server goes, and what waits for an answer is to wait on."""
        working = self._working
        if quietly:
            self._asking.leave()
            if working is not None:
                working.cancel()
        else:
            self._cut = "cancelled", "Cancelled; what it did until then stands."
            self._cancel()
        if working is None or working.done():
            return
        await asyncio.wait({working}, timeout=within_s)
        if not working.done():
            await self._connection.close()
            await asyncio.wait({working}, timeout=within_s)
            working.cancel()

    async def release(self) -> None:
        """The agent has said its last. What it has had us do, without waiting for it, is done; nobody is asked
        about it any more, and nothing that runs goes on."""
        await self._errands.finish()
        await self._terminals.close()

    async def close(self) -> None:
        """Nothing of the turn is left running."""
        self._room.set()
        await self._asking.close()
        await self._questions.close()
        for answer in list(self._waiting):
            answer.cancel()
        await self._errands.end()
        await self._terminals.close()
