"""The live tree: every agent of a tree as it is now, for people: who does what, since when, at what cost,
and what it waits for.

However many there are, it takes the same few statements, all over one state of the store: nobody is
shown with the tool of a turn that has ended.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import orjson
from attrs import frozen

from callboard_rpc.agents import Agent, AgentApproval, AgentQuestion, AgentTool
from callboard_rpc.approvals import AgentStep
from callboard_rpc.common import ApprovalId, AskId, CallId, Mode, SessionId, Usage
from callboard_rpc.convert import structure_lenient
from callboard_rpc.errors import CallboardError
from callboard_rpc.events import InterruptKind

from ..log.clock import parse
from ..log.faults import no_session
from ..log.log import Log
from ..log.looking import Rows
from ..sessions.state import narrowest
from .mail import not_found
from .projection import SQL, agent_of
from .state import AgentState

T = TypeVar("T")

_OF_STATE = 14
"""The first columns of ``tree`` are those of ``agent``."""
_ALL = -1

Place = tuple[str, str]
"""Where an agent stands in the order of lists: its name and its id."""


class AgentReading:
    """`max_running` is how many children of one agent run at once."""

    def __init__(self, log: Log, *, max_running: int) -> None:
        self._log = log
        self._max_running = max_running

    async def list(
        self, root_id: str, *, behind: Place | None = None, limit: int | None = None
    ) -> tuple[Agent, ...]:
        """The agents of the tree that a session is in, closed ones too, by name, then id
        (coordination 20). Raises sessionNotFound."""
        return await self._read(root_id, None, behind, limit)

    async def agent(self, agent_id: str) -> Agent:
        """Raises agentNotFound, for a root session as well."""
        try:
            found = await self._read(agent_id, agent_id, None, None)
        except CallboardError as error:
            if error.kind != "sessionNotFound":
                raise
            found = ()
        if not found:
            raise not_found(agent_id)
        return found[0]

    async def _read(
        self, session_id: str, only: str | None, behind: Place | None, limit: int | None
    ) -> tuple[Agent, ...]:
        now = self._log.now()

        def read(rows: Rows) -> tuple[Agent, ...]:
            place = rows("SELECT root_id FROM heads WHERE session_id = ?", session_id)
            if not place:
                raise no_session(session_id)
            root_id: str = place[0][0]
            agents = rows(
                SQL["tree"],
                root_id,
                only,
                *(behind or (None, None)),
                _ALL if limit is None else limit,
            )
            if not agents:
                return ()
            around = _Around.read(rows, root_id, only, self._max_running)
            return tuple(_agent(row, around, now) for row in agents)

        return await self._log.at_once(read)


# --- what stands around the agents --------------------------------------------------------------


@frozen(kw_only=True)
class _Around:
    """What else is known of a tree, by session."""

    parents: dict[str, str | None]
    modes: dict[str, Mode]
    names: dict[str, str]
    tools: dict[str, list[AgentTool]]
    approvals: dict[str, list[AgentApproval]]
    questions: dict[str, list[AgentQuestion]]
    crowded: frozenset[str]
    """Parents of which no other child may begin a turn now."""

    @classmethod
    def read(cls, rows: Rows, root_id: str, only: str | None, max_running: int) -> "_Around":
        places = rows(SQL["tree_places"], root_id)
        running = rows(SQL["tree_running"], root_id)
        return cls(
            parents={session_id: parent_id for session_id, parent_id, _, _ in places},
            modes={session_id: mode for session_id, _, mode, _ in places},
            names={session_id: name for session_id, _, _, name in places if name is not None},
            tools=_grouped(rows(SQL["tree_calls"], root_id, only), _tool),
            approvals=_grouped(rows(SQL["tree_approvals"], root_id, only), _approval),
            questions=_grouped(rows(SQL["tree_asks"], root_id, only), _question),
            crowded=frozenset(parent for parent, count in running if count >= max_running),
        )

    def above(self, session_id: str) -> Sequence[str]:
        """The sessions above one, the nearest first; a cycle, which cannot be, ends it."""
        above: list[str] = []
        parent = self.parents.get(session_id)
        while parent is not None and parent not in above:
            above.append(parent)
            parent = self.parents.get(parent)
        return above

    def mode(self, session_id: str) -> Mode:
        """What holds for a session: no more than for those above it (coordination 50)."""
        ids = (session_id, *self.above(session_id))
        return narrowest([self.modes[each] for each in ids if each in self.modes])

    def path(self, session_id: str) -> tuple[AgentStep, ...]:
        ids = (session_id, *self.above(session_id))
        return tuple(
            AgentStep(session_id=SessionId(each), name=self.names[each])
            for each in reversed(ids)
            if each in self.names
        )


def _grouped(rows: Iterable[tuple[Any, ...]], make: Callable[..., T]) -> dict[str, list[T]]:
    """By the session that rows begin with."""
    groups: dict[str, list[T]] = defaultdict(list)
    for session_id, *rest in rows:
        groups[session_id].append(make(session_id, *rest))
    return groups


def _tool(_: str, call_id: str, name: str, title: str | None, at: str) -> AgentTool:
    return AgentTool(call_id=CallId(call_id), name=name, title=title or name, started_at=at)


def _approval(_: str, approval_id: str, title: str) -> AgentApproval:
    return AgentApproval(approval_id=ApprovalId(approval_id), title=title)


def _question(
    agent_id: str, ask_id: str, text: str, asked_at: str, expires_at: str | None, name: str
) -> AgentQuestion:
    return AgentQuestion(
        ask_id=AskId(ask_id),
        agent_id=SessionId(agent_id),
        name=name,
        text=text,
        asked_at=asked_at,
        expires_at=expires_at,
    )


# --- one agent ----------------------------------------------------------------------------------


def _agent(row: tuple[Any, ...], around: _Around, now: str) -> Agent:
    state = agent_of(row[:_OF_STATE])
    (
        profile, pinned, depth, created_at, usage, turn_id, turn_model, started_at, ended_at, queued,
        begins,
    ) = row[_OF_STATE:]  # fmt: skip
    under_way = turn_id is not None and ended_at is None
    questions = around.questions.get(state.agent_id)
    return Agent(
        agent_id=SessionId(state.agent_id),
        root_id=SessionId(state.root_id),
        parent_id=SessionId(state.parent_id),
        name=state.name,
        status=state.status,
        profile=profile,
        mode=around.mode(state.agent_id),
        depth=depth,
        created_at=created_at,
        path=around.path(state.agent_id),
        agent_type=state.agent_type,
        # a turn keeps the model that it began with
        model=(turn_model if under_way else None) or pinned or turn_model,
        turn_id=turn_id if under_way else None,
        turn_started_at=started_at if under_way else None,
        elapsed_ms=None if started_at is None else _milliseconds(started_at, ended_at or now),
        tools=tuple(around.tools.get(state.agent_id, ())) if under_way else (),
        usage=None if usage is None else structure_lenient(orjson.loads(usage), Usage),
        approvals=tuple(around.approvals.get(state.agent_id, ())),
        question=questions[0] if questions else None,
        queued=queued,
        waits_for_slot=bool(begins) and state.parent_id in around.crowded,
        interrupt=_interrupt(state),
        interrupted=state.interrupted,
        report=state.report,
        message_allow=state.message_allow,
    )


def _milliseconds(start: str, end: str) -> int:
    return max(0, round((parse(end) - parse(start)) / timedelta(milliseconds=1)))


def _interrupt(state: AgentState) -> InterruptKind | None:
    """What is being done to it: what it is about to be told, or was told and winds down for, or its end."""
    if state.pending is None:
        return None if state.winding is None else "cancel"
    return "abort" if state.pending.kind == "interrupt" else state.pending.kind
