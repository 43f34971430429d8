"""Waiting for agents, without a lost wake-up: what is committed after a look ends the wait for the next
(coordination 5.7)."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Sequence

import orjson
from attrs import frozen

from callboard_rpc.agents import AgentQuestion, WaitEnd
from callboard_rpc.common import AskId, SessionId
from callboard_rpc.convert import structure_lenient
from callboard_rpc.events import AgentInterrupted, AgentReport, AgentReportCreated

from ..log.log import Log
from ..turns.projection import SQL as TURN_SQL
from .mail import not_found
from .projection import SQL, agent_of, find
from .reports import undelivered
from .state import AgentState, settled

DEFAULT_WAIT_S = 30.0
MAX_WAIT_S = 300.0


@frozen(kw_only=True)
class Waited:
    """What a wait has come to. `questions` are those of the agents that were waited for."""

    reason: WaitEnd
    agents: tuple[AgentState, ...]
    reports_pending: int
    questions: tuple[AgentQuestion, ...] = ()


@frozen(kw_only=True)
class Ended:
    """What the first turn of an agent came to. It has ended (`over`: with `report`, or `stopped` says why
    there is none), it asks something, or neither was so in time. `text` is all that it said last."""

    agent: AgentState
    over: bool
    question: AgentQuestion | None = None
    report: AgentReport | None = None
    stopped: str | None = None
    text: str = ""


class Waiting:
    """`target` finds the agent below a session that is meant by an id or a name; it raises agentNotFound."""

    def __init__(self, log: Log, target: Callable[[str, str], AgentState]) -> None:
        self._log = log
        self._target = target

    async def for_any(
        self, parent_id: str, agent_ids: Sequence[str] = (), *, timeout_s: float = DEFAULT_WAIT_S
    ) -> Waited:
        """Waits until an agent that is meant has finished, reported or asked; or until somebody says
        something else to the parent; or until the time is up, which is no error. Without ids all children
        are meant that are not closed and whose end the parent has not been told yet.

        Raises agentNotFound for an id that is no child of the parent.
        """
        chosen = frozenset(self._child(parent_id, each) for each in agent_ids)
        # one read of the clock: nothing that happens meanwhile makes the wait longer
        deadline = asyncio.get_running_loop().time() + min(max(timeout_s, 0.0), MAX_WAIT_S)
        while True:
            position = self._log.head  # before the look: what is committed after it ends the wait
            waited = self._look(parent_id, chosen)
            left = deadline - asyncio.get_running_loop().time()
            if waited.reason != "timeout" or left <= 0:
                return waited
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._log.moved(position)

    def _child(self, parent_id: str, named: str) -> str:
        agent = self._target(parent_id, named)
        if agent.parent_id != parent_id:
            raise not_found(named)  # it reports to another one
        return agent.agent_id

    async def for_first_end(self, agent_id: str, *, timeout_s: float) -> Ended:
        """Waits until the first turn of an agent has ended, or it asks its parent something, or the time is
        up. What the agent has done since, if somebody was faster to continue it, is another matter.

        Raises agentNotFound when it is deleted meanwhile."""
        deadline = asyncio.get_running_loop().time() + min(max(timeout_s, 0.0), MAX_WAIT_S)
        while True:
            position = self._log.head
            ended = self._first_end(agent_id)
            left = deadline - asyncio.get_running_loop().time()
            if ended.over or ended.question is not None or left <= 0:
                return ended
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._log.moved(position)

    def _first_end(self, agent_id: str) -> Ended:
        agent = self._agent(agent_id)
        turn = next(iter(self._log.glance(SQL["first_turn"], agent_id)), None)
        if turn is None:
            why = agent.interrupted.reason if agent.interrupted else "it was closed"
            return Ended(agent=agent, over=agent.is_terminal, stopped=why)
        turn_id, ended_at, final_text = turn
        if ended_at is None:
            asked = self._questions(agent.parent_id, frozenset({agent_id}))
            return Ended(agent=agent, over=False, question=asked[0] if asked else None)
        report: AgentReport | None = None
        stopped: AgentInterrupted | None = None
        for kind, data in self._log.glance(SQL["outcome_of_turn"], agent_id, turn_id):
            if kind == "agent_interrupted":
                stopped = structure_lenient(orjson.loads(data), AgentInterrupted)
            else:
                report = structure_lenient(orjson.loads(data), AgentReportCreated).report
        if report is None:
            why = stopped.reason if stopped else "it was closed"
            return Ended(agent=agent, over=True, stopped=why)
        whole = final_text if report.status == "completed" else None
        return Ended(agent=agent, over=True, report=report, text=whole or report.summary)

    def _questions(self, parent_id: str, of: Collection[str]) -> tuple[AgentQuestion, ...]:
        """What these agents ask their parent, and it has not been told yet."""
        rows = self._log.glance(SQL["open_asks_to"], parent_id)
        untold = undelivered(self._log.glance, parent_id) if rows else {}
        return tuple(
            AgentQuestion(
                ask_id=AskId(ask_id),
                agent_id=SessionId(agent_id),
                name=name,
                text=text,
                asked_at=asked_at,
                expires_at=expires_at,
            )
            for ask_id, agent_id, name, text, asked_at, expires_at in rows
            if agent_id in of and ask_id in untold
        )

    def _look(self, parent_id: str, chosen: frozenset[str]) -> Waited:
        glance = self._log.glance
        told = undelivered(glance, parent_id)
        reports = frozenset(key for key, kind in told.items() if kind == "report")
        children = [agent_of(row) for row in glance(SQL["children"], parent_id)]
        meant = tuple(
            child
            for child in children
            if child.agent_id in chosen or (not chosen and not settled(child, reports))
        )
        ids = {child.agent_id for child in meant}
        questions = self._questions(parent_id, ids)
        reason: WaitEnd
        if not meant:
            reason = "nothing"
        elif any(child.is_terminal for child in meant):
            reason = "finished"
        elif any(child.report is not None and child.report.report_id in reports for child in meant):
            reason = "report"
        elif questions:
            reason = "question"
        elif self._is_spoken_to(parent_id, told):
            reason = "message"
        else:
            reason = "timeout"
        return Waited(
            reason=reason, agents=meant, reports_pending=len(reports), questions=questions
        )

    def _is_spoken_to(self, parent_id: str, told: dict[str, str]) -> bool:
        """Whether something waits for the parent's boundary besides what its agents have reported: a
        person's steer, a message to go on with, or an interrupt should not wait for a wait."""
        glance = self._log.glance
        if glance(TURN_SQL["pending_steers"], parent_id) or glance(SQL["is_called"], parent_id):
            return True
        return any(kind in ("question", "update") for kind in told.values())

    def _agent(self, agent_id: str) -> AgentState:
        agent = find(self._log.glance, agent_id)
        if agent is None:
            raise not_found(agent_id)
        return agent
