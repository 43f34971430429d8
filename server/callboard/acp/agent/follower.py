"""One session that the client has open: the only sender of its updates, and of the ends of its prompts.

It reads the log from a position on, and takes what streams in between: text that has come goes out behind all
records that were committed before it. A prompt's outcome is given when everything up to the end of its turn
was sent, and nothing more is sent before the client has that answer. A slow client is waited for; meanwhile
nothing is read, and what streams is joined.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from callboard_rpc import events
from callboard_rpc.approvals import Approval
from callboard_rpc.convert import structure_lenient
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import EVENT_TYPES

from ...host import Host
from ...log.onward import onward
from ...log.record import Record
from ...log.retrying import insist
from ...log.scope import Filter
from ...turns.deltas import Delta
from ..contract import updates
from ..contract.server import ClientCapabilities
from ..contract.tool_calls import ToolKind
from . import tools
from .displays import Way
from .story import Story, spoken
from .waiting import Outcome, Prompts, outcome_of

_log = logging.getLogger(__name__)

_PAGE: Final = 200
_PAGE_BYTES: Final = 256 * 1024
_TEXT_S: Final = 0.025
_OUTPUT_S: Final = 0.2

Send = Callable[[str, updates.SessionUpdate], None]


async def whole(host: Host, record: Record) -> Any:
    """The data of a record, with what lies beside the log."""
    if '"_blobs"' not in record.data or record.type not in ("message", "summary"):
        return record.value
    return structure_lenient(await host.log.whole(record), EVENT_TYPES[record.type])


class Follower:
    """One open session.

    Args:
        send: sends one update.
        room: waits until the client has read enough.
        settled: what else a record has changed of the session, beside its conversation.
        way: how commands are shown that run in `cwd`, the folder of the session.
        steps: how many steps a turn of the session has.
    """

    def __init__(
        self,
        host: Host,
        session_id: str,
        root_id: str,
        *,
        capabilities: ClientCapabilities,
        send: Send,
        room: Callable[[], Awaitable[None]],
        settled: Callable[["Follower", Record], Awaitable[Iterable[updates.SessionUpdate]]],
        steps: Callable[[str], Awaitable[int]],
        way: Way = "text",
        cwd: str = "",
    ) -> None:
        self.session_id = session_id
        self.root_id = root_id
        self.prompts = Prompts()
        self.story = Story(session_id, capabilities, own=self.prompts.is_own, way=way, cwd=cwd)
        self._unshown: dict[str, asyncio.Event] = {}
        self.position = host.log.head
        """All up to here was sent."""
        self._host = host
        self._send = send
        self._room = room
        self._settled = settled
        self._steps = steps
        self._own_position = 0
        self._changed = asyncio.Event()
        self._reached = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._text_at = 0.0
        self._output_at = 0.0
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._endings: list[Callable[[], None]] = []

    # --- what comes ---

    def committed(self, record: Record) -> None:
        """A record of the session was committed: what streams from now on comes behind it."""
        self._own_position = record.pos

    def take(self, delta: Delta) -> None:
        """A piece of what streams in the session."""
        self.story.streams.take(delta, self._own_position)
        now = asyncio.get_running_loop().time()
        if delta.kind == "tool_output":
            self._wake_in(self._output_at + _OUTPUT_S - now)
        else:
            self._wake_in(self._text_at + _TEXT_S - now)

    def _wake_in(self, seconds: float) -> None:
        if seconds <= 0:
            self._changed.set()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self._changed.set()

    # --- its life ---

    def start(self) -> None:
        """Sends from here on, unless it was closed meanwhile. The client knows the session by now."""
        if self._closed:
            return
        self._task = asyncio.get_running_loop().create_task(
            self._run(), name=f"follower of {self.session_id}"
        )

    def at_end(self, ending: Callable[[], None]) -> None:
        """Calls `ending` when the client lets the session go."""
        self._endings.append(ending)

    def halt(self) -> None:
        """Reads and sends nothing more; who waits for what it would send need not."""
        self._closed = True
        self._reached.set()
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        """Sends nothing more; prompts that are open end as cancelled."""
        self.halt()
        for ending in self._endings:
            ending()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
        for waiting in self.prompts:
            waiting.end("cancelled")
        for shown in self._unshown.values():
            shown.set()

    # --- terminals of the client's ---

    def show_terminal(self, call_id: str, terminal_id: str) -> None:
        """A call runs in a terminal of the client's: it is told of that once it knows the call."""
        self.story.opened_terminal(call_id, terminal_id)
        self._unshown[call_id] = asyncio.Event()
        self._changed.set()

    async def terminal_shown(self, call_id: str, within_s: float) -> None:
        """Returns once the client was told in which terminal a call runs, or after a time."""
        shown = self._unshown.get(call_id)
        if shown is not None and not self._closed:
            with suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await shown.wait()
        self._unshown.pop(call_id, None)

    async def _show_terminals(self) -> None:
        for update in self.story.terminals():
            await self.tell(update)
            shown = self._unshown.get(update.tool_call_id)
            if shown is not None:
                shown.set()

    async def _run(self) -> None:
        log = self._host.log
        with log.watching_tree(self.root_id) as changed:
            first, self._changed = self._changed, changed
            if first.is_set():
                changed.set()
            while True:
                changed.clear()
                try:
                    await self._catch_up()
                except Exception:
                    _log.exception("what happens in %s cannot be told", self.session_id)
                    await asyncio.sleep(1.0)
                    changed.set()
                await changed.wait()

    async def _catch_up(self) -> None:
        filter = Filter(root_id=self.root_id)
        while True:
            read = partial(
                onward, self._host.log, filter, self.position, limit=_PAGE, max_bytes=_PAGE_BYTES
            )
            records, reach = await insist(read, f"session {self.session_id} could not be read")
            for record in records:
                await self._text_up_to(record.pos - 1)
                await self._tell(record)
                self._arrive(record.pos)
            self._arrive(reach)
            await self._text_up_to(reach)
            await self._show_terminals()
            if not records:
                await self._show_output()
                return

    def _arrive(self, position: int) -> None:
        if position > self.position:
            self.position = position
            self._reached.set()
            self._reached = asyncio.Event()

    async def reached(self, position: int) -> bool:
        """Returns once all up to a position was sent; false when it will not be, since the client has let the
        session go."""
        while self.position < position and not self._closed:
            await self._reached.wait()
        return not self._closed

    # --- what goes ---

    async def tell(self, update: updates.SessionUpdate) -> None:
        """Sends one update when the client has room for it."""
        await self._room()
        self._send(self.session_id, update)

    async def _text_up_to(self, position: int) -> None:
        sent = False
        for piece in self.story.streams.due(position):
            sent = True
            # a secret may stream in pieces that show it only together
            text = self._host.redactor.text(piece.text)
            for update in spoken(piece.message_id, piece.kind, text):
                await self.tell(update)
        if sent:
            self._text_at = asyncio.get_running_loop().time()

    async def _show_output(self) -> None:
        if not self.story.streams.has_output:
            return
        now = asyncio.get_running_loop().time()
        if self._output_at + _OUTPUT_S > now:
            self._wake_in(self._output_at + _OUTPUT_S - now)
            return
        self._output_at = now
        for update in self.story.printed(self._host.redactor.text):
            await self.tell(update)

    async def _tell(self, record: Record) -> None:
        own = record.session_id == self.session_id
        value = await self._whole(record) if own else record.value
        if own:
            self.prompts.after(value, record.seq, record.turn_id)
        try:
            await self._show_terminals()
            for update in self.story.after(record, value):
                await self.tell(update)
            if own:
                for update in await self._settled(self, record):
                    await self.tell(update)
        except Exception:
            # what follows is told all the same, and so are the ends of prompts
            _log.exception("event %s of %s could not be told", record.seq, self.session_id)
        if own:
            await self._end_prompts(value)

    async def _whole(self, record: Record) -> Any:
        try:
            return await whole(self._host, record)
        except CallboardError:  # it was deleted meanwhile
            return record.value

    async def _end_prompts(self, value: Any) -> None:
        ending = self.prompts.ending(value)
        if not ending:
            await self._tell_of_failure(value)
            return
        outcome: Outcome = "cancelled"
        if isinstance(value, events.TurnFinished):
            outcome = outcome_of(value, await self._most_steps())
        for waiting in ending:
            self.prompts.remove(waiting)
            waiting.end(outcome)
            await waiting.answered.wait()

    async def _tell_of_failure(self, value: Any) -> None:
        """A turn that others have started is nobody's prompt here, whose error would say it."""
        if isinstance(value, events.TurnFinished) and value.error is not None:
            for update in self.story.notice("error", "The turn failed", value.error.message):
                await self.tell(update)

    async def _most_steps(self) -> int:
        try:
            return await self._steps(self.session_id)
        except CallboardError:
            return 1 << 31

    # --- what is asked ---

    async def announce(self, approval: Approval, kind: ToolKind) -> bool:
        """Has the client told of the call that is asked about, before it is asked. False when the client has
        let the session go meanwhile."""
        if not await self.reached(self._host.log.head):
            return False
        if not self.story.knows_call(approval.call_id):
            call = tools.asked(approval, kind)
            self.story.note_call(call)
            await self.tell(call)
        return not self._closed
