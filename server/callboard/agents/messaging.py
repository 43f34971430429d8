"""What agents say to each other, as one host does it: ask, reply, write to a sibling, wait for mail.

The transactions are in `asks` and `siblings`. What waits here looks at the store after each commit in its
tree, and hears of those that come after a look: so nothing that is committed in between is missed.
"""

from attrs import frozen

from callboard_rpc.common import Actor, AskId, CallId
from callboard_rpc.events import Author

from ..config.settings import AgentSettings
from ..log.log import Log
from ..log.transaction import Transaction
from ..turns.projection import SQL as TURN_SQL
from ..turns.reservation import Grant, assert_fence
from . import asks, siblings
from .asks import Ask, find_ask
from .mail import checked_short, not_found
from .projection import SQL, find
from .waiting import DEFAULT_WAIT_S, until

WRITES = "message"
"""The tool with which an agent writes to others."""


@frozen(kw_only=True)
class Mail:
    """How much waits for a session's next boundary: nothing, when the time was up."""

    waiting: int


class Messaging:
    def __init__(self, log: Log, settings: AgentSettings, *, host_id: str) -> None:
        self._log = log
        self._settings = settings
        self._host_id = host_id

    # --- to the parent, and back ---

    async def ask(
        self, grant: Grant, text: str, *, expects_reply: bool, call_id: CallId | None = None
    ) -> Ask:
        """A child's run says something to its parent. A question comes back when it has its end, whatever
        that is; only that nothing could be asked is an error. Raises messageTooLarge, invalidParams, and
        what `asks.ask` does."""
        checked = checked_short(text)

        def commit(tx: Transaction) -> Ask:
            return asks.ask(
                tx,
                grant,
                checked,
                self._settings,
                expects_reply=expects_reply,
                host_id=self._host_id,
                call_id=call_id,
            )

        asked = await self._log.transact(commit)
        return await self._ended(asked.agent_id, asked.ask_id) if expects_reply else asked

    async def _ended(self, agent_id: str, ask_id: AskId) -> Ask:
        """A question when it has its end. The clock sees to it that it comes; a turn that is stopped
        meanwhile settles it with its own end (interrupts-and-peers 27)."""
        with self._log.watching_tree(agent_id) as changed:
            while True:
                changed.clear()  # before the look: what is committed after it ends the wait
                asked = find_ask(self._log.glance, ask_id)
                if asked is None:
                    raise not_found("that asked")  # its session was deleted
                if asked.outcome is not None:
                    return asked
                why = asks.moot(self._log.glance, asked)
                if why is None:
                    await changed.wait()
                else:
                    await self._log.transact(lambda tx, why=why: asks.settle(tx, ask_id, why))

    async def reply(
        self,
        ask_id: str,
        text: str,
        *,
        author: Author,
        by: Actor,
        grant: Grant | None = None,
        as_parent: str | None = None,
    ) -> Ask:
        """Answers an agent's question. Raises messageTooLarge, invalidParams, and what `asks.reply` does."""
        checked = checked_short(text)

        def commit(tx: Transaction) -> Ask:
            if grant is not None:
                assert_fence(tx, grant)
            asked = asks.reply(tx, ask_id, checked, author=author, by=by, as_parent=as_parent)
            tx.decided(agent_id=asked.agent_id, ask_id=asked.ask_id)
            return asked

        return await self._log.transact(commit)

    # --- between siblings ---

    async def send(
        self, grant: Grant, to: str, text: str, *, expects_reply: bool = False
    ) -> siblings.Sent:
        """A child's run writes to a sibling. Raises messageTooLarge, invalidParams, and what
        `siblings.send` does."""
        checked = checked_short(text)
        return await self._log.transact(
            lambda tx: siblings.send(
                tx, grant, to, checked, expects_reply=expects_reply, host_id=self._host_id
            )
        )

    async def mail(self, session_id: str, *, timeout_s: float = DEFAULT_WAIT_S) -> Mail:
        """Waits until something waits for the session's next boundary, whoever sent it, or the time is
        up. Any number may wait for the same (interrupts-and-peers 37)."""
        waiting = await until(
            bool, lambda: self._waiting(session_id), self._log, session_id, timeout_s=timeout_s
        )
        return Mail(waiting=waiting)

    def _waiting(self, session_id: str) -> int:
        glance = self._log.glance
        agent = find(glance, session_id)
        interrupted = agent is not None and agent.pending is not None
        steers = len(glance(TURN_SQL["pending_steers"], session_id))
        return glance(SQL["count_waiting"], session_id)[0][0] + steers + interrupted
