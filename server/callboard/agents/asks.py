"""What a child says to its parent: questions, each with one end, and news that wait for nothing (seed 004, 2).

Either is an event of the child and a delivery in its parent's inbox, in one transaction. How a question
ended is an event, too, written by whoever is first: the parent's reply, the clock, the end of the child's
turn, or of the parent's server.
"""

from typing import Any

import orjson
from attrs import frozen

from callboard_rpc.common import Actor, AskId, CallId, TextContent
from callboard_rpc.convert import structure_lenient
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import AgentAsked, AgentReplied, AskOutcome, Author

from ..config.settings import AgentSettings
from ..log.clock import later
from ..log.text import redacted
from ..log.transaction import Transaction
from ..sessions.inbox import deliveries
from ..sessions.inbox.state import Envelope
from ..turns.boundary import Query
from ..turns.finish import Ending
from ..turns.projection import SQL as TURN_SQL
from ..turns.reservation import SYSTEM, Grant, assert_fence
from .frames import question_text, reply_text, update_text
from .mail import must_be_open
from .naming import shown
from .projection import SQL
from .reports import notify

MAX_SENDS = 8
"""What a child may say to its parent over its whole life, of both kinds; never given back."""


@frozen(kw_only=True)
class Ask:
    """Something that a child has said to its parent. A question is open until it has an `outcome`;
    `reply` and `author` are there for ``replied``."""

    ask_id: AskId
    agent_id: str
    parent_id: str
    expects_reply: bool
    turn_id: str | None
    outcome: AskOutcome | None = None
    reply: str | None = None
    author: Author | None = None


def find_ask(query: Query, ask_id: str) -> Ask | None:
    """By `Transaction.all` or `Log.glance`."""
    rows = query(SQL["ask"], ask_id)
    return _of_row(ask_id, *rows[0]) if rows else None


def _of_row(
    ask_id: str,
    agent_id: str,
    parent_id: str,
    expects_reply: int,
    turn_id: str | None,
    outcome: AskOutcome | None,
    reply: str | None,
    author: str | None,
) -> Ask:
    by: Any = None if author is None else structure_lenient(orjson.loads(author), Author)
    return Ask(
        ask_id=AskId(ask_id),
        agent_id=agent_id,
        parent_id=parent_id,
        expects_reply=bool(expects_reply),
        turn_id=turn_id,
        outcome=outcome,
        reply=reply,
        author=by,
    )


# --- asking -------------------------------------------------------------------------------------


def ask(
    tx: Transaction,
    grant: Grant,
    text: str,
    settings: AgentSettings,
    *,
    expects_reply: bool,
    host_id: str,
    call_id: CallId | None = None,
) -> Ask:
    """A child's run says something to the child's parent, and wakes one that rests. When the parent is
    gone the question is settled at once.

    `text` has been checked (`mail.checked_short`). Raises `StaleFence`; agentNotFound for a session that is
    nobody's child; agentClosed; limitReached for a second question while one is open, and for the ninth
    of all that it says (interrupts-and-peers 22, 23).
    """
    text = redacted(tx.writing.redact, text)  # before it is framed: an escaped secret is not known
    assert_fence(tx, grant)
    agent = must_be_open(tx, grant.session_id)
    if expects_reply and tx.one(SQL["open_asks_of"], agent.agent_id) is not None:
        raise CallboardError(
            "limitReached", "a question of yours to your parent is open already; wait for its reply"
        )
    if tx.value(SQL["count_asks"], agent.agent_id) >= MAX_SENDS:
        raise CallboardError(
            "limitReached",
            f"you have written {MAX_SENDS} times to your parent, and may not do it again; put what else "
            "there is to say into your report",
        )
    ask_id = AskId(tx.new_id("ask"))
    waits = expects_reply and _is_there(tx.all, agent.parent_id)
    event = AgentAsked(
        ask_id=ask_id,
        text=text,
        expects_reply=expects_reply,
        expires_at=later(tx.now(), settings.ask_timeout_s) if waits else None,
        call_id=call_id,
    )
    by = Actor(kind="agent", id=agent.agent_id, name=agent.name)
    tx.append(agent.agent_id, event, actor=by, turn_id=grant.turn_id, fence=grant.fence)
    if expects_reply and not waits:
        settle(tx, ask_id, "parent_gone")
    else:
        framed = (
            question_text(ask_id, agent.name, agent.agent_id, text)
            if expects_reply
            else update_text(agent.name, agent.agent_id, text)
        )
        notify(
            tx,
            agent,
            "question" if expects_reply else "update",
            ask_id,
            framed,
            host_id=host_id,
            wakes=True,
            meta={"agentId": agent.agent_id, "askId": ask_id, "expectsReply": expects_reply},
        )
    asked = find_ask(tx.all, ask_id)
    assert asked is not None  # its event was just projected
    return asked


def _is_there(query: Query, parent_id: str) -> bool:
    return bool(query(SQL["parent_is_there"], parent_id))


def moot(query: Query, asked: Ask) -> AskOutcome | None:
    """Why an open question is not worth waiting for any more: its parent is gone, or the child is told
    something else that does not wait (an interrupt, a steer, a message to go on with)."""
    if not _is_there(query, asked.parent_id):
        return "parent_gone"
    if query(SQL["is_called"], asked.agent_id):
        return "cancelled"
    if query(TURN_SQL["pending_steers"], asked.agent_id):
        return "cancelled"
    return None


# --- the one end of a question ------------------------------------------------------------------


def reply(
    tx: Transaction,
    ask_id: str,
    text: str,
    *,
    author: Author,
    by: Actor,
    as_parent: str | None = None,
) -> Ask:
    """Answers a question, as the session `as_parent`, or as a person in its parent's place (None).

    Raises askNotFound, the same for a question that there never was, for news that want no reply, and for
    a question to somebody else (interrupts-and-peers 21); askSettled for one that has its end (24).
    """
    asked = find_ask(tx.all, ask_id)
    if asked is None or not asked.expects_reply or as_parent not in (None, asked.parent_id):
        raise CallboardError(
            "askNotFound", f"no agent of yours has asked a question {shown(ask_id)}"
        )
    if not settle(tx, ask_id, "replied", text=text, author=author, by=by):
        raise CallboardError(
            "askSettled",
            f"the question {ask_id} has its end already ({asked.outcome}), and its agent has gone on; "
            "leave it a message instead",
            data={"outcome": asked.outcome},
        )
    return asked


def settle(
    tx: Transaction,
    ask_id: str,
    outcome: AskOutcome,
    *,
    text: str | None = None,
    author: Author | None = None,
    by: Actor = SYSTEM,
) -> bool:
    """Writes how a question ended; False when it has ended already. Whoever waits for it hears of it by
    the commit."""
    asked = find_ask(tx.all, ask_id)
    if asked is None or asked.outcome is not None:
        return False
    tx.append(
        asked.agent_id,
        AgentReplied(ask_id=asked.ask_id, outcome=outcome, text=text, author=author),
        actor=by,
        turn_id=asked.turn_id,
    )
    if outcome == "replied":
        _take_back(tx, asked, by)
    return True


def _take_back(tx: Transaction, asked: Ask, by: Actor) -> None:
    """A question that was answered before the parent has read it is not asked any more."""
    row = tx.one(SQL["delivery"], asked.parent_id, asked.ask_id)
    if row is not None:
        deliveries.drop(tx, asked.parent_id, [row], by=by, reason="the question was answered")


def expire(tx: Transaction, now: str) -> None:
    """Settles the questions that nobody has answered in time: whoever asked goes on without."""
    for ask_id, _ in tx.all(SQL["overdue_asks"], now):
        settle(tx, ask_id, "timed_out")


# --- the end of a turn --------------------------------------------------------------------------


def ended(tx: Transaction, grant: Grant, ending: Ending) -> None:
    """The part of a `Hook`; the turn's own open questions have been settled by then (`reports.ended`).

    A parent whose server is gone answers nothing before somebody continues it, so its children, which
    may run elsewhere, go on without (interrupts-and-peers 28).
    """
    if ending.outcome == "interrupted":
        for ask_id, *_ in tx.all(SQL["open_asks_to"], grant.session_id):
            settle(tx, ask_id, "parent_restarted")
    _keep_replies(tx, grant)


def _keep_replies(tx: Transaction, grant: Grant) -> None:
    """A reply whose call was cut off in the very moment in which it came lies in the child's inbox for
    its next turn: whoever gave it was told that the child has it."""
    cut_off = {r.value.call_id for r in tx.appended if r.type == "tool_result"}
    for ask_id, call_id, text, author in tx.all(
        SQL["replies_in_turn"], grant.session_id, grant.turn_id
    ):
        if call_id not in cut_off:
            continue
        by = structure_lenient(orjson.loads(author), Author)
        envelope = Envelope(
            delivery_id=ask_id,
            content=(TextContent(text=reply_text(by, text)),),
            author=by,
            kind="information",
            meta={"askId": ask_id},
        )
        owner = tx.one(TURN_SQL["owner"], grant.session_id)
        assert owner is not None  # the fence was asserted
        accepted = deliveries.deliver(
            tx, grant.session_id, envelope, by=SYSTEM, host_id=owner[4], insist=True
        )
        deliveries.leave(tx, grant.session_id, accepted.generation)
