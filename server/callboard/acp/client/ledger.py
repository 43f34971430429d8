"""The log of one turn that an agent drives: what it says, its calls with their one result each, what is asked.

All that is written is written under the turn's fence, and by one task, so that nobody is cut off in the middle of it.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

from attrs import define, evolve, field

from callboard_rpc.common import CallId, ImageContent, ToolStatus, ToolUse
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import Notice

from ...log.text import well_formed
from ...log.transaction import SQL as LOG_SQL
from ...log.transaction import Transaction
from ...models.base import TextDelta, ThoughtDelta
from ...tools.base import PathDenied, Preview
from ...tools.offload import finished
from ...tools.workspace import FolderWorkspace
from ...turns.answer import Answer, Draft
from ...turns.call import Call, Settled, settled_as
from ...turns.projection import SQL as TURN_SQL
from ...turns.reservation import assert_fence
from ...turns.stages import notify, say
from ...turns.turn import Progress, Turn
from ..contract import content
from .told import ToldCall, text_of
from .writes import Shown, shown_writes

_LONG_CHARS = 256 * 1024
_MOST_CHARS = 64 * 1024 * 1024
_SMALL_CHARS = 64 * 1024
_IMAGE_CHARS = 8 * 1024 * 1024


@define(eq=False, kw_only=True)
class Tracked:
    """A call of the agent's in this turn. `call` is there once it is in the log."""

    told: ToldCall
    call: Call | None = None
    settled: bool = False
    allowed: bool = False
    writes: tuple[Shown, ...] = ()
    """What was shown of the files that it changes, when it was asked about."""
    began: float = field(factory=time.monotonic)
    question: "asyncio.Task[None] | None" = None

    def release(self) -> None:
        """Forgets what was told of a call that is over: an agent may make thousands."""
        self.told = ToldCall(tool_call_id=self.told.tool_call_id)
        self.writes = ()
        if self.call is not None:
            self.call = evolve(self.call, shown={}, arguments=None, preview=None)


class Ledger:
    def __init__(self, turn: Turn, progress: Progress, workspace: FolderWorkspace) -> None:
        self._turn = turn
        self._progress = progress
        self._workspace = workspace
        self._chars = self._all_chars = 0
        self.answer = self._blank()
        self._draft = Draft(
            turn.log,
            turn.numbering,
            grant=turn.live.grant,
            interval_ms=turn.draft_interval_ms,
            bytes=turn.draft_bytes,
        )
        self._draft.begin(self.answer.message_id)

    # --- what is said ---

    def _blank(self) -> Answer:
        answer = Answer(message_id=self._turn.log.ids.new("msg"))
        self._progress.answer = answer
        return answer

    def speak(self, raw: str, *, thought: bool) -> None:
        """More text of the message that is being said."""
        text = well_formed(raw)
        event = ThoughtDelta(text=text) if thought else TextDelta(text=text)
        kind = "thought" if thought else "answer"
        answer = self.answer
        self._chars += len(text)
        self._all_chars += len(text)
        if self._all_chars > _MOST_CHARS:
            raise CallboardError(
                "limitReached", f"the agent has said more than {_MOST_CHARS} characters in one turn"
            )
        shown = self._turn.numbering.publish(answer.message_id, kind, text)
        self._draft.add(shown, thought=thought)
        answer.add(event, self._no_call)

    def show(self, block: Any) -> None:
        """A block of the message that is not text."""
        match block:
            case content.ImageContent(data=data, mime_type=mime_type) if len(data) <= _IMAGE_CHARS:
                self.answer.close_blocks()
                self.answer.content.append(ImageContent(data=data, mime_type=mime_type))
            case _:
                self.speak(text_of(block), thought=False)

    def _no_call(self) -> CallId:
        raise AssertionError("text is no call")

    def hush(self) -> Answer:
        """The message is whole. What follows is another one."""
        answer = self.answer
        self._draft.end()
        self._turn.numbering.finish(answer.message_id)
        answer.close_blocks()
        return answer

    @property
    def is_long(self) -> bool:
        """Whether the message that is being said is long enough to be one by itself."""
        return self._chars > _LONG_CHARS

    def begin_anew(self) -> None:
        self._chars = 0
        self.answer = self._blank()
        self._draft.begin(self.answer.message_id)

    def close(self) -> None:
        self._draft.end()
        self._turn.numbering.finish(self.answer.message_id)

    async def say_so_far(self) -> None:
        """Commits what was said, as a message that is not the turn's last."""
        await self.commit(())

    # --- calls ---

    def preview(self, told: ToldCall) -> Preview:
        """What is judged and shown of a call; its paths are resolved before they are judged."""
        folder = str(self._workspace.root)
        if told.command is not None:
            return told.preview(folder, (self._resolved(told.working_folder(folder)),))
        return told.preview(folder, [self._resolved(path) for path in told.paths])

    def writes(self, told: ToldCall, call: Call) -> tuple[Shown, ...]:
        """What a call would write, as it is shown; paths resolved."""
        paths = () if call.preview is None else call.preview.paths
        return shown_writes([(self._resolved(diff.path), diff) for diff in told.diffs], paths)

    def _resolved(self, path: str) -> str:
        try:
            return str(self._workspace.resolve(path))
        except PathDenied:
            return path

    def make(self, told: ToldCall, *, index: int = 0) -> Call:
        """A call as the log has it."""
        return Call(
            call_id=CallId(self._turn.log.ids.new("call")),
            index=index,
            name=told.shown_name,
            provider_call_id=told.tool_call_id[:1_000],
            tool=told.tool(),
            shown=told.arguments,
            preview=self.preview(told),
        )

    async def commit(
        self,
        tracked: Sequence[Tracked],
        calls: Sequence[Call] = (),
        also: Callable[[Transaction], None] | None = None,
    ) -> None:
        """Commits what was said and the calls that follow it, with what is asked about them."""
        made = [self._new_call(each, index) for index, each in enumerate(tracked)]
        written = [*made, *calls]
        answer = self.hush()
        answer.content.extend(ToolUse(call_id=call.call_id) for call in written)
        if not (written or answer.worth_keeping or also):
            return
        turn, grant = self._turn, self._turn.live.grant
        self.begin_anew()  # what is said while this is written belongs to what follows

        def write(tx: Transaction) -> None:
            assert_fence(tx, grant)
            if answer.worth_keeping:
                say(tx, turn, answer)
            tx.execute(LOG_SQL["delete_draft"], grant.turn_id)
            turn.caller.write(tx, written, answer.message_id)
            if also is not None:
                also(tx)

        await turn.log.transact(write)
        turn.live.touch()
        notify(turn, written)

    def _new_call(self, tracked: Tracked, index: int) -> Call:
        if tracked.call is None:
            tracked.call = self.make(tracked.told, index=index)
        else:
            tracked.call = evolve(tracked.call, index=index)
        return tracked.call

    async def ask(self, call: Call) -> None:
        """Commits what is asked about a call that is in the log."""
        grant = self._turn.live.grant

        def write(tx: Transaction) -> None:
            assert_fence(tx, grant)
            self._turn.caller.write_question(tx, call)

        await self._turn.log.transact(write)
        notify(self._turn, (call,))

    def stream(self, tracked: Tracked) -> None:
        """Tells what a call has brought since."""
        news = tracked.told.news()
        if news and tracked.call is not None:
            self._turn.numbering.publish(tracked.call.call_id, "tool_output", well_formed(news))

    async def settle(
        self, tracked: Tracked, status: ToolStatus | None = None, text: str | None = None
    ) -> None:
        """Commits a call's result: as its agent says, or as `status` and `text` do. It is the only one, whoever
        else may have written one just now."""
        call = tracked.call
        if call is None or tracked.settled:
            return
        tracked.settled = True
        told = tracked.told
        large = sum(len(text_of(getattr(c, "content", c))) for c in told.content) > _SMALL_CHARS
        diffs = any(getattr(c, "type", "") == "diff" for c in told.content)
        outcome = await finished(told.outcome) if large or diffs else told.outcome()
        duration_ms = round((time.monotonic() - tracked.began) * 1000)
        settled = settled_as(
            call,
            status or outcome.status,
            outcome.text if text is None else text,
            outcome if status in (None, "ok", "error") else None,
            duration_ms,
        )
        self._turn.caller.output_over(call.call_id)
        self._progress.last_output = settled.result.text or self._progress.last_output
        await self.write_result(settled)

    async def write_result(self, settled: Settled) -> None:
        """Commits a result, unless the call has one."""
        grant, caller = self._turn.live.grant, self._turn.caller

        def write(tx: Transaction) -> None:
            assert_fence(tx, grant)
            if tx.one(TURN_SQL["is_open"], settled.call.call_id) is not None:
                caller.write_result(tx, settled)

        await self._turn.log.transact(write)
        self._turn.live.touch()

    async def withdraw(self, call: Call, status: ToolStatus, why: str) -> None:
        """Takes back what a call asks, and commits its result, unless it has one."""
        grant, caller = self._turn.live.grant, self._turn.caller

        def write(tx: Transaction) -> None:
            assert_fence(tx, grant)
            caller.take_back(tx, call, why)
            if tx.one(TURN_SQL["is_open"], call.call_id) is not None:
                caller.write_result(tx, settled_as(call, status, why))

        await self._turn.log.transact(write)
        self._turn.live.touch()

    # --- besides ---

    async def append(self, *events: Any) -> None:
        turn, grant = self._turn, self._turn.live.grant

        def write(tx: Transaction) -> None:
            assert_fence(tx, grant)
            self.put(tx, *events)

        await turn.log.transact(write)

    def put(self, tx: Transaction, *events: Any) -> None:
        """Appends events of the turn. The caller has asserted the fence."""
        turn, grant = self._turn, self._turn.live.grant
        for event in events:
            tx.append(
                grant.session_id, event, actor=turn.actor, turn_id=grant.turn_id, fence=grant.fence
            )

    async def notice(self, title: str, description: str | None = None) -> None:
        """Tells the person something that the agent does not."""
        await self.append(Notice(severity="warning", title=title, description=description))
