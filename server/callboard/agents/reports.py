"""What a child's turn comes to, for its parent: written with the turn's end, told at a boundary, once.

The report is an event of the child and a delivery in its parent's inbox, both in the turn's final
transaction. So none is lost or told twice, whatever dies, and none stands between a call and its result
(coordination 51-54).
"""

import orjson

from callboard_rpc.common import CallId, Json, ReportId, SessionId, TextContent, TurnId
from callboard_rpc.convert import structure_lenient
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import (
    AgentInterrupted,
    AgentInterruptRequested,
    AgentNotificationDelivered,
    AgentReplied,
    AgentReport,
    AgentReportCreated,
    AgentStatusChanged,
    Author,
    Delivered,
    DeliveryKind,
    Message,
    PlanUpdated,
)

from ..config.settings import AgentSettings
from ..log.text import redacted
from ..log.transaction import Transaction
from ..sessions.inbox import deliveries
from ..sessions.inbox.state import Envelope
from ..turns.boundary import Query
from ..turns.finish import Ending
from ..turns.projection import SQL as TURN_SQL
from ..turns.reservation import SYSTEM, Grant
from .frames import reason_of, report_text
from .projection import SQL, find
from .state import AgentState

SUMMARY_CHARS = 2_000

NOTIFIED: tuple[DeliveryKind, ...] = ("report", "question", "update")
"""What a child tells its parent."""


def begun(tx: Transaction, grant: Grant) -> None:
    """A turn of the agent begins. The part of an `Opening`."""
    agent = find(tx.all, grant.session_id)
    if agent is not None and agent.status != "running":
        _append(tx, grant, AgentStatusChanged(status="running"))


def ended(tx: Transaction, grant: Grant, ending: Ending, settings: AgentSettings) -> None:
    """The part of a `Hook`: exactly one of nothing (it is being closed), an interrupt without a report, or
    a report (coordination 5.5)."""
    agent = find(tx.all, grant.session_id)
    if agent is None or agent.status == "closed":
        return
    for ask_id, _ in tx.all(SQL["open_asks_of"], grant.session_id):
        outcome = "parent_restarted" if ending.outcome == "interrupted" else "cancelled"
        _append(tx, grant, AgentReplied(ask_id=ask_id, outcome=outcome))
    if agent.closing:
        return
    stopped = _stopped(tx, agent, ending)
    if stopped is not None:
        _append(tx, grant, stopped)
        if stopped.kind is None:
            return
    report = _report(tx, grant, agent, ending, stopped)
    _append(tx, grant, AgentReportCreated(report=report))
    owner = tx.one(TURN_SQL["owner"], grant.session_id)
    assert owner is not None  # the fence was asserted
    notify(
        tx,
        agent,
        "report",
        report.report_id,
        report_text(report),
        host_id=owner[4],
        wakes=settings.reports == "wake" and not _with_its_tree(tx, grant, ending),
        meta={"agentId": agent.agent_id, "reportId": report.report_id, "status": report.status},
    )


def _with_its_tree(tx: Transaction, grant: Grant, ending: Ending) -> bool:
    """Whether the turn was cancelled with all others around it: whoever wanted that wants nobody to go on
    because of it."""
    if ending.outcome != "cancelled":
        return False
    return tx.one(SQL["cancelled_with_tree"], grant.session_id, grant.turn_id) is not None


def _append(tx: Transaction, grant: Grant, event: object) -> None:
    tx.append(grant.session_id, event, actor=SYSTEM, turn_id=grant.turn_id, fence=grant.fence)


def _stopped(tx: Transaction, agent: AgentState, ending: Ending) -> AgentInterrupted | None:
    """Why the turn did not come to an end of its own; None when it did.

    What a turn had said before an abort reached it is kept: an interrupt that lost the race changes
    nothing (DESIGN 6). One that was told to wind down has been cancelled however it then ended.
    """
    if ending.outcome == "interrupted":
        return AgentInterrupted(reason=reason_of(tx.writing.redact, ending.reason))
    verb = agent.winding
    ends = agent.pending is not None and agent.pending.kind in ("abort", "interrupt")
    if ending.outcome == "cancelled" and ends:
        verb = agent.pending
    if verb is not None:
        return _by(verb)
    if ending.outcome == "cancelled":
        reason = reason_of(tx.writing.redact, ending.reason)
        return AgentInterrupted(reason=reason, kind="abort", origin="user")
    return None


def _by(verb: AgentInterruptRequested) -> AgentInterrupted:
    who = {"user": "the person", "parent": "its parent", "clock": "the server's clock"}
    reason = verb.reason or f"it was stopped by {who[verb.origin]}"
    if verb.kind == "interrupt":
        return AgentInterrupted(reason=reason, origin=verb.origin)
    return AgentInterrupted(reason=reason, kind=verb.kind, origin=verb.origin)


def _report(
    tx: Transaction,
    grant: Grant,
    agent: AgentState,
    ending: Ending,
    stopped: AgentInterrupted | None,
) -> AgentReport:
    if stopped is not None:
        text = ending.final_text or _said_last(tx, grant)
    elif ending.outcome == "completed":
        text = ending.final_text or ""
    else:
        text = ending.error.message if ending.error else f"The turn was {ending.outcome}."
    status = "completed" if ending.outcome == "completed" else "failed"
    return AgentReport(
        report_id=ReportId(tx.new_id("rep")),
        agent_id=SessionId(agent.agent_id),
        name=agent.name,
        status=status if stopped is None else "aborted",
        summary=shortened(redacted(tx.writing.redact, text)),
        turn_id=TurnId(grant.turn_id),
        reason=None if stopped is None else stopped.reason,
        touched_files=tuple(
            path for (path,) in tx.all(SQL["touched"], grant.session_id, grant.turn_id)
        ),
        open_steps=_open_steps(tx, grant.session_id),
    )


def shortened(text: str, limit: int = SUMMARY_CHARS) -> str:
    """Trimmed, and cut with an ellipsis to at most `limit` characters (coordination 56). `text` is of the
    log, or `redacted`."""
    text = text.strip()
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def _said_last(tx: Transaction, grant: Grant) -> str:
    """The last text of the turn, also when it was cut off."""
    for (data,) in tx.all(SQL["said_last"], grant.session_id, grant.turn_id):
        message = structure_lenient(orjson.loads(data), Message)
        text = "\n".join(b.text for b in message.content if isinstance(b, TextContent))
        if not message.from_outside and text.strip():
            return text
    return ""


def _open_steps(tx: Transaction, session_id: str) -> tuple[str, ...]:
    data: str | None = tx.value(SQL["last_plan"], session_id)
    if data is None:
        return ()
    plan = structure_lenient(orjson.loads(data), PlanUpdated)
    return tuple(shortened(e.content, 200) for e in plan.entries if e.status != "completed")


# --- telling the parent -------------------------------------------------------------------------


def notify(
    tx: Transaction,
    agent: AgentState,
    kind: DeliveryKind,
    delivery_id: str,
    text: str,
    *,
    host_id: str,
    wakes: bool,
    meta: Json,
) -> None:
    """Puts what a child says into its parent's inbox. It `wakes` a parent that has ended its last turn
    by itself; one that runs takes it in at its next boundary, and one that was stopped, or waits for an
    approval, when it goes on. A parent that is closed hears nothing any more."""
    envelope = Envelope(
        delivery_id=delivery_id,
        content=(TextContent(text=text),),
        author=Author(kind="agent", name=agent.name, id=agent.agent_id),
        kind=kind,
        meta=meta,
    )
    try:
        accepted = deliveries.deliver(
            tx, agent.parent_id, envelope, by=SYSTEM, host_id=host_id, insist=True
        )
    except CallboardError as error:
        if error.kind in ("sessionClosed", "sessionNotFound"):
            return
        raise
    if wakes and tx.value(SQL["parent_rests"], agent.parent_id) == "completed":
        deliveries.authorise(tx, agent.parent_id, accepted.generation)
        deliveries.ask(tx, agent.parent_id, accepted.generation, host_id=host_id)
    else:
        deliveries.leave(tx, agent.parent_id, accepted.generation)


def undelivered(query: Query, parent_id: str) -> dict[str, str]:
    """What waits for a parent from its children, by the delivery's id: ``report``, ``question``,
    ``update``."""
    return {row[0]: row[1] for row in query(SQL["undelivered"], parent_id)}


def told_by_result(
    query: Query, parent_id: str, delivery_id: str, call_id: CallId
) -> AgentNotificationDelivered | None:
    """The event that, committed with the result of `call_id`, makes that result the notification; None when
    there is nothing to tell any more."""
    rows = query(SQL["delivery"], parent_id, delivery_id)
    if not rows:
        return None
    known, generation, digest, kind = rows[0]
    return AgentNotificationDelivered(
        delivered=Delivered(delivery_id=known, generation=generation, digest=digest, kind=kind),
        call_id=call_id,
    )
