"""Waiting for agents, without a lost wake-up: what is committed in their tree after a look ends the wait for
the next (coordination 5.7). What is committed elsewhere concerns nobody here, and is not looked at.
"""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

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
from .state import AgentState, has_ended, settled

T = TypeVar("T")

DEFAULT_WAIT_S = 30.0
MAX_WAIT_S = 300.0


async def until(
    is_over: Callable[[T], bool],
    look: Callable[[], T],
    log: Log,
    session_id: str,
    *,
    timeout_s: float,
) -> T:
    """What is seen when it is over, or the time is up. Looks at once, and then whenever something was
    committed in the tree of a session, by whatever process. It waits at most `MAX_WAIT_S`."""
    # one read of the clock: nothing that happens meanwhile makes the wait longer
    deadline = asyncio.get_running_loop().time() + min(max(timeout_s, 0.0), MAX_WAIT_S)
    with log.watching_tree(session_id) as changed:
        while True:
            changed.clear()  # before the look: what is committed after it ends the wait
            seen = look()
            left = deadline - asyncio.get_running_loop().time()
            if is_over(seen) or left <= 0:
                return seen
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await changed.wait()


@frozen(kw_only=True)
class Waited:
    """What a wait has come to. `agents` come without what they reported (coordination 44); `questions` are
    those of the agents that were waited for."""

    reason: WaitEnd
    agents: tuple[AgentState, ...]
    reports_pending: int
    questions: tuple[AgentQuestion, ...] = ()


@frozen(kw_only=True)
class Ended:
    """What the first turn of an agent came to. It has ended (`over`: with `report`, or `stopped` says why
    there is none), it asks something, its parent is called away by somebody else, or none of it was so in
    time. `text` is all that it said last."""

    agent: AgentState
    over: bool
    question: AgentQuestion | None = None
    called_away: bool = False
    report: AgentReport | None = None
    stopped: str | None = None
    text: str = ""


@frozen(kw_only=True)
class _Awaited:
    """An agent as a wait looks at it, without its report. Its last one may wait for the parent (`reports`);
    a turn of it that has not begun may be asked for (`is_asked`)."""

    agent: AgentState
    reports: bool
    is_asked: bool

    @property
    def ended(self) -> bool:
        return has_ended(self.agent, is_asked=self.is_asked)

    @property
    def settled(self) -> bool:
        return settled(self.agent, is_asked=self.is_asked, is_told=not self.reports)


class Waiting:
    """`target` finds the agent below a session that is meant by an id or a name; it raises agentNotFound."""

    def __init__(self, log: Log, target: Callable[[str, str], AgentState]) -> None:
        self._log = log
        self._target = target

    # --- any of several ---

    async def for_any(
        self, parent_id: str, agent_ids: Sequence[str] = (), *, timeout_s: float = DEFAULT_WAIT_S
    ) -> Waited:
        """Waits until an agent that is meant has finished, reported or asked; or until somebody says
        something else to the parent; or until the time is up, which is no error. Without ids all children
        are meant that are not closed and whose end the parent has not been told yet. One that was told to
        go on, and has not begun to, has not finished.

        Raises agentNotFound for an id that is no child of the parent.
        """
        chosen = frozenset(self._child(parent_id, each) for each in agent_ids)
        return await self._until_over(parent_id, lambda: self._look(parent_id, chosen), timeout_s)

    async def for_client(
        self, parent_id: str, agent_ids: Sequence[str] = (), *, timeout_s: float = DEFAULT_WAIT_S
    ) -> Waited:
        """`for_any`, for somebody who looks on. What the parent has yet to hear ends no wait of theirs, who
        cannot hear it for the parent: it would end the next one, too. Without ids all children are meant that
        have not ended when the wait begins."""
        chosen = frozenset(self._child(parent_id, each) for each in agent_ids) or frozenset(
            each.agent.agent_id for each in self._awaited(parent_id, None) if not each.ended
        )
        return await self._until_over(
            parent_id, lambda: self._look_on(parent_id, chosen), timeout_s
        )

    async def _until_over(
        self, parent_id: str, look: Callable[[], Waited], timeout_s: float
    ) -> Waited:
        return await until(
            lambda waited: waited.reason != "timeout",
            look,
            self._log,
            parent_id,
            timeout_s=timeout_s,
        )

    def _look_on(self, parent_id: str, chosen: Collection[str]) -> Waited:
        meant = self._awaited(parent_id, chosen) if chosen else []
        questions = tuple(each for each in self._questions(parent_id) if each.agent_id in chosen)
        reason: WaitEnd
        if not meant:
            reason = "nothing"
        elif any(each.ended for each in meant):
            reason = "finished"
        else:
            reason = "question" if questions else "timeout"
        return Waited(
            reason=reason,
            agents=tuple(each.agent for each in meant),
            reports_pending=self._told(parent_id).get("report", 0),
            questions=questions,
        )

    def _child(self, parent_id: str, named: str) -> str:
        agent = self._target(parent_id, named)
        if agent.parent_id != parent_id:
            raise not_found(named)  # it reports to another one
        return agent.agent_id

    def _look(self, parent_id: str, chosen: Collection[str]) -> Waited:
        awaited = self._awaited(parent_id, chosen or None)
        meant = [each for each in awaited if chosen or not each.settled]
        ids = {each.agent.agent_id for each in meant}
        questions = tuple(each for each in self._questions(parent_id) if each.agent_id in ids)
        told = self._told(parent_id)
        reason: WaitEnd
        if not meant:
            reason = "nothing"
        elif any(each.ended for each in meant):
            reason = "finished"
        elif any(each.reports for each in meant):
            reason = "report"
        elif questions:
            reason = "question"
        elif "question" in told or "update" in told or self._is_called(parent_id):
            reason = "message"
        else:
            reason = "timeout"
        return Waited(
            reason=reason,
            agents=tuple(each.agent for each in meant),
            reports_pending=told.get("report", 0),
            questions=questions,
        )

    # --- the first end of one ---

    async def for_first_end(self, agent_id: str, *, timeout_s: float) -> Ended:
        """Waits until the first turn of an agent has ended, or it asks its parent something, or somebody else
        has something for the parent that should not wait for that, or the time is up. What the agent has
        done since, if somebody was faster to continue it, is another matter.

        Raises agentNotFound when it is deleted meanwhile."""
        agent = find(self._log.glance, agent_id)
        if agent is None:
            raise not_found(agent_id)
        return await until(
            lambda ended: ended.over or ended.question is not None or ended.called_away,
            lambda: self._first_end(agent.parent_id, agent_id),
            self._log,
            agent_id,
            timeout_s=timeout_s,
        )

    def _first_end(self, parent_id: str, agent_id: str) -> Ended:
        awaited = next(iter(self._awaited(parent_id, (agent_id,))), None)
        if awaited is None:
            raise not_found(agent_id)
        agent = awaited.agent
        turn = next(iter(self._log.glance(SQL["first_turn"], agent_id)), None)
        if turn is None:
            why = agent.interrupted.reason if agent.interrupted else "it was closed"
            return (
                Ended(agent=agent, over=True, stopped=why)
                if awaited.ended
                else self._goes_on(agent)
            )
        turn_id, ended_at, final_text = turn
        if ended_at is None:
            return self._goes_on(agent)
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

    def _goes_on(self, agent: AgentState) -> Ended:
        """The questions of others end the wait, too: they are not there for ever. What others only tell, or
        report, is for the boundary, and keeps nobody waiting."""
        asked = self._questions(agent.parent_id)
        own = next((each for each in asked if each.agent_id == agent.agent_id), None)
        return Ended(
            agent=agent,
            over=False,
            question=own,
            called_away=bool(asked) or self._is_called(agent.parent_id),
            stopped=agent.interrupted.reason if agent.interrupted else None,
        )

    # --- what there is to be seen ---

    def _awaited(self, parent_id: str, chosen: Collection[str] | None) -> list[_Awaited]:
        """The chosen children, or (None) those that are not closed; by name, then id."""
        ids = None if chosen is None else orjson.dumps(list(chosen)).decode()
        return [
            _Awaited(agent=agent_of(tuple(agent)), reports=bool(reports), is_asked=bool(is_asked))
            for *agent, reports, is_asked in self._log.glance(SQL["awaited"], parent_id, ids)
        ]

    def _told(self, parent_id: str) -> dict[str, int]:
        """How much waits for the parent from its children, by kind."""
        return dict(self._log.glance(SQL["count_undelivered"], parent_id))

    def _questions(self, parent_id: str) -> list[AgentQuestion]:
        """What the parent is asked by its children, and has not been told yet."""
        rows = self._log.glance(SQL["open_asks_to"], parent_id)
        untold = undelivered(self._log.glance, parent_id) if rows else {}
        return [
            AgentQuestion(
                ask_id=AskId(ask_id),
                agent_id=SessionId(agent_id),
                name=name,
                text=text,
                asked_at=asked_at,
                expires_at=expires_at,
            )
            for ask_id, agent_id, name, text, asked_at, expires_at in rows
            if ask_id in untold
        ]

    def _is_called(self, parent_id: str) -> bool:
        """Whether something waits for the parent's boundary that should not wait for a wait: a person's steer,
        a message to go on with, or an interrupt."""
        glance = self._log.glance
        return bool(
            glance(TURN_SQL["pending_steers"], parent_id) or glance(SQL["is_called"], parent_id)
        )
