"""The groups of one store, as one host serves them. Every change is one transaction, in which everything is
checked that it depends on: whichever process a participant is served by, the first one wins."""

import logging
from collections.abc import Callable
from typing import Literal, TypeVar

from callboard_rpc.common import Actor, SessionId
from callboard_rpc.convert import unstructure
from callboard_rpc.events import GroupTarget
from callboard_rpc.groups import GroupTask

from ..log.log import Log
from ..log.transaction import Transaction
from ..turns.boundary import Query
from ..turns.reservation import Grant
from . import gate, messages, tasks
from .anew import is_right, rebuild
from .membership import Participant, may_act, root_of
from .messages import Sent
from .projection import SQL
from .reading import GroupReading
from .tasks import NewTask, Said

T = TypeVar("T")

_logger = logging.getLogger(__name__)

Delegation = Callable[[Transaction, str], None]


class Groups:
    def __init__(self, log: Log) -> None:
        self._log = log
        self._rebuilt = False
        self.reading = GroupReading(log)

    @property
    def glance(self) -> Query:
        """A quick look at the store."""
        return self._log.glance

    def person(self, session_id: str, by: Actor) -> Participant:
        """A person in the place of the root of a session's tree. Raises sessionNotFound."""
        root_id = root_of(self._log.glance, session_id)
        return Participant(root_id=root_id, agent_id=root_id, by=by)

    # --- tasks ---

    async def create(self, who: Participant, wanted: NewTask) -> GroupTask:
        """Raises invalidParams, and what `tasks.create` does."""
        task = tasks.checked_task(wanted)
        return await self._decided(lambda tx: tasks.create(tx, who, task))

    async def claim(self, who: Participant, task_id: str) -> GroupTask:
        """See `tasks.claim`."""
        return await self._decided(lambda tx: tasks.claim(tx, who, task_id))

    async def change(
        self,
        who: Participant,
        task_id: str,
        operation: Literal["start", "complete", "block", "release", "cancel"],
        said: Said = Said(),  # noqa: B008 - a value
    ) -> GroupTask:
        """Raises invalidParams, and what `tasks.change` does."""
        clean = tasks.checked_said(operation, said)
        return await self._decided(lambda tx: tasks.change(tx, who, task_id, operation, clean))

    async def reassign(self, who: Participant, task_id: str, agent_id: str) -> GroupTask:
        """See `tasks.reassign`."""
        return await self._decided(lambda tx: tasks.reassign(tx, who, task_id, agent_id))

    async def _decided(self, decide: Callable[[Transaction], GroupTask]) -> GroupTask:
        def commit(tx: Transaction) -> GroupTask:
            task = decide(tx)
            if tx.beside is not None:  # else nobody asks
                tx.decided(task=unstructure(task))
            return task

        return await self._log.transact(commit)

    async def delegation(
        self, parent_id: str, task_id: str, *, by: Actor, grant: Grant | None = None
    ) -> Delegation:
        """What makes a child the owner of a task, in the transaction that makes the child (8.6): `by` whom it is
        made, and in which run (`grant`). Raises, as the task stands now, taskNotFound, taskNotClaimable,
        taskNotReady; so does what is returned, for how it stands then, and what `may_act` does. Then there is
        no child."""
        root_id = root_of(self._log.glance, parent_id)
        tasks.may_be_owned(self._log.glance, root_id, task_id)
        who = Participant(root_id=root_id, agent_id=SessionId(parent_id), by=by, grant=grant)

        def delegate(tx: Transaction, child_id: str) -> None:
            may_act(tx, who)
            tasks.own(tx, who, task_id, SessionId(child_id))

        return delegate

    # --- messages ---

    async def send(
        self, who: Participant, to: GroupTarget, agent_id: str | None, text: str
    ) -> Sent:
        """Raises invalidParams, messageTooLong, and what `messages.send` does."""
        clean = messages.checked_text(text)

        def commit(tx: Transaction) -> Sent:
            sent = messages.send(tx, who, to, agent_id, clean)
            tx.decided(message_id=sent.message_id, recipients=list(sent.recipients))
            return sent

        return await self._log.transact(commit)

    # --- the gate ---

    async def complete(self, who: Participant, summary: str) -> str | None:
        """Records in the log of whoever acts that all is implemented, or says what keeps it from being so: both
        are found out in one transaction. Raises invalidParams, and what `may_act` does."""
        clean = tasks.text_of("summary", summary) or ""
        return await self._log.transact(lambda tx: gate.complete(tx, who, clean))

    # --- restarts ---

    async def recover(self) -> None:
        """Makes the tables of every group anew where they are not what the log tells: looked at once, when
        this host begins (coordination 86). A group that cannot be read is no reason to serve nobody: its
        tables stay as they are, and the server's own log says why."""
        if self._rebuilt:
            return
        self._rebuilt = True
        for (root_id,) in await self._log.query(SQL["roots"]):
            try:
                if not await self._log.at_once(
                    lambda rows, root_id=root_id: is_right(rows, root_id)
                ):
                    await self._log.transact(lambda tx, root_id=root_id: rebuild(tx, root_id))
            except Exception as fault:
                _logger.warning("the task board of %s could not be made anew: %s", root_id, fault)
