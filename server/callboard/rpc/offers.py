"""Pending approvals, brought to a client that can ask its person, whatever protocol it speaks.

An approval is an entity first and a question second: it is offered to every such client that follows its
session or that one's root, once per connection; whatever becomes of the question, the approval stays until
an answer is committed, and then every other question is taken back.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, TypeAlias

from callboard_rpc.approvals import Approval, ApprovalRequestResult
from callboard_rpc.common import Actor
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import ApprovalDecision, ApprovalRequest, SessionDeleted

from ..host import Host
from ..log.record import Record
from ..log.retrying import delays, insist, may_pass
from ..log.scope import APPROVAL_TYPES, Filter

Covers: TypeAlias = Callable[[str, str], bool]
"""``covers(session_id, root_id)``: whether a client is asked what this session asks."""
Ask: TypeAlias = Callable[[Approval], Awaitable[ApprovalRequestResult | None]]
"""Asks a client's person. None, or a result without an option, leaves the approval to others. Cancelling
it takes the question back."""

_log = logging.getLogger(__name__)

_READING = "approvals could not be read"
_WATCHED = Filter(types=frozenset({*APPROVAL_TYPES, "session_deleted"}))


class Offers:
    """Asks one client. `actor` is who answers through it."""

    def __init__(self, host: Host, *, covers: Covers, ask: Ask, actor: Actor) -> None:
        self._host = host
        self._covers = covers
        self._ask_person = ask
        self._actor = actor
        self._asked: dict[str, asyncio.Task[None]] = {}
        self._sessions: dict[str, set[str]] = {}
        """What is asked, by session: with a session its approvals go, and no decision is left to read."""
        self._done: set[str] = set()
        """Approvals that have ended, and sessions that are gone."""
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self._keep(self._follow())

    def _keep(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("a client is not asked any more as it should be", exc_info=task.exception())

    def look(self, covers: Covers, *, again: bool = False) -> None:
        """Asks what waits already where the client has begun to look; `again`, what it was asked before and
        has left open, too."""
        self._keep(self._offer_pending(covers, again))

    async def _offer_pending(self, covers: Covers, again: bool) -> None:
        """What waits already, in what is followed from now on (interrupts-and-peers 59)."""
        after: int | None = 0
        while after is not None:
            page = partial(self._host.approvals.page, state="pending", after=after)
            pending, after = await insist(page, _READING)
            for approval in pending:
                if covers(approval.session_id, approval.root_id):
                    if again:
                        self._forget(approval.approval_id)
                    self._offer(approval)

    async def _follow(self) -> None:
        """Requests and decisions as they are committed, by whatever process."""
        log = self._host.log
        position = log.head
        while True:
            await log.moved(position)
            head = log.head
            while records := await insist(partial(log.page, _WATCHED, after=position), _READING):
                for record in records:
                    self._heard(record)
                position = records[-1].pos
            position = max(position, head)

    def _heard(self, record: Record) -> None:
        match record.value:
            case ApprovalRequest(approval=approval):
                # without a fence it is history from a file, and was decided long ago
                if record.fence and self._covers(approval.session_id, approval.root_id):
                    self._offer(approval)
            case ApprovalDecision(approval_id=approval_id):
                self._take_back(record.session_id, approval_id)
            case SessionDeleted():
                self._done.add(record.session_id)
                for approval_id in list(self._sessions.get(record.session_id, ())):
                    self._take_back(record.session_id, approval_id)
            case _:
                pass

    def _take_back(self, session_id: str, approval_id: str) -> None:
        self._done.add(approval_id)
        asked = self._sessions.get(session_id, set())
        asked.discard(approval_id)
        if not asked:
            self._sessions.pop(session_id, None)
        question = self._asked.pop(approval_id, None)
        if question is not None:
            question.cancel()

    def _forget(self, approval_id: str) -> None:
        """A question that was left open may be asked once more."""
        asked = self._asked.get(approval_id)
        if asked is not None and asked.done():
            del self._asked[approval_id]

    def _offer(self, approval: Approval) -> None:
        if approval.approval_id in self._asked:
            return
        if not self._done.isdisjoint((approval.approval_id, approval.session_id)):
            return
        self._asked[approval.approval_id] = self._keep(self._ask(approval))
        self._sessions.setdefault(approval.session_id, set()).add(approval.approval_id)

    async def _ask(self, approval: Approval) -> None:
        answer = await self._ask_person(approval)
        if answer is None or answer.defer or answer.option_id is None:
            return
        await self._answer(approval.approval_id, answer.option_id, answer.feedback)

    async def _answer(self, approval_id: str, option_id: str, feedback: str | None) -> None:
        """Gives an answer, however long the store refuses it: nobody is asked a second time here. Once the
        approval has ended in another way this ends with the question."""
        for delay in delays():
            try:
                await self._host.approvals.answer(
                    approval_id, option_id, by=self._actor, via="request", feedback=feedback
                )
            except CallboardError as error:
                _log.warning("an answer to %s was not taken: %s", approval_id, error)
                if may_pass(error):
                    await asyncio.sleep(delay)
                    continue
                # somebody else was first, or the option is none of those offered: it stays as it is
            return

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
