"""The answers of methods that change something, made once more from what their transaction decided.

A server may be killed between the commit of the work and that of its answer; see `idempotency`.
"""

from callboard_rpc.agents import (
    AgentInterruptResult,
    AgentMessageResult,
    AgentReplyResult,
    AgentResult,
)
from callboard_rpc.approvals import ApprovalResult, Rule, RuleResult
from callboard_rpc.common import Empty, Json, MessageId, TurnId
from callboard_rpc.convert import structure
from callboard_rpc.events import SessionRewound
from callboard_rpc.groups import GroupMessageSendResult, GroupTask, TaskResult
from callboard_rpc.history import SessionQueueResult, SessionRewindResult
from callboard_rpc.peers import PeerAcceptResult, PeerLeaveResult, PeerSendResult
from callboard_rpc.rooms import RoomResult
from callboard_rpc.schedules import (
    Schedule,
    ScheduleDeleteResult,
    ScheduleFire,
    ScheduleResult,
    ScheduleRunNowResult,
)
from callboard_rpc.sessions import (
    PromptOutcome,
    SessionCancelResult,
    SessionCompactResult,
    SessionPromptResult,
    SessionResult,
)
from callboard_rpc.transfer import SessionImportResult

from ...agents.mail import taker
from ...host import Host
from ...sessions.importing import Imported
from ...turns.projection import SQL as TURN_SQL
from ..idempotency import Remake
from .agents import agents_of, replied
from .groups import message_sent
from .peers import accepted, left, sent
from .rooms import room_result
from .schedules import schedule_result
from .transfer import import_result


def remakes(host: Host) -> dict[str, Remake]:
    """By method."""
    agents = agents_of(host)

    async def session(outcome: Json) -> SessionResult:
        return SessionResult(
            session=await host.reading.session(outcome["session_id"]), cursor=host.log.cursor()
        )

    async def prompt(outcome: Json) -> SessionPromptResult:
        session_id, seq = outcome["session_id"], outcome["seq"]
        await host.reading.session(session_id)
        ((delivery, turn_id),) = await host.log.query(TURN_SQL["trigger"], session_id, seq)
        steered = delivery == "steer"
        if outcome["behind"] is not None and not steered:
            turn_id = None  # it had to wait, whatever has become of it since
        waiting: PromptOutcome = "queued" if turn_id is None else "started"
        return SessionPromptResult(
            event_seq=seq,
            outcome="steered" if steered else waiting,
            turn_id=None if turn_id is None else TurnId(turn_id),
            cursor=host.log.cursor(),
            warning=outcome.get("warning"),
        )

    async def cancel(outcome: Json) -> SessionCancelResult:
        return cancelled(outcome["turn_id"], tuple(outcome["dropped"]))

    async def delete(_: Json) -> Empty:
        return Empty()

    async def compact(outcome: Json) -> SessionCompactResult:
        return SessionCompactResult(
            compacted=True, summary_seq=outcome["seq"], cursor=host.log.cursor()
        )

    async def rewind(outcome: Json) -> SessionRewindResult:
        return await rewound(host, outcome["session_id"], outcome["seq"])

    async def queue(outcome: Json) -> SessionQueueResult:
        return SessionQueueResult(event_seq=outcome["seq"], cursor=host.log.cursor())

    async def imported(outcome: Json) -> SessionImportResult:
        return await import_result(host, Imported(**outcome))

    async def approval(outcome: Json) -> ApprovalResult:
        return ApprovalResult(approval=await host.approvals.get(outcome["approval_id"]))

    async def rule(outcome: Json) -> RuleResult:
        return RuleResult(rule=structure(outcome["rule"], Rule))

    async def agent(outcome: Json) -> AgentResult:
        agent = await agents.reading.agent(outcome["session_id"])
        return AgentResult(agent=agent, cursor=host.log.cursor())

    async def message(outcome: Json) -> AgentMessageResult:
        message_id = MessageId(outcome["message_id"])
        began = taker(host.log.glance, outcome["agent_id"], message_id)
        return AgentMessageResult(
            message_id=message_id,
            turn_id=began if outcome["begins"] else None,
            cursor=host.log.cursor(),
        )

    async def interrupt(outcome: Json) -> AgentInterruptResult:
        return AgentInterruptResult(**outcome, cursor=host.log.cursor())

    async def reply(outcome: Json) -> AgentReplyResult:
        return replied(host, outcome["agent_id"], outcome["ask_id"])

    async def room(outcome: Json) -> RoomResult:
        return await room_result(host, outcome["session_id"])

    async def task(outcome: Json) -> TaskResult:
        return TaskResult(task=structure(outcome["task"], GroupTask), cursor=host.log.cursor())

    async def group_message(outcome: Json) -> GroupMessageSendResult:
        return message_sent(host, MessageId(outcome["message_id"]), tuple(outcome["recipients"]))

    async def schedule(outcome: Json) -> ScheduleResult:
        return schedule_result(host, structure(outcome["schedule"], Schedule))

    async def schedule_deleted(outcome: Json) -> ScheduleDeleteResult:
        return ScheduleDeleteResult(cursor=host.log.cursor(), deleted=outcome["deleted"])

    async def schedule_run(outcome: Json) -> ScheduleRunNowResult:
        fire = structure(outcome["fire"], ScheduleFire)
        return ScheduleRunNowResult(fire=fire, cursor=host.log.cursor())

    async def peer_accepted(outcome: Json) -> PeerAcceptResult:
        return accepted(host, outcome)

    async def peer_sent(outcome: Json) -> PeerSendResult:
        return sent(host, outcome)

    async def peer_left(outcome: Json) -> PeerLeaveResult:
        return left(host, outcome)

    return {
        "session/create": session,
        "session/update": session,
        "session/archive": session,
        "session/unarchive": session,
        "session/close": session,
        "session/prompt": prompt,
        "session/cancel": cancel,
        "session/delete": delete,
        "session/compact": compact,
        "session/fork": session,
        "session/import": imported,
        "session/rewind": rewind,
        "session/queueUpdate": queue,
        "session/queueRemove": queue,
        "approval/answer": approval,
        "approval/ruleAdd": rule,
        "approval/ruleRemove": rule,
        "agent/spawn": agent,
        "agent/send": message,
        "agent/continue": message,
        "agent/interrupt": interrupt,
        "agent/close": agent,
        "agent/reply": reply,
        "session/memberAdd": room,
        "session/memberRemove": room,
        "group/taskCreate": task,
        "group/taskClaim": task,
        "group/taskStart": task,
        "group/taskComplete": task,
        "group/taskBlock": task,
        "group/taskRelease": task,
        "group/taskCancel": task,
        "group/taskReassign": task,
        "group/messageSend": group_message,
        "schedule/create": schedule,
        "schedule/update": schedule,
        "schedule/delete": schedule_deleted,
        "schedule/runNow": schedule_run,
        "peer/accept": peer_accepted,
        "peer/send": peer_sent,
        "peer/leave": peer_left,
    }


async def rewound(host: Host, session_id: str, seq: int) -> SessionRewindResult:
    """What ``session/rewind`` answers, from the event that it wrote."""
    session = await host.reading.session(session_id)
    record = (await host.log.session(session_id, after_seq=seq - 1))[0]
    rewind: SessionRewound = record.value
    return SessionRewindResult(
        session=session,
        cursor=host.log.cursor(),
        event_seq=seq,
        before_seq=rewind.before_seq,
        turns=rewind.turns,
        changed_paths=rewind.changed_paths,
        more_paths=rewind.more_paths,
        commands=rewind.commands,
    )


def cancelled(turn_id: str | None, dropped: tuple[int, ...]) -> SessionCancelResult:
    """What ``session/cancel`` answers."""
    return SessionCancelResult(
        state="idle" if turn_id is None else "cancelling",
        turn_id=None if turn_id is None else TurnId(turn_id),
        dropped=dropped,
    )
